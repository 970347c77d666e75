"""Look-ups at a target that still shows records that were deleted or cancelled."""

from __future__ import annotations

from dataclasses import replace

from crossdock.mapping.repairs_and_filters import Filter
from crossdock.reading.sources.signs_of_unread_records import refusing_member
from crossdock.reading.transport.http_results import Answer
from crossdock.values import exact_json
from crossdock.values.json_paths import MISSING, at_path, find_at_pointer, find_list_at_pointer
from crossdock.writing.targets.outcomes import ExpectedRecord, Outcome, RecordShape, body_of, of_look_up


def of_look_up_with_deleted(answer: Answer, subject: ExpectedRecord, shape: RecordShape, deleted: Filter) -> Outcome:
    """Return the outcome of a look-up with the status 200, as `of_look_up`, where a deleted record is ``absent`` by its
    id. By its external id it is left out beside others, and ``removed`` if there is no other.
    """
    if subject.target_id is not None:
        return _by_id(answer, subject, shape, deleted)
    is_deleted = deleted.json_predicate()
    listed = shape.without_other_records(find_list_at_pointer(body_of(answer), shape.listed or ""), subject)
    kept = []
    if not shape.finds_one and isinstance(listed, list) and listed:
        kept = [each for each in listed if not is_deleted(each)]
        answer = replace(answer, body=exact_json.dumps(kept or listed[-1:]))
        shape = replace(shape, listed="")
    made = of_look_up(answer, subject, shape)
    is_removed = made.kind == "found" and not kept and is_deleted(made.held)
    return replace(made, kind="removed") if is_removed else made


def _by_id(answer: Answer, subject: ExpectedRecord, shape: RecordShape, deleted: Filter) -> Outcome:
    made, body = of_look_up(answer, subject, shape), body_of(answer)
    record = find_at_pointer(body, shape.found)
    if not isinstance(record, dict) or not deleted.json_predicate()(record):
        return made
    if made.kind == "found":
        return replace(made, kind="absent")
    stated_id = shape.id_of(record)
    has_mark = stated_id is None and any(at_path(record, column) is not MISSING for column in deleted.columns())
    is_deleted = has_mark or stated_id == subject.target_id
    return Outcome("absent", status=200) if is_deleted and not refusing_member(body) else made
