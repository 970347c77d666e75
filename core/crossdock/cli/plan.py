"""``crossdock plan``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct, structs

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project
from crossdock.cli.shared_options_messages_and_signals import (
    MOST,
    absolute_path,
    common_options,
    help_example,
    help_meanings,
    print_sentences,
    raise_if_not_writable,
)
from crossdock.runs import tables_and_sentences_of_run
from crossdock.values.clock import SystemClock
from crossdock.values.run_progress_and_messages import error_documents
from crossdock.values.run_states_and_tally import PlanTerm
from crossdock.values.texts_of_numbers_and_times import awaited_records_text, count_with_noun

if TYPE_CHECKING:
    from crossdock.pacing.token_bucket import Forecast
    from crossdock.runs.plan_result import PlanResult
    from crossdock.state import DeadLetter, Intent, RecordIdentity, WaitingRecord
    from crossdock.writing.delivery.operations_and_intents import Operation, PersonalDataMasks


_SHOWN = 50  # records without --limit
FILES_SHOWN = 20
_PERSONAL = {"before": "(personal)", "after": "(personal)"}


@click.command(
    epilog=help_example("crossdock plan", "crossdock plan wms.lots --detailed-exitcode", "crossdock plan -o daily.plan")
    + help_meanings("Decisions about records, apart from new requests", PlanTerm)
)
@click.argument("streams", nargs=-1, metavar="[CONNECTION[.STREAM]]...")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="Save the plan for 'crossdock apply'."
)
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 10 if there is something to do.")
@click.option(
    "--limit",
    type=click.IntRange(0, MOST),
    help="Records to show, and as many removals on hold.  [default: 50; removals on hold are only counted]",
)
@common_options
def plan(
    streams: tuple[str, ...],
    out: Path | None,
    config: Path,
    *,
    detailed_exitcode: bool,
    limit: int | None,
    as_json: bool,
) -> int:
    """Show what a sync would do, with every changed field.

    Calls nothing on the platform and writes nothing. The tally at the end is the one that the sync will report, if the
    platform accepts everything.

    Exit codes: 0 planned; 10 there is something to do (only with --detailed-exitcode); 2 wrong usage or config; 3 a
    source or the state cannot be read; 4 refused for safety: a source, a mapping that fails too often, or removals
    and updates, shown as 'hold'.
    """
    from crossdock.runs import dry_run
    from crossdock.runs.plan_result import PlanListener
    from crossdock.runs.planning import removals

    place = absolute_path(out)
    loaded = load_project(config)
    raise_if_not_writable(place)
    listing = _CountedAndShownRecords(
        _ShownLimit.from_limit_option(limit, as_json=as_json),
        loaded.personal_data_masks,
        removals.operation_kind_or_archive,
    )
    listener = PlanListener(
        listing.add_operation,
        listing.add_rejected,
        listing.add_waiting,
        listing.add_resend,
        listing.add_in_doubt,
        listing.add_withheld,
    )
    with terminal_output.show_progress(wanted=not as_json) as progress:
        if out is None:
            planned, saved = (
                dry_run.plan_sync(loaded, list(streams), listener, clock=SystemClock(), progress=progress),
                None,
            )
        else:
            from crossdock.runs import plan_and_apply

            planned, saved = plan_and_apply.plan_sync_and_hash_decisions(
                loaded, streams, listener, clock=SystemClock(), progress=progress
            )
    terminal_output.print_errors(planned.errors)
    if as_json:
        document = {
            "operations": dict(planned.operations),
            "forecast": structs.asdict(planned.forecast),
            "files": [structs.asdict(file) for file in planned.files],
            "other_forecasts": {name: structs.asdict(forecast) for name, forecast in planned.other_forecasts.items()},
            "streams": {name: tally.as_json() for name, tally in planned.tallies.items()},
            "rejected_before": planned.rejected_before,
            "left_alone": planned.left_alone,
            "on_hold": dict(listing.on_hold),
            "shown": listing.shown,
            "errors": {name: str(error) for name, error in planned.errors.items()},
            "messages": error_documents(planned.errors),
        }
        terminal_output.print_json(document)
    else:
        _print_plan(terminal_output.output_console(), listing, planned)
    if planned.errors:
        if out is not None:
            print_sentences(f"not saved to {out}: a stream could not be planned", err=True)
        return planned.exit_code
    if place is not None and saved is not None:
        saved.save(place)
        if not as_json:
            print_sentences(f"saved; execute it with: crossdock apply {out}")
    return 10 if detailed_exitcode and planned.operations else 0


class _ShownLimit(Struct):
    """The number of records that may still be shown. Removals on hold have their own limit, to list them all."""

    records: int
    removals: int

    @classmethod
    def from_limit_option(cls, limit: int | None, *, as_json: bool) -> _ShownLimit:
        default = _SHOWN if limit is None else limit
        return cls(default, 0 if limit is None and not as_json else default)

    def count_down_if_left(self, *, on_hold: bool) -> bool:
        left = self.removals if on_hold else self.records
        if on_hold:
            self.removals -= left > 0
        else:
            self.records -= left > 0
        return left > 0


class _CountedAndShownRecords:
    """Counts what a run would do, and keeps the first records to show. *counts* leave out removals on hold."""

    def __init__(self, room: _ShownLimit, masks: PersonalDataMasks, verb: Callable[[Operation], str]) -> None:
        self._room, self._masks, self._verb = room, masks, verb
        self.shown: list[dict[str, Any]] = []
        self.counts: Counter[tuple[str, str]] = Counter()
        self.on_hold: Counter[str] = Counter()
        self.removals_on_hold: set[str] = set()

    def add_operation(self, operation: Operation) -> None:
        self._count_and_list_if_room(
            self._verb(operation),
            operation.identity.stream,
            operation.record.key,
            lambda: self._masked_before_and_after(operation),
        )

    def _masked_before_and_after(self, operation: Operation) -> dict[str, Any]:
        before = operation.binding.payload if operation.binding else {}
        personal = self._masks.personal_members(operation.identity.stream, operation.scope)
        changes = {
            name: _PERSONAL if name in personal else {"before": before.get(name), "after": value}
            for name, value in operation.changes.items()
        }
        return {"changes": changes}

    def add_withheld(self, operation: Operation) -> None:
        stream = operation.identity.stream
        self.on_hold[stream] += 1
        if operation.step == "remove":
            self.removals_on_hold.add(stream)
        if self._room.count_down_if_left(on_hold=True):
            is_removal = operation.step == "remove"
            detail = {"removal": self._verb(operation)} if is_removal else self._masked_before_and_after(operation)
            self.shown.append({"do": "hold", "stream": stream, "key": operation.record.key, **detail})

    def add_rejected(self, dead_letter: DeadLetter) -> None:
        detail = {
            "code": dead_letter.code,
            "at": f"{dead_letter.identity.source}:{dead_letter.identity.line}",
            "pointer": dead_letter.pointer,
        }
        self._count_and_list_if_room(
            "reject",
            dead_letter.identity.stream,
            dead_letter.identity.key,
            lambda: {**detail, "message": dead_letter.message},
        )

    def add_waiting(self, record: WaitingRecord) -> None:
        self._count_and_list_if_room(
            "wait", record.identity.stream, record.identity.key, lambda: {"waits_for": record.waits_for}
        )

    def add_resend(self, intent: Intent) -> None:
        kind = "resend" if intent.first_sent_at else "send"
        self._count_and_list_if_room(
            kind, intent.identity.stream, intent.identity.key, lambda: {"idempotency_key": intent.idempotency_key}
        )

    def add_in_doubt(self, identity: RecordIdentity) -> None:
        self._count_and_list_if_room("doubt", identity.stream, identity.key, dict)

    def _count_and_list_if_room(self, kind: str, stream: str, key: str, detail: Callable[[], dict[str, Any]]) -> None:
        self.counts[kind, stream] += 1
        if self._room.count_down_if_left(on_hold=False):
            self.shown.append({"do": kind, "stream": stream, "key": key, **detail()})


def _print_plan(console: Any, listing: _CountedAndShownRecords, planned: PlanResult) -> None:
    for line in _lines(listing, planned):
        console.print(line, soft_wrap=True)
    console.print()
    for account in tables_and_sentences_of_run.tally_tables(
        {name: tally.as_json() for name, tally in planned.tallies.items()}
    ):
        if not account.has_counts:
            continue
        console.print(
            terminal_output.make_fitting_table(
                account.title, account.columns, account.lines, numbers=account.columns[1:]
            )
        )
        console.print()
    on_hold = {("hold", stream): number for stream, number in listing.on_hold.items()}
    counts = ", ".join(f"{n:,} {kind} {stream}" for (kind, stream), n in (*listing.counts.items(), *on_hold.items()))
    console.print(planned.summary(counts))
    forecast = planned.forecast
    if forecast.requests or not planned.other_forecasts:
        console.print(f"{count_with_noun(forecast.requests, 'request')} needed{_sending_time_text(forecast)}")
    for name, forecast in planned.other_forecasts.items():
        console.print(f"{count_with_noun(forecast.requests, 'request')} to {name} needed{_sending_time_text(forecast)}")
    for file in planned.files[:FILES_SHOWN]:
        terminal_output.print_lines(
            console, f"file {file.name} to {file.target}: {count_with_noun(file.records, 'record')}"
        )
    if (more := len(planned.files) - FILES_SHOWN) > 0:
        console.print(f"and {count_with_noun(more, 'more file')}")


def _lines(listing: _CountedAndShownRecords, planned: PlanResult) -> Iterator[str]:
    for item in listing.shown:
        yield f"{item['do']:6} {item['stream']} {item['key'] or '(no key)'}"
        yield from (f"         {line}" for line in _detail_lines(item))
    hidden = listing.counts.total() - sum(item["do"] != "hold" for item in listing.shown)
    if hidden:
        yield f"and {hidden:,} more (--limit)"
    for stream, number in listing.on_hold.items():
        what = "removal" if stream in listing.removals_on_hold else "update"
        yield f"hold   {stream}: {count_with_noun(number, what)} to approve; --limit {number} lists them"
    for stream, number in planned.rejected_before.items():
        yield f"reject {stream}: {count_with_noun(number, 'record')} rejected before and unchanged"
    for stream, number in planned.left_alone.items():
        yield f"gone   {stream}: {count_with_noun(number, 'record')} no longer listed and left alone"


def _sending_time_text(forecast: Forecast) -> str:
    from crossdock.values.texts_of_numbers_and_times import duration_text

    if forecast.seconds is None or forecast.at_once is None or forecast.rate_per_s is None or not forecast.requests:
        return ""
    if forecast.requests <= forecast.at_once:
        return ", all of which can be sent at once"
    time = duration_text(forecast.seconds)
    return f": {forecast.at_once:,} at once, the rest at {forecast.rate_per_s * 60:,.0f} a minute; at least {time}"


_NOTES = {
    "doubt": "may have been carried out: see 'crossdock records resolve --help'",
    "hold": "{removal}: needs 'crossdock approve'",
}


def _detail_lines(item: dict[str, Any]) -> list[str]:
    if item["do"] in {"create", "delete"}:
        return []
    if item["do"] in _NOTES:
        return [_NOTES[item["do"]].format(**{"removal": "update", **item}), *_change_lines(item)]
    if item["do"] in {"update", "archive"}:
        return _change_lines(item)
    if item["do"] == "wait":
        return [f"for {awaited_records_text([parent])}" for parent in item["waits_for"]]
    if item["do"] == "reject":
        return [f"{item['code']} at {item['at']} {item['pointer'] or ''}: {item['message']}"]
    return [f"with the idempotency key {item['idempotency_key']}"]


def _change_lines(item: dict[str, Any]) -> list[str]:
    return [f"{name}: {_change_text(change)}" for name, change in item.get("changes", {}).items()]


def _change_text(change: dict[str, Any]) -> str:
    from crossdock.values import exact_json

    if change is _PERSONAL:
        return "changed (personal)"
    before, after = (exact_json.dumps(change[name]).decode() for name in ("before", "after"))
    return f"{before} -> {after}"
