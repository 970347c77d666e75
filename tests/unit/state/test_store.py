"""The state keeps exactly what it is given, on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, insert, inspect, select, text
from tests.conftest import PIN

from crossdock.errors import ConfigError, InternalError, StateError
from crossdock.pacing.bucket_store import BucketState
from crossdock.pacing.limit_estimate import LimitEstimate
from crossdock.pacing.token_bucket import Bucket
from crossdock.state import (
    Binding,
    DeadLetter,
    DeadLetterFacts,
    FileFacts,
    Intent,
    Pin,
    RecordIdentity,
    Scope,
    State,
    StateUrl,
    WaitingRecord,
    create,
    parse_url,
)
from crossdock.state.db import engine as state_engine
from crossdock.state.db import migrations, schema
from crossdock.state.db.column_types import UtcDateTime

AT = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
SCOPE = Scope("platform", "product", "wms")


def start(state: State) -> int:
    with state.begin() as tx:
        return tx.runs.start(business_date="2026-03-29", at=AT)


def binding(number: int, **changes: Any) -> Binding:
    facts: dict[str, Any] = {
        "key_hash": number,
        "key": f"K{number}",
        "platform_id": f"prd_{number}",
        "fingerprint": 10 + number,
        "position": None,
        "step": "whole",
        "payload": {"name": "x", "unitPrice": Decimal("0.1")},
        "etag": None,
        "counter": 1,
    }
    return Binding(**(facts | changes))


def intent(number: int, **changes: Any) -> Intent:
    facts: dict[str, Any] = {
        "identity": RecordIdentity("wms.products", f"K{number}", number, 5, None, "f.csv", 2),
        "scope": SCOPE,
        "operation": "create",
        "step": "whole",
        "counter": 1,
        "idempotency_key": f"key-{number}",
        "method": "POST",
        "path": "/p",
        "body": b'{"name":"\xc3\xa9"}',
        "before": None,
        "after": None,
        "raw": {"columns": ["A"], "rows": [["0017"]], "lines": [2]},
    }
    return Intent(**_changed(facts, changes))


def _changed(facts: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """*facts* with *changes*, some of which may be of the identity or the scope."""
    identity = {name: changes.pop(name) for name in RecordIdentity._fields if name in changes}
    scope = {name: changes.pop(name) for name in Scope.__slots__ if name in changes}
    whole = {"identity": facts["identity"]._replace(**identity), "scope": replace(facts["scope"], **scope)}
    return facts | whole | changes


def test_bindings_come_back_as_they_went_in(state: State) -> None:
    """A binding keeps hashes of 128 bits and exact payloads; a newer one of the same key replaces it."""
    run = start(state)
    top = (1 << 128) - 1
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(top, fingerprint=top), binding(2)], run_id=run, at=AT)
        tx.bindings.put(SCOPE, [binding(2, counter=7, position="2026")], run_id=run, at=AT)
    with state.begin() as tx:
        assert tx.bindings.get(SCOPE, [top, 2, 3]) == {
            top: binding(top, fingerprint=top),
            2: binding(2, counter=7, position="2026"),
        }
        assert tx.bindings.ids(SCOPE, [top]) == {top: f"prd_{top}"}
        assert tx.bindings.get(Scope("platform", "product", "other"), [2]) == {}
    assert min(state.known(SCOPE).rows()) == (2, 12, "2026")


def test_intents_move_and_are_found_again(state: State) -> None:
    """What was left pending or sending is found by the next run with its exact bytes, oldest first."""
    run = start(state)
    first, second, third = intent(1), intent(2), intent(3)
    with state.begin() as tx:
        tx.intents.add([first, second, third], run_id=run, fence=1, at=AT)
        for item in (first, second):
            item.leave(AT)
        tx.intents.mark_sending([first, second])
        second.status, second.platform_id, second.http_status = "delivered", "prd_2", 201
        tx.intents.move([second], at=AT)
    with state.begin() as tx:
        left = tx.intents.unsettled()
        assert [(each.identity.key, each.status, each.attempts) for each in left] == [
            ("K1", "sending", 1),
            ("K3", "pending", 0),
        ]
        assert left[0].body == first.body
        assert left[0].first_sent_at == AT
        assert left[0] == first
        assert tx.intents.counters(SCOPE, [1, 2, 9]) == {1: 1, 2: 1}


def test_one_idempotency_key_is_minted_once(state: State) -> None:
    """Another record's intent under a key that is there already fails; the same intent written again is no second."""
    run = start(state)
    with pytest.raises(InternalError, match="share an idempotency key"), state.begin() as tx:
        tx.intents.add([intent(1), intent(2, idempotency_key="key-1")], run_id=run, fence=1, at=AT)
    first, again = intent(1), intent(1)
    for item in (first, again):
        with state.begin() as tx:
            tx.intents.add([item], run_id=run, fence=1, at=AT)
    assert first.id == again.id
    with state.begin() as tx:
        assert len(tx.intents.unsettled()) == 1


def test_a_failed_block_leaves_nothing(state: State) -> None:
    """A transaction whose block raises is as if it had never been."""
    run = start(state)
    with pytest.raises(ZeroDivisionError), state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(1)], run_id=run, at=AT)
        raise ZeroDivisionError
    with state.begin() as tx:
        assert tx.bindings.get(SCOPE, [1]) == {}


def test_dead_letters_remember_their_first_run(state: State) -> None:
    """A record refused again counts its attempts and keeps the run that refused it first."""
    first, second = start(state), start(state)
    dead_letter = DeadLetter(
        RecordIdentity("s", "K", 1, 5, None, "f", 3), "mapping", "bad_value", "QTY", "is wrong", {"columns": []}, None
    )
    for run in (first, second):
        with state.begin() as tx:
            tx.dead_letters.put([dead_letter], run_id=run, at=AT)
    with state.begin() as tx:
        (found,) = tx.dead_letters.listed(limit=10)
        assert (found["first_run_id"], found["run_id"], found["attempts"]) == (first, second, 2)
        assert tx.dead_letters.facts("s") == [DeadLetterFacts(1, 5, None, "rejected", "whole")]
        tx.dead_letters.clear("s", [1])
        assert tx.dead_letters.listed(limit=10) == []


def test_a_waiting_record_keeps_its_since(state: State) -> None:
    """A record that waits for another night still says since when it waits."""
    run = start(state)
    product = {"resource": "product", "namespace": "w", "key": "P"}
    record = WaitingRecord(RecordIdentity("s", "K", 1, 5, None, "f", 3), [product], {})
    for at in (AT, AT + timedelta(days=1)):
        with state.begin() as tx:
            tx.waiting_records.put([record], run_id=run, at=at)
    with state.begin() as tx:
        assert tx.waiting_records.listed(limit=5)[0]["since"] == AT
        assert tx.waiting_records.of("s") == [record]


def test_intake_remembers_content_under_a_version(state: State) -> None:
    """A file is known by content and version: another mapping reads it again."""
    facts = FileFacts("a.csv", "c0ffee", 12, AT, "2026-03-29", AT)
    with state.begin() as tx:
        tx.intake.accept("s", "v1", [facts], at=AT)
        assert tx.intake.done("s", "v1") == {}
        assert tx.intake.unfinished("s") == {"c0ffee": facts}
        tx.intake.finish("s", "v1")
        assert tx.intake.done("s", "v1") == {"c0ffee": facts}
        assert tx.intake.done("s", "v2") == {}
        assert tx.intake.newest_stamp("s") == "2026-03-29"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    digits=st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**15), max_value=10**15),
    instant=st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.timezones()),  # noqa: DTZ001
    spent_until=st.floats(0, 4e9),
)
def test_not_a_cent_and_not_a_second_drifts(
    state: State, digits: Decimal, instant: datetime, spent_until: float
) -> None:
    """Decimals of 15 + 4 digits, instants of any zone and buckets come back equal."""
    run = start(state)
    bucket_state = BucketState(Bucket(10, 100, spent_until), LimitEstimate(10, "learned", 101, "told", agreed=3))
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(1, payload={"n": digits})], run_id=run, at=AT)
        tx.buckets.put("b", bucket_state)
        tx.runs.finish(run, status="done", requests=0, throttled=0, tally={}, error=None, at=instant)
        assert tx.bindings.get(SCOPE, [1])[1].payload == {"n": digits}
        assert tx.buckets.get("b") == bucket_state
        assert tx.runs.listed(limit=1)[0].finished_at == instant.astimezone(
            UTC
        )  # an ambiguous local time equals no other zone's


def test_a_time_without_zone_is_refused() -> None:
    """A naive time is a mistake of ours and never stored."""
    table = Table("t", MetaData(), Column("at", UtcDateTime))
    engine = create_engine("sqlite://")
    table.metadata.create_all(engine)
    with engine.begin() as connection, pytest.raises(Exception, match="needs a time zone"):
        connection.execute(insert(table), {"at": datetime(2026, 1, 1)})  # noqa: DTZ001
    engine.dispose()


def test_times_sort_as_text_on_sqlite() -> None:
    """On SQLite instants are text that sorts by time, whatever zone they came in."""
    table = Table("t", MetaData(), Column("n", Integer), Column("at", UtcDateTime))
    engine = create_engine("sqlite://")
    table.metadata.create_all(engine)
    east = timezone(timedelta(hours=9))
    with engine.begin() as connection:
        times = [datetime(2026, 1, 2, 3, tzinfo=UTC), datetime(2026, 1, 2, 11, tzinfo=east)]
        connection.execute(insert(table), [{"n": n, "at": at} for n, at in enumerate(times)])
        assert connection.execute(select(table.c.n).order_by(table.c.at)).scalars().all() == [1, 0]
    engine.dispose()


def test_init_is_harmless_twice(state_url: StateUrl) -> None:
    """The second init of the same platform finds the state and keeps it."""
    assert create(state_url, PIN)
    assert not create(state_url, PIN)


@pytest.mark.parametrize("pin", [Pin("https://other.example", "acme"), Pin(PIN.base_url, "umbrella")])
def test_a_state_of_another_platform_is_refused(state_url: StateUrl, pin: Pin) -> None:
    """A state is pinned to platform and tenant; neither opening nor init takes another's."""
    create(state_url, PIN)
    with pytest.raises(StateError, match="belongs to tenant 'acme'"):
        State(state_url, pin)
    with pytest.raises(StateError, match="belongs to tenant 'acme'"):
        create(state_url, pin)


def test_many_may_make_a_state_at_once(state_url: StateUrl) -> None:
    """One of them makes it, the others find it made."""
    begin = threading.Barrier(8)

    def make(_: int) -> bool:
        begin.wait()
        return create(state_url, PIN)

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(make, range(8))) == [False] * 7 + [True]
    State(state_url, PIN).close()


def test_a_missing_state_is_not_made_by_opening_it(state_url: StateUrl) -> None:
    """Only init makes a state: an empty one would send everything again."""
    with pytest.raises(StateError, match="no state here"):
        State(state_url, PIN)


def test_a_state_of_a_newer_version_is_refused(state_url: StateUrl) -> None:
    """An older crossdock keeps its hands off a newer state."""
    create(state_url, PIN)
    engine = create_engine(state_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE crossdock_meta SET value = '99' WHERE name = 'version'"))
    engine.dispose()
    with pytest.raises(StateError, match="supports versions up to"):
        State(state_url, PIN)


def test_an_upgrade_keeps_what_the_state_knows(state_url: StateUrl, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older state is refused until init has brought it up to date, step by step, with its bindings."""
    create(state_url, PIN)
    old = State(state_url, PIN)
    run = start(old)
    with old.begin() as tx:
        tx.bindings.put(SCOPE, [binding(1)], run_id=run, at=AT)
    old.close()
    steps = (
        lambda connection: connection.execute(text("CREATE TABLE later (n INTEGER)")),
        lambda connection: connection.execute(text("INSERT INTO later VALUES (3)")),
    )
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 2)
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, *steps))
    with pytest.raises(StateError, match="'crossdock init' upgrades it"):
        State(state_url, PIN)
    assert not create(state_url, PIN)
    assert not create(state_url, PIN)
    opened = State(state_url, PIN)
    with opened.begin() as tx:
        assert tx.bindings.get(SCOPE, [1]) == {1: binding(1)}
    opened.close()
    engine = create_engine(state_url)
    with engine.begin() as connection:
        assert connection.execute(text("SELECT n FROM later")).scalars().all() == [3]
        assert inspect(connection).has_table("bindings")
    engine.dispose()


def test_a_read_only_state_cannot_be_written(state_url: StateUrl) -> None:
    """A plan's handle on the state is refused every write by the database."""
    create(state_url, PIN)
    opened = State(state_url, PIN, read_only=True)
    with pytest.raises(StateError, match="(?i)read.?only"):
        start(opened)
    opened.close()


def test_two_writers_lose_no_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second writer waits for the first (BEGIN IMMEDIATE) and says who is to blame when it must give up."""
    monkeypatch.setattr(state_engine, "BUSY_S", 0.05)
    url = parse_url("sqlite:///s.db", tmp_path)
    create(url, PIN)
    one, two = State(url, PIN), State(url, PIN)
    with one.begin(), pytest.raises(StateError, match="locked") as refused, two.begin():
        pass
    assert "another crossdock" in str(refused.value)
    one.close()
    two.close()


@pytest.mark.parametrize("address", ["mysql://h/d", "sqlite://", "nonsense", "sqlite:///:memory:"])
def test_other_addresses_are_refused(address: str, tmp_path: Path) -> None:
    """Only a SQLite file and PostgreSQL hold a state."""
    with pytest.raises(ConfigError):
        parse_url(address, tmp_path)


def test_a_state_file_is_for_its_owner_only(tmp_path: Path) -> None:
    """The file holds personal data: others may not read it."""
    url = parse_url("sqlite:///s.db", tmp_path)
    create(url, PIN)
    assert (tmp_path / "s.db").stat().st_mode & 0o077 == 0


def test_a_file_accepted_under_an_older_mapping_is_read_on(state: State) -> None:
    """What was not worked through stays to be read under any version, until one has worked it through."""
    facts = FileFacts("f.csv", "c0ffee", 10, AT, "2026-03-29")
    with state.begin() as tx:
        tx.intake.accept("s", "v1", [facts], at=AT)
        assert set(tx.intake.unfinished("s")) == {"c0ffee"}
        tx.intake.accept("s", "v2", [facts], at=AT)
        tx.intake.finish("s", "v2")
        assert tx.intake.unfinished("s") == {}


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system takes no advice")
def test_many_rows_have_the_file_read_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first byte to the last, where looking up the rows would take the disk longer; else nothing is read."""
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, start, length, __: asked.append((start, length)))
    create(parse_url("sqlite:///state.db", tmp_path), PIN)
    size = (tmp_path / "state.db").stat().st_size
    with closing(State(parse_url("sqlite:///state.db", tmp_path), PIN)) as state:
        state.read_ahead(0)
        assert not asked
        state.read_ahead(10_000)
    assert asked[0][0] == 0
    assert all(start + length == after for (start, length), (after, _) in pairwise(asked))
    assert sum(asked[-1]) >= size


def test_reading_ahead_keeps_the_locks(tmp_path: Path) -> None:
    """Another process that comes and goes meanwhile is not the last one, which would remove the log of the writes."""
    url = parse_url("sqlite:///state.db", tmp_path)
    create(url, PIN)
    with closing(State(url, PIN)) as state:
        start(state)
        state.read_ahead(10**6)
        visit = (
            "import sqlite3, sys; file = sqlite3.connect(sys.argv[1]); file.execute('SELECT * FROM runs').fetchall()"
        )
        subprocess.run([sys.executable, "-c", f"{visit}; file.close()", tmp_path / "state.db"], check=True)
        assert (tmp_path / "state.db-wal").exists()
        assert start(state) == 2


def test_reading_ahead_is_never_needed(state: State, tmp_path: Path) -> None:
    """On PostgreSQL, and where the file is gone, it does nothing."""
    state.read_ahead(10**9)
    (tmp_path / "state.db").unlink(missing_ok=True)
    state.read_ahead(10**9)
