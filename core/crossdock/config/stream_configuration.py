"""Streams as a config file declares or changes them, and checks of what classes of streams declare, as for a config.

A `StreamConfig` has the same declarations as a stream in code, and a declarative mapping.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from decimal import Decimal
from inspect import getattr_static
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar, cast, get_args, get_origin

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    GetPydanticSchema,
    InstanceOf,
    PrivateAttr,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from crossdock.connector import Settings, Stream, columns_in_stream_attributes
from crossdock.errors import ConfigError, FindingsError
from crossdock.mapping import lookup_and_join_settings
from crossdock.mapping.declarative import Const, Each, Form, MemberOverrides, Nested, RecordMap, Total, When
from crossdock.mapping.external_ids import ours_setting_problem
from crossdock.mapping.from_column import FromColumn
from crossdock.mapping.lookup_and_join_settings import Join, Lookup
from crossdock.mapping.python_function import PythonFunction, load_python_function
from crossdock.mapping.resource_types import WRITABLE_RESOURCE_TYPES, ResourceType
from crossdock.mapping.row_order_and_cursors import Cursor
from crossdock.mapping.stream_declaration import (
    EVERY_WITHOUT_LIST,
    MARKS_IN_SNAPSHOT,
    PLATFORM,
    Adopt,
    ChangeLimits,
    Destinations,
    FailureLimits,
    Filter,
    GoneLimits,
    OnGone,
    OpenUntil,
    Percent,
    Repair,
    Reread,
    StreamDeclaration,
    adopt_option_problem,
    contribution_problem,
    destination_resource_type,
    empty_export_option_problem,
    reads_problem,
    removal_problem,
    reread_and_open_until_problem,
)
from crossdock.reading.sources.expected_and_late_files import Interval
from crossdock.resources import ResourceModel, ResourceName
from crossdock.values import exact_json
from crossdock.values.author_code_errors import (
    class_name_with_place,
    misspelt_attribute_class_and_message,
    type_name_of_wrong_value,
)
from crossdock.values.config_base_types import NAME_FORM, ConfigModel, Name, is_valid_name, make_pydantic_error_at_key
from crossdock.values.config_file import (
    WRONG_TYPE_ERROR_ENDINGS,
    Document,
    PlacedFinding,
    findings_of_nearest_union_choice,
    message_of_pydantic_error,
    place_and_union_choices,
    unknown_key_message,
)
from crossdock.values.raw_rows_and_records import Record, is_reserved_column
from crossdock.values.yaml_reader import Place

S = TypeVar("S", bound=Settings)
_TYPES = {"string_type": "must be text here: quote it", "bool_type": "must be true or false here, without quotes"}


Members = Mapping[str, Form]


def _members_or_loaded_function(value: Any, members: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    if isinstance(value, str):
        return load_python_function(value, info.context["folder"] if info.context else Path())
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
            raise make_pydantic_error_at_key(("deleted",), MARKS_IN_SNAPSHOT)
        if reason := empty_export_option_problem(self.mode, self.empty):
            raise make_pydantic_error_at_key(("empty",), reason)
        if reason := ours_setting_problem(self.ours, self.skip, self.read_resource):
            raise make_pydantic_error_at_key(("ours",), reason)
        if self.gone.every is not None and not self.lists_existing:
            raise make_pydantic_error_at_key(("gone", "every"), EVERY_WITHOUT_LIST)
        other = "deleted" if self.deleted is not None else "existing" if self.lists_existing else ""
        if second := reread_and_open_until_problem(
            self.mode, self.reread, self.open_until, fetches=self.fetches, other_deletion_setting=other
        ):
            raise make_pydantic_error_at_key(*second)
        if targets is not None and (reason := reads_problem(self, self.read_resource, targets)):
            raise make_pydantic_error_at_key(("reads",), reason)
        kind = self.resource_type
        if kind is None:
            return self  # checked again when it is known
        self._check_against_resource_type(kind)
        return self

    def _check_against_resource_type(self, kind: ResourceType) -> None:
        if reason := removal_problem(kind, self.mode, self.on_gone, finds_deleted=self.finds_deleted):
            raise make_pydantic_error_at_key(("on_gone",), reason)
        if reason := contribution_problem(kind, self.contributes, self.matches, self.on_gone):
            raise make_pydantic_error_at_key(("contributes",), reason)
        mapped = None if isinstance(self.map, PythonFunction) else self.map
        if reason := adopt_option_problem(kind, self.adopt, self.to, self.contributes, mapped):
            raise make_pydantic_error_at_key(("adopt",), reason)
        members = list(model_fields_by_wire_name(kind.draft))
        if not isinstance(self.map, PythonFunction):
            check_mapped_members(self, kind, kind.draft, self.map, ("map",), whole=not self.contributes)
            if self.contributes and (other := next((name for name in self.map if name not in self.contributes), None)):
                raise make_pydantic_error_at_key(
                    ("map", other), f"is not one of contributes: {', '.join(self.contributes)}"
                )
            members = list(self.map)
        for number, name in enumerate(self.personal):
            if name not in members:
                raise make_pydantic_error_at_key(("personal", number), unknown_key_message(name, members))


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
            raise make_pydantic_error_at_key((*place, name), unknown_key_message(name, list(known)))
        inner, is_list = _model_and_is_list(known[name].annotation)
        if (isinstance(form, Each) and not form.single) is not is_list:
            as_object = "is not a list: each needs single: true" if inner else "is not a list: each cannot be used"
            raise make_pydantic_error_at_key(
                (*place, name), "is a list: use each, without single" if is_list else as_object
            )
        if isinstance(form, Each) and form.of is None and stream.group_by is None:
            raise make_pydantic_error_at_key(
                (*place, name), "makes one item of each row, which needs group_by, or of: a join or a list"
            )
        _check_constants(model, name, form, (*place, name))
        if isinstance(form, Each) and inner:
            check_mapped_members(stream, kind, inner, form.each, (*place, name, "each"))
        elif isinstance(form, Each) and form.single:
            raise make_pydantic_error_at_key((*place, name), "is not an object of members")
        for nested, where in _nested_members_outside_each_key(form, (*place, name)):
            if inner is None:
                raise make_pydantic_error_at_key(where[:-1], "is not an object of members")
            check_mapped_members(stream, kind, inner, nested, where)
    missing = [name for name, field in known.items() if field.is_required() and name not in forms]
    if missing and whole:
        raise make_pydantic_error_at_key(place, f"lacks {', '.join(missing)}, which every {kind.name} needs")


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
            raise make_pydantic_error_at_key(where, fault)


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
            return _TYPES.get(found[-1]["type"]) or message_of_pydantic_error(found[-1])
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
        lookup_and_join_settings.raise_if_lookup_or_join_failed(record, self._lookups, self._joins)
        lookup_and_join_settings.count_missing_and_older_rows(record, self._lookups, self._joins)
        made: ResourceModel | Mapping[str, Any] = self._map(record)
        return made


Streams = tuple[Stream[Any], ...]


class StreamOverrides(ConfigModel):
    """One stream of a connector in code: what is given here changes it, everything else stays as declared."""

    enabled: bool | None = None
    """Whether the stream is read. One that is switched off keeps what it has delivered."""
    columns: Mapping[str, Repair] = {}
    """Repairs by column, besides the declared ones; one of the same column replaces the declared one."""
    skip: Mapping[str, Filter] = {}
    """Rows to leave out, after the declared filters; one of the same name replaces the declared one."""
    deleted: Filter | None = None
    """Rows which say that their record was deleted; replaces the declared condition."""
    adopt: Adopt | None = None
    """``external_id`` takes over a record that the platform has under our external id; else it is a conflict. ``{by:
    MEMBER}`` takes over the one that has the same value of a member under any other name."""
    personal: tuple[str, ...] = ()
    """Members whose values are personal in this stream, besides the declared ones."""
    on_gone: OnGone | None = None
    """What to do with a record that is deleted, or missing in a snapshot; ``archive`` sets active to false."""
    gone: GoneLimits | None = None
    """Limits within which that is done without approval; those that are not given stay as declared."""
    reread: Reread | None = None
    """A full list beside the changes, for an API whose cursor misses some: ``{every: 7d}``."""
    open_until: OpenUntil | None = None
    """Records that are fetched in each run until they are final, such as orders until they are paid."""
    changes: ChangeLimits | None = None
    """The number of known records that a run may update without approval; as ``gone``."""
    waits_at_most: Interval | None = None
    """How long a record may wait for one that it refers to, such as ``14d``; then it is a dead letter."""
    fewer_rows_percent: Percent | None = None
    """Warn about a snapshot that has this many percent fewer rows than each of the last three, and at least 10."""
    mapping_failed: FailureLimits | None = None
    """The number of records at which the code of the mapping may fail before the stream stops; as ``gone``."""
    map: Mapping[str, Form] = {}
    """How members of the resource are made; each replaces the member of the draft that the connector's code makes."""

    _resource_type: ResourceType | None = PrivateAttr(None)

    @property
    def resource_type(self) -> ResourceType | None:
        return self._resource_type

    @model_validator(mode="after")
    def _check_overrides(self, info: ValidationInfo) -> Self:
        stream: Stream[Any] | None = (info.context or {}).get("stream")
        if stream is None:
            return self  # checked again when it is known
        if self.deleted is not None and stream.mode == "snapshot":
            raise make_pydantic_error_at_key(("deleted",), MARKS_IN_SNAPSHOT)
        if self.deleted is not None and stream.lists_existing:
            raise make_pydantic_error_at_key(("deleted",), "cannot be set: the stream lists the records that exist")
        if self.gone is not None and self.gone.every is not None and not stream.lists_existing:
            raise make_pydantic_error_at_key(("gone", "every"), EVERY_WITHOUT_LIST)
        reread, marks = self.reread or stream.reread, stream.finds_deleted and not stream.rereads_gone
        other = "deleted" if self.deleted is not None else "the way in which the stream finds them" if marks else ""
        if second := reread_and_open_until_problem(
            stream.mode,
            reread,
            self.open_until or stream.open_until,
            fetches=stream.fetches,
            other_deletion_setting=other,
        ):
            raise make_pydantic_error_at_key(*second)
        finds_deleted = bool(other) or (reread is not None and reread.finds_gone)
        kind, on_gone = stream.resource_type, self.on_gone or "nothing"
        if reason := removal_problem(kind, stream.mode, on_gone, finds_deleted=finds_deleted):
            raise make_pydantic_error_at_key(("on_gone",), reason)
        adopt = self.adopt or stream.adopt
        if reason := adopt_option_problem(kind, adopt, stream.to, stream.contributes):
            raise make_pydantic_error_at_key(("adopt",), reason)
        draft = kind.draft
        for number, name in enumerate(self.personal):
            if name not in model_fields_by_wire_name(draft):
                raise make_pydantic_error_at_key(
                    ("personal", number), unknown_key_message(name, list(model_fields_by_wire_name(draft)))
                )
        check_mapped_members(stream, kind, draft, self.map, ("map",), whole=False)
        return self

    def with_declared_values(self, stream: Stream[Any]) -> StreamOverrides:
        """Add the declarations of *stream* to these overrides where they extend them."""
        added: dict[str, Any] = {
            "columns": {**stream.columns, **self.columns},
            "skip": {**stream.skip, **self.skip},
            "personal": tuple(dict.fromkeys((*stream.personal, *self.personal))),
        }
        for name in ("gone", "changes", "mapping_failed"):
            limits: ConfigModel | None = getattr(self, name)
            if limits is not None:
                given = {field: getattr(limits, field) for field in limits.model_fields_set}
                added[name] = getattr(stream, name).model_copy(update=given)
        completed = self.model_copy(update={name: added[name] for name in added if name in self.model_fields_set})
        completed._resource_type = stream.resource_type  # noqa: SLF001  of the same class
        return completed

    def overridden_stream(self, stream: Stream[Any]) -> Stream[Any]:
        """Return a changed copy of *stream*. Raises ConfigError if its class computes one of these facts."""
        changed = copy(stream)
        facts = {name: value for name in self.model_fields_set if (value := getattr(self, name)) is not None}
        if forms := facts.pop("map", None):
            own = stream.member_overrides.forms if stream.member_overrides is not None else {}
            facts["member_overrides"] = overrides = MemberOverrides({**own, **forms})
            facts["uses"] = None if stream.uses is None else (*stream.uses, *overrides.columns)
        for name, value in facts.items():
            try:
                object.__setattr__(changed, name, value)  # the class may be a frozen dataclass
            except AttributeError:
                message = f"{stream.name}: the connector computes {name}, so a config cannot set it"
                raise ConfigError(message, code="config_invalid") from None
        return changed


_OFF: Mapping[str, StreamOverrides] = {}  # by identity


def _parse_overrides_or_off(value: Any, overrides: ValidatorFunctionWrapHandler) -> Any:
    return _OFF if value is False or value == "off" else overrides(value)  # YAML 1.1 reads off as false


class _StreamsSchema:
    """One schema for overrides and ``off``, so that editors show what is wrong with an override."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(core_schema), {"enum": ["off", False]}]}


class _Overridable(ConfigModel):
    """Settings of a connector whose streams a config may change."""

    streams: Annotated[Mapping[Name, StreamOverrides], WrapValidator(_parse_overrides_or_off), _StreamsSchema] = {}
    """What the config changes about streams that the connector declares in code, by the name of the stream; ``off`` for
    a connection that is only a target."""


def settings_model_with_streams_key(settings: type[Settings]) -> type[Settings]:
    """Add the key ``streams`` for overrides to *settings*, unless they have a key of that name."""
    if "streams" in settings.model_fields:
        return settings
    bases: Any = (_Overridable, settings)  # pydantic lists the fields of the last one first
    made = create_model(settings.__name__, __base__=bases, __module__=settings.__module__, __doc__=settings.__doc__)
    return cast("type[Settings]", made)


def settings_and_streams_with_overrides(
    document: Document, section: tuple[str, ...], data: Mapping[str, Any], settings: Settings, streams: Streams
) -> tuple[Settings, Streams]:
    """Complete the overrides in *settings*, and apply them to *streams*. *data* is the content of *section*."""
    if not isinstance(settings, _Overridable):
        return settings, streams
    if settings.streams is _OFF:
        switched_off = {stream.name: StreamOverrides(enabled=False) for stream in streams}
        kept = tuple(switched_off[stream.name].overridden_stream(stream) for stream in streams)
        return settings.model_copy(update={"streams": switched_off}), kept
    declared = {stream.name: stream for stream in streams}
    completed: dict[str, StreamOverrides] = {}
    changed: dict[str, Stream[Any]] = {}
    for name in settings.streams:
        place = (*section, "streams", name)
        if name not in declared:
            message = unknown_key_message(name, list(declared)).replace("key", "stream", 1)
            raise FindingsError([f"{document.where(place)}: {'.'.join(place)}: {message}"])
        checked = document.validated_as_model(StreamOverrides, data["streams"][name], place, stream=declared[name])
        completed[name] = checked.with_declared_values(declared[name])
        try:
            changed[name] = completed[name].overridden_stream(declared[name])
        except ConfigError as error:
            raise ConfigError(error.message, where=document.where(place), code=error.code) from None
    kept = tuple(changed.get(stream.name, stream) for stream in streams)
    return settings.model_copy(update={"streams": completed}), kept


_NOTHING = object()
_MESSAGES = {
    "tuple_type": "must be a tuple or list of texts",
    "too_short": "must name at least one column",
    "bool_type": "must be True or False",
    "dict_type": "must be a dict by name",
    "mapping_type": "must be a dict by name",
    "model_type": "must be made by {class_name}(...)",
}


class _Declaration(ConfigModel, StreamDeclaration):
    """The attributes of a stream."""

    map: Mapping[str, Form]
    mapping_version: StrictStr
    uses: tuple[str, ...] | None
    yields_deleted: StrictBool
    cursor: InstanceOf[Cursor] | None
    fetch_size: Annotated[StrictInt, Field(ge=1)]
    fetches_unlisted: StrictBool
    whole_groups: StrictBool
    incomplete: Filter | None
    platform_reads: tuple[ResourceName, ...]
    reads_files: StrictBool


def check_and_complete_declaration(name: str, stream: Stream[Any], targets: Destinations) -> None:
    """Check the attributes of *stream*, and set the type of its records and what its `map` makes of them.

    Errors name the place of the class.
    """
    given: object = getattr(stream, "name", "")
    if not isinstance(given, str) or not is_valid_name(given):
        raise ConfigError(
            f"{name}: not a valid stream name; {NAME_FORM}", hint=_fix_hint(type(stream)), code="connector_invalid"
        )
    if wrong := misspelt_attribute_class_and_message(stream, _is_possible_value):
        raise ConfigError(f"{name}: {wrong[1]}", hint=_fix_hint(wrong[0]), code="connector_invalid")
    if isinstance(stream, DeclaredStream):
        return  # its model has checked the section
    if problem := next(_problems_found_while_completing(stream, targets), None):
        raise ConfigError(f"{name}: {problem}", hint=_fix_hint(type(stream)), code="connector_invalid")


def raise_if_column_name_reserved(name: str, stream: Stream[Any], where: str) -> None:
    """Check that no column in the config or class of *stream* is reserved. ``uses`` may name the whole record."""
    cursor = {stream.cursor.column} if stream.cursor is not None else set[str]()
    whole = () if isinstance(stream, DeclaredStream) else stream.uses or ()
    if reserved := next(
        filter(is_reserved_column, sorted(columns_in_stream_attributes(stream) - {*whole} | cursor)), None
    ):
        hint = f"'/{reserved}', a JSON pointer, is a member of this name; columns of files need other names"
        raise ConfigError(
            f"{name}: the name {reserved!r} is reserved", where=where, hint=hint, code="connector_invalid"
        )


def _fix_hint(kind: type) -> str:
    return f"fix class {class_name_with_place(kind)}"


def _is_possible_value(name: str, value: Any) -> bool:
    """Return whether *value* can be the attribute *name* of a stream."""
    if name not in _Declaration.model_fields:
        return False
    try:
        _Declaration.model_validate({name: value})
    except ValidationError as error:
        return all(item["loc"][:1] != (name,) for item in error.errors(include_url=False, include_input=False))
    return True


def _problems_found_while_completing(stream: Stream[Any], targets: Destinations) -> Iterator[str]:
    resource = getattr(stream, "resource", None)
    if resource is not None and not isinstance(resource, str):
        yield f"resource must be text such as 'product', not {type_name_of_wrong_value(resource).removesuffix(',')}"
        return
    if resource is not None and resource not in WRITABLE_RESOURCE_TYPES:
        advice = unknown_key_message(str(resource), list(WRITABLE_RESOURCE_TYPES)).removeprefix("unknown key; ")
        yield f"unknown resource {resource!r}; {advice}"
    declared = (name for name in _Declaration.model_fields if getattr_static(stream, name, _NOTHING) is not _NOTHING)
    given = {name: getattr(stream, name) for name in declared}
    try:
        facts = _Declaration.model_validate(given)
    except ValidationError as error:
        found = findings_of_nearest_union_choice(
            _pydantic_error_to_finding(item, given) for item in error.errors(include_url=False, include_input=False)
        )
        yield from (f"{'.'.join(map(str, each.place))} {each.message}" for each in found)
        return
    yield from _mapping_instead_of_object_problems(
        given, {name: getattr(facts, name) for name in given if name != "map"}, ()
    )
    yield from _conflicts_between_class_attributes(stream, facts)
    try:
        kind = destination_resource_type(facts.resource, facts.to, targets)
    except PydanticCustomError as error:
        yield f"{'.'.join((error.context or {})['key'])} {error.message()}"
        return
    stream.target_resource = None if facts.to == PLATFORM else kind
    yield from _resource_problems(stream, facts, kind, targets)
    yield from _declared_map_problems(stream, facts, kind)
    members = [field.alias or name for name, field in kind.draft.model_fields.items()]
    for member in facts.personal:
        if member not in members:
            advice = unknown_key_message(member, members).removeprefix("unknown key; ")
            yield f"personal: {member!r} is not a member; {advice}"
    _set_member_overrides_and_uses(stream, facts)


def _resource_problems(
    stream: Stream[Any], facts: _Declaration, kind: ResourceType, targets: Destinations
) -> Iterator[str]:
    if reason := removal_problem(kind, facts.mode, facts.on_gone, finds_deleted=stream.finds_deleted):
        yield f"on_gone {reason}"
    if reason := empty_export_option_problem(facts.mode, facts.empty):
        yield f"empty: {reason}"
    if reason := reads_problem(facts, facts.reads, targets):
        yield reason
    if reason := contribution_problem(kind, facts.contributes, facts.matches, facts.on_gone):
        yield reason
    if reason := adopt_option_problem(kind, facts.adopt, facts.to, facts.contributes):
        yield f"adopt {reason}"


def _declared_map_problems(stream: Stream[Any], facts: _Declaration, kind: ResourceType) -> Iterator[str]:
    if not facts.map and not stream.maps_in_code:
        yield "to_resource or map is missing: what its records become"
    is_whole = not stream.maps_in_code and not facts.contributes
    try:
        check_mapped_members(facts, kind, kind.draft, facts.map, ("map",), whole=is_whole)
    except PydanticCustomError as error:
        yield f"{'.'.join(map(str, (error.context or {})['key']))} {error.message()}"
        return
    if facts.contributes and (other := next((name for name in facts.map if name not in facts.contributes), None)):
        yield f"map.{other} is not one of contributes: {', '.join(facts.contributes)}"


def _set_member_overrides_and_uses(stream: Stream[Any], facts: _Declaration) -> None:
    if facts.map:
        overrides = MemberOverrides(facts.map)
        object.__setattr__(stream, "member_overrides", overrides)  # the class may be a frozen dataclass
        if facts.uses is not None:
            object.__setattr__(stream, "uses", tuple(dict.fromkeys((*facts.uses, *overrides.columns))))


def _conflicts_between_class_attributes(stream: Stream[Any], facts: _Declaration) -> Iterator[str]:
    if reason := ours_setting_problem(facts.ours, facts.skip, facts.reads):
        yield f"ours {reason}"
    if facts.group_by is not None and tuple(facts.group_by) != tuple(facts.key):
        yield "group_by and key must name the same columns"
    if facts.whole_groups and (facts.group_by is None or (facts.cursor is not None and facts.cursor.sorted)):
        yield "whole_groups needs group_by, and no cursor or one with sorted=False"
    if facts.cursor is not None and facts.mode != "incremental":
        yield "cursor needs mode incremental"
    yield from _deletion_finding_conflicts(stream, facts)


def _deletion_finding_conflicts(stream: Stream[Any], facts: _Declaration) -> Iterator[str]:
    ways = {"deleted": facts.deleted, "yields_deleted": facts.yields_deleted, "existing": stream.lists_existing}
    used = [name for name, value in ways.items() if value]
    other = used[0] if used else ""
    if second := reread_and_open_until_problem(
        facts.mode, facts.reread, facts.open_until, fetches=stream.fetches, other_deletion_setting=other
    ):
        yield f"{'.'.join(second[0])} {second[1]}"
    if used and facts.mode == "snapshot":
        yield f"{used[0]} {MARKS_IN_SNAPSHOT}"
    if facts.gone.every is not None and not stream.lists_existing:
        yield f"gone.every {EVERY_WITHOUT_LIST}"
    if facts.fetches_unlisted and not (stream.lists_existing and stream.fetches):
        yield "fetches_unlisted needs existing and fetch"
    if stream.lists_existing and len(used) > 1:
        yield f"{used[0]} and existing exclude each other: choose one way to find deleted records"


def _pydantic_error_to_finding(item: Any, given: Mapping[str, Any]) -> PlacedFinding:
    path = item["loc"][:-1] if item["type"] == "missing" else item["loc"]
    place, choices = place_and_union_choices(
        (), path, item["loc"][len(path) :], lambda each: _nested_value(given, each) is not _NOTHING
    )
    of_type, context = item["type"].endswith(WRONG_TYPE_ERROR_ENDINGS), item.get("ctx", {})
    kind = "model_type" if "class_name" in context else item["type"]
    expected = context.get("expected")
    message = _MESSAGES[kind].format(**context) if kind in _MESSAGES else message_of_pydantic_error(item)
    message = f"must be {expected}" if expected else message
    return PlacedFinding(place, choices, message, message, of_type=of_type)


def _nested_value(value: Any, place: Place) -> Any:
    for part in place:
        if isinstance(value, Mapping):
            value = value.get(part, _NOTHING)
        elif isinstance(value, list | tuple) and isinstance(part, int):
            value = value[part] if part < len(value) else _NOTHING
        else:
            value = getattr(value, str(part), _NOTHING)
    return value


def _mapping_instead_of_object_problems(given: Any, read: Any, place: Place) -> Iterator[str]:
    """Yield what is given as a mapping although the engine reads an object, into which a config file is turned."""
    if isinstance(read, ConfigModel):
        if isinstance(given, Mapping):
            yield f"{'.'.join(map(str, place))} must be made by {type(read).__name__}(...), not a mapping"
    elif isinstance(read, Mapping):
        for name in read:
            yield from _mapping_instead_of_object_problems(given[name], read[name], (*place, name))
    elif isinstance(read, tuple):
        for number, (each, inner) in enumerate(zip(given, read, strict=True)):
            yield from _mapping_instead_of_object_problems(each, inner, (*place, number))
