"""The pages of a migration: its waves, progress and last checks, and what a sign-off needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from crossdock.config.project.project import Project
from crossdock.console.action_definitions import permitted_action_links
from crossdock.console.page_request_context import PageRequest
from crossdock.console.page_tables import Cell, Link, Table, table
from crossdock.console.self_contained_sign_off_report import source_state_platform_totals_table
from crossdock.migration.migration_status import MigrationStatus, migration_status
from crossdock.migration.rehearsal_file_and_load_check import parse_stored_rehearsal
from crossdock.migration.sign_off import SignOffRequirement, obstacle_if_exceptions_unaccepted, sign_off_requirements
from crossdock.migration.sign_off_report import summarize_exceptions
from crossdock.migration.waves import WaveStatus
from crossdock.runs.platform_and_state_comparison import MEANINGS
from crossdock.state import Migration, RunRecord, Transaction, WaveApproval
from crossdock.values.run_states_and_tally import OpenCounts, RecordState
from crossdock.values.texts_of_numbers_and_times import count_with_noun, instant_text

_DIFFERENCES = ("difference", "resource", "records", "meaning")
_RUNS = ("run", "kind", "wave", "started", "ended", "status", "requests", "refused")
_STATES = {"rejected": RecordState.REJECTED, "waiting": RecordState.WAITING, "in doubt": RecordState.IN_DOUBT}
_COUNTING_S = 2  # after which a page comes again that waits for the count
_EXCEPTIONS = "Nothing differs, was rejected or waits, or a person accepts that"


class MigrationFacts(Struct, frozen=True):
    """What the pages show of a migration. *requirements* are what a sign-off still needs; none if it has one."""

    status: MigrationStatus
    open: Mapping[str, OpenCounts]
    rehearsed: Mapping[str, int]
    approvals: Mapping[str, WaveApproval]
    runs: Sequence[tuple[str, str, RunRecord]]
    requirements: Sequence[SignOffRequirement]
    at: datetime


def show_migration(visit: PageRequest) -> Response:
    project, found = visit.project(), _cached_migration_facts(visit)
    migration = None if found is None else found.status.migration
    return visit.render_page(
        "migration.html",
        f"Migration of {visit.required_tenant.name}",
        refreshes=_refresh_interval_s(project, found),
        has_migration=project.migration is not None,
        found=found,
        migration=migration,
        waves=[] if found is None else [_wave_values(visit, found, each) for each in found.status.waves],
        forecast=None if found is None else _forecast_text(found),
        reconciled=_last_reconciliation(visit, project, migration),
        actions=[] if project.migration is None else _actions(visit, migration),
        runs=None if found is None else table(_RUNS, (_run_row(visit, *each) for each in found.runs), kind="runs"),
        at="" if found is None else instant_text(found.at),
    )


def show_sign_off_requirements(visit: PageRequest) -> Response:
    project, found = visit.project(), _cached_migration_facts(visit)
    migration = None if found is None else found.status.migration
    signed_off_at = None if migration is None else migration.signed_off_at
    return visit.render_page(
        "migration_sign_off.html",
        f"Sign-off of {visit.required_tenant.name}",
        refreshes=_refresh_interval_s(project, found),
        has_migration=project.migration is not None,
        found=found,
        migration=migration,
        address=project.platform.base_url,
        missing=0 if found is None else sum(bool(each.obstacles) for each in found.requirements),
        signed_off_at="" if signed_off_at is None else instant_text(signed_off_at),
        at="" if found is None else instant_text(found.at),
    )


def _actions(visit: PageRequest, migration: Migration | None) -> Sequence[tuple[str, str]]:
    if migration is not None and migration.signed_off_at is not None:
        return []
    names = ["load"] if migration is None else ["load", "reconcile-migration", "undo-migration"]
    if migration is not None:
        names.insert(1, "pause-migration" if migration.paused_at is None else "resume-migration")
    return permitted_action_links(visit, *((name, {}) for name in names))


def _cached_migration_facts(visit: PageRequest) -> MigrationFacts | None:
    """Return what is known of the migration; None without one in the config, and while its records are counted."""
    project = visit.project()
    if project.migration is None:
        return None

    def read() -> MigrationFacts:
        with visit.read_transaction() as tx:
            return _read_facts(tx, project, visit.now)

    return visit.console.background_readings.read_or_cached_if_slow((visit.required_tenant.name, "migration"), read)


def _refresh_interval_s(project: Project, found: MigrationFacts | None) -> int:
    return _COUNTING_S if found is None and project.migration is not None else 0


def _read_facts(tx: Transaction, project: Project, now: datetime) -> MigrationFacts:
    status = migration_status(tx, project, now)
    migration, streams = status.migration, sorted(name for each in status.waves for name in each.wave.streams)
    runs, approvals, required, rehearsed = list[tuple[str, str, RunRecord]](), {}, list[SignOffRequirement](), {}
    if migration is not None:
        approvals = tx.migrations.approval_by_wave(migration.id)
        for run in tx.migrations.runs(migration.id):
            if (record := tx.runs.get(run.run_id)) is not None:
                runs.append((run.kind, run.wave or "", record))
        rehearsal = parse_stored_rehearsal(migration.rehearsal)
        for name, wave in rehearsal.waves.items() if rehearsal else ():
            rehearsed[name] = sum(stream.records for stream in wave.streams.values())
        if migration.signed_off_at is None:
            exceptions = summarize_exceptions(tx, project, migration, status.waves)
            required = [
                *sign_off_requirements(tx, migration, status.waves, project.scope_by_stream, None),
                SignOffRequirement(_EXCEPTIONS, list(obstacle_if_exceptions_unaccepted(exceptions, None))),
            ]
    writers = {scope: name for name, scope in project.scope_by_stream.items()}
    return MigrationFacts(
        status, tx.open_record_counts.by_stream(streams, writers), rehearsed, approvals, runs, required, now
    )


def _wave_values(visit: PageRequest, found: MigrationFacts, each: WaveStatus) -> dict[str, Any]:
    expected = max(each.records, found.rehearsed.get(each.wave.name, 0))
    percent = 100 if expected == 0 and each.has_passed_gate else min(100, 100 * each.delivered // max(expected, 1))
    approval = found.approvals.get(each.wave.name)
    return {
        "title": f"{each.wave.number}. {each.wave.name}",
        "state": each.state,
        "kind": "green" if each.has_passed_gate else "failed" if each.state == "incomplete" else "degraded",
        "percent": percent,
        "progress": f"{each.delivered:,} of {expected:,} records delivered",
        "records": f"{each.records:,}",
        "delivered": f"{each.delivered:,}",
        "open": f"{each.open.total:,}",
        "run": None if each.run is None else (visit.link("runs", each.run.id), each.run.id, each.run.status),
        "gate": "" if each.gate is None else each.gate.display_word,
        "why": "" if each.gate is None else each.gate.why,
        "actions": _wave_actions(visit, found, each),
        "approved": "" if approval is None else f"{approval.approved_by}, {instant_text(approval.approved_at)}",
        "streams": _open_records_by_stream_table(visit, {name: found.open[name] for name in sorted(each.wave.streams)}),
    }


def _wave_actions(visit: PageRequest, found: MigrationFacts, each: WaveStatus) -> Sequence[tuple[str, str]]:
    migration, wave = found.status.migration, {"wave": each.wave.name}
    names = ["go"] if each.gate and not each.has_passed_gate else []
    if each.run is not None and migration is not None and migration.signed_off_at is None:
        names.append("undo-wave")
    return [
        (f"{title}: {each.wave.name}", address)
        for title, address in permitted_action_links(visit, *((n, wave) for n in names))
    ]


def _open_records_by_stream_table(visit: PageRequest, counts: Mapping[str, OpenCounts]) -> Table:
    """Return the streams of a wave with the states in which records of any of them are open."""
    numbers = {name: each.as_json() for name, each in counts.items()}
    states = [RecordState(each) for each in OpenCounts().as_json() if any(of[each] for of in numbers.values())]
    columns = ("stream", *([each.display_text for each in states] or ["open"]))
    rows = ((name, *_open_record_count_cells(visit, name, states, of)) for name, of in numbers.items())
    return table(columns, rows, kind="numbers")


def _open_record_count_cells(
    visit: PageRequest, stream: str, states: Sequence[RecordState], numbers: Mapping[str, int]
) -> Iterator[Cell]:
    for state in states:
        number = numbers[state.value]
        yield Link(f"{number:,}", visit.link("records", state.option_value, stream=stream)) if number else "0"
    if not states:
        yield "0"


def _forecast_text(found: MigrationFacts) -> str:
    left = found.status.left
    text = found.status.remaining_requests_and_duration_text
    if left is None or left.lasts is None or not text:
        return text
    return f"{text}; expected to end {instant_text(found.at + left.lasts)}"


def _last_reconciliation(visit: PageRequest, project: Project, migration: Migration | None) -> dict[str, Any] | None:
    """Return the last reconciliation, which is void once records were loaded since."""
    facts = None if migration is None else migration.reconciliation
    if facts is None:
        return None
    return {
        "at": instant_text(datetime.fromisoformat(facts["at"])),
        "compared": count_with_noun(sum(facts["compared"].values()), "record"),
        "differences": table(
            _DIFFERENCES, (_difference_class_row(visit, project, each) for each in facts["differences"])
        ),
        "totals": source_state_platform_totals_table(facts["totals"]),
        "kept": [
            f"{count_with_noun(number, 'record')} of {name} no longer in the source and kept"
            for name, number in facts["kept"].items()
        ]
        + [
            f"{count_with_noun(number, 'record')} of {name} whose source cannot be read any more"
            for name, number in facts.get("unavailable", {}).items()
        ],
    }


def _difference_class_row(visit: PageRequest, project: Project, each: Mapping[str, Any]) -> tuple[Cell, ...]:
    name, number = each["class"], each["records"]
    writers = [stream for stream, scope in project.scope_by_stream.items() if scope.resource == each["resource"]]
    parts = ("records", _STATES[name].option_value) if name in _STATES else ("records",)
    address = visit.link(*parts, stream=writers[0] if len(writers) == 1 else None)
    return name, each["resource"].replace("_", " "), Link(f"{number:,}", address), MEANINGS.get(name, "")


def _run_row(visit: PageRequest, kind: str, wave: str, run: RunRecord) -> tuple[Cell, ...]:
    return (
        Link(str(run.id), visit.link("runs", run.id)),
        kind,
        wave,
        instant_text(run.started_at),
        "" if run.finished_at is None else instant_text(run.finished_at),
        Link(run.status, visit.link("runs", run.id), kind=run.status),
        run.requests,
        run.throttled,
    )
