"""Record -> members of a draft; every exception of a mapping becomes the record's dead letter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from crossdock.errors import RecordError
from crossdock.finding_messages import message_of
from crossdock.planning.references import found_in
from crossdock.project.connector_exceptions import UNTOUCHED, brief, mapping_failed
from crossdock.project.connector_instances import BoundStream
from crossdock.records import REASONS, Record
from crossdock.resources import Reference, ResourceModel

_QUOTING = {"datetime_object_invalid", "get_attribute_error", "iteration_error", "mapping_type"}
"""Pydantic's error types whose message quotes an exception raised by the value."""


def drafted(bound: BoundStream, record: Record) -> tuple[dict[str, Any], list[Reference]]:
    """The members of the record's draft, and the references among them.

    Raises:
        RecordError: If the record has no valid draft, with a code of `crossdock.records.REASONS`.
    """
    stream = bound.stream
    try:
        members = stream.draft(record).payload()
    except RecordError as error:
        raise _shortened(error) if error.code in REASONS else mapping_failed(error, stream) from None
    except ValidationError as error:
        ours = error.title in _titles(ResourceModel)
        raise _invalid_draft(error, bound.kind.draft) if ours else mapping_failed(error, stream) from None
    except UNTOUCHED:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  the code of an author may raise anything
        raise mapping_failed(error, stream) from None
    bound.target.check_key(bound.kind.name, bound.namespace, record.key)
    return members, found_in(members)


def _shortened(error: RecordError) -> RecordError:
    """*error* with texts that the state can store."""
    pointer = None if error.pointer is None else brief(str(error.pointer))
    shortened = RecordError(error.code, brief(str(error.message)), pointer=pointer)
    shortened.line = error.line
    return shortened


def _invalid_draft(error: ValidationError, draft: type[ResourceModel]) -> RecordError:
    is_camel = draft.model_config.get("alias_generator") is to_camel  # else the wire has the names of the fields
    finding = error.errors(include_url=False, include_input=False)[0]
    place = finding.get("ctx", {}).get("place") or "/".join(
        to_camel(str(part)) if is_camel else str(part) for part in finding["loc"]
    )
    kind = finding["type"]
    shown = f"cannot be read: {kind}" if kind in _QUOTING else brief(message_of(finding))
    return RecordError("invalid_draft", shown, pointer=f"/{brief(place)}")


def _titles(model: type[ResourceModel]) -> Iterator[str]:
    """The names of *model* and its subclasses; any other model is an author's, whose errors may quote data."""
    yield model.__name__
    for subclass in model.__subclasses__():
        yield from _titles(subclass)
