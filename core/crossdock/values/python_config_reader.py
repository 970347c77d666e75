"""Reading of a config that another program gives as a mapping, by the rules of a config file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from crossdock.errors import ConfigError
from crossdock.values import yaml_reader
from crossdock.values.environment_variables import substitute_variables
from crossdock.values.yaml_reader import Content, Place

_KINDS = "a config has texts, numbers, true, false, None, dates, paths, lists and mappings"


def read_values(values: Mapping[str, Any], name: str, environment: Mapping[str, str]) -> Content:
    """Read *values* as `yaml_reader.parse` reads a file that says the same. All places are *name*.

    Raises:
        ConfigError: If a value has no form in a config, or exceeds a limit of a file. It names the path of the key.
    """
    reader = _Reader(name, environment)
    data = reader.mapping(values, ())
    return Content(data, reader.places)


class _Reader:
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
            result[text] = self._value(value, (*place, text))
        return result

    def _key(self, key: Any, place: Place) -> str:
        if not isinstance(key, str | int) or isinstance(key, bool):
            raise self._error(place, "a key must be text")
        text = _base_text(key) if isinstance(key, str) else f"{key:d}"
        if len(text) > yaml_reader.MAX_KEY:
            raise self._error(place, f"a key has at most {yaml_reader.MAX_KEY} characters")
        return self._check_limits(text, place)

    def _value(self, value: Any, place: Place) -> Any:
        self.places[place] = (self._name,)
        if len(place) > yaml_reader.MAX_DEPTH:
            short = place[:3]
            raise self._error(short, f"is nested deeper than {yaml_reader.MAX_DEPTH} levels; does it contain itself?")
        match value:
            case str():
                return self._substituted(_base_text(value), place)
            case PurePath():
                return self._substituted(str(value), place)
            case None | bool() | date():
                return value
            case int() | float() | Decimal():
                return self._number(value, place)
            case Mapping():
                self._check_limits("", place)
                return self.mapping(value, place)
            case list() | tuple():
                self._check_limits("", place)
                return [self._value(item, (*place, number)) for number, item in enumerate(value)]
        message = f"has a value of type {type(value).__name__}"
        raise self._error(place, message, code="config_invalid", hint=_KINDS)

    def _substituted(self, text: str, place: Place) -> str:
        try:
            return self._check_limits(substitute_variables(text, self._environment), place)
        except ValueError as error:
            raise self._error(place, str(error)) from None

    def _number(self, value: float | Decimal, place: Place) -> int | Decimal:
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


def _base_text(text: str) -> str:
    """Return the content of a subclass of str, such as a member of an enumeration."""
    return str.__str__(text)
