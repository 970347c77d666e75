"""One contract for every place where a bucket lives: threads, processes of one machine, hosts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from tests.integration.pacing import spender
from tests.waiting import eventually

from crossdock.clock import SystemClock
from crossdock.errors import StateError
from crossdock.pacing.bucket_store import BucketState, BucketStore, MemoryStore
from crossdock.pacing.limit_estimate import LimitEstimate
from crossdock.pacing.token_bucket import Bucket
from crossdock.state import SharedBucket, StateUrl, parse_url
from crossdock.testing.manual_clock import ManualClock
from crossdock.testing.postgres_server import PostgresServer

SLOW = LimitEstimate(1e-6, "set", 500, "set")  # nothing comes back while a test runs
Open = Callable[[LimitEstimate], BucketStore]


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the same bucket once more; in memory there is one object for all."""
    address = "sqlite:///bucket.db"
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        address = server.create_database()
    url = parse_url(address, tmp_path)
    with ExitStack() as stack:
        made: list[BucketStore] = []

        def open_(known: LimitEstimate) -> BucketStore:
            if request.param == "memory":
                made.append(made[0] if made else MemoryStore(SystemClock(), BucketState.of(known)))
            else:
                store = SharedBucket(url, SystemClock(), "b", lambda earlier: earlier or known)
                made.append(stack.enter_context(closing(store)))
            return made[-1]

        yield open_


def test_each_token_is_given_once(opened: Open) -> None:
    """However many take at the same time, they get all tokens but the reserve, and each a number of its own."""
    stores = [opened(SLOW) for _ in range(4)]

    def drain(store: BucketStore) -> list[tuple[int, int]]:
        grants = []
        while (grant := store.take(7, 5)).count:
            grants.append((grant.bucket_state.spent - grant.count + 1, grant.bucket_state.spent))
        return grants

    with ThreadPoolExecutor(4) as pool:
        grants = [grant for taken in pool.map(drain, stores) for grant in taken]
    numbers = sorted(number for first, last in grants for number in range(first, last + 1))
    assert numbers == list(range(1, 496))


def test_a_change_is_seen_by_all_and_loses_no_other(opened: Open) -> None:
    """Changes made at the same time all count, and whoever takes next sees them."""
    stores = [opened(SLOW) for _ in range(4)]

    def refuse(store: BucketStore) -> None:
        for _ in range(25):
            store.change(lambda bucket_state, _: replace(bucket_state, refused=bucket_state.refused + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(refuse, stores))
    assert stores[0].take(0, 0).bucket_state.refused == 100


def test_a_frozen_bucket_gives_nothing(opened: Open) -> None:
    """While the server wants not to be asked, nobody gets a token; a look is no attempt."""
    one, other = opened(SLOW), opened(SLOW)
    one.change(lambda bucket_state, now: replace(bucket_state, frozen_until=now + 900))
    assert other.take(1, 0).count == 0
    one.change(lambda bucket_state, _: replace(bucket_state, frozen_until=0.0))
    assert (other.take(0, 0).count, other.take(1, 0).count) == (0, 1)


def test_what_is_known_is_known_to_all(opened: Open) -> None:
    """A limit that one of them has learned is the limit of all, with its level."""
    one, other = opened(SLOW), opened(SLOW)
    learned = LimitEstimate(20.0, "learned", 70, "told", agreed=3)
    one.change(lambda _, now: BucketState(Bucket(20.0, 70).holding(now, 30), learned))
    bucket_state, now = (grant := other.take(0, 0)).bucket_state, grant.now
    assert bucket_state.known == learned
    assert 30 <= bucket_state.bucket.level(now) <= 70


def test_a_check_may_go_below_the_bottom(opened: Open) -> None:
    """A reserve below zero lends tokens, and they are owed."""
    store = opened(replace(SLOW, burst=3))
    assert store.take(10, -4).count == 7
    assert store.take(1, 0).bucket_state.bucket.level(0.0) < 0


def test_what_a_person_sets_counts_from_then_on(state_url: StateUrl) -> None:
    """A process whose config says another limit changes it for all; what is spent stays spent."""
    clock = SystemClock()
    with closing(SharedBucket(state_url, clock, "b", lambda _: SLOW)) as first:
        first.take(400, 0)
        with closing(SharedBucket(state_url, clock, "b", lambda _: replace(SLOW, burst=200))):
            seen = first.take(0, 0)
    assert seen.bucket_state.known.burst == 200
    assert seen.bucket_state.bucket.level(seen.now) <= 0.01


def test_a_database_that_is_away_gives_nothing_and_ends_in_an_error(tmp_path: Path) -> None:
    """Without its database a bucket is empty, asked again each second, and after a minute the run is told."""
    clock, url = ManualClock(), StateUrl.create("sqlite", database=str(tmp_path / "b.db"))
    with closing(SharedBucket(url, clock, "b", lambda _: SLOW)) as store:
        beside = create_engine(url)
        with beside.begin() as connection:
            connection.execute(text("ALTER TABLE buckets RENAME TO away"))
        for _ in range(5):
            grant = store.take(10, 0)
            assert grant.count == 0
            assert grant.bucket_state.wait_s(grant.now, 0) == pytest.approx(1.0)
            clock.advance(10)
        with beside.begin() as connection:
            connection.execute(text("ALTER TABLE away RENAME TO buckets"))
        assert store.take(10, 0).count == 10
        with beside.begin() as connection:
            connection.execute(text("DROP TABLE buckets"))
        beside.dispose()
        assert store.take(1, 0).count == 0
        clock.advance(61)
        with pytest.raises(StateError, match="cannot be used"):
            store.take(1, 0)


def test_a_bucket_may_be_new_to_many(state_url: StateUrl) -> None:
    """Those who open it first at the same time all get the same one."""
    begin = threading.Barrier(8)

    def take(_: int) -> int:
        begin.wait()
        with closing(SharedBucket(state_url, SystemClock(), "b", lambda known: known or SLOW)) as store:
            return store.take(100, 0).count

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take, range(8))) == 500


def test_processes_share_a_bucket(state_url: StateUrl, tmp_path: Path) -> None:
    """Four processes, one of them killed and started again: in no window more than the bucket gives."""
    url = state_url.render_as_string(hide_password=False)
    logs = [tmp_path / f"{n}.log" for n in range(4)]

    def start(log: Path, wanted: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.integration.pacing.spender", url, str(tmp_path), str(log), str(wanted)]
        return subprocess.Popen(command, env=dict(os.environ))

    running = [start(log, 250) for log in logs]
    eventually(lambda: logs[0].exists() and len(logs[0].read_text().splitlines()) > 3)
    running[0].send_signal(signal.SIGKILL)
    running[0].wait()
    running[0] = start(logs[0], 150)
    assert [process.wait(60) for process in running] == [0, 0, 0, 0]
    grants = sorted(
        (float(at), int(count)) for log in logs for at, count in map(str.split, log.read_text().splitlines())
    )
    total, sums = 0, [0]
    for _, count in grants:
        sums.append(total := total + count)
    for first in range(len(grants)):
        for last in range(first, len(grants)):
            window = grants[last][0] - grants[first][0]
            assert sums[last + 1] - sums[first] <= spender.BURST + spender.RATE * window + 1e-3
    assert all(sum(int(line.split()[1]) for line in log.read_text().splitlines()) >= 250 for log in logs[1:])
