"""Drafts of records. An exception of a mapping becomes the record's dead letter; too many of them stop the stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.errors import RecordError, RefusedError
from crossdock.resources import Reference, ResourceModel
from crossdock.runs.planning.references import collect_references_in_value
from crossdock.values import exact_json
from crossdock.values.author_code_errors import (
    AuthorCodeError,
    is_interruption_or_engine_error,
    masked_exception_text_with_place,
    shortened_text,
    storable_copy_of_error,
)
from crossdock.values.config_file import message_of_pydantic_error
from crossdock.values.raw_rows_and_records import JSON, REASONS, Record, invalid_json_value_error

_CONTAINERS = (list, tuple, dict)
_MANY, _MOST = 1_000, exact_json.MAX_VALUES - 1_000  # in a list; other members have fewer than the rest
_QUOTING = {"datetime_object_invalid", "get_attribute_error", "iteration_error", "mapping_type"}
"""Pydantic's error types whose message quotes an exception raised by the value."""


def map_record_to_draft_members(bound: BoundStream, record: Record) -> tuple[dict[str, Any], list[Reference]]:
    """Return the members of the record's draft, and the references in it. Each failure is a `RecordError`."""
    stream = bound.stream
    if (fault := invalid_json_value_error(record)) is not None:
        raise fault
    try:
        members = stream.draft(record).payload()
    except RecordError as error:
        short = storable_copy_of_error(error)
        if short is None or short.code not in REASONS:
            short = _mapping_error(error, bound, record)
        raise short from None
    except ValidationError as error:
        ours = error.title in _names_of_model_and_subclasses(ResourceModel)
        raise (
            _invalid_draft_error(error, bound.resource_type.draft) if ours else _mapping_error(error, bound, record)
        ) from None
    except BaseException as error:
        if is_interruption_or_engine_error(error):
            raise
        raise _mapping_error(error, bound, record) from None
    _raise_if_too_many_values(members)
    try:
        bound.target.check_key(bound.resource_type.name, bound.namespace, record.key)
    except AuthorCodeError as error:
        raise rejection_by_target_code(error, record) from None
    return members, collect_references_in_value(members)


def _raise_if_too_many_values(members: dict[str, Any]) -> None:
    for name, value in members.items():
        if isinstance(value, _CONTAINERS) and len(value) > _MANY and _count_values(value) > _MOST:
            raise RecordError("invalid_draft", f"has {exact_json.TOO_MANY}", pointer=f"/{name}")


def _count_values(value: Any) -> int:
    """Count as `exact_json` does: containers, and what follows other members in one."""
    if not isinstance(value, _CONTAINERS):
        return 0
    inside = value.values() if isinstance(value, dict) else value
    return max(len(value), 1) + sum(map(_count_values, inside))


def _mapping_error(error: BaseException, bound: BoundStream, record: Record) -> RecordError:
    settings = getattr(bound.context, "settings", None)
    what = masked_exception_text_with_place(
        error, bound.stream, "to_resource", settings=settings, data=_cell_values(record)
    )
    return RecordError("mapping_failed", f"the mapping raised {what}")


def rejection_by_target_code(error: AuthorCodeError, record: Record) -> RecordError:
    """Return the error of the dead letter for a failure of the target's code on *record*."""
    return error.as_record_error("target_failed", _cell_values(record))


def _cell_values(record: Record) -> Iterator[Any]:
    for row in record.rows:
        for name, cell in row.items():
            with suppress(ValueError):
                yield exact_json.loads(cell) if name == JSON and cell else cell


def _invalid_draft_error(error: ValidationError, draft: type[ResourceModel]) -> RecordError:
    is_camel = draft.model_config.get("alias_generator") is to_camel  # otherwise the wire has the names of the fields
    findings = error.errors(include_url=False, include_input=False)
    finding = min(findings, key=lambda each: each["type"] != "extra_forbidden")  # a misspelt name, which others lack
    place = finding.get("ctx", {}).get("place") or "/".join(
        to_camel(str(part)) if is_camel else str(part) for part in finding["loc"]
    )
    kind = finding["type"]
    shown = f"cannot be read: {kind}" if kind in _QUOTING else shortened_text(message_of_pydantic_error(finding))
    return RecordError("invalid_draft", shown, pointer=f"/{shortened_text(place)}")


def _names_of_model_and_subclasses(model: type[ResourceModel]) -> Iterator[str]:
    """Yield the names of *model* and its subclasses. Other models are an author's, and their errors may quote data."""
    yield model.__name__
    for subclass in model.__subclasses__():
        yield from _names_of_model_and_subclasses(subclass)


_FAILED = {"mapping_failed": "the mapping", "target_failed": "the code of the target"}
"""The reasons that count, each with the failing code."""


class AuthorCodeFailureCounter:
    def __init__(self, bound: BoundStream, records: int | None) -> None:
        self._bound, self._records, self._failed = bound, records, 0

    def count_and_return_limit_error(self, record: Record, error: RecordError) -> RefusedError | None:
        if error.code not in _FAILED:
            return None
        self._failed += 1
        limits = self._bound.stream.mapping_failed
        if self._records is None or not limits.exceeded(self._failed, self._records):
            return None
        failing = _FAILED[error.code]
        return RefusedError(
            f"{failing} failed for {self._failed:,} of {self._records:,} records, which exceeds mapping_failed:"
            f" at_most ({limits.at_most:,}) and at_most_percent ({limits.at_most_percent:g}); last: {error.message}",
            where=f"{record.source}:{error.line or record.lines[0]}",
            hint=f"fix {failing} and run again to read the remaining records, then replay the rejected ones:"
            f" crossdock records replay {self._bound.name} --reason {error.code}",
            code="mapping_fails_too_often",
        )
