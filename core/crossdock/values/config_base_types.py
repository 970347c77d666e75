"""Base model and field types of a config, also times of day and durations.

Findings have no values; secrets are references, never literals.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetPydanticSchema,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError, core_schema

from crossdock.errors import ConfigError
from crossdock.values.config_file import unknown_key_message
from crossdock.values.safe_local_files import open_regular_file, read_rest_within_limit
from crossdock.values.web_address_checks import check_host_name, checked_base_url_without_slash
from crossdock.values.yaml_reader import Place

A_TIME = 'time from "00:00" to "23:59" (in quotes, or YAML makes the number 870 of 14:30)'
_TIME = re.compile("([01][0-9]|2[0-3]):[0-5][0-9]")
TIME_SCHEMA = {"type": "string", "pattern": f"^({_TIME.pattern})$"}
_UNITS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


def is_time_of_day(value: Any) -> bool:
    return isinstance(value, str) and _TIME.fullmatch(value) is not None


def check_time_of_day(value: Any) -> str:
    if not is_time_of_day(value):
        raise ValueError(f"{str(value)!r} is not a {A_TIME}")
    return str(value)


TimeOfDay = Annotated[str, BeforeValidator(check_time_of_day), WithJsonSchema(TIME_SCHEMA)]


def is_duration(value: Any, units: str) -> bool:
    """Return whether *value* is a number from 1 to 99999 and one of *units*, of s, m, h and d."""
    return isinstance(value, str) and re.fullmatch(_duration_pattern(units), value) is not None


def duration_schema(units: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^{_duration_pattern(units)}$"})


def _duration_pattern(units: str) -> str:
    return f"([1-9][0-9]{{0,4}})([{units}])"


def parse_duration(duration: str) -> timedelta:
    return int(duration[:-1]) * _UNITS[duration[-1]]


MAX_SECRET_BYTES = 64 << 10
MAX_S = 1_000_000_000
"""The most seconds of any setting, within the range of clocks and sockets."""
IGNORED = "x-"
"""The prefix of keys that a section ignores. They hold anchors for other sections."""
NAME_FORM = "a name has 1 to 63 letters (a to z, A to Z), digits, _ and -, and begins with a letter or a digit"
_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


class ConfigModel(BaseModel):
    """Base of all config models: frozen, unknown keys refused with the nearest known name, `IGNORED` ones left out."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        arbitrary_types_allowed=True,
        validate_by_alias=True,
        validate_by_name=True,
        defer_build=True,
    )

    renamed_keys: ClassVar[Mapping[str, str]] = {}
    """The former names of keys, with the present ones. They still work, and checks and runs warn about them."""

    @model_validator(mode="before")
    @classmethod
    def _rename_and_check_keys(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, Mapping):
            return data
        known = [field.alias or name for name, field in cls.model_fields.items()]
        read = {key: value for key, value in data.items() if not str(key).startswith(IGNORED)}
        for old, new in cls.renamed_keys.items():
            if old not in read:
                continue
            if new in read:
                advice = f"is the former name of {new!r}, which is set as well: remove one of them"
                raise PydanticCustomError("unknown_key", "{advice}", {"key": old, "advice": advice})
            read[new] = read.pop(old)
            (info.context or {}).get("renamed", []).append((data, old, new))
        for key in read:
            if key not in known and key not in cls.model_fields:
                advice = unknown_key_message(str(key), known)
                raise PydanticCustomError("unknown_key", "{advice}", {"key": key, "advice": advice})
        return read


def lazily_imported_type(load: Callable[[], Any]) -> GetPydanticSchema:
    """Return the schema of a key whose type *load* imports once a config has the key, so that others start sooner."""

    @cache
    def adapter() -> TypeAdapter[Any]:
        return TypeAdapter(load())

    def validated(value: Any, info: ValidationInfo) -> Any:
        return adapter().validate_python(value, context=info.context)

    return GetPydanticSchema(
        lambda _source, _handler: core_schema.with_info_plain_validator_function(validated),
        lambda _schema, handler: handler(adapter().core_schema),
    )


@dataclass(frozen=True, slots=True)
class Secret:
    """A reference to a secret, ``env:NAME`` or ``file:PATH``, which is read only when it is needed."""

    reference: str
    folder: Path

    def reveal(self) -> str:
        """Read the secret.

        Raises:
            ConfigError: If the variable is not set, or the file is missing, empty, readable by others, not a regular
                file, or larger than `MAX_SECRET_BYTES`.
        """
        kind, _, name = self.reference.partition(":")
        if kind == "env":
            value = os.environ.get(name)
            if not value:
                raise ConfigError(
                    f"the environment variable {name} is not set", hint=f"export {name}=...", code="secret_missing"
                )
            return value
        path = self.file
        assert path is not None
        try:
            with open_regular_file(path) as file:
                if os.fstat(file.fileno()).st_mode & 0o077:
                    message = f"others may read the secret {self.reference}"
                    raise ConfigError(message, where=str(path), hint=f"chmod 600 {path}", code="secret_unreadable")
                text = read_rest_within_limit(file, MAX_SECRET_BYTES).decode().strip()
        except OSError as error:
            message = f"the secret {self.reference} cannot be read: {error.strerror}"
            raise ConfigError(message, where=str(path), code="secret_unreadable") from error
        except UnicodeDecodeError:
            raise ConfigError(
                f"the secret {self.reference} is not UTF-8 text", where=str(path), code="secret_invalid"
            ) from None
        if not text:
            raise ConfigError("the secret file is empty", where=str(path), code="secret_invalid")
        return text

    @property
    def file(self) -> Path | None:
        """The file that has it; None for a variable. Raises ConfigError for that of an unknown user."""
        kind, _, name = self.reference.partition(":")
        if kind != "file":
            return None
        try:
            return self.folder / Path(name).expanduser()
        except RuntimeError:
            raise ConfigError(
                f"the secret {self.reference} is in the home directory of an unknown user", code="secret_unreadable"
            ) from None

    def reveal_for_header(self) -> str:
        """Read the secret for an HTTP header. Raises ConfigError also if it is not one word of printable ASCII."""
        value = self.reveal()
        if not (value.isascii() and value.isprintable() and " " not in value):
            raise ConfigError(
                f"{self.reference} contains spaces or characters that are not allowed in a header",
                code="secret_invalid",
            )
        return value


def secrets_in(value: object) -> Iterator[Secret]:
    return (secret for _, secret in secrets_with_places(value))


def secrets_with_places(value: object, place: Place = ()) -> Iterator[tuple[Place, Secret]]:
    """Yield the secrets in *value*, each with the keys that lead to it."""
    if isinstance(value, Secret):
        yield place, value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from secrets_with_places(getattr(value, name), (*place, name))
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from secrets_with_places(inner, (*place, name))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from secrets_with_places(inner, (*place, number))


def _parse_secret_reference(value: Any, info: ValidationInfo) -> Secret:
    if isinstance(value, Secret):
        return value
    kind, _, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    if kind not in {"env", "file"} or not name:
        message = "a secret is never written here: refer to it by env:NAME or file:PATH"
        raise PydanticCustomError("literal_secret", message)
    folder = info.context["folder"] if info.context else Path()
    return Secret(value, folder)


SecretRef = Annotated[
    Secret, BeforeValidator(_parse_secret_reference), WithJsonSchema({"type": "string", "pattern": "^(env|file):.+"})
]
"""A secret of the settings: ``env:NAME`` or ``file:PATH`` in a config file, whose value is read when it is used."""


def _resolve_path(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str) or not info.context:
        return value
    try:
        return info.context["folder"] / Path(value).expanduser()
    except RuntimeError:
        raise ValueError("begins with ~ and the name of an unknown user") from None


ConfigPath = Annotated[Path, BeforeValidator(_resolve_path)]
"""A path, relative to the config file."""


def _refuse_null(value: Any) -> Any:
    if value is None:
        raise PydanticCustomError("string_type", "must be text")
    return value


NOT_NULL = BeforeValidator(_refuse_null)
"""For texts that may be missing, but not null: YAML reads an unquoted NULL, which may be meant as text, as null."""
GivenText = Annotated[str | None, NOT_NULL, WithJsonSchema({"type": "string"})]


def is_valid_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def _check_name(text: str) -> str:
    if not is_valid_name(text):
        raise ValueError(NAME_FORM)
    return text


Name = Annotated[str, AfterValidator(_check_name), WithJsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$"})]
"""1 to 63 ASCII letters, digits, ``_`` and ``-``: valid in command lines, file names and the state."""


def text_type_matching_pattern(pattern: str, words: str) -> GetPydanticSchema:
    """Check text by *pattern*, of which a finding tells the *words*."""

    def check(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise PydanticCustomError("form", "must be {words}", {"words": words})
        return text

    return GetPydanticSchema(
        lambda _, handler: handler(
            Annotated[str, AfterValidator(check), WithJsonSchema({"type": "string", "pattern": pattern})]
        )
    )


HostName = Annotated[str, AfterValidator(check_host_name)]
"""The name or the IP address of a host, without a port."""
BaseUrl = Annotated[str, AfterValidator(checked_base_url_without_slash)]
"""The base URL of an API: https, or http on this machine, without a user, a password or a query."""


def differs_from_default(model: ConfigModel, key: str) -> bool:
    """Return whether *key* has another value than its default, which `crossdock config show` writes, too."""
    return bool(getattr(model, key) != type(model).model_fields[key].get_default(call_default_factory=True))


def make_pydantic_error_at_key(place: Place, message: str) -> PydanticCustomError:
    """Make a finding about the key at *place*, for a validator of the model around it."""
    return PydanticCustomError("unknown_key", "{advice}", {"key": place, "advice": message})
