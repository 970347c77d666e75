"""What a run read, sent and asked of APIs, and its slowest steps, as tables and sentences for terminals and reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from crossdock.values.run_progress_and_messages import streams_and_messages_document
from crossdock.values.run_states_and_tally import (
    IN,
    OUT,
    OpenCounts,
    RecordState,
    RecordTerm,
    RowTerm,
    RunState,
    StateWord,
)
from crossdock.values.texts_of_numbers_and_times import count_with_noun, duration_text, instant_text, json_time_text

if TYPE_CHECKING:
    from crossdock.state import RunRecord

SLOWEST = 10  # most steps shown
_SHORT = timedelta(milliseconds=50)  # shorter steps would show as 0.0 s

Sample = tuple[float, int]  # seconds since the run began, and tokens


class StepTime(Struct, frozen=True):
    """The total of all steps of one name. *share* is its percentage of the run."""

    name: str
    lasted: timedelta
    share: float


class StepSpans(Struct, frozen=True):
    """When the steps of one name took place: the first began at *began*. *spans* are beginnings and durations."""

    total: StepTime
    began: timedelta
    spans: tuple[tuple[timedelta, timedelta], ...]


class AllowanceSummary(Struct, frozen=True):
    """The allowance in tokens. While it was *short*, below a quarter of the highest, it determined the speed."""

    lowest: int
    lowest_at: timedelta
    highest: int
    short: timedelta

    def __str__(self) -> str:
        if self.lowest == self.highest:
            return f"{self.lowest:,} tokens throughout"
        quarter = (
            f"below a quarter of that for {duration_text(self.short)}"
            if self.short
            else "never below a quarter of that"
        )
        return (
            f"lowest {self.lowest:,} tokens, after {duration_text(self.lowest_at)}; highest {self.highest:,}; {quarter}"
        )


def slowest_steps_and_allowance_document(run: RunRecord) -> dict[str, Any]:
    if run.timings is None:
        return {}
    steps = [
        {"step": s.name, "seconds": s.lasted.total_seconds(), "percent": round(s.share, 1)} for s in slowest_steps(run)
    ]
    tokens = allowance_summary(run)
    summary = tokens and {
        "lowest": tokens.lowest,
        "highest": tokens.highest,
        "seconds_below_a_quarter": tokens.short.total_seconds(),
    }
    return {"slowest_steps": steps, "allowance": summary, "apis": api_usage_by_connection(run)}


def api_usage_by_connection(run: RunRecord) -> dict[str, Any]:
    found: dict[str, Any] = (run.timings or {}).get("apis", {})
    return found


def step_spans_by_beginning(run: RunRecord) -> list[StepSpans]:
    """Return all steps in the order in which they began."""
    found: dict[str, list[tuple[timedelta, timedelta]]] = {}
    for name, began, lasted in (run.timings or {}).get("steps", ()):
        found.setdefault(name, []).append((timedelta(milliseconds=began), timedelta(milliseconds=lasted)))
    sums = {name: sum((lasted for _, lasted in spans), timedelta()) for name, spans in found.items()}
    whole = sum(sums.values(), timedelta()) or timedelta.resolution
    return sorted(
        (
            StepSpans(StepTime(name, sums[name], 100 * (sums[name] / whole)), min(spans)[0], tuple(sorted(spans)))
            for name, spans in found.items()
        ),
        key=lambda each: each.began,
    )


def slowest_steps(run: RunRecord) -> list[StepTime]:
    ordered = sorted((each.total for each in step_spans_by_beginning(run)), key=lambda step: step.lasted, reverse=True)
    return [step for step in ordered[:SLOWEST] if step.lasted >= _SHORT]


def allowance_samples(run: RunRecord) -> list[Sample]:
    return [(at / 1000, tokens) for at, tokens in (run.timings or {}).get("samples", ())]


def allowance_summary(run: RunRecord) -> AllowanceSummary | None:
    found = allowance_samples(run)
    if not found:
        return None
    at, lowest = min(found, key=lambda sample: sample[1])
    highest = max(tokens for _, tokens in found)
    short = sum(later - at for (at, before), (later, after) in pairwise(found) if 4 * max(before, after) < highest)
    return AllowanceSummary(lowest, timedelta(seconds=at), highest, timedelta(seconds=short))


Line = tuple[str | int, ...]
BALANCE = {
    True: "the tally balances",
    False: "THE TALLY DOES NOT BALANCE",
    None: "its tally is partial: an error ended it in the middle of a step",
}
API_COLUMNS = ("connection", "requests", "throttled", "waited for the rate limit")
_NAMED = 3  # most files in a sentence


class TallyTable(Struct, frozen=True):
    """One line for each stream, and one column for each term. The first column has the stream's name."""

    title: str
    columns: tuple[str, ...]
    lines: list[Line]

    @property
    def has_counts(self) -> bool:
        return any(number for _, *numbers in self.lines for number in numbers)


class BalanceSheet(Struct, frozen=True):
    """What came into a stream, and what became of it, as terms with their numbers, without zeros."""

    stream: str
    of: str
    came: tuple[tuple[StateWord | str, int], ...]
    became: tuple[tuple[StateWord | str, int], ...]

    @property
    def sums(self) -> tuple[int, int]:
        came, became = (sum(number for _, number in side) for side in (self.came, self.became))
        return came, became


def balance_sheets(streams: Mapping[str, Any]) -> list[BalanceSheet]:
    """Return the sheets of rows and of records of each of the *streams* of `run_document`, without empty ones."""
    found: list[BalanceSheet] = []
    for name, stream in streams.items():
        rows, records = stream["rows"], stream["records"]
        filtered = [(f"skip {each}", number) for each, number in rows["filtered"].items()]
        others = [(term, rows[term]) for term in (RowTerm.SUPERSEDED, RowTerm.REJECTED, RowTerm.IN_RECORDS)]
        sides = [[(RecordTerm(term), records.get(term, 0)) for term in terms] for terms in (IN, OUT)]
        found += [
            BalanceSheet(
                name, "rows", _without_zeros([(RowTerm.READ, rows[RowTerm.READ])]), _without_zeros([*filtered, *others])
            ),
            BalanceSheet(name, "records", *map(_without_zeros, sides)),
        ]
    return [each for each in found if any(each.sums)]


def _without_zeros(terms: Sequence[tuple[StateWord | str, int]]) -> tuple[tuple[StateWord | str, int], ...]:
    return tuple((term, number) for term, number in terms if number)


def tally_tables(streams: Mapping[str, Any]) -> list[TallyTable]:
    """Return the accounts of rows, records and their parts, from the *streams* of `run_document`, without zeros."""
    rows = {name: _row_counts_by_term(stream["rows"]) for name, stream in streams.items()}
    records = {name: _record_counts_by_term(stream["records"]) for name, stream in streams.items()}
    parts = {name: stream["parts"] for name, stream in streams.items() if stream.get("parts")}
    return [
        _tally_table("Rows", rows, always=("read", "in records")),
        _tally_table("Records", records, always=("read", "unchanged", "created")),
        *([_tally_table("Parts of records", parts, always=())] if parts else []),
    ]


def run_document(run: RunRecord) -> dict[str, Any]:
    """Return a run as ``--json`` prints it."""
    tally = run.tally or {}
    return {
        "run": run.id,
        "job": run.job,
        "command": run.command,
        "business_date": run.business_date,
        "started_at": json_time_text(run.started_at),
        "status": run.status,
        "seconds": None if run.duration is None else run.duration.total_seconds(),
        "requests": run.requests,
        "throttled": run.throttled,
        "balanced": is_run_balanced(None if run.tally is None else [stream["balanced"] for stream in tally.values()]),
        "open": None if run.open_record_counts is None else run.open_record_counts.as_json(),
        **streams_and_messages_document(tally, run.messages),
    }


def run_title(run: Mapping[str, Any]) -> str:
    started = f"{run['job']} for {run['business_date']}" if run.get("job") else run.get("command")
    return f"run {run['run']}" + (f" ({started})" if started else "")


def run_sentence(run: Mapping[str, Any]) -> str:
    """Return how the run of a `run_document` or of `Report.as_json` ended."""
    return (
        f"{run_title(run)}: {run['status']}, {count_with_noun(run['requests'], 'request')} ({run['throttled']:,} "
        "throttled)"
        f" in {duration_text(run['seconds'])}; {BALANCE[run['balanced']]}"
    )


def tally_sentence(name: str, tally: Mapping[str, Any]) -> str:
    """Return the terms of a stream that are not zero: ``wms.a: rows: 3 read, 3 in records; records: 1 read``."""
    terms = {"rows": _row_counts_by_term(tally["rows"]), "records": _record_counts_by_term(tally["records"])}
    counts = {of: ", ".join(f"{n:,} {term}" for term, n in each.items() if n) for of, each in terms.items()}
    return f"{name}: {'; '.join(f'{of}: {each}' for of, each in counts.items() if each) or 'nothing was read'}"


def state_words_to_explain(run: RunRecord) -> list[StateWord]:
    """Return the words in the tables of a run that need a sentence."""
    found = [_record_counts_by_term(stream["records"]) for stream in (run.tally or {}).values()]
    used = {term for account in found for term, number in account.items() if number}
    states = [
        state
        for state in RecordState
        if run.open_record_counts is not None and run.open_record_counts.as_json().get(state)
    ]
    return [RunState(run.status), *states, *(term for term in RecordTerm if term.display_text in used)]


def is_run_balanced(stream_balances: Sequence[bool | None] | None) -> bool | None:
    """Return whether a run balances, from whether its streams do; None if it has no tally, or a partial one."""
    if stream_balances is None:
        return None
    return False if False in stream_balances else None if None in stream_balances else True


def open_record_lines(streams: Mapping[str, Any]) -> list[str]:
    """Return what is open of each stream, and why that are fewer rejected records than its tally has."""
    lines = []
    for name, stream in streams.items():
        counts = OpenCounts.of_json(stream.get("open", {}))
        rejected = stream["rows"]["rejected"] + stream["records"]["rejected"]
        reason = f"; the tally has {rejected:,} rejected: it counts a record each time"
        if counts.total or ("open" in stream and rejected):
            lines.append(f"{name}: open: {counts}{reason if rejected > counts.rejected else ''}")
    return lines


def _tally_table(title: str, accounts: Mapping[str, Mapping[str, int]], *, always: Sequence[str]) -> TallyTable:
    terms = dict.fromkeys(term for account in accounts.values() for term in account)
    shown = [term for term in terms if term in always or any(account.get(term) for account in accounts.values())]
    lines: list[Line] = [(name, *(account.get(term, 0) for term in shown)) for name, account in accounts.items()]
    return TallyTable(title, ("stream", *shown), lines)


def _row_counts_by_term(rows: Mapping[str, Any]) -> dict[str, int]:
    filtered = {f"skip {name}": number for name, number in rows["filtered"].items()}
    others = (RowTerm.SUPERSEDED, RowTerm.REJECTED, RowTerm.IN_RECORDS)
    return {
        RowTerm.READ.display_text: rows[RowTerm.READ],
        **filtered,
        **{term.display_text: rows[term] for term in others},
    }


def _record_counts_by_term(records: Mapping[str, int]) -> dict[str, int]:
    return {RecordTerm(term).display_text: records.get(term, 0) for term in (*IN, *OUT)}


Cells = tuple[str, int, int, str]


def api_usage_table_rows(apis: Mapping[str, Any]) -> Iterator[Cells]:
    for name, usage in apis.items():
        yield name, usage["requests"], usage["throttled"], duration_text(timedelta(milliseconds=usage["waited_ms"]))


def api_usage_sentences(apis: Mapping[str, Any]) -> Iterator[str]:
    for name, requests, throttled, waited in api_usage_table_rows(apis):
        wait = f", waited {waited} for the rate limit" if apis[name]["waited_ms"] >= 1000 else ""
        yield f"{name}: {count_with_noun(requests, 'API request')} ({throttled:,} throttled){wait}"


def found_files_sentence(stream: Mapping[str, Any]) -> str | None:
    """Describe what one of the streams in `Report.as_json` found; None if it read no files."""
    found, files = stream.get("input"), stream.get("files", [])
    if found == "none":
        newest = stream["newest_file"]
        return (
            f"no new file (newest: {newest['name']} of {_time_text(newest['modified_at'])})"
            if newest
            else "no file yet"
        )
    number = len(files) + stream.get("more_files", 0)
    many = f"{count_with_noun(number, 'file')}: {files[0]['name']} to {files[-1]['name']}" if number > _NAMED else None
    if found == "unchanged":
        if number == 1:
            return f"file unchanged: {files[0]['name']} has the content that was read before"
        names = many or ", ".join(file["name"] for file in files)
        return f"files unchanged: {names} have the content that was read before"
    if found != "new":
        return None
    is_read = any(file["rows"] is not None for file in files)
    return f"{'read' if is_read else 'not imported:'} {many or ', '.join(map(_file_name_and_row_count, files))}"


def _file_name_and_row_count(file: Mapping[str, Any]) -> str:
    return file["name"] if file["rows"] is None else f"{file['name']} ({count_with_noun(file['rows'], 'row')})"


def _time_text(text: str) -> str:
    return instant_text(datetime.fromisoformat(text))
