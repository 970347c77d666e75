"""One contract for every bucket store: for threads, for processes of one machine, and for hosts."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
from msgspec import structs
from sqlalchemy import create_engine, text
from tests.chaos import processes
from tests.integration.pacing import spender
from tests.waiting import eventually

from crossdock.errors import StateError
from crossdock.pacing.token_bucket import Bucket, BucketState, BucketStore, LimitEstimate, MemoryBucketStore
from crossdock.state import SharedBucket, StateUrl, parse_database_url
from crossdock.testing.manual_clock import ManualClock
from crossdock.testing.postgres_server import PostgresServer
from crossdock.values.clock import SystemClock

SLOW = LimitEstimate(1e-6, "set", 500, "set")  # no token is added while a test runs
Open = Callable[[LimitEstimate], BucketStore]


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the same bucket again; in memory all share one object."""
    address = "sqlite:///bucket.db"
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        address = server.create_database()
    url = parse_database_url(address, tmp_path)
    with ExitStack() as stack:
        made: list[BucketStore] = []

        def open_(estimate: LimitEstimate) -> BucketStore:
            if request.param == "memory":
                made.append(made[0] if made else MemoryBucketStore(SystemClock(), BucketState.from_estimate(estimate)))
            else:
                store = SharedBucket(url, SystemClock(), "b", lambda earlier: earlier or estimate)
                made.append(stack.enter_context(closing(store)))
            return made[-1]

        yield open_


def test_each_token_is_given_once(opened: Open) -> None:
    """Concurrent users get all tokens but the reserve, each with a unique number."""
    stores = [opened(SLOW) for _ in range(4)]

    def drain(store: BucketStore) -> list[tuple[int, int]]:
        ranges = []
        while (taken := store.take_available(7, 5)).count:
            ranges.append((taken.bucket_state.spent - taken.count + 1, taken.bucket_state.spent))
        return ranges

    with ThreadPoolExecutor(4) as pool:
        ranges = [each for drained in pool.map(drain, stores) for each in drained]
    numbers = sorted(number for first, last in ranges for number in range(first, last + 1))
    assert numbers == list(range(1, 496))


def test_concurrent_changes_are_not_lost(opened: Open) -> None:
    """All concurrent changes are applied, and visible to the next user."""
    stores = [opened(SLOW) for _ in range(4)]

    def refuse(store: BucketStore) -> None:
        for _ in range(25):
            store.change(lambda bucket_state, _: structs.replace(bucket_state, refused=bucket_state.refused + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(refuse, stores))
    assert stores[0].take_available(0, 0).bucket_state.refused == 100


def test_a_frozen_bucket_gives_nothing(opened: Open) -> None:
    """No token is available until the bucket thaws; reading changes nothing."""
    one, other = opened(SLOW), opened(SLOW)
    one.change(lambda bucket_state, now: structs.replace(bucket_state, frozen_until=now + 900))
    assert other.take_available(1, 0).count == 0
    one.change(lambda bucket_state, _: structs.replace(bucket_state, frozen_until=0.0))
    assert (other.take_available(0, 0).count, other.take_available(1, 0).count) == (0, 1)


def test_an_estimate_is_shared_by_all_users(opened: Open) -> None:
    """A limit that one user has learned applies to all, with its level."""
    one, other = opened(SLOW), opened(SLOW)
    learned = LimitEstimate(20.0, "learned", 70, "reported", agreed=3)
    one.change(lambda _, now: BucketState(Bucket(20.0, 70).with_level(now, 30), learned))
    bucket_state, now = (seen := other.take_available(0, 0)).bucket_state, seen.now
    assert bucket_state.estimate == learned
    assert 30 <= bucket_state.bucket.level(now) <= 70


def test_a_negative_reserve_lends_tokens(opened: Open) -> None:
    """A reserve below zero leaves a debt."""
    store = opened(structs.replace(SLOW, burst=3))
    assert store.take_available(10, -4).count == 7
    assert store.take_available(1, 0).bucket_state.bucket.level(0.0) < 0


def test_a_newly_configured_limit_applies_to_all(state_url: StateUrl) -> None:
    """A process with another configured limit changes it for all; spent tokens stay spent."""
    clock = SystemClock()
    with closing(SharedBucket(state_url, clock, "b", lambda _: SLOW)) as first:
        first.take_available(400, 0)
        with closing(SharedBucket(state_url, clock, "b", lambda _: structs.replace(SLOW, burst=200))):
            seen = first.take_available(0, 0)
    assert seen.bucket_state.estimate.burst == 200
    assert seen.bucket_state.bucket.level(seen.now) <= 0.01


def test_an_unavailable_database_gives_nothing_and_then_raises(tmp_path: Path) -> None:
    """Without its database a bucket is empty and retried every second; after a minute an error is raised."""
    clock, url = ManualClock(), StateUrl.create("sqlite", database=str(tmp_path / "b.db"))
    with closing(SharedBucket(url, clock, "b", lambda _: SLOW)) as store:
        beside = create_engine(url)
        with beside.begin() as connection:
            connection.execute(text("ALTER TABLE buckets RENAME TO away"))
        for _ in range(5):
            nothing = store.take_available(10, 0)
            assert nothing.count == 0
            assert nothing.bucket_state.wait_s(nothing.now, 0) == pytest.approx(1.0)
            clock.advance(10)
        with beside.begin() as connection:
            connection.execute(text("ALTER TABLE away RENAME TO buckets"))
        assert store.take_available(10, 0).count == 10
        with beside.begin() as connection:
            connection.execute(text("DROP TABLE buckets"))
        beside.dispose()
        assert store.take_available(1, 0).count == 0
        clock.advance(61)
        with pytest.raises(StateError, match="cannot be used"):
            store.take_available(1, 0)


def test_a_bucket_may_be_created_concurrently(state_url: StateUrl) -> None:
    """Users that create it at the same time share one bucket."""
    begin = threading.Barrier(8)

    def take(_: int) -> int:
        begin.wait()
        with closing(SharedBucket(state_url, SystemClock(), "b", lambda earlier: earlier or SLOW)) as store:
            return store.take_available(100, 0).count

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take, range(8))) == 500


def test_processes_share_a_bucket(state_url: StateUrl, tmp_path: Path) -> None:
    """Four processes, one of them killed and started again: in no window more tokens than the bucket allows."""
    url = state_url.render_as_string(hide_password=False)
    logs = [tmp_path / f"{n}.log" for n in range(4)]

    def start(log: Path, wanted: int) -> ForkServerProcess:
        command = ["-m", "tests.integration.pacing.spender", url, str(tmp_path), str(log), str(wanted)]
        return processes.start(command, os.environ)

    running = [start(log, 250) for log in logs]
    eventually(lambda: logs[0].exists() and len(logs[0].read_text().splitlines()) > 3)
    running[0].kill()
    running[0].join()
    running[0] = start(logs[0], 150)
    for process in running:
        process.join(60)
    assert [process.exitcode for process in running] == [0, 0, 0, 0]
    takes = sorted(
        (float(at), int(count)) for log in logs for at, count in map(str.split, log.read_text().splitlines())
    )
    total, sums = 0, [0]
    for _, count in takes:
        sums.append(total := total + count)
    for first in range(len(takes)):
        for last in range(first, len(takes)):
            window = takes[last][0] - takes[first][0]
            assert sums[last + 1] - sums[first] <= spender.BURST + spender.RATE * window + 1e-3
    assert all(sum(int(line.split()[1]) for line in log.read_text().splitlines()) >= 250 for log in logs[1:])
