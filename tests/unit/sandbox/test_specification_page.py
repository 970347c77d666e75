"""docs/reference/specification.md is complete: each mark of the OpenAPI document is listed, each named test exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from crossdock.sandbox import openapi_document

TESTS = Path(__file__).parents[2]
PAGE = (TESTS.parent / "docs" / "reference" / "specification.md").read_text(encoding="utf-8")
NOT_EMULATED = "Not emulated."


class Row(NamedTuple):
    statement: str
    behaviour: str
    kind: str
    marks: list[str]
    tests: list[str]


def rows() -> list[Row]:
    cells = [[cell.strip() for cell in line[1:-1].split("|")] for line in PAGE.splitlines() if line.startswith("|")]
    found = [each for each in cells if not set("".join(each)) <= {"-"} and each[0] != "statement or gap"]
    return [
        Row(each[0], each[1], each[2], re.findall("`([^`]+)`", each[3]), re.findall("`([^`]+)`", each[4]))
        for each in found
    ]


def marks(value: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The name of each place that is marked; an answer of a marked operation has the name of the operation."""
    if isinstance(value, dict):
        if "x-assumption" in value:
            yield name_of(path, value)
        for name, inner in value.items():
            if name not in {"example", "examples"}:
                yield from marks(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from marks(inner, (*path, str(index)))


def name_of(path: tuple[str, ...], value: dict[str, Any]) -> str:
    match path:
        case ("components", _, name, "properties", member):
            return f"{name}.{member}"
        case ("components", _, name) | ("webhooks", name) | ("webhooks", name, "post") | ("tags" as name, _):
            return name
        case ("paths", address):
            return address.rpartition("/")[2]
        case ("paths", address, method, "responses", status):
            operation = openapi_document.build_openapi_document()["paths"][address][method]
            return str(operation["operationId"]) + ("" if "x-assumption" in operation else f".{status}")
        case _ if "operationId" in value or "in" in value:
            return str(value.get("operationId") or value["name"])
    raise AssertionError(f"the mark at {'/'.join(path)} needs a name and a row of the page")


def test_every_assumption_of_the_document_is_listed() -> None:
    """Each mark has a row that is called assumed, and each listed mark exists."""
    found = set(marks(openapi_document.build_openapi_document()))
    listed = {mark for row in rows() for mark in row.marks}
    assert len(found) > 90
    assert {each for each in found if not any(fnmatchcase(each, mark) for mark in listed)} == set()
    assert {mark for mark in listed if not any(fnmatchcase(each, mark) for each in found)} == set()


def test_every_statement_is_documented_or_assumed_and_has_a_test() -> None:
    """A row without a test says that the sandbox does not emulate it."""
    assert len(rows()) > 60
    for row in rows():
        assert row.kind in {"D", "A"}, row
        assert row.tests or row.behaviour.endswith(NOT_EMULATED), row
        assert ("open" in row.statement) or row.kind == "D" or row.marks, row


def test_every_named_test_exists() -> None:
    """Each is a function of the file that the page names."""
    for row in rows():
        for test in row.tests:
            file, _, name = test.partition("::")
            assert re.search(rf"^def {name}\(", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE), test
