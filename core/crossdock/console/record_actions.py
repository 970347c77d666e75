"""What a person may do about records on the pages of records."""

from __future__ import annotations

from collections.abc import Sequence

from crossdock.console.visits import Visit


def actions_of(
    visit: Visit,  # noqa: ARG001  the actions are not there yet
    state: str,  # noqa: ARG001
    stream: str | None = None,  # noqa: ARG001
    reason: str | None = None,  # noqa: ARG001
    key: str | None = None,  # noqa: ARG001
) -> Sequence[tuple[str, str]]:
    """Return the label and address of each action on the records in a state, as far as they are narrowed."""
    return []
