"""Reading of a config file. Findings have file, line and column."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from crossdock.errors import ConfigError, FindingsError
from crossdock.values import yaml_reader
from crossdock.values.local_files import read_bounded
from crossdock.values.yaml_reader import Content, Place

if TYPE_CHECKING:
    from pydantic import BaseModel

M = TypeVar("M", bound="BaseModel")
MAX_BYTES = 1 << 20
"""The limit for a config file."""
_SHOWN_FINDINGS = 50
V = TypeVar("V")
_SHOWN_CHARACTERS = 500
_A_SECTION = "must be a section of keys"
_MESSAGES = {
    "too_short": "name at least one",
    "tuple_type": "must be a list: [NAME]",
    "missing": "is missing",
    "extra_forbidden": "is not known",
    "string_type": "must be text",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "list_type": "must be a list",
    "decimal_type": "must be a number",
    "decimal_parsing": "must be a number",
    "date_type": "must be a date",
    "date_from_datetime_parsing": "must be a date",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "model_type": _A_SECTION,
    "model_attributes_type": _A_SECTION,
    "dict_type": _A_SECTION,
    "mapping_type": _A_SECTION,
    "union_tag_not_found": "kind is missing",
    "union_tag_invalid": "unknown kind; known: {expected_tags}",
}


def unknown(name: str, known: list[str]) -> str:
    spelled = {each.lower(): each for each in known}
    close = get_close_matches(name, known, n=1) or get_close_matches(name.lower(), spelled, n=1)
    return (
        f"unknown key; did you mean {spelled[close[0].lower()]!r}?"
        if close
        else f"unknown key; known: {', '.join(sorted(known))}"
    )


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed config file. *folder* is absolute, because an author's code may change the working folder."""

    path: Path
    folder: Path
    content: Content

    @property
    def data(self) -> Any:
        return self.content.data

    def where(self, place: Place) -> str:
        """Return ``file:line:column`` of *place*, or of the nearest place around it."""
        while place not in self.content.places:
            place = place[:-1]
        return ":".join(map(str, self.content.places[place]))

    def check(self, model: type[M], data: Any, place: Place = (), **context: Any) -> M:
        """Make a *model* of the values at *place*, or raise FindingsError with all findings."""
        from pydantic import ValidationError  # noqa: PLC0415  a file whose models nobody needs is read without it

        try:
            return model.model_validate(data, context={"folder": self.folder, **context})
        except ValidationError as error:
            raise _findings(self._finding(place, item) for item in error.errors(include_url=False)) from None

    def check_quoting(self) -> None:
        """Refuse all plain scalars that YAML reads differently from what people mean, with one FindingsError."""
        found = []
        for place, text in self.content.plain.items():
            is_constant = place[-1:] == ("const",)
            trap = yaml_reader.number_trap(text) or (yaml_reader.boolean_trap(text) if is_constant else None)
            if trap:
                found.append(f"{self.where(place)}: {_named(place)}{trap}")
        if found:
            raise _findings(found)

    def _finding(self, place: Place, item: Any) -> str:
        key = item["ctx"]["key"] if item["type"] == "unknown_key" else ()
        parts = (*item["loc"], *(key if isinstance(key, tuple) else (key,)))
        parts = tuple(part for part in parts if part != "[key]")  # pydantic adds it where a key itself is wrong
        for number, part in enumerate(parts, 1):
            if place in self.content.plain:
                break  # what follows names a choice: nothing is inside of a scalar
            if number == len(parts) or not self._is_choice(place, part, parts[number]):
                place = (*place, part)
        plain = self.content.plain.get(place)
        is_text = item["type"] == "string_type" or (plain is not None and _is_form(item))
        message = yaml_reader.must_be_text(plain) if is_text else message_of(item)
        return f"{self.where(place)}: {_named(place)}{message}"

    def _is_choice(self, place: Place, part: str | int, following: str | int) -> bool:
        """Return whether *part* of pydantic's path names a choice of a union, and is not in the file."""
        here = (*place, part)
        places = self.content.places
        return here not in places or ((*here, following) not in places and (*place, following) in places)


def _named(place: Place) -> str:
    return f"{'.'.join(map(str, place))}: " if place else ""


def _findings(found: Iterable[str]) -> FindingsError:
    findings = list(dict.fromkeys(found))
    more = [f"... and {len(findings) - _SHOWN_FINDINGS:,} more"] if len(findings) > _SHOWN_FINDINGS else []
    return FindingsError([*findings[:_SHOWN_FINDINGS], *more])


def _is_form(item: Any) -> bool:
    """Return whether text or a section is expected, as for a member of ``map``."""
    return item["type"] == "union_tag_not_found" and str(item["ctx"]["discriminator"]).endswith("()")


def read(path: Path, *overrides: Path) -> Document:
    """Read a config file of at most `MAX_BYTES`, and files whose values replace or add to those of the ones before."""
    document = Document(path, path.parent.absolute(), reduce(merged, map(_content, (path, *overrides))))
    document.check_quoting()
    return document


def _content(path: Path) -> Content:
    try:
        with path.open("rb") as file:
            raw = read_bounded(file, MAX_BYTES)
    except FileNotFoundError as error:
        raise ConfigError("there is no such config file", where=str(path), hint="name one with -C FILE") from error
    except OSError as error:
        raise ConfigError(f"the config file cannot be read: {error.strerror}", where=str(path)) from error
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode()
        where = yaml_reader.place_in(before, len(before), str(path))
        raise ConfigError("is not UTF-8 text", where=where) from None
    return yaml_reader.parse(text, str(path), os.environ)


def merged(content: Content, later: Content) -> Content:
    """Merge sections, which keep their origin in *content*. *later* replaces everything else, lists as a whole."""
    data, replaced = dict(content.data), set(_replaced(content.data, later.data, ()))
    _merge(data, later.data)
    places = _kept(content.places, replaced)
    return Content(data, later.places | places, _kept(content.plain, replaced) | later.plain)


def _merge(data: dict[str, Any], later: Mapping[str, Any]) -> None:
    for key, value in later.items():
        if isinstance(value, dict) and isinstance(data.get(key), dict):
            data[key] = dict(data[key])
            _merge(data[key], value)
        else:
            data[key] = value


def _replaced(data: Mapping[str, Any], later: Mapping[str, Any], place: Place) -> Iterator[Place]:
    for key in data.keys() & later.keys():
        if isinstance(data[key], dict) and isinstance(later[key], dict):
            yield from _replaced(data[key], later[key], (*place, key))
        else:
            yield (*place, key)


def _kept(values: Mapping[Place, V], replaced: set[Place]) -> dict[Place, V]:
    return {
        place: value
        for place, value in values.items()
        if not any(place[:size] in replaced for size in range(1, len(place) + 1))
    }


def message_of(item: Any) -> str:
    """Return the message for an item of `pydantic.ValidationError.errors`, never with the value."""
    if item["type"] in _MESSAGES:
        return _MESSAGES[item["type"]].format(**item.get("ctx", {}))
    message: str = item["msg"].removeprefix("Value error, ")
    return message if len(message) <= _SHOWN_CHARACTERS else f"{message[:_SHOWN_CHARACTERS]} ..."
