"""Reading of a config file. Findings have file, line and column."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from crossdock.errors import ConfigError, CrossdockError, FindingsError
from crossdock.values import python_config_reader, yaml_reader
from crossdock.values.finding_places import PlacedFinding, findings_of_nearest_choice, place_and_choices
from crossdock.values.local_files import read_bounded
from crossdock.values.yaml_reader import Content, Place

if TYPE_CHECKING:
    from pydantic import BaseModel

M = TypeVar("M", bound="BaseModel")
MAX_BYTES = 1 << 20
"""The limit for a config file."""
_SHOWN_FINDINGS = 50
_SHOWN_VALUES = 200  # characters
V = TypeVar("V")
_SHOWN_CHARACTERS = 500
_IN_YAML = {"True": "true", "False": "false", "None": "null"}
_CONSTANT = re.compile("(?<!')\\b(True|False|None)\\b(?!')")
_OF_KEY = "[key]"
"""What pydantic adds to the place of a key that is itself wrong."""
OF_TYPE = ("_type", "_parsing", "_from_float", "literal_error", "is_instance_of")
"""Ends of pydantic's types of errors for a value of a wrong type."""
_A_SECTION = "must be a section of keys"
_AN_INSTANT = "must be an instant with its offset, such as 2026-12-24T12:00:00+01:00"
_MESSAGES = {
    "too_short": "name at least {min_length}",
    "tuple_type": "must be a list: [NAME]",
    "missing": "is missing",
    "extra_forbidden": "is not known",
    "string_type": "must be text",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "list_type": "must be a list",
    "decimal_type": "must be a number",
    "decimal_parsing": "must be a number",
    "date_type": "must be a date",
    "datetime_type": _AN_INSTANT,
    "datetime_parsing": _AN_INSTANT,
    "datetime_from_date_parsing": _AN_INSTANT,
    "timezone_aware": _AN_INSTANT,
    "path_type": "must be the path of a file or folder, as text",
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


def unknown_key_message(name: str, known: list[str]) -> str:
    spelled = {each.lower(): each for each in known}
    close = get_close_matches(name, known, n=1) or get_close_matches(name.lower(), spelled, n=1)
    return (
        f"unknown key; did you mean {spelled[close[0].lower()]!r}?"
        if close
        else f"unknown key; known: {', '.join(sorted(known))}"
    )


ConfigSource = Path | Mapping[str, Any]
"""A config file, or the same as values in memory."""
OF_MAPPING = Path("config")
"""What messages name in place of the file."""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed config file.

    Attributes:
        folder: Absolute, because an author's code may change the working folder.
        warnings: What checks have found that is right for now, each with its place.
    """

    path: Path
    folder: Path
    content: Content
    warnings: dict[str, None] = field(default_factory=dict, compare=False)

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

        renamed = list[tuple[Any, str, str]]()
        try:
            checked = model.model_validate(data, context={"folder": self.folder, "renamed": renamed, **context})
        except ValidationError as error:
            items = (item for item in error.errors(include_url=False) if not _has_wrong_items(item))
            found = findings_of_nearest_choice(self._finding(place, item) for item in items)
            values = _values_of_missing_keys(model, data, place, found, {"folder": self.folder, **context})
            raise _findings_error(self._sentence(each) + values.get(each.absent, "") for each in found) from None
        for section, old, new in renamed:
            key = (*place, *(_path_to(section, data) or ()), old)
            advice = f"is called {new!r} now; rename it, because the next minor release does not know it any more"
            self.warnings[f"{self.where(key)}: {_place_prefix(key)}{advice}"] = None
        return checked

    def check_quoting(self) -> None:
        """Refuse all plain scalars that YAML reads differently from what people mean, with one FindingsError."""
        found = []
        for place, text in self.content.plain.items():
            is_constant = place[-1:] == ("const",)
            trap = yaml_reader.number_trap(text) or (yaml_reader.boolean_trap(text) if is_constant else None)
            if trap:
                found.append(f"{self.where(place)}: {_place_prefix(place)}{trap}")
        if found:
            raise _findings_error(found)

    def _finding(self, start: Place, item: Any) -> PlacedFinding:
        path = [part for part in item["loc"] if part != _OF_KEY]
        key: Any = item["ctx"]["key"] if item["type"] == "unknown_key" else ()
        if item["type"] == "missing":
            key = path.pop()
        key = key if isinstance(key, tuple) else (key,)
        is_absent = item["type"] == "missing"
        place, choices = place_and_choices(
            start, path, () if is_absent else key, lambda each: each in self.content.places
        )
        place = (*place, *key) if is_absent else place
        plain, short = self.content.plain.get(place), finding_message(item)
        is_text = item["type"] == "string_type" or (plain is not None and _expects_form(item))
        message = yaml_reader.not_text_message(plain) if is_text else short
        if _OF_KEY in item["loc"] and short.startswith("must "):
            message = short = f"the key {short}"
        absent = place if is_absent else None
        if item["type"] == "union_tag_not_found" and isinstance(item["input"], dict) and not _expects_form(item):
            absent = (*place, item["ctx"]["discriminator"].strip("'"))
        return PlacedFinding(place, choices, message, short, of_type=item["type"].endswith(OF_TYPE), absent=absent)

    def _sentence(self, finding: PlacedFinding) -> str:
        return f"{self.where(finding.place)}: {_place_prefix(finding.place)}{finding.message}"


def _path_to(wanted: Any, data: Any) -> Place | None:
    """Return the keys that lead to this very object in *data*."""
    if data is wanted:
        return ()
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    paths = ((key, _path_to(wanted, value)) for key, value in items)
    return next(((key, *path) for key, path in paths if path is not None), None)


def _values_of_missing_keys(
    model: type[M], data: Any, start: Place, found: Iterable[PlacedFinding], context: Mapping[str, Any]
) -> dict[Place | None, str]:
    """Return the values that missing keys may have, where they are few, as the end of a message."""
    from pydantic import ValidationError  # noqa: PLC0415  as above

    places = {f"?{number}": each.absent for number, each in enumerate(found) if each.absent is not None}
    filled = deepcopy(data) if places else None
    for name, (*section, key) in places.items():
        reduce(lambda inner, part: inner[part], section[len(start) :], filled)[key] = name
    try:  # each name is refused with the known values, if there are such
        model.model_validate(filled, context={"renamed": [], **context})
    except ValidationError as error:
        items = error.errors(include_url=False)
    except CrossdockError:
        return {}  # of an author's code, which had no say before
    else:
        return {}
    known: dict[Place | None, str] = {}
    for item in items:
        details = item.get("ctx", {})
        name = details.get("tag", item["input"])
        values = details.get("expected_tags" if "tag" in details else "expected", "")
        if isinstance(name, str) and name in places and 0 < len(values) <= _SHOWN_VALUES:
            known[places[name]] = f"; known: {values}"
    return known


def _place_prefix(place: Place) -> str:
    return f"{'.'.join(map(str, place))}: " if place else ""


def _findings_error(found: Iterable[str]) -> FindingsError:
    findings = list(dict.fromkeys(found))
    more = [f"... and {len(findings) - _SHOWN_FINDINGS:,} more"] if len(findings) > _SHOWN_FINDINGS else []
    return FindingsError([*findings[:_SHOWN_FINDINGS], *more])


def _has_wrong_items(item: Any) -> bool:
    """Return whether a list is only too short for pydantic because its items, which are told, are wrong."""
    given = item["input"]
    is_long = isinstance(given, list) and len(given) >= item.get("ctx", {}).get("min_length", 0)
    return item["type"] == "too_short" and is_long


def _expects_form(item: Any) -> bool:
    """Return whether text or a section is expected, as for a member of ``map``."""
    return item["type"] == "union_tag_not_found" and str(item["ctx"]["discriminator"]).endswith("()")


def read(first: ConfigSource, *overrides: ConfigSource) -> Document:
    """Read a config file of at most `MAX_BYTES`, and files whose values replace or add to those of the ones before.

    Relative paths in a mapping begin in the working folder.
    """
    path = OF_MAPPING if isinstance(first, Mapping) else first
    document = Document(path, _folder_of(path), reduce(merged, map(_read_content, (first, *overrides))))
    document.check_quoting()
    return document


def _folder_of(path: Path) -> Path:
    try:
        return path.parent.absolute()
    except FileNotFoundError:
        message, hint = "the working folder does not exist any more", "change to a folder that exists"
        raise ConfigError(message, where=str(path), hint=hint, code="folder_missing") from None


def _read_content(source: ConfigSource) -> Content:
    if isinstance(source, Mapping):
        return python_config_reader.read_values(source, str(OF_MAPPING), os.environ)
    path = source
    try:
        with path.open("rb") as file:
            raw = read_bounded(file, MAX_BYTES)
    except FileNotFoundError as error:
        raise ConfigError(
            "there is no such config file", where=str(path), hint="name one with -C FILE", code="config_missing"
        ) from error
    except OSError as error:
        raise ConfigError(
            f"the config file cannot be read: {error.strerror}", where=str(path), code="config_unreadable"
        ) from error
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode()
        where = yaml_reader.place_in(before, len(before), str(path))
        raise ConfigError("is not UTF-8 text", where=where, code="config_unreadable") from None
    return yaml_reader.parse(text, str(path), os.environ)


def merged(content: Content, later: Content) -> Content:
    """Merge sections, which keep their origin in *content*. *later* replaces everything else, lists as a whole."""
    data, replaced = dict(content.data), set(_replaced_places(content.data, later.data, ()))
    _merge(data, later.data)
    places = _without_replaced(content.places, replaced)
    return Content(data, later.places | places, _without_replaced(content.plain, replaced) | later.plain)


def _merge(data: dict[str, Any], later: Mapping[str, Any]) -> None:
    for key, value in later.items():
        if isinstance(value, dict) and isinstance(data.get(key), dict):
            data[key] = dict(data[key])
            _merge(data[key], value)
        else:
            data[key] = value


def _replaced_places(data: Mapping[str, Any], later: Mapping[str, Any], place: Place) -> Iterator[Place]:
    for key in data.keys() & later.keys():
        if isinstance(data[key], dict) and isinstance(later[key], dict):
            yield from _replaced_places(data[key], later[key], (*place, key))
        else:
            yield (*place, key)


def _without_replaced(values: Mapping[Place, V], replaced: set[Place]) -> dict[Place, V]:
    return {
        place: value
        for place, value in values.items()
        if not any(place[:size] in replaced for size in range(1, len(place) + 1))
    }


def finding_message(item: Any) -> str:
    """Return the message for an item of `pydantic.ValidationError.errors`, never with the value."""
    kind, context = item["type"], item.get("ctx", {})
    if kind == "is_instance_of":
        return "must be a number" if context["class"] == "Decimal" else f"must be made by {context['class']}(...)"
    if kind == "literal_error":
        context = {"expected": _CONSTANT.sub(lambda found: _IN_YAML[found[0]], context["expected"])}
    if kind == "too_short" and context["min_length"] == 1:
        return "name at least one"
    if kind in _MESSAGES:
        return _MESSAGES[kind].format(**context)
    message: str = item["msg"].removeprefix("Value error, ")
    return message if len(message) <= _SHOWN_CHARACTERS else f"{message[:_SHOWN_CHARACTERS]} ..."
