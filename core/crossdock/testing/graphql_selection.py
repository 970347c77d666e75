"""What a GraphQL request selects: an API answers with these members alone, and a fake of it often with more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from msgspec import Struct, field

from crossdock.values import exact_json
from crossdock.values.graphql_tokens import graphql_tokens
from crossdock.values.json_paths import unescaped_pointer_part

_WORD = re.compile(r"[_A-Za-z]\w*")
_DEEPEST = 64

Leaf = tuple[tuple[str, ...], Any]
"""The names of arguments and of members on the way to a value, and the value."""


class Field(Struct):
    """A selected member.

    Attributes:
        key: Its name in the answer: the alias, if it has one.
        fields: What is selected of it; empty for a value.
        arguments: With the values of variables.
    """

    name: str
    key: str
    arguments: dict[str, Any] = field(default_factory=dict)
    fields: list[Field] = field(default_factory=list)


class GraphQLRequest(Struct, frozen=True):
    """The operation of a request.

    Attributes:
        fields: What is selected of ``data``.
    """

    fields: Sequence[Field]
    query: str
    variables: Mapping[str, Any]

    @classmethod
    def parse_body(cls, body: bytes | None) -> Self | None:
        """Read the body of a request; None if it is none of GraphQL, or cannot be read."""
        try:
            asked = exact_json.loads(body or b"null")
        except ValueError:
            return None
        query = asked.get("query") if isinstance(asked, dict) else None
        if not isinstance(query, str) or "{" not in query:
            return None
        variables = asked.get("variables")
        variables = variables if isinstance(variables, dict) else {}
        try:
            return cls(
                _GraphQLDocumentParser(query, variables).parse_operation(asked.get("operationName")), query, variables
            )
        except (ValueError, RecursionError):
            return None

    def answer_with_selected_members(self, answer: Any) -> Any:
        """Return the body of an answer with the selected members of ``data`` alone."""
        if not isinstance(answer, dict) or "data" not in answer:
            return answer
        return {**answer, "data": _keep_selected_members(answer["data"], self.fields)}

    def unselected_members(self, answer: Any) -> list[str]:
        """Return where an answer has members that are not selected."""
        data = answer.get("data") if isinstance(answer, dict) else None
        return list(dict.fromkeys(_unselected_places(data, self.fields, "/data")))

    def selects(self, pointer: str) -> bool:
        """Return whether a member of answers is selected, or a part of a value that is selected whole."""
        names = [unescaped_pointer_part(part) for part in pointer.split("/")[1:]]
        fields = self.fields
        for name in (each for each in names[1:] if each != "*" and not each.isdigit()):
            found = [each for each in fields if each.key == name]
            if not found:
                return False
            fields = [inner for each in found for inner in each.fields]
            if not fields:
                return True
        return names[:1] == ["data"]

    def arguments(self) -> Iterator[Leaf]:
        """Yield the arguments of what is selected of ``data`` directly."""
        for each in self.fields:
            yield from leaf_values_with_paths(each.arguments)


def leaf_values_with_paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[Leaf]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaf_values_with_paths(inner, (*path, name))
    elif isinstance(value, list):
        for inner in value:
            yield from leaf_values_with_paths(inner, path)
    else:
        yield path, value


def _keep_selected_members(value: Any, fields: Sequence[Field]) -> Any:
    if isinstance(value, list):
        return [_keep_selected_members(each, fields) for each in value]
    if not isinstance(value, dict) or not fields:
        return value
    found = _selections_by_key(fields)
    return {name: _keep_selected_members(inner, found[name]) for name, inner in value.items() if name in found}


def _unselected_places(value: Any, fields: Sequence[Field], place: str) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _unselected_places(each, fields, place)
    elif isinstance(value, dict) and fields:
        found = _selections_by_key(fields)
        for name, inner in value.items():
            if name not in found:
                yield f"{place}/{name}"
            else:
                yield from _unselected_places(inner, found[name], f"{place}/{name}")


def _selections_by_key(fields: Sequence[Field]) -> dict[str, list[Field]]:
    """Return what is selected of each member, which may be selected several times."""
    found: dict[str, list[Field]] = {}
    for each in fields:
        found.setdefault(each.key, []).extend(each.fields)
    return found


class _GraphQLDocumentParser:
    """Reads a document without a schema. Conditions of types and directives are not judged: they select.

    Raises:
        ValueError: If it is none.
    """

    def __init__(self, text: str, variables: Mapping[str, Any]) -> None:
        self._tokens = graphql_tokens(text)
        self._place, self._variables, self._depth = 0, dict(variables), 0
        self._fragments: dict[str, list[Field]] = {}
        self._spreads: list[tuple[list[Field], str]] = []

    def parse_operation(self, name: str | None) -> list[Field]:
        operations: list[tuple[str | None, list[Field]]] = []
        while self._peek_token():
            if self._peek_token() == "{":
                operations.append((None, self._parse_selection()))
                continue
            kind = self._take_token()
            own = self._take_token() if _WORD.fullmatch(self._peek_token()) else None
            if kind == "fragment":
                while self._peek_token() != "{":
                    self._take_token()
                self._fragments[own or ""] = self._parse_selection()
                continue
            self._parse_variable_defaults()
            self._skip_directives()
            operations.append((own, self._parse_selection()))
        self._spread_fragments()
        found = next((fields for own, fields in operations if own == name), operations[0][1] if operations else None)
        if found is None:
            raise ValueError("no operation")
        return found

    def _peek_token(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _take_token(self, expected: str | None = None) -> str:
        token = self._peek_token()
        if not token or expected not in {None, token}:
            raise ValueError(f"{token!r} instead of {expected!r}")
        self._place += 1
        return token

    def _parse_variable_defaults(self) -> None:
        if self._peek_token() != "(":
            return
        self._take_token("(")
        while self._peek_token() != ")":
            if self._take_token() == "$":
                name = self._take_token()
            elif self._tokens[self._place - 1] == "=":
                self._variables.setdefault(name, self._parse_value())
        self._take_token(")")

    def _parse_selection(self) -> list[Field]:
        self._take_token("{")
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("too deep")
        fields: list[Field] = []
        while self._peek_token() != "}":
            if self._peek_token() == "...":
                self._parse_spread_or_inline_fragment(fields)
            else:
                fields.append(self._parse_field())
        self._take_token("}")
        self._depth -= 1
        return fields

    def _parse_spread_or_inline_fragment(self, fields: list[Field]) -> None:
        self._take_token("...")
        if self._peek_token() not in {"{", "@", "on"}:
            self._spreads.append((fields, self._take_token()))
            self._skip_directives()
            return
        if self._peek_token() == "on":
            self._take_token()
            self._take_token()
        self._skip_directives()
        fields += self._parse_selection()

    def _parse_field(self) -> Field:
        name = key = self._take_token()
        if not _WORD.fullmatch(name):
            raise ValueError(f"{name!r} is no name")
        if self._peek_token() == ":":
            self._take_token()
            name = self._take_token()
        made = Field(name, key, self._parse_arguments())
        self._skip_directives()
        made.fields = self._parse_selection() if self._peek_token() == "{" else []
        return made

    def _parse_arguments(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self._peek_token() == "(":
            self._take_token()
            while self._peek_token() != ")":
                name = self._take_token()
                self._take_token(":")
                found[name] = self._parse_value()
            self._take_token(")")
        return found

    def _skip_directives(self) -> None:
        while self._peek_token() == "@":
            self._take_token()
            self._take_token()
            self._parse_arguments()

    def _parse_value(self) -> Any:
        found = self._take_token()
        if found == "$":
            return self._variables.get(self._take_token())
        if found == "[":
            listed = []
            while self._peek_token() != "]":
                listed.append(self._parse_value())
            self._take_token()
            return listed
        if found == "{":
            members = {}
            while self._peek_token() != "}":
                name = self._take_token()
                self._take_token(":")
                members[name] = self._parse_value()
            self._take_token()
            return members
        words = {"true": True, "false": False, "null": None}
        return words[found] if found in words else found.strip('"')

    def _spread_fragments(self) -> None:
        """Put the fields of fragments where they are used. A fragment may use others, and not itself."""
        for _ in range(len(self._fragments) + 1):
            for fields, name in self._spreads:
                fields += [each for each in self._fragments.get(name, ()) if each not in fields]
