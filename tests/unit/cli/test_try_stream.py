"""``crossdock try``: what it shows of the first records, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cli.conftest import CONFIG, CommandLine

from crossdock.cli.try_stream import _beside, _leaves

CUSTOMERS = """\
      customers:
        mode: append
        files: "c/*.csv"
        key: [CNO]
        group_by: [CNO]
        resource: customer
        personal: [currency]
        skip: {test_data: {field: CNO, starts_with: T}}
        map: {name: NAME, currency: CUR}
"""


def export(folder: Path, name: str, text: str) -> None:
    path = folder / "exports" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def two_streams(command_line: CommandLine) -> CommandLine:
    command_line.config.write_text(CONFIG + CUSTOMERS, encoding="utf-8")
    export(command_line.folder, "items.csv", "SKU,NAME,PRICE,NOTE\n0017,Lamp,1.50,hunter22\n,Shelf,2,\n0019,Vase,1x,\n")
    export(command_line.folder, "c/c.csv", "CNO,NAME,CUR\nT1,x,EUR\nC1,Ada,EUR\nC2,Bo,EUR\nC1,Ada,EUR\n,Cy,EUR\n")
    return command_line


def test_records_are_shown_beside_their_drafts_and_problems(two_streams: CommandLine) -> None:
    """A mapped record has its draft, a rejected one its reason; the command ends with 1."""
    tried = two_streams.run("try", "wms.products")
    assert tried.code == 1
    lines = tried.out.splitlines()
    assert lines[0] == "1  0017  items.csv:2"
    assert lines[1:3] == ["  record                 draft", "  SKU: 0017              sku: 0017"]
    assert "2  (no key)  items.csv:3" in lines
    assert any(line.endswith("   problem: key_missing") for line in lines)
    assert any(line.endswith("   problem: bad_value (line 4)") for line in lines)
    assert lines[-1] == "wms.products: 3 records read, 2 rejected"


def test_data_that_the_draft_does_not_show_needs_raw(two_streams: CommandLine) -> None:
    """A value that may be personal is given by its length; ``--raw`` shows all."""
    masked = two_streams.run("try", "wms.products", "-n", "1").out + two_streams.run("try", "wms.customers").out
    assert "NOTE: (8 characters)" in masked
    assert "currency: (personal)" in masked
    assert "name: (personal)" in masked
    assert "hunter22" not in masked
    assert "Ada" not in masked
    assert "NOTE: hunter22" in two_streams.run("try", "wms.products", "-n", "1", "--raw").out
    assert "name: Ada" in two_streams.run("try", "wms.customers", "--raw").out


def test_rows_of_a_group_are_one_record_wherever_they_are(two_streams: CommandLine) -> None:
    """Filtered rows are counted, and a record has its rows even after the last one that is shown."""
    tried = two_streams.run("try", "wms.customers", "-n", "1", "--json")
    assert tried.code == 0
    assert [(each["key"], each["lines"]) for each in tried.json["records"]] == [("C1", [3, 5])]
    assert tried.json["filtered"] == {"test_data": 1}
    assert [each["key"] for each in two_streams.run("try", "wms.customers", "--json").json["records"]] == [
        "C1", "C2", "",
    ]  # fmt: skip


def test_it_needs_no_state_and_writes_nothing(two_streams: CommandLine) -> None:
    """No file is created, changed or moved, and the same records are read again."""
    (two_streams.folder / "state.db").unlink()
    before = sorted(two_streams.folder.rglob("*"))
    first = two_streams.run("try", "wms.customers").out
    assert two_streams.run("try", "wms.customers").out == first
    assert sorted(two_streams.folder.rglob("*")) == before


def test_one_stream_has_to_be_named(two_streams: CommandLine) -> None:
    """A connection with several streams, and a name that does not exist, are refused with the names to choose from."""
    several = two_streams.run("try", "wms")
    assert several.code == 2
    assert "name one of them: wms.customers, wms.products" in several.err
    assert "did you mean 'wms.products'" in two_streams.run("try", "wms.product").err


def test_what_was_read_before_a_failure_is_shown(two_streams: CommandLine) -> None:
    """The records of a file that is damaged later are shown, and the command ends with the exit code of the error."""
    export(two_streams.folder, "items.csv", "SKU,NAME,PRICE\n0017,Lamp,1.50\n0018,Shelf\n")
    tried = two_streams.run("try", "wms.products")
    assert tried.code == 4
    assert "items.csv:3" in tried.err


FUNCTION = """\
def product(record):
    return {"sku": record.row["SKU"], "name": record.row["TITLE"]}
"""


def test_an_exception_of_the_mapping_names_file_and_line(two_streams: CommandLine) -> None:
    """The author finds the line that failed; the exception's text, which may quote data, is not shown."""
    (two_streams.folder / "mapping.py").write_text(FUNCTION, encoding="utf-8")
    before, _, _ = CONFIG.partition("        map:")
    two_streams.config.write_text(f"{before}        map: mapping.py:product\n", encoding="utf-8")
    tried = two_streams.run("try", "wms.products", "-n", "1")
    assert tried.code == 1
    assert "the mapping raised KeyError in line 2 of" in tried.out
    assert "mapping.py" in tried.out
    assert "hunter22" not in tried.out


def test_wide_records_are_shown_above_their_drafts() -> None:
    """No line is broken or cut: what does not fit beside is shown below."""
    assert list(_beside(["ab", "c"], ["x"], 6)) == ["ab   x", "c    "]
    assert list(_beside(["ab", "c"], ["x"], 5)) == ["ab", "c", "x"]


@given(st.recursive(st.none() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_each_value_inside_json_has_one_pointer(value: object) -> None:
    """No two values have the same pointer."""
    pointers = [pointer for pointer, _ in _leaves(value)]
    assert len(pointers) == len(set(pointers))
