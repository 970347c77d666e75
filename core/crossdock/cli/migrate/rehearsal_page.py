"""A rehearsal as one self-contained HTML page, from its document without values of records (law 8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from crossdock.cli.migrate.column_profile_texts import (
    distinct_count_text,
    findings_text,
    length_text,
    number_and_date_shares_text,
    percent_text,
)
from crossdock.cli.migrate.rehearsal_text import (
    WAVES,
    missing_parent_sentence,
    own_and_joined_profiles,
    remark_examples,
    remarks,
    shown_time,
    wave_row,
)
from crossdock.console import page_rendering
from crossdock.console.page_tables import Cell, Drawing, Rectangle, table, tally_tables
from crossdock.values.run_messages import RunMessage
from crossdock.values.texts_of_numbers_and_times import count_with_noun

_WAVES = (*WAVES, "share of requests")
_COLUMNS = ("column", "filled", " ", "distinct", "  ", "length", "lengths", "forms", "note")
_REASONS = ("reason", "records", "share of records", "examples")
_UNRESOLVED = ("waits for", "references", "records", "why", "example")


def write(path: Path, document: Mapping[str, Any], config: Path) -> None:
    page_rendering.write_page_file(path, page(document, config))


def page(document: Mapping[str, Any], config: Path) -> str:
    messages = [RunMessage(**each) for each in document["messages"]]
    return page_rendering.render(
        "rehearsal.html",
        migration=document["migration"],
        tenant=document["tenant"],
        config=config.name,
        errors={each.stream: each.text_with_code for each in messages},
        warnings=document["warnings"],
        facts=_fact_texts_by_label(document),
        waves=table(_WAVES, (_wave(each, document["requests"]) for each in document["waves"])),
        accounts=tally_tables(document["streams"]),
        streams={name: _stream_template_values(stream) for name, stream in document["streams"].items()},
    )


def _fact_texts_by_label(document: Mapping[str, Any]) -> dict[str, str]:
    streams = document["streams"].values()
    return {
        "begun": shown_time(document["began_at"]),
        "expected end": shown_time(document["ends_at"]),
        "requests": f"{document['requests']:,}",
        "records": f"{sum(each['records']['read'] for each in streams):,}",
        "rejected": f"{sum(each['records']['rejected'] for each in streams):,}",
        "waiting": f"{sum(each['waiting'] for each in streams):,}",
    }


def _wave(wave: Mapping[str, Any], requests: int) -> tuple[Cell, ...]:
    return *wave_row(wave), bar(wave["requests"], requests)


def _stream_template_values(stream: Mapping[str, Any]) -> dict[str, Any]:
    records = stream["records"]["read"] + stream["rows"]["rejected"]
    reasons = (_rejection_row(code, each, records) for code, each in stream["rejected_by_reason"].items())
    return {
        "remarks": [(sentence, list(remark_examples(word, stream))) for word, sentence in remarks(stream)],
        "rejected": table(_REASONS, reasons),
        "unresolved": table(_UNRESOLVED, map(_unresolved_references_row, stream["unresolved"])),
        "profiles": [_profile_template_values(*each) for each in own_and_joined_profiles(stream).items()],
    }


def _profile_template_values(title: str, profile: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": f"{title.strip()}: " if title else "",
        "rows": count_with_noun(profile["rows"], "row"),
        "has_more_columns": profile["has_more_columns"],
        "columns": table(_COLUMNS, (_column_row(each, profile["rows"]) for each in profile["columns"])),
    }


def _rejection_row(code: str, rejected: Mapping[str, Any], records: int) -> tuple[Cell, ...]:
    examples = (
        f"{each['key'] or '(no key)'} at {each['at']} {each['pointer'] or ''}: {each['message']}"
        for each in rejected["examples"]
    )
    share = bar(rejected["records"], max(records, rejected["records"]))
    return code, rejected["records"], share, list(examples)


def _unresolved_references_row(found: Mapping[str, Any]) -> tuple[Cell, ...]:
    why = ", ".join(f"{number:,} {reason}" for reason, number in found["why"].items())
    name = f"{found['resource']} {found['namespace']}"
    return (
        name,
        found["references"],
        found["records"],
        why,
        missing_parent_sentence(found["examples"][0]),
    )


def _column_row(column: Mapping[str, Any], rows: int) -> tuple[Cell, ...]:
    filled = percent_text(column["filled"], rows), bar(column["filled"], rows)
    distinct = (
        distinct_count_text(column),
        bar(min(column["distinct"], column["filled"]), column["filled"]),
    )
    lengths = length_text(column), histogram(_length_histogram_counts(column["lengths"]))
    return (
        column["name"],
        *filled,
        *distinct,
        *lengths,
        number_and_date_shares_text(column),
        findings_text(column),
    )


def _length_histogram_counts(classes: Mapping[str, int]) -> list[int]:
    """Return the number of cells of each class of lengths, from the shortest to the longest."""
    ends = [int(end) for end in classes]
    powers = range(min(ends, default=1).bit_length(), max(ends, default=0).bit_length() + 1)
    return [classes.get(str(1 << (power - 1)), 0) for power in powers]


_WIDTH, _HEIGHT = 100, 20  # units
_LEAST = 2  # minimum length of a bar, so that a small number is not mistaken for none


def bar(number: int, of: int) -> Drawing:
    return _drawing_of_rectangles([(0, 0, _scaled_to_drawing_units(number, of, _WIDTH), _HEIGHT)])


def histogram(numbers: Sequence[int]) -> Drawing:
    step, most = _WIDTH // max(len(numbers), 1), max(numbers, default=0)
    heights = (_scaled_to_drawing_units(number, most, _HEIGHT) for number in numbers)
    return _drawing_of_rectangles(
        [(at * step, _HEIGHT - high, max(step - 1, 1), high) for at, high in enumerate(heights)]
    )


def _scaled_to_drawing_units(number: int, of: int, units: int) -> int:
    return max(_LEAST, round(units * number / of)) if number and of else 0


def _drawing_of_rectangles(rectangles: Iterable[Rectangle]) -> Drawing:
    shown = [(x, y, width, height) for x, y, width, height in rectangles if width and height]
    return Drawing(_WIDTH, _HEIGHT, shown)
