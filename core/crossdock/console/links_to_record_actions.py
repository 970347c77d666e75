"""What a person may do about records, on the pages that show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crossdock.console.action_definitions import permitted_action_links
from crossdock.console.page_request_context import PageRequest
from crossdock.values.state_words import RecordState

_UNCLEAR = {RecordState.IN_DOUBT.option_value, RecordState.OVERDUE.option_value}


def record_action_links(
    visit: PageRequest,
    state: str,
    stream: str | None = None,
    reason: str | None = None,
    key: str | None = None,
    file: str | None = None,
) -> Sequence[tuple[str, str]]:
    """Return the title and address of each action on the records in *state* of this stream, reason, key and file."""
    given = {"stream": stream, "reason": reason, "key": key, "file": file}
    return permitted_action_links(visit, *((name, given | more) for name, more in _action_names(state, stream, key)))


def _action_names(state: str, stream: str | None, key: str | None) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Yield the names of actions, with the fields in which they differ from what was given."""
    if state == RecordState.REJECTED.option_value:
        yield "replay", {}
    if stream is None:
        return
    if state in {RecordState.REJECTED.option_value, RecordState.WAITING.option_value}:
        yield "drop", {"state": state}
    if state in _UNCLEAR:
        yield "resolve", {"reason": None, "file": None}
    if state == RecordState.IN_DOUBT.option_value and key is not None:
        yield "candidates", {"reason": None, "file": None}
