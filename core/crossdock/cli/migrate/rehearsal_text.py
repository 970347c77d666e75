"""Prints a rehearsal on the terminal, from its document, and makes texts that the page has as well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from crossdock.cli import terminal_output
from crossdock.cli.migrate.column_profile_texts import (
    distinct_count_text,
    findings_text,
    length_text,
    number_and_date_shares_text,
    percent_text,
)
from crossdock.runs import tables_and_sentences_of_run
from crossdock.values.texts_of_numbers_and_times import count_with_noun, duration_text, instant_text

WAVES = ("wave", "requests", "begins", "ends", "takes")
COLUMNS = ("column", "filled", "distinct", "length", "forms", "value", "note")

_EXAMPLES = {
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
    console.print(terminal_output.make_fitting_table("Waves", WAVES, map(wave_row, document["waves"]), numbers=numbers))
    console.print(summary(document), soft_wrap=True)


def wave_row(wave: Mapping[str, Any]) -> tuple[str, ...]:
    takes = "unknown" if wave["seconds"] is None else duration_text(wave["seconds"])
    takes = takes if wave["seconds"] is None or wave["seconds"] >= _AT_ONCE_S else "at once"
    return wave["name"], f"{wave['requests']:,}", shown_time(wave["begins_at"]), shown_time(wave["ends_at"]), takes


def shown_time(text: str | None) -> str:
    return "unknown" if text is None else instant_text(datetime.fromisoformat(text))


def summary(document: Mapping[str, Any]) -> str:
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


def remarks(stream: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
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
    for name in _EXAMPLES.get(word, ()):
        for each in stream[name][:_SHOWN]:
            yield f"{each['key']}: {', '.join(each['at']) if word == 'twice' else each.get('message') or each['id']}"


def own_and_joined_profiles(stream: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the profiles of a stream and of joined files, by the suffix of the stream's name."""
    own = {} if stream["profile"] is None else {"": stream["profile"]}
    return own | {f" {part}": profile for part, profile in stream["joined_profiles"].items()}


def _print_profile(console: Any, name: str, profile: Mapping[str, Any]) -> None:
    rows = [_column_row(column, profile["rows"]) for column in profile["columns"]]
    title = f"{name}: {count_with_noun(profile['rows'], 'row')}"
    console.print(terminal_output.make_fitting_table(title, COLUMNS, rows, numbers=("filled", "distinct", "length")))
    if profile["has_more_columns"]:
        console.print(f"{name}: only the first {count_with_noun(len(rows), 'column')} are profiled")
    console.print()


def _column_row(column: Mapping[str, Any], rows: int) -> tuple[str, ...]:
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
    for word, sentence in remarks(stream):
        yield f"{word:6} {name}: {sentence}"
        yield from (f"         {each}" for each in remark_examples(word, stream))
