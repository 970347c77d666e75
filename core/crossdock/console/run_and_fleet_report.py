"""Self-contained reports without record data (law 8): of a run, with what is open, and the newest runs of a fleet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from typing import Any

from msgspec import Struct

from crossdock.console import page_rendering, plot_shapes
from crossdock.console.page_tables import (
    Cell,
    Link,
    MakePageAddress,
    Table,
    listing_within_bytes,
    omit_address_in_file,
    table,
    tally_tables,
)
from crossdock.console.plot_shapes import BarPlot, plot_allowance
from crossdock.console.run_progress import progress_text
from crossdock.runs import comparison_with_earlier_runs, tables_and_sentences_of_run
from crossdock.runs.comparison_with_earlier_runs import Comparison, Measure
from crossdock.runs.counts_of_changed_members import ChangedMember, count_members_changed_by_run
from crossdock.runs.record_history import value_text
from crossdock.runs.tables_and_sentences_of_run import BalanceSheet
from crossdock.state import FileFacts, RunRecord, Transaction
from crossdock.state.queries.run_details_and_deliveries import (
    ReasonCount,
    Row,
    RunDetails,
    StreamDelivery,
    StreamReasonCount,
    summed_by_reason_code,
)
from crossdock.values.run_progress_and_messages import error_texts, warning_and_note_texts
from crossdock.values.run_states_and_tally import RecordTerm, RunState, StateWord
from crossdock.values.texts_of_numbers_and_times import (
    awaited_records_text,
    count_with_noun,
    duration_text,
    instant_text,
)
from crossdock.writing.delivery.operations_and_intents import PersonalDataMasks
from crossdock.writing.targets.payload_comparison import MemberDifference

_NEWEST_RUN_COLUMNS = ("tenant", "job", "business date", "started", "duration", "status", "open", "requests", "errors")
_WORST_FIRST = ("failed", "incomplete", "running", "degraded", "done")


def render_fleet_report_file(newest: Mapping[str, RunRecord | None], errors: Mapping[str, str], *, at: datetime) -> str:
    """Make the report. *newest* has None for a tenant without a run; *errors* say why the others cannot be read."""
    runs = {tenant: run for tenant, run in newest.items() if run is not None}
    statuses = Counter(run.status for run in runs.values())
    return page_rendering.render(
        "fleet.html",
        tenants=count_with_noun(len(newest) + len(errors), "tenant"),
        counts=", ".join(f"{number:,} {status}" for status, number in statuses.most_common()),
        at=instant_text(at),
        errors=[(tenant, error.split("\n")) for tenant, error in errors.items()],
        runs=table(_NEWEST_RUN_COLUMNS, _newest_run_rows_worst_first(runs)),
        without_runs=[tenant for tenant, run in newest.items() if run is None],
    )


def _newest_run_rows_worst_first(runs: Mapping[str, RunRecord]) -> Iterator[tuple[Cell, ...]]:
    for tenant, run in sorted(runs.items(), key=lambda each: (_severity_rank_of_run(each[1]), each[0])):
        yield (
            *(tenant, run.job or "", run.business_date, instant_text(run.started_at)),
            "" if run.duration is None else duration_text(run.duration),
            *(run.status, 0 if run.open_record_counts is None else run.open_record_counts.total, run.requests),
            "; ".join(" ".join(each.split()) for each in error_texts(run.messages)),
        )


def _severity_rank_of_run(run: RunRecord) -> int:
    return _WORST_FIRST.index(run.status) if run.status in _WORST_FIRST else 0


_ERROR_LINES = 20  # most lines of an error
_FILES = ("stream", "file", "rows", "bytes", "modified", "accepted", "SHA-256")
_FILES_LISTED = 1_000  # most accepted files whose facts are read
_STEPS = ("step", "duration", "of the run", "began after", "when")
_DELIVERIES = ("stream", "operations", "started", "ended", "duration")
_REASONS = ("stream", "reason", "records", "in this run")
_MEMBERS = ("stream", "member", "updates")
_COMPARED = ("run", "business date", "status")
_OPERATIONS: Mapping[str, str] = {
    RecordTerm.CREATED: "create", RecordTerm.UPDATED: "update", RecordTerm.DELETED: "delete",
}  # fmt: skip
_LOG = ("level", "stream", "message")
LISTED = 200  # most records of each reason or state
_LISTS_BYTES = 4_500_000  # of all lists, so that a page stays below 5 MB
_REJECTED = ("stream", "key", "stage", "message", "file", "line", "in run")
_WAITING = ("stream", "key", "waits for", "file", "line", "since")
_IN_DOUBT = ("stream", "key", "operation", "attempts", "first sent", "file", "line")


class ReportViewer(Struct, frozen=True):
    """Who reads a page, which is the reader of a file unless it is said otherwise.

    Attributes:
        address: Makes the addresses of other pages.
        masks: Hides personal values in examples of changes; without it there are none.
        may_operate: Whether there are links to actions of operators.
        has_lists: Whether open records are listed on the page, and not on pages of their own.
    """

    address: MakePageAddress = omit_address_in_file
    masks: PersonalDataMasks | None = None
    may_operate: bool = False
    has_lists: bool = True


VIEWER_OF_FILE = ReportViewer()


def render_run_report_file(tx: Transaction, run: RunRecord, *, at: datetime, tenant: str, config: Path) -> str:
    """Return the report, of at most 5 MB. It begins with what needs a person: errors, open records and notes."""
    return page_rendering.render(
        "run.html", layout="layout.html", **run_report_template_values(tx, run, at=at, tenant=tenant, config=config)
    )


def run_report_template_values(
    tx: Transaction, run: RunRecord, *, at: datetime, tenant: str, config: Path, reader: ReportViewer = VIEWER_OF_FILE
) -> dict[str, Any]:
    """Return what the template of the report shows."""
    state = tx.run_details
    streams, later = run.tally or {}, state.count_rejected_records_of_runs_after(run.id)
    errors = [error.split("\n")[:_ERROR_LINES] for error in error_texts(run.messages)]
    balanced, notes = tables_and_sentences_of_run.run_document(run)["balanced"], warning_and_note_texts(run.messages)
    opened = open_record_template_values(state, run, reader)
    return {
        "run": run,
        "meaning": RunState(run.status).meaning,
        "tenant": tenant,
        "config": config.name,
        "job": _started_by_text(run),
        "progress": _progress_sentence(tx, run, at),
        "actions": [],
        "in_console": not reader.has_lists,
        "personal_address": "",
        "errors": errors,
        "explained": [],
        "imbalance": _imbalance_text(run, balanced),
        "open": opened,
        "notes": notes,
        "needs_nobody": balanced is True and not (errors or notes or any(opened.values())),
        "facts": _facts(run, reader.address),
        "apis": table(
            tables_and_sentences_of_run.API_COLUMNS,
            tables_and_sentences_of_run.api_usage_table_rows(tables_and_sentences_of_run.api_usage_by_connection(run)),
            kind="numbers",
        ),
        "files": table(_FILES, _file_rows(tx, run, at)),
        "accounts": tally_tables(streams),
        "sheets": list(_balance_sheets(run.id, streams, reader.address)),
        "is_balanced": balanced is True,
        "changes": _changed_members_template_values(state, run, reader),
        "comparison": _comparison_with_earlier_runs(tx, run, reader.address),
        "steps": _steps_table(run),
        "allowance": _allowance_values(run),
        "deliveries": _delivery_times_by_stream_table(state.delivery_times_by_stream(run)),
        "log": table(
            _LOG, ((each.level, each.stream, each.text_with_place_and_advice.split("\n")) for each in run.messages)
        ),
        "words": [
            (word.display_text, word.meaning) for word in tables_and_sentences_of_run.state_words_to_explain(run)
        ],
        "at": instant_text(at),
        "later": count_with_noun(later, "record") if later else "",
    }


def _progress_sentence(tx: Transaction, run: RunRecord, now: datetime) -> str:
    return f"In progress: {progress_text(tx, run, now)}." if run.status == "running" else ""


def _started_by_text(run: RunRecord) -> str:
    command = f"started by crossdock {run.command}" if run.command else "started manually"
    return f"job {run.job}" if run.job else command


def _imbalance_text(run: RunRecord, balanced: bool | None) -> str:
    if run.tally is None:
        return "This run has no tally."
    return "" if balanced is True else tables_and_sentences_of_run.BALANCE[balanced]


def _facts(run: RunRecord, address: MakePageAddress) -> dict[str, str | Link]:
    streams = (run.tally or {}).values()
    facts: dict[str, str | Link] = {
        "business date": run.business_date,
        "started": instant_text(run.started_at),
        "ended": instant_text(run.finished_at) if run.finished_at else "not yet",
        "duration": "" if run.duration is None else duration_text(run.duration),
        "requests": Link(f"{run.requests:,} ({run.throttled:,} throttled)", address("connections")),
        "delivered": Link(
            f"{sum(each['records']['delivered'] for each in streams):,}", address("runs", run.id, "delivered")
        ),
        "open": "" if run.open_record_counts is None else Link(str(run.open_record_counts), address("records")),
    }
    return {name: value for name, value in facts.items() if value}


def _file_rows(tx: Transaction, run: RunRecord, now: datetime) -> Iterator[tuple[Cell, ...]]:
    """Yield the files of the tally with the facts of those that the run has accepted, then others that it has."""
    end = run.finished_at or now
    accepted = tx.intake.accepted_between(run.started_at, end, limit=_FILES_LISTED)
    facts = {(stream, file.name): file for stream, file in accepted}
    for stream, account in (run.tally or {}).items():
        for name, rows in _files_of_tally(account):
            yield stream, name, rows, *_file_cells(facts.pop((stream, name), None))
    for (stream, name), file in facts.items():
        yield stream, name, "", *_file_cells(file)


def _file_cells(file: FileFacts | None) -> tuple[Cell, ...]:
    if file is None:
        return "", "", "", ""
    accepted = "" if file.accepted_at is None else instant_text(file.accepted_at)
    undone = ", undone since" if file.is_undone else ""
    return file.size, instant_text(file.modified_at), f"{accepted}{undone}", file.content_hash[:16]


def _files_of_tally(stream: Mapping[str, Any]) -> Iterator[tuple[str, str | int]]:
    for file in stream.get("files", ()):
        unread = "unchanged" if stream.get("input") == "unchanged" else "not imported"
        yield file["name"], unread if file["rows"] is None else file["rows"]
    if more := stream.get("more_files"):
        yield f"{count_with_noun(more, 'file')} more", ""
    if stream.get("input") == "none":
        yield tables_and_sentences_of_run.found_files_sentence(stream) or "", ""


def _balance_sheets(run: int, streams: Mapping[str, Any], address: MakePageAddress) -> Iterator[dict[str, Any]]:
    for sheet in tables_and_sentences_of_run.balance_sheets(streams):
        sides = [
            [_term_and_number_cells(run, sheet, term, number, address) for term, number in side]
            for side in (sheet.came, sheet.became)
        ]
        yield {
            "caption": f"{sheet.stream}: {sheet.of}",
            "of": sheet.of,
            "rows": [(*came, *became) for came, became in zip_longest(*sides, fillvalue=("", ""))],
            "sums": [f"{each:,}" for each in sheet.sums],
        }


def _term_and_number_cells(
    run: int, sheet: BalanceSheet, term: str, number: int, address: MakePageAddress
) -> tuple[str, str | Link]:
    shown = term.display_text if isinstance(term, StateWord) else term
    if term == RecordTerm.REJECTED:
        return shown, Link(f"{number:,}", address("records", "rejected", stream=sheet.stream))
    if operation := _OPERATIONS.get(term):
        return shown, Link(f"{number:,}", address("runs", run, "delivered", stream=sheet.stream, operation=operation))
    return shown, f"{number:,}"


def _changed_members_template_values(state: RunDetails, run: RunRecord, reader: ReportViewer) -> dict[str, Any] | None:
    found = count_members_changed_by_run(state, run.id, reader.masks)
    if not found.members:
        return None
    columns = _MEMBERS if reader.masks is None else (*_MEMBERS, "first examples")
    rows = (
        (each.stream, each.member, each.times, *_changed_member_example_cells(each, reader)) for each in found.members
    )
    only = "" if found.are_all else f"Only the first {found.operations:,} operations of this run were looked at."
    return {"table": table(columns, rows), "only": only}


def _changed_member_example_cells(changed: ChangedMember, reader: ReportViewer) -> Iterator[Cell]:
    if reader.masks is not None:
        yield [
            Link(
                f"{each.key}: {_member_difference_text(each.difference)}",
                reader.address("record", stream=changed.stream, key=each.key),
            )
            for each in changed.examples
        ]


def _member_difference_text(difference: MemberDifference) -> str:
    return f"{value_text(difference.before)} -> {value_text(difference.after)}"


def _comparison_with_earlier_runs(tx: Transaction, run: RunRecord, address: MakePageAddress) -> dict[str, Any] | None:
    compared = comparison_with_earlier_runs.compare_last_run_with_earlier(
        tx.runs.run_and_predecessors(run, limit=comparison_with_earlier_runs.EARLIER + 1)
    )
    if compared is None:
        return None
    columns = (*_COMPARED, *(each.name for each in compared.measures))
    rows: list[tuple[Cell, ...]] = [
        (
            Link(str(each.id), address("runs", each.id)),
            each.business_date,
            Link(each.status, "", kind=each.status),
            *(measure.texts[number] for measure in compared.measures),
        )
        for number, each in enumerate(compared.runs)
    ]
    return {
        "remarks": compared.remarks,
        "plots": [_measure_plot_across_runs(each, compared) for each in compared.measures],
        "table": table(columns, reversed(rows)),
    }


def _measure_plot_across_runs(measure: Measure, compared: Comparison) -> BarPlot:
    found = zip(compared.runs, measure.values, measure.texts, strict=True)
    values = [plot_shapes.BarValue(f"{run.business_date}, run {run.id}", number, text) for run, number, text in found]
    return plot_shapes.bar_plot(measure.name.capitalize(), values, marks_last=True)


def _steps_table(run: RunRecord) -> Table:
    found = tables_and_sentences_of_run.step_spans_by_beginning(run)
    whole = max((began + lasted for step in found for began, lasted in step.spans), default=timedelta())
    rows = (
        (
            step.total.name,
            duration_text(step.total.lasted),
            f"{step.total.share:.0f} %",
            duration_text(step.began),
            plot_shapes.timeline_of_one_step(step, whole),
        )
        for step in found
        if step.total.lasted
    )
    return table(_STEPS, rows, kind="waterfall")


def _allowance_values(run: RunRecord) -> dict[str, Any] | None:
    if (summary := tables_and_sentences_of_run.allowance_summary(run)) is None:
        return None
    seconds = (run.duration or timedelta()).total_seconds()
    return {
        "plot": plot_allowance(tables_and_sentences_of_run.allowance_samples(run), seconds),
        "summary": f"{str(summary).capitalize()}.",
    }


def _delivery_times_by_stream_table(found: Sequence[StreamDelivery]) -> Table:
    return table(
        _DELIVERIES,
        ((each.stream, each.operations, *_start_end_and_duration_texts(each)) for each in found),
        kind="numbers",
    )


def _start_end_and_duration_texts(delivery: StreamDelivery) -> tuple[str, str, str]:
    began, ended = delivery.began, delivery.ended
    return instant_text(began), instant_text(ended), duration_text(ended - began)


def open_record_template_values(
    state: RunDetails, run: RunRecord, reader: ReportViewer = VIEWER_OF_FILE
) -> Mapping[str, Any]:
    """Return what was rejected until *run*, and what is waiting, in doubt or pending now, or nothing of a kind."""
    reasons = state.rejections_by_stream_until_run(run.id)
    number = len({each.code for each in reasons})
    lists = _OpenRecordLists(state, reader, _LISTS_BYTES // (number + 3))
    unsent = state.count_all_unsent_operations()
    return {
        "rejected": lists.rejected(run, reasons),
        "waiting": lists.waiting(),
        "in_doubt": lists.unsettled("in_doubt"),
        "overdue": lists.unsettled("overdue"),
        "pending": count_with_noun(unsent, "operation") if unsent else "",
    }


class _OpenRecordLists:
    """Lists of open records, each of at most *room* bytes, or where the reader finds them."""

    def __init__(self, state: RunDetails, reader: ReportViewer, room: int) -> None:
        self._state, self._reader, self._room = state, reader, room

    def rejected(self, run: RunRecord, reasons: Sequence[StreamReasonCount]) -> dict[str, Any] | None:
        if not reasons:
            return None
        columns = (*_REASONS, "what to do") if self._reader.may_operate else _REASONS
        return {
            "records": count_with_noun(sum(reason.records for reason in reasons), "record"),
            "by_stream": table(columns, map(self._reason_row, reasons)),
            "reasons": [self._reason_and_records_template_values(run, each) for each in summed_by_reason_code(reasons)]
            if self._reader.has_lists
            else [],
        }

    def _reason_row(self, reason: StreamReasonCount) -> Iterator[Cell]:
        chosen = {"stream": reason.stream, "reason": reason.code}
        yield reason.stream
        yield reason.code
        yield Link(f"{reason.records:,}", self._reader.address("records", "rejected", **chosen))
        yield reason.own
        if self._reader.may_operate:
            yield Link("Replay", self._reader.address("do", "replay", **chosen))

    def _reason_and_records_template_values(self, run: RunRecord, reason: ReasonCount) -> dict[str, Any]:
        rows = map(_rejected_row, self._state.dead_letters_with_reason_until_run(run.id, reason.code, limit=LISTED))
        return {
            "code": reason.code,
            "records": count_with_noun(reason.records, "record"),
            "own": "" if reason.own == reason.records else f"{reason.own:,}",
            "listing": listing_within_bytes(_REJECTED, rows, reason.records, "rejected", room=self._room),
        }

    def waiting(self) -> dict[str, Any] | None:
        number, found = self._state.count_and_list_oldest_waiting(limit=LISTED if self._reader.has_lists else 0)
        return self._record_list_template_values(_WAITING, map(_waiting_row, found), number, "waiting")

    def unsettled(self, status: str) -> dict[str, Any] | None:
        number, found = self._state.count_and_list_oldest_unsettled(
            status, limit=LISTED if self._reader.has_lists else 0
        )
        return self._record_list_template_values(
            _IN_DOUBT, map(_unsettled_row, found), number, status.replace("_", "-")
        )

    def _record_list_template_values(
        self, columns: Sequence[str], rows: Iterable[tuple[Cell, ...]], number: int, state: str
    ) -> dict[str, Any] | None:
        if not number:
            return None
        made = listing_within_bytes(columns, rows, number, state, room=self._room) if self._reader.has_lists else None
        return {
            "records": Link(count_with_noun(number, "record"), self._reader.address("records", state)),
            "listing": made,
        }


def _rejected_row(row: Row) -> tuple[Cell, ...]:
    message = f"{row['pointer']}: {row['message']}" if row["pointer"] else row["message"]
    place = (row["source"], str(row["line"]), str(row["run_id"]))
    return row["stream"], row["key"] or "(none)", row["stage"], message, *place


def _waiting_row(row: Row) -> tuple[Cell, ...]:
    place = (row["source"], str(row["line"]), instant_text(row["since"]))
    return row["stream"], row["key"], awaited_records_text(row["waits_for"]), *place


def _unsettled_row(row: Row) -> tuple[Cell, ...]:
    sent = instant_text(row["first_sent_at"]) if row["first_sent_at"] else "before the state was restored"
    place = (row["source"], str(row["line"]))
    return row["stream"], row["key"], row["operation"], row["attempts"], sent, *place
