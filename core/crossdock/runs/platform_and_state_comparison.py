"""Comparison of the platform's records of one resource with the state, by content: differences and corrections."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from msgspec import Struct, structs

from crossdock.delta.fingerprint import key_hashes
from crossdock.mapping.resource_types import RESOURCES
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.reading.sources.compact_id_set import IdSet
from crossdock.runs.resource_control_totals import ResourceTotals
from crossdock.state import Binding, Intent, Scope, State
from crossdock.values import exact_json
from crossdock.writing.delivery.operations_and_intents import payload_after_intent
from crossdock.writing.targets.payload_comparison import has_wanted_members, without_unwanted_members

DifferenceClass = Literal["missing", "extra", "stale", "diverged", "duplicate", "waiting", "in doubt", "rejected"]
CLASSES: tuple[DifferenceClass, ...] = (
    "missing", "duplicate", "diverged", "extra", "stale", "in doubt", "waiting", "rejected",
)  # fmt: skip
"""The classes of differences, the most severe first."""
MEANINGS: Mapping[DifferenceClass, str] = {
    "missing": "the platform does not have the record",
    "duplicate": "two records where there must be one",
    "diverged": "the platform holds something else than it accepted",
    "extra": "the platform has it, and the source or the state does not",
    "stale": "the source has changed since it was delivered",
    "in doubt": "known to the state, and an operation on it may or may not have been carried out",
    "waiting": "known to the state, and not delivered, because it waits for another record",
    "rejected": "known to the state, and not delivered, because it was refused",
}

UNKNOWN = "the state does not know it"


def is_compared_by_reconciliation(scope: Scope) -> bool:
    """Return whether a reconciliation compares the records of *scope*: those of the platform's resources."""
    return scope.target == PLATFORM and scope.resource in RESOURCES


class Difference(Struct, frozen=True):
    """A record that differs between source, state and platform.

    `members` is empty where the whole record differs. `place` is ``FILE:LINE`` of a row without a key.
    """

    difference: DifferenceClass
    scope: Scope
    key: str
    target_id: str | None = None
    members: tuple[str, ...] = ()
    remark: str = ""
    place: str = ""


class BindingCorrection(Struct, frozen=True):
    """The corrected facts about a record. `binding` and `held` are None if the platform does not have the record."""

    scope: Scope
    key_hash: int
    key: str
    binding: Binding | None
    before: Binding | None
    held: dict[str, Any] | None


BindingsByTargetId = Mapping[str, Sequence[tuple[Scope, Binding]]]
"""The live bindings to records of the platform, by the records' ids."""


def load_bindings_by_target_id(state: State, resource: str, ids: Sequence[str]) -> BindingsByTargetId:
    """Return the bindings to each of *ids*, including contributions; none to a record that the state does not know."""
    found: dict[str, list[tuple[Scope, Binding]]] = {each: [] for each in ids}
    with state.begin_read_only() as tx:
        for scope, binding in tx.bindings.bindings_of_target_ids(PLATFORM, resource, ids):
            found[binding.target_id].append((scope, binding))
    return found


Held = dict[str, Any]
_PAGE = 5_000  # bindings that are read together
_CLOCKS_DIFFER = timedelta(minutes=10)
_ANOTHER, _OTHER_ID = "the state has the id of another record", "the state has another id"
_NO_LONGER = "the platform no longer has it"
_COPY = "holds the same as a record that was delivered"
_NUMBER = re.compile(r"-?[0-9]{1,15}\.[0-9]{1,15}|-?[1-9][0-9]{0,14}|0")
_MISSING_AT_MOST = 10  # records, however many the state has
_VERIFIED_AT_MOST = 500  # records that seem to be missing; each takes a request


class InDoubtResult(NamedTuple):
    """The result for an operation in doubt, with the id of its record if it was executed and is not a delete."""

    outcome: Literal["delivered", "not delivered", "unknown"]
    target_id: str | None = None


class ComparedResource(Struct, frozen=True):
    """A resource to compare. Imported bindings get the members `kept`, which show to which records they refer."""

    name: str
    has_external_ids: bool
    write_once: bool
    kept: AbstractSet[str] = frozenset()


class TargetRecordComparison:
    """Takes the pages of a complete list, then compares what the list did not name.

    A record that changes while the list is read may be listed again. Its last appearance counts.

    Args:
        unsettled: Records with an unsettled operation, which are left out.
        remembered: All records without a name that the platform created before this time are in the state; None if no
            such time is known.
        until: Records without a name that the platform created later may be sent again, with the same idempotency key.
    """

    def __init__(
        self,
        state: State,
        resource: ComparedResource,
        namespaces: AbstractSet[str],
        unsettled: AbstractSet[tuple[Scope, int]],
        *,
        began: datetime,
        remembered: datetime | None = None,
        until: datetime | None = None,
    ) -> None:
        self._state, self._resource, self._namespaces, self._unsettled = state, resource, namespaces, unsettled
        self._began, self._remembered, self._until = began - _CLOCKS_DIFFER, remembered, until
        self._seen, self._contents = IdSet(), IdSet()
        self._named: dict[str, str] = {}  # external ids of unbound records -> their ids
        self._unnamed = defaultdict[str, list[str]](list)  # contents of unbound records without a name -> their ids
        self._of_unsettled: dict[tuple[Scope, int], Held] = {}
        self._shown = Counter[bool]()  # records without a name, by whether the list shows their customer and items
        self._lost: list[tuple[Scope, Binding]] = []  # without a name, whose id is missing or another record's
        self._moves: dict[str, tuple[Held | None, Held | None]] = {}  # by id: what the state says, what is held
        self.differences: dict[tuple[Scope, str], Difference] = {}
        self.corrections: dict[tuple[Scope, int], BindingCorrection] = {}
        self.state_totals = ResourceTotals()

    # ---- pages

    def compare_page(self, page: Sequence[Held]) -> BindingsByTargetId:
        records = {each["id"]: each for each in page if isinstance(each.get("id"), str)}
        self._forget_results_of_relisted(records)
        bound = load_bindings_by_target_id(self._state, self._resource.name, list(records))
        for target_id, held in records.items():
            whole = [each for each in bound[target_id] if not each[0].is_contribution]
            if own := [each for each in whole if each[0].namespace in self._namespaces]:
                self._compare_bound(held, own, [each for each in bound[target_id] if each[0].is_contribution])
            elif not whole:
                self._index_unbound_by_external_id_or_content(target_id, held)
        self._seen.add(list(records))
        return bound

    def _forget_results_of_relisted(self, records: Mapping[str, Held]) -> None:
        changed = [name for name, held in records.items() if is_changed_since(held, self._began)]
        again = self._seen.known_ids_among(changed) if changed else set()
        if not again:
            return
        self.differences = {place: each for place, each in self.differences.items() if each.target_id not in again}
        self.corrections = {
            place: each
            for place, each in self.corrections.items()
            if each.before is None or each.before.target_id not in again
        }
        for name in [name for name, target_id in self._named.items() if target_id in again]:
            del self._named[name]
        for ids in self._unnamed.values():
            ids[:] = [each for each in ids if each not in again]
        for target_id in again:
            self._moves.pop(target_id, None)

    def _compare_bound(
        self, held: Held, owners: list[tuple[Scope, Binding]], contributions: list[tuple[Scope, Binding]]
    ) -> None:
        right = self._find_right_owner(held, owners)
        for other, wrong in owners:
            if right is None or wrong is not right[1]:
                self._add_difference(Difference("duplicate", other, wrong.key, wrong.target_id, remark=_ANOTHER))
                self._add_correction_or_mark_lost(other, wrong)
        if right is None:
            self._index_unbound_by_external_id_or_content(held["id"], held)
            return
        scope, binding = right
        contributed: Held = {}
        for each, part in contributions:
            contributed |= part.payload
            self._compare_binding(each, part, held, {})
        self._compare_binding(scope, binding, held, contributed)
        if not self._resource.has_external_ids:
            content = customer_and_items_hash(binding.payload)
            self._contents.add([content])
            is_shown = customer_and_items_hash(held) == content if binding.payload else _shows_customer_and_items(held)
            self._shown[is_shown] += 1

    def _find_right_owner(self, held: Held, owners: list[tuple[Scope, Binding]]) -> tuple[Scope, Binding] | None:
        """Find the record that *held* is, by its external id or else its content; None if it has the id of another."""
        name = held.get("externalId")
        for scope, binding in owners:
            if name == f"{scope.namespace}:{binding.key}":
                return scope, binding
        if self._resource.has_external_ids and isinstance(name, str) and self._is_external_id_bound(name):
            return None
        return next((each for each in owners if has_wanted_members(held, each[1].payload)), owners[0])

    def _is_external_id_bound(self, name: str) -> bool:
        namespace, _, key = name.partition(":")
        if namespace not in self._namespaces:
            return False
        scope, key_hash = Scope(PLATFORM, self._resource.name, namespace), key_hashes([key])[key]
        with self._state.begin_read_only() as tx:
            return bool(tx.bindings.target_id_by_key_hash(scope, [key_hash]))

    def _compare_binding(self, scope: Scope, binding: Binding, held: Held, contributed: Held) -> None:
        """Compare one binding, without the members that other streams contribute."""
        if (scope, binding.key_hash) in self._unsettled:
            self._of_unsettled[scope, binding.key_hash] = held
            return
        if self._resource.kept and not binding.payload:
            found = structs.replace(
                binding, payload={name: held[name] for name in sorted(self._resource.kept & held.keys())}
            )
            self._add_correction(scope, binding, found, held)
            return
        wanted = {name: value for name, value in binding.payload.items() if name not in contributed}
        differing = [name for name, value in wanted.items() if not member_has_wanted_value(held, name, value)]
        if not differing:
            return
        self._add_difference(Difference("diverged", scope, binding.key, binding.target_id, tuple(differing)))
        trimmed = without_unwanted_members(held, binding.payload)
        self._moves[binding.target_id] = binding.payload, {**binding.payload, **trimmed}
        if not self._resource.write_once:
            found = structs.replace(binding, fingerprint=None, payload=trimmed, etag=None, changed_at=None)
            self._add_correction(scope, binding, found, trimmed)

    def _index_unbound_by_external_id_or_content(self, target_id: str, held: Held) -> None:
        if not self._resource.has_external_ids:
            is_old = self._until is None or not is_changed_since(held, self._until, "createdAt")
            if is_old and (self._remembered is None or is_changed_since(held, self._remembered, "createdAt")):
                self._unnamed[customer_and_items_hash(held)].append(target_id)
                self._shown[_shows_customer_and_items(held)] += 1
            return
        name = held.get("externalId")
        if isinstance(name, str) and name.partition(":")[0] in self._namespaces:
            if name in self._named:
                self._add_difference(
                    self._new_difference_by_external_id(
                        "duplicate", name, target_id, "another record has this externalId"
                    )
                )
                return
            self._named[name] = target_id
            self._moves[target_id] = None, held

    def compare_looked_up(self, scope: Scope, binding: Binding, held: Held | None) -> None:
        self.state_totals.add_record(binding.payload)
        if held is not None:
            self._compare_binding(scope, binding, held, {})
        elif (scope, binding.key_hash) not in self._unsettled:
            self._add_difference(Difference("missing", scope, binding.key, binding.target_id, remark=_NO_LONGER))
            self._add_correction(scope, binding, None, None)

    # ---- the end of the list

    def compare_unlisted_bindings(self, look_up: Callable[[str], Held | None]) -> None:
        """Compare the bindings that the list did not name.

        *look_up* returns the platform's record of an id. It is called for the first few records that seem to be
        missing, which may have moved within the list while it was read.
        """
        for page in self._binding_pages():
            ids = [binding.target_id for _, binding in page]
            listed = self._seen.known_ids_among(ids)
            for scope, binding in page:
                if scope.namespace not in self._namespaces:
                    continue
                self.state_totals.add_record(binding.payload)
                if binding.target_id not in listed and (scope, binding.key_hash) not in self._unsettled:
                    self._verify_missing_on_platform(scope, binding, look_up)
        self._bind_by_external_id()
        self._find_lost_by_content()
        self._add_duplicates_by_content(look_up)

    def _binding_pages(self) -> Iterator[list[tuple[Scope, Binding]]]:
        after: tuple[str, int] | None = None
        while True:
            with self._state.begin_read_only() as tx:
                page = tx.bindings.page_of_resource_bindings(PLATFORM, self._resource.name, after=after, limit=_PAGE)
            if not page:
                return
            yield page
            scope, last = page[-1]
            after = scope.namespace, last.key_hash

    def _verify_missing_on_platform(
        self, scope: Scope, binding: Binding, look_up: Callable[[str], Held | None]
    ) -> None:
        missing = sum(each.difference == "missing" for each in self.differences.values())
        held = look_up(binding.target_id) if missing < _VERIFIED_AT_MOST else None
        if held is not None:
            self._compare_binding(scope, binding, held, {})
            return
        self._add_difference(Difference("missing", scope, binding.key, binding.target_id, remark=_NO_LONGER))
        self._moves[binding.target_id] = binding.payload, None
        self._add_correction_or_mark_lost(scope, binding)

    def _add_correction_or_mark_lost(self, scope: Scope, binding: Binding) -> None:
        """Handle a missing or different record. One without a name may have an id that the state has forgotten."""
        if self._resource.has_external_ids:
            self._add_correction(scope, binding, None, None)
        else:
            self._lost.append((scope, binding))

    def _bind_by_external_id(self) -> None:
        """Bind records whose external id names a record that the state does not know there."""
        for name, target_id in self._named.items():
            namespace, _, key = name.partition(":")
            scope = Scope(PLATFORM, self._resource.name, namespace)
            key_hash = key_hashes([key])[key]
            earlier = self.corrections.get((scope, key_hash))
            with self._state.begin_read_only() as tx:
                bound = tx.bindings.get(scope, [key_hash]).get(key_hash)
            if (scope, key_hash) in self._unsettled:
                self._of_unsettled[scope, key_hash] = {"id": target_id}
                continue
            if bound is not None and earlier is None:
                self._add_difference(
                    Difference("duplicate", scope, key, target_id, remark=f"the state has {bound.target_id}")
                )
                continue
            counter = bound.counter if bound else 0
            found = Binding(key_hash, key, target_id, None, None, "import", {}, None, counter)
            remark = _OTHER_ID if bound else UNKNOWN
            difference = self.differences.get((scope, key))
            if difference is None or difference.difference != "duplicate":
                self._add_difference(Difference("diverged" if bound else "extra", scope, key, target_id, remark=remark))
            before = earlier.before if earlier else bound  # with the content that an unverified binding leaves out
            self.corrections[scope, key_hash] = BindingCorrection(scope, key_hash, key, found, before, {})

    def _find_lost_by_content(self) -> None:
        """Find records without an external id by their content. A record that is not found is created again."""
        for scope, binding in self._lost:
            ids = self._unnamed.get(customer_and_items_hash(binding.payload))
            if not ids:
                is_duplicate = self.differences[scope, binding.key].difference == "duplicate"
                if not is_duplicate:  # a person must see what happened to it
                    self._add_correction(scope, binding, None, None)
                continue
            found = structs.replace(binding, target_id=ids.pop(), fingerprint=None, etag=None, changed_at=None)
            if self.differences[scope, binding.key].difference == "missing":
                self._add_difference(Difference("diverged", scope, binding.key, found.target_id, remark=_OTHER_ID))
                del self._moves[binding.target_id]
            self._add_correction(scope, binding, found, binding.payload)

    def _add_duplicates_by_content(self, look_up: Callable[[str], Held | None]) -> None:
        copies = self._contents.known_ids_among(list(self._unnamed)) if self._unnamed else set()
        for target_id in (each for content in sorted(copies) for each in self._unnamed[content]):
            scope = Scope(PLATFORM, self._resource.name, "")
            self._add_difference(Difference("duplicate", scope, target_id, target_id, remark=_COPY))
            self._moves[target_id] = None, look_up(target_id)

    # ---- results of a part

    def discard_missing_if_most_are(self) -> int:
        """Discard the corrections of missing records if most that the state knows are missing; return how many.

        The list may be that of a credential that was narrowed to some records, to which the others do not exist.
        """
        missing = [place for place, each in self.corrections.items() if each.binding is None]
        if len(missing) <= _MISSING_AT_MOST or 2 * len(missing) <= self.state_totals.records:
            return 0
        for place in missing:
            del self.corrections[place]
        return len(missing)

    def is_unsettled(self, scope: Scope, binding: Binding) -> bool:
        return (scope, binding.key_hash) in self._unsettled

    def pop_corrections(self) -> dict[tuple[Scope, int], BindingCorrection]:
        """Return the corrections so far, and remove their differences: the caller writes them now."""
        found, self.corrections = self.corrections, {}
        self.differences = {place: each for place, each in self.differences.items() if each.difference != "diverged"}
        self._moves.clear()
        return found

    # ---- operations in doubt

    def outcome_of_doubtful_operation(self, intent: Intent) -> InDoubtResult:
        after, held = payload_after_intent(intent), self._of_unsettled.get((intent.scope, intent.identity.key_hash))
        if intent.operation == "create" and not self._resource.has_external_ids:
            ids = self._unnamed.get(customer_and_items_hash(after), [])
            return (
                InDoubtResult("delivered", ids.pop())
                if len(ids) == 1
                else InDoubtResult("unknown" if ids or not self.shows_contents else "not delivered")
            )
        if intent.operation == "create":
            return InDoubtResult("delivered", held["id"]) if held else InDoubtResult("not delivered")
        if held is None:
            return InDoubtResult("delivered" if intent.operation == "delete" else "unknown")
        if intent.operation == "delete":
            return InDoubtResult("not delivered")
        if has_wanted_members(held, after):
            return InDoubtResult("delivered", held["id"])
        return InDoubtResult("not delivered" if has_wanted_members(held, intent.before or {}) else "unknown")

    # ---- results

    @property
    def shows_contents(self) -> bool:
        """Whether most records without an external id are recognized by what the list shows of them.

        A list may leave out the lines of its records, or show them in another form than they were sent in.
        """
        return self._shown[False] <= self._shown[True]

    @property
    def unbound_ids_by_content(self) -> Mapping[str, list[str]]:
        """The ids of records without an external id that the state does not know, by content."""
        return self._unnamed

    @property
    def target_id_by_unsettled_record(self) -> dict[tuple[Scope, int], str]:
        """The ids of listed records with an external id and an unsettled operation, by scope and key hash."""
        return {place: held["id"] for place, held in self._of_unsettled.items()}

    @property
    def platform_totals(self) -> ResourceTotals:
        """The totals of the records that the state knows or that have an external id of its records."""
        totals = ResourceTotals()
        totals.quantities.update(self.state_totals.quantities)
        totals.amounts.update(self.state_totals.amounts)
        totals.records = self.state_totals.records
        for said, held in self._moves.values():
            if said is not None:
                totals.add_record(said, -1)
            if held is not None:
                totals.add_record(held)
        return totals

    def _new_difference_by_external_id(self, difference: Any, name: str, target_id: str, remark: str) -> Difference:
        namespace, _, key = name.partition(":")
        return Difference(difference, Scope(PLATFORM, self._resource.name, namespace), key, target_id, remark=remark)

    def _add_difference(self, found: Difference) -> None:
        self.differences[found.scope, found.key] = found

    def _add_correction(self, scope: Scope, before: Binding, binding: Binding | None, held: Held | None) -> None:
        place = scope, before.key_hash
        self.corrections[place] = BindingCorrection(scope, before.key_hash, before.key, binding, before, held)


def customer_and_items_hash(payload: Mapping[str, Any]) -> str:
    """Return a text that is equal for records of the same customer with the same items.

    A platform may write numbers as text, and the items in another order.
    """
    items = payload.get("items")
    lines = [
        [str(each.get("productId")), *(_number_text(each.get(name)) for name in ("quantity", "unitPrice"))]
        for each in (items if isinstance(items, list) else [])
        if isinstance(each, Mapping)
    ]
    facts = [payload.get("customerId"), payload.get("currency"), sorted(lines)]
    return hashlib.blake2b(exact_json.dumps(facts), digest_size=16).hexdigest()


def _number_text(value: Any) -> str:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = Decimal(value)
    return exact_json.decimal_text(value) if isinstance(value, Decimal) else str(value)


def _shows_customer_and_items(held: Held) -> bool:
    items = held.get("items")
    return (
        isinstance(held.get("customerId"), str)
        and isinstance(items, list)
        and bool(items)
        and all(isinstance(each, Mapping) and each.keys() >= {"productId", "quantity", "unitPrice"} for each in items)
    )


def member_has_wanted_value(held: Mapping[str, Any], name: str, wanted: Any) -> bool:
    """Return whether a member has the *wanted* value. None equals a missing member."""
    return (wanted is None and held.get(name) is None) or (name in held and has_wanted_members(held[name], wanted))


def is_changed_since(held: Mapping[str, Any], began: datetime, member: str = "updatedAt") -> bool:
    changed = held.get(member)
    try:
        return not isinstance(changed, str) or datetime.fromisoformat(changed) >= began
    except (ValueError, TypeError):
        return True
