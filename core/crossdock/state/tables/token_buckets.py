"""Token buckets in a database: the state's own, and one that several processes or hosts share."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import structs
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Double,
    case,
    cast,
    func,
    insert,
    inspect,
    literal,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql.dml import ReturningUpdate

from crossdock.errors import StateError
from crossdock.pacing.token_bucket import Bucket, BucketState, LimitEstimate, TakenTokens
from crossdock.state.db import sql_types_and_statements
from crossdock.state.db.database_opening_and_errors import (
    StateUrl,
    begin_exclusive_schema_change,
    begin_read_only_connection,
    database_errors_as_state_errors,
    open_or_create_less_durable_database,
)
from crossdock.state.db.schema import buckets
from crossdock.values.clock import Clock

UNAVAILABLE_AT_MOST_S = 60.0  # a database that restarts is back by then; nothing is sent meanwhile
RETRY_S = 1.0
SET_BACK_S = 10.0  # a clock may be behind by the time a statement waited for a lock; one further behind was set back
LONG_AGO = 0.0  # when an unused bucket was full; databases spell infinity differently
ROUNDING = 1e-6


class StateBuckets:
    """The state's own buckets, used by one run at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, name: str) -> BucketState | None:
        row = self._connection.execute(select(buckets).where(buckets.c.name == name)).mappings().one_or_none()
        return None if row is None else _bucket_state_of_row(row)

    def put(self, name: str, bucket_state: BucketState) -> None:
        sql_types_and_statements.upsert_rows(
            self._connection, buckets, [{"name": name, **_row_of_bucket_state(bucket_state)}]
        )


class SharedBucket:
    """A `BucketStore` in SQLite, for processes of one machine, or PostgreSQL, for hosts.

    One statement takes tokens, on the clock of the database, or for a file on the time since this machine started,
    which cannot be set. While the database is unavailable no tokens are granted; after `UNAVAILABLE_AT_MOST_S` it
    raises StateError.
    """

    def __init__(
        self, url: StateUrl, clock: Clock, name: str, estimate: Callable[[LimitEstimate | None], LimitEstimate]
    ) -> None:
        self._url, self._clock, self._name = url, clock, name
        self._engine = open_or_create_less_durable_database(url)
        self._failing_since: float | None = None
        with database_errors_as_state_errors(url), begin_read_only_connection(self._engine) as connection:
            exists = _has_current_table(connection)
        if not exists:
            with database_errors_as_state_errors(url), begin_exclusive_schema_change(self._engine) as connection:
                if not _has_current_table(connection):
                    buckets.drop(connection, checkfirst=True)  # an older version's; its level is lost
                    buckets.create(connection)
        with database_errors_as_state_errors(url):
            self._insert_if_missing(BucketState.from_estimate(estimate(None)))
        with database_errors_as_state_errors(url), self._engine.begin() as connection:
            self._seen = TakenTokens(0, *self._read_locked(connection))
        self._seen_at = clock.monotonic()
        current = estimate(self._seen.bucket_state.estimate)
        if current != self._seen.bucket_state.estimate:
            self.change(lambda bucket_state, now: bucket_state.carried_to_next_run(now, current))

    def _insert_if_missing(self, bucket_state: BucketState) -> None:
        try:
            with self._engine.begin() as connection:
                found = connection.execute(select(buckets.c.name).where(buckets.c.name == self._name)).scalar()
                if found is None:
                    connection.execute(insert(buckets).values(name=self._name, **_row_of_bucket_state(bucket_state)))
        except IntegrityError:
            return  # another process was first

    def take_available(self, wanted: int, reserve: int) -> TakenTokens:
        """Take at most *wanted* tokens and leave *reserve*. Zero only reads the bucket."""

        def work(connection: Connection) -> TakenTokens:
            row = connection.execute(self._take_statement(connection, wanted, reserve)).mappings().one()
            return TakenTokens(row["granted"], _bucket_state_of_row(row), row["at"])

        return self._run_or_grant_nothing(work)

    def change(self, change: Callable[[BucketState, float], BucketState]) -> TakenTokens:
        """Replace the bucket by the result of *change*, which gets the bucket and the database's time."""

        def work(connection: Connection) -> TakenTokens:
            old, now = self._read_locked(connection)
            new = structs.replace(change(old, now), as_of=max(now, old.as_of))
            connection.execute(update(buckets).where(buckets.c.name == self._name).values(**_row_of_bucket_state(new)))
            return TakenTokens(0, new, now)

        return self._run_or_grant_nothing(work)

    def close(self) -> None:
        self._engine.dispose()

    def _run_or_grant_nothing(self, work: Callable[[Connection], TakenTokens]) -> TakenTokens:
        started = self._clock.monotonic()
        try:
            with database_errors_as_state_errors(self._url), self._engine.begin() as connection:
                taken = work(connection)
        except StateError:
            self._failing_since = started if self._failing_since is None else self._failing_since
            if started - self._failing_since > UNAVAILABLE_AT_MOST_S:
                raise
            now = self._seen.now + started - self._seen_at
            return TakenTokens(0, structs.replace(self._seen.bucket_state, frozen_until=now + RETRY_S), now)
        self._seen, self._seen_at, self._failing_since = taken, started, None
        return taken

    def _read_locked(self, connection: Connection) -> tuple[BucketState, float]:
        query = select(buckets).where(buckets.c.name == self._name).with_for_update()
        bucket_state = _bucket_state_of_row(connection.execute(query).mappings().one())
        now = connection.execute(select(self._current_time(connection))).scalar_one()
        return bucket_state.adjusted_to_clock(now, SET_BACK_S), now

    def _current_time(self, connection: Connection) -> ColumnElement[float]:
        if connection.dialect.name == "sqlite":
            return literal(self._clock.monotonic(), Double)
        return cast(func.extract("epoch", func.clock_timestamp()), Double)

    def _take_statement(self, connection: Connection, wanted: int, reserve: int) -> ReturningUpdate[Any]:
        """Build the one statement. Its time may be from before it waited for a lock, which only grants fewer tokens."""
        c, now = buckets.c, self._current_time(connection)
        statement = update(buckets).where(c.name == self._name)
        if connection.dialect.name != "sqlite":  # a volatile function: evaluated once, at the start
            present = select(literal(self._name).label("name"), now.label("now")).cte("present")
            now, statement = present.c.now, statement.where(c.name == present.c.name)
        ahead = c.as_of - now
        back = case((ahead > SET_BACK_S, ahead), else_=literal(0.0, Double))
        spent_before, frozen_until = c.spent_until - back, c.frozen_until - back
        level = _lesser_of(c.burst - (spent_before - now) * c.rate_per_s, c.burst)
        available = _greater_of(level + ROUNDING - reserve, literal(0, Double))
        whole = cast(available if connection.dialect.name == "sqlite" else func.floor(available), BigInteger)
        granted = case((frozen_until > now, 0), else_=_lesser_of(whole, literal(wanted, BigInteger)))
        spent_until = case((granted > 0, _greater_of(spent_before, now) + granted / c.rate_per_s), else_=spent_before)
        values = {
            "granted": granted,
            "spent": c.spent + granted,
            "spent_until": spent_until,
            "frozen_until": frozen_until,
            "as_of": _greater_of(c.as_of - back, now),
        }
        return statement.values(**values).returning(buckets, now.label("at"))


def _lesser_of(one: ColumnElement[Any], other: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((one < other, one), else_=other)


def _greater_of(one: ColumnElement[Any], other: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((one > other, one), else_=other)


def _row_of_bucket_state(bucket_state: BucketState) -> dict[str, Any]:
    estimate = {name: value for name, value in structs.asdict(bucket_state.estimate).items() if value != math.inf}
    bucket = bucket_state.bucket
    return {
        "rate_per_s": bucket.rate_per_s,
        "burst": bucket.burst,
        "spent_until": max(bucket.spent_until, LONG_AGO),
        "frozen_until": bucket_state.frozen_until,
        "as_of": bucket_state.as_of,
        "spent": bucket_state.spent,
        "refused": bucket_state.refused,
        "granted": 0,
        "known": json.dumps(estimate),
    }


def _bucket_state_of_row(row: Mapping[Any, Any]) -> BucketState:
    bucket = Bucket(row["rate_per_s"], row["burst"], row["spent_until"])
    estimate = LimitEstimate(**json.loads(row["known"]))
    return BucketState(bucket, estimate, row["spent"], row["refused"], row["frozen_until"], row["as_of"])


def _has_current_table(connection: Connection) -> bool:
    found = inspect(connection)
    return found.has_table(buckets.name) and {each["name"] for each in found.get_columns(buckets.name)} == {
        *buckets.c.keys()
    }
