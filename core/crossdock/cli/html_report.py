"""The report of a run as one self-contained HTML page, without record data (law 8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from html import escape
from pathlib import Path

from crossdock.cli import input_lines, tally_lines, timing_lines
from crossdock.cli.shared_options import counted, parents_text
from crossdock.cli.timing_lines import span
from crossdock.errors import ConfigError
from crossdock.local_files import replace_file
from crossdock.printable import printable
from crossdock.state import RunRecord
from crossdock.state.queries.run_details import Delivery, Reason, Row, RunDetails

LISTED = 200  # most records of each reason or state
_OPENED = 20  # longer lists are folded at first
_CELL, _LONG = 500, 40  # characters: most in a cell, most in one line
_LISTS_BYTES = 4_500_000  # of all lists, so that a page stays below 5 MB
_REJECTED = ("stream", "key", "stage", "message", "file", "line", "in run")
_WAITING = ("stream", "key", "waits for", "file", "line", "since")
_IN_DOUBT = ("stream", "key", "operation", "attempts", "first sent", "file", "line")
_WIDTH, _HEIGHT, _GAP = 600, 120, 24  # units of the plot; a larger gap between samples breaks the area

_STYLE = (Path(__file__).parent / "report.css").read_text(encoding="utf-8")
_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def write(path: Path, page: str) -> None:
    """Write *page* to *path*, as `replace_file` does.

    Raises:
        ConfigError: If it cannot be written.
    """
    try:
        replace_file(path, page.encode())
    except OSError as error:
        raise ConfigError(f"the report cannot be written: {error.strerror}", where=str(path)) from error


def page(state: RunDetails, run: RunRecord, *, at: datetime) -> str:
    """The report of *run* as known *at* that instant; at most 5 MB."""
    reasons = state.reasons(run.id)
    room = _LISTS_BYTES // (len(reasons) + 2)  # for each list
    parts = [
        *_head(run),
        *_tally(run),
        *_timings(run),
        _deliveries(state.deliveries(run)),
        *_rejected(state, run, reasons, room),
        *_waiting(state, room),
        *_in_doubt(state, room),
        f'<p class="soft end">Rejected, waiting and in doubt: as of {_instant(at)}.</p>',
    ]
    title = f"{_text(run.status)}: run {run.id}, {_text(run.business_date)}"
    return _PAGE.format(title=title, style=_STYLE, body="\n".join(part for part in parts if part))


def _head(run: RunRecord) -> Iterator[str]:
    streams = (run.tally or {}).values()
    facts = {
        "job": run.job or "started manually",
        "business date": run.business_date,
        "started": _instant(run.started_at),
        "ended": _instant(run.finished_at) or "not yet",
        "duration": "" if run.duration is None else span(run.duration),
        "requests": f"{run.requests:,} ({run.throttled:,} throttled)",
        "delivered": f"{sum(each['records']['delivered'] for each in streams):,}",
        "open": "" if run.open is None else str(run.open),
    }
    status = _text(run.status)
    yield f'<h1>Run {run.id}, {_text(run.business_date)} <span class="{status}">{status}</span></h1>'
    entries = (f"<div><dt>{name}</dt><dd>{_text(value)}</dd></div>" for name, value in facts.items() if value)
    yield f"<dl>{''.join(entries)}</dl>"
    if run.error:
        lines = "<br>".join(_text(line) for line in run.error.split("\n")[:20])
        yield f'<p class="bad">Error: {lines}</p>'


def _tally(run: RunRecord) -> Iterator[str]:
    if run.tally is None:
        yield '<p class="bad">This run has no tally.</p>'
        return
    facts = tally_lines.facts(run)
    for account in tally_lines.tables(facts["streams"]):
        yield f"<h2>{account.title}</h2>{_table(account.columns, map(_row, account.lines), kind='numbers')}"
    for name, stream in facts["streams"].items():
        if found := input_lines.sentence(stream):
            yield f"<p>{_text(f'{name}: {found}')}</p>"
        yield from (f"<p>{_text(f'{name}: {note}')}</p>" for note in stream.get("notes", ()))
    balanced = "<p>The tally balances.</p>", '<p class="bad">THE TALLY DOES NOT BALANCE</p>'
    yield balanced[not facts["balanced"]]


def _deliveries(found: Sequence[Delivery]) -> str:
    rows = (
        _row((each.stream, each.operations, *map(_instant, (each.began, each.ended)), span(each.ended - each.began)))
        for each in found
    )
    table = _table(("stream", "operations", "started", "ended", "duration"), rows, kind="numbers")
    return f"<h2>Deliveries, slowest first</h2>{table}" if found else ""


def _rejected(state: RunDetails, run: RunRecord, reasons: Sequence[Reason], room: int) -> Iterator[str]:
    yield "<h2>Rejected</h2>"
    fix = "Fix them at their source; or fix the mapping, then <code>crossdock records replay</code>."
    yield _summary(sum(reason.records for reason in reasons), "in this run or before", fix)
    for reason in reasons:
        rows = map(_rejected_row, state.refused(run.id, reason.code, limit=LISTED))
        yield _listing(_reason(reason), _REJECTED, rows, reason.records, room, "rejected")
    if later := state.refused_later(run.id):
        yield f'<p class="soft">{counted(later, "record")} more in later runs.</p>'


def _waiting(state: RunDetails, room: int) -> Iterator[str]:
    number, found = state.waiting(limit=LISTED)
    yield "<h2>Waiting</h2>"
    yield _summary(number, "waiting for others", "They are delivered once those are.")
    yield _listing("Longest first", _WAITING, map(_waiting_row, found), number, room, "waiting")


def _in_doubt(state: RunDetails, room: int) -> Iterator[str]:
    number, found = state.in_doubt(limit=LISTED)
    yield "<h2>In doubt</h2>"
    fix = "Check whether they are on the platform, then <code>crossdock records resolve</code>."
    yield _summary(number, "which may or may not have been delivered", fix)
    yield _listing("Oldest first", _IN_DOUBT, map(_in_doubt_row, found), number, room, "in-doubt")
    if unsent := state.unsent():
        yield f"<p>Pending: {counted(unsent, 'operation')}. The next run sends them.</p>"


def _summary(number: int, what: str, fix: str) -> str:
    return f"<p>{counted(number, 'record')}, {what}. {fix}</p>" if number else '<p class="soft">None.</p>'


def _reason(reason: Reason) -> str:
    own = "" if reason.own == reason.records else f", {reason.own:,} of them in this run"
    return f"<code>{_text(reason.code)}</code> {counted(reason.records, 'record')}{own}"


def _rejected_row(row: Row) -> str:
    message = f"{row['pointer']}: {row['message']}" if row["pointer"] else row["message"]
    place = (row["source"], str(row["line"]), str(row["run_id"]))
    return _row((row["stream"], row["key"] or "(none)", row["stage"], message, *place))


def _waiting_row(row: Row) -> str:
    place = (row["source"], str(row["line"]))
    return _row((row["stream"], row["key"], parents_text(row["waits_for"]), *place, _instant(row["since"])))


def _in_doubt_row(row: Row) -> str:
    sent = _instant(row["first_sent_at"]) or "before the state was restored"
    place = (row["source"], str(row["line"]))
    return _row((row["stream"], row["key"], row["operation"], row["attempts"], sent, *place))


def _listing(summary: str, columns: Sequence[str], rows: Iterable[str], number: int, room: int, state: str) -> str:
    """A list of those *rows* that fit into *room* bytes, and the *number* of the others."""
    shown: list[str] = []
    for row in rows:
        room -= len(row.encode())
        if room < 0:
            break
        shown.append(row)
    if not number:
        return ""
    hidden = number - len(shown)
    command = f"<code>crossdock records list --state {state} --limit {number}</code>"
    more = f'<p class="soft">{hidden:,} more: {command}</p>' if hidden else ""
    opened = " open" * (number <= _OPENED)
    return f"<details{opened}><summary>{summary}</summary>{_table(columns, shown)}{more}</details>"


def _table(columns: Sequence[str], rows: Iterable[str], *, kind: str = "") -> str:
    """A table; *kind* ``numbers`` aligns all columns but the first right, ``named`` wraps the first."""
    head = "".join(f"<th>{_text(name)}</th>" for name in columns)
    body = f"<thead><tr>{head}</tr></thead><tbody>\n{''.join(rows)}</tbody>"
    return f'<div class="wide"><table class="{kind}">{body}</table></div>'


def _row(cells: Iterable[str | int]) -> str:
    return f"<tr>{''.join(map(_cell, cells))}</tr>\n"


def _cell(value: str | int) -> str:
    if isinstance(value, int):
        return f"<td>{value:,}</td>"
    kind = ' class="long"' * (len(value) > _LONG)
    return f"<td{kind}>{_text(value)}</td>"


def _text(value: str) -> str:
    """*value* as escaped, `printable` text, cut off if it is too long."""
    return escape(printable(value[:_CELL])) + "…" * (len(value) > _CELL)


def _instant(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}Z" if at else ""


def _timings(run: RunRecord) -> Iterator[str]:
    if steps := timing_lines.slowest(run):
        rows = (_row((step.name, span(step.lasted), f"{step.share:.0f} %")) for step in steps)
        yield f"<h2>Slowest steps</h2>{_table(('step', 'duration', 'of the run'), rows, kind='numbers named')}"
    if (tokens := timing_lines.allowance(run)) is not None:
        yield f"<h2>Allowance</h2>{_plot(timing_lines.samples(run), (run.duration or timedelta()).total_seconds())}"
        yield f'<p>{str(tokens).capitalize()}. <span class="soft">Shaded while requests were sent.</span></p>'


def _plot(samples: Sequence[timing_lines.Sample], seconds: float) -> str:
    """The allowance during a run of that many seconds: a band from the lowest to the highest sample at each point.

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
    times = ("0", *(span(timedelta(seconds=end * part / 4)) for part in range(1, 5)))
    marks = "".join(f"<span>{time}</span>" for time in times)
    return f'<figure><div class="level">{top:,} tokens</div>{drawing}<figcaption>{marks}</figcaption></figure>'


def _band(points: dict[int, tuple[int, int]]) -> str:
    first, last = min(points), max(points)
    outline = [(x, upper) for x, (upper, _) in points.items()]
    outline += [(x, lower) for x, (_, lower) in reversed(points.items())]
    corners = " ".join(f"{x},{y}" for x, y in outline)
    return f'<rect x="{first}" width="{max(1, last - first)}" height="{_HEIGHT}"/><polygon points="{corners}"/>'
