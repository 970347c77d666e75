"""JSON files: values keep their types, and what is written reads back equal."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.examples import examples
from tests.unit.files.contents import content_of, is_writable, json_back, record, refusal, text_of

from crossdock.values import exact_json

NUMBERS = st.integers() | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
WHOLE = [{"value": {"from": ""}}]


@settings(max_examples=examples(200), deadline=None)
@given(payloads=st.lists(st.dictionaries(st.text(max_size=3), VALUES, min_size=1, max_size=3), min_size=1, max_size=3))
def test_what_can_be_written_reads_back_equal(tmp_path_factory: Any, payloads: list[dict[str, Any]]) -> None:
    """Whole payloads, with exact numbers."""
    content = content_of(kind="json_lines", rows=WHOLE)
    records = [each for payload in payloads if is_writable(content, each := record(payload))]
    if records:
        data = text_of(content, *records).encode()
        found = [exact_json.loads(line) for line in json_back(tmp_path_factory.mktemp("f"), data, kind="json_lines")]
        assert found == [each.payload for each in records]
        assert [json.loads(line, parse_float=Decimal) for line in data.decode().splitlines()] == found


def test_objects_are_declared_member_by_member() -> None:
    """Values keep their types unless another text is declared; empty ones are left out; rows make lists."""
    content = content_of(kind="json_lines", rows=[{"object": {
        "op": "{operation}", "n": "{n}", "flag": "{flag}", "text": "no {n}", "gone": "{none?}",
        "also": {"from": "none", "default": ""},
        "price": {"from": "n", "as": "decimal", "places": 2}, "exact": {"from": "n", "as": "decimal"},
        "sum": {"sum": "lines.quantity"},
        "day": {"from": "day", "as": "date", "format": "%Y%m%d"}, "yes": {"from": "flag", "as": "boolean",
        "true_text": "Y"},
        "inner": {"object": {"at": "{file_time}", "code": {"from": "n", "table": {"1.5": "x"}}}},
        "left_out": {"when": {"field": "none", "empty": False}, "object": {"a": "{none}"}},
        "skus": {"each": "lines", "value": "{line.sku}"}, "lines": {"each": "lines", "object": {"no": "{line_number}",
        "q": "{line.quantity}"}},
    }}])  # fmt: skip
    payload = {
        "n": Decimal("1.50"),
        "flag": True,
        "none": None,
        "day": "2026-02-03",
        "lines": [{"sku": "A", "quantity": 1}, {"sku": "B", "quantity": 2}],
    }
    assert json.loads(text_of(content, record(payload)), parse_float=Decimal) == {
        "op": "create", "n": Decimal("1.5"), "flag": True, "text": "no 1.5", "price": "1.50", "exact": Decimal("1.5"),
        "sum": 3, "day": "20260203",
        "yes": "Y", "inner": {"at": "2026-11-01T08:05:00-05:00", "code": "x"}, "skus": ["A", "B"],
        "lines": [{"no": 1, "q": 1}, {"no": 2, "q": 2}],
    }  # fmt: skip
    assert refusal(content, record({**payload, "lines": [{"sku": "A"}]}))[0] == "/lines/0/quantity"


def test_what_json_cannot_hold_is_refused() -> None:
    """Floats, lone surrogates, numbers beyond all limits; and a line that is no object."""
    content = content_of(kind="json_lines", rows=WHOLE)
    for value in (0.5, "\ud800", Decimal("NaN"), Decimal("1E+5000"), [[0.5]]):
        assert "cannot be written as JSON" in refusal(content, record({"a": value}))[1]
    assert refusal(content_of(kind="json_lines", rows=[{"value": "{a}"}]), record({"a": 1}))[1] == "is no object"
    assert text_of(content, record({"a": "\u2028\0\ufeff\n"})) == '{"a":"\\u2028\\u0000\\ufeff\\n"}\n'


def test_a_document_has_a_list_and_members_around_it(tmp_path: Path) -> None:
    """At the declared paths; the reader proves the count."""
    content = content_of(
        kind="json",
        records="data.orders",
        header={"meta.count": "{records}", "meta.units": {"sum": "n"}, "data.no": "{file_number}"},
        rows=WHOLE,
    )
    data = text_of(content, record({"n": 1}), record({"n": Decimal("2.5")}))
    assert data == '{"data":{"no":7,"orders":[{"n":1},{"n":2.5}]},"meta":{"count":2,"units":3.5}}\n'
    assert json_back(tmp_path, data.encode(), kind="json", records="data.orders", count="meta.count") == [
        '{"n":1}',
        '{"n":2.5}',
    ]
    assert text_of(content_of(kind="json", rows=WHOLE), record({"n": 1})) == '[{"n":1}]\n'
    for header in (
        {"a": "{external_id}"},
        {"data": "x"},
        {"data.orders.x": "x"},
        {"a.b": "x", "a": "y"},
        {"a..b": "x"},
    ):
        with pytest.raises(ValidationError):
            content_of(kind="json", records="data.orders", header=header, rows=WHOLE)
