"""What the values of a key may be, in words, from its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from site_builder.markdown_text import code

Schema = Mapping[str, Any]
_SECRETS = "^(env|file):.+"
_WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "`true` or `false`",
    "object": "section",
    "array": "list",
}
_FORMATS = {"date": "date", "date-time": "instant"}


class Place(Protocol):
    """Where a section is explained."""

    @property
    def page(self) -> str: ...
    @property
    def anchor(self) -> str: ...
    @property
    def label(self) -> str: ...


def kind_of(definition: Schema) -> str:
    return str(definition["properties"].get("kind", {}).get("const", ""))


def references(member: Schema) -> list[str]:
    """Return the names of the definitions that *member* refers to, in order."""
    found = [_name(member)] if "$ref" in member else []
    inner = [member.get(name) for name in ("items", "additionalProperties")]
    inner += member.get("patternProperties", {}).values()
    inner += [each for name in ("anyOf", "oneOf", "allOf", "prefixItems") for each in member.get(name, ())]
    for each in inner:
        found += references(each) if isinstance(each, Mapping) else []
    return list(dict.fromkeys(found))


def default_text(member: Schema) -> str:
    """Return the default as code; empty if there is none, or if it is what an empty section has."""
    default = member.get("default")
    if default is None or default == [] or isinstance(default, dict):
        return ""
    return _code(int(default) if isinstance(default, float) and default.is_integer() else default)


class Types:
    """Writes types for one page, with links to the sections that other definitions have. *section* names an object."""

    def __init__(self, sections: Mapping[str, Place], page: str, *, section: str = "section") -> None:
        self._sections, self._page, self._section = sections, page, section

    def is_section(self, anchor: str) -> bool:
        return any(place.page == self._page and place.anchor == anchor for place in self._sections.values())

    def text(self, member: Schema) -> str:
        branches = [each for each in (*member.get("anyOf", ()), *member.get("oneOf", ())) if each.get("type") != "null"]
        if branches:
            sections = [each for each in branches if "$ref" in each]
            others = [self.text(each) for each in branches if "$ref" not in each]
            if {"whole number", "number"} <= {*others}:
                others.remove("whole number")
            return " or ".join(dict.fromkeys([*others, *([self._links(sections)] if sections else [])]))
        if "$ref" in member:
            return self._links([member])
        values = member.get("enum", [member["const"]] if "const" in member else [])
        return _alternatives(map(_code, values)) if values else self._of_type(member)

    def _of_type(self, member: Schema) -> str:
        kinds = member.get("type", "any value")
        if kinds == "array":
            items: Schema = member.get("items") or next(iter(member.get("prefixItems", ())), {})
            return f"list of {self.text(items)}"
        if kinds == "object":
            values = [*member.get("patternProperties", {}).values(), member.get("additionalProperties")]
            value = next((each for each in values if isinstance(each, Mapping) and each), None)
            return f"{self.text(value)}, by name" if value else self._section
        if kinds == "string":
            return _text(member)
        return " or ".join(_WORDS.get(each, each) for each in ([kinds] if isinstance(kinds, str) else kinds)) + _limits(
            member
        )

    def _links(self, members: Iterable[Schema]) -> str:
        places = [self._sections[_name(member)] for member in members]
        pages = {place.page for place in places}
        if len(places) > 2 and len(pages) == 1 and (page := pages.pop()) != self._page:
            return f"[{page.replace('_', ' ')}]({page}.md)"
        return _alternatives(f"[{code(place.label)}]({self._address(place)})" for place in places)

    def _address(self, place: Place) -> str:
        return f"#{place.anchor}" if place.page == self._page else f"{place.page}.md#{place.anchor}"


def _name(reference: Schema) -> str:
    return str(reference["$ref"]).removeprefix("#/$defs/")


def _code(value: object) -> str:
    return code(value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False))


def _alternatives(texts: Iterable[str]) -> str:
    found = list(texts)
    return ", ".join(found) if len(found) > 2 else " or ".join(found)


def _text(member: Schema) -> str:
    if member.get("pattern") == _SECRETS:
        return "secret: `env:NAME` or `file:PATH`"
    most = member.get("maxLength")
    return _FORMATS.get(member.get("format", ""), f"text, at most {most:,} characters" if most else "text")


def _limits(member: Schema) -> str:
    least, most, above = member.get("minimum"), member.get("maximum"), member.get("exclusiveMinimum")
    words = [f"more than {above:,}"] if above is not None else []
    if least is not None and most is not None:
        words.append(f"{least:,} to {most:,}")
    elif least is not None:
        words.append(f"at least {least:,}")
    elif most is not None:
        words.append(f"at most {most:,}")
    return "".join(f", {each}" for each in words)
