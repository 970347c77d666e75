"""Exports that the sender divides by rows, so that the rows of a record are in two files."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.declared_writes import declared_writes
from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.unit.formats.edi import edifact

LINES = {"type": "list", "members": {"sku": "text"}}
RESOURCE = {"create": "POST /records", "repeated": "ignored", "members": {"lines": LINES}}
PARTS = {"part_1.csv": "ID,NAME\n7,A\n8,A\n8,B\n", "part_2.csv": "ID,NAME\n8,C\n9,A\n"}


def created(request: PartnerRequest) -> PartnerAnswer:
    record = request.json()
    return PartnerAnswer(201, record | {"id": f"id of {record['ref']}"})


@pytest.mark.parametrize("mode", ["snapshot", "append"])
def test_rows_of_a_record_in_two_members_are_noticed(tmp_path: Path, mode: str) -> None:
    """A snapshot is refused; of files with changes the later one counts, and a warning names them."""
    stream = {
        "mode": mode,
        "files": "*.zip",
        "wrapped": ["zip"],
        "group_by": ["ID"],
        "map": {"lines": {"each": {"sku": "NAME"}}},
    }
    with declared_writes(tmp_path, created, RESOURCE, stream=stream) as project:
        with zipfile.ZipFile(project.out / "1.zip", "w") as archive:
            for name, content in PARTS.items():
                archive.writestr(name, content)
        done = project.sync(4 if mode == "snapshot" else 0)
        said = done.stdout + done.stderr
        assert "keep the rows of a record together" in said
        assert all(f"1.zip/{name}" in said for name in PARTS)
        assert len(project.requests) == (0 if mode == "snapshot" else 3)


def test_two_versions_of_a_record_in_files_with_changes_are_none(tmp_path: Path) -> None:
    """The later file counts, and nothing is said of a record that is in the middle of one of them."""
    stream = {"group_by": ["ID"], "map": {"lines": {"each": {"sku": "NAME"}}}}
    with declared_writes(tmp_path, created, RESOURCE, stream=stream) as project:
        project.export("8,A", "7,A")
        project.export("8,B", "9,A")
        done = project.sync()
        assert "keep the rows" not in done.stdout + done.stderr


@pytest.mark.parametrize("looks_up", [False, True])
def test_a_file_that_was_replaced_before_it_was_delivered_is_another_file(tmp_path: Path, looks_up: bool) -> None:
    """Of a file and its successor of the same name, which one run reads, the later one counts, and not both."""
    is_down = True

    def answer(request: PartnerRequest) -> PartnerAnswer:
        if is_down:
            return PartnerAnswer(503, {})
        return created(request) if request.method == "POST" else PartnerAnswer(200, request.json())

    stream = {"files": "orders.csv", "group_by": ["ID"], "map": {"lines": {"each": {"sku": "NAME"}}}}
    resource = RESOURCE | {"update": "PATCH /records/{id}", "read": "GET /records/{id}"}
    with declared_writes(tmp_path, answer, resource, stream=stream) as project:
        if looks_up:
            config = yaml.safe_load(project.config.read_text("utf-8"))
            wms = config["connections"]["wms"]
            wms["sources"] = {"names": {"files": "names.txt"}}
            wms["streams"]["records"]["lookup"] = {"names": {"source": "names", "on": {"NAME": "N"}}}
            project.config.write_text(yaml.safe_dump(config), "utf-8")
            (project.out / "names.txt").write_text("N,TITLE\nA,a\nB,b\nC,c\n", "utf-8")
        (project.out / "orders.csv").write_text("ID,NAME\n8,A\n8,B\n", "utf-8")
        project.sync(3)
        is_down, refused = False, len(project.requests)
        (project.out / "orders.csv").write_text("ID,NAME\n8,A\n8,B\n8,C\n", "utf-8")
        project.sync()
        sent = [[line["sku"] for line in request.json()["lines"]] for request in project.requests[refused:]]
        assert sent == [["A", "B"], ["A", "B", "C"]]


FORMATS: dict[str, dict[str, Any]] = {
    "xml": {"kind": "xml", "record": "/Os/O", "rows": "L", "columns": {"ID": "@id", "NAME": "L/@n"}},
    "txt": {
        "delimiter": "|",
        "record_type": 0,
        "record_types": {
            "order": {"code": "O", "names": ["O", "ID"]},
            "line": {"code": "L", "parent": "order", "names": ["L", "NAME"]},
        },
        "records": "line",
    },
    "edi": {
        "kind": "edifact",
        "message": "ORDERS",
        "loops": {"item": {"starts": "LIN"}},
        "rows": "item",
        "columns": {"ID": "BGM.2", "NAME": "LIN.3.1"},
    },
}


def written(kind: str, orders: list[tuple[str, str]]) -> str:
    """A file of *orders*, each with its number and the names of its lines."""
    if kind == "xml":
        orders_text = [f'<O id="{n}">' + "".join(f'<L n="{each}"/>' for each in names) + "</O>" for n, names in orders]
        return f"<Os>{''.join(orders_text)}</Os>"
    if kind == "txt":
        return "".join(f"O|{number}\n" + "".join(f"L|{line}\n" for line in names) for number, names in orders)
    messages = [[f"BGM+220+{n}+9", *[f"LIN+1++{line}:EN" for line in names]] for n, names in orders]
    return edifact(*messages, kind="ORDERS")


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("mode", ["append", "snapshot"])
def test_a_record_that_a_file_has_again_is_another_version(tmp_path: Path, kind: str, mode: str) -> None:
    """Where the format shows where records begin, the last of them counts with its own lines; a snapshot is refused."""
    stream = {"files": f"*.{kind}", "format": FORMATS[kind], "mode": mode, "group_by": ["ID"]}
    lines = {"map": {"lines": {"each": {"sku": "NAME"}}}}
    with declared_writes(tmp_path, created, RESOURCE, stream=stream | lines) as project:
        orders = [("7", "AB"), ("8", "A"), ("7", "BC"), ("9", "X"), ("9", "X")]
        (project.out / f"1.{kind}").write_text(written(kind, orders), "utf-8")
        done = project.sync(4 if mode == "snapshot" else 0)
        if mode == "snapshot":
            assert "with different content" in done.stderr
            assert not project.requests
            (project.out / f"1.{kind}").write_text(written(kind, orders[1:]), "utf-8")
            project.sync()
        bodies = [request.json() for request in project.requests]
        sent = {each["ref"]: "".join(line["sku"] for line in each["lines"]) for each in bodies}
        assert sent == {"wms:7": "BC", "wms:8": "A", "wms:9": "X"}
        (project.out / f"2.{kind}").write_text(written(kind, [*orders[3:], *orders[1:3]]), "utf-8")
        project.sync()
        assert len(project.requests) == 3, "nothing has changed"


def test_versions_without_a_common_row_may_be_parts(tmp_path: Path) -> None:
    """The parcels of an order, or a header that is repeated on each page: a warning names both places."""
    stream = {
        "files": "*.txt",
        "format": FORMATS["txt"],
        "group_by": ["ID"],
        "map": {"lines": {"each": {"sku": "NAME"}}},
    }
    with declared_writes(tmp_path, created, RESOURCE, stream=stream) as project:
        (project.out / "1.txt").write_text(written("txt", [("7", "AB"), ("8", "A"), ("7", "BC")]), "utf-8")
        assert "in common" not in project.sync().stderr
        (project.out / "2.txt").write_text(written("txt", [("9", "AB"), ("8", "A"), ("9", "CD")]), "utf-8")
        assert "a record is at 2.txt:2 and 2.txt:7 without a row in common" in project.sync().stderr


def test_an_export_in_shards_is_noticed(tmp_path: Path) -> None:
    """Each file has some lines of each order: a warning names two places. Versions with a common line are none."""
    stream = {"group_by": ["ID"], "map": {"lines": {"each": {"sku": "NAME"}}}}
    with declared_writes(tmp_path, created, RESOURCE, stream=stream) as project:
        rows = [f"{order},{line}" for order in "789" for line in "ABCD"]
        for shard in range(3):
            project.export(*rows[shard::3])
        assert "a record is at 0002.csv:2 and 0003.csv:2 without a row in common" in project.sync().stderr
    with declared_writes(tmp_path / "2", created, RESOURCE, stream=stream) as project:
        project.export("6,X", "8,A", "8,B", "7,X")
        project.export("9,X", "8,B", "8,C", "5,X")
        assert "in common" not in project.sync().stderr


def test_lines_that_an_update_takes_away_are_counted(tmp_path: Path) -> None:
    """An export that was cut at midnight has the other half of an order; a line with another quantity is the same."""

    def answer(request: PartnerRequest) -> PartnerAnswer:
        return created(request) if request.method == "POST" else PartnerAnswer(200, request.json())

    lines = LINES | {"members": {"sku": "text", "quantity": "number"}}
    resource = RESOURCE | {"update": "PATCH /records/{id}", "read": "GET /records/{id}", "members": {"lines": lines}}
    each = {"sku": "NAME", "quantity": {"from": "QTY", "as": "integer"}}
    stream = {"group_by": ["ID"], "map": {"lines": {"each": each}}}
    with declared_writes(tmp_path, answer, resource, stream=stream) as project:
        (project.out / "1.csv").write_text("ID,NAME,QTY\n7,A,1\n8,A,1\n8,B,1\n", "utf-8")
        project.sync()
        (project.out / "2.csv").write_text("ID,NAME,QTY\n8,C,1\n7,A,2\n", "utf-8")
        found = json.loads(project.run("sync", "--json").stdout)["streams"]["wms.records"]
        assert (found["records"]["updated"], found["parts"]) == (2, {"element of lines taken away": 2})


def test_the_other_half_of_a_delivered_record_is_noticed(tmp_path: Path) -> None:
    """In a file of another run, it has none of the lines that the target has; an order that was changed has some."""

    def answer(request: PartnerRequest) -> PartnerAnswer:
        return created(request) if request.method == "POST" else PartnerAnswer(200, request.json())

    resource = RESOURCE | {"update": "PATCH /records/{id}", "read": "GET /records/{id}"}
    stream = {"group_by": ["ID"], "map": {"lines": {"each": {"sku": "NAME"}}}}
    with declared_writes(tmp_path, answer, resource, stream=stream) as project:
        project.export("7,A", "8,A", "8,B", "9,A", "9,B")
        assert "before" not in project.sync().stderr
        project.export("7,B", "8,A", "8,C", "9,A")
        assert "before" not in project.sync().stderr
        project.export("7,C", "9,B", "9,C")
        assert "the record at 0003.csv:3 has none of the lines that were delivered before" in project.sync().stderr
