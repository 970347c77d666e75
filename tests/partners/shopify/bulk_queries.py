"""The rules for queries of bulk operations, and their results as lines of JSON.

Rules: shopify.dev/docs/api/usage/bulk-operations/queries. The texts of the refusals are Shopify's own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from graphql import FieldNode, GraphQLError, TypeInfo, TypeInfoVisitor, Visitor, get_named_type, parse, visit
from graphql.type import is_list_type, is_non_null_type
from tests.partners.shopify.execution import InvalidQueryError, Prepared, prepared
from tests.partners.shopify.schema import admin_schema

MAX_CONNECTIONS = 5
MAX_DEPTH = 2
"""Levels of connections inside the outermost one."""


@dataclass(slots=True)
class _Found:
    connections: list[FieldNode] = field(default_factory=list)
    depth: int = 0
    by_nodes: list[str] = field(default_factory=list)
    parents_without_id: list[str] = field(default_factory=list)
    in_list: bool = False


class _Connections(Visitor):
    """Looks at every connection of a query, from the outside to the inside."""

    def __init__(self, types: TypeInfo) -> None:
        super().__init__()
        self._types, self._open, self.found = types, list[FieldNode](), _Found()
        self._lists = 0

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        kind = self._types.get_type()
        if self._is_connection(kind):
            found = self.found
            found.in_list = found.in_list or self._lists > 0
            if self._open and not _selects(self._open[-1], "edges", "node", "id"):
                found.parents_without_id.append(self._open[-1].name.value)
            found.by_nodes += [node.name.value] if _selects(node, "nodes") else []
            found.connections.append(node)
            self._open.append(node)
            found.depth = max(found.depth, len(self._open) - 1)
        elif self._is_plain_list(node, kind):
            self._lists += 1

    def leave_field(self, node: FieldNode, *_: Any) -> None:
        if self._open and self._open[-1] is node:
            self._open.pop()
        elif self._is_plain_list(node, self._types.get_type()):
            self._lists -= 1

    @staticmethod
    def _is_connection(kind: Any) -> bool:
        return kind is not None and get_named_type(kind).name.endswith("Connection")

    @staticmethod
    def _is_plain_list(node: FieldNode, kind: Any) -> bool:
        inner = kind.of_type if is_non_null_type(kind) else kind
        return is_list_type(inner) and node.name.value not in {"edges", "nodes"}


def _selects(node: FieldNode, *path: str) -> bool:
    if not path:
        return True
    selections = node.selection_set.selections if node.selection_set else ()
    inside = (one for one in selections if isinstance(one, FieldNode) and one.name.value == path[0])
    return any(one.alias is None and _selects(one, *path[1:]) for one in inside)


def checked(query: str) -> tuple[Prepared | None, list[str]]:
    """The query if it can be run in bulk, and otherwise what is wrong with it."""
    try:
        document = parse(query)
    except GraphQLError as error:
        return None, [f"Invalid bulk query: {error.message}"]
    if any(getattr(one, "operation", None) and one.operation.value != "query" for one in document.definitions):  # type: ignore[attr-defined]  # only operations have one
        return None, ["Invalid operation type. Only `query` operations are supported."]
    try:
        ready = prepared(query)
    except InvalidQueryError as invalid:
        return None, [f"Invalid bulk query: {error.message}" for error in invalid.errors]
    types = TypeInfo(admin_schema())
    visitor = _Connections(types)
    visit(ready.document, TypeInfoVisitor(types, visitor))
    return ready, list(_problems(ready, visitor.found))


def _problems(ready: Prepared, found: _Found) -> Iterator[str]:
    tops = [one.name.value for one in ready.operation.selection_set.selections if isinstance(one, FieldNode)]
    if len(tops) != 1:
        yield "Bulk queries must contain a single top level field."
    for name in {"node", "nodes"}.intersection(tops):
        yield f"Bulk queries cannot contain a top level `{name}` field."
    if found.by_nodes:
        names = ", ".join(f"'{name}'" for name in found.by_nodes)
        yield (
            "All connection fields in a bulk query must select their contents using 'edges' > 'node', e.g: "
            "'products { edges { node {'. Selecting via 'nodes' is not supported. "
            f"Invalid connection fields: {names}."
        )
    if len(found.connections) > MAX_CONNECTIONS:
        yield f"Bulk queries cannot contain more than {MAX_CONNECTIONS} connections."
    if found.depth > MAX_DEPTH:
        yield f"Bulk queries cannot contain connections with a nesting depth greater than {MAX_DEPTH}."
    if found.parents_without_id:
        yield (
            "The parent 'node' field for a nested connection must select the 'id' field without an alias and must be "
            f"of 'ID' return type. Connection fields without 'id': {', '.join(found.parents_without_id)}."
        )
    if found.in_list:
        yield "Queries that contain a connection field within a list field are not currently supported."
    if not found.connections:
        yield "Bulk queries must contain at least one connection."


@dataclass(frozen=True, slots=True)
class Lines:
    """The result: one object a line, each with the id of the object that it was nested in."""

    lines: list[dict[str, Any]]
    roots: int

    def content(self, limit: int | None = None) -> bytes:
        """JSONL; slashes are escaped, as Shopify does."""
        return b"".join(json.dumps(one).replace("/", "\\/").encode() + b"\n" for one in self.lines[:limit])


def lines_of(data: Any, *, grouped: bool, seed: int) -> Lines:
    """The objects of all connections in *data*.

    Without grouping, which is the default as of version 2026-01, nothing is promised of their order: children may be
    before and after their parents, and are shuffled here.
    """
    found = list(_flat(data, None))
    roots = sum(1 for one in found if "__parentId" not in one)
    if not grouped:
        random.Random(seed).shuffle(found)
    return Lines(found, roots)


def _flat(value: Any, parent: str | None) -> Iterator[dict[str, Any]]:
    """The objects of the connections in *value*, each before its children."""
    for member in value.values() if isinstance(value, dict) else ():
        if isinstance(member, dict) and "edges" in member:
            for edge in member["edges"]:
                node = edge["node"]
                own = {name: one for name, one in node.items() if not (isinstance(one, dict) and "edges" in one)}
                yield {**own, **({"__parentId": parent} if parent else {})}
                yield from _flat(node, node.get("id"))
        elif isinstance(member, dict):
            yield from _flat(member, parent)
