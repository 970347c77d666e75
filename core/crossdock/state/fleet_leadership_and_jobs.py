"""The database of a fleet: the scheduler that leads it, and the last known facts about each tenant's jobs.

It only saves opening the state of each tenant, and is read from the states again if it is lost. It may lag behind them
but is never ahead, because it is written after a run has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Boolean, Column, Connection, Double, Integer, MetaData, String, Table, Text, delete, inspect
from sqlalchemy import select as select_columns

from crossdock.errors import StateError
from crossdock.state.db import run_lease, schema, schema_migrations, sql_types_and_statements
from crossdock.state.db.database_opening_and_errors import (
    StateUrl,
    begin_exclusive_schema_change,
    begin_read_only_connection,
    database_errors_as_state_errors,
    open_or_create_less_durable_database,
    url_without_password,
)
from crossdock.state.db.sql_types_and_statements import UtcDateTime
from crossdock.state.tables.scheduled_runs import ScheduledRun

_metadata = MetaData()
_jobs = Table(
    "fleet_jobs",
    _metadata,
    Column("tenant", String(64), primary_key=True),
    Column("job", String(64), primary_key=True),
    Column("since", UtcDateTime, nullable=False),
    Column("paused", Boolean, nullable=False),
    Column("expected_s", Double),
    Column("has_pending_notice", Boolean, nullable=False),
    Column("last_success", UtcDateTime),
    Column("due", UtcDateTime),  # of the last finished run, as all columns below
    Column("business_date", String(10)),
    Column("status", String(16)),
    Column("attempts", Integer),
    Column("run_id", Integer),
    Column("started_at", UtcDateTime),
    Column("finished_at", UtcDateTime),
    Column("note", Text),
)
_LAST = ("due", "business_date", "status", "attempts", "run_id", "started_at", "finished_at", "note")
_NAMES = tuple(column.name for column in _jobs.columns)


@dataclass(frozen=True, slots=True)
class JobFacts:
    """The known facts about one job of a tenant, with the finished run that was due *last*.

    *expected_s* is None until a run has completed. With *has_pending_notice*, people may not know of a run.
    *last_success* is when the last run ended after which no record was open.
    """

    job: str
    since: datetime
    paused: bool
    expected_s: float | None = None
    last: ScheduledRun | None = None
    has_pending_notice: bool = False
    last_success: datetime | None = None


class FleetDatabase:
    """An open fleet database, created if it does not exist. Every method raises StateError if it fails."""

    def __init__(self, url: StateUrl) -> None:
        self._url = url
        with database_errors_as_state_errors(url):
            self._engine = open_or_create_less_durable_database(url)
        try:
            self._create_tables_unless_current()
        except BaseException:
            self._engine.dispose()
            raise

    def _create_tables_unless_current(self) -> None:
        with database_errors_as_state_errors(self._url), begin_read_only_connection(self._engine) as connection:
            if _has_current_tables(connection, self._url):
                return
        with database_errors_as_state_errors(self._url), begin_exclusive_schema_change(self._engine) as connection:
            if _has_current_tables(connection, self._url):
                return
            _metadata.drop_all(connection)  # older tables are read from the states again
            _metadata.create_all(connection)
            if not inspect(connection).has_table(schema.leases.name):
                schema.leases.create(connection)
                schema_migrations.insert_free_lease(connection)

    @contextmanager
    def hold_leadership(self, owner: str) -> Iterator[FleetLeader]:
        """Lead the fleet as its only scheduler. Raises StateBusyError if another one leads it."""
        with (
            database_errors_as_state_errors(self._url),
            run_lease.hold_run_lease(self._engine, self._url, owner) as lease,
        ):
            yield FleetLeader(self, lease)

    def job_facts_by_tenant(self) -> dict[str, dict[str, JobFacts]]:
        found: dict[str, dict[str, JobFacts]] = {}
        with database_errors_as_state_errors(self._url), begin_read_only_connection(self._engine) as connection:
            for row in connection.execute(select_columns(_jobs)).mappings():
                found.setdefault(row["tenant"], {})[row["job"]] = _job_facts_of_row(row)
        return found

    def close(self) -> None:
        self._engine.dispose()


class FleetLeader:
    """The writes of the leading scheduler. They raise StateError if another scheduler has taken over."""

    def __init__(self, database: FleetDatabase, lease: run_lease.Lease) -> None:
        self._database, self._lease = database, lease

    def write_job_facts(self, known: Mapping[str, Iterable[JobFacts]]) -> None:
        """Store facts about the jobs of tenants. An empty mapping only confirms that this scheduler leads."""
        rows = [_row_of_job_facts(tenant, facts) for tenant, each in known.items() for facts in each]
        with self._leader_transaction() as connection:
            sql_types_and_statements.upsert_rows(connection, _jobs, rows)

    def delete_job_facts_of_tenants(self, tenants: Sequence[str]) -> None:
        with self._leader_transaction() as connection:
            for some in sql_types_and_statements.chunks_of_in_list(tenants):
                connection.execute(delete(_jobs).where(_jobs.c.tenant.in_(some)))

    @contextmanager
    def _leader_transaction(self) -> Iterator[Connection]:
        with database_errors_as_state_errors(self._database._url), self._database._engine.begin() as connection:  # noqa: SLF001  its own part
            self._lease.renew(connection)
            yield connection


def _has_current_tables(connection: Connection, url: StateUrl) -> bool:
    found = inspect(connection)
    if found.has_table(schema.meta.name):
        hint = "give the fleet a database of its own"
        raise StateError(
            "is the state of a tenant, not the database of a fleet",
            where=url_without_password(url),
            hint=hint,
            code="state_of_a_tenant",
        )
    if not found.has_table(_jobs.name):
        return False
    return {each["name"] for each in found.get_columns(_jobs.name)} == set(_NAMES)


def _job_facts_of_row(row: Mapping[Any, Any]) -> JobFacts:
    last = None
    if row["due"] is not None:
        values = {name: row[name] for name in ("job", *_LAST)}
        last = ScheduledRun(**{**values, "business_date": date.fromisoformat(row["business_date"])})
    names = ("job", "since", "paused", "expected_s", "has_pending_notice", "last_success")
    return JobFacts(**{name: row[name] for name in names}, last=last)


def _row_of_job_facts(tenant: str, facts: JobFacts) -> dict[str, object]:
    last = facts.last
    row: dict[str, object] = {
        "tenant": tenant,
        "job": facts.job,
        "since": facts.since,
        "paused": facts.paused,
        "expected_s": facts.expected_s,
        "has_pending_notice": facts.has_pending_notice,
        "last_success": facts.last_success,
    }
    row |= {name: None if last is None else getattr(last, name) for name in _LAST}
    return row | {"business_date": None if last is None else last.business_date.isoformat()}
