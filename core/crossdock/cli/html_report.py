"""A run on one page, to mail or to open: it needs nothing but itself, and shows no record's data (law 8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from html import escape
from pathlib import Path

from crossdock.cli import tally_lines, timing_lines
from crossdock.cli.shared_options import counted
from crossdock.cli.timing_lines import span
from crossdock.errors import ConfigError
from crossdock.local_files import replace_file
from crossdock.printable import printable
from crossdock.state import RunRecord
from crossdock.state.queries.run_details import Delivery, Reason, Row, RunDetails

LISTED = 200  # records of each reason, and of each other kind
_OPENED = 20  # records of a list that is open at first
_CELL, _LONG = 500, 40  # characters: at most in a cell, at most in one line
_ROOM = 4_500_000  # bytes for all lists together, so that a page stays below 5 MB whatever they hold
_REFUSED = ("stream", "key", "stage", "message", "file", "line", "in run")
_WAITING = ("stream", "key", "waits for", "file", "line", "since")
_DOUBTFUL = ("stream", "key", "operation", "times sent", "first sent", "file", "line")
_WIDE, _HIGH, _BROKEN = 600, 120, 24  # units of the plot; how far apart samples are no stretch any more

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
    """Make *page* the content of the file *path*, as `crossdock.local_files.replace_file` does.

    Raises:
        ConfigError: If that cannot be done.
    """
    try:
        replace_file(path, page.encode())
    except OSError as error:
        raise ConfigError(f"the report cannot be written: {error.strerror}", where=str(path)) from error


def page(state: RunDetails, run: RunRecord, *, at: datetime) -> str:
    """The report of *run* as it is known now, *at*; at most 5 MB of it."""
    told = (*_head(run), *_accounts(run), *_timings(run))
    parts = [*told, _deliveries(state.deliveries(run)), *_left(state, run, at)]
    title = f"{_text(run.status)}: run {run.id}, {_text(run.business_date)}"
    return _PAGE.format(title=title, style=_STYLE, body="\n".join(part for part in parts if part))


def _head(run: RunRecord) -> Iterator[str]:
    streams = (run.tally or {}).values()
    told = {
        "job": run.job or "started by hand",
        "business date": run.business_date,
        "began": _instant(run.started_at),
        "ended": _instant(run.finished_at) or "not yet",
        "lasted": span(run.finished_at - run.started_at) if run.finished_at else "",
        "requests": f"{run.requests:,} ({run.throttled:,} throttled)",
        "delivered": f"{sum(each['records']['delivered'] for each in streams):,}",
        "rejected": f"{sum(each['rows']['rejected'] + each['records']['rejected'] for each in streams):,}",
        "waiting, in doubt": f"{sum(each['records']['carried_on'] for each in streams):,}",
    }
    status = _text(run.status)
    yield f'<h1>Run {run.id}, {_text(run.business_date)} <span class="{status}">{status}</span></h1>'
    entries = (f"<div><dt>{name}</dt><dd>{_text(value)}</dd></div>" for name, value in told.items() if value)
    yield f"<dl>{''.join(entries)}</dl>"
    if run.error:
        lines = "<br>".join(_text(line) for line in run.error.split("\n")[:20])
        yield f'<p class="bad">It ended with: {lines}</p>'


def _accounts(run: RunRecord) -> Iterator[str]:
    if run.tally is None:
        yield '<p class="bad">It has no accounts.</p>'
        return
    facts = tally_lines.facts(run)
    for account in tally_lines.of(facts["streams"]):
        yield f"<h2>{account.title}</h2>{_table(account.columns, map(_row, account.lines), kind='numbers')}"
    for name, stream in facts["streams"].items():
        yield from (f"<p>{_text(f'{name}: {note}')}</p>" for note in stream.get("notes", ()))
    balanced = "<p>The tally balances.</p>", '<p class="bad">THE TALLY DOES NOT BALANCE</p>'
    yield balanced[not facts["balanced"]]


def _deliveries(found: Sequence[Delivery]) -> str:
    rows = (
        _row((each.stream, each.operations, *map(_instant, (each.began, each.ended)), span(each.ended - each.began)))
        for each in found
    )
    table = _table(("stream", "operations", "began", "ended", "lasted"), rows, kind="numbers")
    return f"<h2>Deliveries, slowest first</h2>{table}" if found else ""


def _left(state: RunDetails, run: RunRecord, at: datetime) -> Iterator[str]:
    """What did not get through."""
    reasons = state.reasons(run.id)
    room = _ROOM // (len(reasons) + 2)
    yield "<h2>Rejected</h2>"
    cure = "Mend them at their source; or the mapping, then <code>crossdock records replay</code>."
    yield _said(sum(reason.records for reason in reasons), "in this run or before it", cure)
    for reason in reasons:
        rows = map(_refused, state.refused(run.id, reason.code, limit=LISTED))
        yield _listing(_reason(reason), _REFUSED, rows, reason.records, room, state="rejected")
    if later := state.refused_later(run.id):
        yield f'<p class="soft">{counted(later, "record")} more in later runs.</p>'

    number, waiting = state.waiting(limit=LISTED)
    yield "<h2>Waiting</h2>"
    yield _said(number, "waiting for others", "That passes by itself once those are delivered.")
    yield _listing("Longest first", _WAITING, map(_waiting, waiting), number, room, state="waiting")

    number, unsettled = state.in_doubt(limit=LISTED)
    yield "<h2>In doubt</h2>"
    cure = "Look whether they are on the platform, then <code>crossdock records resolve</code>."
    yield _said(number, "delivered or not: nobody knows", cure)
    yield _listing("Oldest first", _DOUBTFUL, map(_unsettled, unsettled), number, room, state="in-doubt")
    if unsent := state.unsent():
        yield f"<p>Begun and not settled: {counted(unsent, 'operation')}. The next run sends them.</p>"
    yield f'<p class="soft end">Rejected, waiting and in doubt: as the state knew it at {_instant(at)}.</p>'


def _said(number: int, what: str, cure: str) -> str:
    return f"<p>{counted(number, 'record')}, {what}. {cure}</p>" if number else '<p class="soft">None.</p>'


def _reason(reason: Reason) -> str:
    own = "" if reason.own == reason.records else f", {reason.own:,} of them in this run"
    return f"<code>{_text(reason.code)}</code> {counted(reason.records, 'record')}{own}"


def _refused(row: Row) -> str:
    message = f"{row['pointer']}: {row['message']}" if row["pointer"] else row["message"]
    place = (row["source"], str(row["line"]), str(row["run_id"]))
    return _row((row["stream"], row["key"] or "(none)", row["stage"], message, *place))


def _waiting(row: Row) -> str:
    parents = ", ".join(f"{each['resource']} {each['namespace']}:{each['key']}" for each in row["waits_for"])
    return _row((row["stream"], row["key"], parents, row["source"], str(row["line"]), _instant(row["since"])))


def _unsettled(row: Row) -> str:
    sent = _instant(row["first_sent_at"]) or "before the state was restored"
    place = (row["source"], str(row["line"]))
    return _row((row["stream"], row["key"], row["operation"], row["attempts"], sent, *place))


def _listing(summary: str, columns: Sequence[str], rows: Iterable[str], number: int, room: int, *, state: str) -> str:
    """As many of *rows* as fit into *room* bytes, and how many of *number* are not among them."""
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
    """A table; of the *kind* ``numbers`` all columns but the first align right, of ``named`` the first is broken."""
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
    """*value* as `printable` text and nothing else, cut off if it is too long."""
    return escape(printable(value[:_CELL])) + "…" * (len(value) > _CELL)


def _instant(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}Z" if at else ""


def _timings(run: RunRecord) -> Iterator[str]:
    if steps := timing_lines.slowest(run):
        rows = (_row((step.name, span(step.lasted), f"{step.share:.0f} %")) for step in steps)
        yield f"<h2>Slowest steps</h2>{_table(('step', 'lasted', 'of the run'), rows, kind='numbers named')}"
    if (spent := timing_lines.allowance(run)) is not None:
        lasted = (run.finished_at or run.started_at) - run.started_at
        yield f"<h2>Allowance</h2>{_plot(timing_lines.samples(run), lasted.total_seconds())}"
        yield f'<p>{str(spent).capitalize()}. <span class="soft">Tinted while something was sent.</span></p>'


def _plot(samples: Sequence[timing_lines.Sample], lasted: float) -> str:
    """The allowance over a run of so many seconds: a band from the lowest to the highest sample of each stretch.

    It is broken where nothing was sent for a while, since nobody knows what the allowance was then.
    """
    end, top = max(samples[-1][0], lasted, 1), max(1, *(tokens for _, tokens in samples))
    stretches: list[dict[int, tuple[int, int]]] = []
    before = -_WIDE
    for seconds, tokens in samples:
        x, y = round(_WIDE * seconds / end), _HIGH - round(_HIGH * tokens / top)
        if x - before > _BROKEN:
            stretches.append({})
        upper, lower = stretches[-1].get(x, (y, y))
        stretches[-1][x] = min(upper, y), max(lower, y)
        before = x
    drawn = "".join(map(_stretch, stretches))
    drawing = f'<svg viewBox="0 0 {_WIDE} {_HIGH}" preserveAspectRatio="none">{drawn}</svg>'
    times = ("0", *(span(timedelta(seconds=end * part / 4)) for part in range(1, 5)))
    marks = "".join(f"<span>{time}</span>" for time in times)
    return f'<figure><div class="level">{top:,} tokens</div>{drawing}<figcaption>{marks}</figcaption></figure>'


def _stretch(bands: dict[int, tuple[int, int]]) -> str:
    first, last = min(bands), max(bands)
    outline = [(x, upper) for x, (upper, _) in bands.items()]
    outline += [(x, lower) for x, (_, lower) in reversed(bands.items())]
    points = " ".join(f"{x},{y}" for x, y in outline)
    return f'<rect x="{first}" width="{max(1, last - first)}" height="{_HIGH}"/><polygon points="{points}"/>'
