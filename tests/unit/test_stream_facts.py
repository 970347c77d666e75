"""What is declared about a stream: which records may be removed."""

from __future__ import annotations

import pytest

from crossdock.resource_types import ResourceType
from crossdock.resources import CustomerDraft
from crossdock.stream_facts import OnGone, no_removal


@pytest.mark.parametrize(
    ("deletes", "on_gone", "refusal"),
    [
        (False, "delete", "is written once, and never archived or deleted"),
        (True, "delete", None),
        (True, "archive", "is written once, and never changed"),
        (True, "nothing", None),
    ],
)
def test_what_is_written_once_is_deleted_only_if_its_target_permits_it(
    *, deletes: bool, on_gone: OnGone, refusal: str | None
) -> None:
    """An order may be cancelled although it is never changed; an invoice may not."""
    kind = ResourceType("orders", CustomerDraft, write_once=True, deletes=deletes)
    found = no_removal(kind, "snapshot", on_gone, finds_deleted=False)
    assert (found is None) == (refusal is None)
    assert (refusal or "") in (found or "")
