"""What the state keeps of past snapshots and of approvals, on SQLite and on PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import create_engine, inspect, text
from tests.conftest import PIN
from tests.unit.state.test_state import BEFORE_7

from crossdock.state import Binding, Past, Removal, Scope, State, StateUrl, create
from crossdock.state.tables.snapshot_history import GONE_FP, packed

AT = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
SCOPE = Scope("platform", "product", "wms")
TOP = (1 << 128) - 1


def test_the_latest_snapshots_come_newest_first(state: State) -> None:
    """So many as asked for of one stream; the same content worked through again is one snapshot, of the later day."""
    with state.begin() as tx:
        for day, content in enumerate(("a", "b", "c", "a")):
            tx.removals.remember("wms.p", content, Past(100 + day, day or None), at=AT + timedelta(days=day))
        tx.removals.remember("wms.q", "d", Past(7, 7), at=AT)
        assert tx.removals.latest("wms.p", 2) == [Past(103, 3), Past(102, 2)]
        assert tx.removals.latest("wms.p", 9) == [Past(103, 3), Past(102, 2), Past(101, 1)]
        assert tx.removals.latest("wms.r", 9) == []
        assert (tx.removals.knows("wms.p", "b"), tx.removals.knows("wms.q", "b")) == (True, False)


def test_only_live_records_count(state: State) -> None:
    """What was deleted is nowhere, and what was archived when it went is not present."""
    with state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", owner="test", at=AT)
        fps = {1: 10, 2: GONE_FP, 3: 30, TOP: 40}
        made = [Binding(key, f"K{key}", "p", fp, "a", None, {}, 20, None, 1) for key, fp in fps.items()]
        tx.bindings.put(SCOPE, made, run_id=run, at=AT)
        tx.bindings.bury(SCOPE, [3], at=AT)
        assert sorted(tx.removals.facts(SCOPE, [1, 2, 3, 4, TOP])) == [(1, 10, 20), (2, GONE_FP, 20), (TOP, 40, 20)]
        assert tx.removals.present(SCOPE) == 2
        assert tx.removals.present(Scope("platform", "product", "other")) == 0


def test_an_approval_is_of_exactly_what_was_asked(state: State) -> None:
    """Asked for again it keeps its date and its approval; anything else takes its place without one."""
    asked = Removal("wms.p", "delete product in wms", packed([TOP, 2, 1]), AT)
    assert (asked.number, asked.key_hashes) == (3, [1, 2, TOP])
    with state.begin() as tx:
        tx.removals.ask(asked)
        tx.removals.approve(asked, at=AT)
        tx.removals.ask(Removal("wms.p", asked.what, asked.keys, AT + timedelta(days=1)))
        assert tx.removals.listed() == [Removal("wms.p", asked.what, asked.keys, AT, AT)]
        other = Removal("wms.p", "archive product in wms", asked.keys, AT)
        tx.removals.ask(other)
        assert tx.removals.get("wms.p") == other
        tx.removals.forget("wms.p")
        assert tx.removals.get("wms.p") is None


def test_an_upgrade_makes_the_same_tables(state_url: StateUrl) -> None:
    """A state of version 4 gets the tables that a new one has, column by column."""
    create(state_url, PIN)
    engine = create_engine(state_url)

    def tables() -> list[object]:
        looked = inspect(engine)
        return [
            (
                name,
                [(each["name"], str(each["type"]), each["nullable"]) for each in looked.get_columns(name)],
                looked.get_pk_constraint(name)["constrained_columns"],
            )
            for name in ("snapshots", "removals")
        ]

    today = tables()
    with engine.begin() as connection:
        for gone in BEFORE_7:
            connection.execute(text(gone))
        connection.execute(text("DROP TABLE snapshots"))
        connection.execute(text("DROP TABLE removals"))
        connection.execute(text("ALTER TABLE runs DROP COLUMN course"))
        connection.execute(text("DELETE FROM crossdock_meta WHERE name = 'id'"))
        connection.execute(text("UPDATE crossdock_meta SET value = '4' WHERE name = 'version'"))
    assert not create(state_url, PIN)
    assert tables() == today
    engine.dispose()


@pytest.mark.parametrize("keys", [[], [1], list(range(600))])
def test_facts_are_found_in_any_number(state: State, keys: list[int]) -> None:
    """More keys than one statement takes are asked for in several."""
    with state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", owner="test", at=AT)
        tx.bindings.put(SCOPE, [Binding(k, "K", "p", 9, "a", None, {}, 20, None, 1) for k in keys], run_id=run, at=AT)
        assert sorted(tx.removals.facts(SCOPE, keys)) == [(key, 9, 20) for key in keys]
