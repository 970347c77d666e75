"""Reads a config file, or the same values given by a program. Findings have file, line and column."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from functools import reduce
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, structs

from crossdock.errors import ConfigError, CrossdockError, FindingsError
from crossdock.values import yaml_reader
from crossdock.values.safe_local_files import read_rest_within_limit
from crossdock.values.yaml_reader import Content, Place, substitute_variables

if TYPE_CHECKING:
    from pydantic import BaseModel

_MUST_BE = "must be "


class PlacedFinding(Struct, frozen=True):
    """A finding about the value at *place*.

    Attributes:
        choices: The unions around it, outermost first: the place of each, and pydantic's name of the choice it tried.
        message: The whole message, with advice for a single type.
        short: The message without that, for a list of types.
        of_type: Whether the value has a wrong type, so that another choice may be meant.
        absent: The place of the key that is missing, if that is what was found.
    """

    place: Place
    choices: tuple[tuple[Place, str | int], ...]
    message: str
    short: str
    of_type: bool
    absent: Place | None = None


def place_and_union_choices(
    start: Place, path: Sequence[str | int], key: Place, exists: Callable[[Place], bool]
) -> tuple[Place, tuple[tuple[Place, str | int], ...]]:
    """Return the place of a finding below *start*, and the choices of unions in pydantic's *path*.

    *key* has the parts after the path that may be missing in the file.
    """
    place, choices = start, []
    for number, part in enumerate(path):
        following = (*path, *key)[number + 1 : number + 2]
        inside, beside = (*place, part, *following), (*place, *following)
        if not exists((*place, part)) or (not exists(inside) and exists(beside)):
            choices.append((place, part))
        else:
            place = (*place, part)
    return (*place, *key), tuple(choices)


def findings_of_nearest_union_choice(findings: Iterable[PlacedFinding]) -> list[PlacedFinding]:
    """Leave out findings of choices that the value is not near to. Choices that it fails as a whole become one."""
    left = list(findings)
    for depth in range(max((len(each.choices) for each in left), default=0), 0, -1):
        groups: dict[object, list[PlacedFinding]] = {}
        for each in left:
            union = (each.choices[: depth - 1], each.choices[depth - 1][0]) if len(each.choices) == depth else each
            groups.setdefault(union, []).append(each)
        left = [each for group in groups.values() for each in (_nearest_union_choice_findings(group, depth))]
    return left


def _nearest_union_choice_findings(group: list[PlacedFinding], depth: int) -> list[PlacedFinding]:
    if len(group[0].choices) < depth:
        return group
    by_choice: dict[str | int, list[PlacedFinding]] = {}
    for each in group:
        outer = structs.replace(each, choices=each.choices[:-1])
        by_choice.setdefault(each.choices[-1][1], []).append(outer)
    if len(by_choice) == 1:
        return next(iter(by_choice.values()))
    union = group[0].choices[-1][0]
    inside = [each for each in by_choice.values() if any(len(finding.place) > len(union) for finding in each)]
    if inside:
        return max(inside, key=lambda each: (max(len(finding.place) for finding in each), -len(each)))
    failed = [each for choice in by_choice.values() for each in choice]
    failed = [each for each in failed if not each.of_type] or failed
    merged = _joined_messages([each.short for each in failed])
    return [failed[0] if len(failed) == 1 else structs.replace(failed[0], message=merged, short=merged)]


def _joined_messages(messages: list[str]) -> str:
    distinct = list(dict.fromkeys(messages))
    if len(distinct) > 1 and all(each.startswith(_MUST_BE) for each in distinct):
        *others, last = (each.removeprefix(_MUST_BE) for each in distinct)
        listed, _, last = f"{', '.join(others)} or {last}".rpartition(" or ")
        return _MUST_BE + listed.replace("' or '", "', '") + f" or {last}"
    return "; or: ".join(distinct)


_KINDS = "a config has texts, numbers, true, false, None, dates, paths, lists and mappings"


def read_values_from_mapping(values: Mapping[str, Any], name: str, environment: Mapping[str, str]) -> Content:
    """Read *values* as `parse_yaml_mapping` reads a file that says the same. All places are *name*.

    Raises:
        ConfigError: If a value has no form in a config, or exceeds a limit of a file. It names the path of the key.
    """
    reader = _ValueReader(name, environment)
    data = reader.mapping(values, ())
    return Content(data, reader.places)


class _ValueReader:
    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        self._name, self._environment = name, environment
        self._values = self._text = 0
        self.places: dict[Place, yaml_reader.Origin] = {(): (name,)}

    def mapping(self, values: Mapping[Any, Any], place: Place) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in values.items():
            text = self._key(key, place)
            if text in result:
                raise self._error(place, f"the key {text!r} is repeated")
            result[text] = self._checked_value(value, (*place, text))
        return result

    def _key(self, key: Any, place: Place) -> str:
        if not isinstance(key, str | int) or isinstance(key, bool):
            raise self._error(place, "a key must be text")
        text = _text_of_str_subclass(key) if isinstance(key, str) else f"{key:d}"
        if len(text) > yaml_reader.MAX_KEY:
            raise self._error(place, f"a key has at most {yaml_reader.MAX_KEY} characters")
        return self._check_limits(text, place)

    def _checked_value(self, value: Any, place: Place) -> Any:
        self.places[place] = (self._name,)
        if len(place) > yaml_reader.MAX_DEPTH:
            short = place[:3]
            raise self._error(short, f"is nested deeper than {yaml_reader.MAX_DEPTH} levels; does it contain itself?")
        match value:
            case str():
                return self._substitute_variables(_text_of_str_subclass(value), place)
            case PurePath():
                return self._substitute_variables(str(value), place)
            case None | bool() | date():
                return value
            case int() | float() | Decimal():
                return self._checked_number(value, place)
            case Mapping():
                self._check_limits("", place)
                return self.mapping(value, place)
            case list() | tuple():
                self._check_limits("", place)
                return [self._checked_value(item, (*place, number)) for number, item in enumerate(value)]
        message = f"has a value of type {type(value).__name__}"
        raise self._error(place, message, code="config_invalid", hint=_KINDS)

    def _substitute_variables(self, text: str, place: Place) -> str:
        try:
            return self._check_limits(substitute_variables(text, self._environment), place)
        except ValueError as error:
            raise self._error(place, str(error)) from None

    def _checked_number(self, value: float | Decimal, place: Place) -> int | Decimal:
        self._check_limits("", place)
        number: int | Decimal = int(value) if isinstance(value, int) else Decimal(str(value))
        if problem := yaml_reader.number_problem(number):
            raise self._error(place, problem)
        return number

    def _check_limits(self, text: str, place: Place) -> str:
        if yaml_reader.UNFIT.search(text):
            raise self._error(place, "contains a NUL or a lone surrogate, which is not allowed")
        self._values += 1
        self._text += len(text)
        if self._values > yaml_reader.MAX_VALUES or self._text > yaml_reader.MAX_TEXT:
            most = f"{yaml_reader.MAX_VALUES:,} keys and values or {yaml_reader.MAX_TEXT:,} characters"
            raise self._error((), f"holds more than {most}")
        return text

    def _error(
        self, place: Place, problem: str, *, code: str = "config_syntax", hint: str | None = None
    ) -> ConfigError:
        path = ".".join(map(str, place))
        return ConfigError(problem, where=f"{self._name}: {path}" if path else self._name, hint=hint, code=code)


def _text_of_str_subclass(text: str) -> str:
    """Return the content of a subclass of str, such as a member of an enumeration."""
    return str.__str__(text)


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
WRONG_TYPE_ERROR_ENDINGS = ("_type", "_parsing", "_from_float", "literal_error", "is_instance_of")
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
Signature = tuple[tuple[int, int, int], ...]
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

    def validated_as_model(self, model: type[M], data: Any, place: Place = (), **context: Any) -> M:
        """Make a *model* of the values at *place*, or raise FindingsError with all findings."""
        from pydantic import ValidationError  # noqa: PLC0415  a file whose models nobody needs is read without it

        renamed = list[tuple[Any, str, str]]()
        try:
            checked = model.model_validate(data, context={"folder": self.folder, "renamed": renamed, **context})
        except ValidationError as error:
            items = (item for item in error.errors(include_url=False) if not _has_too_few_valid_items(item))
            found = findings_of_nearest_union_choice(self._finding(place, item) for item in items)
            values = _allowed_values_of_missing_keys(model, data, place, found, {"folder": self.folder, **context})
            raise _findings_error(
                self._finding_text_with_place(each) + values.get(each.absent, "") for each in found
            ) from None
        for section, old, new in renamed:
            key = (*place, *(_keys_leading_to_object(section, data) or ()), old)
            advice = f"is called {new!r} now; rename it, because the next minor release does not know it any more"
            self.warnings[f"{self.where(key)}: {_key_path_prefix(key)}{advice}"] = None
        return checked

    def check_quoting(self) -> None:
        """Refuse all plain scalars that YAML reads differently from what people mean, with one FindingsError."""
        found = []
        for place, text in self.content.plain.items():
            is_constant = place[-1:] == ("const",)
            trap = yaml_reader.ambiguous_number_problem(text) or (
                yaml_reader.ambiguous_boolean_problem(text) if is_constant else None
            )
            if trap:
                found.append(f"{self.where(place)}: {_key_path_prefix(place)}{trap}")
        if found:
            raise _findings_error(found)

    def _finding(self, start: Place, item: Any) -> PlacedFinding:
        path = [part for part in item["loc"] if part != _OF_KEY]
        key: Any = item["ctx"]["key"] if item["type"] == "unknown_key" else ()
        if item["type"] == "missing":
            key = path.pop()
        key = key if isinstance(key, tuple) else (key,)
        is_absent = item["type"] == "missing"
        place, choices = place_and_union_choices(
            start, path, () if is_absent else key, lambda each: each in self.content.places
        )
        place = (*place, *key) if is_absent else place
        plain, short = self.content.plain.get(place), message_of_pydantic_error(item)
        is_text = item["type"] == "string_type" or (plain is not None and _expects_text_or_section(item))
        message = yaml_reader.not_text_message(plain) if is_text else short
        if _OF_KEY in item["loc"] and short.startswith("must "):
            message = short = f"the key {short}"
        absent = place if is_absent else None
        if (
            item["type"] == "union_tag_not_found"
            and isinstance(item["input"], dict)
            and not _expects_text_or_section(item)
        ):
            absent = (*place, item["ctx"]["discriminator"].strip("'"))
        return PlacedFinding(
            place, choices, message, short, of_type=item["type"].endswith(WRONG_TYPE_ERROR_ENDINGS), absent=absent
        )

    def _finding_text_with_place(self, finding: PlacedFinding) -> str:
        return f"{self.where(finding.place)}: {_key_path_prefix(finding.place)}{finding.message}"


def _keys_leading_to_object(wanted: Any, data: Any) -> Place | None:
    """Return the keys that lead to this very object in *data*."""
    if data is wanted:
        return ()
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    paths = ((key, _keys_leading_to_object(wanted, value)) for key, value in items)
    return next(((key, *path) for key, path in paths if path is not None), None)


def _allowed_values_of_missing_keys(
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


def _key_path_prefix(place: Place) -> str:
    return f"{'.'.join(map(str, place))}: " if place else ""


def _findings_error(found: Iterable[str]) -> FindingsError:
    findings = list(dict.fromkeys(found))
    more = [f"... and {len(findings) - _SHOWN_FINDINGS:,} more"] if len(findings) > _SHOWN_FINDINGS else []
    return FindingsError([*findings[:_SHOWN_FINDINGS], *more])


def _has_too_few_valid_items(item: Any) -> bool:
    """Return whether a list is only too short for pydantic because its items, which are told, are wrong."""
    given = item["input"]
    is_long = isinstance(given, list) and len(given) >= item.get("ctx", {}).get("min_length", 0)
    return item["type"] == "too_short" and is_long


def _expects_text_or_section(item: Any) -> bool:
    """Return whether text or a section is expected, as for a member of ``map``."""
    return item["type"] == "union_tag_not_found" and str(item["ctx"]["discriminator"]).endswith("()")


def read_config_with_overrides(first: ConfigSource, *overrides: ConfigSource) -> Document:
    """Read a config file of at most `MAX_BYTES`, and files whose values replace or add to those of the ones before.

    Relative paths in a mapping begin in the working folder.
    """
    path = OF_MAPPING if isinstance(first, Mapping) else first
    document = Document(path, _folder_of(path), reduce(merge_config_contents, map(_read_content, (first, *overrides))))
    document.check_quoting()
    return document


def file_signature(files: Iterable[Path]) -> Signature | None:
    """Return a value that changes when one of *files* is written; None if one cannot be read."""
    try:
        return tuple((found.st_mtime_ns, found.st_size, found.st_ino) for found in (path.stat() for path in files))
    except OSError:
        return None


def _folder_of(path: Path) -> Path:
    try:
        return path.parent.absolute()
    except FileNotFoundError:
        message, hint = "the working folder does not exist any more", "change to a folder that exists"
        raise ConfigError(message, where=str(path), hint=hint, code="folder_missing") from None


def _read_content(source: ConfigSource) -> Content:
    if isinstance(source, Mapping):
        return read_values_from_mapping(source, str(OF_MAPPING), os.environ)
    path = source
    try:
        with path.open("rb") as file:
            raw = read_rest_within_limit(file, MAX_BYTES)
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
        where = yaml_reader.file_line_and_column(before, len(before), str(path))
        raise ConfigError("is not UTF-8 text", where=where, code="config_unreadable") from None
    return yaml_reader.parse_yaml_mapping(text, str(path), os.environ)


def merge_config_contents(content: Content, later: Content) -> Content:
    """Merge sections, which keep their origin in *content*. *later* replaces everything else, lists as a whole."""
    data, replaced = dict(content.data), set(_places_replaced_by_later(content.data, later.data, ()))
    _merge(data, later.data)
    places = _without_replaced_places(content.places, replaced)
    return Content(data, later.places | places, _without_replaced_places(content.plain, replaced) | later.plain)


def _merge(data: dict[str, Any], later: Mapping[str, Any]) -> None:
    for key, value in later.items():
        if isinstance(value, dict) and isinstance(data.get(key), dict):
            data[key] = dict(data[key])
            _merge(data[key], value)
        else:
            data[key] = value


def _places_replaced_by_later(data: Mapping[str, Any], later: Mapping[str, Any], place: Place) -> Iterator[Place]:
    for key in data.keys() & later.keys():
        if isinstance(data[key], dict) and isinstance(later[key], dict):
            yield from _places_replaced_by_later(data[key], later[key], (*place, key))
        else:
            yield (*place, key)


def _without_replaced_places(values: Mapping[Place, V], replaced: set[Place]) -> dict[Place, V]:
    return {
        place: value
        for place, value in values.items()
        if not any(place[:size] in replaced for size in range(1, len(place) + 1))
    }


def message_of_pydantic_error(item: Any) -> str:
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
