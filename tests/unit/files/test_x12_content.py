"""X12: envelopes with the right counts and control numbers, and elements that cannot be misread."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from pydantic import ValidationError
from tests.examples import examples
from tests.unit.files.contents import FACTS, content_of, is_writable, lines, read_back, record, refusal, text_of

from crossdock.errors import RefusedError
from crossdock.writing.files.x12_content import X12Content

PARTNER: dict[str, Any] = {"kind": "x12", "sender": "SHOP", "receiver": "WAREHOUSE"}
ORDER = {
    "purchase_order": "PO 9",
    "ship_to": {
        "name": "Ann Smith",
        "address": "1 Main St",
        "city": "Reno",
        "region": "NV",
        "postal_code": "01234",
        "country": "US",
    },
    "ship_on": "2026-11-02",
    "carrier": "UPS",
    "lines": [{"sku": "A-1", "quantity": 2}, {"sku": "B", "quantity": Decimal("2.50"), "unit": "CA", "lot": "L7"}],
}


def test_a_940_is_the_one_that_a_warehouse_expects() -> None:
    """ISA of 106 characters, one set for each record, counts and control numbers in each trailer."""
    content = content_of(**PARTNER, layout="x12/940", line_end="lf", version="005010", test=True, acknowledgment=True)
    other = record({**lines(1), "ship_to": {"name": "Bo"}}, "delete", "SO-2")
    text = text_of(content, record(ORDER), other)
    assert len(text.partition("\n")[0]) == 106
    assert text.splitlines() == [
        "ISA*00*          *00*          *ZZ*SHOP           *ZZ*WAREHOUSE      *261101*0805*^*00501*000000007*1*T*>~",
        "GS*OW*SHOP*WAREHOUSE*20261101*0805*7*X*005010~",
        "ST*940*0001~", "W05*N*SO-1*PO 9~", "N1*ST*Ann Smith~", "N3*1 Main St~", "N4*Reno*NV*01234*US~",
        "G62*10*20261102~",
        "W66*PP*M***UPS~", "LX*1~", "W01*2*EA**VN*A-1~", "LX*2~", "W01*2.5*CA**VN*B********L7~", "W76*4.5~",
        "SE*13*0001~",
        "ST*940*0002~", "W05*F*SO-2~", "N1*ST*Bo~", "LX*1~", "W01*1*EA**VN*S1~", "W76*1~", "SE*7*0002~",
        "GE*2*7~", "IEA*1*000000007~",
    ]  # fmt: skip
    assert isinstance(content, X12Content)
    assert content.control_numbers_of_records([record(ORDER), other]) == ["0001", "0002"]
    assert content.expressible_operations == {"create", "update", "delete"}
    assert refusal(content, record({**ORDER, "lines": []})) == ("/lines", "has no elements")


@settings(max_examples=examples(200), deadline=None)
@given(
    texts=st.lists(st.text(st.characters(codec="latin-1"), max_size=12), min_size=1, max_size=3),
    characters=st.sampled_from(["basic", "extended", "any"]),
    separators=st.sampled_from([tuple("*>^~"), tuple("|<!\n"), tuple("\x1d\x1f\x1c\x1e")]),
    version=st.sampled_from(["004010", "005010"]),
)
def test_what_can_be_written_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
    characters: str,
    separators: tuple[str, str, str, str],
    version: str,
) -> None:
    """Of any texts, the writable ones come back unchanged but for spaces at their ends, which X12 does not count."""
    element, component, repetition, segment = separators
    content = content_of(
        **PARTNER, set="940", version=version, element=element, component=component, repetition=repetition,
        segment=segment,
        characters=characters, rows=[["W05", "N", "{external_id}"], {"each": "notes", "rows": [["NTE", "WHI",
        {"from": "line", "default": ""}]]}],
    )  # fmt: skip
    each = record({"notes": [*texts, "END"]})
    if not is_writable(content, each):
        return
    columns = {"no": "W05.2", "note": "NTE.2"}
    loops = {"note": {"starts": "NTE"}}
    data = content.file_bytes([each], FACTS)
    found = read_back(
        tmp_path_factory.mktemp("f"), data, kind="x12", set="940", loops=loops, rows="note", columns=columns
    )
    assert found == [{"no": "SO-1", "note": text.rstrip(" ")} for text in [*texts, "END"]]


def test_the_reader_of_940_finds_every_value(tmp_path: Path) -> None:
    """The ready declaration and the ready layout of the reader name the same elements."""
    content = content_of(**PARTNER, layout="x12/940")
    rows = read_back(tmp_path, content.file_bytes([record(ORDER)], FACTS), kind="x12", layout="x12/940")
    whole = {
        "sender": "SHOP", "interchange": "000000007", "control": "0001", "change": "N", "order": "SO-1",
        "purchase_order": "PO 9",
        "ship_to": "Ann Smith", "ship_to_id": "", "address": "1 Main St", "city": "Reno", "region": "NV",
        "postal_code": "01234",
        "country": "US", "carrier": "UPS", "upc": "", "sku_kind": "VN",
    }  # fmt: skip
    assert rows == [
        {**whole, "line": "1", "quantity": "2", "unit": "EA", "sku": "A-1", "lot": ""},
        {**whole, "line": "2", "quantity": "2.5", "unit": "CA", "sku": "B", "lot": "L7"},
    ]


def test_segments_have_no_empty_ends() -> None:
    """Neither elements nor components, and a segment without a value is left out; components are joined."""
    content = content_of(
        **PARTNER,
        set="888",
        segment="\n",
        rows=[["A1", "{a?}", "", "{b?}", ""], ["B1", "", "{c?}"], ["C1", ["x", "{c?}", "y", ""]]],
    )
    assert text_of(content, record({"a": "1"})).splitlines()[3:6] == ["A1*1", "C1*x>>y", "SE*4*0001"]


def test_what_x12_cannot_hold_is_refused() -> None:
    """It has no escape: separators, other alphabets, lower case in the basic set, control characters."""
    for keys, text, message in (
        ({}, "a*b", "holds a separator of the interchange, which X12 cannot escape"),
        ({}, "a~", "holds a separator of the interchange, which X12 cannot escape"),
        ({"version": "005010"}, "a^b", "holds a separator of the interchange, which X12 cannot escape"),
        ({}, "a^b", "has the character U+005E, which the extended set of X12 has not"),
        ({}, "Müller", "has the character U+00FC, which the extended set of X12 has not"),
        ({"characters": "basic"}, "Ab", "has the character U+0062, which the basic set of X12 has not"),
        ({"characters": "any"}, "a\nb", "has the character U+000A, a control character or line break"),
        ({"characters": "any", "encoding": "cp1252"}, "\U0001f600", "has the character U+1F600, which cp1252 has not"),
    ):
        content = content_of(**PARTNER, set="940", rows=[["W05", "N", "{x}"]], **keys)
        assert refusal(content, record({"x": text})) == ("/x", message)
    any_character = content_of(**PARTNER, set="940", rows=[["W05", "{x}"]], characters="any", encoding="latin-1")
    assert "W05*Müller~" in text_of(any_character, record({"x": "Müller"}), encoding="latin-1")
    with pytest.raises(RefusedError, match="above 999,999,999"):
        any_character.file_bytes([record({"x": "a"})], structs.replace(FACTS, number=10**9))


def test_declarations_that_contradict_themselves_are_refused() -> None:
    """When the config is read."""
    rows = [["W05", "N"]]
    for keys in (
        {"rows": rows}, {"set": "940"}, {"set": "861", "rows": rows}, {"set": "940", "rows": [["w5", "N"]]},
        {"set": "940", "rows": [["{x}", "N"]]},
        {"set": "940", "rows": rows, "sender": "A*B"}, {"set": "940", "rows": rows, "receiver": "A" * 16},
        {"set": "940", "rows": rows, "element": ">"},
        {"set": "940", "rows": rows, "version": "4010"}, {"layout": "x12/999"}, {"set": "940", "rows": [["W05", 1]]},
        {"set": "940", "rows": rows, "group_sender": "ü"},
    ):  # fmt: skip
        with pytest.raises(ValidationError):
            content_of(**{**PARTNER, **keys})
