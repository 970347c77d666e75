"""The pages of runs: their list, and one run with its report."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.responses import Response

from crossdock.console import run_page
from crossdock.console.page_tables import Cell, Link, table
from crossdock.console.visits import PageError, Visit
from crossdock.state import RunRecord
from crossdock.values.display_times import duration_text, instant_text

_COLUMNS = ("run", "what", "business date", "started", "duration", "status", "open", "requests", "errors")
_LISTED = 50


def listed(visit: Visit) -> Response:
    job, status = visit.query.get("job") or None, visit.query.get("status") or None
    before = _number(visit.query.get("before"))
    with visit.reading() as tx:
        found = tx.runs.listed(limit=_LISTED + 1, before=before, job=job, status=status)
        total = tx.runs.count()
    older = visit.link("runs", job=job, status=status, before=found[_LISTED - 1].id) if len(found) > _LISTED else ""
    return visit.show(
        "runs.html",
        f"Runs of {visit.of_tenant.name}",
        total=f"{total:,}",
        job=job or "",
        status=status or "",
        runs=table(_COLUMNS, (_row(visit, run) for run in found[:_LISTED]), kind="runs"),
        older=older,
    )


def one(visit: Visit) -> Response:
    number = _number(visit.place["run"])
    with visit.reading() as tx:
        run = None if number is None else tx.runs.get(number)
        if run is None:
            raise PageError(404, f"There is no run {visit.place['run']}.", "The list of runs has those that were kept.")
        values = run_page.values(
            tx.reporting, run, at=visit.now, tenant=visit.of_tenant.name, config=visit.of_tenant.config
        )
    return visit.show("run.html", f"Run {run.id}", **values)


def _row(visit: Visit, run: RunRecord) -> Iterator[Cell]:
    error = next((each.in_full for each in run.messages if each.level == "error"), "")
    yield Link(str(run.id), visit.link("runs", run.id))
    yield run.job or run.command or ""
    yield run.business_date
    yield instant_text(run.started_at)
    yield "" if run.duration is None else duration_text(run.duration)
    yield Link(run.status, visit.link("runs", run.id), kind=run.status)
    yield "" if run.open is None else f"{run.open.total:,}"
    yield f"{run.requests:,}"
    yield " ".join(error.split())


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 18 else None
