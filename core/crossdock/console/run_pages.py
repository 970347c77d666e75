"""The pages of runs: their list, one run with its report, and what it has delivered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from starlette.responses import Response

from crossdock.console import run_and_fleet_report
from crossdock.console.error_code_page import explanation_links
from crossdock.console.page_request_context import (
    PageError,
    PageRequest,
    parse_business_date,
    parse_whole_number_or_none,
)
from crossdock.console.page_tables import Cell, Link, table
from crossdock.console.personal_data_access import log_and_permit_personal_data_if_asked
from crossdock.console.run_and_fleet_report import ReportViewer
from crossdock.console.visitors_and_roles import Role
from crossdock.errors import CrossdockError
from crossdock.state import RunRecord, Transaction
from crossdock.state.queries.run_details_and_deliveries import DeliveredOperationFacts
from crossdock.values.texts_of_numbers_and_times import duration_text, instant_text
from crossdock.writing.delivery.operations_and_intents import PersonalDataMasks

_COLUMNS = ("run", "what", "business date", "started", "duration", "status", "open", "requests", "errors")
_LISTED = 50
_AGAIN = frozenset({"incomplete", "failed"})


def show_runs(visit: PageRequest) -> Response:
    job, status, day = (visit.query.get(name) or None for name in ("job", "status", "date"))
    is_manual, before = visit.query.get("manual") == "1", parse_whole_number_or_none(visit.query.get("before"))
    if day is not None:
        day = parse_business_date(day).isoformat()
    chosen = {"job": job, "status": status, "date": day, "manual": 1 if is_manual else None}
    with visit.read_transaction() as tx:
        found = tx.runs.listed(
            limit=_LISTED + 1, before=before, job=job, status=status, business_date=day, is_manual=is_manual
        )
        total = tx.runs.count_all()
    older = visit.link("runs", **chosen, before=found[_LISTED - 1].id) if len(found) > _LISTED else ""
    return visit.render_page(
        "runs.html",
        f"Runs of {visit.required_tenant.name}",
        total=f"{total:,}",
        job=job or "",
        status=status or "",
        day=day or "",
        is_manual=is_manual,
        runs=table(_COLUMNS, (_row(visit, run) for run in found[:_LISTED]), kind="runs"),
        older=older,
    )


def run_of_address_or_raise(visit: PageRequest, tx: Transaction) -> RunRecord:
    """Return the run that the address names, or raise PageError if it was not kept."""
    number = parse_whole_number_or_none(visit.path_params["run"])
    run = None if number is None else tx.runs.get(number)
    if run is None:
        raise PageError(
            404, f"There is no run {visit.path_params['run']}.", "The list of runs has those that were kept."
        )
    return run


def show_run(visit: PageRequest) -> Response:
    reader, is_personal = _viewer_and_personal_data_access(visit)
    with visit.read_transaction() as tx:
        run = run_of_address_or_raise(visit, tx)
        tenant = visit.required_tenant
        shown = run_and_fleet_report.run_report_template_values(
            tx, run, at=visit.now, tenant=tenant.name, config=tenant.config_path, reader=reader
        )
    is_offered = visit.may_see_personal_data and not is_personal and reader.masks is not None
    shown |= {
        "actions": list(_actions(visit, run, shown["open"])),
        "explained": explanation_links(visit, (each.code for each in run.messages)),
        "personal_address": visit.link("runs", run.id, show="data") if is_offered else "",
    }
    is_followed = run.status == "running" and not visit.query.get("show")  # each showing of personal data is logged
    return visit.render_page("run.html", f"Run {run.id}", refreshes=5 if is_followed else 0, **shown)


def _viewer_and_personal_data_access(visit: PageRequest) -> tuple[ReportViewer, bool]:
    """Return who reads the page, and whether it shows personal values.

    If the config cannot be loaded, personal members are unknown, and none is shown.
    """
    try:
        masks = visit.project().personal_data_masks
    except CrossdockError:
        masks = None
    is_personal = masks is not None and log_and_permit_personal_data_if_asked(visit, f"run {visit.path_params['run']}")
    masks = PersonalDataMasks({}) if is_personal else masks
    return ReportViewer(visit.link, masks, visit.has_role(Role.OPERATOR), has_lists=False), is_personal


def _actions(visit: PageRequest, run: RunRecord, opened: Mapping[str, Any]) -> Iterator[Link]:
    if run.status == "running":
        if visit.has_role(Role.OPERATOR):
            yield Link("Stop this run", visit.link("do", "stop-run", run=run.id))
        return
    if run.status in _AGAIN and visit.has_role(Role.OPERATOR):
        jobs, _ = visit.jobs_or_problem()
        if run.job in jobs:
            yield Link(f"Start {run.job} again", visit.link("do", "start-job", job=run.job))
        elif not run.job:
            yield Link("Sync again", visit.link("do", "sync"))
    if opened["rejected"] and visit.has_role(Role.OPERATOR):
        yield Link("Replay what was rejected", visit.link("do", "replay"))
    if visit.has_role(Role.ADMINISTRATOR):
        yield Link("Undo this run", visit.link("do", "undo", run=run.id))


def _row(visit: PageRequest, run: RunRecord) -> Iterator[Cell]:
    error = next((each.text_with_stream_and_code for each in run.messages if each.level == "error"), "")
    yield Link(str(run.id), visit.link("runs", run.id))
    yield run.job or run.command or ""
    yield run.business_date
    yield instant_text(run.started_at)
    yield "" if run.duration is None else duration_text(run.duration)
    yield Link(run.status, visit.link("runs", run.id), kind=run.status)
    yield "" if run.open_record_counts is None else Link(f"{run.open_record_counts.total:,}", visit.link("records"))
    yield f"{run.requests:,}"
    yield " ".join(error.split())


_DELIVERED_LISTED = 100
_DELIVERED_COUNT_COLUMNS = ("stream", "operation", "records")
_DELIVERED_COLUMNS = ("key", "stream", "operation", "confirmed", "target", "id at the target", "read from")


def show_delivered_records(visit: PageRequest) -> Response:
    """Show the operations of a run that a target has confirmed, all or those of a stream or kind, page by page."""
    after = parse_whole_number_or_none(visit.parameter("after") or "0")
    if after is None:
        raise PageError(404, "There is no such place in the list.", "The list begins at the address without 'after'.")
    stream, operation = visit.parameter("stream") or None, visit.parameter("operation") or None
    with visit.read_transaction() as tx:
        run = run_of_address_or_raise(visit, tx)
        numbers = tx.delivered_history.delivered_counts_by_stream_and_operation([run.id])
        found = tx.delivered_history.delivered_operations_of_run(
            run.id, stream=stream, operation=operation, after=after, limit=_DELIVERED_LISTED + 1
        )
    chosen = {"stream": stream, "operation": operation}
    page, more = found[:_DELIVERED_LISTED], len(found) > _DELIVERED_LISTED
    return visit.render_page(
        "delivered.html",
        f"Delivered by run {run.id}",
        run=run,
        run_address=visit.link("runs", run.id),
        total=f"{sum(each for _, _, each in numbers):,}",
        counted=f"{sum(each['records']['delivered'] for each in (run.tally or {}).values()):,}",
        numbers=table(
            _DELIVERED_COUNT_COLUMNS, (_delivered_count_row(visit, run.id, *each) for each in numbers), kind="numbers"
        ),
        chosen=" ".join(filter(None, (operation, stream))),
        all=visit.link("runs", run.id, "delivered"),
        records=table(_DELIVERED_COLUMNS, (_delivered_record_row(visit, each) for each in page)),
        following=visit.link("runs", run.id, "delivered", **chosen, after=page[-1].id) if more else "",
    )


def _delivered_count_row(visit: PageRequest, run: int, stream: str, operation: str, number: int) -> Iterator[Cell]:
    yield stream
    yield operation
    yield Link(f"{number:,}", visit.link("runs", run, "delivered", stream=stream, operation=operation))


def _delivered_record_row(visit: PageRequest, each: DeliveredOperationFacts) -> Iterator[Cell]:
    yield Link(each.key, visit.link("record", stream=each.stream, key=each.key))
    yield each.stream
    yield each.operation
    yield instant_text(each.at)
    yield each.target
    yield each.target_id or ""
    yield f"{each.source}:{each.line}"
