"""The documented declarations are true: they load, editors accept them, and each makes a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema_rs
from pydantic import TypeAdapter
from tests.unit.files.contents import FACTS, content_of, record

from crossdock.values import yaml_reader
from crossdock.values.schema_descriptions_from_docstrings import SchemaGeneratorWithDescriptions
from crossdock.writing.files.cell_declarations import Cell
from crossdock.writing.files.content_kinds import CONTENTS, FileContentConfig
from crossdock.writing.files.edi_content import ready_layouts_by_name

PAGES = Path(__file__).parents[3] / "docs" / "how_to" / "exchange_files"
EXAMPLES = [
    yaml_reader.parse_yaml_mapping(text, "page", None).data
    for page in sorted(PAGES.glob("*.md"))
    for text in re.findall(r"^```yml\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
]
SCHEMA = TypeAdapter[Any](FileContentConfig).json_schema(schema_generator=SchemaGeneratorWithDescriptions)
PAYLOAD = {
    "ship_on": "2026-11-02",
    "ship_to": {"name": "Ann", "city": "Reno"},
    "lines": [{"sku": "A", "quantity": 2, "gtin": "4000862141404", "serials": ["x"]}],
}


def test_each_documented_declaration_makes_a_file() -> None:
    """One of every kind, and the JSON Schema accepts them. With all defaults written out, as 'config
    show' does, it is the same file."""
    schema = jsonschema_rs.validator_for(SCHEMA)
    for example in EXAMPLES:
        assert schema.is_valid(example), example["kind"]
        content = content_of(**example)
        content.check_record(record(PAYLOAD))
        made = content.file_bytes([record(PAYLOAD)], FACTS)
        assert made
        assert (
            content_of(**content.model_dump(by_alias=True, exclude_none=True)).file_bytes([record(PAYLOAD)], FACTS)
            == made
        )
    assert {example["kind"] for example in EXAMPLES} == CONTENTS.keys()


def test_the_schema_knows_each_key_and_what_is_wrong() -> None:
    """Every key has a description, ready declarations are valid, a misspelt key and a missing one are not."""
    schema = jsonschema_rs.validator_for(SCHEMA)
    bare = {
        f"{name}.{key}"
        for name, part in SCHEMA["$defs"].items()
        for key, value in part["properties"].items()
        if "description" not in value
    }
    assert {each for each in bare if not each.endswith(".kind") and not each.startswith("Filter.")} == set()
    partner = {"sender": "A", "receiver": "B"}
    for name, ready in ready_layouts_by_name().items():
        assert schema.is_valid({**ready, **partner}), name
        assert schema.is_valid({"kind": ready["kind"], "layout": name, **partner}), name
        assert not schema.is_valid({"kind": ready["kind"], **partner}), name
    assert not schema.is_valid({**EXAMPLES[0], "delimitr": ";"})


def test_the_pages_name_each_key_of_a_cell() -> None:
    """And every ready declaration."""
    cells = (PAGES / "cells.md").read_text("utf-8")
    assert {
        field.alias or name for name, field in Cell.model_fields.items() if f"`{field.alias or name}" not in cells
    } == set()
    assert [
        name for name in ready_layouts_by_name() if f"| `{name}` |" not in (PAGES / "write_edi.md").read_text("utf-8")
    ] == []
