"""Look-ups and joins compared with loops over the rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.errors import RefusedError
from crossdock.reading.sources import file_lookups_and_joins
from crossdock.reading.sources.file_lookups_and_joins import Joiner, RowsStoredForJoin, Rule
from crossdock.values.raw_rows_and_records import LINE, REFUSED

Row = dict[str, str | None]
cells = st.sampled_from(["1", "2", "3", "ü", "", None])
mains = st.lists(st.fixed_dictionaries({"ID": cells, "REF": cells}), max_size=6)
lines = st.lists(st.fixed_dictionaries({"NO": cells, "LINE": cells, "QTY": st.sampled_from("ab")}), max_size=8)


def frame(rows: Sequence[Row], columns: Sequence[str]) -> pl.DataFrame:
    made = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String))
    return made.with_row_index(LINE, offset=2).cast({LINE: pl.UInt64})


def stored(files: Sequence[Sequence[Row]], columns: Sequence[str], work: Path) -> RowsStoredForJoin:
    rows = RowsStoredForJoin(columns, work)
    for number, file in enumerate(files):
        rows.add(f"f{number}", number, frame(file, columns))
    return rows


def expected(key: str | None, files: Sequence[Sequence[Row]], by: Sequence[str]) -> tuple[list[Row], str | None]:
    """The rows of one record, and its problem."""
    found = [(number, row) for number, file in enumerate(files) for row in file if key and row["NO"] == key]
    if not by:
        numbers = sorted({number for number, _ in found})
        by_file = [
            sorted(json.dumps(row, sort_keys=True) for number, row in found if number == each) for each in numbers
        ]
        if all(rows == by_file[0] for rows in by_file):
            return [row for number, row in found if number == numbers[-1]], None
        return [row for _, row in found], "several_files"
    newest: dict[str, int] = {}
    contradicts: dict[str, bool] = {}  # a newer file resolves the contradiction of an older one
    problem = None
    for place, (number, row) in enumerate(found):
        line = row["LINE"]
        if not line:
            problem = "empty_key"
            newest[f"row {place}"] = place
            continue
        before = found[newest[line]] if line in newest else (number, row)
        repeats = before[0] == number
        contradicts[line] = repeats and (contradicts.get(line, False) or before[1] != row)
        newest[line] = place
    problem = "contradiction" if any(contradicts.values()) else problem
    return [found[place][1] for place in sorted(newest.values())], problem


@given(main=mains, files=st.lists(lines, min_size=1, max_size=3), by=st.sampled_from([(), ("LINE",)]))
def test_each_record_has_the_rows_with_its_key(main: list[Row], files: list[list[Row]], by: tuple[str, ...]) -> None:
    """In the order of files and lines; repeated rows count as in the newest file, and no row is lost."""
    with TemporaryDirectory() as folder:
        work = Path(folder)
        rule = Rule({"ID": "NO"}, by)
        joiner = Joiner({}, {"lines": rule}, {"lines": stored(files, ["NO", "LINE", "QTY"], work)}, work)
        found = [row for part in joiner.add_columns(frame(main, ["ID", "REF"])) for row in part.iter_rows(named=True)]
        assert [row["ID"] for row in found] == [row["ID"] for row in main]
        for row in found:
            rows, problem = expected(row["ID"], files, by)
            if problem != "contradiction":  # which of the two counts is undefined, and the record is rejected
                assert json.loads(row["lines"] or "[]") == rows
            assert row["lines.problem"] == problem
        known = {row["ID"] for row in main if row["ID"]}
        others = [row for file in files for row in file if not row["NO"] or row["NO"] not in known]
        all_rows = sum(map(len, files))
        if others and len(others) == all_rows and known:
            with pytest.raises(RefusedError, match="of join 'lines' have no row of the main source"):
                list(joiner.joined_rows_without_main_row(["ID", "REF"]))
            return
        orphans = [
            row for _, part in joiner.joined_rows_without_main_row(["ID", "REF"]) for row in part.iter_rows(named=True)
        ]
        assert all(row["lines.problem"] == "no_main_row" and row["REF"] is None for row in orphans)
        assert {row["ID"] for row in orphans} == {row["NO"] for row in others}
        for row in orphans:
            if row["ID"] and row["lines.problem"] != "contradiction":
                assert json.loads(row["lines"]) == expected(row["ID"], files, by)[0] or by


@given(main=mains, files=st.lists(lines, min_size=1, max_size=3))
def test_a_lookup_adds_the_columns_of_one_row(main: list[Row], files: list[list[Row]]) -> None:
    """Of the newest file that has it; a file with two different rows of a key is refused."""
    with TemporaryDirectory() as folder:
        work = Path(folder)
        joiner = Joiner({"x": Rule({"REF": "NO"})}, {}, {"x": stored(files, ["NO", "QTY"], work)}, work)
        wanted = {row["REF"] for row in main if row["REF"]}
        contradicts = any(len({row["QTY"] for row in file if row["NO"] == key}) > 1 for file in files for key in wanted)
        if contradicts:
            with pytest.raises(RefusedError, match="look-up 'x' finds the key of .* again, with different content"):
                list(joiner.add_columns(frame(main, ["ID", "REF"])))
            return
        found = [row for part in joiner.add_columns(frame(main, ["ID", "REF"])) for row in part.iter_rows(named=True)]
        for row, given_row in zip(found, main, strict=True):
            matching = [each for file in files for each in file if row["REF"] and each["NO"] == row["REF"]]
            assert row["x"] == (None if not row["REF"] else "found" if matching else "missing")
            assert row["x.QTY"] == (matching[-1]["QTY"] if matching else None)
            assert row["ID"] == given_row["ID"]


@pytest.mark.parametrize("by", [(), ("LINE",)])
@pytest.mark.parametrize("odd", ["*", "^.*$", "^(ID|NO)$", "_file", "_file_number", "_problem", "_has_key", "_0"])
def test_a_column_may_have_any_name(odd: str, by: tuple[str, ...], tmp_path: Path) -> None:
    """Also one that polars reads as a pattern, or that begins with _: the same rows are found."""
    files: list[list[Row]] = [
        [{"NO": "1", "LINE": "1", "QTY": "a"}, {"NO": "2", "LINE": "1", "QTY": "b"}],
        [{"NO": "3", "LINE": "1"}],
    ]
    main: list[Row] = [{"ID": "1", "REF": "2"}, {"ID": "2", "REF": "9"}]

    def found(changed: dict[str, str]) -> list[Row]:
        """The rows of the main source and those without one, under the names before the change."""

        def new(names: Sequence[str]) -> list[str]:
            return [changed.get(name, name) for name in names]

        def renamed(rows: Sequence[Row]) -> list[Row]:
            return [dict(zip(new(list(row)), row.values(), strict=True)) for row in rows]

        def read() -> RowsStoredForJoin:
            return stored([renamed(file) for file in files], new(["NO", "LINE", "QTY"]), tmp_path)

        of, ref, no = new(["ID", "REF", "NO"])
        joiner = Joiner({"x": Rule({ref: no})}, {"y": Rule({of: no}, new(by))}, {"x": read(), "y": read()}, tmp_path)
        parts = [*joiner.add_columns(frame(renamed(main), new(["ID", "REF"])))]
        parts += [part for _, part in joiner.joined_rows_without_main_row(new(["ID", "REF"]))]
        ((old, name),) = changed.items()
        rows = [row for part in parts for row in part.drop("y.content").iter_rows(named=True)]
        return [{of.replace(name, old): (row[of] or "").replace(name, old) for of in row if of != LINE} for row in rows]

    for name in ("ID", "REF", "NO", "LINE", "QTY"):
        assert found({name: odd}) == found({name: "OTHER"})


def test_too_many_rows_without_a_record_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would all be dead letters; a wrong file is more likely."""
    monkeypatch.setattr(file_lookups_and_joins, "MAX_ORPHANS", 2)
    rows = stored([[{"NO": str(number)} for number in range(1, 5)]], ["NO"], tmp_path)
    joiner = Joiner({}, {"lines": Rule({"ID": "NO"})}, {"lines": rows}, tmp_path)
    list(joiner.add_columns(frame([{"ID": "1"}], ["ID"])))
    with pytest.raises(RefusedError, match="f0:3: more than 2 rows of join 'lines'"):
        list(joiner.joined_rows_without_main_row(["ID"]))


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    """With the columns that the file has."""
    with pytest.raises(RefusedError, match="f0: missing column 'QTY'") as refused:
        RowsStoredForJoin(["NO", "QTY"], tmp_path).add("f0", 0, frame([], ["NO", "OTHER"]))
    assert "its columns: NO, OTHER" in str(refused.value)


def test_a_refused_part_refuses_the_joined_file(tmp_path: Path) -> None:
    """Its rows would be missing in records that are whole otherwise; without one, its column is no part of rows."""
    rows = RowsStoredForJoin(None, tmp_path)
    rows.add("f0", 0, frame([{"NO": "1", REFUSED: ""}], ["NO", REFUSED]))
    assert REFUSED not in rows.rows_matching(pl.DataFrame({"ID": ["1"]}), Rule({"ID": "NO"})).columns
    with pytest.raises(RefusedError, match="set 2 is refused") as refused:
        rows.add("f1", 1, frame([{"NO": "", REFUSED: "set 2 is refused"}], ["NO", REFUSED]))
    assert refused.value.where == "f1"
