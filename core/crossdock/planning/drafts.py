"""Record -> members of a draft, or why not: whatever a mapping raises becomes one record's dead letter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from crossdock.errors import RecordError
from crossdock.field_types import MAX_EXTERNAL_ID
from crossdock.planning.references import found_in
from crossdock.platform.platform_target import external_id
from crossdock.project.connector_errors import UNTOUCHED, brief, mapping_failed
from crossdock.project.project import BoundStream
from crossdock.records import REASONS, Record
from crossdock.resources import RESOURCES, Reference, ResourceModel


def drafted(bound: BoundStream, record: Record) -> tuple[dict[str, Any], list[Reference]]:
    """The members of the record's draft, and the references among them.

    Raises:
        RecordError: If there is none, with a code of `crossdock.records.REASONS`.
    """
    stream = bound.stream
    try:
        members = stream.draft(record).payload()
    except RecordError as error:
        raise _as_said(error) if error.code in REASONS else mapping_failed(error, stream) from None
    except ValidationError as error:
        raise _invalid(error) if error.title in _titles(ResourceModel) else mapping_failed(error, stream) from None
    except UNTOUCHED:
        raise
    except Exception as error:  # noqa: BLE001  the code of an author may raise anything
        raise mapping_failed(error, stream) from None
    named = RESOURCES[stream.resource].has_external_id
    if named and len(external_id(bound.namespace, record.key)) > MAX_EXTERNAL_ID:
        told = f"is made of namespace and key, and has more than {MAX_EXTERNAL_ID} characters"
        raise RecordError("invalid_draft", told, pointer="/externalId")
    return members, found_in(members)


def _as_said(error: RecordError) -> RecordError:
    """*error* with text that the state can keep."""
    pointer = None if error.pointer is None else brief(str(error.pointer))
    said = RecordError(error.code, brief(str(error.message)), pointer=pointer)
    said.line = error.line
    return said


_QUOTING = {"datetime_object_invalid", "get_attribute_error", "iteration_error", "mapping_type"}
"""Pydantic's findings that hold the text of an exception out of the value."""


def _invalid(error: ValidationError) -> RecordError:
    finding = error.errors(include_url=False, include_input=False)[0]
    place = finding.get("ctx", {}).get("place") or "/".join(to_camel(str(part)) for part in finding["loc"])
    kind, message = finding["type"], finding["msg"].removeprefix("Value error, ")
    said = f"cannot be read: {kind}" if kind in _QUOTING else brief(message)
    return RecordError("invalid_draft", said, pointer=f"/{brief(place)}")


def _titles(model: type[ResourceModel]) -> Iterator[str]:
    """The names of *model* and of all models made of it; others are an author's, whose findings may quote data."""
    yield model.__name__
    for made in model.__subclasses__():
        yield from _titles(made)
