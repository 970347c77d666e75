"""Changes that a config file makes to streams which a connector declares in code."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Annotated, Any, Self, cast

from pydantic import (
    GetJsonSchemaHandler,
    PrivateAttr,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from crossdock.config.declarative_streams import check_mapped_members, model_fields_by_wire_name
from crossdock.connector import Settings, Stream
from crossdock.errors import ConfigError, FindingsError
from crossdock.mapping.declarative import Form, MemberOverrides
from crossdock.mapping.repairs_and_filters import Filter, Repair
from crossdock.mapping.resource_types import ResourceType
from crossdock.mapping.stream_declaration import (
    EVERY_WITHOUT_LIST,
    MARKS_IN_SNAPSHOT,
    Adopt,
    ChangeLimits,
    FailureLimits,
    GoneLimits,
    OnGone,
    OpenUntil,
    Percent,
    Reread,
    adopt_option_problem,
    removal_problem,
    reread_and_open_until_problem,
)
from crossdock.reading.sources.expected_files import Interval
from crossdock.values.config_base_types import ConfigModel, Name, finding_about_key
from crossdock.values.config_file import Document, unknown_key_message

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
            raise finding_about_key(("deleted",), MARKS_IN_SNAPSHOT)
        if self.deleted is not None and stream.lists_existing:
            raise finding_about_key(("deleted",), "cannot be set: the stream lists the records that exist")
        if self.gone is not None and self.gone.every is not None and not stream.lists_existing:
            raise finding_about_key(("gone", "every"), EVERY_WITHOUT_LIST)
        reread, marks = self.reread or stream.reread, stream.finds_deleted and not stream.rereads_gone
        other = "deleted" if self.deleted is not None else "the way in which the stream finds them" if marks else ""
        if second := reread_and_open_until_problem(
            stream.mode,
            reread,
            self.open_until or stream.open_until,
            fetches=stream.fetches,
            other_deletion_setting=other,
        ):
            raise finding_about_key(*second)
        finds_deleted = bool(other) or (reread is not None and reread.finds_gone)
        kind, on_gone = stream.resource_type, self.on_gone or "nothing"
        if reason := removal_problem(kind, stream.mode, on_gone, finds_deleted=finds_deleted):
            raise finding_about_key(("on_gone",), reason)
        adopt = self.adopt or stream.adopt
        if reason := adopt_option_problem(kind, adopt, stream.to, stream.contributes):
            raise finding_about_key(("adopt",), reason)
        draft = kind.draft
        for number, name in enumerate(self.personal):
            if name not in model_fields_by_wire_name(draft):
                raise finding_about_key(
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
