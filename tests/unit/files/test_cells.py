"""Cells: what they show of a payload, in which notation, and what they refuse."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError
from tests.unit.files.contents import content_of, lines, record, refusal, text_of

from crossdock.errors import RecordError, RefusedError
from crossdock.writing.files.content_interface import OPERATIONS

D = Decimal
AT = "2026-11-01T05:30:00.250Z"


def shown(cell: Any, payload: dict[str, Any], **record_keys: Any) -> str:
    content = content_of(kind="delimited", column_names=False, delimiter="|", rows=[{"columns": {"a": cell}}])
    return text_of(content, record(payload, **record_keys)).removesuffix("\n")


def error(cell: Any, payload: dict[str, Any]) -> tuple[str, str]:
    return refusal(content_of(kind="delimited", rows=[{"columns": {"a": cell}}]), record(payload))


def test_a_text_is_a_template_of_members() -> None:
    """Members of the payload and of objects in it, JSON pointers, what crossdock knows; numbers exactly."""
    payload = {"no": "0017", "to": {"city": "Köln"}, "n": D("1.50"), "big": D("1E+20"), "ok": True, "operation": "mine"}
    for template, expected in (
        ("{no}/{to.city}", "0017/Köln"),
        ("{n} {big} {ok}", "1.5 100000000000000000000 true"),
        ("{operation} {/operation} {external_id}", "create mine SO-1"),
        ("{record_number}.{row_number}.{row_in_record}", "1.1.1"),
        ("{file_number} {file_name} {file_time}", "7 ORDERS_7.txt 2026-11-01T08:05:00-05:00"),
        ("{to.region?}-{no?}", "-0017"),
        ("no {} hole }", "no {} hole }"),
    ):
        assert shown(template, payload) == expected
    assert error("{to.region}", payload) == ("/to/region", "has no value")
    assert error("{to}", payload) == ("/to", "is a list or an object, and no text")
    assert error("{no}", {"no": ""}) == ("/no", "has no value")


def test_numbers_are_exact_or_refused() -> None:
    """Places, implied decimals, marks, signs and leading zeros change the notation and never the number."""
    for keys, number, expected in (
        ({}, D("12.50"), "12.5"), ({}, 0, "0"), ({}, "0012.50", "12.5"), ({}, D("-0.00"), "0"), ({}, D("-1E-2"),
        "-0.01"),
        ({"places": 2}, 3, "3.00"), ({"places": 2, "decimal_mark": ","}, D("-3.5"), "-3,50"), ({"places": 0}, D("3.0"),
        "3"),
        ({"decimals": 2}, D("12.5"), "1250"), ({"decimals": 2}, D("0.05"), "5"), ({"decimals": 0}, 7, "7"),
        ({"decimals": 2, "digits": 6}, D("-0.05"), "-000005"), ({"decimals": -3}, 12000, "12"), ({"decimals": -3}, 0,
        "0"),
        ({"digits": 5}, D("12.5"), "00012.5"), ({"sign": "trailing"}, D("-12.5"), "12.5-"), ({"sign": "trailing"}, 1,
        "1"),
        ({"sign": "parentheses"}, -3, "(3)"), ({"sign": "parentheses"}, 3, "3"), ({"decimals": 2, "sign": "overpunch"},
        D("1.23"), "12C"),
        ({"decimals": 2, "sign": "overpunch"}, D("-1.20"), "12}"), ({"decimals": 0, "sign": "leading_overpunch"}, -123,
        "J23"),
        ({}, D("123456789012345678901234567890.123456789012345678901234567890"),
        "123456789012345678901234567890.12345678901234567890123456789"),
    ):  # fmt: skip
        assert shown({"from": "n", "as": "decimal", **keys}, {"n": number}) == expected
    wrong: Sequence[tuple[dict[str, Any], Any, str]] = (
        ({"places": 2}, D("1.005"), "has more than 2 digits after the decimal mark, and is never rounded"),
        ({"decimals": 0}, D("0.5"), "has more than 0 digits after the decimal mark, and is never rounded"),
        ({"decimals": -3}, 1234, "does not end with 3 zeros, which are not written"),
        ({"sign": "none"}, -1, "is negative, and no sign is declared"),
        ({}, "1,5", "is not a number"), ({}, True, "is not a number"), ({}, D("NaN"), "is not a number"),
        ({}, 0.5, "is not a number"), ({}, None, "has no value"), ({}, [], "is not a number"),
    )  # fmt: skip
    for keys, value, message in wrong:
        assert error({"from": "n", "as": "decimal", **keys}, {"n": value}) == ("/n", message)
    assert shown({"from": "n", "as": "integer"}, {"n": D("5.000")}) == "5"
    assert error({"from": "n", "as": "integer"}, {"n": D("5.5")}) == ("/n", "is not a whole number")
    assert "exponent" in error("{n}", {"n": D("1E+5000")})[1]
    assert "exponent" in error({"from": "n", "as": "decimal"}, {"n": D("1E+5000")})[1]


def test_times_are_those_of_the_declared_zone() -> None:
    """Dates and instants in formats that are the same on every machine."""
    for keys, value, expected in (
        ({"as": "date"}, "2026-02-03", "2026-02-03"), ({"as": "date", "format": "%Y%m%d"}, "0987-02-03", "09870203"),
        ({"as": "date", "format": "%d.%m.%y %j %%"}, "2026-02-03", "03.02.26 034 %"), ({"as": "date",
        "format": "cyymmdd"}, "2026-02-03", "1260203"),
        ({"as": "date", "format": "cyyddd"}, "1999-12-31", "099365"), ({"as": "instant"}, AT,
        "2026-11-01T05:30:00.250000Z"),
        ({"as": "instant", "format": "%Y-%m-%d %H:%M:%S.%f"}, AT, "2026-11-01 05:30:00.250000"),
        ({"as": "instant", "format": "%H%M %z", "timezone": "America/New_York"}, AT, "0130 -0400"),
        ({"as": "instant", "format": "%H%M %z", "timezone": "America/New_York"}, "2026-11-01T06:30:00Z", "0130 -0500"),
        ({"as": "instant", "format": "unix"}, "1969-12-31T23:59:59.5Z", "-1"),
    ):  # fmt: skip
        assert shown({"from": "at", **keys}, {"at": value}) == expected
    assert shown({"from": "file_time", "as": "instant", "format": "%y%m%d%H%M"}, {}) == "2611010805"
    assert shown({"from": "file_time", "as": "date"}, {}) == "2026-11-01"
    for keys, value, message in (
        ({"as": "date"}, AT, "is not a date in ISO 8601, and no format is declared"),
        ({"as": "instant"}, "2026-11-01T05:30:00", "has no offset, and no timezone is declared"),
        ({"as": "date", "format": "cyymmdd"}, "1899-01-01", "is outside the years 1900 to 2899"),
        ({"as": "instant", "timezone": "America/New_York"}, "0001-01-01T00:00:00Z", "is outside the years 1 to 9999"),
        ({"as": "date"}, "20261101", "is not a date in ISO 8601, and no format is declared"),
    ):  # fmt: skip
        assert error({"from": "at", **keys}, {"at": value}) == ("/at", message)


def test_tables_defaults_and_lengths() -> None:
    """A code that no table has, a missing value and a long text are refused, unless the config says what to write."""
    table = {"from": "x", "table": {"a": "1", "true": "Y"}}
    assert [shown(table, {"x": each}) for each in ("a", True)] == ["1", "Y"]
    assert error(table, {"x": "b"}) == ("/x", "is not in the table")
    assert shown({**table, "otherwise": "0"}, {"x": "b"}) == "0"
    assert shown({"from": "x", "default": "none"}, {}) == shown({"from": "x", "default": "none"}, {"x": None}) == "none"
    assert shown({"from": "x", "as": "boolean", "true_text": "J", "false_text": "N"}, {"x": False}) == "N"
    assert error({"from": "x", "as": "boolean"}, {"x": "true"}) == ("/x", "is not true or false")
    assert error({"from": "x", "max_length": 3}, {"x": "abcd"}) == ("/x", "has 4 characters, and at most 3 are allowed")
    assert shown({"from": "x", "max_length": 3, "cut": True}, {"x": "abcd"}) == "abc"
    assert error({"template": "SO{x}", "max_length": 3}, {"x": "ab"})[0] == "/x"


def test_sums_and_counts() -> None:
    """Of one record in its rows, of all records in header and trailer, exactly, in every element of the lists."""
    content = content_of(
        kind="delimited",
        column_names=False,
        header=[{"columns": {"a": "H{records}"}}],
        rows=[{"columns": {"a": {"sum": "lines.quantity", "places": 2}, "b": {"count": "lines"}}}],
        trailer=[
            {
                "columns": {
                    "a": "T{rows}",
                    "b": "{lines}",
                    "c": {"sum": "lines.quantity"},
                    "d": {"count": "lines", "digits": 3},
                }
            }
        ],
    )
    many = [record(lines(D("0.1"), D("0.2"))), record(lines(D("1E+20"), -1))]
    assert text_of(content, *many) == "H2\n0.30,2\n99999999999999999999.00,2\nT2,4,99999999999999999999.3,004\n"
    assert refusal(content, record(lines(1, None))) == ("/lines/1/quantity", "has no value")
    assert refusal(content, record({})) == ("/lines", "has no value")
    assert refusal(content, record(lines(D("1E+300"), 1))) == ("lines.quantity", "has a sum of more than 60 digits")


def test_what_only_the_whole_file_shows_refuses_the_file() -> None:
    """A total that does not fit is found when the file is made, and no file is made."""
    content = content_of(
        kind="delimited",
        rows=[{"columns": {"a": "{x}"}}],
        trailer=[{"columns": {"a": {"template": "{rows}", "max_length": 1}}}],
    )
    text_of(content, *[record({"x": "1"})] * 9)
    with pytest.raises(RefusedError, match=r"ORDERS_7.txt: rows: has 2 characters"):
        text_of(content, *[record({"x": "1"})] * 10)


def test_operations_are_expressed_only_where_the_rows_tell_them() -> None:
    """By a cell that shows the operation, or by rows of their own; others are refused as changed after delivery."""
    plain = {"columns": {"no": "{external_id}"}}
    told = {"columns": {"no": "{external_id}", "op": {"from": "operation", "table": {"create": "N", "delete": "D"}}}}
    silent = {"columns": {"no": "{external_id}", "op": "x"}}
    for keys, expected in (
        ({"rows": [plain]}, {"create"}),
        ({"rows": [told]}, {"create", "delete"}),
        ({"rows": [{"columns": {"no": "{external_id} {operation}"}}]}, {"create", "update", "delete"}),
        ({"rows": [silent], "update": [told]}, {"create"}),
        ({"rows": [silent], "delete": [told]}, {"create", "delete"}),
        ({"rows": [silent], "update": [{"columns": {"no": "C{external_id}", "op": "c"}}]}, {"create", "update"}),
        ({"rows": [told], "update": [silent]}, {"create", "update", "delete"}),
        ({"rows": [plain], "update": [plain]}, {"create", "update"}),
    ):
        content = content_of(kind="delimited", **keys)
        assert content.expressible_operations == expected
        for operation in content.expressible_operations:
            content.check_record(record({}, operation))
        for other in {*OPERATIONS} - expected:
            with pytest.raises(RecordError, match=f"cannot express a {other}") as raised:
                content.check_record(record({}, other))
            assert raised.value.code == "changed_after_delivery"


def test_rows_of_lists_and_conditions() -> None:
    """Groups are nested, elements are named, empty lists are refused, and so is a record without a row."""
    content = content_of(
        kind="delimited",
        column_names=False,
        rows=[
            {"columns": {"a": "H", "b": "{external_id}"}},
            {
                "each": "lines",
                "rows": [
                    {"columns": {"a": "L{line_number}", "b": "{line.sku}"}},
                    {
                        "when": {"field": "line.serials", "empty": False},
                        "rows": [{"each": "line.serials", "named": "serial",
                        "columns": {"a": "S{line_number}.{serial_number}.{row_in_record}", "b": "{serial}"}}],
                    },
                ],
            },
        ],
    )  # fmt: skip
    two = {"lines": [{"sku": "A", "serials": ["x", "y"]}, {"sku": "B", "serials": []}]}
    assert text_of(content, record(two)) == "H,SO-1\nL1,A\nS1.1.3,x\nS1.2.4,y\nL2,B\n"
    assert refusal(content, record({"lines": []})) == ("/lines", "has no elements")
    assert refusal(content, record({"lines": {}})) == ("/lines", "is an object, and should be a list")
    assert refusal(content, record({})) == ("/lines", "is missing, and should be a list")
    assert refusal(content, record({"lines": [{"sku": "A"}, {}]})) == ("/lines/1/sku", "has no value")
    picked = content_of(
        kind="delimited",
        rows=[{"each": "lines", "when": {"field": "line.kind", "equals": "x"}, "columns": {"a": "{line.sku}"}}],
    )
    assert text_of(picked, record({"lines": [{"sku": "A", "kind": "x"}, {"sku": "B"}]})) == "a\nA\n"
    assert (
        refusal(picked, record({"lines": [{"sku": "B"}]}))[1]
        == "no row is written of this record, so the file would not name it"
    )


def test_declarations_that_contradict_themselves_are_refused() -> None:
    """When the config is read, with the key."""
    row = {"columns": {"a": "x"}}
    wrong: Sequence[dict[str, Any]] = (
        {"rows": []}, {"rows": [{}]}, {"rows": [{**row, "rows": [row]}]}, {"rows": [row],
        "trailer": [{"columns": {"a": "{external_id}"}}]},
        {"rows": [row], "header": [{"each": "lines", **row}]}, {"rows": [{"named": "x", **row}]},
        {"rows": [{"each": "l", "named": "record", **row}]},
        {"rows": [row, {"columns": {"b": "x"}}]}, {"rows": [row], "delimiter": 'x"'}, {"rows": [row],
        "encoding": "utf-9"},
        *({"rows": [{"columns": {"a": cell}}]} for cell in (
            {}, 1, {"from": "a", "template": "b"}, {"from": "a", "places": 2}, {"from": "a", "format": "%Y"},
            {"from": "a", "as": "date", "format": "unix"},
            {"from": "a", "as": "date", "format": "%B"}, {"from": "a", "as": "date", "format": "Y"}, {"from": "a",
            "as": "date", "timezone": "UTC"},
            {"from": "a", "as": "decimal", "table": {"a": "b"}}, {"from": "a", "otherwise": "b"}, {"template": "a",
            "default": "b"}, {"template": "a", "as": "date"},
            {"from": "a", "cut": True}, {"sum": "a", "as": "date"}, {"count": "a", "as": "decimal"}, {"from": "a",
            "as": "decimal", "decimals": 2, "places": 2},
            {"from": "a", "as": "decimal", "max_length": 2, "cut": True},
        )),
    )  # fmt: skip
    for keys in wrong:
        with pytest.raises(ValidationError):
            content_of(kind="delimited", **keys)
