"""OpenAPI documents are read in JSON or YAML; what refers to other places is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crossdock.errors import ConfigError
from crossdock.platform import openapi_file
from crossdock.platform.openapi_file import OpenApiDocument, schema_types

HEAD = '{"openapi": "3.1.0", "paths": {}'


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "openapi.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def schema(value: object, **schemas: Any) -> dict[str, Any]:
    return dict(OpenApiDocument("a", {"components": {"schemas": schemas}}).merged_schema(value))


@pytest.mark.parametrize("text", [HEAD + "}", "openapi: 3.0.3\npaths: {/a: {get: {responses: {200: {}}}}}\n"])
def test_json_and_yaml_are_read(tmp_path: Path, text: str) -> None:
    """Versions 3.0 and 3.1."""
    assert openapi_file.read_openapi_file(written(tmp_path, text)).data["paths"] is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty or not a mapping"),
        ("{", "is not valid JSON"),
        ("a: [", "is not valid YAML"),
        (b"\xff\xfe", "is not UTF-8"),
        ('{"swagger": "2.0", "paths": {}}', "is not an OpenAPI 3.0 or 3.1 document"),
        ('{"openapi": "3.1.0"}', "has no paths"),
        ('{"openapi": 3, "paths": []}', "is not an OpenAPI 3.0 or 3.1 document"),
        ("[" * 100_000, "nested|JSON|YAML|deeper"),
    ],
)
def test_another_file_is_an_error_with_its_name(tmp_path: Path, text: str | bytes, said: str) -> None:
    """It is never a traceback."""
    with pytest.raises(ConfigError, match=said) as failed:
        openapi_file.read_openapi_file(written(tmp_path, text))
    assert "openapi.yaml" in str(failed.value)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    """With the reason of the system."""
    with pytest.raises(ConfigError, match="No such file"):
        openapi_file.read_openapi_file(tmp_path / "openapi.yaml")


def test_references_are_resolved_with_what_is_beside_them() -> None:
    """Pointers are percent-encoded and escaped (RFC 6901)."""
    found = schema({"$ref": "#/components/schemas/a~1b%20c", "maxLength": 3}, **{"a/b c": {"type": "string"}})
    assert found == {"type": "string", "maxLength": 3}


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("other.yaml#/a", "outside of this document"),
        ("https://example.com/a", "outside of this document"),
        ("#/components/schemas/missing", "there is nothing at"),
        ("#/components/schemas/loop", "refers to itself"),
    ],
)
def test_a_reference_that_leads_nowhere_is_an_error(reference: str, said: str) -> None:
    """Nothing is requested from other places."""
    with pytest.raises(ConfigError, match=said):
        schema({"$ref": reference}, loop={"$ref": "#/components/schemas/loop"})


def test_combinations_become_one_schema() -> None:
    """``allOf`` adds up, a choice with null is what is left, and of another choice the types are known."""
    parts = [{"required": ["a"], "properties": {"a": {}}}, {"required": ["b"], "properties": {"b": {}}}]
    whole = schema({"allOf": parts, "properties": {"c": {}}})
    assert (set(whole["required"]), set(whole["properties"])) == ({"a", "b"}, {"a", "b", "c"})
    assert schema({"anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}]}) == {
        "type": "string",
        "maxLength": 3,
    }
    assert schema_types(schema({"oneOf": [{"type": "string"}, {"type": "integer"}]})) == {"string", "integer"}


def test_a_schema_that_contains_itself_ends() -> None:
    """And one that doubles at each of many levels is combined once for each."""
    twice = [{"$ref": "#/components/schemas/loop"}] * 2
    assert schema({"$ref": "#/components/schemas/loop"}, loop={"allOf": twice}) == {}
    levels = {f"s{n}": {"allOf": [{"$ref": f"#/components/schemas/s{n + 1}"}] * 2} for n in range(60)}
    assert schema({"$ref": "#/components/schemas/s0"}, **levels, s60={"type": "string"}) == {"type": "string"}


@pytest.mark.parametrize("value", [None, 1, "a", [], {"properties": 1, "allOf": 2, "required": "x", "type": 3}])
def test_wrong_members_are_no_traceback(value: object) -> None:
    """A document may be wrong in any place."""
    assert isinstance(schema(value), dict)
    assert json.dumps(sorted(schema_types(schema(value))))


def test_a_document_in_yaml_is_no_config(tmp_path: Path) -> None:
    """Its texts may contain ``${NAME}``, and its numbers be as large as a 64-bit integer."""
    text = "openapi: 3.0.3\ninfo: {title: 'costs ${PRICE}', x: 9223372036854775807}\npaths: {}\n"
    info = openapi_file.read_openapi_file(written(tmp_path, text)).data["info"]
    assert info == {"title": "costs ${PRICE}", "x": 2**63 - 1}


def test_a_wrong_reference_is_named_with_its_place(tmp_path: Path) -> None:
    """As a JSON pointer, because a large document has many."""
    text = '{"openapi": "3.1.0", "paths": {"/a": {"get": {"x": [{"$ref": "other.yaml"}]}}}}'
    read = openapi_file.read_openapi_file(written(tmp_path, text))
    with pytest.raises(ConfigError, match=r"openapi.yaml#/paths/~1a/get/x/0/\$ref"):
        read.merged_schema({"$ref": "other.yaml"})
