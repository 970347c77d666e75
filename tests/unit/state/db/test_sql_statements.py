"""Bulk writes convert values as SQLAlchemy does; look-ups by key use the index."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, insert, select, text
from tests.unit.state.samples import AT, SCOPE, binding, intent, start

from crossdock.state import State
from crossdock.state.db import sql_types_and_statements
from crossdock.state.db.sql_types_and_statements import ExactJson, Hash, UtcDateTime


def test_cells_are_converted_as_core_does(tmp_path: Path) -> None:
    """Rows in bulk are, cell by cell, what one insert each makes of them: hashes, JSON, instants in any zone."""
    table = Table(
        "t", MetaData(),
        Column("n", Integer, primary_key=True), Column("h", Hash), Column("j", ExactJson), Column("at", UtcDateTime),
    )  # fmt: skip
    engine = create_engine(f"sqlite:///{tmp_path}/t.db")
    table.metadata.create_all(engine)
    here = ZoneInfo("Europe/Berlin")
    twice = datetime(2026, 10, 25, 2, 30, tzinfo=here)  # equal to its second time, and an hour before it
    instants = [twice, twice, twice.replace(fold=1), None, None, twice.astimezone(UTC), twice]
    rows = [
        {"n": n, "h": n << 100, "j": {"b": Decimal("1.50"), "a": [n, None]} if n % 2 else None, "at": at}
        for n, at in enumerate(instants)
    ]
    with engine.begin() as connection:
        for row in rows:
            connection.execute(insert(table).values(row))
        one_by_one = connection.execute(text("SELECT * FROM t")).all()
        connection.execute(table.delete())
        sql_types_and_statements.upsert_rows(connection, table, [{**row, "h": 1} for row in rows[:2]])
        sql_types_and_statements.upsert_rows(connection, table, rows)
        assert connection.execute(text("SELECT * FROM t")).all() == one_by_one
        with pytest.raises(ValueError, match="needs a time zone"):
            sql_types_and_statements.upsert_rows(connection, table, [{"n": 9, "at": datetime(2026, 1, 1)}])  # noqa: DTZ001
        assert connection.execute(select(table.c.n).where(table.c.n == 9)).first() is None
    engine.dispose()


@pytest.mark.postgres
@pytest.mark.parametrize("state_url", ["postgresql"], indirect=True)
def test_a_new_scope_is_not_read_through(state: State) -> None:
    """On PostgreSQL, before it has statistics, a look-up of some keys reads rows of those and not of all the scope."""
    run = start(state)
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(n) for n in range(5_000)], run_id=run, at=AT)
        tx.intents.add([intent(n) for n in range(5_000)], run_id=run, fence=1, at=AT)
    counted = text("SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables")
    some = range(0, 2_000, 20)
    with state.begin_read_only() as tx:
        connection = tx.bindings._connection
        before = connection.execute(counted).scalar_one()
        for _ in range(12):  # from the sixth time on a statement is prepared, and from the eleventh its plan is kept
            for look_up in (
                tx.bindings.get,
                tx.bindings.idempotency_counters,
                tx.bindings.target_id_by_key_hash,
                tx.intents.idempotency_counters,
            ):
                assert len(look_up(SCOPE, some)) == len(some)
        assert connection.execute(counted).scalar_one() - before == 12 * 4 * len(some)
