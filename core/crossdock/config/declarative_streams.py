"""Streams declared in a config file, with the same declarations as a stream in code and a declarative mapping."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar, get_args, get_origin

from pydantic import (
    GetJsonSchemaHandler,
    GetPydanticSchema,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from crossdock.connector import Settings, Stream
from crossdock.mapping import lookup_and_join_settings
from crossdock.mapping.declarative import Const, Each, Form, Nested, RecordMap, Total, When
from crossdock.mapping.from_column import FromColumn
from crossdock.mapping.lookup_and_join_settings import Join, Lookup
from crossdock.mapping.own_external_ids import ours_problem
from crossdock.mapping.python_function import PythonFunction, load
from crossdock.mapping.repairs_and_filters import Filter
from crossdock.mapping.resource_types import ResourceType
from crossdock.mapping.stream_declaration import (
    EVERY_WITHOUT_LIST,
    MARKS_IN_SNAPSHOT,
    PLATFORM,
    Destinations,
    StreamDeclaration,
    adopt_option_problem,
    contribution_problem,
    destination_resource_type,
    empty_export_option_problem,
    reads_problem,
    removal_problem,
    reread_and_open_until_problem,
)
from crossdock.resources import ResourceModel
from crossdock.values import exact_json
from crossdock.values.config_base_types import ConfigModel, finding_about_key
from crossdock.values.config_file import finding_message_without_place, unknown_key_message
from crossdock.values.raw_rows_and_records import Record

S = TypeVar("S", bound=Settings)
_TYPES = {"string_type": "must be text here: quote it", "bool_type": "must be true or false here, without quotes"}


Members = Mapping[str, Form]


def _members_or_loaded_function(value: Any, members: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    if isinstance(value, str):
        return load(value, info.context["folder"] if info.context else Path())
    return value if isinstance(value, PythonFunction) else members(value)


class _MapSchema:
    """One schema for members and for the text of a function, so that editors show what is wrong with a member."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        members = handler(core_schema)
        return members | {"type": ["object", "string"], "pattern": r"^.+\.py:[A-Za-z_][A-Za-z0-9_]*$"}


_Map = Annotated[Members, WrapValidator(_members_or_loaded_function), _MapSchema]


class StreamConfig(ConfigModel, StreamDeclaration):
    """One stream: which rows make a record, and what it becomes."""

    _resource_type: ResourceType | None = PrivateAttr(None)

    map: Annotated[Members | PythonFunction, GetPydanticSchema(lambda _, handler: handler(_Map))]
    """How each member of the resource is made; or ``FILE.py:FUNCTION``, a function of a `Record`."""

    @property
    def lists_existing(self) -> bool:
        return False

    @property
    def fetches(self) -> bool:
        return False

    @property
    def read_resource(self) -> str | None:
        return self.reads

    @property
    def finds_deleted(self) -> bool:
        return self.deleted is not None or self.lists_existing or (self.reread is not None and self.reread.finds_gone)

    @property
    def resource_type(self) -> ResourceType | None:
        """The type that its records become; None while the targets of the config are unknown."""
        return self._resource_type

    @model_validator(mode="after")
    def _find_type_and_check_options(self, info: ValidationInfo) -> Self:
        targets: Destinations | None = (info.context or {}).get("targets")
        if self.to == PLATFORM or targets is not None:
            self._resource_type = destination_resource_type(self.resource, self.to, targets or {})
        if self.group_by is not None and self.group_by != self.key:
            raise ValueError("group_by and key must name the same columns")
        if self.deleted is not None and self.mode == "snapshot":
            raise finding_about_key(("deleted",), MARKS_IN_SNAPSHOT)
        if reason := empty_export_option_problem(self.mode, self.empty):
            raise finding_about_key(("empty",), reason)
        if reason := ours_problem(self.ours, self.skip, self.read_resource):
            raise finding_about_key(("ours",), reason)
        if self.gone.every is not None and not self.lists_existing:
            raise finding_about_key(("gone", "every"), EVERY_WITHOUT_LIST)
        other = "deleted" if self.deleted is not None else "existing" if self.lists_existing else ""
        if second := reread_and_open_until_problem(
            self.mode, self.reread, self.open_until, fetches=self.fetches, other_deletion_setting=other
        ):
            raise finding_about_key(*second)
        if targets is not None and (reason := reads_problem(self, self.read_resource, targets)):
            raise finding_about_key(("reads",), reason)
        kind = self.resource_type
        if kind is None:
            return self  # checked again when it is known
        self._check_against_resource_type(kind)
        return self

    def _check_against_resource_type(self, kind: ResourceType) -> None:
        if reason := removal_problem(kind, self.mode, self.on_gone, finds_deleted=self.finds_deleted):
            raise finding_about_key(("on_gone",), reason)
        if reason := contribution_problem(kind, self.contributes, self.matches, self.on_gone):
            raise finding_about_key(("contributes",), reason)
        mapped = None if isinstance(self.map, PythonFunction) else self.map
        if reason := adopt_option_problem(kind, self.adopt, self.to, self.contributes, mapped):
            raise finding_about_key(("adopt",), reason)
        members = list(model_fields_by_wire_name(kind.draft))
        if not isinstance(self.map, PythonFunction):
            check_mapped_members(self, kind, kind.draft, self.map, ("map",), whole=not self.contributes)
            if self.contributes and (other := next((name for name in self.map if name not in self.contributes), None)):
                raise finding_about_key(("map", other), f"is not one of contributes: {', '.join(self.contributes)}")
            members = list(self.map)
        for number, name in enumerate(self.personal):
            if name not in members:
                raise finding_about_key(("personal", number), unknown_key_message(name, members))


def check_mapped_members(
    stream: StreamDeclaration,
    kind: ResourceType,
    model: type[ResourceModel],
    forms: Mapping[str, Any],
    place: tuple[str | int, ...],
    *,
    whole: bool = True,
) -> None:
    """Check the *forms* of members of *model*, and if *whole*, that no required one is missing. Errors have a place."""
    known = model_fields_by_wire_name(model)
    for name, form in forms.items():
        if name not in known:
            raise finding_about_key((*place, name), unknown_key_message(name, list(known)))
        inner, is_list = _model_and_is_list(known[name].annotation)
        if (isinstance(form, Each) and not form.single) is not is_list:
            as_object = "is not a list: each needs single: true" if inner else "is not a list: each cannot be used"
            raise finding_about_key((*place, name), "is a list: use each, without single" if is_list else as_object)
        if isinstance(form, Each) and form.of is None and stream.group_by is None:
            raise finding_about_key(
                (*place, name), "makes one item of each row, which needs group_by, or of: a join or a list"
            )
        _check_constants(model, name, form, (*place, name))
        if isinstance(form, Each) and inner:
            check_mapped_members(stream, kind, inner, form.each, (*place, name, "each"))
        elif isinstance(form, Each) and form.single:
            raise finding_about_key((*place, name), "is not an object of members")
        for nested, where in _nested_members_outside_each_key(form, (*place, name)):
            if inner is None:
                raise finding_about_key(where[:-1], "is not an object of members")
            check_mapped_members(stream, kind, inner, nested, where)
    missing = [name for name, field in known.items() if field.is_required() and name not in forms]
    if missing and whole:
        raise finding_about_key(place, f"lacks {', '.join(missing)}, which every {kind.name} needs")


def _nested_members_outside_each_key(
    form: Any, place: tuple[str | int, ...]
) -> Iterator[tuple[Mapping[str, Any], tuple[str | int, ...]]]:
    """Yield the members of the objects that *form* makes beside those of ``each``, with their places."""
    match form:
        case Nested():
            yield form.object, (*place, "object")
        case Each():
            for number, further in enumerate(form.also or ()):
                if isinstance(further, Each):
                    yield further.each, (*place, "also", number, "each")
                yield from _nested_members_outside_each_key(further, (*place, "also", number))
            if isinstance(form.total, Total) and form.total.rounding is not None:
                own = {"quantity": Const(const=1), "unitPrice": Const(const=1)}
                yield {**form.total.rounding, **own}, (*place, "total", "rounding")
        case When():
            yield from _nested_members_outside_each_key(form.then, (*place, "then"))
            yield from _nested_members_outside_each_key(form.otherwise, (*place, "otherwise"))


def _check_constants(model: type[ResourceModel], name: str, form: Any, place: tuple[str | int, ...]) -> None:
    for value, where in _constants_within_mapping_form(form, place):
        if fault := _constant_problem(model, name, value):
            raise finding_about_key(where, fault)


def _constants_within_mapping_form(
    form: Any, place: tuple[str | int, ...]
) -> Iterator[tuple[Any, tuple[str | int, ...]]]:
    match form:
        case bool() | int() | Decimal():
            yield form, place
        case Const():
            yield form.const, (*place, "const")
        case FromColumn():
            for text, value in (form.table or {}).items():
                yield value, (*place, "table", text)
            others = {"otherwise": form.otherwise, "default": form.default}
            yield from ((other, (*place, key)) for key, other in others.items() if other is not None)
        case When():
            yield from _constants_within_mapping_form(form.then, (*place, "then"))
            yield from _constants_within_mapping_form(form.otherwise, (*place, "otherwise"))


def model_fields_by_wire_name(model: type[ResourceModel]) -> dict[str, FieldInfo]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _constant_problem(model: type[ResourceModel], name: str, value: Any) -> str | None:
    try:
        model.model_validate({name: value})
    except ValidationError as error:
        found = [item for item in error.errors(include_url=False, include_input=False) if item["loc"][:1] == (name,)]
        if found:
            return _TYPES.get(found[-1]["type"]) or finding_message_without_place(found[-1])
    return None


def _model_and_is_list(annotation: Any) -> tuple[type[ResourceModel] | None, bool]:
    inside = [part for each in get_args(annotation) or (annotation,) for part in get_args(each) or (each,)]
    model = next((kind for kind in inside if isinstance(kind, type) and issubclass(kind, ResourceModel)), None)
    return model, any(get_origin(part) is tuple for part in (annotation, *get_args(annotation)))


class DeclaredStream(Stream[S]):
    """A stream declared in a config file; a connector adds `pull`.

    *layout* has other settings that decide how bytes become records, such as the file's format. `version` includes it.

    Attributes:
        mapped_members: The mapped members with their columns; empty for a function, which may make any member.
        joined_columns: The columns of each join that the mapping uses; None if it may use any.
    """

    is_declared_in_config = True

    def __init__(
        self,
        name: str,
        config: StreamConfig,
        layout: Mapping[str, Any],
        lookups: Mapping[str, Lookup] = {},
        joins: Mapping[str, Join] = {},
    ) -> None:
        self.name = name
        for attribute in StreamDeclaration.__annotations__:
            setattr(self, attribute, getattr(config, attribute))
        self.target_resource, self.reads = config.resource_type, config.read_resource
        self._lookups, self._joins = lookups, joins
        self.incomplete = lookup_and_join_settings.main_row_missing_filter(joins)
        self._let_filters_test_only_columns_that_were_read(
            lambda column: lookup_and_join_settings.missing_lookup_row_filter(column, lookups)
        )
        self.joined_columns: Mapping[str, Sequence[str]] | None = None
        self.mapped_members: Mapping[str, Sequence[str]] = {}
        if isinstance(config.map, PythonFunction):
            self._map: Callable[[Record], Any] = config.map.call
            forms: dict[str, Any] = {"map": config.map.digest, "function": config.map.reference}
        else:
            record_map = RecordMap(config.map, others=tuple(lookups))
            self._map, self.joined_columns = record_map, record_map.joined_columns
            self.mapped_members = record_map.columns_by_member
            lists = [name for name in record_map.joined_columns if name not in joins]
            found = [*lookups, *(f"{join}.{part}" for join in joins for part in ("content", "problem")), *lists]
            self.uses = (*record_map.columns, *found)
            forms = config.model_dump(mode="python", include={"map"}, by_alias=True, exclude_none=True)
        self.mapping_version = hashlib.sha256(exact_json.dumps({"layout": layout, **forms})).hexdigest()

    def _let_filters_test_only_columns_that_were_read(self, unread: Callable[[str], Filter | None]) -> None:
        """Let no filter leave a row out, or take its record for deleted, because a column of it could not be read.

        *unread* is that of `Filter.if_all_is_read`. The mapping rejects such a record.
        """
        self.skip = {name: rule.if_all_is_read(unread) for name, rule in self.skip.items()}
        self.deleted = None if self.deleted is None else self.deleted.if_all_is_read(unread)

    def to_resource(self, record: Record) -> ResourceModel | Mapping[str, Any]:
        lookup_and_join_settings.refuse_failed_lookups_and_joins(record, self._lookups, self._joins)
        lookup_and_join_settings.count_missing_and_older_rows(record, self._lookups, self._joins)
        made: ResourceModel | Mapping[str, Any] = self._map(record)
        return made
