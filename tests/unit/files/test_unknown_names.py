"""Contents tell which of the members that they show no record has: an optional one would be empty in every file."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.files.contents import content_of, record

from crossdock.writing.files.edi_content import ready_layouts_by_name

PAYLOAD = {"order": "", "ship_to": {"name": ""}, "lines": [{"sku": "", "parts": [{"code": ""}]}], "a.b": ""}
KNOWN = (
    "{order}", "{ship_to.name?}", "{/ship_to/name}", "{lines.0.sku}", "{lines.3.parts.1.code?}", "{line.sku}",
    "{line_number}", "{external_id}", "{file_time}", "{row_in_record}", "{a.b}", {"from": "line.parts.7.code"},
    {"sum": "lines.parts.code"}, {"count": "line.parts"},
)  # fmt: skip
UNKNOWN: tuple[tuple[Any, str], ...] = (
    ("{oder?}", "oder"),
    ("{order} {ship_to.nme?}", "ship_to.nme"),
    ({"from": "ship_to.region", "default": ""}, "ship_to.region"),
    ("{/ship-to/name?}", "/ship-to/name"),
    ("{lines.sku?}", "lines.sku"),
    ("{line.parts.code?}", "line.parts.code"),
    ("{part.code?}", "part.code"),
    ("{order.0?}", "order.0"),
    ("{part_number?}", "part_number"),
    ({"sum": "lines.price"}, "lines.price"),
    ({"count": "packages"}, "packages"),
)


def with_cell(kind: str, cell: Any) -> dict[str, Any]:
    """A content of *kind* that shows *cell* in the innermost of its rows."""
    match kind:
        case "x12":
            rows: Any = {"each": "lines", "rows": [["LX", cell]]}
            return {"set": "940", "sender": "A", "receiver": "B", "rows": [rows]}
        case "edifact":
            rows = {"each": "lines", "rows": [["LIN", ["1", cell]]]}
            return {"message": "ORDERS", "sender": "A", "receiver": "B", "rows": [rows]}
        case "fixed_width":
            column = {"template": cell} if isinstance(cell, str) else cell
            return {"rows": [{"each": "lines", "columns": {"a": {**column, "at": 1, "length": 9}}}]}
        case "json" | "json_lines":
            return {"rows": [{"object": {"lines": {"each": "lines", "object": {"a": cell}}}}]}
        case "xml":
            columns = {"Lines/Line": {"each": "lines", "columns": {"A": cell}}}
            return {"record": "/Orders/Order", "rows": [{"columns": columns}]}
    return {"rows": [{"each": "lines", "columns": {"a": cell}}]}


@pytest.mark.parametrize("kind", ["delimited", "fixed_width", "json_lines", "json", "xml", "x12", "edifact"])
def test_each_kind_tells_them(kind: str) -> None:
    """A name is looked for as a file is written: among facts, members, elements of lists by name and by number."""
    for cell in KNOWN:
        assert not content_of(kind=kind, **with_cell(kind, cell)).names_lacking_in_record(record(PAYLOAD)), cell
    for cell, name in UNKNOWN:
        assert content_of(kind=kind, **with_cell(kind, cell)).names_lacking_in_record(record(PAYLOAD)) == [name], cell


def test_conditions_lists_and_rows_of_all_operations() -> None:
    """A condition or a list of no member would leave out rows, and so would those of an update or a trailer."""
    columns = {"columns": {"a": "{order}"}}
    when = {**columns, "when": {"any": [{"field": "order", "empty": True}, {"field": "oder", "equals": "x"}]}}
    rows: dict[str, Any] = {
        "rows": [when, {**columns, "each": "ship_to"}, {"each": "packages", "rows": [columns]}],
        "update": [{"columns": {"a": "{new?}"}}],
        "delete": [{"columns": {"a": "{old?}"}}],
        "trailer": [{"columns": {"a": {"sum": "lines.price"}}}],
    }
    content = content_of(kind="delimited", **rows)
    assert content.names_lacking_in_record(record(PAYLOAD)) == [
        "oder",
        "ship_to",
        "packages",
        "new",
        "old",
        "lines.price",
    ]
    for kind, paths in (("json", "sum"), ("xml", "Sum")):
        header = {"header": {paths: {"sum": "lines.price"}}, **with_cell(kind, "{order}")}
        more = {"records": "list"} if kind == "json" else {}
        assert content_of(kind=kind, **header, **more).names_lacking_in_record(record(PAYLOAD)) == ["lines.price"]


@pytest.mark.parametrize(("layout", "needed"), [("x12/940", {"ship_to": {"name": ""}}), ("edifact/ORDERS", {})])
def test_ready_declarations_show_members_that_a_record_need_not_have(layout: str, needed: dict[str, Any]) -> None:
    """Only members that each record needs must be declared."""
    assert layout in ready_layouts_by_name()
    payload = {**needed, "lines": [{"sku": "", "quantity": ""}]}
    content = content_of(kind=layout.partition("/")[0], layout=layout, sender="A", receiver="B")
    assert not content.names_lacking_in_record(record(payload))
    assert (
        content.names_lacking_in_record(record({**needed, "lines": [{"sku": ""}]}))
        == ["line.quantity", "lines.quantity"][: 2 if layout.startswith("x12") else 1]
    )


def test_a_ready_declaration_needs_what_the_members_of_a_record_need() -> None:
    """A name is needed whether or not there is an identifier, and a qualifier as soon as there is one."""
    content = content_of(kind="x12", layout="x12/940", sender="A", receiver="B")
    for ship_to, lacking in (
        ({}, ["ship_to.name"]),
        ({"name": "", "id": ""}, ["ship_to.id_qualifier"]),
        ({"name": "", "address_2": ""}, ["ship_to.address"]),
        ({"name": "", "region": ""}, []),
    ):
        payload = {"ship_to": ship_to, "lines": [{"sku": "", "quantity": ""}]}
        assert content.names_lacking_in_record(record(payload)) == lacking
