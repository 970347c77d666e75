"""The sign-off report of a migration as a self-contained HTML page, with the report itself as JSON in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from crossdock.cli.html_elements import row, table, text
from crossdock.cli.html_page import document
from crossdock.cli.shared_options import counted, same_places
from crossdock.migration.sign_off_report import exception_counts
from crossdock.printable import printable_json
from crossdock.values import exact_json
from crossdock.values.times_in_text import instant_text

Report = Mapping[str, Any]
_SIDES = ("source", "state", "platform")
_TERMS = ("read", "created", "updated", "deleted", "unchanged", "suppressed", "rejected", "dropped")
_WAVES = ("wave", "records", "delivered", "open", "gate", "streams")
_TOTALS = ("resource", "of", *_SIDES)
_DIFFERENCES = ("resource", "difference", "records")
_REASONS = ("stream", "reason", "records", "places")
_RUNS = ("run", "kind", "wave", "started", "ended", "status", "requests")
_TALLY = ("stream", "run", *_TERMS)
_SOURCES = ("stream", "SHA-256 of its records and their mapping", "as frozen")
_FILES = ("stream", "file", "bytes", "SHA-256", "imported")
_OPENED = 20  # longer tables are folded
_PLACES = 5  # shown of each reason; the JSON has more

_CHECK = """\
<h2>Check this file</h2>
<p>Its last line is the SHA-256 of all lines above it. Without crossdock:</p>
<p><code>sed '$d' FILE | sha256sum</code></p>
<p>The same hash was printed at the sign-off, and is in the state: <code>crossdock migrate verify FILE</code>. The
report as JSON, exact and with up to 100 places of each reason, is the one
line that begins with a brace: <code>grep '^{' FILE</code></p>"""


def page(report: Report) -> str:
    """Return the page of the document that `sign_off_report` makes."""
    facts = report["migration"]
    parts = [
        *_head(report),
        *_exceptions(report),
        *_totals(report["reconciliation"]),
        *_waves(report["waves"]),
        *_sources(report),
        *_files(report["files"]),
        *_runs(report["runs"]),
        _CHECK,
        f'<script type="application/json" id="report">\n{_embedded(report)}\n</script>',
    ]
    return document(text(f"{facts['name']}: signed off"), parts)


def _embedded(report: Report) -> str:
    """Return canonical JSON on one line, in which nothing can end the element or control a terminal."""
    return printable_json(exact_json.dumps(dict(report)).decode()).replace("<", "\\u003c")


def _head(report: Report) -> Iterator[str]:
    facts, number = report["migration"], sum(exception_counts(report["exceptions"]).values())
    status = "signed off with exceptions" if number else "signed off"
    yield f'<h1>Migration {text(facts["name"])} <span class="{"" if number else "done"}">{status}</span></h1>'
    where = f"Tenant {text(facts['tenant'])} at {text(facts['base_url'])}, crossdock {text(report['crossdock'])}."
    yield f'<p class="soft">{where}</p>'
    if number:
        reason = f"{counted(number, 'exception')}, accepted by {facts['signed_off_by']}: "
        yield f'<p class="bad">{text(reason)}{text(facts["accepted_exceptions"])}</p>'
    entries = {
        "begun": instant_text(facts["started_at"]),
        "begun by": facts["started_by"],
        "signed off": instant_text(facts["signed_off_at"]),
        "signed off by": facts["signed_off_by"],
        "runs": f"{len(report['runs']):,}",
        "requests": f"{sum(run['requests'] for run in report['runs']):,}",
        "records delivered": f"{sum(wave['delivered'] for wave in report['waves']):,}",
    }
    listed = (f"<div><dt>{name}</dt><dd>{text(value)}</dd></div>" for name, value in entries.items())
    yield f"<dl>{''.join(listed)}</dl>"


def _exceptions(report: Report) -> Iterator[str]:
    found = report["exceptions"]
    yield "<h2>Exceptions</h2>"
    if not any(found.values()):
        yield "<p>None.</p>"
    yield from _list(
        "Differences that remain",
        _DIFFERENCES,
        ((each["resource"], each["class"], each["records"]) for each in found["differences"]),
    )
    for name, title in (("rejected", "Rejected"), ("dropped", "Dropped by an operator")):
        yield from _list(title, _REASONS, map(_reason, found[name]))
    waiting = ((each["stream"], each["for"], each["records"]) for each in found["waiting"])
    yield from _list("Waiting for others", ("stream", "for", "records"), waiting)
    yield from _list("No longer in the source, and kept", ("stream", "records"), found["kept"].items())
    already = report["already_there"].items()
    yield from _list("Already on the platform, nothing was written", ("stream", "operations"), already)


def _reason(each: Report) -> tuple[str, str, int, str]:
    shown = each["places"][:_PLACES]
    more = f", and {each['records'] - len(shown):,} more" if shown and each["records"] > len(shown) else ""
    return each["stream"], each["code"], each["records"], ", ".join(shown) + more


def _totals(found: Report) -> Iterator[str]:
    at, compared = instant_text(datetime.fromisoformat(found["at"])), sum(found["compared"].values())
    yield f"<h2>Control totals</h2><p>Reconciled {at}: {counted(compared, 'record')} compared, member by member.</p>"
    rows = [line for resource, sides in found["totals"].items() for line in _total_rows(resource, sides)]
    yield table(_TOTALS, (row(_TOTALS, line) for line in rows), kind="numbers")


def _total_rows(resource: str, sides: Report) -> Iterator[tuple[str, ...]]:
    each = [sides[side] for side in _SIDES]
    yield resource, "records", *(f"{side['records']:,}" for side in each)
    if any(side["quantity"] for side in each):
        yield resource, "quantity", *same_places(Decimal(side["quantity"]) for side in each)
    for currency in sorted({name for side in each for name in side["amounts"]}):
        yield resource, currency, *same_places(Decimal(side["amounts"].get(currency, 0)) for side in each)


def _waves(waves: Sequence[Report]) -> Iterator[str]:
    yield "<h2>Waves</h2>"
    yield table(_WAVES, (row(_WAVES, _wave(each)) for each in waves))
    for each in waves:
        if (approval := each["approval"]) is not None:
            when = instant_text(approval["at"])
            who = f"{each['wave']}: {approval['by']} let the migration go on, {when}; open then: "
            counts = (f"{number:,} {name.replace('_', ' ')}" for name, number in approval["open"].items() if number)
            yield f"<p>{text(who)}{', '.join(counts) or 'nothing'}.</p>"


def _wave(wave: Report) -> tuple[str | int, ...]:
    gate = wave["gate"]
    number = sum(wave["open"].values())
    return wave["wave"], wave["records"], wave["delivered"], number, _gate(gate["state"]), ", ".join(wave["streams"])


def _gate(state: str) -> str:
    return "passed" if state == "open" else state


def _sources(report: Report) -> Iterator[str]:
    frozen, reconciled = report["freeze"], report["reconciliation"]["sources"]
    at, since = (instant_text(datetime.fromisoformat(frozen[name])) for name in ("at", "since"))
    yield f"<h2>Sources</h2><p>Frozen: unchanged since {since}, checked {at} and at the sign-off.</p>"
    rows = (
        (name, reconciled.get(name, "not compared"), "yes" if frozen["sources"].get(name) == digest else "no")
        for name, digest in sorted(report["sources"].items())
    )
    yield table(_SOURCES, (row(_SOURCES, line) for line in rows))


def _files(files: Sequence[Report]) -> Iterator[str]:
    rows = (
        (each["stream"], each["name"], each["size"], each["sha256"], instant_text(each["imported_at"]))
        for each in files
    )
    yield from _list("Source files", _FILES, rows)


def _runs(runs: Sequence[Report]) -> Iterator[str]:
    lines = (
        (
            f"{run['run']}",
            run["kind"],
            run["wave"] or "",
            instant_text(run["started_at"]),
            instant_text(run["ended_at"]) if run["ended_at"] else "",
            run["status"],
            run["requests"],
        )
        for run in runs
    )
    yield from _list("Runs", _RUNS, lines)
    tallies = (
        (name, f"{run['run']}", *(tally["records"][term] for term in _TERMS))
        for run in runs
        for name, tally in run["streams"].items()
        if any(tally["records"].values())
    )
    yield from _list("Records by stream and run", _TALLY, tallies)


def _list(title: str, columns: Sequence[str], lines: Iterable[Sequence[str | int]]) -> Iterator[str]:
    """Return a table with its number of lines; nothing without lines."""
    rows = [row(columns, line) for line in lines]
    if rows:
        opened = " open" * (len(rows) <= _OPENED)
        yield f"<details{opened}><summary>{title} ({len(rows):,})</summary>{table(columns, rows)}</details>"
