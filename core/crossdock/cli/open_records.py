"""The records that are open, for the page of a run: rejected, waiting, in doubt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crossdock.cli.page_tables import Cell, listing
from crossdock.cli.shared_options import counted, parents_text
from crossdock.state import RunRecord
from crossdock.state.queries.run_details import Reason, Row, RunDetails
from crossdock.values.times_as_text import instant_text

LISTED = 200  # most records of each reason or state
_LISTS_BYTES = 4_500_000  # of all lists, so that a page stays below 5 MB
_REJECTED = ("stream", "key", "stage", "message", "file", "line", "in run")
_WAITING = ("stream", "key", "waits for", "file", "line", "since")
_IN_DOUBT = ("stream", "key", "operation", "attempts", "first sent", "file", "line")


def open_records(state: RunDetails, run: RunRecord) -> Mapping[str, Any]:
    """Return what was rejected until *run*, and what is waiting, in doubt or pending now, or nothing of a kind."""
    reasons = state.reasons(run.id)
    room = _LISTS_BYTES // (len(reasons) + 2)  # for each list
    unsent = state.unsent()
    return {
        "rejected": _rejected(state, run, reasons, room),
        "waiting": _waiting(state, room),
        "in_doubt": _in_doubt(state, room),
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


def _in_doubt(state: RunDetails, room: int) -> dict[str, Any] | None:
    number, found = state.in_doubt(limit=LISTED)
    if not number:
        return None
    listed = listing(_IN_DOUBT, map(_in_doubt_row, found), number, "in-doubt", room=room)
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
