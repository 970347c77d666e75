"""The report of a run, with the records that are open, as one self-contained page without record data (law 8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from crossdock.console import pages
from crossdock.console.allowance_plot import plotted
from crossdock.console.page_tables import Cell, Table, accounts, listing, table
from crossdock.runs import run_lines, timing_lines
from crossdock.state import RunRecord
from crossdock.state.queries.run_details import Delivery, Reason, Row, RunDetails
from crossdock.values.display_texts import counted, parents_text
from crossdock.values.display_times import duration_text, instant_text
from crossdock.values.run_messages import error_texts, remarks
from crossdock.values.state_words import RunState

_ERROR_LINES = 20  # most lines of an error
_FILES = ("stream", "file", "rows")
_STEPS = ("step", "duration", "of the run")
_DELIVERIES = ("stream", "operations", "started", "ended", "duration")
LISTED = 200  # most records of each reason or state
_LISTS_BYTES = 4_500_000  # of all lists, so that a page stays below 5 MB
_REJECTED = ("stream", "key", "stage", "message", "file", "line", "in run")
_WAITING = ("stream", "key", "waits for", "file", "line", "since")
_IN_DOUBT = ("stream", "key", "operation", "attempts", "first sent", "file", "line")


def page(state: RunDetails, run: RunRecord, *, at: datetime, tenant: str, config: Path) -> str:
    """Return the report, of at most 5 MB. It begins with what needs a person: errors, open records and notes."""
    return pages.render("run.html", layout="layout.html", **values(state, run, at=at, tenant=tenant, config=config))


def values(state: RunDetails, run: RunRecord, *, at: datetime, tenant: str, config: Path) -> dict[str, Any]:
    """Return what the template of the report shows."""
    streams, later = run.tally or {}, state.refused_later(run.id)
    errors = [error.split("\n")[:_ERROR_LINES] for error in error_texts(run.messages)]
    balanced, opened, notes = run_lines.run_document(run)["balanced"], open_records(state, run), remarks(run.messages)
    return {
        "run": run,
        "meaning": RunState(run.status).meaning,
        "tenant": tenant,
        "config": config.name,
        "job": _job(run),
        "errors": errors,
        "imbalance": _imbalance(run, balanced),
        "open": opened,
        "notes": notes,
        "needs_nobody": balanced is True and not (errors or notes or any(opened.values())),
        "facts": _facts(run),
        "apis": table(run_lines.API_COLUMNS, run_lines.api_rows(timing_lines.apis(run)), kind="numbers"),
        "files": table(_FILES, ((name, *cells) for name, stream in streams.items() for cells in _files_of(stream))),
        "accounts": accounts(streams),
        "is_balanced": balanced is True,
        "steps": _steps(run),
        "allowance": _allowance(run),
        "deliveries": _deliveries(state.deliveries(run)),
        "words": [(word.shown, word.meaning) for word in run_lines.explained_words(run)],
        "at": instant_text(at),
        "later": counted(later, "record") if later else "",
    }


def _job(run: RunRecord) -> str:
    command = f"started by crossdock {run.command}" if run.command else "started manually"
    return f"job {run.job}" if run.job else command


def _imbalance(run: RunRecord, balanced: bool | None) -> str:
    if run.tally is None:
        return "This run has no tally."
    return "" if balanced is True else run_lines.BALANCE[balanced]


def _facts(run: RunRecord) -> dict[str, str]:
    streams = (run.tally or {}).values()
    facts = {
        "business date": run.business_date,
        "started": instant_text(run.started_at),
        "ended": instant_text(run.finished_at) if run.finished_at else "not yet",
        "duration": "" if run.duration is None else duration_text(run.duration),
        "requests": f"{run.requests:,} ({run.throttled:,} throttled)",
        "delivered": f"{sum(each['records']['delivered'] for each in streams):,}",
        "open": "" if run.open is None else str(run.open),
    }
    return {name: value for name, value in facts.items() if value}


def _files_of(stream: Mapping[str, Any]) -> Iterator[tuple[str, str | int]]:
    for file in stream.get("files", ()):
        unread = "unchanged" if stream.get("input") == "unchanged" else "not imported"
        yield file["name"], unread if file["rows"] is None else file["rows"]
    if more := stream.get("more_files"):
        yield f"{counted(more, 'file')} more", ""
    if stream.get("input") == "none":
        yield run_lines.input_sentence(stream) or "", ""


def _steps(run: RunRecord) -> Table:
    steps = timing_lines.slowest(run)
    rows = ((step.name, duration_text(step.lasted), f"{step.share:.0f} %") for step in steps)
    return table(_STEPS, rows, kind="numbers named")


def _allowance(run: RunRecord) -> dict[str, Any] | None:
    if (summary := timing_lines.allowance_summary(run)) is None:
        return None
    seconds = (run.duration or timedelta()).total_seconds()
    return {"plot": plotted(timing_lines.samples(run), seconds), "summary": f"{str(summary).capitalize()}."}


def _deliveries(found: Sequence[Delivery]) -> Table:
    return table(_DELIVERIES, ((each.stream, each.operations, *_times(each)) for each in found), kind="numbers")


def _times(delivery: Delivery) -> tuple[str, str, str]:
    began, ended = delivery.began, delivery.ended
    return instant_text(began), instant_text(ended), duration_text(ended - began)


def open_records(state: RunDetails, run: RunRecord) -> Mapping[str, Any]:
    """Return what was rejected until *run*, and what is waiting, in doubt or pending now, or nothing of a kind."""
    reasons = state.reasons(run.id)
    room = _LISTS_BYTES // (len(reasons) + 3)  # for each list
    unsent = state.unsent()
    return {
        "rejected": _rejected(state, run, reasons, room),
        "waiting": _waiting(state, room),
        "in_doubt": _undecided(state, "in_doubt", room),
        "overdue": _undecided(state, "overdue", room),
        "pending": counted(unsent, "operation") if unsent else "",
    }


def _rejected(state: RunDetails, run: RunRecord, reasons: Sequence[Reason], room: int) -> dict[str, Any] | None:
    if not reasons:
        return None
    listed = [_reason(state, run, reason, room) for reason in reasons]
    return {"records": counted(sum(reason.records for reason in reasons), "record"), "reasons": listed}


def _reason(state: RunDetails, run: RunRecord, reason: Reason, room: int) -> dict[str, Any]:
    rows = map(_rejected_row, state.refused(run.id, reason.code, limit=LISTED))
    return {
        "code": reason.code,
        "records": counted(reason.records, "record"),
        "own": "" if reason.own == reason.records else f"{reason.own:,}",
        "listing": listing(_REJECTED, rows, reason.records, "rejected", room=room),
    }


def _waiting(state: RunDetails, room: int) -> dict[str, Any] | None:
    number, found = state.waiting(limit=LISTED)
    if not number:
        return None
    listed = listing(_WAITING, map(_waiting_row, found), number, "waiting", room=room)
    return {"records": counted(number, "record"), "listing": listed}


def _undecided(state: RunDetails, status: str, room: int) -> dict[str, Any] | None:
    number, found = state.oldest_unsettled(status, limit=LISTED)
    if not number:
        return None
    listed = listing(_IN_DOUBT, map(_in_doubt_row, found), number, status.replace("_", "-"), room=room)
    return {"records": counted(number, "record"), "listing": listed}


def _rejected_row(row: Row) -> tuple[Cell, ...]:
    message = f"{row['pointer']}: {row['message']}" if row["pointer"] else row["message"]
    place = (row["source"], str(row["line"]), str(row["run_id"]))
    return row["stream"], row["key"] or "(none)", row["stage"], message, *place


def _waiting_row(row: Row) -> tuple[Cell, ...]:
    place = (row["source"], str(row["line"]), instant_text(row["since"]))
    return row["stream"], row["key"], parents_text(row["waits_for"]), *place


def _in_doubt_row(row: Row) -> tuple[Cell, ...]:
    sent = instant_text(row["first_sent_at"]) if row["first_sent_at"] else "before the state was restored"
    place = (row["source"], str(row["line"]))
    return row["stream"], row["key"], row["operation"], row["attempts"], sent, *place
