"""A record counts as edited if its version is not the one that we wrote."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.state.samples import AT, SCOPE, binding, start

from crossdock.runs.platform_and_state_comparison import load_bindings_by_target_id
from crossdock.runs.undo.undo_plan import EditedRecords
from crossdock.state import State

THEN, LATER = "2026-03-29T01:30:00.001Z", "2026-03-29T01:30:00.002Z"
PART = SCOPE.contribution_scope_of_stream("depot.bins")


def bound(state: State, *, contributed: str | None = None, **facts: Any) -> None:
    run_id = start(state)
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(1, **facts)], run_id=run_id, at=AT)
        if contributed is not None:
            tx.bindings.put(PART, [binding(1, changed_at=contributed)], run_id=run_id, at=AT)


def take(state: State, edited: EditedRecords, page: list[dict[str, Any]]) -> None:
    ids = [each["id"] for each in page if "id" in each]
    edited.compare_page("product", page, load_bindings_by_target_id(state, "product", ids))


@pytest.mark.parametrize(
    ("known", "listed", "is_edited", "may_ask"),
    [
        pytest.param({"etag": '"1"', "changed_at": THEN}, THEN, False, False, id="the same"),
        pytest.param({"etag": '"1"', "changed_at": THEN}, LATER, True, False, id="changed since"),
        pytest.param({"etag": None, "changed_at": THEN}, LATER, True, False, id="without an entity tag"),
        pytest.param({"etag": '"1"', "changed_at": None}, LATER, False, True, id="not known"),
        pytest.param({"etag": '"1"', "changed_at": THEN}, None, False, True, id="not listed"),
        pytest.param({"etag": None, "changed_at": None}, LATER, False, False, id="nothing is known"),
    ],
)
def test_the_list_shows_what_was_edited(
    state: State, known: dict[str, Any], listed: str | None, *, is_edited: bool, may_ask: bool
) -> None:
    """As far as it says when a record was changed, and the answer to our write did."""
    bound(state, **known)
    edited = EditedRecords(state)
    take(state, edited, [{"id": "prd_1", "updatedAt": listed}, {"id": "prd_2", "updatedAt": LATER}, {}])
    assert edited.edited_ids("product", ["prd_1", "prd_2"]) == ({"prd_1"} if is_edited else set())
    assert edited.edited_ids("customer", ["prd_1"]) == set()
    assert edited.has_unsure_records is may_ask


@pytest.mark.parametrize(("version", "is_edited"), [('"1"', False), ('W/"1"', False), ('"2"', True), (None, False)])
def test_what_no_list_shows_is_looked_up(state: State, version: str | None, *, is_edited: bool) -> None:
    """By its entity tag; one that the platform does not have was not edited. Nothing else is asked for."""
    bound(state, etag='"1"')
    edited, asked = EditedRecords(state), list[str]()
    take(state, edited, [{"id": "prd_1", "updatedAt": LATER}])

    def look_up(name: str) -> str | None:
        asked.append(name)
        return version

    edited.look_up_versions("product", ["prd_1", "prd_2"], look_up)
    assert asked == ["prd_1"]
    assert edited.edited_ids("product", ["prd_1"]) == ({"prd_1"} if is_edited else set())


def test_the_whole_record_has_the_newest_version(state: State) -> None:
    """A contribution is older if the record was written since."""
    bound(state, changed_at=LATER, contributed=THEN)
    edited = EditedRecords(state)
    take(state, edited, [{"id": "prd_1", "updatedAt": LATER}])
    assert edited.edited_ids("product", ["prd_1"]) == set()


def test_a_record_that_changes_while_it_is_listed_is_edited(state: State) -> None:
    """It is listed twice."""
    bound(state, changed_at=THEN)
    edited = EditedRecords(state)
    for at in (THEN, LATER):
        take(state, edited, [{"id": "prd_1", "updatedAt": at}])
    assert edited.edited_ids("product", ["prd_1"]) == {"prd_1"}
