"""The effective config: with defaults, secrets as references, and personal constants masked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from pathlib import Path
from typing import Any

from msgspec import Struct
from pydantic import BaseModel

from crossdock.config.project.project import Project, load
from crossdock.config.stream_configuration import StreamConfig, StreamOverrides
from crossdock.mapping.declarative import Const, Each, Nested, Template, When
from crossdock.mapping.from_column import FromColumn
from crossdock.mapping.python_function import PythonFunction
from crossdock.mapping.stream_declaration import Filter
from crossdock.state import StateUrl
from crossdock.state.db.database_opening_and_errors import url_without_password
from crossdock.values import config_file, exact_json
from crossdock.values.config_base_types import Secret
from crossdock.values.yaml_reader import Origin, Place, escape_dollars

PERSONAL = "(personal)"
_CONSTANTS = ("otherwise", "default")
_COMPARED = ("equals", "one_of", "starts_with", "ends_with")


def effective_config(path: Path, *overrides: Path) -> dict[str, Any]:
    """Return the sections of a config file with all defaults and absolute paths, without settings that are None.

    `PERSONAL` replaces constants of personal members, and the values that filters compare personal columns with.
    """
    return effective_config_of_project(load(path, *overrides))


def effective_config_of_project(loaded: Project) -> dict[str, Any]:
    """Return the same of a config that is loaded, from a file or from memory."""
    assert loaded.config_sections is not None
    connections = {
        connection.name: _shown_value(connection.settings, frozenset(_columns_of_personal_members(connection.settings)))
        for connection in loaded.connections
    }
    sections = {
        "state": _database_address(loaded.state_url),
        "spool": _shown_value(loaded.spool, ()),
        "connections": connections,
    }
    return _shown_members(loaded.config_sections, ()) | sections


class Setting(Struct, frozen=True):
    """One effective setting. *origin* is where a file says it; None for a default."""

    place: Place
    value: str
    origin: Origin | None


def effective_settings(loaded: Project) -> Iterator[Setting]:
    """Yield the settings of `effective_config` one by one, each with its file and line."""
    document = config_file.read_config_with_overrides(loaded.path, *loaded.overrides)
    for place, value in _leaves(effective_config_of_project(loaded), ()):
        yield Setting(place, _value_text(value), document.content.places.get(place))


class ChangedSetting(Struct, frozen=True):
    """A setting whose value is another one now. *then* or *now* is None if there was or is none."""

    place: Place
    then: str | None
    now: str | None


def changed_settings(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[ChangedSetting]:
    """Compare two results of `effective_config`.

    A section that was or is empty is no setting if it has some on one side. Values whose texts are the same, such as a
    number and a text, are shown as JSON.
    """
    before, after = dict(_leaves(then, ())), dict(_leaves(now, ()))
    sections = {place[:length] for place in (*before, *after) for length in range(len(place))}
    changed = []
    for place in dict.fromkeys([*after, *before]):
        exact = [_json_text(side[place]) if place in side else None for side in (before, after)]
        texts = [_value_text(side[place]) if place in side else None for side in (before, after)]
        if exact[0] != exact[1] and place not in sections:
            changed.append(ChangedSetting(place, *(texts if texts[0] != texts[1] else exact)))
    return changed


def _leaves(value: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    items: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list) and any(isinstance(each, Mapping | list) for each in value):
        items = enumerate(value)
    elif isinstance(value, list) and value:
        yield place, value
        return
    is_empty = True
    for name, inner in items:
        is_empty = False
        yield from _leaves(inner, (*place, name))
    if is_empty:
        yield place, value


def _value_text(value: Any) -> str:
    if isinstance(value, list) and value:
        return ", ".join(map(_value_text, value))
    return value if isinstance(value, str) else _json_text(value)


def _json_text(value: Any) -> str:
    return exact_json.dumps(value).decode()


def _shown_value(value: Any, personal: Collection[str]) -> Any:
    shown: Any = value
    match value:
        case str() | bool() | int() | None:
            pass
        case float() | Decimal():
            number = Decimal(str(value))
            shown = number if number.is_finite() else str(value)  # infinity is no JSON
        case Secret() | PythonFunction():
            shown = value.reference
        case StreamConfig() | StreamOverrides() if not isinstance(value.map, PythonFunction):
            members = _personal_members(value)
            forms = {
                name: _mapping_form_with_masked_constants(form) if name in members else form
                for name, form in value.map.items()
            }
            shown = {**_shown_members(value, personal), "map": _shown_value(forms, personal)}
        case Filter() if value.field in personal:
            masked = {name: PERSONAL for name in _COMPARED if getattr(value, name) is not None}
            shown = _shown_members(value.model_copy(update=masked), personal)
        case BaseModel():
            shown = _shown_members(value, personal)
        case Mapping():
            shown = {str(name): _shown_value(inner, personal) for name, inner in value.items()}
        case Path():
            shown = str(value.resolve())
        case Iterable():
            shown = _shown_items(value, personal)
        case _:
            shown = str(value)
    return escape_dollars(shown) if isinstance(shown, str) else shown


def _shown_items(values: Iterable[Any], personal: Collection[str]) -> list[Any]:
    """Return what is shown of *values*; of a set in the same order in each process."""
    shown = [_shown_value(each, personal) for each in values]
    return sorted(shown, key=_json_text) if isinstance(values, AbstractSet) else shown


def _database_address(url: StateUrl) -> str:
    if url.drivername == "sqlite":
        url = url.set(database=_shown_value(Path(url.database or ""), ()))
    return url_without_password(url)


def _shown_members(model: BaseModel, personal: Collection[str]) -> dict[str, Any]:
    if isinstance(model, FromColumn) and model.table is not None and model.from_ in personal:
        model = model.model_copy(update={"table": {PERSONAL: PERSONAL}})
    return {
        field.alias or name: _shown_value(value, personal)
        for name, field in type(model).model_fields.items()
        if (value := getattr(model, name)) is not None or field.default is not None
    }


def _personal_members(stream: StreamConfig | StreamOverrides) -> frozenset[str]:
    ours = stream.resource_type.personal if stream.resource_type else frozenset()
    return ours | frozenset(stream.personal)


def _mapping_form_with_masked_constants(form: Any) -> Any:
    masked = form
    match form:
        case Const() | bool() | int() | Decimal():
            masked = Const(const=PERSONAL)
        case Template():
            masked = Template(template=" ".join((PERSONAL, *(f"{{{column}}}" for column in form.columns()))))
        case Nested():
            masked = Nested(
                object={name: _mapping_form_with_masked_constants(inner) for name, inner in form.object.items()}
            )
        case FromColumn():
            masked = form.model_copy(update={name: PERSONAL for name in _CONSTANTS if getattr(form, name) is not None})
        case When():
            masked = form.model_copy(
                update={
                    "then": _mapping_form_with_masked_constants(form.then),
                    "otherwise": _mapping_form_with_masked_constants(form.otherwise),
                }
            )
    return masked


def _columns_of_personal_members(value: Any) -> Iterator[str]:
    """Yield the columns that personal members are mapped from, of every stream in *value*."""
    if isinstance(value, StreamConfig | StreamOverrides):
        forms = {} if isinstance(value.map, PythonFunction) else value.map
        for name in _personal_members(value) & forms.keys():
            form = forms[name]
            columns = [form] if isinstance(form, str) else [] if isinstance(form, Each) else form.columns()
            for column in columns:  # lines contain no personal data
                yield from (column, column.partition(".")[2])  # the source of a look-up has it without a prefix
    elif isinstance(value, Mapping | BaseModel):
        for _, inner in value.items() if isinstance(value, Mapping) else value:
            yield from _columns_of_personal_members(inner)
