"""A rehearsal as one self-contained HTML page, from its document without values of records (law 8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crossdock.cli import html_page, tally_lines
from crossdock.cli.html_elements import lines, row, table, text
from crossdock.cli.migrate import profile_words, rehearsal_lines
from crossdock.cli.migrate.svg_bars import bar, histogram
from crossdock.cli.shared_options import counted

_WAVES = (*rehearsal_lines.WAVES, "share of requests")
_COLUMNS = ("column", "filled", " ", "distinct", "  ", "length", "lengths", "forms", "note")
_REASONS = ("reason", "records", "share of records", "examples")
_UNRESOLVED = ("waits for", "references", "records", "why", "example")


def write(path: Path, document: Mapping[str, Any], config: Path) -> None:
    html_page.write(path, page(document, config))


def page(document: Mapping[str, Any], config: Path) -> str:
    """Return the page, which begins with what needs a person."""
    name = text(document["migration"])
    parts = [
        f"<h1>Rehearsal of {name}</h1>",
        f'<p class="soft">Tenant {text(document["tenant"])}, config {text(config.name)}.</p>',
        *(f'<p class="bad">{text(each)}: {text(error)}</p>' for each, error in document["errors"].items()),
        *(f'<p class="bad">{text(each)}</p>' for each in document["warnings"]),
        *_summary(document),
        *_waves(document),
        *_tally(document),
        *(part for each in document["streams"].items() for part in _stream(*each)),
    ]
    return html_page.document(f"rehearsal of {name}", parts)


def _summary(document: Mapping[str, Any]) -> Iterator[str]:
    streams = document["streams"].values()
    facts = {
        "begun": rehearsal_lines.shown_time(document["began_at"]),
        "expected end": rehearsal_lines.shown_time(document["ends_at"]),
        "requests": f"{document['requests']:,}",
        "records": f"{sum(each['records']['read'] for each in streams):,}",
        "rejected": f"{sum(each['records']['rejected'] for each in streams):,}",
        "waiting": f"{sum(each['waiting'] for each in streams):,}",
    }
    entries = (f"<div><dt>{name}</dt><dd>{text(value)}</dd></div>" for name, value in facts.items())
    yield f"<dl>{''.join(entries)}</dl>"


def _waves(document: Mapping[str, Any]) -> Iterator[str]:
    rows = (
        row(_WAVES, (*rehearsal_lines.wave_row(wave), bar(wave["requests"], document["requests"])))
        for wave in document["waves"]
    )
    yield f"<h2>Waves</h2>{table(_WAVES, rows)}"


def _tally(document: Mapping[str, Any]) -> Iterator[str]:
    for account in tally_lines.tables(document["streams"]):
        if account.has_counts:
            rows = (row(account.columns, line) for line in account.lines)
            yield f"<h2>{account.title}</h2>{table(account.columns, rows, kind='numbers')}"


def _stream(stream_name: str, stream: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2>{text(stream_name)}</h2>"
    for word, sentence in rehearsal_lines.remarks(stream):
        yield f"<p>{text(sentence)}.</p>"
        if items := [f"<li>{text(each)}</li>" for each in rehearsal_lines.examples(word, stream)]:
            yield f"<ul>{''.join(items)}</ul>"
    if reasons := stream["rejected_by_reason"]:
        records = stream["records"]["read"] + stream["rows"]["rejected"]
        rows = (row(_REASONS, _reason(code, each, records)) for code, each in reasons.items())
        yield f"<h3>Rejected</h3>{table(_REASONS, rows)}"
    if unresolved := stream["unresolved"]:
        rows = (row(_UNRESOLVED, _unresolved(each)) for each in unresolved)
        yield f"<h3>References that will not resolve</h3>{table(_UNRESOLVED, rows)}"
    for title, profile in rehearsal_lines.profiles(stream).items():
        rows = (row(_COLUMNS, _column(each, profile["rows"])) for each in profile["columns"])
        more = "; only the first columns are profiled" * profile["has_more_columns"]
        name = f"{title.strip()}: " if title else ""
        yield f"<h3>{text(name)}{counted(profile['rows'], 'row')}{more}</h3>{table(_COLUMNS, rows)}"


def _reason(code: str, rejected: Mapping[str, Any], records: int) -> tuple[str | int, ...]:
    """Return the cells of a reason. The share is that of all *records*."""
    examples = (
        f"{each['key'] or '(no key)'} at {each['at']} {each['pointer'] or ''}: {each['message']}"
        for each in rejected["examples"]
    )
    share = bar(rejected["records"], max(records, rejected["records"]))
    return code, rejected["records"], share, lines(examples)


def _unresolved(found: Mapping[str, Any]) -> tuple[str | int, ...]:
    why = ", ".join(f"{number:,} {reason}" for reason, number in found["why"].items())
    name = f"{found['resource']} {found['namespace']}"
    return name, found["references"], found["records"], why, rehearsal_lines.missing_sentence(found["examples"][0])


def _column(column: Mapping[str, Any], rows: int) -> tuple[str | int, ...]:
    filled = profile_words.percent(column["filled"], rows), bar(column["filled"], rows)
    distinct = profile_words.distinct(column), bar(min(column["distinct"], column["filled"]), column["filled"])
    lengths = profile_words.length(column), histogram(_lengths(column["lengths"]))
    return column["name"], *filled, *distinct, *lengths, profile_words.forms(column), profile_words.odd(column)


def _lengths(classes: Mapping[str, int]) -> list[int]:
    """Return the number of cells of each class of lengths, from the shortest to the longest."""
    ends = [int(end) for end in classes]
    powers = range(min(ends, default=1).bit_length(), max(ends, default=0).bit_length() + 1)
    return [classes.get(str(1 << (power - 1)), 0) for power in powers]
