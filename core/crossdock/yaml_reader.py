"""YAML -> plain values with their places, within limits; every fault is an error with file, line and column.

PyYAML limits neither nesting nor what aliases repeat, and raises errors of many classes for wrong scalars.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, DecimalException
from typing import Any

import yaml

from crossdock.errors import ConfigError

Place = tuple[str | int, ...]
Places = dict[Place, tuple[int, int]]

MAX_DEPTH = 50
"""Levels of sections and lists; a config has about ten."""
MAX_VALUES = 100_000
"""Keys and values of a file, including repetitions by aliases."""
MAX_TEXT = 4 << 20
"""Characters of all texts, including repetitions by aliases."""
MAX_KEY = 200
_MAX_NUMBER = 40  # characters of a number or date
_MAX_DIGITS = 18  # before the point, the most that the databases store
_MAX_PLACES = 40  # after the point

_TAG = "tag:yaml.org,2002:"
_QUOTED = re.compile(r"\b(alias|anchor|tag|handle) ['\"].*", re.DOTALL)  # may be a password that begins with * or !
_NO_TAG = "is not valid YAML for a config: tags are not supported; quote a text that begins with !"
_UNFIT = re.compile("[\x00\ud800-\udfff]")  # not allowed in file names, databases and UTF-8


def parse(text: str, name: str) -> tuple[dict[str, Any], Mapping[Place, tuple[int, int]]]:
    """The mapping in *text*, and line and column (from 1) of the key or item at each place in it.

    Numbers with a point are `Decimal`. Keys are texts, unique in their mapping.

    Args:
        name: The path of its file, for errors.

    Raises:
        ConfigError: If it is not such a mapping, or exceeds a limit. It never quotes an alias, an anchor or a tag.
    """
    try:
        loader = _Loader(text, name)
    except yaml.reader.ReaderError as error:
        problem = f"is not valid YAML: the character U+{int(error.character):04X} is not allowed"
        raise ConfigError(problem, where=place_in(text, error.position, name)) from None
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise ConfigError(
                "is empty or not a mapping of sections", where=name, hint="the README shows a complete config"
            )
        places: Places = {(): (1, 1)}
        return _Reader(name, loader, places).mapping(node, ()), places
    except yaml.YAMLError as error:
        raise _invalid(error, name) from None
    except (ValueError, OverflowError):  # a number in an escape or a directive is too large
        where = f"{name}:{loader.line + 1}:{loader.column + 1}"
        raise ConfigError("is not valid YAML: a number is too large", where=where) from None
    finally:
        loader.dispose()


def place_in(text: str, index: int, name: str) -> str:
    """``name:line:column`` of the character at *index*."""
    before = text[:index].replace("\r\n", "\n").replace("\r", "\n")
    return f"{name}:{before.count(chr(10)) + 1}:{len(before.rpartition(chr(10))[2]) + 1}"


def _invalid(error: yaml.YAMLError, name: str) -> ConfigError:
    mark = getattr(error, "problem_mark", None)
    where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
    begun = getattr(error, "context_mark", None)
    hint = f"it belongs to what begins at line {begun.line + 1}, column {begun.column + 1}" if begun else None
    problem = _QUOTED.sub(r"\1", str(getattr(error, "problem", None) or error))
    return ConfigError(f"is not valid YAML: {problem}", where=where, hint=hint)


class _Loader(yaml.SafeLoader):
    """Composes nodes within `MAX_DEPTH` and `MAX_VALUES`."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__(text)
        self._name = name
        self._depth = self._nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._depth += 1
        self._nodes += 1
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        where = f"{self._name}:{mark.line + 1}:{mark.column + 1}"
        if self._depth > MAX_DEPTH:
            raise ConfigError(f"is nested deeper than {MAX_DEPTH} levels", where=where)
        if self._nodes > MAX_VALUES:
            raise ConfigError(f"holds more than {MAX_VALUES:,} keys and values", where=where)
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


class _Reader:
    """Turns nodes into values; what an alias repeats is read and counted again."""

    def __init__(self, name: str, loader: yaml.SafeLoader, places: Places) -> None:
        self._name, self._loader, self._places = name, loader, places
        self._values = self._text = 0

    def mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            if key in result:
                raise self._refused(key_node, f"the key {key!r} is repeated")
            self._mark((*place, key), key_node)
            result[key] = self._value(value_node, (*place, key))
        return result

    def _key(self, node: yaml.Node) -> str:
        """The text of a key as it is written: no key is a number or a boolean, as ``on`` is in YAML 1.1."""
        if node.tag == f"{_TAG}merge":
            raise self._refused(node, "merge keys (<<) are not supported: write the keys here")
        if not isinstance(node, yaml.ScalarNode):
            raise self._refused(node, "a key must be text")
        if len(node.value) > MAX_KEY:
            raise self._refused(node, f"a key has at most {MAX_KEY} characters")
        self._count(node, node.value)
        return str(node.value)

    def _value(self, node: yaml.Node, place: Place) -> Any:
        if len(place) > MAX_DEPTH:
            problem = f"is nested deeper than {MAX_DEPTH} levels"
            raise self._refused(node, f"{problem}; is an alias inside of what it repeats?")
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
            self._count(node, "")
            return self.mapping(node, place)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            self._count(node, "")
            for number, item in enumerate(node.value):
                self._mark((*place, number), item)
            return [self._value(item, (*place, number)) for number, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            self._count(node, node.value)
            return self._scalar(node)
        raise self._refused(node, _NO_TAG)

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        kind = node.tag.removeprefix(_TAG)
        if kind == "str":
            return node.value
        if kind == "null":
            return None
        if kind not in {"bool", "int", "float", "timestamp"}:
            raise self._refused(node, _NO_TAG)
        try:
            if len(node.value) <= _MAX_NUMBER:
                return self._number(node) if kind == "float" else self._constructed(node)
        except DecimalException:
            raise self._refused(node, "a number must be finite digits") from None
        except (ValueError, OverflowError, LookupError, AttributeError):  # such as a date in a 13th month, a wrong tag
            raise self._refused(node, "looks like a date or a number, but is not one: quote it") from None
        raise self._refused(node, "is too long for a number or a date: quote it if it is text")

    def _number(self, node: yaml.ScalarNode) -> Decimal:
        number = Decimal(node.value.replace("_", ""))  # exact
        if not number.is_finite():
            raise self._refused(node, "a number must be finite digits")
        if not -_MAX_PLACES <= number.adjusted() < _MAX_DIGITS:
            problem = f"a number has at most {_MAX_DIGITS} digits before the decimal point, {_MAX_PLACES} after"
            raise self._refused(node, problem)
        return number

    def _constructed(self, node: yaml.ScalarNode) -> Any:
        value = self._loader.construct_object(node)
        if isinstance(value, int) and abs(value) >= 10**_MAX_DIGITS:
            raise self._refused(node, f"a whole number has at most {_MAX_DIGITS} digits; quote it if it is text")
        return value

    def _count(self, node: yaml.Node, text: str) -> None:
        """Count a value, and check the limits."""
        if _UNFIT.search(text):
            raise self._refused(node, "contains a NUL or a lone surrogate, which is not allowed")
        self._values += 1
        self._text += len(text)
        if self._values > MAX_VALUES or self._text > MAX_TEXT:
            most = f"{MAX_VALUES:,} keys and values or {MAX_TEXT:,} characters"
            raise self._refused(node, f"the file holds more than {most}, including what aliases repeat")

    def _mark(self, place: Place, node: yaml.Node) -> None:
        self._places[place] = (node.start_mark.line + 1, node.start_mark.column + 1)

    def _refused(self, node: yaml.Node, problem: str) -> ConfigError:
        mark = node.start_mark
        return ConfigError(problem, where=f"{self._name}:{mark.line + 1}:{mark.column + 1}")
