"""Reads an OpenAPI 3.0 or 3.1 document from a file, and resolves what it refers to within itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from crossdock.errors import ConfigError
from crossdock.values import exact_json, yaml_reader
from crossdock.values.json_paths import escaped_pointer_part
from crossdock.values.safe_local_files import open_regular_file, read_rest_within_limit

Json = Mapping[str, Any]

MAX_BYTES = 16 << 20
MAX_HOPS = 32  # of references to references
METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True, slots=True)
class OpenApiDocument:
    name: str
    data: Json
    _known: dict[str, Json] = field(default_factory=dict, repr=False, compare=False)  # schemas by reference

    def paths_with_server_prefixes(self) -> Iterator[tuple[str, Json]]:
        """Yield each path below the base address of each server, with its item. The same path may come twice."""
        for path, item in mapping_or_empty(self.data.get("paths")).items():
            resolved = self.resolved(mapping_or_empty(item))
            for prefix in dict.fromkeys(self._server_paths()) or ("",):
                yield f"{prefix}{path}", resolved

    def resolved(self, value: Json) -> Json:
        """Return *value*, or what its ``$ref`` names within the document, with the members beside the reference."""
        for _ in range(MAX_HOPS):
            reference = value.get("$ref")
            if not isinstance(reference, str):
                return value
            beside = {name: inner for name, inner in value.items() if name != "$ref"}
            value = {**self._value_at_reference(reference), **beside}
        raise ConfigError(
            "a $ref refers to itself", where=self._location_text_of_reference(reference), code="openapi_unsuitable"
        )

    def merged_schema(self, value: object) -> Json:
        """Resolve and merge a schema to one object. A choice with null is reduced; of others only types remain."""
        reference = mapping_or_empty(value).get("$ref")
        if not isinstance(reference, str):
            return self._with_parts_merged(mapping_or_empty(value))
        if reference not in self._known:
            self._known[reference] = {}  # a schema may contain itself; each is combined once
            self._known[reference] = self._with_parts_merged(self.resolved({"$ref": reference}))
        beside = {name: inner for name, inner in mapping_or_empty(value).items() if name != "$ref"}
        return {**self._known[reference], **beside}

    def _with_parts_merged(self, value: Json) -> Json:
        found = dict(value)
        for part in list_or_empty(found.pop("allOf", None)):
            inner = self.merged_schema(part)
            for name in ("properties", "required"):
                both = _merged_lists_or_objects(inner.get(name), found.get(name))
                inner = {**inner, **({name: both} if both else {})}
            found = {**inner, **{name: each for name, each in found.items() if name not in {"properties", "required"}}}
        choices = [
            self.merged_schema(part) for key in ("anyOf", "oneOf") for part in list_or_empty(found.pop(key, None))
        ]
        choices = [each for each in choices if schema_types(each) != {"null"}]
        if len(choices) == 1:
            found = {**choices[0], **found}
        elif choices and all(map(schema_types, choices)):
            found.setdefault("type", sorted(set().union(*map(schema_types, choices))))
        return found

    def _value_at_reference(self, reference: str) -> Json:
        if not reference.startswith("#/"):
            message = f"$ref: {reference} is outside of this document"
            hint = "bundle the document into one file first"
            raise ConfigError(
                message, where=self._location_text_of_reference(reference), hint=hint, code="openapi_unsuitable"
            )
        value: Any = self.data
        for part in reference[2:].split("/"):
            name = unquote(part).replace("~1", "/").replace("~0", "~")
            value = value.get(name) if isinstance(value, Mapping) else None
        if not isinstance(value, Mapping):
            raise ConfigError(
                f"$ref: there is nothing at {reference}",
                where=self._location_text_of_reference(reference),
                code="openapi_unsuitable",
            )
        return value

    def _location_text_of_reference(self, reference: object) -> str:
        """Return the file and the JSON pointer of the first place with this ``$ref``."""
        left: list[tuple[str, Any]] = [("", self.data)]
        while left:
            pointer, value = left.pop()
            if isinstance(value, Mapping):
                if value.get("$ref") == reference:
                    return f"{self.name}#{pointer}/$ref"
                left += [
                    (f"{pointer}/{escaped_pointer_part(str(name))}", each) for name, each in reversed([*value.items()])
                ]
            elif isinstance(value, list):
                left += [(f"{pointer}/{number}", each) for number, each in reversed([*enumerate(value)])]
        return self.name

    def _server_paths(self) -> Iterator[str]:
        for server in list_or_empty(self.data.get("servers")):
            url = mapping_or_empty(server).get("url")
            if isinstance(url, str):
                try:
                    yield urlsplit(url).path.rstrip("/")
                except ValueError:
                    continue


def read_openapi_file(path: Path) -> OpenApiDocument:
    """Read a document in JSON or YAML, of at most `MAX_BYTES`."""
    return openapi_document_or_raise(parsed_json_or_yaml_file(path), str(path))


def parsed_json_or_yaml_file(path: Path) -> object:
    """Return the JSON value of a file in JSON or YAML, of at most `MAX_BYTES`."""
    name = str(path)
    try:
        with open_regular_file(path) as file:
            text = read_rest_within_limit(file, MAX_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", where=name, code="file_unreadable") from error
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8 text", where=name, code="openapi_unsuitable") from None
    return _parsed_json_or_yaml(text, name)


def openapi_document_or_raise(parsed_value: object, name: str) -> OpenApiDocument:
    """Return *parsed_value* as a document, if it is one of version 3.0 or 3.1."""
    version = parsed_value.get("openapi") if isinstance(parsed_value, Mapping) else None
    if not isinstance(parsed_value, Mapping) or not str(version).startswith(("3.0", "3.1")):
        raise ConfigError(
            "is not an OpenAPI 3.0 or 3.1 document: see its member openapi", where=name, code="openapi_unsuitable"
        )
    if not isinstance(parsed_value.get("paths"), Mapping):
        raise ConfigError("has no paths", where=name, code="openapi_unsuitable")
    return OpenApiDocument(name, parsed_value)


def _parsed_json_or_yaml(text: str, name: str) -> object:
    if text.lstrip().startswith("{"):
        try:
            return exact_json.loads(text)
        except ValueError as error:
            raise ConfigError(f"is not valid JSON: {error}", where=name, code="openapi_unsuitable") from None
    return yaml_reader.parse_yaml_mapping(text, name, None).data


def mapping_or_empty(value: object) -> Json:
    """Return *value* if it is an object, else an empty one: a document may be wrong in any place."""
    return value if isinstance(value, Mapping) else {}


def schema_types(schema: Json) -> set[str]:
    stated = schema.get("type")
    if stated is None and "properties" in schema:
        return {"object"}
    return {str(each) for each in (stated if isinstance(stated, list) else [stated]) if each is not None}


def list_or_empty(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _merged_lists_or_objects(one: object, other: object) -> Any:
    if isinstance(one, list) or isinstance(other, list):
        return [*list_or_empty(one), *list_or_empty(other)]
    return {**mapping_or_empty(one), **mapping_or_empty(other)}
