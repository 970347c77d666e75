"""Runs in the state: what is kept of one, and what a list of them loads."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import create_engine, inspect, text
from tests.conftest import PIN
from tests.unit.state.test_state import BEFORE_7

from crossdock.state import State, StateUrl, create

AT = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
COURSE = {"steps": [["reading é", 0, 1_234]], "samples": [[1_000, 2_000]]}


def finish(state: State) -> int:
    with state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", owner="test", at=AT)
        tx.runs.finish(
            run, status="done", requests=1, throttled=0, tally={"s": {"n": 1}}, error=None, at=AT, course=COURSE
        )
    return run


def test_the_course_of_one_run_is_loaded(state: State) -> None:
    """It comes back as it went in; a list of runs is the same without it, and a run that was killed has none."""
    run = finish(state)
    with state.begin() as tx:
        killed = tx.runs.start(business_date="2026-03-30", owner="test", at=AT)
        tx.runs.abandon(at=AT)
        found, listed = tx.runs.get(run), tx.runs.listed(limit=5)
        assert found is not None
        assert found.course == COURSE
        assert [(each.id, each.tally, each.course) for each in listed] == [
            (killed, None, None),
            (run, found.tally, None),
        ]
        ended = tx.runs.get(killed)
        assert ended is not None
        assert (ended.status, ended.course) == ("incomplete", None)


def test_an_upgrade_makes_the_same_column(state_url: StateUrl) -> None:
    """A state of version 5 keeps its runs, and gets the column that a new one has."""
    create(state_url, PIN)
    old = State(state_url, PIN)
    run = finish(old)
    old.close()
    engine = create_engine(state_url)

    def columns() -> list[tuple[str, str, bool]]:
        return [(each["name"], str(each["type"]), each["nullable"]) for each in inspect(engine).get_columns("runs")]

    today = columns()
    with engine.begin() as connection:
        for gone in BEFORE_7:
            connection.execute(text(gone))
        connection.execute(text("ALTER TABLE runs DROP COLUMN course"))
        connection.execute(text("DELETE FROM crossdock_meta WHERE name = 'id'"))
        connection.execute(text("UPDATE crossdock_meta SET value = '5' WHERE name = 'version'"))
    assert len(columns()) == len(today) - 1
    assert not create(state_url, PIN)
    assert columns() == today
    engine.dispose()
    upgraded = State(state_url, PIN)
    with upgraded.begin() as tx:
        found = tx.runs.get(run)
        assert found is not None
        assert (found.tally, found.course) == ({"s": {"n": 1}}, None)
    assert finish(upgraded) == run + 1
    upgraded.close()
