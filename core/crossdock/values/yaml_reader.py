"""Reads YAML into plain values with their places. PyYAML limits neither nesting nor repetitions by aliases.

``${NAME}`` and ``${NAME:-default}`` in texts are replaced by environment variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, DecimalException
from typing import Any

import yaml
from msgspec import Struct, field

from crossdock.errors import ConfigError

MAX_SUBSTITUTED = 1 << 20
"""Characters that variables may add to one text."""
_FORM = re.compile(r"\$\$|\$\{(?:([A-Za-z_][A-Za-z0-9_]{0,199})(?::-([^{}]*))?\}|)")


def substitute_variables(text: str, environment: Mapping[str, str]) -> str:
    """Replace each ``${NAME}`` in *text* by that variable, and ``$$`` by a dollar.

    ``${NAME:-default}`` is ``default`` if the variable is unset or empty. No variables are replaced in values.
    Raises ValueError if a variable is not set, ``${`` begins neither form, or the values have more than
    `MAX_SUBSTITUTED` characters. It names the variable, never a value.
    """
    parts: list[str] = []
    end = size = 0
    for found in _FORM.finditer(text):
        value = _variable_value(found, environment)
        size += len(value)
        if size > MAX_SUBSTITUTED:
            raise ValueError(f"has variables of more than {MAX_SUBSTITUTED:,} characters")
        parts += (text[end : found.start()], value)
        end = found.end()
    return "".join([*parts, text[end:]])


def escape_dollars(text: str) -> str:
    return re.sub(r"\$(?=[${])", "$$", text)


def _variable_value(found: re.Match[str], environment: Mapping[str, str]) -> str:
    name, default = found.groups()
    if found[0] == "$$":
        return "$"
    if name is None:
        raise ValueError("${ must begin ${NAME} or ${NAME:-default}; write $$ for a dollar")
    if default is not None:
        return environment.get(name) or default
    if name not in environment:
        raise ValueError(f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}")
    return environment[name]


Place = tuple[str | int, ...]
Origin = tuple[str, int, int] | tuple[str]
"""A file, a line and a column, both from 1; or only the name of a mapping that is no file."""

MAX_DEPTH = 50
"""Nested sections and lists; a config has about ten levels."""
MAX_VALUES = 100_000
"""Keys and values of a file, including repetitions by aliases."""
MAX_TEXT = 4 << 20
"""Characters of all texts, including repetitions by aliases."""
MAX_KEY = 200
_MAX_NUMBER = 40  # characters of a number or date
_MAX_DIGITS = 18  # before the point, the most that the databases store
_MAX_PLACES = 40  # after the point

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_OWN_KINDS = {"=", "<<"}  # values that YAML 1.1 gives types of their own, and that are texts here
_QUOTED = re.compile(r"\b(alias|anchor|tag|handle) ['\"].*", re.DOTALL)  # may be a password that begins with * or !
_NO_TAG = "is not valid YAML for a config: tags are not supported; quote a text that begins with !"
UNFIT = re.compile("[\x00\ud800-\udfff]")
"""Characters that are not allowed in file names, databases and UTF-8."""
_TRUE, _FALSE = frozenset({"yes", "on"}), frozenset({"no", "off"})
_NUMBERS = (  # forms that no setting needs as a number, each with how the others are written
    (re.compile(r"[-+]?0[xb].*"), "is a hexadecimal or binary number in YAML", '"0x1F"'),
    (re.compile(r"[-+]?0[0-7_]+"), "is an octal number in YAML", '"0017"'),
    (re.compile(r"[-+]?0[0-9_]+\..*"), "is a number in YAML, without its leading zeros", '"007.50"'),
    (re.compile(r"[-+]?[0-9_]+(:[0-9]+)+(\.[0-9_]*)?"), "is a number to base 60 in YAML", '"12:30"'),
)


class Content(Struct, frozen=True):
    """What a YAML file contains.

    Attributes:
        data: Plain values; numbers with a point are `Decimal`. Keys are texts.
        places: The origin of the key or item at each place.
        plain: The text of each boolean, number, date and null.
    """

    data: dict[str, Any] = field(default_factory=dict)
    places: dict[Place, Origin] = field(default_factory=dict)
    plain: dict[Place, str] = field(default_factory=dict)


def parse_yaml_mapping(text: str, name: str, environment: Mapping[str, str] | None) -> Content:
    """Parse the mapping in *text*; *name* is the path of its file. Merge keys (``<<``) add keys that a mapping lacks.

    Without *environment* the file is not a config: ``${NAME}`` stays as it is, and numbers may be larger than settings.

    Raises ConfigError if it is not such a mapping, or exceeds a limit. It never quotes an alias, an anchor or a tag.
    """
    try:
        loader = _Loader(text, name)
    except yaml.reader.ReaderError as error:
        problem = f"is not valid YAML: the character U+{int(error.character):04X} is not allowed"
        raise ConfigError(
            problem, where=file_line_and_column(text, error.position, name), code="config_syntax"
        ) from None
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise ConfigError(
                "is empty or not a mapping of sections",
                where=name,
                hint="the README shows a complete config",
                code="config_syntax",
            )
        return _NodeReader(name, loader, environment).read(node)
    except yaml.YAMLError as error:
        raise _invalid_yaml_error(error, text, name) from None
    except (ValueError, OverflowError):  # a number in an escape or a directive is too large
        where = f"{name}:{loader.line + 1}:{loader.column + 1}"
        raise ConfigError("is not valid YAML: a number is too large", where=where, code="config_syntax") from None
    finally:
        loader.dispose()


class _Dumper(yaml.SafeDumper):
    """Writes what `parse_yaml_mapping` reads, with exact numbers."""


_Dumper.add_representer(Decimal, lambda dumper, number: dumper.represent_scalar(f"{_TAG}float", f"{number:f}"))


def dump_config_as_yaml(values: Mapping[str, Any]) -> str:
    """Return the *values* of a config as YAML, which `parse_yaml_mapping` reads as the same."""
    return yaml.dump(dict(values), Dumper=_Dumper, allow_unicode=True, sort_keys=False)


def number_problem(number: int | Decimal) -> str | None:
    """Return why *number* cannot be a setting, or None."""
    if isinstance(number, int):
        is_long = abs(number) >= 10**_MAX_DIGITS
        return f"a whole number has at most {_MAX_DIGITS} digits; quote it if it is text" if is_long else None
    if not number.is_finite():
        return "a number must be finite digits"
    if not -_MAX_PLACES <= number.adjusted() < _MAX_DIGITS:
        return f"a number has at most {_MAX_DIGITS} digits before the decimal point, {_MAX_PLACES} after"
    return None


def file_line_and_column(text: str, index: int, name: str) -> str:
    before = text[:index].replace("\r\n", "\n").replace("\r", "\n")
    return f"{name}:{before.count(chr(10)) + 1}:{len(before.rpartition(chr(10))[2]) + 1}"


_ADVICE = {  # words of PyYAML -> what is usually wrong
    "character '\\t'": "indent with spaces: YAML allows no tabs there",
    "cannot start any token": "quote a text that begins with this character",
    "scanning an alias": "quote a text that begins with *",
    "mapping values are not allowed": "quote a text that contains ': ', or correct the indentation",
}


def _invalid_yaml_error(error: yaml.YAMLError, text: str, name: str) -> ConfigError:
    mark = getattr(error, "problem_mark", None)
    where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
    begun = getattr(error, "context_mark", None)
    hint = f"it belongs to what begins at line {begun.line + 1}, column {begun.column + 1}" if begun else None
    problem = _QUOTED.sub(r"\1", str(getattr(error, "problem", None) or error))
    said = f"{getattr(error, 'context', '')} {problem}"
    hint = next((advice for words, advice in _ADVICE.items() if words in said), hint)
    if mark and text[mark.index - 1 : mark.index + 1] == "${":
        hint = "quote a text with ${NAME} inside of { } or [ ]"
    return ConfigError(f"is not valid YAML: {problem}", where=where, hint=hint, code="config_syntax")


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
            raise ConfigError(f"is nested deeper than {MAX_DEPTH} levels", where=where, code="config_syntax")
        if self._nodes > MAX_VALUES:
            raise ConfigError(f"holds more than {MAX_VALUES:,} keys and values", where=where, code="config_syntax")
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


class _NodeReader:
    """Turns nodes into values. Repetitions by aliases are read and counted again."""

    def __init__(self, name: str, loader: yaml.SafeLoader, environment: Mapping[str, str] | None) -> None:
        self._name, self._loader, self._environment = name, loader, environment
        self._found = Content(places={(): (name, 1, 1)})
        self._values = self._text = 0

    def read(self, node: yaml.MappingNode) -> Content:
        self._found.data.update(self._mapping(node, ()))
        return self._found

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, (key_node, value_node) in self._own_and_merged_member_nodes(node, len(place)).items():
            self._record_place((*place, key), key_node)
            result[key] = self._value(value_node, (*place, key))
        return result

    def _own_and_merged_member_nodes(
        self, node: yaml.MappingNode, depth: int
    ) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Return the members of a mapping: its own, and those of a merge key that it lacks."""
        members: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        own = set()
        for key_node, value_node in node.value:
            key = "<<" if key_node.tag == _MERGE else self._key(key_node)
            if key in own:
                raise self._error(key_node, f"the key {key!r} is repeated")
            own.add(key)
            if key_node.tag == _MERGE:
                members |= self._merge_key_members(value_node, depth) | members
            else:
                members[key] = (key_node, value_node)
        return members

    def _merge_key_members(self, node: yaml.Node, depth: int) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Return the members of one section, or of several; those of an earlier one have priority."""
        self._check_depth(node, depth)
        self._count_and_check_limits(node, "")
        if isinstance(node, yaml.MappingNode):
            return self._own_and_merged_member_nodes(node, depth + 1)
        if not isinstance(node, yaml.SequenceNode):
            raise self._error(node, "a merge key takes a section or a list of sections: <<: *NAME")
        merged: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for item in node.value:
            merged |= self._merge_key_members(item, depth + 1) | merged
        return merged

    def _key(self, node: yaml.Node) -> str:
        """Return the text of a key as it is written. No key is a number or a boolean, as ``on`` is in YAML 1.1."""
        if not isinstance(node, yaml.ScalarNode):
            raise self._error(node, "a key must be text")
        if len(node.value) > MAX_KEY:
            raise self._error(node, f"a key has at most {MAX_KEY} characters")
        self._count_and_check_limits(node, node.value)
        return str(node.value)

    def _check_depth(self, node: yaml.Node, depth: int) -> None:
        if depth > MAX_DEPTH:
            problem = f"is nested deeper than {MAX_DEPTH} levels"
            raise self._error(node, f"{problem}; is an alias inside of what it repeats?")

    def _value(self, node: yaml.Node, place: Place) -> Any:
        self._check_depth(node, len(place))
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
            self._count_and_check_limits(node, "")
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            self._count_and_check_limits(node, "")
            for number, item in enumerate(node.value):
                self._record_place((*place, number), item)
            return [self._value(item, (*place, number)) for number, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, place)
        raise self._error(node, _NO_TAG)

    def _scalar(self, node: yaml.ScalarNode, place: Place) -> Any:
        kind = node.tag.removeprefix(_TAG)
        if kind == "str" or node.value in _OWN_KINDS:
            return self._substitute_variables(node)
        self._count_and_check_limits(node, node.value)
        self._found.plain[place] = node.value
        if kind == "null":
            return None
        if kind not in {"bool", "int", "float", "timestamp"}:
            raise self._error(node, _NO_TAG)
        try:
            if len(node.value) <= _MAX_NUMBER:
                return self._checked_number(node) if kind == "float" else self._constructed(node)
        except DecimalException:
            raise self._error(node, "a number must be finite digits") from None
        except (ValueError, OverflowError, LookupError, AttributeError):  # such as a date in a 13th month, a wrong tag
            raise self._error(node, "looks like a date or a number, but is not one: quote it") from None
        raise self._error(node, "is too long for a number or a date: quote it if it is text")

    def _substitute_variables(self, node: yaml.ScalarNode) -> str:
        try:
            text = node.value if self._environment is None else substitute_variables(node.value, self._environment)
        except ValueError as error:
            raise self._error(node, str(error)) from None
        self._count_and_check_limits(node, text)
        return text

    def _checked_number(self, node: yaml.ScalarNode) -> Decimal:
        number = Decimal(node.value.replace("_", ""))  # exact
        if (not number.is_finite() or self._environment is not None) and (problem := number_problem(number)):
            raise self._error(node, problem)
        return number

    def _constructed(self, node: yaml.ScalarNode) -> Any:
        value = self._loader.construct_object(node)
        if self._environment is not None and isinstance(value, int) and (problem := number_problem(value)):
            raise self._error(node, problem)
        return value

    def _count_and_check_limits(self, node: yaml.Node, text: str) -> None:
        if UNFIT.search(text):
            raise self._error(node, "contains a NUL or a lone surrogate, which is not allowed")
        self._values += 1
        self._text += len(text)
        if self._values > MAX_VALUES or self._text > MAX_TEXT:
            most = f"{MAX_VALUES:,} keys and values or {MAX_TEXT:,} characters"
            raise self._error(node, f"the file holds more than {most}, including what aliases repeat")

    def _record_place(self, place: Place, node: yaml.Node) -> None:
        self._found.places[place] = (self._name, node.start_mark.line + 1, node.start_mark.column + 1)

    def _error(self, node: yaml.Node, problem: str) -> ConfigError:
        mark = node.start_mark
        return ConfigError(problem, where=f"{self._name}:{mark.line + 1}:{mark.column + 1}", code="config_syntax")


def ambiguous_number_problem(text: str) -> str | None:
    """Return what is wrong with a plain scalar that is such a number, or None. The message never quotes *text*."""
    for form, problem, example in _NUMBERS:
        if form.fullmatch(text):
            return f"{problem}: quote it if it is text, as in {example}"
    return None


def ambiguous_boolean_problem(text: str) -> str | None:
    """Return what is wrong with a plain boolean that may be meant as text, such as ``NO``, or None."""
    if text.lower() not in _TRUE | _FALSE:
        return None
    meant = "true" if text.lower() in _TRUE else "false"
    return f'{text} is the boolean {meant} in YAML: quote it for text, "{text}", or write {meant}'


def not_text_message(text: str | None) -> str:
    """Make a message for a plain scalar that is not text; None for a section or a list. It repeats only words."""
    if text is None:
        return "must be text"
    if not text:
        return "is empty; an empty text is written as two quotes"
    if text == "~" or text.lower() == "null":
        return f'must be text: {text} means no value in YAML; quote it, "{text}"'
    if text.isalpha():
        return f'must be text: {text} is a boolean in YAML; quote it, "{text}"'
    return "must be text: quote numbers and dates, and words such as yes and no"
