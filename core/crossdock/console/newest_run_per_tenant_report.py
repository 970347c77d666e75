"""The report of a fleet: the newest run of each tenant, as one self-contained page without record data (law 8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime

from crossdock.console import page_rendering
from crossdock.console.page_tables import Cell, table
from crossdock.state import RunRecord
from crossdock.values.run_messages import error_texts
from crossdock.values.texts_of_numbers_and_times import count_with_noun, duration_text, instant_text

_COLUMNS = ("tenant", "job", "business date", "started", "duration", "status", "open", "requests", "errors")
_WORST_FIRST = ("failed", "incomplete", "running", "degraded", "done")


def self_contained_page(newest: Mapping[str, RunRecord | None], errors: Mapping[str, str], *, at: datetime) -> str:
    """Make the report. *newest* has None for a tenant without a run; *errors* say why the others cannot be read."""
    runs = {tenant: run for tenant, run in newest.items() if run is not None}
    statuses = Counter(run.status for run in runs.values())
    return page_rendering.render(
        "fleet.html",
        tenants=count_with_noun(len(newest) + len(errors), "tenant"),
        counts=", ".join(f"{number:,} {status}" for status, number in statuses.most_common()),
        at=instant_text(at),
        errors=[(tenant, error.split("\n")) for tenant, error in errors.items()],
        runs=table(_COLUMNS, _rows(runs)),
        without_runs=[tenant for tenant, run in newest.items() if run is None],
    )


def _rows(runs: Mapping[str, RunRecord]) -> Iterator[tuple[Cell, ...]]:
    for tenant, run in sorted(runs.items(), key=lambda each: (_severity(each[1]), each[0])):
        yield (
            *(tenant, run.job or "", run.business_date, instant_text(run.started_at)),
            "" if run.duration is None else duration_text(run.duration),
            *(run.status, 0 if run.open_record_counts is None else run.open_record_counts.total, run.requests),
            "; ".join(" ".join(each.split()) for each in error_texts(run.messages)),
        )


def _severity(run: RunRecord) -> int:
    return _WORST_FIRST.index(run.status) if run.status in _WORST_FIRST else 0
