"""The report of a run as one self-contained HTML page, without record data (law 8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from crossdock.cli import api_lines, html_open_records, html_page, input_lines, tally_lines, timing_lines
from crossdock.cli.html_elements import row, table, text
from crossdock.cli.shared_options import counted
from crossdock.state import RunRecord
from crossdock.state.queries.run_details import Delivery, RunDetails
from crossdock.values.run_messages import error_texts, remarks
from crossdock.values.state_words import RunState
from crossdock.values.times_in_text import duration_text, instant_text

_ERROR_LINES = 20  # most lines of an error
_FILES = ("stream", "file", "rows")
_STEPS = ("step", "duration", "of the run")
_DELIVERIES = ("stream", "operations", "started", "ended", "duration")
_WIDTH, _HEIGHT, _GAP = 600, 120, 24  # units of the plot; a larger gap between samples breaks the area


def page(state: RunDetails, run: RunRecord, *, at: datetime, tenant: str, config: Path) -> str:
    """Return the report of *run* as known *at* that instant, of at most 5 MB.

    It begins with what needs a person: errors, open records and notes.
    """
    needed = [part for part in (*_errors(run), *html_open_records.sections(state, run), *_notes(run)) if part]
    parts = [
        *_title(run, tenant, config),
        *(needed or ["<p>Nothing needs attention.</p>"]),
        *_head(run),
        *_apis(run),
        *_files(run),
        *_tally(run),
        *_timings(run),
        _deliveries(state.deliveries(run)),
        *_words(run),
        *_end(state, run, at),
    ]
    title = f"{text(run.status)}: run {run.id}, {text(run.business_date)}"
    return html_page.document(title, parts)


def _title(run: RunRecord, tenant: str, config: Path) -> Iterator[str]:
    status = text(run.status)
    meaning = text(RunState(run.status).meaning)
    yield f'<h1>Run {run.id}, {text(run.business_date)} <span class="{status}" title="{meaning}">{status}</span></h1>'
    yield f'<p class="soft">Tenant {text(tenant)}, config {text(config.name)}, {_job(run)}.</p>'


def _job(run: RunRecord) -> str:
    command = f"started by crossdock {text(run.command)}" if run.command else "started manually"
    return f"job {text(run.job)}" if run.job else command


def _errors(run: RunRecord) -> Iterator[str]:
    for error in error_texts(run.messages):
        lines = "<br>".join(text(line) for line in error.split("\n")[:_ERROR_LINES])
        yield f'<p class="bad">Error: {lines}</p>'
    if run.tally is None:
        yield '<p class="bad">This run has no tally.</p>'
    elif (balanced := tally_lines.facts(run)["balanced"]) is not True:
        yield f'<p class="bad">{text(tally_lines.BALANCE[balanced])}</p>'


def _notes(run: RunRecord) -> Iterator[str]:
    if notes := remarks(run.messages):
        yield f"<h2>Notes</h2>{''.join(f'<p>{text(note)}</p>' for note in notes)}"


def _streams(run: RunRecord) -> Iterable[tuple[str, Mapping[str, Any]]]:
    return (run.tally or {}).items()


def _words(run: RunRecord) -> Iterator[str]:
    entries = (f"<div><dt>{word.shown}</dt><dd>{text(word.meaning)}</dd></div>" for word in tally_lines.words(run))
    yield f"<h2>Words</h2><dl>{''.join(entries)}</dl>"


def _end(state: RunDetails, run: RunRecord, at: datetime) -> Iterator[str]:
    later = state.refused_later(run.id)
    more = f" {counted(later, 'record')} more in later runs." if later else ""
    yield f'<p class="soft end">Rejected, waiting and in doubt: as of {instant_text(at)}.{more}</p>'


def _head(run: RunRecord) -> Iterator[str]:
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
    entries = (f"<div><dt>{name}</dt><dd>{text(value)}</dd></div>" for name, value in facts.items() if value)
    yield f"<h2>This run</h2><dl>{''.join(entries)}</dl>"


def _tally(run: RunRecord) -> Iterator[str]:
    if run.tally is None:
        return
    facts = tally_lines.facts(run)
    for account in tally_lines.tables(facts["streams"]):
        if account.has_counts:
            rows = (row(account.columns, line) for line in account.lines)
            yield f"<h2>{account.title}</h2>{table(account.columns, rows, kind='numbers')}"
    if facts["balanced"]:
        yield "<p>The tally balances.</p>"


def _files(run: RunRecord) -> Iterator[str]:
    rows = [row(_FILES, (name, *cells)) for name, stream in _streams(run) for cells in _files_of(stream)]
    if rows:
        yield f"<h2>Files</h2>{table(_FILES, rows)}"


def _apis(run: RunRecord) -> Iterator[str]:
    if found := timing_lines.apis(run):
        rows = (row(api_lines.COLUMNS, cells) for cells in api_lines.rows(found))
        yield f"<h2>APIs read</h2>{table(api_lines.COLUMNS, rows, kind='numbers')}"


def _files_of(stream: Mapping[str, Any]) -> Iterator[tuple[str, str | int]]:
    for file in stream.get("files", ()):
        unread = "unchanged" if stream.get("input") == "unchanged" else "not imported"
        yield file["name"], unread if file["rows"] is None else file["rows"]
    if more := stream.get("more_files"):
        yield f"{counted(more, 'file')} more", ""
    if stream.get("input") == "none":
        yield input_lines.sentence(stream) or "", ""


def _deliveries(found: Sequence[Delivery]) -> str:
    rows = (row(_DELIVERIES, (each.stream, each.operations, *_times(each))) for each in found)
    return f"<h2>Deliveries, slowest first</h2>{table(_DELIVERIES, rows, kind='numbers')}" if found else ""


def _times(delivery: Delivery) -> tuple[str, str, str]:
    began, ended = delivery.began, delivery.ended
    return instant_text(began), instant_text(ended), duration_text(ended - began)


def _timings(run: RunRecord) -> Iterator[str]:
    if steps := timing_lines.slowest(run):
        rows = (row(_STEPS, (step.name, duration_text(step.lasted), f"{step.share:.0f} %")) for step in steps)
        yield f"<h2>Slowest steps</h2>{table(_STEPS, rows, kind='numbers named')}"
    if (tokens := timing_lines.allowance(run)) is not None:
        yield f"<h2>Allowance</h2>{_plot(timing_lines.samples(run), (run.duration or timedelta()).total_seconds())}"
        yield f'<p>{str(tokens).capitalize()}. <span class="soft">Shaded while requests were sent.</span></p>'


def _plot(samples: Sequence[timing_lines.Sample], seconds: float) -> str:
    """Draw the allowance during a run of *seconds*: a band from the lowest to the highest sample at each point.

    It is interrupted where nothing was sent for a while, because the allowance is unknown there.
    """
    end, top = max(samples[-1][0], seconds, 1), max(1, *(tokens for _, tokens in samples))
    bands: list[dict[int, tuple[int, int]]] = []
    before = -_WIDTH
    for at, tokens in samples:
        x, y = round(_WIDTH * at / end), _HEIGHT - round(_HEIGHT * tokens / top)
        if x - before > _GAP:
            bands.append({})
        upper, lower = bands[-1].get(x, (y, y))
        bands[-1][x] = min(upper, y), max(lower, y)
        before = x
    shapes = "".join(map(_band, bands))
    drawing = f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none">{shapes}</svg>'
    times = ("0", *(duration_text(end * part / 4) for part in range(1, 5)))
    marks = "".join(f"<span>{time}</span>" for time in times)
    return f'<figure><div class="level">{top:,} tokens</div>{drawing}<figcaption>{marks}</figcaption></figure>'


def _band(points: dict[int, tuple[int, int]]) -> str:
    first, last = min(points), max(points)
    outline = [(x, upper) for x, (upper, _) in points.items()]
    outline += [(x, lower) for x, (_, lower) in reversed(points.items())]
    corners = " ".join(f"{x},{y}" for x, y in outline)
    return f'<rect x="{first}" width="{max(1, last - first)}" height="{_HEIGHT}"/><polygon points="{corners}"/>'
