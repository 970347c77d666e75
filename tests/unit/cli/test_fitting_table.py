"""Tables on terminals of any width: what is copied from them is whole."""

from __future__ import annotations

import io
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from crossdock.cli.safe_terminal_console import FittingTable, PlainConsole, wrapped

KEYS = st.text(st.characters(codec="ascii", categories=["Lu", "Nd"]), min_size=1, max_size=60)
SENTENCES = st.lists(KEYS, max_size=20).map(" ".join)
ROWS = st.lists(st.tuples(KEYS, st.integers(1, 10**9).map(str), SENTENCES, KEYS), min_size=1, max_size=6)


def shown(rows: Sequence[Sequence[str]], width: int, columns: tuple[str, ...] = ("key", "rows", "why", "at")) -> str:
    """A table on a terminal of that width, without colours."""
    console = PlainConsole()
    console._force_terminal, console.width, console.file, console.no_color = True, width, io.StringIO(), True
    console._color_system = None
    console.print(FittingTable("Records", columns, rows, ("rows",)))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@given(ROWS, st.integers(20, 200))
def test_no_value_is_broken(rows: list[tuple[str, ...]], width: int) -> None:
    """Each key, number and place is in one line; a sentence keeps its words; only longer values exceed the width."""
    text = shown(rows, width)
    words = text.split()
    for key, number, why, place in rows:
        assert {key, number, place, *why.split()} <= set(words)
    longest = max(len(word) for row in rows for cell in row for word in cell.split() or [""])
    assert all(len(line.rstrip()) <= max(width, longest + 6) for line in text.splitlines())


def test_a_table_becomes_blocks_where_it_does_not_fit() -> None:
    """One block for each row, without empty cells and counts of 0; sentences are wrapped."""
    rows = [("K" * 20, "5", "it is not a number and never was one", "f.csv:7"), ("B", "1,000", "", "f.csv:8")]
    rows.append(("0", "0", "", "f.csv:9"))
    assert shown(rows, 30).splitlines() == [
        "Records",
        f"key   {'K' * 20}",
        "rows  5",
        "why   it is not a number and",
        "      never was one",
        "at    f.csv:7",
        "",
        "key   B",
        "rows  1,000",
        "at    f.csv:8",
        "",
        "key   0",
        "at    f.csv:9",
    ]


def test_columns_and_tables_without_values() -> None:
    """A column without values is left out; a table without rows says so."""
    rows = [("K1", "5", "", ""), ("K2", "", "", "")]
    assert shown(rows, 80).split() == ["Records", "key", "rows", "K1", "5", "K2"]
    assert shown([], 80) == "Records: none\n"


def test_heads_are_wrapped_before_a_table_becomes_blocks() -> None:
    """A head is no value: its words may be on two lines."""
    assert [line.rstrip() for line in shown([("K1", "5")], 14, ("business key", "rows")).splitlines()] == [
        "Records",
        "business",
        "key       rows",
        "K1           5",
    ]


@given(st.text(st.characters(codec="ascii", categories=["Lu", "Zs"]), max_size=200), st.integers(-5, 60))
def test_wrapping_breaks_no_word(text: str, width: int) -> None:
    """Lines have the same words, and are longer than the width only if they are one word."""
    lines = wrapped(text, width)
    assert " ".join(lines).split() == text.split()
    assert all(len(line) <= max(width, 1) or " " not in line.strip() for line in lines)
