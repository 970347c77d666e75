"""What commands print with ``--json``, from the types of the documents."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec

from crossdock.values.json_documents import migration_commands, plans_and_runs, project_record_and_state_commands
from crossdock.values.json_documents.document_types_by_command import DOCUMENTS
from crossdock.values.run_states_and_tally import RecordState, RecordTerm, RowTerm, StateWord
from crossdock.values.schema_descriptions_from_docstrings import docstring_by_class_member
from site_builder.markdown_text import code, escaped, paragraphs, table
from site_builder.schema_types import Schema, Types, references

_PAGE = "json_output"
_MODULES = (plans_and_runs, project_record_and_state_commands, migration_commands)
_TITLES = {"ApiUsage": "API usage", "SignOffReport": "The line of JSON in a sign-off report"}
_WORDS: Mapping[type, type[StateWord]] = {
    plans_and_runs.Rows: RowTerm,
    plans_and_runs.Records: RecordTerm,
    plans_and_runs.Open: RecordState,
}  # whose members have the meanings of these words
_WHOLE = {"object": "an object", "list of objects": "a list of objects"}
_INTRODUCTION = """# JSON output

With `--json` a command prints one document on stdout; what connectors print goes to stderr. The pages of
[commands](commands/index.md) have the members of each document, and this page has what several documents
have in common.

Times are RFC 3339, in UTC. `[]` stands for each element of a list, and `*` for each name in an object. The `code` of a
message is one of [errors](errors/index.md), and that of a rejected record one of the [reason codes](reason_codes.md).
Later versions may add members, so ignore those that you do not know ([stability](stability.md)).
"""


class _Object(NamedTuple):
    """A section of the page, about an object that several documents have."""

    label: str
    page: str = _PAGE

    @property
    def anchor(self) -> str:
        return self.label.lower().replace(" ", "-")


class _Schemas(NamedTuple):
    """The schemas of documents, by command, and those of the objects in them, by name."""

    documents: Mapping[str, Schema]
    objects: Mapping[str, Schema]

    @property
    def shared(self) -> list[str]:
        """The objects that are in several places."""
        members = (each for schema in self.objects.values() for each in schema["properties"].values())
        found = Counter(name for each in (*self.documents.values(), *members) for name in references(each))
        return [name for name in self.objects if found[name] > 1]


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of the page."""
    writer = _Writer(_PAGE)
    names = [*_schemas().shared, migration_commands.SignOffReport.__name__]
    yield f"reference/{_PAGE}.md", "\n".join((_INTRODUCTION, *map(writer.section, names)))


def documents_of(command: str) -> str:
    """Return what *command*, such as ``records list``, prints, for a page of a folder beside the page."""
    writer, found = _Writer(f"../{_PAGE}"), _schemas().documents
    usages = [each for each in found if re.fullmatch(rf"{command}(,? [A-Z-].*)?", each)]
    return "\n".join(writer.document(each, found[each]) for each in usages)


class _Writer:
    """Writes for one page, with links to the sections about objects that several documents have."""

    def __init__(self, page: str) -> None:
        self._shared = {name: _Object(_title(name)) for name in _schemas().shared}
        places = {
            name: each._replace(page=page if page == _PAGE else f"../{_PAGE}") for name, each in self._shared.items()
        }
        self._types = Types(places, page if page == _PAGE else "", section="object")

    def section(self, name: str) -> str:
        description = paragraphs(_schemas().objects[name].get("description", ""))
        return f"## {_title(name)}\n\n{description}\n{self._table(name)}"

    def document(self, usage: str, schema: Schema) -> str:
        tables = (self._table(name) for name in references(schema) if name not in self._shared)
        text = self._text(schema)
        return "\n".join((f"[JSON output](../{_PAGE}.md) of `crossdock {usage}`: {_WHOLE.get(text, text)}\n", *tables))

    def _table(self, name: str) -> str:
        return table(("member", "values", "", "meaning"), self._rows(name, ""))

    def _rows(self, name: str, before: str) -> Iterator[tuple[str, str, str, str]]:
        schema = _schemas().objects[name]
        for member, each in schema["properties"].items():
            place = f"{before}{member}"
            remarks = ["may be null"] * _may_be_null(each) + ["optional"] * (member not in schema["required"])
            yield code(place), self._text(each), ", ".join(remarks), escaped(each.get("description", ""))
            for inner in references(each):
                if inner not in self._shared:
                    yield from self._rows(inner, f"{place}{_step(each)}.")

    def _text(self, member: Schema) -> str:
        return self._types.text(self._without_tables(member)).replace("list of object", "list of objects")

    def _without_tables(self, schema: Any) -> Any:
        """Return *schema* with plain objects in place of those that have rows in the same table."""
        if isinstance(schema, Mapping):
            if schema.get("$ref", "").removeprefix("#/$defs/") not in {"", *self._shared}:
                return {"type": "object"}
            return {name: self._without_tables(each) for name, each in schema.items()}
        return [self._without_tables(each) for each in schema] if isinstance(schema, list) else schema


def _title(name: str) -> str:
    return _TITLES.get(name, re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize())


def _may_be_null(member: Schema) -> bool:
    return any(
        each.get("type") == "null" or None in each.get("enum", ()) for each in (member, *member.get("anyOf", ()))
    )


def _step(member: Schema) -> str:
    """Return what stands in the name of a member between that of *member* and those of the objects in it."""
    inner = next((each for each in member.get("anyOf", ()) if each.get("type") != "null"), member)
    if "items" in inner:
        return "[]" + _step(inner["items"])
    values = inner.get("additionalProperties")
    return ".*" + _step(values) if isinstance(values, Mapping) else ""


@cache
def _schemas() -> _Schemas:
    kinds = [*DOCUMENTS.values(), migration_commands.SignOffReport]
    documents, objects = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    ordered = {
        name: objects[name] | {"properties": _described(objects[name]["properties"], kind, docstrings)}
        for name, (kind, docstrings) in _classes().items()
        if name in objects
    }
    return _Schemas(dict(zip(DOCUMENTS, documents, strict=False)), ordered)


def _described(members: Mapping[str, Schema], kind: type, docstrings: dict[str, str]) -> dict[str, Schema]:
    """Return the *members* in the order of the source, with the docstrings below them as their descriptions."""
    texts = {word.value: f"{word.meaning[0].upper()}{word.meaning[1:]}." for word in _WORDS.get(kind, ())} | docstrings
    return {
        name: {**members[name], **({"description": texts[name]} if name in texts else {})}
        for name in kind.__annotations__
    }


def _classes() -> dict[str, tuple[type, dict[str, str]]]:
    """Return the types of objects by name, each with the docstrings below its members."""
    found: dict[str, tuple[type, dict[str, str]]] = {}
    for module in _MODULES:
        for node in ast.parse(inspect.getsource(module)).body:
            match node:
                case ast.ClassDef(name=name, bases=[ast.Name(id=base)]):
                    inherited = found[base][1] if base in found else {}
                    found[name] = vars(module)[name], inherited | docstring_by_class_member(node)
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call()):
                    found[name] = vars(module)[name], {}
    return found
