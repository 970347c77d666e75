"""The operations that were handed over to a target, and what its acknowledgements say about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from crossdock.errors import RecordError
from crossdock.state import Intent, State
from crossdock.values.tally import Term
from crossdock.writing.delivery.settlement import Settlement
from crossdock.writing.targets.outcomes import Outcome
from crossdock.writing.targets.target import Target


class AcknowledgedOperations:
    """The operations on *target* that wait for an acknowledgement, from the first one on."""

    def __init__(self, state: State, target: Target) -> None:
        self._state, self._target = state, target
        self._awaited: dict[int, Intent] | None = None
        self._by_batch: dict[int, list[Intent]] = defaultdict(list)
        self._by_record: dict[str, list[Intent]] = defaultdict(list)

    def settle(self, said: Mapping[str, Any]) -> tuple[Term, list[Settlement]]:
        """Return the settlements that an `Acknowledgement`, as a payload, decides.

        Returns:
            ``acknowledged`` with them, or ``ignored`` for one that came before.

        Raises:
            RecordError: If nothing was handed over that it can be about, or it contradicts an earlier one.
        """
        batches = self._batches(said)
        found = [intent for intent in self._about(said, batches) if intent.id in self._all()]
        if not found:
            self._check_repeated(said, batches)
            return "ignored", []
        for intent in found:
            del self._all()[intent.id]
        return "acknowledged", [self._settlement(intent, said) for intent in found]

    def _batches(self, said: Mapping[str, Any]) -> list[int] | None:
        """Return the ids of the batches that the acknowledgement names; None if it names only a record."""
        name, number = said.get("file"), said.get("number")
        if name is None and number is None:
            return None
        names = [PurePosixPath(name).name] if name is not None else []
        if number is not None and not (number.isascii() and number.strip().isdecimal()):
            message = f"the number of a file must have digits only, not {number!r}"
            raise RecordError("unmatched", message, pointer="/number")
        with self._state.read_only() as tx:
            known = tx.batches.named(self._target.name, names, [] if number is None else [int(number)])
        wanted: list[str | int] = [*names, *([] if number is None else [int(number)])]
        ids = {known.get(each) for each in wanted}
        if len(ids) > 1 or None in ids:
            shown = " and ".join(str(each) for each in wanted)
            message = f"no file {shown} was handed over to {self._target.title}"
            raise RecordError("unmatched", message, pointer="/file" if names else "/number")
        return [each for each in ids if each is not None]

    def _about(self, said: Mapping[str, Any], batches: list[int] | None) -> Sequence[Intent]:
        self._all()
        control, record = said.get("control"), said.get("record")
        found = self._by_record.get(record, []) if batches is None and record is not None else []
        for batch in batches or ():
            found = [*found, *self._by_batch.get(batch, [])]
        if record is not None:
            found = [intent for intent in found if self._name(intent) == record]
        if control is not None and batches is not None:
            found = [intent for intent in found if _is_place(control, intent.place)]
        return found

    def _all(self) -> dict[int, Intent]:
        if self._awaited is None:
            with self._state.read_only() as tx:
                awaited = tx.intents.awaited_at(self._target.name)
            self._awaited = {intent.id: intent for intent in awaited}
            for intent in awaited:
                self._by_batch[intent.batch_id or 0].append(intent)
                self._by_record[self._name(intent)].append(intent)
        return self._awaited

    def _name(self, intent: Intent) -> str:
        own = self._target.name_of(intent.resource, intent.scope.namespace, intent.identity.key)
        return intent.target_id or own or ""

    def _check_repeated(self, said: Mapping[str, Any], batches: list[int] | None) -> None:
        record, control = said.get("record"), said.get("control")
        with self._state.read_only() as tx:
            settled = tx.intents.settled_in_batches(self._target.name, batches, record)
        if control is not None and batches is not None:
            settled = [intent for intent in settled if _is_place(control, intent.place)]
        if not settled:
            what = f"record {record!r}" if record is not None else f"set {control!r}"
            in_file = "" if batches is None else " in this file"
            message = f"nothing was handed over to {self._target.title} as {what}{in_file}"
            raise RecordError("unmatched", message, pointer="/record" if record is not None else "/control")
        is_delivered = any(intent.status == "delivered" for intent in settled)
        if not said["accepted"] and is_delivered:
            reason = said.get("reason") or "without a reason"
            message = f"{self._target.title} refuses what counts as accepted since an earlier acknowledgement: {reason}"
            raise RecordError("conflict", message, pointer="/accepted")
        if said["accepted"] and not is_delivered:
            message = (
                f"{self._target.title} accepts what it refused in an earlier acknowledgement: do not send it again"
            )
            raise RecordError("conflict", message, pointer="/accepted")

    def _settlement(self, intent: Intent, said: Mapping[str, Any]) -> Settlement:
        if said["accepted"]:
            intent.status = "delivered"
            return Settlement(intent, Outcome("delivered", target_id=intent.target_id), acknowledged=True)
        intent.status = "rejected"
        reason = said.get("reason") or "without a reason"
        outcome = Outcome("rejected", f"{self._target.title} refused it: {reason}", reason="rejected")
        return Settlement(intent, outcome, acknowledged=True)


def _is_place(control: str, place: int | None) -> bool:
    """Return whether a control number is that of the set at *place*: sets are counted from 1 in each file."""
    return place is not None and control.isascii() and control.isdecimal() and int(control) == place + 1
