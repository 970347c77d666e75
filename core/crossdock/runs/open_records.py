"""Records that are not delivered, or not known to be, with the reasons: as lists, page by page, and in groups.

Waiting records are grouped by their root causes: one rejected account may block a whole hierarchy.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct, field, structs

from crossdock.config.project.project import Project
from crossdock.delta.fingerprint import key_hashes
from crossdock.errors import ConfigError
from crossdock.runs.record_history import RecordHistory
from crossdock.state import BatchFacts, InboxRecord, Intent, RecordFilter, Scope, Transaction
from crossdock.state.tables.dead_letters_and_waiting_records import DeadLetterPlace, WaitingPlace
from crossdock.state.tables.intents_and_stored_batches import UNSETTLED, Status
from crossdock.state.tables.record_bindings import UnverifiedRecord
from crossdock.state.tables.webhooks_and_records_to_fetch import InboxPlace
from crossdock.values.raw_rows_and_records import REASONS
from crossdock.values.record_keys import key_parts_of, key_text, key_text_of_input
from crossdock.values.run_states_and_tally import BY_URGENCY, RecordState
from crossdock.values.texts_of_numbers_and_times import awaited_records_text, instant_text, place_text
from crossdock.writing.delivery.in_doubt_and_refusal_rules import MAY_BE_OF_LOST_STATE
from crossdock.writing.targets.payload_comparison import member_differences

ParentRecord = tuple[str, str, str]
"""Resource, namespace and key of a record that another one refers to."""
_Streams = Mapping[tuple[str, str], list[str]]  # by resource and namespace


class WaitingGroup(Struct, frozen=True):
    """Records of one stream that wait for the same records, directly or through others that wait.

    Attributes:
        roots: The records that must be delivered first. None of them waits itself, unless they wait for each other.
        since: When the record that has waited longest began to wait.
        waits_for: What its records wait for directly.
    """

    stream: str
    roots: tuple[ParentRecord, ...]
    rejected: Mapping[ParentRecord, str]
    number: int
    since: datetime
    first_key: str
    waits_for: tuple[list[dict[str, str]], ...]


def group_waiting_records_by_root_cause(
    tx: Transaction, scopes: Mapping[str, Scope], choice: RecordFilter
) -> list[WaitingGroup]:
    """Group the waiting records of *choice*, longest waiting first."""
    counts = tx.waiting_records.counts_by_awaited_records(choice)
    streams = defaultdict(list)
    for name, scope in scopes.items():
        streams[scope.resource, scope.namespace].append(name)
    roots = _root_causes(
        _what_parents_wait_for(tx, streams, {parent for each in counts for parent in _parents(each.waits_for)})
    )
    codes = _rejection_code_by_parent(tx, streams, {root for each in roots.values() for root in each})
    groups: dict[tuple[str, tuple[ParentRecord, ...]], WaitingGroup] = {}
    for each in counts:
        ends = tuple(sorted({root for parent in _parents(each.waits_for) for root in roots[parent]}))
        rejected = {root: codes[root] for root in ends if root in codes}
        group = WaitingGroup(each.stream, ends, rejected, each.number, each.since, each.first_key, (each.waits_for,))
        if other := groups.get((each.stream, ends)):
            since, first_key = min(other.since, each.since), min(other.first_key, each.first_key)
            number, waits_for = other.number + each.number, (*other.waits_for, each.waits_for)
            group = structs.replace(other, number=number, since=since, first_key=first_key, waits_for=waits_for)
        groups[each.stream, ends] = group
    return sorted(groups.values(), key=lambda group: (group.since, group.stream, group.first_key))


def _parents(waits_for: Iterable[Mapping[str, str]]) -> list[ParentRecord]:
    return [(each["resource"], each["namespace"], each["key"]) for each in waits_for]


def _what_parents_wait_for(
    tx: Transaction, streams: _Streams, parents: set[ParentRecord]
) -> dict[ParentRecord, list[ParentRecord]]:
    """Return what each of *parents* waits for, and so on; an empty list for one that does not wait."""
    found: dict[ParentRecord, list[ParentRecord]] = {}
    while parents:
        found |= {parent: [] for parent in parents}
        for stream, hashes in _parent_key_hashes_by_stream(streams, parents):
            waits = tx.waiting_records.awaited_references(stream, list(hashes))
            found |= {hashes[key_hash]: _parents(waits_for) for key_hash, waits_for in waits.items()}
        parents = {each for parent in parents for each in found[parent]} - set(found)
    return found


def _rejection_code_by_parent(
    tx: Transaction, streams: _Streams, parents: set[ParentRecord]
) -> dict[ParentRecord, str]:
    return {
        hashes[key_hash]: code
        for stream, hashes in _parent_key_hashes_by_stream(streams, parents)
        for key_hash, code in tx.dead_letters.reason_code_by_key_hash(stream, list(hashes)).items()
    }


def _parent_key_hashes_by_stream(
    streams: _Streams, parents: set[ParentRecord]
) -> Iterable[tuple[str, dict[int, ParentRecord]]]:
    places = defaultdict(list)
    for resource, namespace, key in parents:
        places[resource, namespace].append(key)
    for (resource, namespace), keys in places.items():
        hashes = {key_hash: (resource, namespace, key) for key, key_hash in key_hashes(keys).items()}
        for stream in streams.get((resource, namespace), ()):
            yield stream, hashes


def _root_causes(waits: Mapping[ParentRecord, list[ParentRecord]]) -> dict[ParentRecord, set[ParentRecord]]:
    """Return where the chains from each record end; in a cycle of waiting records, at itself."""
    children = defaultdict(list)
    for child, parents in waits.items():
        for parent in parents:
            children[parent].append(child)
    roots: dict[ParentRecord, set[ParentRecord]] = {each: set() for each in waits}
    for root in [each for each, parents in waits.items() if not parents]:
        reached = [root]
        while reached:
            each = reached.pop()
            if root not in roots[each]:
                roots[each].add(root)
                reached += children[each]
    return {each: found or {each} for each, found in roots.items()}


Item = dict[str, Any]
"""An open record by the names of `open_record_item_without_data`, and its data."""

_REFUSED = frozenset({RecordState.REJECTED.option_value, RecordState.DROPPED.option_value})
_AWAITED = frozenset({RecordState.HANDED_OVER.option_value, RecordState.OVERDUE.option_value})
STATUSES: Mapping[str, tuple[Status, ...]] = {
    RecordState.IN_DOUBT.option_value: ("in_doubt",),
    RecordState.PENDING.option_value: ("pending", "sending"),
    RecordState.HANDED_OVER.option_value: ("handed_over",),
    RecordState.OVERDUE.option_value: ("overdue",),
}
"""The statuses of intents by the state of their records."""
_WITHOUT_SOURCE = frozenset({RecordState.UNVERIFIED.option_value, RecordState.INBOX.option_value})
_SHOWN_ROOTS = 3  # of a group that waits for many records


def record_filter_from_options(
    stream: str | None, key: str | None, reason: str | None, since: datetime | None, file: str | None = None
) -> RecordFilter:
    """Return the choice of the options. *key* is as in the source or as listed."""
    if reason is not None and reason not in REASONS:
        raise ConfigError(
            f"unknown reason {reason!r}; known: {', '.join(sorted(REASONS))}", code="option_value_invalid"
        )
    known = None if key is None else key_text_of_input(key)
    return RecordFilter(stream, known, reason, since.replace(tzinfo=UTC) if since else None, file)


def chosen_key_hash(choice: RecordFilter) -> int | None:
    return None if choice.key is None else key_hashes([choice.key])[choice.key]


def may_state_match(choice: RecordFilter, kind: str) -> bool:
    """Return whether records in the state *kind* have what *choice* restricts."""
    return (
        ((choice.code, choice.since) == (None, None) or kind in _REFUSED)
        and (choice.source is None or kind not in _WITHOUT_SOURCE)
        and (choice.text is None or kind != RecordState.UNVERIFIED.option_value)
        and (choice.handed_over_in is None or kind in _AWAITED)
    )


def stream_by_unverified_scope(loaded: Project, choice: RecordFilter) -> dict[Scope, str]:
    """Return the scopes whose unverified records are of *choice*, with their streams."""
    if not may_state_match(choice, RecordState.UNVERIFIED.option_value):
        return {}
    return {scope: name for name, scope in loaded.scope_by_stream.items() if choice.includes_stream(name)}


def count_records_in_state(tx: Transaction, kind: str, choice: RecordFilter, scopes: Collection[Scope]) -> int:
    """Count the records of *choice* in the state *kind*; the unverified ones among those of *scopes*."""
    if not may_state_match(choice, kind):
        return 0
    if kind == RecordState.UNVERIFIED.option_value:
        return tx.unverified.count_unverified_records(scopes, chosen_key_hash(choice))
    if kind in _REFUSED:
        return tx.dead_letters.count(choice, status=kind)
    if kind == RecordState.WAITING.option_value:
        return tx.waiting_records.count(choice)
    if kind == RecordState.INBOX.option_value:
        return tx.inbox.count_records_to_fetch(choice)
    return tx.intents.count(STATUSES[kind], choice)


def counts_by_state(tx: Transaction, choice: RecordFilter, scopes: Collection[Scope]) -> dict[str, int]:
    """Count the records of *choice* in each state, in the order of lists; see `count_records_in_state`."""
    kinds = [state.option_value for state in BY_URGENCY]
    applied = {kind for kind in kinds if may_state_match(choice, kind)}
    refused = tx.dead_letters.counts_by_status(choice) if applied & _REFUSED else {}
    unsettled = tx.intents.unsettled_counts_by_status(choice) if applied & STATUSES.keys() else {}
    found = {kind: refused.get(kind, 0) for kind in _REFUSED}
    found |= {kind: sum(unsettled.get(each, 0) for each in statuses) for kind, statuses in STATUSES.items()}
    return {kind: found[kind] if kind in found else count_records_in_state(tx, kind, choice, scopes) for kind in kinds}


def open_record_items_in_states(tx: Transaction, choice: RecordFilter, kinds: Iterable[str], limit: int) -> list[Item]:
    """Return at most *limit* records of *choice* in each of the states *kinds*, with their data; no unverified ones."""
    listed = [kind for kind in kinds if kind in _LISTS and may_state_match(choice, kind)]
    return [item for kind in listed for item in _LISTS[kind](tx, choice, limit)]


def open_record_item_without_data(item: Item) -> Item:
    """Return what is shown of a record without its data."""
    shown = {"state": item["state"], "stream": item["stream"], "key": item["key"], "why": item["why"]}
    shown |= {"at": place_text(item), "since": item["since"]}
    return shown | {name: item[name] for name in ("stage", "pointer", "attempts") if item.get(name) is not None}


def difference_from_delivered(loaded: Project, tx: Transaction, item: Item, *, raw: bool) -> list[dict[str, Any]]:
    """Return the members in which a record differs that changed after it was delivered; personal ones only if *raw*."""
    scope = loaded.scope_by_stream.get(item["stream"])
    binding = tx.bindings.get(scope, [item["key_hash"]]).get(item["key_hash"]) if scope else None
    if scope is None or binding is None or not item["mapped"] or not binding.payload:
        return []  # not configured any more, or emptied by retention
    personal = frozenset() if raw else loaded.personal_data_masks.personal_members(item["stream"], scope)
    return [each._asdict() for each in member_differences(binding.payload, item["mapped"], personal)]


def open_states_of_record(tx: Transaction, history: RecordHistory) -> list[Item]:
    """Return each state in which one record is open, in the order of lists, without its data."""
    found = [item for row in history.dead_letters for item in dead_letter_items([row], row["status"])]
    found += waiting_items(history.waits)
    if history.scope is not None and any(row["status"] in UNSETTLED for row in history.operations):
        intents = [
            each for each in tx.intents.intents_of_record(history.scope, history.key_hash) if each.status in UNSETTLED
        ]
        for state, statuses in STATUSES.items():
            found += intent_items(tx, [each for each in intents if each.status in statuses], state)
    if history.scope is not None:
        scopes = {history.scope: history.streams[0] if history.streams else ""}
        found += unverified_items(tx.unverified.unverified_records(scopes, history.key_hash, limit=1), scopes)
    for stream in history.streams:
        found += inbox_items(tx.inbox.records_to_fetch(limit=1, choice=RecordFilter(stream, history.key)))
    order = [state.option_value for state in BY_URGENCY]
    return sorted(found, key=lambda item: order.index(item["state"]))


# ---- records of each state


def dead_letter_items(rows: Iterable[Mapping[str, Any]], state: str) -> list[Item]:
    return [
        {**row, "state": state, "why": f"{row['code']}: {row['message']}", "since": row["refused_at"]} for row in rows
    ]


def waiting_items(rows: Iterable[Mapping[str, Any]]) -> list[Item]:
    return [
        {**row, "state": RecordState.WAITING.option_value, "why": f"waits for {awaited_records_text(row['waits_for'])}"}
        for row in rows
    ]


def intent_items(tx: Transaction, intents: Sequence[Intent], state: str) -> list[Item]:
    if state in _AWAITED:
        files = tx.batches.facts_by_id({intent.batch_id for intent in intents if intent.batch_id is not None})
        whys = [_awaited_acknowledgement_reason(intent, files.get(intent.batch_id or 0)) for intent in intents]
    elif state == RecordState.PENDING.option_value:
        loaded = _streams_sent_by_migration(tx)
        whys = [
            _pending_operation_reason(each, "load" if each.identity.stream in loaded else "sync") for each in intents
        ]
    else:
        messages = tx.intents.latest_attempt_messages(intents)
        restored = tx.runs.is_state_restored()
        whys = [_doubt_reason(intent, messages.get(intent.id), restored=restored) for intent in intents]
    return [_intent_item(intent, state, why) for intent, why in zip(intents, whys, strict=True)]


def unverified_items(records: Iterable[UnverifiedRecord], scopes: Mapping[Scope, str]) -> list[Item]:
    return [
        {
            "state": RecordState.UNVERIFIED.option_value,
            "stream": scopes[each.scope],
            "key": each.key,
            "why": _why_unverified(each),
            "source": each.scope.target,
            "since": None,
        }
        for each in records
    ]


def _why_unverified(record: UnverifiedRecord) -> str:
    target_id, target = record.target_id, record.scope.target
    if not record.is_unused_import:
        return f"the next sync compares it with {target_id} at {target}"
    return f"no sync has found the imported id {target_id} at {target} yet: import the right one, or sync to look again"


def inbox_items(hints: Iterable[InboxRecord]) -> list[Item]:
    return [
        {
            "state": RecordState.INBOX.option_value,
            "stream": hint.stream,
            "key": hint.key,
            "why": "is to be fetched" if hint.error is None else f"tried again after: {hint.error}",
            "source": "webhook",
            "since": hint.first_at,
            "attempts": hint.attempts or None,
            "raw": None,
        }
        for hint in hints
    ]


def unreadable_webhook_items(tx: Transaction, limit: int) -> list[Item]:
    """Return webhooks that cannot be read, the newest first."""
    return [
        {
            "state": RecordState.INBOX.option_value,
            "stream": f"{webhook.connection}.",
            "key": "",
            "why": f"a webhook{f' {webhook.topic}' if webhook.topic else ''} cannot be read: {webhook.problem}",
            "source": "webhook",
            "since": webhook.received_at,
            "raw": None,
        }
        for webhook in tx.inbox.unreadable_webhooks(limit=limit)
    ]


def list_unverified_records(loaded: Project, tx: Transaction, choice: RecordFilter, limit: int) -> list[Item]:
    """Return at most *limit* unverified records of *choice*, by scope and key."""
    scopes = stream_by_unverified_scope(loaded, choice)
    return unverified_items(tx.unverified.unverified_records(scopes, chosen_key_hash(choice), limit=limit), scopes)


def waiting_groups_as_items(loaded: Project, tx: Transaction, choice: RecordFilter, limit: int) -> list[Item]:
    """Return items of ``crossdock records list``. ``records`` is the number of records of a line."""
    return [
        _group_item(each) for each in group_waiting_records_by_root_cause(tx, loaded.scope_by_stream, choice)[:limit]
    ]


def _group_item(group: WaitingGroup) -> Item:
    key = group.first_key if group.number == 1 else f"{group.first_key} and {group.number - 1:,} more"
    facts = {"state": "waiting", "stream": group.stream, "key": key, "why": f"waits for {root_causes_text(group)}"}
    return facts | {"since": group.since, "records": group.number}


def root_causes_text(group: WaitingGroup) -> str:
    """Name the first of the records that a group waits for, and why they are not delivered."""
    roots = [
        f"{resource} {namespace}:{key}" + (f", which is rejected ({code})" if code else "")
        for resource, namespace, key in group.roots[:_SHOWN_ROOTS]
        for code in [group.rejected.get((resource, namespace, key))]
    ]
    more = len(group.roots) - len(roots)
    return "; ".join(roots) + (f" and {more:,} more" if more else "")


def _list_dead_letters(tx: Transaction, choice: RecordFilter, limit: int, state: str) -> list[Item]:
    return dead_letter_items(tx.dead_letters.listed(limit=limit, status=state, choice=choice), state)


def _list_waiting(tx: Transaction, choice: RecordFilter, limit: int) -> list[Item]:
    return waiting_items(tx.waiting_records.listed(limit=limit, choice=choice))


def _list_intents(tx: Transaction, choice: RecordFilter, limit: int, state: str) -> list[Item]:
    return intent_items(tx, tx.intents.page_with_statuses(STATUSES[state], limit=limit, choice=choice), state)


def _list_inbox(tx: Transaction, choice: RecordFilter, limit: int) -> list[Item]:
    unreadable = unreadable_webhook_items(tx, limit) if choice == RecordFilter() else []
    return inbox_items(tx.inbox.records_to_fetch(limit=limit, choice=choice)) + unreadable


_LISTS: Mapping[str, Callable[[Transaction, RecordFilter, int], list[Item]]] = {
    **{state: partial(_list_dead_letters, state=state) for state in _REFUSED},
    **{state: partial(_list_intents, state=state) for state in STATUSES},
    RecordState.WAITING.option_value: _list_waiting,
    RecordState.INBOX.option_value: _list_inbox,
}


def _intent_item(intent: Intent, state: str, why: str) -> Item:
    identity = intent.identity
    return {
        "state": state,
        "stream": identity.stream,
        "key": identity.key,
        "why": why,
        "source": identity.source,
        "line": identity.line,
        "since": intent.first_sent_at,
        "raw": intent.raw,
        "intent": intent,
    }


def _awaited_acknowledgement_reason(intent: Intent, file: BatchFacts | None) -> str:
    if file is None:
        return f"{intent.operation} was handed over"
    due = f", not acknowledged by {instant_text(file.due_at)}" if file.due_at and intent.status == "overdue" else ""
    return f"{intent.operation} was handed over in {file.name}{due}"


def _streams_sent_by_migration(tx: Transaction) -> set[str]:
    """Return the streams for which the open migration has sent something. Its next load continues with them."""
    current = tx.migrations.current()
    if current is None:
        return set()
    waves = tx.migrations.loads_since_undo(current.id)
    return set().union(*(tx.migrations.streams_sent_since_undo(current.id, wave) for wave in waves))


def _pending_operation_reason(intent: Intent, run: str) -> str:
    again = " again, or looks it up" if intent.status == "sending" else ""
    return f"the next {run} sends the {intent.operation}{again}"


def _doubt_reason(intent: Intent, message: str | None, *, restored: bool) -> str:
    if not intent.attempts:
        return (
            f"{intent.operation} may have been carried out before the state was restored"
            if restored
            else MAY_BE_OF_LOST_STATE
        )
    times = "once" if intent.attempts == 1 else f"{intent.attempts} times"
    sent = f"{intent.operation} was sent {times} without a clear answer"
    return f"{sent}: {message}" if message else sent


MOST_GROUPS = 50
_HASH = 1 << 128
_UNVERIFIED, _WAITING, _INBOX = (
    state.option_value for state in (RecordState.UNVERIFIED, RecordState.WAITING, RecordState.INBOX)
)

T = TypeVar("T")


class OpenRecordPage(Struct, frozen=True):
    """Some records in the order of their list. *after* is the place of the last one; empty if no more follow."""

    items: Sequence[Item]
    after: str


class OpenRecordGroup(Struct, frozen=True):
    """Records of one stream that are open for the same reason.

    Attributes:
        since: When the first of them became open; None if that is not known.
        first_run: The run that rejected the first of them first.
        example: Why one of them is open.
        choice: The parameters that choose them, by the names of `narrowed`.
        waits_for: The records that must be delivered first.
    """

    stream: str
    reason: str
    number: int
    since: datetime | None
    example: str
    choice: Mapping[str, str]
    first_run: int | None = None
    waits_for: Sequence[ParentRecord] = field(default=())


def page_of_open_records(
    tx: Transaction,
    kind: str,
    choice: RecordFilter,
    scopes: Mapping[Scope, str],
    *,
    after: str,
    limit: int,
    group: WaitingGroup | None = None,
) -> OpenRecordPage:
    """Return at most *limit* records in the state *kind* that follow *after*, which an earlier page gave.

    Args:
        scopes: Those of unverified records, with their streams.
        group: Only its waiting records.

    Raises:
        ConfigError: If *after* is not a place of such a list.
    """
    if not may_state_match(choice, kind):
        return OpenRecordPage([], "")
    items, places = _read_items(tx, kind, choice, scopes, after, limit + 1, group)
    return OpenRecordPage(items[:limit], key_text(places[limit - 1]) if len(items) > limit else "")


def _read_items(
    tx: Transaction,
    kind: str,
    choice: RecordFilter,
    scopes: Mapping[Scope, str],
    after: str,
    limit: int,
    group: WaitingGroup | None,
) -> tuple[list[Item], list[list[str]]]:
    """Return items, and the place of each of them as texts."""
    if kind in STATUSES:
        last = _parse_page_position(after, lambda number: int(number[:18])) or 0
        intents = tx.intents.page_with_statuses(STATUSES[kind], limit=limit, choice=choice, after=last)
        return intent_items(tx, intents, kind), [[str(each.id)] for each in intents]
    if kind == _WAITING:
        start = _parse_page_position(
            after, lambda since, stream, number: WaitingPlace(_parse_instant(since), stream, _parse_hash(number))
        )
        waits_for = None if group is None else group.waits_for
        rows = tx.waiting_records.page(choice, after=start, limit=limit, waits_for=waits_for)
        places = [[row["since"].isoformat(), row["stream"], f"{row['key_hash']:x}"] for row in rows]
        return waiting_items(rows), places
    if kind == _INBOX:
        first = _parse_page_position(after, lambda at, key, stream: InboxPlace(_parse_instant(at), key, stream))
        hints = tx.inbox.records_to_fetch(limit=limit, choice=choice, after=first)
        return inbox_items(hints), [[each.first_at.isoformat(), each.key, each.stream] for each in hints]
    if kind == _UNVERIFIED:
        return _unverified_items(tx, choice, scopes, after, limit)
    place = _parse_page_position(
        after, lambda stream, code, at, number: DeadLetterPlace(stream, code, _parse_instant(at), _parse_hash(number))
    )
    found = tx.dead_letters.page(kind, choice, after=place, limit=limit)
    places = [[row["stream"], row["code"], row["refused_at"].isoformat(), f"{row['key_hash']:x}"] for row in found]
    return dead_letter_items(found, kind), places


def _unverified_items(
    tx: Transaction, choice: RecordFilter, scopes: Mapping[Scope, str], after: str, limit: int
) -> tuple[list[Item], list[list[str]]]:
    if choice.key is not None:  # few records, which the command lists as well
        found = tx.unverified.unverified_records(scopes, chosen_key_hash(choice), limit=limit - 1)
        return unverified_items(found, scopes), []
    last = _parse_page_position(after, lambda *parts: (Scope(*parts[:3]), _parse_hash(parts[3])))
    records = tx.unverified.page_of_unverified_records(scopes, after=last, limit=limit)
    places = [[*each.scope.columns.values(), f"{key_hash:x}"] for each, key_hash in records]
    return unverified_items((each for each, _ in records), scopes), places


def _parse_page_position(after: str, read: Callable[..., T]) -> T | None:
    if not after:
        return None
    try:
        return read(*key_parts_of(after))
    except (ValueError, TypeError, IndexError):
        raise ConfigError(
            "the address names no place of this list", hint="begin with the first page", code="option_value_invalid"
        ) from None


def _parse_instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(text)
    return at


def _parse_hash(text: str) -> int:
    number = int(text, 16)
    if not 0 <= number < _HASH:
        raise ValueError(text)
    return number


# ---- groups


def group_open_records(
    tx: Transaction,
    kind: str,
    choice: RecordFilter,
    scopes: Mapping[Scope, str],
    waiting: Sequence[WaitingGroup],
    *,
    by_source: bool = False,
) -> list[OpenRecordGroup]:
    """Return at most `MOST_GROUPS` groups of the records of *choice*, the largest first, or the longest waiting.

    Args:
        scopes: Those of unverified records, with their streams.
        waiting: The groups of waiting records, which `group_waiting_records_by_root_cause` returns.
        by_source: Also group rejected and dropped records by the file that they were read from.
    """
    if not may_state_match(choice, kind):
        return []
    found: Iterator[OpenRecordGroup]
    if kind == _WAITING:
        found = (_waiting_group_as_open_group(each) for each in waiting)
    elif kind in STATUSES:
        found = _intent_groups(tx, kind, choice)
    elif kind == _INBOX:
        found = (
            OpenRecordGroup(each.stream, "", each.number, each.since, each.error or "", {"stream": each.stream})
            for each in tx.inbox.groups_by_stream(choice)
        )
    elif kind == _UNVERIFIED:
        found = _unverified_groups(tx, scopes)
    else:
        found = _dead_letter_groups(tx, kind, choice, by_source=by_source)
    return [each for each, _ in zip(found, range(MOST_GROUPS), strict=False)]


def find_waiting_group_by_name(tx: Transaction, scopes: Mapping[str, Scope], name: str) -> WaitingGroup | None:
    """Return the group of waiting records with the *name* that `groups` gave it."""
    return next(
        (
            each
            for each in group_waiting_records_by_root_cause(tx, scopes, RecordFilter())
            if _hash_as_group_name(each) == name
        ),
        None,
    )


def _hash_as_group_name(group: WaitingGroup) -> str:
    text = "\n".join([group.stream, *(key_text(root) for root in group.roots)])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _waiting_group_as_open_group(group: WaitingGroup) -> OpenRecordGroup:
    example = f"waits for {root_causes_text(group)}"
    choice = {"stream": group.stream, "group": _hash_as_group_name(group)}
    return OpenRecordGroup(group.stream, "", group.number, group.since, example, choice, waits_for=group.roots)


def _dead_letter_groups(
    tx: Transaction, status: str, choice: RecordFilter, *, by_source: bool
) -> Iterator[OpenRecordGroup]:
    for each in tx.dead_letters.groups_by_reason(status, choice, by_source=by_source, limit=MOST_GROUPS):
        parameters = {"stream": each.stream, "reason": each.code} | ({"file": each.source} if each.source else {})
        example = (
            "" if by_source else _first_message(tx, status, structs.replace(choice, stream=each.stream, code=each.code))
        )
        yield OpenRecordGroup(
            each.stream, each.code, each.number, each.first_at, example, parameters, each.first_run_id
        )


def _first_message(tx: Transaction, status: str, choice: RecordFilter) -> str:
    return "".join(each["message"] for each in tx.dead_letters.page(status, choice, after=None, limit=1))


def _intent_groups(tx: Transaction, kind: str, choice: RecordFilter) -> Iterator[OpenRecordGroup]:
    found = tx.intents.groups_by_stored_batch(STATUSES[kind], choice, limit=MOST_GROUPS)
    files = tx.batches.facts_by_id({each.batch_id for each in found if each.batch_id is not None})
    firsts = intent_items(tx, tx.intents.intents_with_ids([each.first_id for each in found]), kind)
    for each, item in zip(found, firsts, strict=True):
        file = files.get(each.batch_id or 0)
        parameters = {"stream": each.stream} | ({} if file is None else {"batch": file.name})
        yield OpenRecordGroup(
            each.stream, "" if file is None else file.name, each.number, each.since, item["why"], parameters
        )


def _unverified_groups(tx: Transaction, scopes: Mapping[Scope, str]) -> Iterator[OpenRecordGroup]:
    for scope, number in sorted(tx.unverified.unverified_binding_counts_by_scope(), key=lambda each: -each[1]):
        if scope in scopes:
            parameters = {"stream": scopes[scope]}
            yield OpenRecordGroup(scopes[scope], "", number, None, f"to be compared with {scope.target}", parameters)
