"""Streams written in a config file: the same facts and functions that a stream in code has."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeVar, get_args, get_origin

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from crossdock import exact_json
from crossdock.config_file import ConfigModel, unknown
from crossdock.connector import FailureLimits, GoneLimits, Mode, OnGone, Settings, Stream, no_removal
from crossdock.mapping.declarative import Each, Form, Nested, RecordMap
from crossdock.mapping.repairs_and_filters import Filter, Repair
from crossdock.records import Record
from crossdock.resources import RESOURCES, ResourceModel, ResourceName

S = TypeVar("S", bound=Settings)
Columns = Annotated[tuple[str, ...], Field(min_length=1)]


class StreamConfig(ConfigModel):
    """One stream: which rows make a record, and what it becomes."""

    resource: ResourceName
    mode: Mode
    key: Columns
    """The columns that name a record."""
    group_by: Columns | None = None
    """Rows of one file with the same key make one record, such as an invoice and its lines. The same columns as key."""
    order_by: Columns | None = None
    """Where rows of one key compete: the columns that name the newest, compared as text."""
    columns: Mapping[str, Repair] = {}
    """Repairs by column, before key, filters and mapping."""
    skip: Mapping[str, Filter] = {}
    """Rows to leave out, by the name under which they are counted; the first that matches counts."""
    fingerprint: Literal["xxh3_64", "xxh3_128"] = "xxh3_64"
    duplicates: Literal["refuse", "last"] = "refuse"
    """What becomes of a snapshot that lists a key twice and differently, where ``order_by`` does not decide."""
    adopt: Literal["never", "external_id"] = "never"
    """``external_id`` takes over what the platform already has under our name for it; else that is a conflict."""
    personal: tuple[str, ...] = ()
    """Members of the resource whose values are personal here and must not be shown, such as a product's description."""
    on_gone: OnGone = "nothing"
    """Of a record that a snapshot no longer lists: leave it, ``archive`` it (active: false), or ``delete`` it."""
    gone: GoneLimits = GoneLimits()
    """When that is done without a person's approval."""
    mapping_failed: FailureLimits = FailureLimits()
    """At how many records code of the mapping may fail before the stream stops."""
    map: Mapping[str, Form]
    """How each member of the resource is made."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.group_by is not None and self.group_by != self.key:
            raise ValueError("group_by and key must name the same columns")
        if reason := no_removal(self.resource, self.mode, self.on_gone):
            raise _misplaced(("on_gone",), reason)
        self._check_members(RESOURCES[self.resource].draft, self.map, ("map",))
        for number, name in enumerate(self.personal):
            if name not in self.map:
                raise _misplaced(("personal", number), unknown(name, list(self.map)))
        return self

    def _check_members(self, model: type[ResourceModel], forms: Mapping[str, Any], place: tuple[str, ...]) -> None:
        known = {field.alias or name: field for name, field in model.model_fields.items()}
        for name, form in forms.items():
            if name not in known:
                advice = unknown(name, list(known))
                raise PydanticCustomError("unknown_key", "{advice}", {"key": (*place, name), "advice": advice})
            inner, is_list = _models_of(known[name].annotation)
            if isinstance(form, Each) is not is_list:
                raise _misplaced(
                    (*place, name), "is a list: use each" if is_list else "is no list: each has no place here"
                )
            if isinstance(form, Each) and self.group_by is None:
                raise _misplaced((*place, name), "makes one item of each row, which needs group_by")
            if isinstance(form, Each) and inner:
                self._check_members(inner, form.each, (*place, name, "each"))
            if isinstance(form, Nested) and inner:
                self._check_members(inner, form.object, (*place, name, "object"))
        missing = [name for name, field in known.items() if field.is_required() and name not in forms]
        if missing:
            raise _misplaced(place, f"lacks {', '.join(missing)}, which every {self.resource} needs")


def _misplaced(place: tuple[str | int, ...], message: str) -> PydanticCustomError:
    return PydanticCustomError("unknown_key", "{advice}", {"key": place, "advice": message})


def _models_of(annotation: Any) -> tuple[type[ResourceModel] | None, bool]:
    """The model inside a field's annotation if there is one, and whether the field is a list."""
    inside = get_args(annotation) or (annotation,)
    model = next((kind for kind in inside if isinstance(kind, type) and issubclass(kind, ResourceModel)), None)
    return model, get_origin(annotation) is tuple


class DeclaredStream(Stream[S]):
    """A stream made of its configuration; a connector adds where its rows come from.

    Args:
        name: In commands and reports.
        config: Its section of the config file.
        layout: What else makes the same bytes another record, such as the file's format.
    """

    def __init__(self, name: str, config: StreamConfig, layout: Mapping[str, Any]) -> None:
        self.name = name
        self.resource, self.mode, self.key = config.resource, config.mode, config.key
        self.group_by, self.order_by = config.group_by or (), config.order_by or ()
        self.columns, self.skip, self.fingerprint = config.columns, config.skip, config.fingerprint
        self.adopt, self.personal = config.adopt, config.personal
        self.duplicates = config.duplicates
        self.on_gone, self.gone, self.mapping_failed = config.on_gone, config.gone, config.mapping_failed
        self._map = RecordMap(config.map)
        self.uses = self._map.columns
        forms = config.model_dump(mode="python", include={"map"}, by_alias=True, exclude_none=True)
        self.mapping_version = hashlib.sha256(exact_json.dumps({"layout": layout, **forms})).hexdigest()

    def to_resource(self, record: Record) -> Mapping[str, Any]:
        return self._map(record)
