"""A config file -> models: YAML through its node tree, so that every finding has file, line and column.

Unknown and repeated keys are refused, secrets are references and never literals.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from crossdock.errors import ConfigError, FindingsError

M = TypeVar("M", bound=BaseModel)
Place = tuple[str | int, ...]
_QUOTED = re.compile(r"\b(alias|anchor|tag|handle) ['\"].*", re.DOTALL)  # a password that begins with * or ! looks so


class ConfigModel(BaseModel):
    """Base of everything a config file may say: frozen, unknown keys refused with the nearest known name."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        arbitrary_types_allowed=True,
        validate_by_alias=True,
        validate_by_name=True,
        defer_build=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            known = [field.alias or name for name, field in cls.model_fields.items()]
            for key in data:
                if key not in known and key not in cls.model_fields:
                    raise PydanticCustomError(
                        "unknown_key", "{advice}", {"key": key, "advice": unknown(str(key), known)}
                    )
        return data


def unknown(name: str, known: list[str]) -> str:
    """Say that *name* is not known, with the nearest known name or all of them."""
    close = get_close_matches(name, known, n=1)
    return f"unknown key; did you mean {close[0]!r}?" if close else f"unknown key; known: {', '.join(sorted(known))}"


@dataclass(frozen=True, slots=True)
class Secret:
    """A reference to a secret: ``env:NAME`` or ``file:PATH``. The secret itself is read only when it is needed."""

    reference: str
    folder: Path

    def reveal(self) -> str:
        """The secret.

        Raises:
            ConfigError: If the variable is not set, or the file is missing, empty or readable by others.
        """
        kind, _, name = self.reference.partition(":")
        if kind == "env":
            value = os.environ.get(name)
            if not value:
                raise ConfigError(f"the environment variable {name} is not set", hint=f"export {name}=...")
            return value
        try:
            path = self.folder / Path(name).expanduser()
        except RuntimeError:
            raise ConfigError(f"the secret {self.reference} is of a user who has no home here") from None
        try:
            if path.stat().st_mode & 0o077:
                raise ConfigError(
                    f"others may read the secret {self.reference}", where=str(path), hint=f"chmod 600 {path}"
                )
            text = path.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigError(
                f"the secret {self.reference} cannot be read: {error.strerror}", where=str(path)
            ) from error
        except UnicodeDecodeError:
            raise ConfigError(f"the secret {self.reference} is no UTF-8 text", where=str(path)) from None
        if not text:
            raise ConfigError("the secret file is empty", where=str(path))
        return text

    def reveal_token(self) -> str:
        """The secret, fit for an HTTP header: one word of printable ASCII.

        Raises:
            ConfigError: See `reveal`; or if it is no such word.
        """
        value = self.reveal()
        if not (value.isascii() and value.isprintable() and " " not in value):
            raise ConfigError(f"{self.reference} holds blanks or characters that no header can carry")
        return value


def _secret(value: Any, info: ValidationInfo) -> Secret:
    if isinstance(value, Secret):
        return value
    kind, _, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    if kind not in {"env", "file"} or not name:
        raise PydanticCustomError(
            "literal_secret", "a secret is never written here: refer to it by env:NAME or file:PATH"
        )
    folder = info.context["folder"] if info.context else Path()
    return Secret(value, folder)


SecretRef = Annotated[Secret, BeforeValidator(_secret), WithJsonSchema({"type": "string", "pattern": "^(env|file):.+"})]


def _path(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str) or not info.context:
        return value
    try:
        return info.context["folder"] / Path(value).expanduser()
    except RuntimeError:
        raise ValueError("begins with ~ and the name of a user who has no home here") from None


ConfigPath = Annotated[Path, BeforeValidator(_path)]
"""A path, relative to the config file."""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed config file.

    Attributes:
        data: Plain values.
        places: Line and column, from 1, of the key or item at each path.
    """

    path: Path
    data: Any
    places: Mapping[Place, tuple[int, int]]

    @property
    def folder(self) -> Path:
        return self.path.parent

    def where(self, place: Place) -> str:
        """``file:line:column`` of *place*, or of the nearest thing around it."""
        while place not in self.places:
            place = place[:-1]
        line, column = self.places[place]
        return f"{self.path}:{line}:{column}"

    def check(self, model: type[M], data: Any, place: Place = ()) -> M:
        """Make a *model* of the values at *place*.

        Raises:
            FindingsError: With every finding, each with its place.
        """
        try:
            return model.model_validate(data, context={"folder": self.folder})
        except ValidationError as error:
            findings = [self._finding(place, item) for item in error.errors(include_url=False)]
            raise FindingsError(dict.fromkeys(findings)) from None

    def _finding(self, place: Place, item: Any) -> str:
        key = item["ctx"]["key"] if item["type"] == "unknown_key" else ()
        parts = (*item["loc"], *(key if isinstance(key, tuple) else (key,)))
        for number, part in enumerate(parts, 1):
            if number == len(parts) or not self._is_choice(place, part, parts[number]):
                place = (*place, part)
        named = f"{'.'.join(map(str, place))}: " if place else ""
        return f"{self.where(place)}: {named}{_said(item)}"

    def _is_choice(self, place: Place, part: str | int, following: str | int) -> bool:
        """True if *part* names the choice of a union in pydantic's path, and is no part of the file's."""
        here = (*place, part)
        return here not in self.places or ((*here, following) not in self.places and (*place, following) in self.places)


def _said(item: Any) -> str:
    """Pydantic's finding in the words of someone who writes a config file; never with the value."""
    if item["type"] == "string_type":
        return "is empty" if item["input"] is None else "must be text (quote numbers and words such as yes and no)"
    said = {
        "too_short": "name at least one",
        "tuple_type": "must be a list: [NAME]",
        "missing": "is missing",
        "int_parsing": "must be a whole number",
        "model_type": "must be a section of keys",
        "model_attributes_type": "must be a section of keys",
        "union_tag_not_found": "kind is missing",
    }
    if item["type"] == "union_tag_invalid":
        return f"unknown kind; known: {item['ctx']['expected_tags']}"
    if item["type"] in said:
        return said[item["type"]]
    message: str = item["msg"].removeprefix("Value error, ")
    return message


def read(path: Path) -> Document:
    """Read a config file.

    Raises:
        ConfigError: If it is missing, is no YAML mapping, or repeats a key.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError("there is no such config file", where=str(path), hint="name one with -C FILE") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the config file cannot be read: {error}", where=str(path)) from error
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise ConfigError(
                "is empty or no mapping of sections", where=str(path), hint="the README shows a whole one"
            )
        places: dict[Place, tuple[int, int]] = {(): (1, 1)}
        data = _Reader(path, loader, places).value(node, ())
    except InvalidOperation:
        raise ConfigError("a number must be finite digits", where=str(path)) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        begun = getattr(error, "context_mark", None)
        hint = f"it belongs to what begins at line {begun.line + 1}, column {begun.column + 1}" if begun else None
        problem = _QUOTED.sub(r"\1", str(getattr(error, "problem", None) or error))
        raise ConfigError(f"is no YAML: {problem}", where=where, hint=hint) from None
    finally:
        loader.dispose()
    return Document(path, data, places)


class _Reader:
    def __init__(self, path: Path, loader: yaml.SafeLoader, places: dict[Place, tuple[int, int]]) -> None:
        self._path, self._loader, self._places = path, loader, places

    def value(self, node: yaml.Node, place: Place) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                self._mark((*place, number), item)
            return [self.value(item, (*place, number)) for number, item in enumerate(node.value)]
        if node.tag == "tag:yaml.org,2002:float":
            return Decimal(node.value.replace("_", ""))  # exact, and no way in for .inf and .nan
        try:
            return self._loader.construct_object(node)
        except ValueError:  # a date of a thirteenth month, say
            where = f"{self._path}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"
            raise ConfigError("looks like a date or a number, and is none: quote it", where=where) from None

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[Hashable, Any]:
        result: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            key = self._loader.construct_object(key_node)
            here = f"{self._path}:{key_node.start_mark.line + 1}:{key_node.start_mark.column + 1}"
            if not isinstance(key, str):
                raise ConfigError("a key must be text: quote it", where=here)
            if key in result:
                raise ConfigError(f"the key {key!r} stands here twice", where=here)
            self._mark((*place, key), key_node)
            result[key] = self.value(value_node, (*place, key))
        return result

    def _mark(self, place: Place, node: yaml.Node) -> None:
        self._places[place] = (node.start_mark.line + 1, node.start_mark.column + 1)
