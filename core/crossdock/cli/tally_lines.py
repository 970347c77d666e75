"""The tally of a run as tables, in the same form on the terminal and in a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crossdock.values.exact_json import time_text
from crossdock.values.run_messages import document_of
from crossdock.values.state_words import RecordState, RecordTerm, RowTerm, RunState, StateWord
from crossdock.values.tally import IN, OUT, OpenCounts

if TYPE_CHECKING:
    from crossdock.state import RunRecord

Line = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class TallyTable:
    """One line for each stream, and one column for each term. The first column has the stream's name."""

    title: str
    columns: tuple[str, ...]
    lines: list[Line]

    @property
    def has_counts(self) -> bool:
        """Whether any term of any stream is not zero."""
        return any(number for _, *numbers in self.lines for number in numbers)


def tables(streams: Mapping[str, Any]) -> tuple[TallyTable, TallyTable]:
    """Return the accounts of rows and of records, from the *streams* of `facts`, without terms that are zero."""
    rows = {name: _row_terms(stream["rows"]) for name, stream in streams.items()}
    records = {name: _record_terms(stream["records"]) for name, stream in streams.items()}
    return (
        _account("Rows", rows, always=("read", "in records")),
        _account("Records", records, always=("read", "unchanged", "created")),
    )


def facts(run: RunRecord) -> dict[str, Any]:
    """Return a run as ``--json`` prints it."""
    tally = run.tally or {}
    return {
        "run": run.id,
        "job": run.job,
        "command": run.command,
        "business_date": run.business_date,
        "started_at": time_text(run.started_at),
        "status": run.status,
        "seconds": None if run.duration is None else run.duration.total_seconds(),
        "requests": run.requests,
        "throttled": run.throttled,
        "balanced": balance(None if run.tally is None else [stream["balanced"] for stream in tally.values()]),
        "open": None if run.open is None else run.open.as_json(),
        **document_of(tally, run.messages),
    }


def title(run: Mapping[str, Any]) -> str:
    """Describe a run and what started it, if that is known, from `facts`."""
    started = f"{run['job']} for {run['business_date']}" if run.get("job") else run.get("command")
    return f"run {run['run']}" + (f" ({started})" if started else "")


def words(run: RunRecord) -> list[StateWord]:
    """Return the words in the tables of a run that need a sentence."""
    found = [_record_terms(stream["records"]) for stream in (run.tally or {}).values()]
    used = {term for account in found for term, number in account.items() if number}
    states = [state for state in RecordState if run.open is not None and run.open.as_json().get(state)]
    return [RunState(run.status), *states, *(term for term in RecordTerm if term.shown in used)]


def balance(balanced: Sequence[bool | None] | None) -> bool | None:
    """Return whether a run balances, from whether its streams do; None if it has no tally, or a partial one."""
    if balanced is None:
        return None
    return False if False in balanced else None if None in balanced else True


BALANCE = {
    True: "the tally balances",
    False: "THE TALLY DOES NOT BALANCE",
    None: "its tally is partial: an error ended it in the middle of a step",
}


def open_records(streams: Mapping[str, Any]) -> list[str]:
    """Return one sentence for each stream with open records, from the *streams* of `facts`."""
    counts = ((name, OpenCounts.of_json(stream.get("open", {}))) for name, stream in streams.items())
    return [f"{name}: open: {each}" for name, each in counts if each.total]


def _account(title: str, accounts: Mapping[str, Mapping[str, int]], *, always: Sequence[str]) -> TallyTable:
    terms = dict.fromkeys(term for account in accounts.values() for term in account)
    shown = [term for term in terms if term in always or any(account.get(term) for account in accounts.values())]
    lines: list[Line] = [(name, *(account.get(term, 0) for term in shown)) for name, account in accounts.items()]
    return TallyTable(title, ("stream", *shown), lines)


def _row_terms(rows: Mapping[str, Any]) -> dict[str, int]:
    filtered = {f"skip {name}": number for name, number in rows["filtered"].items()}
    others = (RowTerm.SUPERSEDED, RowTerm.REJECTED, RowTerm.IN_RECORDS)
    return {RowTerm.READ.shown: rows[RowTerm.READ], **filtered, **{term.shown: rows[term] for term in others}}


def _record_terms(records: Mapping[str, int]) -> dict[str, int]:
    return {RecordTerm(term).shown: records.get(term, 0) for term in (*IN, *OUT)}
