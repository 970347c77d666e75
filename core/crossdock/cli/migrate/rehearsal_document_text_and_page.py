"""A rehearsal, from its document: printed on the terminal, and as one self-contained page without values (law 8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from crossdock.cli import terminal_output
from crossdock.console import page_rendering
from crossdock.console.page_tables import Cell, Drawing, Rectangle, table, tally_tables
from crossdock.runs import tables_and_sentences_of_run
from crossdock.values.run_progress_and_messages import RunMessage, error_documents
from crossdock.values.texts_of_numbers_and_times import count_with_noun, duration_text, instant_text, json_time_text

if TYPE_CHECKING:
    from crossdock.migration import source_profile
    from crossdock.migration.planned_creates_already_on_platform import MatchOnPlatform
    from crossdock.migration.rehearsal import (
        PlannedOutcomeCounts,
        RehearsalResult,
        Rejected,
        StreamCounts,
        WaveForecast,
    )
    from crossdock.migration.source_profile import SourceProfile

_MOST_EXAMPLES = 5


def rehearsal_document(rehearsed: RehearsalResult, *, raw: bool) -> dict[str, Any]:
    """Make the document. It has values of records only if *raw*."""
    planned, waves = rehearsed.planned, rehearsed.waves
    order = [name for wave in waves for name in planned.tallies if name in wave.wave.streams]
    return {
        "migration": rehearsed.name,
        "tenant": rehearsed.pin.tenant,
        "began_at": json_time_text(rehearsed.began),
        "ends_at": _optional_time_text(waves[-1].ends),
        "requests": sum(wave.requests for wave in waves),
        "waves": [_wave_document(wave) for wave in waves],
        "streams": {name: _stream_document(rehearsed, name, raw=raw) for name in order},
        "forecast": structs.asdict(planned.forecast),
        "other_forecasts": {name: structs.asdict(forecast) for name, forecast in planned.other_forecasts.items()},
        "warnings": list(_rehearsal_warnings(rehearsed)),
        "errors": {name: str(error) for name, error in planned.errors.items()},
        "messages": error_documents(planned.errors),
    }


def _optional_time_text(at: datetime | None) -> str | None:
    return None if at is None else json_time_text(at)


def _wave_document(forecast: WaveForecast) -> dict[str, Any]:
    begins, ends = forecast.begins, forecast.ends
    return {
        "name": forecast.wave.name,
        "streams": sorted(forecast.wave.streams),
        "requests": forecast.requests,
        "begins_at": _optional_time_text(begins),
        "ends_at": _optional_time_text(ends),
        "seconds": None if begins is None or ends is None else (ends - begins).total_seconds(),
    }


def _stream_document(rehearsed: RehearsalResult, name: str, *, raw: bool) -> dict[str, Any]:
    planned, decisions = rehearsed.planned, rehearsed.outcome_counts
    found, profile, there = decisions.streams[name], rehearsed.profiles.get(name), rehearsed.already_there
    repeated = planned.repeated_keys.get(name)
    named, matched = (there.with_same_external_id.get(name), there.matched.get(name)) if there else (None, None)
    return planned.tallies[name].as_json() | {
        "wave": next(wave.wave.name for wave in rehearsed.waves if name in wave.wave.streams),
        "rejected_by_reason": {code: _rejected_document(each) for code, each in _rejections_most_frequent_first(found)},
        "rejected_before": planned.rejected_before.get(name, 0),
        "repeated_keys": repeated.number if repeated else 0,
        "repeated_examples": [{"key": each.key, "at": list(each.places)} for each in repeated.examples]
        if repeated
        else [],
        "unresolved": [_unresolved_references_document(decisions, found, *scope) for scope in sorted(found.missing)],
        "waiting": found.waiting,
        "in_doubt": found.in_doubt,
        "on_hold": found.withheld,
        "already_there": named and named.number,
        "already_there_examples": [_match_document(each) for each in named.examples] if named else [],
        "matched": matched and {name: getattr(matched.counts, name) for name in ("one", "several", "none")},
        "take_over_examples": [_match_document(each) for each in matched.taken_over] if matched else [],
        "ambiguous_examples": [_match_document(each) for each in matched.ambiguous] if matched else [],
        "conflicts": None
        if there is None or name not in there.conflicts
        else _conflicts_document(there.conflicts[name]),
        "profile": None if profile is None else _profile_document(profile, raw=raw),
        "joined_profiles": {
            part: _profile_document(found, raw=raw) for part, found in rehearsed.joined_profiles.get(name, {}).items()
        },
    }


def _match_document(found: MatchOnPlatform) -> dict[str, Any]:
    return {"key": found.key, "id": found.target_id} | ({"message": found.why} if found.why else {})


def _conflicts_document(keys: Sequence[str]) -> dict[str, Any]:
    return {"records": len(keys), "examples": list(keys[:_MOST_EXAMPLES])}


def _rejections_most_frequent_first(found: StreamCounts) -> list[tuple[str, Rejected]]:
    return sorted(found.rejected.items(), key=lambda each: (-each[1].records, each[0]))


def _rejected_document(found: Rejected) -> dict[str, Any]:
    examples = [
        {"key": each.key, "at": f"{each.source}:{each.line}", "pointer": each.pointer, "message": each.message}
        for each in found.examples
    ]
    return {"records": found.records, "examples": examples}


def _unresolved_references_document(
    planned_counts: PlannedOutcomeCounts, found: StreamCounts, resource: str, namespace: str
) -> dict[str, Any]:
    missing = found.missing[resource, namespace]
    why = {key: planned_counts.missing_parent_reason((resource, namespace, key)) for key in missing}
    first = sorted(missing.items(), key=lambda each: (-each[1], each[0]))[:_MOST_EXAMPLES]
    return {
        "resource": resource,
        "namespace": namespace,
        "references": missing.total(),
        "records": len(missing),
        "why": dict(sorted(Counter(why.values()).items())),
        "examples": [{"key": key, "references": number, "why": why[key]} for key, number in first],
    }


def _profile_document(profile: SourceProfile, *, raw: bool) -> dict[str, Any]:
    columns = [{"name": name} | _column_document(column, raw=raw) for name, column in profile.columns.items()]
    return {"rows": profile.rows, "has_more_columns": profile.has_more, "columns": columns}


def _column_document(column: source_profile.ColumnProfile, *, raw: bool) -> dict[str, Any]:
    findings = {
        name: {"cells": found.cells, "examples": [_cell_place_and_value(each, raw=raw) for each in found.examples]}
        for name, found in column.findings.items()
    }
    values = {"smallest": column.smallest, "largest": column.largest} if raw else {}
    return {
        "filled": column.filled,
        "distinct": column.distinct.estimate,
        "distinct_is_estimate": column.distinct.exceeds_exact_limit,
        "whole": column.whole,
        "decimal": column.decimal,
        "dates": column.dates,
        "shortest": column.shortest,
        "longest": column.longest,
        "lengths": {str(length): number for length, number in sorted(column.lengths.items())},
        "findings": findings,
        **values,
    }


def _cell_place_and_value(cell: source_profile.Cell, *, raw: bool) -> dict[str, Any]:
    return {"at": f"{cell.source}:{cell.line}"} | ({"value": cell.value} if raw else {})


def _rehearsal_warnings(rehearsed: RehearsalResult) -> list[str]:
    wave_of = {name: each.wave.name for each in rehearsed.waves for name in each.wave.streams}
    found = [
        f"{count_with_noun(number, 'record')} of {name} in wave {wave_of[name]} would wait for the later wave {later}:"
        " change the order of the waves"
        for name, decisions in rehearsed.outcome_counts.streams.items()
        for later, number in decisions.refers_to_later.items()
    ]
    found += _possible_take_over_warnings(rehearsed)
    return found + [f"{name} is in no wave, and was not rehearsed" for name in rehearsed.left_out]


def _possible_take_over_warnings(rehearsed: RehearsalResult) -> Iterator[str]:
    """Yield streams of which the platform may have records that would be taken over, unless that was read."""
    if rehearsed.already_there is not None:
        return
    for name, member in rehearsed.adoption_members.items():
        tally = rehearsed.planned.tallies.get(name)
        if tally is not None and (created := tally.records["created"]):
            yield (
                f"{name}: of {count_with_noun(created, 'create')}, some may take over a record of the platform with "
                "the same"
                f" {member}: rehearse with --against-platform to see which ones"
            )


FINDINGS = {
    "outer_blanks": "with blanks around",
    "control": "with control characters",
    "damaged": "in a wrong encoding",
    "spreadsheet": "changed by a spreadsheet",
    "invisible": "with invisible characters",
    "not_nfc": "not normalized (NFC)",
    "number_out_of_range": "with too many digits",
    "date_out_of_range": "before 1900 or after 2100",
    "date_impossible": "with an impossible date",
}
"""The words for a number of cells, by `crossdock.migration.source_profile.Finding`."""


def percent_text(number: int, of: int) -> str:
    """Format a share: ``0 %`` and ``100 %`` mean none and all. A share of nothing is empty."""
    if not of:
        return ""
    if 0 < number * 200 < of:
        return "< 1 %"
    return "> 99 %" if number < of and number * 200 > of * 199 else f"{(200 * number + of) // (2 * of)} %"


def distinct_count_text(column: Mapping[str, Any]) -> str:
    return f"{'~' * column['distinct_is_estimate']}{column['distinct']:,}"


def length_text(column: Mapping[str, Any]) -> str:
    shortest, longest = column["shortest"], column["longest"]
    return f"{longest:,}" if shortest == longest else f"{shortest:,} to {longest:,}"


def number_and_date_shares_text(column: Mapping[str, Any]) -> str:
    words = {"whole": "whole", "decimal": "decimal", "dates": "dates"}
    shares = {word: column[name] for name, word in words.items() if column[name]}
    return ", ".join(f"{percent_text(number, column['filled'])} {word}" for word, number in shares.items())


def findings_text(column: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{found['cells']:,} {FINDINGS[name]} ({', '.join(map(_place_and_value_text, found['examples']))})"
        for name, found in column["findings"].items()
    )


def _place_and_value_text(cell: Mapping[str, Any]) -> str:
    return f"{cell['at']} {cell['value']!r}" if "value" in cell else str(cell["at"])


WAVE_COLUMNS = ("wave", "requests", "begins", "ends", "takes")
PROFILE_COLUMNS = ("column", "filled", "distinct", "length", "forms", "value", "note")

_EXAMPLE_MEMBERS_BY_REMARK = {
    "twice": ("repeated_examples",),
    "there": ("already_there_examples",),
    "match": ("take_over_examples", "ambiguous_examples"),
}
_SHOWN = 5
_AT_ONCE_S = 0.05  # requests that the burst allows


def print_rehearsal(console: Any, document: Mapping[str, Any]) -> None:
    for name, stream in document["streams"].items():
        for title, profile in own_and_joined_profiles(stream).items():
            _print_profile(console, f"{name}{title}", profile)
    for account in tables_and_sentences_of_run.tally_tables(document["streams"]):
        if account.has_counts:
            console.print(
                terminal_output.make_fitting_table(
                    account.title, account.columns, account.lines, numbers=account.columns[1:]
                )
            )
            console.print()
    for name, stream in document["streams"].items():
        for line in _stream_lines(name, stream):
            console.print(line, soft_wrap=True)
    for warning in document["warnings"]:
        console.print(f"warning: {warning}", soft_wrap=True)
    console.print()
    numbers = ("requests", "takes")
    console.print(
        terminal_output.make_fitting_table("Waves", WAVE_COLUMNS, map(wave_row, document["waves"]), numbers=numbers)
    )
    console.print(rehearsal_summary_sentence(document), soft_wrap=True)


def wave_row(wave: Mapping[str, Any]) -> tuple[str, ...]:
    takes = "unknown" if wave["seconds"] is None else duration_text(wave["seconds"])
    takes = takes if wave["seconds"] is None or wave["seconds"] >= _AT_ONCE_S else "at once"
    return wave["name"], f"{wave['requests']:,}", shown_time(wave["begins_at"]), shown_time(wave["ends_at"]), takes


def shown_time(text: str | None) -> str:
    return "unknown" if text is None else instant_text(datetime.fromisoformat(text))


def rehearsal_summary_sentence(document: Mapping[str, Any]) -> str:
    records = sum(stream["records"]["read"] for stream in document["streams"].values())
    read = f"{count_with_noun(records, 'record')} read, {count_with_noun(document['requests'], 'request')} needed"
    if document["errors"]:
        return (
            f"rehearsal of {document['migration']} incomplete: {count_with_noun(len(document['errors']), 'error')}; "
            f"{read}"
        )
    if document["ends_at"] is None:
        return f"rehearsed {document['migration']}: {read}; the rate limit or the hours do not say when it would end"
    return f"rehearsed {document['migration']}: {read}; begun now, it ends at {shown_time(document['ends_at'])}"


def unresolved_sentence(found: Mapping[str, Any]) -> str:
    why = ", ".join(f"{number:,} {reason}" for reason, number in found["why"].items())
    to = f"{found['resource']} {found['namespace']}"
    return (
        f"{count_with_noun(found['references'], 'reference')} to {count_with_noun(found['records'], 'record')} of "
        f"{to}: {why}"
    )


def missing_parent_sentence(example: Mapping[str, Any]) -> str:
    return f"{example['key']}: {count_with_noun(example['references'], 'reference')}, {example['why']}"


def stream_remarks(stream: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield further remarks about a stream: a word as in plans, and a sentence."""
    rejected, repeated = stream["rejected_before"], stream["repeated_keys"]
    doubtful, held, there = stream["in_doubt"], stream["on_hold"], stream["already_there"]
    if rejected:
        yield "reject", f"{count_with_noun(rejected, 'record')} rejected before and unchanged"
    if repeated:
        superseded = count_with_noun(stream["rows"]["superseded"], "row")
        yield "twice", f"{count_with_noun(repeated, 'key')} listed several times, {superseded} superseded by later ones"
    if doubtful:
        yield "doubt", f"{count_with_noun(doubtful, 'record')} in doubt: see 'crossdock records resolve --help'"
    if held:
        yield "hold", f"{count_with_noun(held, 'record')} to approve: see 'crossdock plan' and 'crossdock approve'"
    if there is not None:
        created = count_with_noun(stream["records"]["created"], "create")
        yield "there", f"{there:,} of {created} on the platform already under our external id"
    if (conflicts := stream["conflicts"]) and conflicts["records"]:
        number, keys = conflicts["records"], ", ".join(conflicts["examples"])
        more = ", ..." if number > len(conflicts["examples"]) else ""
        yield (
            "reject",
            (
                f"{count_with_noun(number, 'record')} as conflict: the platform has another under our external id: "
                f"{keys}{more}"
            ),
        )
    if matched := stream["matched"]:
        one, several, none = (f"{matched[name]:,}" for name in ("one", "several", "none"))
        yield (
            "match",
            f"of the creates, {one} would take over a record of the platform, {several} ambiguous, {none} new",
        )


def remark_examples(word: str, stream: Mapping[str, Any]) -> Iterator[str]:
    for name in _EXAMPLE_MEMBERS_BY_REMARK.get(word, ()):
        for each in stream[name][:_SHOWN]:
            yield f"{each['key']}: {', '.join(each['at']) if word == 'twice' else each.get('message') or each['id']}"


def own_and_joined_profiles(stream: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the profiles of a stream and of joined files, by the suffix of the stream's name."""
    own = {} if stream["profile"] is None else {"": stream["profile"]}
    return own | {f" {part}": profile for part, profile in stream["joined_profiles"].items()}


def _print_profile(console: Any, name: str, profile: Mapping[str, Any]) -> None:
    rows = [_profile_column_row(column, profile["rows"]) for column in profile["columns"]]
    title = f"{name}: {count_with_noun(profile['rows'], 'row')}"
    console.print(
        terminal_output.make_fitting_table(title, PROFILE_COLUMNS, rows, numbers=("filled", "distinct", "length"))
    )
    if profile["has_more_columns"]:
        console.print(f"{name}: only the first {count_with_noun(len(rows), 'column')} are profiled")
    console.print()


def _profile_column_row(column: Mapping[str, Any], rows: int) -> tuple[str, ...]:
    values = f"{column['smallest']!r} to {column['largest']!r}" if "smallest" in column else ""
    filled = percent_text(column["filled"], rows)
    words = (
        distinct_count_text(column),
        length_text(column),
        number_and_date_shares_text(column),
    )
    return column["name"], filled, *words, values, findings_text(column)


def _stream_lines(name: str, stream: Mapping[str, Any]) -> Iterator[str]:
    for code, rejected in stream["rejected_by_reason"].items():
        yield f"reject {name} {code}: {count_with_noun(rejected['records'], 'record')}"
        for each in rejected["examples"]:
            yield f"         {each['key'] or '(no key)'} at {each['at']} {each['pointer'] or ''}: {each['message']}"
    for found in stream["unresolved"]:
        yield f"wait   {name}: {unresolved_sentence(found)}"
        yield from (f"         {missing_parent_sentence(each)}" for each in found["examples"])
    for word, sentence in stream_remarks(stream):
        yield f"{word:6} {name}: {sentence}"
        yield from (f"         {each}" for each in remark_examples(word, stream))


_PAGE_WAVE_COLUMNS = (*WAVE_COLUMNS, "share of requests")
_PAGE_PROFILE_COLUMNS = ("column", "filled", " ", "distinct", "  ", "length", "lengths", "forms", "note")
_REASONS = ("reason", "records", "share of records", "examples")
_UNRESOLVED = ("waits for", "references", "records", "why", "example")


def write_rehearsal_page(path: Path, document: Mapping[str, Any], config: Path) -> None:
    page_rendering.write_page_file(path, render_rehearsal_page(document, config))


def render_rehearsal_page(document: Mapping[str, Any], config: Path) -> str:
    messages = [RunMessage(**each) for each in document["messages"]]
    return page_rendering.render(
        "rehearsal.html",
        migration=document["migration"],
        tenant=document["tenant"],
        config=config.name,
        errors={each.stream: each.text_with_code for each in messages},
        warnings=document["warnings"],
        facts=_fact_texts_by_label(document),
        waves=table(_PAGE_WAVE_COLUMNS, (_page_wave_row(each, document["requests"]) for each in document["waves"])),
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


def _page_wave_row(wave: Mapping[str, Any], requests: int) -> tuple[Cell, ...]:
    return *wave_row(wave), bar_drawing(wave["requests"], requests)


def _stream_template_values(stream: Mapping[str, Any]) -> dict[str, Any]:
    records = stream["records"]["read"] + stream["rows"]["rejected"]
    reasons = (_rejection_row(code, each, records) for code, each in stream["rejected_by_reason"].items())
    return {
        "remarks": [(sentence, list(remark_examples(word, stream))) for word, sentence in stream_remarks(stream)],
        "rejected": table(_REASONS, reasons),
        "unresolved": table(_UNRESOLVED, map(_unresolved_references_row, stream["unresolved"])),
        "profiles": [_profile_template_values(*each) for each in own_and_joined_profiles(stream).items()],
    }


def _profile_template_values(title: str, profile: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": f"{title.strip()}: " if title else "",
        "rows": count_with_noun(profile["rows"], "row"),
        "has_more_columns": profile["has_more_columns"],
        "columns": table(
            _PAGE_PROFILE_COLUMNS, (_page_column_row(each, profile["rows"]) for each in profile["columns"])
        ),
    }


def _rejection_row(code: str, rejected: Mapping[str, Any], records: int) -> tuple[Cell, ...]:
    examples = (
        f"{each['key'] or '(no key)'} at {each['at']} {each['pointer'] or ''}: {each['message']}"
        for each in rejected["examples"]
    )
    share = bar_drawing(rejected["records"], max(records, rejected["records"]))
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


def _page_column_row(column: Mapping[str, Any], rows: int) -> tuple[Cell, ...]:
    filled = percent_text(column["filled"], rows), bar_drawing(column["filled"], rows)
    distinct = (
        distinct_count_text(column),
        bar_drawing(min(column["distinct"], column["filled"]), column["filled"]),
    )
    lengths = length_text(column), histogram_drawing(_length_histogram_counts(column["lengths"]))
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


def bar_drawing(number: int, of: int) -> Drawing:
    return _drawing_of_rectangles([(0, 0, _scaled_to_drawing_units(number, of, _WIDTH), _HEIGHT)])


def histogram_drawing(numbers: Sequence[int]) -> Drawing:
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
