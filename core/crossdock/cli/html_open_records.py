"""The records that are open, as sections of a report's page: rejected, waiting, in doubt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crossdock.cli import html_elements as html
from crossdock.cli.shared_options import counted, parents_text
from crossdock.state import RunRecord
from crossdock.state.queries.run_details import Reason, Row, RunDetails
from crossdock.values.times_in_text import instant_text

LISTED = 200  # most records of each reason or state
_LISTS_BYTES = 4_500_000  # of all lists, so that a page stays below 5 MB
_REJECTED = ("stream", "key", "stage", "message", "file", "line", "in run")
_WAITING = ("stream", "key", "waits for", "file", "line", "since")
_IN_DOUBT = ("stream", "key", "operation", "attempts", "first sent", "file", "line")


def sections(state: RunDetails, run: RunRecord) -> Iterator[str]:
    """Yield what was rejected until *run*, and what is waiting, in doubt or pending now, if there is any."""
    reasons = state.reasons(run.id)
    room = _LISTS_BYTES // (len(reasons) + 2)  # for each list
    yield from _rejected(state, run, reasons, room)
    yield from _waiting(state, room)
    yield from _in_doubt(state, room)
    if unsent := state.unsent():
        yield f"<h2>Pending</h2><p>{counted(unsent, 'operation')}, sent by the next run.</p>"


def _rejected(state: RunDetails, run: RunRecord, reasons: Sequence[Reason], room: int) -> Iterator[str]:
    if reasons:
        fix = "Correct the source; or correct the mapping, then <code>crossdock records replay</code>."
        yield _heading("Rejected", sum(reason.records for reason in reasons), "in this run or before", fix)
    for reason in reasons:
        rows = map(_rejected_row, state.refused(run.id, reason.code, limit=LISTED))
        yield html.listing(_reason(reason), _REJECTED, rows, reason.records, room, "rejected")


def _waiting(state: RunDetails, room: int) -> Iterator[str]:
    number, found = state.waiting(limit=LISTED)
    if number:
        yield _heading("Waiting", number, "waiting for others", "Delivered once the others are.")
        yield html.listing("Longest first", _WAITING, map(_waiting_row, found), number, room, "waiting")


def _in_doubt(state: RunDetails, room: int) -> Iterator[str]:
    number, found = state.in_doubt(limit=LISTED)
    if number:
        fix = "Check the platform, then <code>crossdock records resolve</code>."
        yield _heading("In doubt", number, "which may or may not have been delivered", fix)
        yield html.listing("Oldest first", _IN_DOUBT, map(_in_doubt_row, found), number, room, "in-doubt")


def _heading(title: str, number: int, what: str, fix: str) -> str:
    return f"<h2>{title}</h2><p>{counted(number, 'record')}, {what}. {fix}</p>"


def _reason(reason: Reason) -> str:
    own = "" if reason.own == reason.records else f", {reason.own:,} of them in this run"
    return f"<code>{html.text(reason.code)}</code> {counted(reason.records, 'record')}{own}"


def _rejected_row(row: Row) -> str:
    message = f"{row['pointer']}: {row['message']}" if row["pointer"] else row["message"]
    place = (row["source"], str(row["line"]), str(row["run_id"]))
    return html.row(_REJECTED, (row["stream"], row["key"] or "(none)", row["stage"], message, *place))


def _waiting_row(row: Row) -> str:
    place = (row["source"], str(row["line"]), instant_text(row["since"]))
    return html.row(_WAITING, (row["stream"], row["key"], parents_text(row["waits_for"]), *place))


def _in_doubt_row(row: Row) -> str:
    sent = instant_text(row["first_sent_at"]) if row["first_sent_at"] else "before the state was restored"
    place = (row["source"], str(row["line"]))
    return html.row(_IN_DOUBT, (row["stream"], row["key"], row["operation"], row["attempts"], sent, *place))
