"""Checks of what the class of a stream declares, as for the sections of a config file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import getattr_static
from typing import Annotated, Any

from pydantic import Field, InstanceOf, StrictBool, StrictInt, StrictStr, ValidationError
from pydantic_core import PydanticCustomError

from crossdock.config.declarative_streams import DeclaredStream, check_mapped_members
from crossdock.connector import Stream, columns_in_stream_attributes
from crossdock.errors import ConfigError
from crossdock.mapping.declarative import Form, MemberOverrides
from crossdock.mapping.incremental_cursors import Cursor
from crossdock.mapping.own_external_ids import ours_problem
from crossdock.mapping.repairs_and_filters import Filter
from crossdock.mapping.resource_types import WRITTEN, ResourceType
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
from crossdock.resources import ResourceName
from crossdock.values.author_code_errors import class_name_with_place, described_value_type
from crossdock.values.config_base_types import NAME_FORM, ConfigModel, is_valid_name
from crossdock.values.config_file import (
    OF_TYPE,
    PlacedFinding,
    finding_message_without_place,
    findings_of_nearest_union_choice,
    place_and_union_choices,
    unknown_key_message,
)
from crossdock.values.misspelt_attributes import misspelt_attribute_class_and_message
from crossdock.values.raw_rows_and_records import is_reserved_column
from crossdock.values.yaml_reader import Place

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


def refuse_reserved_column_names(name: str, stream: Stream[Any], where: str) -> None:
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
        yield f"resource must be text such as 'product', not {described_value_type(resource).removesuffix(',')}"
        return
    if resource is not None and resource not in WRITTEN:
        advice = unknown_key_message(str(resource), list(WRITTEN)).removeprefix("unknown key; ")
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
    if reason := ours_problem(facts.ours, facts.skip, facts.reads):
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
    of_type, context = item["type"].endswith(OF_TYPE), item.get("ctx", {})
    kind = "model_type" if "class_name" in context else item["type"]
    expected = context.get("expected")
    message = _MESSAGES[kind].format(**context) if kind in _MESSAGES else finding_message_without_place(item)
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
