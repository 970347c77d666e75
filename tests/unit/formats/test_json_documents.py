"""JSON documents: the objects of one list, or the file is refused with its place."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.examples import examples
from tests.unit.formats.layouts import Content, layout

from crossdock.errors import RefusedError
from crossdock.reading.formats import json_files
from crossdock.reading.formats.file_formats import get_reader_of_layout, may_be_truncated, read_rows, read_rows_at_lines
from crossdock.values import exact_json
from crossdock.values.json_paths import pointer_and_fault_of_invalid_value
from crossdock.values.raw_rows_and_records import JSON, LINE

TWO = (
    '{"meta": {"total": 2, "of": [1, {"a": "]"}]},\n "data": {"rate": -1.50E1, "items": [\n'
    '  {"id": "0017", "price": 1.50, "big": 9007199254740993, "in": {"a": [1, "}{"]}},\n  {"id": "ü\\n"}\n ],'
    ' "ok": true}, "last": null}\n'
)
FORM: dict[str, Any] = {"kind": "json", "records": "data.items", "count": "meta.total"}
OBJECTS = [
    (1, '{"big":9007199254740993,"id":"0017","in":{"a":[1,"}{"]},"price":1.5}'),
    (2, '{"id":"ü\\n"}'),
]


def rows(data: bytes | str, form: dict[str, Any], batch_rows: int = 100_000) -> list[tuple[int, str]]:
    """The number and the text of each record, after a frame for each batch."""
    content = Content(data.encode() if isinstance(data, str) else data)
    frames = list(read_rows(content, layout(**form), name="f", batch_rows=batch_rows))
    assert all(frame.columns == [JSON, LINE] and frame.height <= batch_rows for frame in frames)
    return [(line, text) for frame in frames for text, line in frame.iter_rows()]


@pytest.mark.parametrize("written", [TWO, TWO.strip(), f"\ufeff{TWO}\n\n", TWO.replace("\n", "\r\n"), f" {TWO}"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("chunk", [1 << 20, 5, 1])
def test_objects_are_read_exactly(monkeypatch: pytest.MonkeyPatch, written: str, chunk: int, *, packed: bool) -> None:
    """With exact numbers, from any pieces of the file."""
    monkeypatch.setattr(json_files, "_WINDOW_BYTES", chunk)
    data = gzip.compress(written.encode()) if packed else written.encode()
    assert rows(data, FORM) == rows(data, FORM, 1) == OBJECTS
    (found,) = read_rows_at_lines(Content(data), layout(**FORM), [2], name="f")
    assert found.rows() == [(OBJECTS[1][1], 2)]
    assert not may_be_truncated(Content(data), layout(**FORM))
    assert get_reader_of_layout(layout(**FORM)).describe_cell_places(layout(**FORM), ["id"], 2) == {"id": "record 2"}


@pytest.mark.parametrize(
    ("written", "records"), [("[]", ""), (' [ {"a": 1} ] ', ""), ('{"a.b": [{"a": 1}]}', "/a.b"), ('{"a": []}', "a")]
)
def test_the_list_may_be_the_document_or_empty(written: str, records: str) -> None:
    """A name with a dot in it is a JSON pointer."""
    assert rows(written, {"kind": "json", "records": records}) == ([(1, '{"a":1}')] if "1" in written else [])


def exactly(text: str) -> Any:
    """What the json module reads, with numbers as they are written."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.decimals(allow_nan=False, allow_infinity=False, places=3) | st.text()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
ITEMS = st.lists(st.dictionaries(st.text(), VALUES, max_size=4), max_size=5)


@given(
    records=ITEMS, beside=VALUES, indent=st.sampled_from([None, 1]), ascii_only=st.booleans(), chunk=st.integers(1, 64)
)
@settings(max_examples=examples(500), deadline=None)
def test_what_another_writer_writes_is_read(
    records: list[dict[str, Any]], beside: Any, indent: int | None, chunk: int, *, ascii_only: bool
) -> None:
    """The json module's document comes back, in pieces of any size, whatever stands beside the list."""
    plain = json.loads(exact_json.dumps({"beside": beside, "r": {"items": records, "x": beside}, "z": beside}))
    text = json.dumps(plain, indent=indent, ensure_ascii=ascii_only)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_files, "_WINDOW_BYTES", chunk)
        found = rows(text, {"kind": "json", "records": "r.items"})
    assert [exactly(each) for _, each in found] == exactly(text)["r"]["items"]


@pytest.mark.parametrize("chunk", [1 << 20, 5, 1])
def test_half_of_a_character_concerns_its_record_alone(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    """The others are read, and a member beside the list may have it; in a name around the list, the file is refused."""
    monkeypatch.setattr(json_files, "_WINDOW_BYTES", chunk)
    written = r'{"by": "x\udc00", "data": {"items": [{"a": 1}, {"a": [1, "x\ud83d"]}, {"a": "\ud83d\ude00"}]}}'
    form = {"kind": "json", "records": "data.items"}
    one, cut, other = (text for _, text in rows(written, form))
    assert (one, other) == ('{"a":1}', '{"a":"\U0001f600"}')
    assert (pointer_and_fault_of_invalid_value(cut) or "")[0] == "/a/1"
    with pytest.raises(RefusedError, match="the name of a member has a lone surrogate"):
        rows(written.replace("by", r"\ud83d"), form)


@pytest.mark.parametrize("wrong", ['{"a": 1, "a": 2}', '{"a": NaN}', '{"a": 1e9999}', '{"a": [Infinity, "\\ud83d"]}'])
@pytest.mark.parametrize("chunk", [1 << 20, 5, 1])
def test_a_value_that_is_no_exact_json_concerns_its_record_alone(
    monkeypatch: pytest.MonkeyPatch, chunk: int, wrong: str
) -> None:
    """Beside the list, too, unless it is the list or the count."""
    monkeypatch.setattr(json_files, "CHUNK_BYTES", chunk)
    written = '{"by": {"x": NaN}, "data": {"items": [{"a": 1}, ' + wrong + ', {"a": "one\ntwo"}]}}'
    one, cut, other = (text for _, text in rows(written, {"kind": "json", "records": "data.items"}))
    assert (one, other) == ('{"a":1}', r'{"a":"one\ntwo"}')
    assert pointer_and_fault_of_invalid_value(cut) is not None
    with pytest.raises(RefusedError, match="NaN is not JSON"):
        rows('{"count": NaN, "items": [{"a": 1}]}', {"kind": "json", "records": "items", "count": "count"})


def test_a_file_that_was_cut_anywhere_is_refused() -> None:
    """No part of a document but the whole is one."""
    data = TWO.strip().encode()
    for length in range(len(data)):
        with pytest.raises(RefusedError) as refused:
            rows(data[:length], FORM)
        assert refused.value.hint
        assert "eclare" not in refused.value.hint


@pytest.mark.parametrize(
    ("data", "where", "says"),
    [
        ("", "f", "the file is empty"),
        ('[{"a": 1},\n', "f:2:1", "the file ends before its document does"),
        ('[{"a": "x', "f:1:10", "the file ends before its document does"),
        ('[{"a": 1},\n {"a" 2}]', "f:2:7", "is not JSON"),
        ('[{"a": 1}\n {"a": 2}]', "f:2:2", "expecting ,"),
        ('[{"a": 1},]', "f:1:11", "is not JSON"),
        ('[{"a": 1, "\\ud800": 2}]', "f:1:2", "lone surrogate"),
        ('[{"a": "\0"}]', "f:1:9", "is not JSON"),
        ("[" + '{"a":' * 100 + "1" + "}" * 100 + "]", "f:1:2", "64 levels"),
        ("[" * 100_000, "f:1", "ends before|levels"),
        ('[{"a": [' + "1," * 2_000_000 + "1]}]", "f:1:2", "more than 1,000,000 values"),
        ('[{"a": "' + "x" * (40 << 20) + '"}]', "f:1:2", "a value of more than 16,777,216 characters"),
        ('[{"a": 1},\n[1]]', "f:2:1", "record 2 is not an object"),
        ('[{"a": 1}, null]', "f:1:12", "record 2 is not an object"),
        ('[{"a": 1}]\n[]', "f:2:1", "text follows the end"),
        ('{"a": 1}\n{"a": 2}\n', "f:1:1", "the document is not a list"),
        (b'[{"a": 1},\n{"a": "K\xf6ln"}]', "f:2", "byte 0xF6 is not UTF-8"),
        ('[{"a": 1}]'.encode("utf-16"), "f", "in utf-16-le"),
        ('\ufeff\ufeff[{"a": 1}]', "f:1", "two byte order marks"),
        ("<html><body>log in</body></html>", "f", "HTML"),
        ('<?xml version="1.0"?><a/>', "f", "XML"),
        ("SKU;NAME\n1;a\n", "f:1:1", "the document is not a list"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_damaged_file_is_refused_with_its_place(data: bytes | str, where: str, says: str) -> None:
    """Nothing of a record is quoted."""
    with pytest.raises(RefusedError, match=says) as refused:
        rows(data, {"kind": "json"})
    assert (refused.value.where or "").startswith(where)
    assert refused.value.hint
    assert "log in" not in str(refused.value)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ('{"meta": {"total": 3}, "data": {"items": [{}]}}', "meta.total states 3 records, and the file has 1"),
        ('{"meta": {"total": "1"}, "data": {"items": [{}]}}', "states no number of records"),
        ('{"data": {"items": [{}]}}', "states no number of records"),
        ('{"meta": {"total": true}, "data": {"items": [{}]}}', "states no number of records"),
        ('{"meta": {"total": 0}, "data": {}}', "has no member data.items"),
        ("{}", "has no member data"),
        ('{"data": {"items": null}}', "data.items is not a list"),
        ('{"data": []}', "data is not an object"),
        ('{"data": {"items": []}, "data": {"items": []}}', "repeats a member name"),
        ('{"data": {"items": []}, 1: 2}', "expecting the name of a member"),
        ('{"data": {"items": []} "a": 2}', "expecting ,"),
        ('{"data" {"items": []}}', "expecting :"),
        ('{"x": nul, "data": {"items": []}}', "is not JSON"),
        ("{" + ", ".join(f'"m{n}": 1' for n in range(20_000)) + "}", "more than 10,000 members"),
    ],
)
def test_what_is_around_the_list_is_checked(written: str, says: str) -> None:
    """It is read to its end, and the stated number of records is compared."""
    with pytest.raises(RefusedError, match=says) as refused:
        rows(written, FORM)
    assert refused.value.hint
    assert layout(**FORM).states_rows
    assert not layout(kind="json").states_rows


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"records": "a..b"}, "dotted path"),
        ({"records": "/a~2"}, "JSON pointer"),
        ({"records": "a.b", "count": "a.b.c"}, "must be outside of the records"),
        ({"count": "total"}, "must be outside of the records"),
    ],
)
def test_a_layout_that_cannot_be_meant_is_refused(form: dict[str, Any], says: str) -> None:
    """A document that is the list states no number of records."""
    with pytest.raises(ValidationError, match=says):
        layout(kind="json", **form)
