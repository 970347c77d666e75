"""Mapping: strict conversions, repairs and filters in columns, and the declarative form."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from crossdock.config.stream_configuration import StreamConfig
from crossdock.errors import RecordError
from crossdock.mapping import convert, declarative
from crossdock.mapping.declarative import Form, RecordMap
from crossdock.mapping.row_order_and_cursors import OrderBy
from crossdock.mapping.stream_declaration import Filter, Repair, name_of_first_matching_filter
from crossdock.resources import Reference
from crossdock.values.raw_rows_and_records import RawBatch, Record, with_path_columns
from crossdock.values.record_keys import key_text

FORMS: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Form])


def record(*rows: dict[str, str | None]) -> Record:
    return Record("K", rows, "f.csv", tuple(range(2, 2 + len(rows))))


def mapped(forms: dict[str, Any], *rows: dict[str, str | None]) -> dict[str, Any]:
    return RecordMap(FORMS.validate_python(forms))(record(*rows))


@pytest.mark.parametrize("text", ["", "1e3", "1 0", "1_000", "1,000", "1.23456", "1" * 16, "NaN", "٣", "--1", "."])
def test_what_is_no_decimal_is_a_dead_letter(text: str) -> None:
    """Python's own parser would take some of these; a legacy file must not mean them."""
    with pytest.raises(RecordError) as refused:
        convert.decimal({"A": text}, "A")
    assert (refused.value.code, refused.value.pointer) == ("bad_value", "A")
    canary = f"<{text}>" if len(text) < 4 else text
    assert canary not in refused.value.message


def test_a_point_in_a_comma_file_is_refused() -> None:
    """1.234 in a file with decimal commas is a thousand or a mistake, never 1.234."""
    with pytest.raises(RecordError):
        convert.decimal({"A": "1.234"}, "A", decimal_mark=",")


def test_times_need_a_zone() -> None:
    """Text without offset is an instant only in a declared zone; the offset counts where there is one."""
    layout = "%Y-%m-%d %H:%M"
    assert convert.instant({"A": "2026-07-01 02:00"}, "A", layout=layout, timezone="Europe/Berlin") == datetime(
        2026, 7, 1, 0, 0, tzinfo=UTC
    )
    with pytest.raises(RecordError, match="no timezone is declared"):
        convert.instant({"A": "2026-07-01 02:00"}, "A", layout=layout)


@pytest.mark.parametrize(
    ("text", "layout", "timezone"),
    [
        pytest.param("9999-12-31 23:59:59", "%Y-%m-%d %H:%M:%S", "America/New_York", id="the end, west of Greenwich"),
        pytest.param("0001-01-01 00:00:00", "%Y-%m-%d %H:%M:%S", "Europe/Berlin", id="the beginning, east of it"),
        pytest.param("9999-12-31T23:59:59-00:01", "%Y-%m-%dT%H:%M:%S%z", None, id="the end, with an offset"),
        pytest.param("0001-01-01T00:00:00+00:01", "%Y-%m-%dT%H:%M:%S%z", None, id="the beginning, with an offset"),
    ],
)
def test_a_time_that_utc_has_not_is_a_bad_value(text: str, layout: str, timezone: str | None) -> None:
    """Dates that mean never or always are bad values of their column, and no defect."""
    with pytest.raises(RecordError, match="years 1 to 9999") as refused:
        convert.instant({"A": text}, "A", layout=layout, timezone=timezone)
    assert (refused.value.code, refused.value.pointer) == ("bad_value", "A")


_LAYOUTS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S%z", "%Y%m%d", "%Y %j", "%G-W%V-%u", "%Y %U %w", "%d.%m.%y %Z", "%c")
_ODD = st.text(max_size=20) | st.text(alphabet="0123456789-+:.,TZW eE", max_size=30) | st.sampled_from(["9" * 5_000])


_TIMES = st.datetimes(timezones=st.timezones())
_LAST_DAYS = st.datetimes(datetime.fromisoformat("9999-12-31"), timezones=st.timezones())
_WRITTEN = st.sampled_from(_LAYOUTS).flatmap(
    lambda layout: st.tuples(st.just(layout), _ODD | (_TIMES | _LAST_DAYS).map(lambda at: at.strftime(layout)))
)


@given(
    written=_WRITTEN,
    timezone=st.sampled_from([None, "America/New_York", "Europe/Berlin", "Pacific/Kiritimati", "Pacific/Niue"]),
)
def test_any_text_is_converted_or_refused(written: tuple[str, str], timezone: str | None) -> None:
    """No conversion raises anything but a `RecordError`, and what it makes of a time is a time in UTC."""
    layout, text = written
    row = {"A": text}
    conversions: list[Callable[[], Any]] = [
        lambda: convert.text(row, "A"),
        lambda: convert.decimal(row, "A", decimal_mark=","),
        lambda: convert.integer(row, "A"),
        lambda: convert.day(row, "A", layout=layout),
        lambda: convert.instant(row, "A", layout=layout, timezone=timezone),
        lambda: convert.boolean(row, "A", true="1", false="0"),
    ]
    for convert_it in conversions:
        with suppress(RecordError):
            made = convert_it()
            assert not isinstance(made, datetime) or made.tzinfo is UTC


def test_every_form_of_a_map() -> None:
    """Column, conversion, constant, template, reference, object and each, side by side."""
    forms = {
        "sku": "SKU",
        "quantity": {"from": "QTY", "as": "decimal"},
        "count": {"from": "N", "as": "integer"},
        "day": {"from": "D", "as": "date", "format": "%Y%m%d", "empty": "00000000"},
        "active": {"from": "ACT", "as": "boolean", "true_text": "Y", "false_text": "N"},
        "currency": {"const": "EUR"},
        "name": {"template": "Lot {SKU}/{N}"},
        "productId": {"ref": "product", "key": "SKU"},
        "binId": {"ref": "warehouse_bin", "key": ["WH", "BIN"], "namespace": "site"},
        "address": {"object": {"city": "CITY", "region": "REGION"}},
        "items": {"each": {"quantity": {"from": "QTY", "as": "decimal"}}},
    }
    row: dict[str, str | None] = {
        "SKU": "0017", "QTY": "1.50", "N": "3", "D": "20261101", "ACT": "Y",
        "WH": "A|1", "BIN": "7", "CITY": "", "REGION": None,
    }  # fmt: skip
    assert mapped(forms, row) == {
        "sku": "0017",
        "quantity": Decimal("1.5"),
        "count": 3,
        "day": date(2026, 11, 1),
        "active": True,
        "currency": "EUR",
        "name": "Lot 0017/3",
        "productId": Reference("product", "0017"),
        "binId": Reference("warehouse_bin", ("A|1", "7"), "site"),
        "items": [{"quantity": Decimal("1.5")}],
    }


def test_empty_cells_leave_members_out() -> None:
    """An empty cell, a declared word for nothing and an empty reference make no member."""
    forms = {
        "a": "A",
        "b": {"from": "B", "as": "date", "format": "%Y%m%d", "empty": "00000000"},
        "c": {"ref": "customer", "key": "A"},
    }
    assert mapped(forms, {"A": "", "B": "00000000"}) == {}


def test_several_texts_may_mean_nothing() -> None:
    """Each of the texts of ``empty`` leaves the member out; others are converted."""
    date_of = {"as": "date", "format": "%Y-%m-%d"}
    several = {"from": "A", "empty": ["9999-12-31", "0001-01-01"]} | date_of
    assert [mapped({"a": several}, {"A": text}) for text in ("9999-12-31", "0001-01-01", "2026-07-01", "")] == [
        {}, {}, {"a": date(2026, 7, 1)}, {},
    ]  # fmt: skip
    one = {"from": "A", "empty": "9999-12-31"} | date_of
    assert mapped({"a": one}, {"A": "9999-12-31"}) == {}
    assert mapped({"a": one}, {"A": "0001-01-01"}) == {"a": date(1, 1, 1)}


@pytest.mark.parametrize(("empty", "place"), [(date(9999, 12, 31), "one"), (["0", date(1, 1, 1)], 1)])
def test_a_date_without_quotes_is_one_finding(empty: object, place: object) -> None:
    """YAML makes a date of it, which is no text: one finding says so, with its place."""
    with pytest.raises(ValidationError) as refused:
        FORMS.validate_python({"a": {"from": "A", "empty": empty}})
    (finding,) = refused.value.errors()
    assert (finding["type"], finding["loc"][-1]) == ("string_type", place)


def test_rows_of_one_record_must_agree_outside_each() -> None:
    """Two customers in one invoice are a dead letter that names column and line."""
    forms = {"customerId": {"ref": "customer", "key": "C"}, "items": {"each": {"sku": "S"}}}
    with pytest.raises(RecordError) as refused:
        mapped(forms, {"C": "1", "S": "a"}, {"C": "1", "S": "b"}, {"C": "2", "S": "c"})
    assert (refused.value.code, refused.value.pointer, refused.value.line) == ("rows_disagree", "C", 4)


ROW_ITEMS = {
    "sku": "SKU",
    "unit": {"const": "EA"},
    "number": {"from": "QTY", "as": "integer", "default": 1},
    "price": {"from": "PRICE", "as": "decimal", "minor_units": "CUR"},
}
NO_LINE = {"SKU": "", "QTY": " ", "PRICE": None, "CUR": "EUR"}


def test_a_row_without_a_line_makes_no_object_of_constants() -> None:
    """As that of an order without lines in XML or EDI, or of a LEFT JOIN; the report counts it."""
    compiled = RecordMap(FORMS.validate_python({"items": {"each": ROW_ITEMS}, "currency": "CUR"}))
    lacking = record(NO_LINE)
    assert compiled(lacking) == {"items": [], "currency": "EUR"}
    assert lacking.parts == {"row without anything that map reads for items": 1}
    number = [{"unit": "EA", "number": 5}]
    assert compiled(record({**NO_LINE, "QTY": "5"}))["items"] == number, "a line whose SKU is missing stays"
    assert len(compiled(record(NO_LINE, NO_LINE))["items"]) == 2, "lines whose cells are lost are not left out"


@pytest.mark.parametrize("nothing", [None, {}, [], {"sku": None, "qty": None}, {"sku": "", "of": {"n": None}}])
def test_an_element_that_is_nothing_makes_no_object_of_constants(nothing: Any) -> None:
    """As json_agg of PostgreSQL gives for a LEFT JOIN without lines, and lists of GraphQL may have."""
    forms = {"items": {"of": "lines", "each": {"sku": "sku", "unit": {"const": "EA"}}}}
    assert of_json({"lines": [nothing]}, forms) == ({"items": []}, {"empty element of lines left out": 1})
    made, _ = of_json({"lines": [nothing, {"sku": "A"}]}, forms)
    assert len(made["items"]) == 2, "a line that was not read is not left out"
    forms["items"]["each"] = {"number": {"from": "n", "default": 1}}
    assert of_json({"lines": [nothing]}, forms) == ({"items": [{"number": 1}]}, {})


@pytest.mark.parametrize(
    "form",
    [
        {"each": {"number": ROW_ITEMS["number"], "unit": ROW_ITEMS["unit"]}},
        {"each": {"number": ROW_ITEMS["number"], "unit": "UNIT"}, "where": {"field": "CUR", "empty": False}},
        {"each": {"number": {"const": 1}, "unit": ROW_ITEMS["unit"]}},
    ],
    ids=["a default", "a condition", "only constants"],
)
def test_a_config_may_say_what_a_row_without_content_means(form: dict[str, Any]) -> None:
    """By a default for each of its cells, or by a condition on the rows that are meant."""
    made = mapped({"items": form}, {**NO_LINE, "UNIT": ""})["items"]
    assert [each["number"] for each in made] == [1]


def test_a_bad_cell_in_a_later_row_names_its_line() -> None:
    """Whoever looks for the cell finds it."""
    forms = {"items": {"each": {"quantity": {"from": "Q", "as": "decimal"}}}}
    with pytest.raises(RecordError) as refused:
        mapped(forms, {"Q": "1"}, {"Q": "x"})
    assert refused.value.line == 3


def test_the_limits_of_failures_are_a_setting() -> None:
    """A stream stops beyond both limits: by default more than 20 records, and more than 5 % of them."""
    facts = {"resource": "customer", "mode": "append", "key": ["K"], "map": {"name": "N"}}
    default = StreamConfig.model_validate(facts).mapping_failed
    assert [default.exceeded(*each) for each in ((20, 20), (21, 420), (21, 419))] == [False, False, True]
    strict = StreamConfig.model_validate(
        facts | {"mapping_failed": {"at_most": 0, "at_most_percent": 0}}
    ).mapping_failed
    assert [strict.exceeded(*each) for each in ((0, 9), (1, 9))] == [False, True]


@pytest.mark.parametrize(
    "form", [{"from": "A", "as": "money"}, {"tepmlate": "x"}, {"const": 1.5}, {"ref": "shop", "key": "A"}, 7]
)
def test_an_unknown_form_is_refused(form: object) -> None:
    """A form is one of seven; nothing is guessed."""
    with pytest.raises(ValidationError):
        FORMS.validate_python({"a": form})


@pytest.mark.parametrize(
    ("repair", "text", "mended"),
    [
        pytest.param({"strip_suffix": ".0"}, "17850.0", "17850", id="suffix"),
        pytest.param({"strip_suffix": ".0"}, "1.0.0", "1.0", id="suffix once"),
        pytest.param({"strip_prefix": "00"}, "0000A", "00A", id="prefix once"),
        pytest.param({"strip": "both"}, "  a ", "a", id="white space"),
        pytest.param({"null": "NULL"}, "NULL", "", id="a word for nothing"),
        pytest.param({"strip": "right", "strip_suffix": "-"}, "5-  ", "5", id="in order"),
        pytest.param({"strip": "both", "table": {"A-01": "1001"}}, " A-01 ", "1001", id="another system's code"),
        pytest.param({"table": {"A-01": "1001"}}, "A-011", "A-011", id="a text that is not in the table"),
        pytest.param({"table": {"": "CASH"}}, None, "CASH", id="null is empty"),
        pytest.param({"table": {"A-01": "1001"}}, None, None, id="null stays"),
    ],
)
def test_repairs(repair: dict[str, Any], text: str | None, mended: str | None) -> None:
    """Small named repairs, in columns."""
    frame = pl.DataFrame({"A": [text]}, schema={"A": pl.String})
    assert frame.select(Repair(**repair).expression("A")).item() == mended


def test_a_row_counts_under_the_first_filter_that_matches() -> None:
    """The order of filters is the order of the file; null is empty and never an error."""
    filters = {
        "cancelled": Filter(field="A", starts_with="C"),
        "empty": Filter(field="B", empty=True),
        "test": Filter(field="A", one_of=("T1", "T2")),
        "full": Filter(field="B", equals="x"),
        "tail": Filter(field="A", ends_with="z"),
        "rest": Filter(field="B", empty=False),
    }
    frame = pl.DataFrame({"A": ["C1", "T1", "T1", "q", "yz", "y"], "B": [None, "", "b", "x", "b", "b"]})
    assert frame.select(name_of_first_matching_filter(filters)).to_series().to_list() == [
        "cancelled", "empty", "test", "full", "tail", "rest",
    ]  # fmt: skip
    assert frame.select(name_of_first_matching_filter({})).to_series().to_list() == [None]


def test_a_filter_has_one_condition() -> None:
    """Filters are data, not a little language."""
    with pytest.raises(ValidationError, match="give field and one of"):
        Filter(field="A", equals="x", starts_with="y")


def test_key_text_never_collides() -> None:
    """Parts that hold the separator, or its escape, stay apart."""
    keys = [key_text(parts) for parts in (["a|b"], ["a", "b"], ["a%7Cb"], ["a%7C", "b"], ["ä"], ["0017"])]
    assert len(set(keys)) == len(keys)
    assert keys[-1] == "0017"


ACTIVE = {"when": {"field": "END", "empty": True}, "then": True, "otherwise": False}


@pytest.mark.parametrize(("end", "active"), [("", True), (None, True), ("2020-01-01", False)])
def test_a_condition_chooses_between_two_values(end: str | None, active: bool) -> None:
    """A product without an end of sale is active."""
    assert mapped({"active": ACTIVE}, {"END": end}) == {"active": active}


@pytest.mark.parametrize(
    ("branch", "made"),
    [
        (True, True),
        (0, 0),
        (Decimal("1.5"), Decimal("1.5")),
        ("A", "a cell"),
        ({"const": "A"}, "A"),
        ({"from": "N", "as": "decimal"}, Decimal(7)),
        ({"template": "No {N}"}, "No 7"),
        ({"ref": "product", "key": "N"}, Reference("product", "7")),
        ({"object": {"city": "A"}}, {"city": "a cell"}),
        ({"when": {"field": "N", "equals": "8"}, "then": 8, "otherwise": "N"}, "7"),
    ],
)
def test_either_side_of_a_condition_is_a_form_or_a_constant(branch: object, made: object) -> None:
    """A text is a column, as everywhere in a map."""
    row: dict[str, str | None] = {"A": "a cell", "N": "7"}
    yes, no = {"field": "N", "equals": "7"}, {"field": "N", "empty": True}
    assert mapped({"m": {"when": yes, "then": branch}}, row) == {"m": made}
    assert mapped({"m": {"when": no, "then": "A", "otherwise": branch}}, row) == {"m": made}
    assert mapped({"m": {"when": no, "then": branch}}, row) == {}


def test_a_condition_uses_its_columns() -> None:
    """A change in a column of the condition changes the record, and the rows of a record must agree on it."""
    forms = FORMS.validate_python({"m": ACTIVE | {"otherwise": "B"}, "items": {"each": {"sku": "S"}}})
    assert set(RecordMap(forms).columns) == {"END", "B", "S"}
    with pytest.raises(RecordError) as refused:
        RecordMap(forms)(record({"END": "", "B": "b", "S": "1"}, {"END": "x", "B": "b", "S": "2"}))
    assert (refused.value.code, refused.value.pointer, refused.value.line) == ("rows_disagree", "END", 3)


def test_a_reference_with_half_a_key_is_a_dead_letter() -> None:
    """No record has such a key, so it would wait forever."""
    forms = {"binId": {"ref": "warehouse_bin", "key": ["WH", "BIN"]}}
    with pytest.raises(RecordError) as refused:
        mapped(forms, {"WH": "A", "BIN": ""})
    assert (refused.value.code, refused.value.pointer) == ("bad_value", "BIN")
    assert mapped(forms, {"WH": "", "BIN": None}) == {}


LINES = {"items": {"of": "cart.lines", "each": {"sku": "product.sku", "price": {"from": "price", "as": "decimal"}}}}


def json_record(item: Any) -> Record:
    (row,) = with_path_columns(RawBatch.json([item], source="/orders").load().drop("_line"), ["cart.lines"]).to_dicts()
    return Record("K", (row,), "/orders", (1,))


def items_of(item: Any) -> Any:
    return RecordMap(FORMS.validate_python(LINES))(json_record(item)).get("items")


def test_each_element_of_a_json_list_is_an_item() -> None:
    """Paths begin at the element; numbers are exact; what an element lacks is left out, and its order is kept."""
    lines = [{"product": {"sku": "0017"}, "price": Decimal("0.10")}, {"price": "19.90"}, {"product": None}, None]
    assert items_of({"cart": {"lines": lines}}) == [
        {"sku": "0017", "price": Decimal("0.1")},
        {"price": Decimal("19.9")},
        {},
        {},
    ]
    assert items_of({"cart": {"lines": []}}) == []


def test_the_rows_of_one_record_must_have_the_same_list() -> None:
    """An order that is divided over several objects is a dead letter, and has not the lines of its first object."""
    items: list[Any] = [{"cart": {"lines": [{"product": {"sku": sku}} for sku in skus]}} for skus in ("A", "A", "AB")]
    rows = [json_record(each).row for each in items]
    made = RecordMap(FORMS.validate_python(LINES))
    assert made(record(*rows[:2])) == {"items": [{"sku": "A"}]}
    with pytest.raises(RecordError) as refused:
        made(record(*rows))
    assert (refused.value.code, refused.value.pointer, refused.value.line) == ("rows_disagree", "cart.lines", 4)


def test_lists_in_the_elements_of_a_list_are_one() -> None:
    """``*`` stands for each element of the list around them. One that is none, or cut, is a dead letter."""
    form = {"of": "shipments.*.labels", "each": {"number": "number"}}
    made = RecordMap(FORMS.validate_python({"tracking": form}))
    shipments: list[Any] = [
        {"labels": [{"number": "1"}, {"number": "2"}]},
        {"labels": None},
        {"labels": [{"number": "3"}]},
    ]
    assert made(json_record({"shipments": shipments})) == {"tracking": [{"number": each} for each in "123"]}
    assert made(json_record({"shipments": []})) == {"tracking": []}
    assert made(json_record({"shipments": None})) == {}
    for wrong in ({"labels": {"number": "4"}}, {"labels": [], "labels_has_more": True}):
        with pytest.raises(RecordError) as refused:
            made(json_record({"shipments": [*shipments, wrong]}))
        assert refused.value.pointer == "shipments.3.labels"


def test_an_element_has_a_place() -> None:
    """`_element` is its JSON pointer in the record, by which elements with the same content differ."""
    form = {"of": "cart.lines", "each": {"id": "_element", "sku": "sku"}}
    made = RecordMap(FORMS.validate_python({"lines": form}))
    assert made(json_record({"cart": {"lines": [{"sku": "A"}, {"sku": "A"}]}}))["lines"] == [
        {"id": "/cart/lines/0", "sku": "A"},
        {"id": "/cart/lines/1", "sku": "A"},
    ]
    nested = {"of": "boxes.*.lines", "where": {"field": "sku", "empty": False}, "each": {"id": "_element"}}
    made = RecordMap(FORMS.validate_python({"lines": nested}))
    boxes = [{"lines": [{"sku": "A"}]}, {"lines": [{}, {"sku": "A"}]}]
    assert made(json_record({"boxes": boxes}))["lines"] == [{"id": "/boxes/0/lines/0"}, {"id": "/boxes/1/lines/1"}]


def test_elements_and_rows_that_are_not_meant_are_left_out() -> None:
    """``where`` chooses by the element's own columns, also by those that nothing is made of."""
    goods = {"not": {"field": "product.kind", "equals": "charge"}}
    lines = {"items": {"of": "lines", "where": goods, "each": {"sku": "product.sku"}}}
    item = {"lines": [{"product": {"sku": "A", "kind": "charge"}}, {"product": {"sku": "B"}}, {}]}
    assert RecordMap(FORMS.validate_python(lines))(json_record(item)) == {"items": [{"sku": "B"}, {}]}
    rows = {"items": {"where": {"field": "QTY", "equals": "0"}, "each": {"sku": "SKU"}}}
    assert mapped(rows, {"SKU": "A", "QTY": "1"}, {"SKU": "B", "QTY": "0"}) == {"items": [{"sku": "B"}]}


def test_further_objects_follow_those_of_a_list() -> None:
    """They are made of members of the record itself; one whose condition is not met is left out."""
    charge = {"object": {"sku": {"const": "SHIPPING"}, "price": {"from": "shipping", "as": "decimal"}}}
    free = {"field": "shipping", "one_of": ["0", "0.00"]}
    forms = {"items": {**LINES["items"], "also": [{"when": {"not": free}, "then": charge}]}}
    made = RecordMap(FORMS.validate_python(forms))
    assert {"shipping"} <= set(made.columns)

    def items(shipping: str | None) -> Any:
        item = {"cart": {"lines": [{"product": {"sku": "A"}}]}, "shipping": shipping}
        return made(json_record(item).with_paths(made.columns))["items"]

    assert items("4.90") == [{"sku": "A"}, {"sku": "SHIPPING", "price": Decimal("4.9")}]
    assert items("0.00") == [{"sku": "A"}]
    assert "items" not in made(json_record({"shipping": "4.90"}).with_paths(made.columns))


def test_one_object_of_a_list_may_be_the_member_itself() -> None:
    """The one that ``where`` means; without one, or without its members, it is left out; several are refused."""
    default = {"field": "default", "equals": "true"}
    forms = {"address": {"of": "cart.lines", "where": default, "each": {"city": "city"}, "single": True}}
    made = RecordMap(FORMS.validate_python(forms))

    def address(*found: Any) -> Any:
        return made(json_record({"cart": {"lines": list(found)}})).get("address")

    assert address({"city": "A"}, {"city": "B", "default": True}) == {"city": "B"}
    assert address({"city": "A"}) is address({"default": True}) is address() is None
    with pytest.raises(RecordError, match="is single, and 2 are meant") as refused:
        address({"city": "A", "default": True}, {"city": "B", "default": True})
    assert refused.value.pointer == "cart.lines"


def test_rows_of_one_record_must_agree_in_what_follows_them() -> None:
    """The further object is made once for the record, so its rows cannot say two things."""
    further = {"object": {"sku": {"const": "SHIPPING"}, "price": {"from": "F", "as": "decimal"}}}
    forms = {"items": {"each": {"sku": "S"}, "also": [further]}}
    alike = mapped(forms, {"S": "a", "F": "1"}, {"S": "b", "F": "1"})
    assert alike == {"items": [{"sku": "a"}, {"sku": "b"}, {"sku": "SHIPPING", "price": 1}]}
    with pytest.raises(RecordError, match="differs between the rows"):
        mapped(forms, {"S": "a", "F": "1"}, {"S": "b", "F": "2"})


def test_the_number_of_objects_of_one_record_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small text with many elements would take gigabytes as a draft: it is a dead letter that names the list."""
    monkeypatch.setattr(declarative, "MAX_ELEMENTS", 2)
    row: dict[str, str | None] = {"S": "a"}
    joined = {"items": {"of": "parts", "each": {"sku": "S"}}}
    rows = {"items": {"each": {"sku": "S"}}}
    made: dict[str, Callable[[int], Any]] = {
        "cart.lines": lambda number: items_of({"cart": {"lines": [{}] * number}}),
        "parts": lambda number: mapped(joined, {"parts": json.dumps([row] * number)})["items"],
        "items": lambda number: mapped(rows, *[row] * number)["items"],
    }
    for place, items in made.items():
        assert len(items(2)) == 2
        with pytest.raises(RecordError, match="has 3 elements, and at most 2 of one record") as refused:
            items(3)
        assert (refused.value.code, refused.value.pointer) == ("bad_value", place)


@pytest.mark.parametrize("item", [{}, {"cart": None}, {"cart": {"lines": None}}])
def test_a_record_without_the_list_lacks_the_member(item: Any) -> None:
    """The rules of the resource decide whether it may."""
    assert items_of(item) is None


@pytest.mark.parametrize("lines", [{"a": 1}, "text", "[]", 5, True])
def test_a_list_that_is_none_is_a_dead_letter(lines: Any) -> None:
    """Another value in place of the list is never taken for an empty one."""
    with pytest.raises(RecordError) as refused:
        items_of({"cart": {"lines": lines}})
    assert (refused.value.code, refused.value.pointer) == ("bad_value", "cart.lines")


def test_a_bad_element_of_a_json_list_is_named() -> None:
    """The place has the number of the element, from 0, and the value is not shown."""
    with pytest.raises(RecordError) as refused:
        items_of({"cart": {"lines": [{"price": 1}, {"price": "Kanari"}]}})
    assert refused.value.pointer == "cart.lines.1.price"
    assert "Kanari" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "microsecond"),
    [
        ("2026-03-01T13:00:00+01:00", 0),
        ("2026-03-01T12:00:00Z", 0),
        ("2026-03-01 12:00:00.5Z", 500_000),
        ("2026-03-01T12:00:00.123456789+0000", 123_456),
        ("2026-03-01T12:00Z", 0),
    ],
)
def test_an_instant_without_a_format_is_iso_8601(text: str, microsecond: int) -> None:
    """As APIs send it: with or without a fraction of a second; the same forms as in a cursor."""
    expected = datetime(2026, 3, 1, 12, tzinfo=UTC, microsecond=microsecond)
    assert convert.instant({"A": text}, "A") == expected
    assert convert.instant({"A": text}, "A") == datetime.fromisoformat(
        OrderBy(column="A", as_="instant").position({"A": text})
    )


@pytest.mark.parametrize("text", ["2026-03-01", "01.03.2026 12:00", "2026-13-01T12:00:00Z", "1772366400"])
def test_other_times_need_a_format(text: str) -> None:
    """The message says that none is declared."""
    with pytest.raises(RecordError, match="is not a time in ISO 8601, and no format is declared"):
        convert.instant({"A": text}, "A")


def of_json(item: Any, forms: dict[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
    """What a map makes of one JSON object, and what it counts."""
    compiled = RecordMap(FORMS.validate_python(forms))
    rows = (
        with_path_columns(RawBatch.json([item], source="page").load(), compiled.columns).drop("_line").rows(named=True)
    )
    made = record(*rows)
    return compiled(made), made.parts


@pytest.mark.parametrize(
    "form",
    [
        "name",
        {"from": "name", "table": {"a": "b"}},
        {"ref": "customer", "key": "name"},
        {"from": "name", "as": "decimal"},
    ],
)
def test_an_object_or_a_list_is_no_value(form: Any) -> None:
    """A name that became an object of languages would be delivered as its JSON text; an empty one is an empty cell."""
    for value, message in (({"de": "Lampe"}, "is an object"), (["Lampe"], "is a list")):
        with pytest.raises(RecordError, match=f"{message}, and should be a value") as refused:
            of_json({"name": value}, {"name": form})
        assert (refused.value.code, refused.value.pointer) == ("bad_value", "name")
        with pytest.raises(RecordError, match=f"{message}, and should be a value"):
            of_json({"lines": [{"name": value}]}, {"items": {"of": "lines", "each": {"sku": form}}})
    assert of_json({"name": []}, {"name": form}) == of_json({"name": {}}, {"name": form}) == ({}, {})


def test_a_text_that_looks_like_json_is_a_text() -> None:
    """Also one that is the JSON of an object, and the column of a list that join reads."""
    item = {"a": "[Sale] Lamp", "b": '{"de": "Lampe"}', "c": ["x", "y"]}
    made, _ = of_json(item, {"a": "a", "b": "b", "c": {"from": "c", "join": ", "}})
    assert made == {"a": "[Sale] Lamp", "b": '{"de": "Lampe"}', "c": "x, y"}


SHIP = {"shippingAddress": {"object": {"line1": "ship.street", "city": "ship.city"}}}


@pytest.mark.parametrize("ship", ["1 Main St", 7, True, [{"street": "1 Main St", "city": "Bonn"}]])
def test_a_path_through_what_is_no_object_is_a_dead_letter(ship: Any) -> None:
    """An address that is a text or a list of one would be lost; also where a condition reads it, or in a list."""
    optional = {"shippingAddress": {"when": {"field": "ship.street", "empty": False}, "then": SHIP["shippingAddress"]}}
    for forms in (SHIP, optional):
        with pytest.raises(RecordError) as refused:
            of_json({"ship": ship}, forms)
        assert refused.value.pointer == "ship.street"
        assert refused.value.message.startswith("cannot be read: ship is ")
        assert refused.value.message.endswith(", and should be an object")
    with pytest.raises(RecordError) as refused:
        of_json({"lines": [{"ship": {}}, {"ship": ship}]}, {"items": {"of": "lines", "each": {"sku": "ship.street"}}})
    assert refused.value.pointer == "lines.1.ship.street"
    with pytest.raises(RecordError, match="cannot be read: ship is"):
        of_json({"ship": ship}, {"items": {"of": "ship.lines", "each": {"sku": "sku"}}})


def test_an_index_of_what_is_no_list_is_a_dead_letter() -> None:
    """Where a list of one is written as its element; an object whose members are numbers stays one."""
    forms = {"number": "tracks.0.number"}
    with pytest.raises(RecordError, match="tracks is an object, and should be a list"):
        of_json({"tracks": {"number": "T1"}}, forms)
    assert of_json({"tracks": {"1": {"number": "T1"}}}, forms) == ({}, {})
    assert of_json({"tracks": [{"number": "T1"}]}, forms) == ({"number": "T1"}, {})


@pytest.mark.parametrize("ship", [None, False, "", [], {}, {"street": None, "city": ""}, {"lines": [None, {}]}])
def test_what_stands_for_nothing_is_null(ship: Any) -> None:
    """PHP writes an empty object as a list, and others as false; what a map does not come to read is no matter."""
    assert of_json({"id": 1, "ship": ship}, SHIP) == ({}, {})
    assert of_json({"id": 1}, SHIP) == ({}, {})
    forms = {"a": {"when": {"field": "kind", "equals": "text"}, "then": "ship", "otherwise": "ship.street"}}
    assert of_json({"kind": "text", "ship": "1 Main St"}, forms) == ({"a": "1 Main St"}, {})


def test_an_object_without_its_members_is_counted() -> None:
    """A vendor that has renamed them would go unnoticed; one without constants and one with a condition are alike."""
    ship = {"line_1": "1 Main St", "town": "Bonn"}
    counted = {"object of ship left out, which has no member that map reads": 1}
    optional = {"shippingAddress": {"when": {"field": "ship.street", "empty": False}, "then": SHIP["shippingAddress"]}}
    assert of_json({"ship": ship}, SHIP) == ({}, counted)
    assert of_json({"ship": ship}, optional) == ({}, counted)
    assert of_json({"lines": [{"ship": ship}]}, {"items": {"of": "lines", "each": SHIP}}) == ({"items": [{}]}, counted)
    whole = {"billingAddress": {"object": {"line1": "street", "city": "city"}}}
    assert of_json({"id": 1, "name": "Ada"}, whole) == ({}, {})  # of a record without an address


def test_elements_that_no_number_reads_are_counted() -> None:
    """Of a list of which a map reads the first ones; empty elements hide nothing."""
    forms = {"line1": "street.0", "line2": "street.1"}
    counted = {"elements of street left out, which map does not read": 1}
    assert of_json({"street": ["a", "b", "c"]}, forms) == ({"line1": "a", "line2": "b"}, counted)
    assert of_json({"street": ["a", "b", "", None]}, forms)[1] == {}
    assert of_json({"street": ["a"]}, forms) == ({"line1": "a"}, {})
    within = {"items": {"of": "stops", "each": forms}}
    assert of_json({"stops": [{"street": ["a", "b", "c"]}]}, within)[1] == counted
    both = {"first": "tracks.0.number", "tracking": {"of": "tracks", "each": {"number": "number"}}}
    assert of_json({"tracks": [{"number": "1"}, {"number": "2"}]}, both)[1] == {}


def test_texts_of_a_list_may_be_one() -> None:
    """Those from the second on, without empty ones; nothing is left out, so nothing is counted."""
    forms = {"line1": "street.0", "line2": {"from": "street", "join": ", ", "start": 1}}
    assert of_json({"street": ["a", "b", "", None, 4]}, forms) == ({"line1": "a", "line2": "b, 4"}, {})
    assert of_json({"street": ["a"]}, forms) == ({"line1": "a"}, {})
    assert of_json({"street": None}, forms) == ({}, {})
    for street, fault in (("a", "is not a list in JSON"), (["a", {"b": 1}], "has an element that is not a text")):
        with pytest.raises(RecordError, match=fault):
            of_json({"street": street}, {"line": {"from": "street", "join": ", "}})
    for wrong in ({"join": ", ", "as": "decimal"}, {"start": 1}):
        with pytest.raises(ValidationError):
            FORMS.validate_python({"line": {"from": "street", **wrong}})


LINE = {"quantity": {"from": "n", "as": "decimal"}, "unitPrice": {"from": "price", "as": "decimal"}}
CHARGE = {"quantity": {"const": 1}, "unitPrice": {"from": "tax", "as": "decimal"}}


def test_a_sum_that_is_not_the_total_is_a_dead_letter_with_both() -> None:
    """Also of further objects, and of those of another list; in JSON and in rows, where all rows have the total."""
    also = [{"object": CHARGE}, {"of": "fees", "each": CHARGE}]
    forms = {"items": {"of": "lines", "each": LINE, "also": also, "total": "sum"}}
    item = {"lines": [{"n": 2, "price": "9.50"}], "tax": "3.61", "fees": [{"tax": 2}, {"tax": "0.50"}], "sum": "25.11"}
    made, counted = of_json(item, forms)
    assert ([str(each["unitPrice"]) for each in made["items"]], counted) == (["9.50", "3.61", "2", "0.50"], {})
    with pytest.raises(RecordError) as refused:
        of_json(item | {"sum": 25}, forms)
    assert (refused.value.pointer, refused.value.message) == (
        "sum",
        "is 25, but quantity times unitPrice of items add up to 25.11",
    )
    for missing in (None, ""):
        with pytest.raises(RecordError, match="is empty, and should be the total of items"):
            of_json(item | {"sum": missing}, forms)
    rows: list[dict[str, str | None]] = [{"n": "1", "price": price, "sum": "5", "tax": ""} for price in ("2", "3")]
    grouped = {"items": {"each": LINE, "total": "sum"}}
    assert len(mapped(grouped, *rows)["items"]) == 2
    with pytest.raises(RecordError, match="differs between the rows"):
        mapped(grouped, rows[0], rows[1] | {"sum": "6"})
    where = {"equals": "sum", "where": {"field": "tax", "empty": False}}
    assert mapped({"items": {"each": LINE, "total": where}}, rows[0])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([{"n": 1, "price": 5}, {"n": 2}], "add up to 5; some have no unitPrice"),
        ([{"n": 1, "price": 5}, {"price": 10}], "add up to 5; some have no quantity"),
        (None, "add up to 0"),
    ],
)
@pytest.mark.parametrize("rounding", [{}, {"rounding": {"productId": {"const": "R"}}, "per_unit": 100}])
def test_what_has_no_amount_is_nothing_of_the_total(lines: Any, message: str, rounding: dict[str, Any]) -> None:
    """A partner may take a line without a price, or a record without lines, which the total was to find."""
    forms = {"items": {"of": "lines", "each": LINE, "total": {"equals": "sum", **rounding}}}
    with pytest.raises(RecordError, match=message):
        of_json({"lines": lines, "sum": 25}, forms)
    assert of_json({"lines": lines, "sum": 5 if lines else 0}, forms)


def test_a_rounding_of_the_total_may_be_an_object_of_its_own() -> None:
    """Of at most half a cent for each unit, by default; it is counted, and a larger difference is refused."""
    total = {"equals": "sum", "rounding": {"productId": {"const": "R"}}}
    forms = {"items": {"of": "lines", "each": LINE, "total": total}}
    lines = [{"n": 3, "price": "3.33"}]
    made, counted = of_json({"lines": lines, "sum": 10}, forms)
    assert made["items"][1] == {"productId": "R", "quantity": 1, "unitPrice": Decimal("0.01")}
    assert counted == {"rounding in a line of its own": 1}
    with pytest.raises(RecordError, match="is 10.01, but quantity times unitPrice of items add up to 9.99"):
        of_json({"lines": lines, "sum": "10.01"}, forms)
    forms["items"]["total"] = total | {"per_unit": 1}
    assert of_json({"lines": lines, "sum": "12.99"}, forms)[0]["items"][1]["unitPrice"] == 3


@pytest.mark.parametrize(
    "each",
    [
        {"of": "lines", "each": {"sku": "sku"}, "total": "sum"},
        {"of": "lines", "each": LINE, "also": [{"each": CHARGE}]},
        {"of": "lines", "each": LINE, "also": [{"of": "fees", "each": CHARGE, "total": "sum"}]},
    ],
)
def test_a_total_needs_amounts_and_further_objects_a_list(each: dict[str, Any]) -> None:
    """What cannot be added up, and rows of the record twice, are refused with the config."""
    with pytest.raises(ValidationError):
        FORMS.validate_python({"items": each})
