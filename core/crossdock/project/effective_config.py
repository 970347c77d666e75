"""A loaded config as plain values: with its defaults, with references for secrets, and without what is personal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from crossdock import config_file
from crossdock.config_file import Secret
from crossdock.declared import StreamConfig
from crossdock.mapping.declarative import Const, Each, Nested, Template
from crossdock.mapping.repairs_and_filters import Filter
from crossdock.notifications.notifier import notify_config
from crossdock.project import project
from crossdock.resources import RESOURCES, personal_members
from crossdock.state import StateUrl

PERSONAL = "(personal)"
_COMPARED = ("equals", "one_of", "starts_with", "ends_with")


def effective(path: Path) -> dict[str, Any]:
    """The sections of a config file, all defaults filled in and paths whole; what is unset by default is left out.

    A secret is shown as its reference. Constants of personal members, and what filters compare with columns that
    personal members are made of, are shown as `PERSONAL`.

    Raises:
        ConfigError: With every finding and its place in the file.
    """
    loaded = project.load(path)
    document = config_file.read(path)
    connections = {
        connection.name: _plain(connection.settings, frozenset(_personal_columns(connection.settings)))
        for connection in loaded.connections
    }
    told = notify_config(document)
    notify = {} if told is None else {"notify": _plain(told, ())}
    found = {"state": _address(loaded.state_url), "spool": _plain(loaded.spool, ()), "connections": connections}
    return _members(document.check(project.ConfigFile, document.data), ()) | found | notify


def _plain(value: Any, personal: Collection[str]) -> Any:
    """*value* as YAML and JSON have it; *personal* are the columns whose content must not be shown."""
    shown: Any = value
    match value:
        case str() | bool() | int() | Decimal() | None:
            pass
        case Secret():
            shown = value.reference
        case StreamConfig():
            forms = _impersonal(value.map, _personal_members(value))
            shown = {**_members(value, personal), "map": _plain(forms, personal)}
        case Filter() if value.field in personal:
            compared = value.model_copy(
                update={name: PERSONAL for name in _COMPARED if getattr(value, name) is not None}
            )
            shown = _members(compared, personal)
        case BaseModel():
            shown = _members(value, personal)
        case Mapping():
            shown = {str(name): _plain(inner, personal) for name, inner in value.items()}
        case float():
            shown = Decimal(repr(value))
        case Path():
            shown = str(value.resolve())
        case Iterable():
            shown = [_plain(inner, personal) for inner in value]
        case _:
            shown = str(value)
    return shown


def _address(url: StateUrl) -> str:
    if url.drivername == "sqlite":
        url = url.set(database=_plain(Path(url.database or ""), ()))
    return url.render_as_string(hide_password=True)


def _members(model: BaseModel, personal: Collection[str]) -> dict[str, Any]:
    return {
        field.alias or name: _plain(value, personal)
        for name, field in type(model).model_fields.items()
        if (value := getattr(model, name)) is not None or field.default is not None
    }


def _personal_members(stream: StreamConfig) -> frozenset[str]:
    return personal_members(RESOURCES[stream.resource].draft) | frozenset(stream.personal)


def _impersonal(forms: Mapping[str, Any], personal: Collection[str]) -> dict[str, Any]:
    """*forms* without the texts that make a personal member of each record the same."""
    return {name: _masked(form) if name in personal else form for name, form in forms.items()}


def _masked(form: Any) -> Any:
    match form:
        case Const():
            return Const(const=PERSONAL)
        case Template():
            return Template(template=" ".join((PERSONAL, *(f"{{{column}}}" for column in form.columns()))))
        case Nested():
            return Nested(object={name: _masked(inner) for name, inner in form.object.items()})
    return form


def _personal_columns(value: Any) -> Iterator[str]:
    """The columns that personal members are made of, of every stream in *value*."""
    if isinstance(value, StreamConfig):
        for name in _personal_members(value) & value.map.keys():
            form = value.map[name]
            if isinstance(form, str):
                yield form
            elif not isinstance(form, Each):  # lines hold nothing personal
                yield from form.columns()
    elif isinstance(value, Mapping | BaseModel):
        for _, inner in value.items() if isinstance(value, Mapping) else value:
            yield from _personal_columns(inner)
