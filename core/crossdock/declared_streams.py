"""Streams declared in a config file: the same facts as a stream in code, and a declarative mapping."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Self, TypeVar, get_args, get_origin

from pydantic import model_validator

from crossdock import exact_json
from crossdock.config_file import ConfigModel, misplaced, unknown
from crossdock.connector import Settings, Stream, StreamFacts, no_removal
from crossdock.mapping.declarative import Each, Form, Nested, RecordMap, When
from crossdock.records import Record
from crossdock.resources import RESOURCES, ResourceModel

S = TypeVar("S", bound=Settings)


class StreamConfig(ConfigModel, StreamFacts):
    """One stream: which rows make a record, and what it becomes."""

    map: Mapping[str, Form]
    """How each member of the resource is made."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.group_by is not None and self.group_by != self.key:
            raise ValueError("group_by and key must name the same columns")
        if reason := no_removal(self.resource, self.mode, self.on_gone):
            raise misplaced(("on_gone",), reason)
        self._check_members(RESOURCES[self.resource].draft, self.map, ("map",))
        for number, name in enumerate(self.personal):
            if name not in self.map:
                raise misplaced(("personal", number), unknown(name, list(self.map)))
        return self

    def _check_members(self, model: type[ResourceModel], forms: Mapping[str, Any], place: tuple[str, ...]) -> None:
        known = {field.alias or name: field for name, field in model.model_fields.items()}
        for name, form in forms.items():
            if name not in known:
                raise misplaced((*place, name), unknown(name, list(known)))
            inner, is_list = _models_of(known[name].annotation)
            if isinstance(form, Each) is not is_list:
                raise misplaced(
                    (*place, name), "is a list: use each" if is_list else "is not a list: each cannot be used"
                )
            if isinstance(form, Each) and self.group_by is None:
                raise misplaced((*place, name), "makes one item of each row, which needs group_by")
            if isinstance(form, Each) and inner:
                self._check_members(inner, form.each, (*place, name, "each"))
            for nested, where in _nested(form, (*place, name)):
                if inner is None:
                    raise misplaced(where, "is not an object of members")
                self._check_members(inner, nested.object, (*where, "object"))
        missing = [name for name, field in known.items() if field.is_required() and name not in forms]
        if missing:
            raise misplaced(place, f"lacks {', '.join(missing)}, which every {self.resource} needs")


def _nested(form: Any, place: tuple[str, ...]) -> Iterator[tuple[Nested, tuple[str, ...]]]:
    """Every object that *form* may give, with its place."""
    match form:
        case Nested():
            yield form, place
        case When():
            yield from _nested(form.then, (*place, "then"))
            yield from _nested(form.otherwise, (*place, "otherwise"))


def _models_of(annotation: Any) -> tuple[type[ResourceModel] | None, bool]:
    """The model inside a field's annotation if there is one, and whether the field is a list."""
    inside = get_args(annotation) or (annotation,)
    model = next((kind for kind in inside if isinstance(kind, type) and issubclass(kind, ResourceModel)), None)
    return model, get_origin(annotation) is tuple


class DeclaredStream(Stream[S]):
    """A stream declared in a config file; a connector adds `pull`.

    Args:
        config: Its section of the config file.
        layout: What else decides how bytes become records, such as the file's format; part of `version`.
    """

    def __init__(self, name: str, config: StreamConfig, layout: Mapping[str, Any]) -> None:
        self.name = name
        for fact in StreamFacts.__annotations__:
            setattr(self, fact, getattr(config, fact))
        self._map = RecordMap(config.map)
        self.uses = self._map.columns
        forms = config.model_dump(mode="python", include={"map"}, by_alias=True, exclude_none=True)
        self.mapping_version = hashlib.sha256(exact_json.dumps({"layout": layout, **forms})).hexdigest()

    def to_resource(self, record: Record) -> Mapping[str, Any]:
        return self._map(record)
