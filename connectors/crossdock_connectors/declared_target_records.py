"""Records of a target that a config declares: their members, the draft model for checking a ``map``, and what files
with them contain.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, ClassVar, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    create_model,
    model_validator,
)

from crossdock import ConfigModel
from crossdock.resources import Exact, Instant, ResourceModel
from crossdock.sources import NameForm
from crossdock.targets import BatchProfile, EndpointProfile, FileContentConfig, FileRecord, RecordShape, TargetResource
from crossdock.values.config_base_types import make_pydantic_error_at_key
from crossdock.values.field_types import MAX_DIGITS_BEFORE_POINT, MAX_ID_LENGTH
from crossdock.values.time_formats_and_zones import check_zone_name
from crossdock_connectors.request_time_formats import TimeLayout, format_time

MemberType = Literal["text", "number", "integer", "boolean", "instant", "date", "object", "list"]
ResourceKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,32}$")]
MemberName = Annotated[str, Field(min_length=1, max_length=200)]
_MOST = 10**MAX_DIGITS_BEFORE_POINT - 1
_TYPES: Mapping[str, Any] = {
    "text": StrictStr,
    "number": Exact,
    "integer": Annotated[StrictInt, Field(ge=-_MOST, le=_MOST)],
    "boolean": StrictBool,
    "instant": Instant,
    "date": date,
}


class Member(ConfigModel):
    """One member of a resource. A text is short for its type."""

    type: MemberType
    """The type of the value. ``number`` is exact, with at most 15 digits before and 4 after the point. ``instant`` is
    sent in RFC 3339 in UTC, ``date`` in ISO 8601. A ``list`` has objects."""
    required: bool = False
    """Whether a record without it is a dead letter."""
    personal: bool = False
    """Whether it is personal data, which is never shown."""
    max_length: Annotated[int, Field(ge=1)] | None = None
    """The most characters of a text."""
    format: TimeLayout | None = None
    """How an instant is sent: a strftime format, or ``unix`` or ``unix_ms`` as text."""
    timezone: Annotated[str, AfterValidator(check_zone_name)] | None = None
    """The IANA time zone of ``format``; default: UTC."""
    members: Mapping[MemberName, MemberOrType] = {}
    """The members of an object, or of each object of a list."""

    @model_validator(mode="after")
    def _check_member(self) -> Self:
        if self.max_length is not None and self.type != "text":
            raise make_pydantic_error_at_key(("max_length",), "needs type: text")
        if self.format is not None and self.type != "instant":
            raise make_pydantic_error_at_key(("format",), "needs type: instant")
        if self.timezone is not None and self.format is None:
            raise make_pydantic_error_at_key(("timezone",), "needs format: instants without one are sent in UTC")
        if bool(self.members) is not (self.type in {"object", "list"}):
            needed = f"is missing: a {self.type} has members" if not self.members else "needs type: object or list"
            raise make_pydantic_error_at_key(("members",), needed)
        return self


def _expand_short_member(value: Any) -> Any:
    return {"type": value} if isinstance(value, str) else value


MemberOrType = Annotated[Member, BeforeValidator(_expand_short_member, json_schema_input_type=MemberType | Member)]
Members = Annotated[Mapping[MemberName, MemberOrType], Field(min_length=1)]


class _DeclaredDraft(ResourceModel):
    """Base of drafts whose members have the names that a config gives them."""

    model_config = ConfigDict(alias_generator=None, validate_by_name=False)
    layouts: ClassVar[Mapping[str, tuple[str, ZoneInfo]]] = {}
    """How instants are sent, by member, where it is not RFC 3339."""

    def payload(self) -> dict[str, Any]:
        found = super().payload()
        return found | {
            name: format_time(found[name], *layout) for name, layout in self.layouts.items() if found.get(name)
        }


def draft_model(name: str, members: Mapping[str, Member]) -> type[ResourceModel]:
    """Make the model of a draft with exactly *members*, frozen and with exact numbers."""
    fields = {
        f"member_{number}": _draft_model_field_of_member(name, *each) for number, each in enumerate(members.items())
    }
    made: type[_DeclaredDraft] = create_model(name, __base__=_DeclaredDraft, **fields)  # type: ignore[call-overload]  # fields by name
    made.layouts = {
        name: (each.format, ZoneInfo(each.timezone or "UTC")) for name, each in members.items() if each.format
    }
    return made


def example_record_with_all_members(members: Mapping[str, Member]) -> dict[str, Any]:
    """Return a payload with every member: empty texts, objects, and lists with one object."""
    return {name: _example(each) for name, each in members.items()}


def _example(member: Member) -> Any:
    if not member.members:
        return ""
    inner = example_record_with_all_members(member.members)
    return [inner] if member.type == "list" else inner


def _draft_model_field_of_member(parent: str, name: str, member: Member) -> tuple[Any, Any]:
    kind: Any = _TYPES.get(member.type) or draft_model(f"{parent}.{name}", member.members)
    if member.type == "list":
        kind = tuple[kind, ...]
    mark = {"x-personal": member.personal}
    about: dict[str, Any] = {"alias": name, "max_length": member.max_length, "json_schema_extra": mark}
    return (kind, Field(**about)) if member.required else (kind | None, Field(None, **about))


class FileRecordConfig(ConfigModel):
    """A type of record that is written in files."""

    members: Members
    """The members of a record, which streams map, by names of your choice."""
    name: Annotated[str, Field(min_length=1)]
    """The member that has the external id of the record, such as the number of the order, which the file shows."""
    name_max_length: Annotated[int, Field(ge=1, le=MAX_ID_LENGTH)] = MAX_ID_LENGTH
    """The most characters of a name; a record with a longer one is a dead letter."""
    content: FileContentConfig
    """What the file contains."""
    bytes_per_file: Annotated[int, Field(ge=1_000)] | None = None
    """The most bytes of a file before it is wrapped, such as 100000000; any number by default. Each record counts as
    many as a file with this record alone has."""
    by: MemberName | None = None
    """The member whose value all records of a file have in common, such as the warehouse; none if files mix them."""

    @model_validator(mode="after")
    def _check_members(self) -> Self:
        if self.name in self.members:
            raise make_pydantic_error_at_key(("name",), "holds the external id of the record: leave it out of members")
        if self.by is not None and self.by not in self.members:
            raise make_pydantic_error_at_key(("by",), "is none of members")
        if "create" not in self.content.expressible_operations:
            raise make_pydantic_error_at_key(("content",), "cannot express a new record")
        example = FileRecord("create", "", {**example_record_with_all_members(self.members), self.name: ""})
        if unknown := self.content.names_lacking_in_record(example):
            raise make_pydantic_error_at_key(
                ("content",), f"shows {', '.join(unknown)}, and members has no such member"
            )
        return self


def file_target_resource(
    name: str, config: FileRecordConfig, name_form: NameForm, records_per_file: int, **profile: Any
) -> TargetResource:
    """Return the resource of these records, whose id is their name. *profile* is the rest of its `BatchProfile`."""
    operations = config.content.expressible_operations
    return TargetResource(
        name,
        draft_model(name, config.members),
        write_once="update" not in operations,
        deletes="delete" in operations,
        endpoint=EndpointProfile(reads=False, rules=dict.fromkeys(("create", "update", "delete"), "resend")),
        shape=RecordShape(id=None),
        name_member=config.name,
        name_form=name_form,
        name_limit=config.name_max_length,
        batch=BatchProfile(
            records_per_file,
            operations,
            stored=True,
            mixed=True,
            by=config.by,
            most_bytes=config.bytes_per_file,
            **profile,
        ),
    )
