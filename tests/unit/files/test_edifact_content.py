"""EDIFACT: envelopes with the right counts and references, and texts whose separators are released."""

from __future__ import annotations

import copy
import re
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.examples import examples
from tests.unit.files.contents import FACTS, content_of, is_writable, lines, read_back, record, refusal, text_of

from crossdock.writing.files.cell_declarations import OWN_NAMES, NamedValues
from crossdock.writing.files.edi_content import ready_layouts_by_name
from crossdock.writing.files.edifact_content import EdifactContent

PARTNER: dict[str, Any] = {
    "kind": "edifact", "sender": "4000001000005", "sender_qualifier": "14", "receiver": "4000002000004",
    "receiver_qualifier": "14",
}  # fmt: skip
ORDER: dict[str, Any] = {
    "deliver_on": "2026-11-05", "buyer": "4000001000005", "currency": "EUR",
    "ship_to": {"name": "Müller + Söhne: 5?", "address": "O'Hara 1", "city": "Köln", "postal_code": "01234",
    "country": "DE"},
    "lines": [{"sku": "A+1", "gtin": "4000862141404", "quantity": 2, "price": Decimal("1.50")}, {"sku": "B",
    "quantity": Decimal("2.5"), "unit": "KGM"}],
}  # fmt: skip


def test_an_order_is_the_one_that_a_partner_expects(tmp_path: Path) -> None:
    """UNA and UNB, one message for each record, counts and references in each trailer; our reader finds each value."""
    content = content_of(
        **PARTNER,
        layout="edifact/ORDERS",
        line_end="lf",
        acknowledgment=True,
        agreement="A?1",
        version="D:96A:UN:EAN008",
    )
    other = record({"lines": [{"sku": "C", "quantity": 1}]}, "delete", "SO-2")
    text = text_of(content, record(ORDER), other, encoding="latin-1")
    assert text.splitlines() == [
        "UNA:+.? '", "UNB+UNOC:3+4000001000005:14+4000002000004:14+261101:0805+7++++1+A??1'",
        "UNH+1+ORDERS:D:96A:UN:EAN008'", "BGM+220+SO-1+9'", "DTM+137:20261101:102'", "DTM+2:20261105:102'",
        "NAD+BY+4000001000005::9'", "NAD+DP+++Müller ?+ Söhne?: 5??+O?'Hara 1+Köln++01234+DE'", "CUX+2:EUR:9'",
        "LIN+1++4000862141404:SRV'", "PIA+1+A?+1:SA'", "QTY+21:2'", "PRI+AAA:1.5'", "LIN+2'", "PIA+1+B:SA'",
        "QTY+21:2.5:KGM'",
        "UNS+S'", "CNT+2:2'", "UNT+17+1'",
        "UNH+2+ORDERS:D:96A:UN:EAN008'", "BGM+220+SO-2+1'", "DTM+137:20261101:102'", "LIN+1'", "PIA+1+C:SA'",
        "QTY+21:1'", "UNS+S'",
        "CNT+2:1'", "UNT+9+2'", "UNZ+2+7'",
    ]  # fmt: skip
    assert isinstance(content, EdifactContent)
    assert content.control_numbers_of_records([record(ORDER), other]) == ["1", "2"]
    rows = read_back(tmp_path, text.encode("latin-1"), kind="edifact", layout="edifact/ORDERS")
    picked = [
        [row[key] for key in ("interchange", "number", "line", "gtin", "sku", "quantity", "price", "currency")]
        for row in rows
    ]
    assert picked == [
        ["7", "SO-1", "1", "4000862141404", "A+1", "2", "1.5", "EUR"], ["7", "SO-1", "2", "", "B", "2.5", "", "EUR"],
        ["7", "SO-2", "1", "", "C", "1", "", ""],
    ]  # fmt: skip


def test_every_ready_declaration_is_read_by_the_layout_of_its_name(tmp_path: Path) -> None:
    """What it writes of one payload, the ready layout of the reader finds."""
    payload = {
        "ship_on": "2026-11-02", "expected_on": "2026-11-05", "shipment": "SH1", "tracking": "1Z",
        "purchase_order": "PO9", "carrier": "UPSN",
        "supplier": "4000001000005", "ship_from": {"name": "Plant"}, "ship_to": {"name": "DC", "id": "4000002000004",
        "id_qualifier": "UL"}, "lines": [{"sku": "A", "quantity": Decimal("2.50"), "lot": "L7"}],
    }  # fmt: skip
    for layout, expected in (
        ("x12/940", {"order": "SO-1", "change": "N", "sku": "A", "quantity": "2.5", "lot": "L7", "carrier": "UPSN"}),
        ("x12/943", {"order": "SO-1", "reporting": "J", "ship_date": "2026-11-02", "shipment": "SH1", "sku": "A",
        "quantity": "2.5", "lot": "L7"}),
        ("edifact/ORDERS", {"number": "SO-1", "date": "2026-11-01", "ship_to": "4000002000004", "sku": "A",
        "quantity": "2.5"}),
        ("edifact/DESADV", {"number": "SO-1", "ship_date": "2026-11-02", "tracking": "1Z", "sku": "A",
        "shipped": "2.5", "lot": "L7"}),
    ):  # fmt: skip
        kind = layout.partition("/")[0]
        content = content_of(kind=kind, layout=layout, sender="SHOP", receiver="WMS")
        assert content.expressible_operations >= {"create", "update"}
        content.check_record(record(payload))
        (row,) = read_back(tmp_path, content.file_bytes([record(payload)], FACTS), kind=kind, layout=layout)
        assert {key: row[key] for key in expected} == expected


READY: dict[str, tuple[dict[str, Any], set[str]]] = {
    "x12/940": (
        {"ship_to": {"name": "DC"}, **lines(1)},
        {"ship_to.address_2", "ship_to.id", "ship_to.id_qualifier"},
    ),
    "x12/943": (
        {"ship_on": "2026-11-02", "ship_from": {"name": "Plant"}, **lines(1)},
        {"ship_from.id", "ship_from.id_qualifier", "ship_to.id", "ship_to.id_qualifier"},
    ),
    "edifact/ORDERS": (lines(1), set()),
    "edifact/DESADV": (lines(1), set()),
}
"""The least payload of each ready declaration, and the optional members that it refuses alone."""


@pytest.mark.parametrize("layout", sorted(ready_layouts_by_name()))
def test_a_ready_declaration_writes_or_refuses_each_member_that_is_given(layout: str) -> None:
    """Whichever one or two optional members a record has beside the least payload, no value is missing in the file."""
    kind = layout.partition("/")[0]
    content: Any = content_of(kind=kind, layout=layout, sender="SHOP", receiver="WMS")
    least, refused_alone = READY[layout]
    cells = [cell for row in content.rows for cell in row.cells()]
    dates = {cell.from_ for cell in cells if cell.as_ == "date"}
    shown = {name for cell in cells for name in cell.shown_member_names()}
    optional = {name for name in shown - OWN_NAMES - {"line_number"} if not has_member(least, name)}
    refused = set()
    for names in [*combinations(sorted(optional), 1), *combinations(sorted(optional), 2)]:
        payload, expected = copy.deepcopy(least), set()
        for number, name in enumerate(names, 10):
            value = f"2031-12-{number}" if name in dates else f"77{number}"
            set_member(payload, name, value)
            expected.add(value.replace("-", ""))
        if not is_writable(content, record(payload)):
            refused.add(names)
            continue
        assert expected <= set(re.split(r"[^0-9A-Z]", text_of(content, record(payload)))), names
    assert {names[0] for names in refused if len(names) == 1} == refused_alone
    assert all(refused_alone & set(names) for names in refused)


def has_member(payload: dict[str, Any], name: str) -> bool:
    """Whether *payload* has the member *name*, which begins with ``line`` for those of its line."""
    return NamedValues([payload], {}, {"line": (payload["lines"][0], "")}).has_value(name)


def set_member(payload: dict[str, Any], name: str, value: str) -> None:
    *parents, member = name.split(".")
    inner = payload["lines"][0] if parents == ["line"] else payload
    for parent in parents if parents != ["line"] else []:
        inner = inner.setdefault(parent, {})
    inner[member] = value


@settings(max_examples=examples(200), deadline=None)
@given(
    texts=st.lists(st.text(max_size=12), min_size=1, max_size=3),
    syntax=st.sampled_from(["UNOA", "UNOB", "UNOC", "UNOY"]),
    syntax_version=st.sampled_from(["3", "4"]),
    separators=st.sampled_from([tuple(":+?'"), tuple("|^!~"), tuple("\x1f\x1d\x1c\x1e")]),
)
def test_what_can_be_written_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
    syntax: str,
    syntax_version: str,
    separators: tuple[str, str, str, str],
) -> None:
    """Of any texts, the writable ones come back unchanged but for spaces at their ends."""
    component, element, release, segment = separators
    content = content_of(
        **PARTNER, message="ORDERS", syntax=syntax, syntax_version=syntax_version, component=component,
        element=element, release=release,
        segment=segment, rows=[["BGM", "220"], {"each": "notes", "rows": [["FTX", "AAI", "", "", ["x", {"from": "line",
        "default": ""}]]]}],
    )  # fmt: skip
    each = record({"notes": [*texts, "END"]})
    if not is_writable(content, each):
        return
    found = read_back(
        tmp_path_factory.mktemp("f"), content.file_bytes([each], FACTS), kind="edifact", message="ORDERS",
        loops={"note": {"starts": "FTX"}}, rows="note", columns={"note": "FTX.4.2"},
    )  # fmt: skip
    assert [row["note"] for row in found] == [text.rstrip(" ") for text in [*texts, "END"]]


def test_what_edifact_cannot_hold_is_refused() -> None:
    """Characters that the level of the syntax has not; separators are released."""
    rows = [["FTX", "AAI", "{x}", {"from": "n", "as": "decimal"}]]
    for keys, text, message in (
        ({"syntax": "UNOA"}, "Ab", "has the character U+0062, which UNOA has not"), ({"syntax": "UNOB"}, "é",
        "has the character U+00E9, which UNOB has not"),
        ({}, "Ł", "has the character U+0141, which iso8859-1 has not"), ({}, "a\nb",
        "has the character U+000A, a control character or line break"),
        ({}, "\0", "has the character U+0000, a control character or line break"),
    ):  # fmt: skip
        assert refusal(content_of(**PARTNER, message="ORDERS", rows=rows, **keys), record({"x": text, "n": 1})) == (
            "/x",
            message,
        )
    released = content_of(
        **PARTNER, message="ORDERS", rows=rows, syntax_version="4", decimal_mark=",", test=True, application="APP"
    )
    text = text_of(released, record({"x": "a*b'" + "x" * 10_000, "n": Decimal("-1.5")}))
    assert "'FTX+AAI+a?*b?'xxx" in text
    assert text.startswith("UNA:+,?*'UNB+UNOC:4+4000001000005:14+4000002000004:14+20261101:0805+7++APP++++1'")
    assert "x+-1,5'UNT" in text
    assert text_of(
        content_of(**PARTNER, message="ORDERS", una=False, rows=rows), record({"x": "a", "n": 1})
    ).startswith("UNB+UNOC:3+")


def test_declarations_that_contradict_themselves_are_refused() -> None:
    """When the config is read."""
    for keys in (
        {"una": False, "element": "^"}, {"una": False, "decimal_mark": ","}, {"element": ":"}, {"syntax": "UNOX"},
        {"sender": "Ł"}, {"version": "96A"},
        {"syntax": "UNOA", "agreement": "a"}, {"message": "orders"}, {"layout": "x12/940"}, {"syntax_version": "4",
        "element": "*"},
    ):  # fmt: skip
        with pytest.raises(ValidationError):
            content_of(**{**PARTNER, "message": "ORDERS", "rows": [["BGM", "220"]], **keys})
