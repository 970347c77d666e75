"""Transactions that a database breaks off are tried again, and come to the same when they are done twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import Engine, create_engine, select, text
from tests.conftest import PIN
from tests.e2e.test_schedule_in_trouble import StoppablePostgres
from tests.integration.delivery.harness import Bench, Platform
from tests.unit.state.samples import intent
from tests.waiting import eventually

from crossdock.errors import StateError
from crossdock.pacing.token_bucket import Bucket, BucketState, LimitEstimate
from crossdock.state import (
    Attempt,
    DeadLetter,
    State,
    StateUrl,
    Transaction,
    create_or_upgrade_state,
    open_state,
    parse_database_url,
)
from crossdock.state.db import schema
from crossdock.testing.postgres_server import PostgresServer
from crossdock.writing.delivery import state_writer
from crossdock.writing.delivery.state_writer import Settlement
from crossdock.writing.targets.answer_outcomes import Outcome

AT = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
PURSE = BucketState(Bucket(10, 100, 1e9), LimitEstimate(10, "reported", 100, "reported"), 7)


@pytest.fixture
def pg_url(postgres: PostgresServer, tmp_path: Path) -> StateUrl:
    return parse_database_url(postgres.create_database(), tmp_path)


@pytest.fixture
def pg(pg_url: StateUrl) -> Iterator[State]:
    create_or_upgrade_state(pg_url, PIN)
    with closing(State(pg_url, PIN)) as opened:
        yield opened


@pytest.fixture
def beside(pg_url: StateUrl) -> Iterator[Engine]:
    """The same database by a connection that is not ours."""
    engine = create_engine(pg_url, isolation_level="AUTOCOMMIT")
    yield engine
    engine.dispose()


def hang_up(beside: Engine) -> None:
    """End all other sessions on the database, as a server that restarts does."""
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    with beside.connect() as connection:
        connection.execute(text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}"))


def raise_at_commit(beside: Engine, table: str, code: str, times: int) -> None:
    """Let the first *times* transactions that write into *table* fail with *code* when they are committed."""
    with beside.connect() as connection:
        connection.execute(text("CREATE SEQUENCE storms"))
        connection.execute(
            text(
                f"CREATE FUNCTION storm() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                f" IF nextval('storms') <= {times} THEN RAISE SQLSTATE '{code}'; END IF; RETURN NULL; END $$"
            )
        )
        connection.execute(
            text(
                f"CREATE CONSTRAINT TRIGGER storm AFTER INSERT OR UPDATE ON {table}"
                " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION storm()"
            )
        )


@pytest.mark.nightly(but=["at the commit"])
@pytest.mark.postgres
@pytest.mark.parametrize("last", [True, False], ids=["at the commit", "before the last statement"])
def test_a_lost_connection_is_made_good(pg: State, beside: Engine, *, last: bool) -> None:
    """A session that ends within a transaction is replaced, and the work is there once."""
    calls: list[int] = []

    def work(tx: Transaction) -> int:
        calls.append(1)
        run_id = tx.runs.start(business_date="2026-03-29", at=AT)
        if len(calls) == 1:
            hang_up(beside)
        if not last:
            tx.buckets.put("platform", PURSE)
        return run_id

    run_id = pg.run_transaction(work)
    with pg.begin() as tx:
        assert [run.id for run in tx.runs.listed(limit=9)] == [run_id]
    assert len(calls) == 2


@pytest.mark.nightly
@pytest.mark.postgres
def test_a_server_that_restarts_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it refuses connections the work is tried again, and it is there once when the server is back."""
    pauses: list[float] = []
    with StoppablePostgres() as server:
        url = parse_database_url(server.create_database(), tmp_path)
        create_or_upgrade_state(url, PIN)

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 2:  # one more attempt than it takes to learn that the session is lost
                server.restart()
                eventually(server.accepts_connections)

        monkeypatch.setattr(open_state, "time", SimpleNamespace(sleep=pause))

        def work(tx: Transaction) -> int:
            run_id = tx.runs.start(business_date="2026-03-29", at=AT)
            if not pauses:
                server.stop()
            return run_id

        with closing(State(url, PIN)) as pg:
            run_id = pg.run_transaction(work)
            with pg.begin_read_only() as tx:
                assert [run.id for run in tx.runs.listed(limit=9)] == [run_id]
    assert len(pauses) == 2


@pytest.mark.nightly(but=["40001"])
@pytest.mark.postgres
@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_a_transaction_that_gave_way_is_tried_again(pg: State, beside: Engine, code: str) -> None:
    """A serialization failure or a deadlock, told at the commit, costs a turn and nothing else."""
    raise_at_commit(beside, "buckets", code, 2)
    calls: list[int] = []

    def work(tx: Transaction) -> None:
        calls.append(1)
        tx.buckets.put("platform", PURSE)

    pg.run_transaction(work)
    with pg.begin() as tx:
        assert (tx.buckets.get("platform"), len(calls)) == (PURSE, 3)


@pytest.mark.postgres
def test_a_mistake_is_not_tried_again(pg: State, beside: Engine) -> None:
    """What would fail every time is told at once, as a failure of the state."""
    raise_at_commit(beside, "buckets", "22012", 1)
    calls: list[int] = []

    def work(tx: Transaction) -> None:
        calls.append(1)
        tx.buckets.put("platform", PURSE)

    with pytest.raises(StateError):
        pg.run_transaction(work)
    assert len(calls) == 1


@pytest.mark.postgres
def test_a_run_outlives_its_sessions(pg: State, beside: Engine) -> None:
    """A server that restarts in the middle of a run does not fail it, neither then nor at its end."""
    with pg.hold_run_lease("first"):
        pg.run_transaction(lambda tx: tx.buckets.put("platform", PURSE))
        hang_up(beside)
        pg.run_transaction(lambda tx: tx.buckets.put("platform", structs.replace(PURSE, spent=1)))
    with pg.hold_run_lease("second"), pg.begin() as tx:
        assert tx.buckets.get("platform") == structs.replace(PURSE, spent=1)


@pytest.mark.nightly
@pytest.mark.postgres
def test_delivery_through_a_storm(
    pg: State, beside: Engine, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transactions of a delivery that are broken off do not send anything twice, nor forget anything."""
    raise_at_commit(beside, "intents", "40001", 3)
    bench = Bench(pg, platform.server_port, monkeypatch, settings={"in_flight": 10})
    bench.deliver(40)
    assert (bench.bound(), len(platform.seen), len({seen.key for seen in platform.seen})) == (40, 40, 40)
    assert bench.statuses() == {"delivered": 40}


def turn_of(run_id: int) -> tuple[Callable[[Transaction], None], Callable[[Transaction], None]]:
    """What stands in the state before a turn, and the turn: it settles in every way, adds intents and marks some."""
    old = {name: intent(n) for n, name in enumerate(("delivered", "rejected", "in_doubt", "replaced", "deleted"))}
    old["deleted"].operation = "delete"
    settled = [
        Settlement(old["delivered"], Outcome("delivered", status=201, target_id="prd_0", etag='"1"')),
        Settlement(old["rejected"], Outcome("rejected", "no", 422, reason="rejected", pointer="/name")),
        Settlement(old["in_doubt"], Outcome("in_doubt", "broke off")),
        Settlement(old["deleted"], Outcome("delivered", status=204)),
    ]
    successor = structs.replace(
        old["replaced"], idempotency_key="key-next", counter=2, operation="update", target_id="p"
    )
    fresh = [intent(n) for n in range(10, 14)]
    dead_letter = state_writer.make_dead_letter_of_refusal(
        Settlement(intent(20), Outcome("rejected", "no", 422, reason="rejected"))
    )
    before = deepcopy(list(old.values()))
    for name, each in old.items():
        each.status = "delivered" if name == "deleted" else name  # type: ignore[assignment]  # the names are statuses

    def first(tx: Transaction) -> None:
        tx.intents.add(before, run_id=run_id, fence=1, at=AT)
        tx.dead_letters.put(
            [_older(dead_letter), _older(state_writer.make_dead_letter_of_refusal(settled[1]))],
            run_id=run_id - 1,
            at=AT,
        )
        tx.dead_letters.put([_older(state_writer.make_dead_letter_of_refusal(settled[0]))], run_id=run_id - 1, at=AT)
        for each, known in zip(old.values(), before, strict=True):
            each.id = known.id

    def work(tx: Transaction) -> None:
        for each in fresh[:2]:
            if each.status == "pending":
                each.mark_as_sending(AT)
        tx.intents.add([*fresh, successor], run_id=run_id, fence=1, at=AT)
        state_writer.store_outcomes_and_bindings(tx, settled, run_id=run_id, at=AT)
        tx.intents.write_outcomes([old["replaced"]], at=AT)
        tx.intents.store_attempt_results([Attempt(old["rejected"].id, 1, AT, "rejected", 422, "no")])
        tx.dead_letters.put([dead_letter], run_id=run_id, at=AT)
        tx.intents.write_as_sending(fresh[:2])
        tx.buckets.put("platform", PURSE)

    return first, work


def _older(dead_letter: DeadLetter) -> DeadLetter:
    identity = dead_letter.identity._replace(fingerprint=4)
    return structs.replace(dead_letter, identity=identity, message="as it was before")


def content(url: StateUrl) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table."""
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            return {
                table.name: sorted((dict(row) for row in connection.execute(select(table)).mappings()), key=str)
                for table in schema.metadata.sorted_tables
                if table not in {schema.key_stamps, schema.meta}  # drawn at random, an identity among it
            }
    finally:
        engine.dispose()


def test_a_turn_done_twice_is_a_turn_done_once(state: State, state_url: StateUrl, tmp_path: Path) -> None:
    """A commit whose answer was lost is repeated: every table reads as if it had been done once, on both databases."""
    single_url = parse_database_url("sqlite:///single.db", tmp_path)
    create_or_upgrade_state(single_url, PIN)
    with closing(State(single_url, PIN)) as single:
        for each, times in ((state, 2), (single, 1)):
            with each.begin() as tx:
                runs = [tx.runs.start(business_date="2026-03-29", at=AT) for _ in range(2)]
            first, work = turn_of(runs[-1])
            each.run_transaction(first)
            for _ in range(times):
                each.run_transaction(work)
    once, twice = content(single_url), content(state_url)
    assert once.keys() == twice.keys()
    for name in once:
        assert twice[name] == once[name], name
    attempts = {row["key"]: row["attempts"] for row in once["dead_letters"]}
    assert attempts == {"K1": 2, "K20": 2}
    assert {row["key"]: row["first_run_id"] for row in once["dead_letters"]} == {"K1": 1, "K20": 1}
    assert {row["status"] for row in once["intents"]} == {
        "delivered", "rejected", "in_doubt", "replaced", "pending", "sending",
    }  # fmt: skip
