"""Conditions are data, and mean the same for a column and for a row."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from crossdock.mapping.stream_declaration import MAX_DEPTH, Filter, Repair, name_of_first_matching_filter

TEXT = st.text(st.sampled_from("aAä .\0\n€"), max_size=3)
CELL = st.none() | TEXT
FIELD = st.sampled_from(["A", "B"])
COMPARISON = st.one_of(
    st.fixed_dictionaries({"field": FIELD, "equals": TEXT}),
    st.fixed_dictionaries({"field": FIELD, "one_of": st.lists(TEXT, max_size=3)}),
    st.fixed_dictionaries({"field": FIELD, "starts_with": TEXT}),
    st.fixed_dictionaries({"field": FIELD, "ends_with": TEXT}),
    st.fixed_dictionaries({"field": FIELD, "empty": st.booleans()}),
)


def combined(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.fixed_dictionaries({"not": inner}),
        st.fixed_dictionaries({"any": several}),
        st.fixed_dictionaries({"all": several}),
    )


CONDITION = COMPARISON | combined(COMPARISON | combined(COMPARISON))


@given(CONDITION, st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5))
def test_a_condition_gives_the_same_answer_for_columns_and_rows(
    condition: dict[str, Any], cells: list[tuple[str | None, str | None]]
) -> None:
    """``skip`` decides in columns and ``when`` on a row."""
    model = Filter.model_validate(condition)
    frame = pl.DataFrame(cells, schema={"A": pl.String, "B": pl.String}, orient="row")
    in_columns = frame.select(model.expression()).to_series().to_list()
    meets = model.predicate()
    assert in_columns == [meets({"A": first, "B": second}) for first, second in cells]


def test_a_filter_may_combine_conditions() -> None:
    """``not``, ``any`` and ``all`` nest."""
    rule = {
        "all": [
            {"field": "A", "starts_with": "T"},
            {"not": {"any": [{"field": "B", "equals": "x"}, {"field": "B", "empty": True}]}},
        ]
    }
    frame = pl.DataFrame({"A": ["T1", "T2", "T3", "q"], "B": ["y", "x", None, "y"]})
    found = frame.select(name_of_first_matching_filter({"test": Filter.model_validate(rule)})).to_series().to_list()
    assert found == ["test", None, None, None]
    assert set(Filter.model_validate(rule).columns()) == {"A", "B"}


@pytest.mark.parametrize(
    ("cell", "is_empty"), [("", True), ("        ", True), ("\u00a0\t", True), (None, True), (" 0", False)]
)
def test_a_cell_of_blanks_alone_is_empty(cell: str | None, is_empty: bool) -> None:
    """Exports of columns with a fixed length fill them up: a record with a blank time of deletion is not deleted."""
    rows = pl.DataFrame({"A": [cell]}, schema={"A": pl.String})
    for wanted in (True, False):
        rule = Filter.model_validate({"field": "A", "empty": wanted})
        assert rule.predicate()({"A": cell}) is rows.select(rule.expression()).item() is (wanted is is_empty)


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"field": "A"},
        {"equals": "x"},
        {"field": "A", "equals": "x", "empty": True},
        {"field": "A", "equals": "x", "not": {"field": "A", "empty": True}},
        {"field": "A", "not": {"field": "A", "empty": True}},
        {"any": [{"field": "A", "empty": True}], "all": [{"field": "A", "empty": True}]},
        {"any": []},
        {"all": []},
        {"not": {"field": "A"}},
        {"field": "A", "contains": "x"},
    ],
)
def test_a_condition_is_one_comparison_or_one_combination(rule: dict[str, Any]) -> None:
    """Anything else is refused when the config is loaded."""
    with pytest.raises(ValidationError):
        Filter.model_validate(rule)


def test_the_depth_of_a_condition_is_limited() -> None:
    """Conditions are data and no language."""
    rule: dict[str, Any] = {"field": "A", "empty": True}
    for _ in range(MAX_DEPTH - 1):
        rule = {"not": rule}
    Filter.model_validate(rule)
    with pytest.raises(ValidationError, match="nested more than 5 levels"):
        Filter.model_validate({"any": [rule]})


@pytest.mark.parametrize(
    ("repair", "cell", "expected"),
    [
        ({"decode": "percent"}, "a%2Fb%C3%BC+c%zz", "a/b\u00fc+c%zz"),
        ({"decode": "percent"}, "a%FF", "a%FF"),
        ({"zfill": 8}, "17", "00000017"),
        ({"zfill": 8}, "-17", "-17"),
        ({"zfill": 8}, "A17", "A17"),
        ({"zfill": 2}, "0017", "0017"),
        ({"zfill": 8}, "", ""),
        ({"strip_suffix": ".0", "zfill": 4}, "17.0", "0017"),
        ({"line_breaks": " "}, "one\r\ntwo\n\nthree\u2028four", "one two three four"),
        ({"line_breaks": ""}, "one\rtwo", "onetwo"),
        ({"line_breaks": "$1"}, "one\ntwo", "one$1two"),
        ({"strip": "both"}, "\u200b\u00a0 0017\ufeff ", "0017"),
        ({"strip": "left"}, "\u00a017 ", "17 "),
    ],
)
def test_a_repair_changes_the_text_of_a_cell(repair: dict[str, Any], cell: str, expected: str) -> None:
    """In the order of its fields; a cell that is missing stays one."""
    rows = pl.DataFrame({"A": [cell, None]}, schema={"A": pl.String})
    assert rows.select(Repair.model_validate(repair).expression("A"))["A"].to_list() == [expected, None]
