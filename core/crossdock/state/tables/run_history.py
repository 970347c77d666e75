"""Runs: their beginning, end, messages, requests and effective configs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from msgspec import Struct, field, structs
from sqlalchemy import (
    ColumnElement,
    Connection,
    Text,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    select,
    type_coerce,
    update,
)

from crossdock.state.db import run_lease, sql_types_and_statements
from crossdock.state.db.schema import configs, intents, meta, run_messages, runs
from crossdock.state.tables.intents_and_stored_batches import UNSETTLED
from crossdock.values import exact_json
from crossdock.values.run_progress_and_messages import RunMessage
from crossdock.values.run_states_and_tally import NOTHING_OPEN, OpenCounts

_RESTORED, _COMPARED, _LAST_INTENT = "restored_at", "restored_compared", "restored_intents"
_REMEMBERED = "restored_remembers"
_STOPPED = "stop_run"
_REMOVED_UNTIL = "runs_removed_until"
COMPLETED: frozenset[str] = frozenset({"done", "degraded"})  # statuses of runs that reached their end
UNRECORDED = RunMessage(
    "error", "", "its end was not recorded: the process was killed or could not write the state", code="unrecorded"
)


class RunRecord(Struct, frozen=True):
    """One run.

    Attributes:
        duration_ms: None while it runs, and if its end was not recorded.
        status: ``running``, ``done``, ``degraded`` (completed, but records are open), ``incomplete`` (stopped before
            its end), ``failed`` (could not begin, or met a defect of crossdock).
        timings: `crossdock.runs.run_report.Timings.as_json`; only `Runs.get` loads them.
        command: The command that started it; None for a job and for older runs.
    """

    id: int
    job: str | None
    business_date: str
    started_at: datetime
    finished_at: datetime | None
    status: str
    requests: int
    throttled: int
    tally: dict[str, Any] | None
    duration_ms: int | None
    command: str | None = None
    messages: tuple[RunMessage, ...] = ()
    timings: dict[str, Any] | None = None

    @property
    def duration(self) -> timedelta | None:
        return None if self.duration_ms is None else timedelta(milliseconds=self.duration_ms)

    @property
    def open_record_counts(self) -> OpenCounts | None:
        """The open records of all streams at its end; None if that is unknown, as for a killed run."""
        counts = [OpenCounts.of_json(each["open"]) for each in (self.tally or {}).values() if "open" in each]
        return sum(counts, NOTHING_OPEN) if counts else None


class StreamTally(Struct, frozen=True):
    """The numbers of one stream in the tally of a run. *open* is None if the run did not count it."""

    records: dict[str, int]
    open: dict[str, int] | None = None


class RunTally(NamedTuple):
    business_date: str
    status: str
    requests: int
    throttled: int
    streams: Mapping[str, StreamTally]


class RunCountOfDate(Struct, frozen=True):
    """The number of runs of one job, or of none, for a business date that ended alike, and the newest of them."""

    job: str | None
    business_date: str
    status: str
    number: int
    newest: int


class RunResult(Struct, frozen=True):
    """How a run ended; the attributes are those of `RunRecord`."""

    status: str
    requests: int = 0
    throttled: int = 0
    tally: dict[str, Any] = field(default_factory=dict)
    duration_ms: int = 0
    messages: Iterable[RunMessage] = ()
    timings: dict[str, Any] | None = None


_LISTED = tuple(runs.c[name] for name in RunRecord.__struct_fields__ if name not in {"messages", "timings"})
_MESSAGE = tuple(run_messages.c[name] for name in RunMessage.__slots__)

_COUNT_REQUESTS = sql_types_and_statements.BulkStatement(  # written with every turn of a delivery
    update(runs)
    .where(runs.c.id == bindparam("run"))
    .values(requests=bindparam("requests"), throttled=bindparam("throttled"))
)


_SUMS_OF_TALLY = exact_json.typed_canonical_reader(dict[str, StreamTally])


class Runs:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def start(self, *, business_date: str, at: datetime, job: str | None = None, command: str | None = None) -> int:
        started = {"job": job, "command": None if job else command, "started_at": at}
        row = {"business_date": business_date, "status": "running", "fence": run_lease.FENCE} | started
        result = self._connection.execute(insert(runs).values(row))
        assert result.inserted_primary_key is not None
        return int(result.inserted_primary_key[0])

    def reopen_last_if_ended(self, *, business_date: str, job: str) -> RunRecord | None:
        """Continue the last run of *job* if it is of this date and has reached its end, for all streams or for some."""
        query = select(runs.c.id).where(runs.c.job == job).order_by(runs.c.id.desc()).limit(1)
        newest = self._connection.execute(query).scalar()
        last = None if newest is None else self.get(newest)
        if last is None or last.business_date != business_date or not _has_reached_its_end(last):
            return None
        again = {"status": "running", "fence": run_lease.FENCE, "finished_at": None, "duration_ms": None}
        self._connection.execute(update(runs).where(runs.c.id == last.id).values(again))
        return last

    def record_failed_start(
        self, message: RunMessage, *, business_date: str, at: datetime, job: str | None, command: str | None = None
    ) -> int:
        """Record that a run could not begin, once for repeated attempts in a row, and return the run's id."""
        newest = select(runs.c.id).where(runs.c.job.is_not_distinct_from(job)).order_by(runs.c.id.desc()).limit(1)
        known = self._connection.execute(newest).scalar()
        last = None if known is None else self.get(known)
        same = business_date, None if job else command, None, (message,)
        if last is not None and (last.business_date, last.command, last.tally, last.messages) == same:
            self._connection.execute(update(runs).where(runs.c.id == last.id).values(finished_at=at))
            return last.id
        run_id = self.start(business_date=business_date, at=at, job=job, command=command)
        changes = {"status": "failed", "finished_at": at, "duration_ms": 0}
        self._connection.execute(update(runs).where(runs.c.id == run_id).values(changes))
        self._write_messages(run_id, [message])
        return run_id

    def follows_failed_start(self, run_id: int) -> bool:
        """Return whether the run before it, of the same job and date, could not begin or was killed."""
        before, this = runs.alias(), select(runs).where(runs.c.id == run_id).subquery()
        same = before.c.job == this.c.job, before.c.business_date == this.c.business_date
        query = select(before.c.status, before.c.tally).where(before.c.id < run_id, *same)
        last = self._connection.execute(query.order_by(before.c.id.desc()).limit(1)).first()
        return last is not None and last.status in {"failed", "incomplete"} and last.tally is None

    def mark_running_runs_as_killed(self, *, at: datetime) -> list[RunRecord]:
        """Mark all running runs as incomplete, and return them. Only the holder of the run lease may do so."""
        found = [
            RunRecord(**row)
            for row in self._connection.execute(select(*_LISTED).where(runs.c.status == "running")).mappings()
        ]
        for run_id in (each.id for each in found):
            self._write_messages(run_id, (*self.messages(run_id), UNRECORDED))
            changes = {"status": "incomplete", "finished_at": at}
            self._connection.execute(update(runs).where(runs.c.id == run_id).values(changes))
        return found

    def request_stop(self, run_id: int) -> None:
        """Ask the run to stop in order. It looks every second."""
        sql_types_and_statements.upsert_rows(self._connection, meta, [{"name": _STOPPED, "value": str(run_id)}])

    def is_stop_requested(self, run_id: int) -> bool:
        query = select(meta.c.value).where(meta.c.name == _STOPPED)
        return self._connection.execute(query).scalar() == str(run_id)

    def store_request_counts(self, run_id: int, *, requests: int, throttled: int) -> None:
        """Store how many requests the run has sent so far, so that the number is known if the run is killed."""
        columns = {"run": [run_id], "requests": [requests], "throttled": [throttled]}
        _COUNT_REQUESTS.run(self._connection, columns)

    def finish(self, run_id: int, result: RunResult, *, at: datetime) -> None:
        self._connection.execute(delete(meta).where(meta.c.name == _STOPPED, meta.c.value == str(run_id)))
        changes = {name: getattr(result, name) for name in RunResult.__struct_fields__ if name != "messages"}
        self._connection.execute(update(runs).where(runs.c.id == run_id).values({**changes, "finished_at": at}))
        self._write_messages(run_id, result.messages)

    def declare_state_restored(self, *, at: datetime, newest_change: datetime | None = None) -> None:
        """Mark this state as a restored backup. Only the first declaration sets *newest_change*.

        Args:
            newest_change: See `newest_change_in_backup`.
        """
        before = self.newest_change_in_backup() if self.is_state_restored() else newest_change
        last = self._connection.execute(select(func.max(intents.c.id))).scalar_one() or 0
        rows = [{"name": _RESTORED, "value": at.isoformat()}, {"name": _LAST_INTENT, "value": str(last)}]
        sql_types_and_statements.upsert_rows(self._connection, meta, rows)
        self._connection.execute(delete(meta).where(meta.c.name.in_([_COMPARED, _REMEMBERED])))
        if before is not None:
            sql_types_and_statements.upsert_rows(
                self._connection, meta, [{"name": _REMEMBERED, "value": before.isoformat()}]
            )
        was_resolved = intents.c.status.in_(UNSETTLED), intents.c.resolved_at.is_not(None)
        self._connection.execute(update(intents).where(*was_resolved).values(resolved_at=None))  # it may be sent since

    def is_state_restored(self) -> bool:
        """Return True from `declare_state_restored` until a complete run calls `forget_state_was_restored`."""
        return self._connection.execute(select(meta.c.value).where(meta.c.name == _RESTORED)).first() is not None

    def newest_change_in_backup(self) -> datetime | None:
        """Return when the newest record that a restored backup knows was changed; None if that is unknown."""
        found = self._connection.execute(select(meta.c.value).where(meta.c.name == _REMEMBERED)).scalar()
        return None if found is None else datetime.fromisoformat(found)

    def last_restored_intent(self) -> int:
        """Return the id of the last operation of a restored backup, whose answer may be outdated; otherwise 0."""
        found = self._connection.execute(select(meta.c.value).where(meta.c.name == _LAST_INTENT)).scalar()
        return int(found or 0)

    def mark_restored_state_compared(self, *, at: datetime) -> None:
        """Record that a complete run has compared a restored state. The state is trusted once nothing is in doubt."""
        sql_types_and_statements.upsert_rows(self._connection, meta, [{"name": _COMPARED, "value": at.isoformat()}])

    def is_restored_state_compared(self) -> bool:
        return self._connection.execute(select(meta.c.value).where(meta.c.name == _COMPARED)).first() is not None

    def forget_state_was_restored(self) -> None:
        self._connection.execute(delete(meta).where(meta.c.name.in_([_RESTORED, _LAST_INTENT, _COMPARED, _REMEMBERED])))

    def listed(
        self,
        *,
        limit: int,
        before: int | None = None,
        job: str | None = None,
        status: str | None = None,
        business_date: str | None = None,
        is_manual: bool = False,
    ) -> list[RunRecord]:
        """Return the latest runs, newest first: of those older than the run *before*, that meet the other conditions.

        There is no index for these: the table is read backwards until *limit* runs are found.
        """
        columns = self._columns_with_corrected_status()
        query = select(*columns.values()).order_by(runs.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(runs.c.id < before)
        if is_manual:
            query = query.where(runs.c.job.is_(None))
        for column, value in ((runs.c.job, job), (columns["status"], status), (runs.c.business_date, business_date)):
            if value is not None:
                query = query.where(column == value)
        found = [RunRecord(*row) for row in self._connection.execute(query)]
        said = self._messages_by_run([run.id for run in found])
        return _with_unrecorded_end_message([structs.replace(run, messages=said.get(run.id, ())) for run in found])

    def run_and_predecessors(self, run: RunRecord, *, limit: int) -> list[RunRecord]:
        """Return *run* and those before it of the same job, or of the same command, oldest first, without messages."""
        same = runs.c.job.is_not_distinct_from(run.job), runs.c.command.is_not_distinct_from(run.command)
        query = (
            select(*self._columns_with_corrected_status().values())
            .where(runs.c.id <= run.id, *same)
            .order_by(runs.c.id.desc())
        )
        return _with_unrecorded_end_message([RunRecord(*row) for row in self._connection.execute(query.limit(limit))])[
            ::-1
        ]

    def tallies_of_runs_between_dates(self, first: date, last: date) -> list[RunTally]:
        """Return the numbers of the runs for the business dates from *first* to *last*, oldest first."""
        columns = self._columns_with_corrected_status() | {"tally": type_coerce(runs.c.tally, Text)}
        query = select(*(columns[name] for name in (*RunTally._fields[:-1], "tally")))
        found = self._connection.execute(query.where(_business_date_condition(first, last)).order_by(runs.c.id))
        return [
            RunTally(day, status, requests, throttled, {} if tally is None else _SUMS_OF_TALLY(tally))
            for day, status, requests, throttled, tally in found
        ]

    def counts_by_date(self, first: date, last: date) -> list[RunCountOfDate]:
        """Count the runs for the business dates from *first* to *last*, as in `tallies_of_runs_between_dates`."""
        by = runs.c.job, runs.c.business_date, self._columns_with_corrected_status()["status"].label("shown")
        query = (
            select(*by, func.count(), func.max(runs.c.id)).where(_business_date_condition(first, last)).group_by(*by)
        )
        return [RunCountOfDate(*row) for row in self._connection.execute(query.order_by(*by))]

    def count_all(self) -> int:
        return int(self._connection.execute(select(func.count()).select_from(runs)).scalar_one())

    def removed_until(self) -> datetime | None:
        """Return when the newest run began that retention has removed; None if it has removed none."""
        found = self._connection.execute(select(meta.c.value).where(meta.c.name == _REMOVED_UNTIL)).scalar()
        return None if found is None else datetime.fromisoformat(found)

    def mark_removed_until(self, at: datetime) -> None:
        until = max(at, self.removed_until() or at)
        sql_types_and_statements.upsert_rows(
            self._connection, meta, [{"name": _REMOVED_UNTIL, "value": until.isoformat()}]
        )

    def get(self, run_id: int) -> RunRecord | None:
        query = select(*self._columns_with_corrected_status().values(), runs.c.timings).where(runs.c.id == run_id)
        row = self._connection.execute(query).first()
        if row is None:
            return None
        listed: RunRecord = RunRecord(*row[:-1])
        (found,) = _with_unrecorded_end_message(
            [structs.replace(listed, messages=self.messages(run_id), timings=row[-1])]
        )
        return found

    def _columns_with_corrected_status(self) -> dict[str, ColumnElement[Any]]:
        """Return the columns of a list, with the status ``incomplete`` of killed runs that no other run has ended."""
        is_killed = and_(runs.c.status == "running", run_lease.killed_run_condition(self._connection, runs.c.fence))
        status = case((is_killed, "incomplete"), else_=runs.c.status)
        return {column.name: column for column in _LISTED} | {"status": status}

    def messages_starting_with(self, words: str, run_ids: Sequence[int]) -> list[tuple[int, RunMessage]]:
        """Return those messages of *run_ids* that begin with *words*, each with its run."""
        found: list[tuple[int, RunMessage]] = []
        for part in sql_types_and_statements.chunks_of_in_list(run_ids):
            query = select(run_messages.c.run_id, *_MESSAGE).where(
                run_messages.c.run_id.in_(part), run_messages.c.message.startswith(words, autoescape=True)
            )
            rows = self._connection.execute(query.order_by(run_messages.c.run_id, run_messages.c.number))
            found += [(run_id, RunMessage(*values)) for run_id, *values in rows]
        return found

    def messages(self, run_id: int) -> tuple[RunMessage, ...]:
        return self._messages_by_run([run_id]).get(run_id, ())

    def _messages_by_run(self, run_ids: Sequence[int]) -> dict[int, tuple[RunMessage, ...]]:
        if not run_ids:
            return {}
        found: dict[int, list[RunMessage]] = {}
        query = select(run_messages.c.run_id, *_MESSAGE)
        query = query.where(run_messages.c.run_id.in_(run_ids))
        for run_id, *values in self._connection.execute(query.order_by(run_messages.c.run_id, run_messages.c.number)):
            found.setdefault(run_id, []).append(RunMessage(*values))
        return {run_id: tuple(said) for run_id, said in found.items()}

    def _write_messages(self, run_id: int, messages: Iterable[RunMessage]) -> None:
        self._connection.execute(delete(run_messages).where(run_messages.c.run_id == run_id))
        rows = [{"run_id": run_id, "number": number} | each.as_json() for number, each in enumerate(messages)]
        if rows:
            self._connection.execute(insert(run_messages), rows)


def _business_date_condition(first: date, last: date) -> ColumnElement[bool]:
    return runs.c.business_date.between(first.isoformat(), last.isoformat())


def _with_unrecorded_end_message(found: Sequence[RunRecord]) -> list[RunRecord]:
    """Add to killed runs that no other run has ended what a later run would store."""
    return [
        structs.replace(run, messages=(*run.messages, UNRECORDED))
        if run.status == "incomplete" and run.finished_at is None
        else run
        for run in found
    ]


def _has_reached_its_end(run: RunRecord) -> bool:
    """Return whether the run was neither killed nor stopped by an error, though streams may have been."""
    stopped = any(each.level == "error" and not each.stream for each in run.messages)
    return run.status in COMPLETED or (run.status == "incomplete" and not stopped)


class RunConfig(NamedTuple):
    run_id: int
    content: Mapping[str, Any]


class RunConfigs:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def store(self, run_id: int, content: Mapping[str, Any]) -> None:
        """Store what the run has as its effective config, which contains references to secrets and no secret."""
        digest = hashlib.sha256(exact_json.dumps(content)).hexdigest()
        if self._connection.execute(select(configs.c.digest).where(configs.c.digest == digest)).first() is None:
            sql_types_and_statements.upsert_rows(self._connection, configs, [{"digest": digest, "content": content}])
        self._connection.execute(update(runs).where(runs.c.id == run_id).values(config=digest))

    def last(self) -> RunConfig | None:
        """Return the config of the last run that has one."""
        query = select(runs.c.id, configs.c.content).join(configs, configs.c.digest == runs.c.config)
        row = self._connection.execute(query.order_by(runs.c.id.desc()).limit(1)).first()
        return None if row is None else RunConfig(*row)

    def remove_unused(self) -> None:
        """Remove the configs of which no run is left."""
        self._connection.execute(delete(configs).where(~exists().where(runs.c.config == configs.c.digest)))
