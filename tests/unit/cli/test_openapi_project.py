"""``crossdock new --openapi``: what is proposed from a document, and documents that are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import CommandLine, Result
from tests.unit.cli.test_new_project import linted

from crossdock.cli.new import openapi_project
from crossdock.errors import ConfigError

DOCUMENTS = Path(__file__).parent / "openapi"


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    return CommandLine(tmp_path)


def proposed(line: CommandLine, document: str | Path, *options: str) -> dict[str, list[str]]:
    made = line.run("new", "acme-shop", "--openapi", str(DOCUMENTS / document), *options, "--json")
    assert made.code == 0, made.err
    proposal: dict[str, list[str]] = made.json["proposal"]
    return proposal


def refused(line: CommandLine, document: object, *options: str) -> Result:
    """The result for a document of this content, which is written into no project."""
    path = line.folder / "document.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    result = line.run("new", "acme-shop", "--openapi", str(path), *options)
    assert result.code == 2, result.err
    assert "Traceback" not in result.err
    assert not (line.folder / "acme-shop").exists()
    return result


def document(schema: Any, **more: Any) -> dict[str, Any]:
    """A document with one list of records of *schema*."""
    content = {"application/json": {"schema": {"type": "array", "items": schema}}}
    paths = {"/things": {"get": {"responses": {"200": {"description": "all", "content": content}}}}}
    return {"openapi": "3.0.3", "info": {}, "paths": paths, **more}


@pytest.mark.parametrize("options", [(), ("--target",)], ids=["streams", "target"])
@pytest.mark.parametrize("name", ["shipping.yaml", "pets.json", "payments.json"])
def test_ruff_has_no_finding_in_what_is_proposed(line: CommandLine, name: str, options: tuple[str, ...]) -> None:
    """Neither with its defaults, nor in the order of imports, nor in the format."""
    proposed(line, name, *options)
    assert linted(line.folder / "acme-shop") == ""


def test_lists_are_streams_with_their_pages_and_changes(line: CommandLine) -> None:
    """Each form of pagination is recognized, and a parameter for changes is the cursor; others are read whole."""
    assert proposed(line, "orders.yaml")["stream"] == [
        "orders: GET /orders, pages by page, changes by min_date_modified; key id, OrderDraft",
        "customers: GET /customers, pages by offset, all of it in each run; key id, CustomerDraft",
        "stock: GET /stock, pages by link, all of it in each run; key sku, InventoryLotDraft",
        "locations: GET /locations, pages by next url, all of it in each run; key id, WarehouseBinDraft",
    ]
    assert linted(line.folder / "acme-shop") == ""
    streams = (line.folder / "acme-shop" / "acme_shop" / "streams.py").read_text(encoding="utf-8")
    assert 'format="%a, %d %b %Y %H:%M:%S %z"' in streams  # of the example in the document
    assert 'HeaderAuth("X-Auth-Token", settings.key)' in streams


def test_what_is_left_out_and_what_is_open_is_told(line: CommandLine) -> None:
    """Each operation that is no list has a reason, and each question is a comment in the project as well."""
    proposal = proposed(line, "pets.json", "--target")
    assert proposal["left out"][:2] == [
        "GET /pet/{petId}: it is below one record",
        "GET /store/inventory: its answer has no list of objects",
    ]
    assert "#/paths/~1remote/get/responses/200/schema/$ref" in proposal["left out"][2]
    assert "find_by_status: the parameter status, which the document requires" in proposal["TODO"]
    folder = line.folder / "acme-shop"
    written = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    assert all(f"# TODO: {each.partition(': ')[2] or each}" in written for each in proposal["TODO"])


def test_the_most_telling_lists_of_many_are_taken(line: CommandLine) -> None:
    """The others are named on one line, and --list chooses among them."""
    many = document({"type": "object", "properties": {"id": {"type": "integer"}}})
    many["paths"] = {f"/things{number}": many["paths"]["/things"] for number in range(300)} | {
        "/orders": many["paths"]["/things"]
    }
    path = line.folder / "many.json"
    path.write_text(json.dumps(many), encoding="utf-8")
    made = line.run("new", "acme-shop", "--openapi", str(path))
    assert made.code == 0, made.err
    assert made.out.startswith("stream: orders: GET /orders")
    assert made.out.count("stream: ") == 10
    assert made.out.count("left out: ") == 1
    chosen = line.run("new", "acme-two", "--openapi", str(path), "--list", "/things299", "--json")
    assert [each.partition(":")[0] for each in chosen.json["proposal"]["stream"]] == ["things_299"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "document.json: is not valid JSON"),
        ("a: [", "document.json:1:"),
        ({"openapi": "2.9"}, "is not an OpenAPI 3.0 or 3.1 document"),
        ({"openapi": "3.0.0", "paths": {}}, "document.json#/paths: describes no list"),
        (document({"type": "string"}), "its answer has no list of objects"),
        (document({"$ref": "other.json#/Thing"}), "document.json#/paths/~1things/get/responses/200/content"),
        (document({"$ref": "#/nothing"}), "there is nothing at #/nothing"),
        (document({"$ref": "#/x"}, x={"$ref": "#/x"}), "a $ref refers to itself"),
        (
            {"openapi": "3.1.0", "paths": {"/a": 7, "/b": {"get": []}, "/c": {"get": {"responses": [1]}}}},
            "describes no",
        ),
    ],
    ids=["cut", "cut YAML", "version", "empty", "no list", "remote", "nowhere", "loop", "other types"],
)
def test_a_document_that_proposes_nothing_is_refused(line: CommandLine, content: object, said: str) -> None:
    """The error names the file, and the place in it as a JSON pointer."""
    assert said in refused(line, content).err


def test_a_chain_of_schemas_is_followed_to_a_limit(line: CommandLine) -> None:
    """A document of ordinary size may be made to exhaust the stack."""
    chain = {f"s{number}": {"allOf": [{"$ref": f"#/x/s{number + 1}"}]} for number in range(5_000)}
    assert "too many times" in refused(line, document({"$ref": "#/x/s0"}, x=chain)).err


def test_schemas_that_contain_themselves_have_finite_examples(line: CommandLine) -> None:
    """A tree of categories is such a schema."""
    tree = {"type": "object", "properties": {"id": {"type": "integer"}, "below": {"$ref": "#/x/tree"}}}
    path = line.folder / "tree.json"
    path.write_text(json.dumps(document({"$ref": "#/x/tree"}, x={"tree": tree})), encoding="utf-8")
    assert proposed(line, path)["stream"]


def test_names_that_are_no_python_are_kept_apart(line: CommandLine) -> None:
    """Members such as ``class``, ``on-hand`` or ``model_x`` get attributes of their own; code in names does nothing."""
    names = ("id", "class", "unit-price", "model_name", 'x"; import os', "${SECRET}", "name\n")
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    path = line.folder / "names.json"
    path.write_text(json.dumps(document(schema, info={"title": '""" + exit() + """\\'})), encoding="utf-8")
    proposed(line, path)
    assert linted(line.folder / "acme-shop") == ""
    written = "".join(path.read_text(encoding="utf-8") for path in (line.folder / "acme-shop").rglob("*.py"))
    assert "import os" not in written
    assert "exit() +" not in written


def places(value: Any, outer: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values inside of one."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in inner:
        yield (*outer, name)
        yield from places(each, (*outer, name))


@pytest.mark.parametrize("wrong", [None, 7, ["a"], {"x": []}], ids=json.dumps)
@pytest.mark.parametrize("name", ["pets.json", "payments.json"])
def test_a_wrong_value_in_any_place_is_no_traceback(tmp_path: Path, name: str, wrong: Any) -> None:
    """A project is proposed without it, or the document is refused."""
    text = (DOCUMENTS / name).read_text(encoding="utf-8")
    path = tmp_path / "document.json"
    for *outer, last in places(json.loads(text)):
        changed = json.loads(text)
        holder = changed
        for part in outer:
            holder = holder[part]
        holder[last] = wrong
        path.write_text(json.dumps(changed), encoding="utf-8")
        with suppress(ConfigError):
            proposal = openapi_project.propose_project(path, with_target=True, chosen=())
            openapi_project.template_values(proposal, "acme")
            openapi_project.example_files(proposal)


@pytest.mark.parametrize("option", ["--graphql", "--webhooks"])
def test_what_a_document_does_not_describe_is_refused(line: CommandLine, option: str) -> None:
    """Nothing is written."""
    assert f"{option} cannot be combined with --openapi" in refused(line, document({}), option).err


def test_a_target_needs_what_creates_and_reads_one_record(line: CommandLine) -> None:
    """The error says what is missing."""
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    assert "describes nothing to write" in refused(line, document(schema), "--target").err
