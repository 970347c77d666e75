"""What a person may do about records, on the pages that show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crossdock.console.actions import permitted_actions
from crossdock.console.visits import Visit
from crossdock.values.state_words import RecordState

_UNCLEAR = {RecordState.IN_DOUBT.option, RecordState.OVERDUE.option}


def actions_of(
    visit: Visit,
    state: str,
    stream: str | None = None,
    reason: str | None = None,
    key: str | None = None,
    file: str | None = None,
) -> Sequence[tuple[str, str]]:
    """Return the title and address of each action on the records in *state* of this stream, reason, key and file."""
    given = {"stream": stream, "reason": reason, "key": key, "file": file}
    return permitted_actions(visit, *((name, given | more) for name, more in _action_names(state, stream, key)))


def _action_names(state: str, stream: str | None, key: str | None) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Yield the names of actions, with the fields in which they differ from what was given."""
    if state == RecordState.REJECTED.option:
        yield "replay", {}
    if stream is None:
        return
    if state in {RecordState.REJECTED.option, RecordState.WAITING.option}:
        yield "drop", {"state": state}
    if state in _UNCLEAR:
        yield "resolve", {"reason": None, "file": None}
    if state == RecordState.IN_DOUBT.option and key is not None:
        yield "candidates", {"reason": None, "file": None}
