"""Members of JSON records: more of them, and lists and texts that must have the right form."""

from __future__ import annotations

from typing import Any

from crossdock.values.json_access import JsonAccess, JsonElement
from crossdock.values.json_paths import MISSING


def with_added_members(item: Any, **members: Any) -> Any:
    """Return a record with more *members*. What is no object stays, so that its row is rejected."""
    return {**item, **members} if isinstance(item, dict) else item


def objects_in_list(record: JsonAccess, pointer: str) -> list[JsonElement]:
    """Return the objects of a list. Raises RecordError if the list is missing or null, or has anything else in it."""
    return [each.part("") for each in record.each(pointer)]


def objects_in_optional_list(record: JsonAccess, name: str) -> list[JsonElement]:
    """Do the same as `objects_in_list` for the member *name*, but return nothing if it is missing, as it is in old
    versions.
    """
    return objects_in_list(record, f"/{name}") if name in record.at("", dict) else []


def required_text_or_null(record: JsonAccess, name: str) -> str | None:
    """Return the text of the member *name*, and None for null. Raises RecordError if it is missing."""
    return None if record.at("", dict).get(name, MISSING) is None else record.at(f"/{name}", str)
