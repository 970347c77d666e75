"""The operations that were handed over to a target, and what its acknowledgements say about them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import PureWindowsPath
from typing import Any, NoReturn

from msgspec import structs

from crossdock.errors import RecordError
from crossdock.state import Intent, State
from crossdock.values import exact_json
from crossdock.values.raw_rows_and_records import Record
from crossdock.values.run_states_and_tally import Term
from crossdock.writing.delivery.state_writer import Settlement
from crossdock.writing.targets.answer_outcomes import Outcome
from crossdock.writing.targets.target import Target

_MAX_DIGITS = 18  # of the number of a file, in the state
_SHOWN = 32  # characters of what should be a number


def is_about_whole_file(said: Mapping[str, Any]) -> bool:
    """Sort `Acknowledgement` payloads by this: what is said of a record weighs more than what is said of its file."""
    return said.get("record") is None and said.get("control") is None


def hash_identifying_acknowledgement_row(record: Record, file: str | None) -> str:
    """Return what tells the row of an acknowledgement again that comes again, in *file* or from an API."""
    raw = record.raw()
    content = [file, raw.get("columns"), raw.get("rows")]
    return f"by row {hashlib.sha256(exact_json.dumps(content)).hexdigest()[:32]}"


class OperationsAwaitingAcknowledgement:
    """The operations on *target* that wait for an acknowledgement, from the first one on."""

    def __init__(self, state: State, target: Target) -> None:
        self._state, self._target = state, target
        self._batches = dict[str | int, int | None]()  # ids by name or number
        self._settled_batch: tuple[int, _OperationIndex] | None = None  # the last one that was asked for

    def settle(
        self, said: Mapping[str, Any], first_read_at: datetime | None = None, said_by: str = ""
    ) -> tuple[Term, list[Settlement]]:
        """Return the settlements that an `Acknowledgement`, as a payload, decides, for `read_again_with_data`.

        Args:
            first_read_at: When an earlier run has read it: it says nothing about what was handed over since.
            said_by: Its row, by `hash_identifying_acknowledgement_row`. One that names a record alone says nothing
                about what was handed over since it has settled an earlier operation.

        Returns:
            ``acknowledged`` with them, or ``ignored`` for one that came before.

        Raises:
            RecordError: If nothing was handed over that it can be about, if it may be about one of several records, or
                if it contradicts an earlier one.
        """
        batch = self._named_batch(said)
        named = self._operations_handed_over.operations_named_by_acknowledgement(said, batch)
        about = self._handed_over_before(named, first_read_at)
        found = [intent for intent in about if intent.awaits_acknowledgement or intent.is_to_be_sent_again]
        if not found:
            self._raise_unless_repeating_acknowledgement(said, batch, about, first_read_at)
            return "ignored", []
        self._raise_if_about_several_resources(said, found)
        if batch is not None:
            said_by = ""
        elif self._has_settled_before(said["record"], said_by):
            return "ignored", []
        settled = [self._settle_intent(intent, said) for intent in found]
        return "acknowledged", [structs.replace(item, said_by=said_by) for item in settled]

    def _has_settled_before(self, record: str, said_by: str) -> bool:
        with self._state.begin_read_only() as tx:
            return bool(said_by) and tx.intents.was_acknowledged_by(self._target.name, record, said_by)

    def settlements_with_operation_data(self, settled: Sequence[Settlement]) -> list[Settlement]:
        """Return *settled*, as `settle` returns it, with the data of its operations, which is not kept in memory."""
        with self._state.begin_read_only() as tx:
            whole = tx.intents.read_again_with_data([item.intent for item in settled])
        for intent, item in zip(whole, settled, strict=True):
            intent.status, intent.target_id = item.intent.status, item.intent.target_id
        return [structs.replace(item, intent=intent) for intent, item in zip(whole, settled, strict=True)]

    def _named_batch(self, said: Mapping[str, Any]) -> int | None:
        """Return the id of the batch that the acknowledgement names; None if it names only a record."""
        wanted = list[str | int]()
        if said.get("file") is not None:
            wanted.append(PureWindowsPath(said["file"].strip()).name)  # with or without folders, of any system
        if (number := said.get("number")) is not None:
            wanted.append(_parse_file_number(number))
        if not wanted:
            return None
        ids = {self._batch_id(each) for each in wanted}
        if len(ids) > 1 or None in ids:
            shown = " and ".join(str(each) for each in wanted)
            message = f"no file {shown} was handed over to {self._target.title}"
            raise RecordError("unmatched", message, pointer="/number" if said.get("file") is None else "/file")
        return ids.pop()

    def _handed_over_before(self, intents: Sequence[Intent], at: datetime | None) -> Sequence[Intent]:
        """Return those of *intents* whose files were made before *at*; all without a time."""
        if at is None or not intents:
            return intents
        with self._state.begin_read_only() as tx:
            facts = tx.batches.facts_by_id({each.batch_id for each in intents if each.batch_id is not None})
        later = {batch for batch, each in facts.items() if each.created_at >= at}
        return [each for each in intents if each.batch_id not in later]

    def _batch_id(self, wanted: str | int) -> int | None:
        if wanted not in self._batches:
            with self._state.begin_read_only() as tx:
                self._batches[wanted] = tx.batches.id_by_name_or_number(self._target.name, wanted)
        return self._batches[wanted]

    @cached_property
    def _operations_handed_over(self) -> _OperationIndex:
        with self._state.begin_read_only() as tx:
            awaited = tx.intents.awaiting_acknowledgement(self._target.name)
        found = _OperationIndex()
        found.add((intent, self._name_at_target(intent)) for intent in awaited)
        return found

    def _name_at_target(self, intent: Intent) -> str:
        own = self._target.name_of(intent.resource, intent.scope.namespace, intent.identity.key)
        return intent.target_id or own or ""

    def _raise_unless_repeating_acknowledgement(
        self, said: Mapping[str, Any], batch: int | None, now: Iterable[Intent], first_read_at: datetime | None
    ) -> None:
        """Raise RecordError unless *said* only repeats what settled operations earlier, or *now* in this run."""
        latest = dict[tuple[object, ...], Intent]()
        settled = self._handed_over_before(self._settled_operations_about(said, batch), first_read_at)
        found = {intent.id: intent for intent in settled} | {each.id: each for each in now}
        for _, intent in sorted(found.items()):
            latest[intent.scope, intent.identity.key_hash] = intent
        if not latest:
            self._raise_unmatched(said, batch)
        held = {intent.status for intent in latest.values()}
        if not said["accepted"] and "delivered" in held:
            self._raise_contradiction(
                f"refuses what counts as accepted since an earlier acknowledgement: {_refusal_reason(said)}"
            )
        ever = {intent.status for intent in found.values()}
        if said["accepted"] and not is_about_whole_file(said) and "rejected" in held and "delivered" not in ever:
            self._raise_contradiction("accepts what it has refused before: a replay would hand it over again")

    def _raise_unmatched(self, said: Mapping[str, Any], batch: int | None) -> NoReturn:
        """Raise RecordError. What a person has settled as not delivered is in another file than the one it was in."""
        record, control, title = said.get("record"), said.get("control"), self._target.title
        if record is not None and (others := self._names_of_batches_with(record)):
            message = (
                f"record {record!r} counts as handed over in {others}, and not in this file: if {title} has accepted"
            )
            raise RecordError("unmatched", f"{message} both, it has the record twice", pointer="/record")
        if record is None and control is None:
            message = (
                f"nothing counts as handed over to {title} in this file any more: if a person has settled it as not"
            )
            message = f"{message} delivered, and {title} has accepted it, the partner may have it twice"
            raise RecordError("unmatched", message, pointer="/number" if said.get("file") is None else "/file")
        what = f"set {(control or '')[:_SHOWN]!r}" if record is None else f"record {record!r}"
        in_file = "" if batch is None else " in this file"
        message = f"nothing was handed over to {title} as {what}{in_file}"
        raise RecordError("unmatched", message, pointer="/control" if record is None else "/record")

    def _names_of_batches_with(self, record: str) -> str:
        waiting = self._operations_handed_over.operations_named_by_acknowledgement({"record": record}, None)
        with self._state.begin_read_only() as tx:
            known = (*waiting, *tx.intents.settled_on_record(self._target.name, record))
            facts = tx.batches.facts_by_id({each.batch_id for each in known if each.batch_id is not None})
        return ", ".join(each.name for each in facts.values())

    def _raise_if_about_several_resources(self, said: Mapping[str, Any], found: Sequence[Intent]) -> None:
        """Raise RecordError if *said* names a record alone, and several resources have one of that name."""
        names = sorted({intent.resource for intent in found})
        if len(names) > 1 and said.get("file") is None and said.get("number") is None:
            message = (
                f"record {said['record']!r} was handed over to {self._target.title} as {' and as '.join(names)}: the"
            )
            message = f"{message} file or its number must say which is meant, or another name_form of one resource"
            raise RecordError("ambiguous_match", message, pointer="/record")

    def _raise_contradiction(self, what: str) -> None:
        raise RecordError("conflict", f"{self._target.title} {what}", pointer="/accepted")

    def _settled_operations_about(self, said: Mapping[str, Any], batch: int | None) -> Sequence[Intent]:
        if batch is None:
            with self._state.begin_read_only() as tx:
                return tx.intents.settled_on_record(self._target.name, said["record"])
        if self._settled_batch is None or self._settled_batch[0] != batch:
            with self._state.begin_read_only() as tx:
                settled = tx.intents.settled_in_batch(batch)
            self._settled_batch = batch, _OperationIndex()
            self._settled_batch[1].add((intent, self._name_at_target(intent)) for intent in settled)
        return self._settled_batch[1].operations_named_by_acknowledgement(said, batch)

    def _settle_intent(self, intent: Intent, said: Mapping[str, Any]) -> Settlement:
        intent.target_id, was_handed_over = self._name_at_target(intent), not intent.is_to_be_sent_again
        if said["accepted"]:
            intent.status = "delivered"
            return Settlement(intent, Outcome("delivered", target_id=intent.target_id), acknowledged=was_handed_over)
        intent.status = "rejected"
        outcome = Outcome("rejected", f"{self._target.title} refused it: {_refusal_reason(said)}", reason="rejected")
        return Settlement(intent, outcome, acknowledged=was_handed_over)


class _OperationIndex:
    """Operations by what acknowledgements name: thousands of them may be about one file."""

    def __init__(self) -> None:
        self._by_batch: dict[int | None, list[Intent]] = defaultdict(list)
        self._by_record: dict[str, list[Intent]] = defaultdict(list)
        self._by_place: dict[tuple[int | None, int | None], list[Intent]] = defaultdict(list)

    def add(self, named: Iterable[tuple[Intent, str]]) -> None:
        for intent, name in named:
            self._by_batch[intent.batch_id].append(intent)
            self._by_record[name].append(intent)
            self._by_place[intent.batch_id, intent.place].append(intent)

    def operations_named_by_acknowledgement(self, said: Mapping[str, Any], batch: int | None) -> Sequence[Intent]:
        """Return those that an `Acknowledgement` is about, which names *batch* or only a record."""
        record, control = said.get("record"), said.get("control")
        if batch is None:
            return self._by_record.get(record or "", ())
        if record is None and control is None:
            return self._by_batch.get(batch, ())
        place = None if control is None else _place_from_control_number(control)
        if record is None:
            return self._by_place.get((batch, place), ())
        found = [intent for intent in self._by_record.get(record, ()) if intent.batch_id == batch]
        return found if control is None else [intent for intent in found if intent.place == place]


def _parse_file_number(text: str) -> int:
    """Return the number of a file: zeros and spaces around it do not count."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal()):
        message = f"the number of a file must have digits only, not {text[:_SHOWN]!r}"
        raise RecordError("unmatched", message, pointer="/number")
    if len(digits.lstrip("0")) > _MAX_DIGITS:
        raise RecordError("unmatched", f"the number of a file has at most {_MAX_DIGITS} digits", pointer="/number")
    return int(digits.lstrip("0") or "0")


def _place_from_control_number(control: str) -> int:
    """Return the place of the set with a control number, which are counted from 1 in each file; -1 for no number."""
    digits = control.strip().lstrip("0")
    return int(digits) - 1 if digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS else -1


def _refusal_reason(said: Mapping[str, Any]) -> str:
    return said.get("reason") or "without a reason"
