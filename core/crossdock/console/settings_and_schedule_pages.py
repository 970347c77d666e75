"""The pages of settings: the effective config, what changed since the last run, and the calendar of the next runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from crossdock.config.project.masked_effective_config import (
    Setting,
    changed_settings,
    effective_config_of_project,
    effective_settings,
)
from crossdock.config.project.project import Project
from crossdock.config.schedules.due_times import blackout_windows_between
from crossdock.config.schedules.job_and_schedule_config import JOBS_EXAMPLE, JobConfig, Schedule
from crossdock.console.action_definitions import permitted_action_links
from crossdock.console.page_request_context import PageRequest
from crossdock.console.page_tables import Cell, Link, Table, table
from crossdock.errors import ConfigError, text_with_code
from crossdock.runs.imported_file_log import mapping_changed_since_text
from crossdock.services.scheduler.due_run_decisions_and_preview import MOST_COUNTED, PreviewedDay, previewed_runs_by_day
from crossdock.state import RunConfig, Transaction
from crossdock.values.texts_of_numbers_and_times import count_with_noun, duration_text, instant_text
from crossdock.values.time_formats_and_zones import clock_change_instants_and_shifts

DAYS = 14
_EACH = 3  # most runs of a day that are listed one by one
_Days = Mapping[date, Sequence[str]]


class NextRunsCalendar(Struct, frozen=True):
    """*days* has a row for each day and a column for each job. *notes* say what holds for a job as a whole."""

    days: Table
    notes: Sequence[str]
    changes: Sequence[str]


def make_next_runs_calendar(tx: Transaction, jobs: Mapping[str, JobConfig], now: datetime) -> NextRunsCalendar:
    until = now + timedelta(days=DAYS)
    found = {name: previewed_runs_by_day(tx, name, job, now, DAYS, listed=_EACH) for name, job in jobs.items()}
    changes = [
        change
        for zone in sorted({job.schedule.time_zone for job in jobs.values()})
        for change in _clock_changes(zone, jobs, now, until)
    ]
    hindered = {name: _holidays_and_blackouts(job.schedule, now, until) for name, job in jobs.items()}
    days = sorted(
        {
            now.astimezone(job.schedule.zone).date() + timedelta(days=number)
            for job in jobs.values()
            for number in range(DAYS + 1)
        }
    )
    changed = {day for day, _ in changes}
    rows = (
        (
            f"{day:%a %Y-%m-%d}" + (", clocks change" if day in changed else ""),
            *([*_run_texts(found[name].get(day)), *hindered[name].get(day, [])] for name in jobs),
        )
        for day in days
    )
    return NextRunsCalendar(
        table(("day", *jobs), rows, kind="days"),
        [
            _job_schedule_sentence(name, job, is_paused=name in tx.scheduled_runs.paused_jobs())
            for name, job in jobs.items()
        ],
        [text for _, text in changes],
    )


def _run_texts(of_day: PreviewedDay | None) -> Iterator[str]:
    """Describe the runs of one job on one day."""
    if of_day is None:
        return
    if of_day.number is None or of_day.number > _EACH:
        number = f"more than {MOST_COUNTED:,} runs" if of_day.number is None else count_with_noun(of_day.number, "run")
        yield f"{number}, {of_day.first[0]['begins']:%H:%M} to {of_day.last_begins:%H:%M}"
        return
    for row in of_day.first:
        begins, ends, requests = row["begins"], row["expected_end"], row["expected_requests"]
        until = "" if ends is None else f", ends about {ends:%H:%M}"
        number = "" if requests is None else f", about {count_with_noun(requests, 'request')}"
        is_of = "" if row["business_date"] == begins.date() else f", for {row['business_date']}"
        yield f"{begins:%H:%M}{is_of}{until}{number}"


def _holidays_and_blackouts(schedule: Schedule, now: datetime, until: datetime) -> _Days:
    found: dict[date, list[str]] = defaultdict(list)
    for day in schedule.holidays:
        found[day].append("holiday")
    for begin, end in blackout_windows_between(schedule, now, until):
        first, last = begin.astimezone(schedule.zone), end.astimezone(schedule.zone)
        shown = f"{last:%H:%M}" if last.date() == first.date() else f"{last:%a %H:%M}"
        found[max(first, now.astimezone(schedule.zone)).date()].append(f"blackout {first:%H:%M} to {shown}")
    return found


def _clock_changes(
    zone_name: str, jobs: Mapping[str, JobConfig], now: datetime, until: datetime
) -> Iterator[tuple[date, str]]:
    zone = next(job.schedule.zone for job in jobs.values() if job.schedule.time_zone == zone_name)
    for instant, by in clock_change_instants_and_shifts(zone, now, until):
        before, after = (instant - timedelta(seconds=1)).astimezone(zone), instant.astimezone(zone)
        way = "forward" if by > timedelta() else "back"
        meant = "times between are skipped" if by > timedelta() else "times between come twice"
        shown = f"{before + timedelta(seconds=1):%H:%M}"
        text = f"{before:%a %Y-%m-%d}: the clocks of {zone_name} go {way} by {duration_text(abs(by))}, from {shown} to "
        yield before.date(), f"{text}{after:%H:%M}; {meant}."


def _job_schedule_sentence(name: str, job: JobConfig, *, is_paused: bool) -> str:
    schedule = job.schedule
    when = f"every {schedule.every}" if schedule.every else f"at {', '.join(schedule.at or ())}"
    when = f"by the crontab line {schedule.cron}" if schedule.cron else when
    after = f", after {', '.join(job.after)}" if job.after else ""
    done_by = f", to be done by {job.done_by}" if job.done_by else ""
    paused = " It is paused: nothing starts until it is resumed." if is_paused else ""
    return f"{name}: {when} in {schedule.time_zone}{after}{done_by}.{paused}"


_SETTINGS = ("setting", "value", "from")
_FILES = ("file", "changed")
_CHANGED = ("changed setting", "then", "now", "from")
_NOT_SET = "(not set)"
_STREAMS = ("stream", "mapping", "last import", "as at the last import")
_BY_NAME = {"connections", "jobs"}  # sections of which each entry has a heading of its own
_LOOKED_AT = 50  # runs


def show_settings(visit: PageRequest) -> Response:
    """Show the effective config, or why it cannot be loaded, and how it differs from that of the last run."""
    tenant, only_written = visit.required_tenant, visit.query.get("only") == "written"
    project: Project | None
    try:
        project, errors = tenant.project(), []
        settings = list(effective_settings(project))
    except ConfigError as error:
        project, settings, errors = None, [], text_with_code(error).split("\n")
    with visit.read_transaction() as tx:
        last = next(iter(tx.runs.listed(limit=1)), None)
        then = tx.run_configs.last()
        streams = [] if project is None else list(_stream_mapping_version_rows(visit, tx, project))
        notes = [] if project is None else list(_missing_job_and_stream_sentences(tx, project))
    return visit.render_page(
        "settings.html",
        f"Settings of {tenant.name}",
        errors=errors,
        only_written=only_written,
        files=table(_FILES, (_file_row(path) for path in tenant.files)),
        compared=None
        if project is None or then is None
        else _settings_changed_since_last_run(visit, then, project, settings),
        last=None if last is None else (visit.link("runs", last.id), last.id, instant_text(last.started_at)),
        streams=table(_STREAMS, streams),
        notes=notes,
        sections=list(
            _sections((each for each in settings if each.origin or not only_written), tenant.config_path.parent)
        ),
        has_jobs=project is not None and bool(project.jobs),
    )


def show_schedule(visit: PageRequest) -> Response:
    project = visit.project()
    with visit.read_transaction() as tx:
        found = make_next_runs_calendar(tx, project.jobs, visit.now) if project.jobs else None
    return visit.render_page(
        "schedule.html",
        f"Schedule of {visit.required_tenant.name}",
        calendar=found,
        days=DAYS,
        jobs_example=JOBS_EXAMPLE,
    )


def _sections(settings: Iterable[Setting], folder: Path) -> Iterator[tuple[str, Table]]:
    """Yield each section of the config with its settings."""

    def section(each: Setting) -> tuple[str | int, ...]:
        return each.place[: 2 if each.place[0] in _BY_NAME else 1]

    for place, found in groupby(settings, key=section):
        rows = ((_name_in_section(each, place), each.value, _origin_text(each, folder)) for each in found)
        yield ".".join(map(str, place)), table(_SETTINGS, rows, kind="settings")


def _name_in_section(each: Setting, section: tuple[str | int, ...]) -> str:
    return ".".join(map(str, each.place[len(section) :] or each.place[-1:]))


def _origin_text(each: Setting, folder: Path) -> str:
    if each.origin is None:
        return "default"
    path, *place = each.origin
    return ":".join([_relative_path_text(Path(path), folder), *map(str, place[:1])])


def _relative_path_text(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def _file_row(path: Path) -> tuple[Cell, ...]:
    try:
        changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        return path.name, f"cannot be read: {error.strerror}"
    return path.name, instant_text(changed)


def _settings_changed_since_last_run(
    visit: PageRequest, then: RunConfig, project: Project, settings: Iterable[Setting]
) -> dict[str, Any]:
    """Return the settings that have another value now than the run *then* had."""
    origins = {each.place: _origin_text(each, visit.required_tenant.config_path.parent) for each in settings}
    written = {each.place for each in settings if each.origin}
    found = changed_settings(then.content, effective_config_of_project(project))
    changed = [each for each in found if each.then is not None or each.place in written]  # no defaults of a new part
    rows = (
        (
            ".".join(map(str, each.place)),
            *(_NOT_SET if value is None else value for value in (each.then, each.now)),
            origins.get(each.place, ""),
        )
        for each in changed
    )
    return {
        "run": (visit.link("runs", then.run_id), then.run_id),
        "number": count_with_noun(len(changed), "setting"),
        "changed": table(_CHANGED, rows, kind="settings"),
    }


def _stream_mapping_version_rows(visit: PageRequest, tx: Transaction, project: Project) -> Iterator[tuple[Cell, ...]]:
    for connection in project.connections:
        for name, stream in connection.enabled_streams_with_full_names():
            version, finished = stream.version, tx.intake.last_finished_import(name)
            changed = mapping_changed_since_text(tx, name, version)
            was_read = finished is not None or tx.cursors.mapping_version_of_cursor(name) is not None
            yield (
                Link(name, visit.link("records", stream=name)),
                version[:8],
                "" if finished is None else instant_text(finished.at),
                _changed_mapping_cell(visit, name, changed) if changed else "yes" if was_read else "not read yet",
            )


def _changed_mapping_cell(visit: PageRequest, name: str, changed: str) -> Cell:
    planned = [
        Link(f"{title}: {name}", address)
        for title, address in permitted_action_links(visit, ("plan", {"streams": name}))
    ]
    return [Link(f"no, changed {changed}: the next run maps all records again that the source still has", ""), *planned]


def _missing_job_and_stream_sentences(tx: Transaction, project: Project) -> Iterator[str]:
    """Say which streams and jobs the state knows and the config has no more, or the other way round."""
    known = tx.scheduled_runs.latest_by_job()
    for name in sorted(known.keys() - project.jobs.keys()):
        yield f"The job {name} is no more in the config."
    for name in sorted(project.jobs.keys() - known.keys()):
        yield f"The job {name} has not run yet."
    read = {name: run.id for run in reversed(tx.runs.listed(limit=_LOOKED_AT)) for name in run.tally or {}}
    for name in sorted(read.keys() - project.scope_by_stream.keys()):
        yield f"The stream {name} is no more in the config; run {read[name]} was the last that read it."
