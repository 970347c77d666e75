"""The meaning of an answer to a request, or of its absence, for an operation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast
from urllib.parse import unquote, urlsplit

from crossdock.errors import CrossdockError, RecordError
from crossdock.mapping.external_ids import NameMembers
from crossdock.mapping.stream_declaration import Filter
from crossdock.pacing.answer_headers import (
    cache_age_s,
    header_showing_cache_hit,
    retry_after_s,
    wait_stated_by_answer_s,
)
from crossdock.printable import printable
from crossdock.reading.sources import errors_in_api_answers
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer
from crossdock.reading.transport import http_answers_and_errors
from crossdock.reading.transport.http_answers_and_errors import (
    AmbiguousError,
    Answer,
    ExpiredError,
    NotSentError,
    Problem,
)
from crossdock.values import exact_json
from crossdock.values.field_types import is_valid_target_id
from crossdock.values.json_paths import (
    MISSING,
    escaped_pointer_part,
    is_pointer,
    list_at_pointer_with_asterisk,
    object_or_empty,
    value_at_path_or_missing,
    value_at_pointer_or_missing,
)
from crossdock.values.raw_rows_and_records import Reason
from crossdock.writing.targets.payload_comparison import has_wanted_members

_CONTROL = re.compile("[\x00-\x1f\x7f]")
_MARKED_TAG = re.compile(r'\A(?:W/)?"(.*?)(?:--?gzip)?"\Z')
_COPIES = frozenset({"/_shards"})  # a write of Elasticsearch is done where it has reached the first copy
_MULTI_STATUS = 207  # RFC 4918, 11.1
_NO_CONTENT = 204
_NOTHING_DONE = {  # members of answers that tell of nothing done by 0 or false
    "update": re.compile(r"(n|num|rows?)?(affected|matched|updated|modified|changed)(rows?|records?|items?|count)?"),
    "delete": re.compile(r"(n|num|rows?)?(affected|matched|deleted|removed|cancell?ed)(rows?|records?|items?|count)?"),
}
_NO_IDS = frozenset({"0", "-1", "null", "none", "undefined", "error", "00000000-0000-0000-0000-000000000000"})

MOVED = frozenset({301, 307, 308})  # not carried out: the same request belongs elsewhere, RFC 9110, section 15.4
REDIRECTS = MOVED | {302, 303}  # and these, by which forms answer after a success

ACCEPTED = 202  # and not carried out yet, if it ever is: RFC 9110, section 15.3.3
_THROTTLED = 429
UNFIT, BUSY = 422, 423  # also of the exchange for a part of a stored batch: refused, or others must end first
MAX_ETAG = 512  # characters; RFC 9110 sets no bound, and the state keeps one with each record

OutcomeKind = Literal[
    "delivered", "rejected", "throttled", "unavailable", "in_doubt", "unauthorized",
    "expired",  # not sent, because it might have been too late
    "changed",  # the target holds another version than the known one (412)
    "staged",  # the first part of a stored batch
    "pending",  # the target has accepted it, and carries it out later
    "busy",  # the target carries out other stored batches first, and has not accepted this one
    "found", "absent",  # answers to a look-up
    "removed",  # the same by external id: only removed records have it
    "answered",  # a ping
    "unmade",  # the code of the target failed before anything was sent
    "undecided",  # the code of the target failed on the answer, or while it sent
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one attempt.

    Attributes:
        kind: Of a write: ``delivered``; ``rejected``, nothing was done, and the record is a dead letter; ``in_doubt``,
            it may have been executed; ``throttled`` and ``unavailable``, it was not executed, and is sent again;
            ``unauthorized``, which concerns every record; ``changed``, the target holds another version, which is
            looked up; ``pending``, the target has accepted it and executes it later: it is looked up, or asked for if
            it is a stored batch, and not sent again; ``busy``, the target has not accepted a stored batch, since it
            carries out others first: it is handed over again later, without a slower rate. Of a look-up:
            ``found``; ``absent``; ``removed``, only removed records have the name; ``unavailable``, the answer shows
            nothing; ``rejected``; ``throttled``; ``unauthorized``. Other values are for the engine alone.
        status: The HTTP status of the answer; None without one. With 404 or 410 beside ``pending``, the target says
            that it does not know the stored batch: it is asked again all the same, as `BatchProfile` says.
        retry_after_s: The pause that the server asks for; None if it does not.
        target_id: The id of a delivered record, if the answer names it; of a create in doubt, the id of what was
            created under another name, so that it is looked up and never sent again.
        reason: Why a record is rejected; of one in doubt, why it is unless a look-up shows that it was written.
        etag: The record's version, for ``If-Match``; None without one, or with one of more than `MAX_ETAG` characters.
        changed_at: When the record was last changed, as the target states it; None if it does not.
        held: All members that a look-up found, also of a removed record that the target still shows; for an absent
            record, what `Target.create_from` needs.
        receipt: Of a stored batch, what the target needs for its next parts; None if that has not changed.
    """

    kind: OutcomeKind
    message: str = ""
    status: int | None = None
    retry_after_s: float | None = None
    target_id: str | None = None
    etag: str | None = None
    changed_at: str | None = None
    reason: Reason | None = None
    pointer: str | None = None
    held: dict[str, Any] | None = None
    receipt: str | None = None


def body_of(answer: Answer) -> Any:
    """Return the JSON of an answer, with exact numbers, or None."""
    try:
        return exact_json.loads(answer.body)
    except ValueError:
        return None


def outcome_without_answer(error: NotSentError | AmbiguousError, *, harmless: bool = False) -> Outcome:
    """Return the outcome without an answer. A *harmless* request changes nothing, so it is never in doubt."""
    if isinstance(error, ExpiredError):
        return Outcome("expired", error.message)
    return Outcome("unavailable" if harmless or isinstance(error, NotSentError) else "in_doubt", error.message)


def rejected_outcome_of_author_error(error: CrossdockError) -> Outcome:
    """Return the outcome of an operation for which the target's code made no request: it is rejected."""
    reason, pointer = (error.code, error.pointer) if isinstance(error, RecordError) else ("target_failed", None)
    return Outcome("rejected", error.message, reason=cast("Reason", reason), pointer=pointer)


@dataclass(frozen=True, slots=True)
class ExpectedRecord:
    """The record that a request is about.

    Attributes:
        path: The path of the request. The ``Location`` of a new record is directly below it.
        target_id: None if the target has not assigned one yet.
        name: Its external id at the target; None if it has none or it is unknown.
        deletes: Whether the request deletes the record.
        changes: Of an update, the old and the new value of each member that it changes, and that answers show as sent.
    """

    path: str = ""
    target_id: str | None = None
    name: str | None = None
    deletes: bool = False
    changes: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordShape:
    """Where answers have records, ids and external ids, as JSON pointers (RFC 6901).

    Attributes:
        id: In a record, the id that the target assigned, a text or a whole number. None if the external id is the id.
        id_form: How a text there ends: ``/orders/{id}/`` if it is the address of the record, on any host.
        name: In a record, its external id.
        divided_name: How several members of a record hold it; `ApiTarget` sets it.
        deleted: How a deleted record looks, as `TargetResource` declares it; `ApiTarget` sets it.
        record: In an answer about one record, that record.
        looked_up: The same in an answer to a look-up, if it is elsewhere than in an answer to a write.
        listed: In an answer to a look-up by external id, the list of records; an asterisk stands for each element of
            one, of which the rest is the record: ``/data/orders/edges/*/node``. None if it answers with one record.
        absent: For an API whose look-up by external id answers with one record in place of a list: part of the body of
            the 404 that says that no record has this name, in upper or lower case. Any other 404 is a wrong path. An
            empty text takes every 404.
        null_is_absent: Whether null in place of the record alone says that there is none, as GraphQL does: no 404 is
            believed, since it shows a wrong path, or is a proxy's. A 404 that `ApiTarget.failed` returns is believed.
        no_content_is_absent: Whether 204 without a body, in place of a list, says that no record has the external id.
        changed: In a record, when it was last changed.
        ignored: JSON pointers to members of an answer to a look-up, and names of headers, that look like an error, a
            number of records or a next page, and are none.
    """

    id: str | None = "/id"
    id_form: str = "{id}"
    name: str = "/externalId"
    record: str = ""
    looked_up: str | None = field(default=None, kw_only=True)
    listed: str | None = "/data"
    absent: str | None = None
    null_is_absent: bool = field(default=False, kw_only=True)
    no_content_is_absent: bool = field(default=False, kw_only=True)
    divided_name: NameMembers | None = field(default=None, kw_only=True)
    deleted: Filter | None = field(default=None, kw_only=True)
    changed: str = "/updatedAt"
    ignored: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.listed is None and self.absent is None and not self.null_is_absent:
            raise ValueError("say what shows that there is no record: null_is_absent, or absent for a 404")
        if self.absent is not None and self.null_is_absent:
            raise ValueError("choose absent, for a 404, or null_is_absent, which believes none")

    @property
    def finds_one(self) -> bool:
        """Whether a look-up by external id answers with one record in place of a list."""
        return self.listed is None or self.absent is not None

    @property
    def found(self) -> str:
        """Where an answer to a look-up has the one record."""
        return self.record if self.looked_up is None else self.looked_up

    def id_of(self, record: Any) -> str | None:
        """Return the id of *record*; None without a valid one."""
        found = self.name_of(record) if self.id is None else self.stated_id(record)
        text = str(found) if isinstance(found, int) and not isinstance(found, bool) else found
        return text if isinstance(text, str) and is_valid_target_id(text) else None

    def stated_id(self, record: Any) -> Any:
        """Return what *record* has at `id`, which may be no id: an empty text if it does not have the form."""
        found = MISSING if self.id is None else value_at_pointer_or_missing(record, self.id)
        if self.id_form == "{id}" or not isinstance(found, str):
            return found
        before, _, after = self.id_form.partition("{id}")
        match = re.search(rf"{re.escape(before)}([^/]+){re.escape(after)}\Z", found)
        return unquote(match[1]) if match else ""

    def name_of(self, record: Any) -> Any:
        """Return the external id of *record*; `MISSING` without one."""
        return (
            value_at_pointer_or_missing(record, self.name)
            if self.divided_name is None
            else self.divided_name.external_id_in(record)
        )

    def without_other_records(self, listed: Any, subject: ExpectedRecord) -> Any:
        """Return the list that answers a look-up by external id without records whose `divided_name` is another one."""
        if not isinstance(listed, list) or self.divided_name is None or subject.name is None:
            return listed
        return self.divided_name.drop_records_of_other_ids(listed, subject.name, self.name)

    def changed_at(self, record: Any) -> str | None:
        """Return when *record* was last changed, as it states it, or None."""
        found = value_at_pointer_or_missing(record, self.changed)
        return found if isinstance(found, str) and 0 < len(found) <= MAX_ETAG and not _CONTROL.search(found) else None


STANDARD = RecordShape()


def outcome_of_write(
    answer: Answer, subject: ExpectedRecord, shape: RecordShape = STANDARD, *, judged: bool = False
) -> Outcome:
    """Return the outcome of a write.

    A 500, 502, 504 or 408 may come from a gateway after the write was executed, so it is in doubt. So is a success
    whose body is broken, reports an error, has no valid id, or names another record, and a 422 by which the target
    knows the idempotency key from another request. No redirect is followed: one of `MOVED` is rejected, and another in
    doubt.

    Args:
        judged: Whether a rule of the target has found no error in the body.
    """
    status = answer.status
    if 200 <= status < 300:
        return _outcome_of_success(answer, subject, shape, judged=judged)
    if status in REDIRECTS:
        message = _text_of_redirect(answer.headers.get("location", ""), subject.path.partition("?")[0])
        is_moved = status in MOVED
        return Outcome("rejected" if is_moved else "in_doubt", message, status, reason="rejected" if is_moved else None)
    problem = http_answers_and_errors.parse_error_answer(status, answer.body)
    wait = retry_after_s(answer.headers)
    kind: OutcomeKind = "in_doubt"
    if status == _THROTTLED:
        kind, wait = "throttled", wait_stated_by_answer_s(answer.headers, answer.body)
    elif status == 401:
        kind = "unauthorized"
    elif status == 412:
        kind = "changed"
    elif status == 503 and wait is not None:
        kind = "unavailable"
    elif status == UNFIT and _names_idempotency_key(problem):
        message = f"{problem.message}: the target may have this record, with other content"
        return Outcome("in_doubt", message, status, reason="conflict")
    elif 400 <= status < 500 and not _is_request_still_running(problem, wait):
        return _rejected_outcome_of_problem(problem)
    return Outcome(kind, problem.message, status, wait)


def _text_of_redirect(location: str, path: str) -> str:
    """Return where a redirect of a request to *path* leads, without query and credentials, which may be secret."""
    try:
        parts = urlsplit(location)
    except ValueError:
        return "redirects to an address that cannot be read"
    host = parts.netloc.rpartition("@")[2]
    around = f"{parts.scheme or 'https'}://{host}" if host else ""
    shown = printable(f"{around}{parts.path}")
    if not shown:
        return "redirects, and does not say where to"
    is_below = bool(host and path) and parts.path.endswith(path)
    return f"redirects to {shown}" + (f", which is {path} below {shown.removesuffix(path)}" if is_below else "")


def redirect_hint(place: str) -> str:
    """Return what to do about a redirect to the target with the section *place* of the config."""
    return (
        "redirects are not followed, since they could lead to another host: if the API has moved there, write the new"
        f" address in {place}.base_url, or the new path in the request"
    )


def outcome_of_look_up(
    answer: Answer, subject: ExpectedRecord, shape: RecordShape = STANDARD, *, judged: bool = False
) -> Outcome:
    """Return the outcome of a look-up by id, or by external id if the id is unknown.

    A platform that ignores the parameter answers with other records. So an answer by external id must be a list with
    exactly that record, or an empty list; an answer by id, or one without a list, must have that id and the expected
    external id. Nothing is believed to be absent beside an error, or a sign that there are records.

    Args:
        judged: Whether the status is what a rule of the target says of an answer of success.
    """
    by_id = subject.target_id is not None
    is_one = by_id or shape.finds_one
    if (missing := _outcome_if_missing_by_status(answer, shape, by_id=by_id, judged=judged)) is not None:
        return missing
    if answer.status != 200:
        outcome = outcome_of_write(answer, subject, shape)
        return outcome if outcome.kind in {"throttled", "unauthorized"} else replace(outcome, kind="unavailable")
    try:
        body = exact_json.loads(answer.body)
    except ValueError:
        return Outcome("unavailable", "answered a look-up with a broken body", answer.status)
    place = shape.found if is_one else shape.listed or ""
    read = list_at_pointer_with_asterisk(body, place)
    listed = [value_at_pointer_or_missing(body, place)] if is_one else shape.without_other_records(read, subject)
    is_told = not by_id or bool(place)  # a body that is null says nothing of an id
    if listed == [] or (is_one and listed == [None] and is_told):
        return outcome_without_record(answer, body, shape, place, others=0 if is_one else len(read))
    if not isinstance(listed, list) or len(listed) != 1 or not _is_expected_record(listed[0], subject, shape):
        why = f": it has no id at {shape.id}" if by_id and shape.id and shape.id_of(listed[0]) is None else ""
        return Outcome("unavailable", f"answered a look-up with a different record{why}", answer.status)
    etag = _usable_entity_tag(answer) if is_one else None  # otherwise it belongs to the list
    changed_at = shape.changed_at(listed[0])
    return Outcome("found", "", 200, None, shape.id_of(listed[0]), etag, changed_at, held=listed[0])


def outcome_without_record(answer: Answer, body: Any, shape: RecordShape, place: str, *, others: int = 0) -> Outcome:
    """Return the outcome of a look-up whose answer has no record at *place*: none is absent if its body shows more.

    Without a status, because it shows nothing about the filter.

    Args:
        others: How many records it has there that are left out.
    """
    from crossdock.reading.sources.signs_of_unread_records import collect_signs_beside_empty_list  # noqa: PLC0415  a plan needs neither its patterns nor pagination

    read = ApiAnswer("", body, answer.status, answer.headers)
    records = place.partition("/*")[0] or None
    sign = collect_signs_beside_empty_list(
        read, records, shape.ignored, uncounted_records=others
    ).sign_of_more_records()
    if sign is None:
        return Outcome("absent", status=answer.status)
    reason = errors_in_api_answers.redacted_error_message_in_json(body, str)
    sign = f"{sign}: {reason}" if reason else sign
    advice = "if that says something else, declare it as ignored"
    return Outcome("unavailable", f"answered a look-up without a record, although {sign}; {advice}")


def outcome_or_unavailable_if_cached(outcome: Outcome, answer: Answer) -> Outcome:
    """Return the *outcome* of a look-up; an absent record is none if *answer* is older than the question."""
    if outcome.kind != "absent":
        return outcome
    age = cache_age_s(answer.headers)
    hit = f"{age:,} s old" if age else header_showing_cache_hit(answer.headers)
    if hit is None:
        return outcome
    message = f"answered a look-up from a cache ({hit}), which may not know the record yet: exclude look-ups from it"
    return Outcome("unavailable", message, outcome.status)


def outcome_or_unavailable_if_moved(outcome: Outcome, answer: Answer) -> Outcome:
    """Return the *outcome* of a look-up; a redirect is none, whatever it would be to a write."""
    return replace(outcome, kind="unavailable") if answer.status in REDIRECTS else outcome


def outcome_or_pending_if_accepted(outcome: Outcome, status: int | None) -> Outcome:
    """Return the *outcome* of a write; it is ``pending`` if the target has only accepted the request.

    The id in its answer, if any, may be that of a job.
    """
    is_refused = outcome.kind == "in_doubt" and outcome.reason is not None
    if status != ACCEPTED or is_refused or outcome.kind not in {"delivered", "in_doubt"}:
        return outcome
    return Outcome("pending", "accepted the request, and does not say that it was carried out", ACCEPTED)


def _outcome_if_missing_by_status(answer: Answer, shape: RecordShape, *, by_id: bool, judged: bool) -> Outcome | None:
    """Return the outcome of an answer to a look-up whose status says that there is no record, or None."""
    if not by_id and not shape.finds_one:
        is_empty = answer.status == _NO_CONTENT and not answer.body
        return outcome_without_record(answer, None, shape, "") if is_empty and shape.no_content_is_absent else None
    is_missing = answer.status in {404, 410} and (judged or not shape.null_is_absent)
    return _absent_unless_path_doubtful(answer, "" if by_id else shape.absent or "") if is_missing else None


def _absent_unless_path_doubtful(answer: Answer, text: str) -> Outcome:
    """Return the outcome of a 404: without *text* it may come from a wrong path, where every record seems missing."""
    if text.casefold() in answer.body.decode("utf-8", "replace").casefold():
        return Outcome("absent", status=answer.status)
    message = f"answered a look-up with HTTP {answer.status} without the text {text!r}: its path may be wrong"
    return Outcome("unavailable", message, answer.status)


def _is_expected_record(record: object, subject: ExpectedRecord, shape: RecordShape) -> bool:
    found = shape.id_of(record)
    if not isinstance(record, dict) or found is None:
        return False
    return found == (subject.target_id or found) and subject.name in {None, shape.name_of(record)}


def outcome_of_ping(answer: Answer) -> Outcome:
    """Return the outcome of a ping: any status below 500 shows that the platform works."""
    return Outcome("answered" if answer.status < 500 else "unavailable", status=answer.status)


def outcome_of_busy_target(answer: Answer) -> Outcome:
    """Return the outcome of a part of a stored batch that is sent again later. The body of the answer says why."""
    return Outcome("busy", answer.body.decode(), answer.status, retry_after_s(answer.headers))


def outcome_of_staging_batch(answer: Answer) -> Outcome:
    """Return the outcome of the first part of a stored batch, which has no effect. Its body is the receipt."""
    if answer.status == _THROTTLED:
        return Outcome(
            "throttled", "too many requests", answer.status, wait_stated_by_answer_s(answer.headers, answer.body)
        )
    if answer.status == BUSY:
        return outcome_of_busy_target(answer)
    if answer.status == UNFIT:
        return Outcome("rejected", exact_json.loads(answer.body), UNFIT)
    kind: OutcomeKind = "staged" if 200 <= answer.status < 300 else "unavailable"
    return Outcome(kind, status=answer.status, receipt=answer.body.decode() or None)


def _is_request_still_running(problem: Problem, wait_s: float | None) -> bool:
    """Return True for a time-out, and for a conflict with a running earlier attempt under the same key."""
    return problem.status == 408 or (problem.status == 409 and (wait_s is not None or "idempoten" in problem.kind))


def _names_idempotency_key(problem: Problem) -> bool:
    """Return whether a refusal says that the key was used for other bytes, as by a state that was lost since."""
    return "idempoten" in f"{problem.kind} {problem.message}".lower()


def _outcome_of_success(answer: Answer, subject: ExpectedRecord, shape: RecordShape, *, judged: bool) -> Outcome:
    try:
        body = exact_json.loads(answer.body) if answer.body else {}
    except ValueError:
        return Outcome("in_doubt", "answered success with a broken body", answer.status)
    record = value_at_pointer_or_missing(body, shape.record)
    if not judged and (place := _error_place_in_success_answer(answer, body, record, subject, shape)) is not None:
        message = f"answered success with an error: {_text_of_error(body, place) or f'see {place}'}"
        return Outcome("in_doubt", message, answer.status, reason="rejected")
    if answer.status == _MULTI_STATUS and not judged:
        return Outcome("in_doubt", "answered with several results, of which some may be errors", answer.status)
    text = None if answer.status == ACCEPTED else _text_of_nothing_shown(body, subject, shape)
    if text is not None or (text := _text_of_nothing_done(body, record, subject, shape, judged=judged)) is not None:
        return Outcome("in_doubt", f"answered success, but {text}", answer.status, reason="rejected")
    return _outcome_of_error_free_success(answer, record, subject, shape)


def _text_of_nothing_shown(body: Any, subject: ExpectedRecord, shape: RecordShape) -> str | None:
    """Return what an answer of success has in place of the record, if that says that nothing was done, or None.

    APIs answer so to a change or delete that matched no record, or where a method has failed. A create needs an id
    anyway; of one that is known by its name, an action may show nothing. Null around the record only says that a method
    returns nothing.
    """
    is_known = subject.target_id is not None
    if not is_known and shape.id is not None:
        return None
    found = [value_at_pointer_or_missing(body, place) for place in _places_up_to(shape.record)]
    nothing = [value for value in found if value is False or (is_known and value == [])]
    if is_known and found[-1] is None:
        nothing.append(None)
    return f"has {exact_json.dumps(nothing[0]).decode()} in place of the record" if nothing else None


def _places_up_to(pointer: str) -> list[str]:
    """Return the JSON pointers of what is around the value at *pointer*, and its own."""
    names = pointer.split("/")
    return ["/".join(names[: depth + 1]) for depth in range(len(names))]


def _text_of_nothing_done(
    body: Any, record: Any, subject: ExpectedRecord, shape: RecordShape, *, judged: bool
) -> str | None:
    """Return what in an answer of success to an update or delete says that nothing was done, or None."""
    if subject.target_id is None:
        return None
    if subject.deletes and shape.deleted is not None and _has_any_column_of_filter(record, shape.deleted):
        return None if shape.deleted.json_predicate()(record) else "shows a record that is not deleted"
    if (name := next((name for name in subject.changes if _shows_old_value(record, name, subject)), None)) is not None:
        return f"shows the old value of {name}"
    names = _NOTHING_DONE["delete" if subject.deletes else "update"]
    is_own = not subject.deletes and shape.name_of(record) is not MISSING  # the members of a record that is shown
    members = {} if judged or is_own else {**object_or_empty(record), **object_or_empty(body)}
    told = (
        name
        for name, value in members.items()
        if value in (False, 0) and names.fullmatch(re.sub(r"[\W_]", "", name).lower())
    )
    return next((f"{name} is {exact_json.dumps(members[name]).decode()}" for name in told), None)


def _shows_old_value(record: Any, name: str, subject: ExpectedRecord) -> bool:
    old, new = subject.changes[name]
    if not isinstance(record, dict) or name not in record:
        return False
    return has_wanted_members(record[name], old) and not has_wanted_members(record[name], new)


def _has_any_column_of_filter(record: Any, condition: Filter) -> bool:
    return isinstance(record, dict) and any(
        value_at_path_or_missing(record, column) is not MISSING for column in condition.columns()
    )


def _outcome_of_error_free_success(answer: Answer, record: Any, subject: ExpectedRecord, shape: RecordShape) -> Outcome:
    if shape.id is None:  # the answer may show another record, such as the stock that was adjusted
        return Outcome("delivered", status=answer.status, target_id=subject.name)
    located = _id_in_location(answer.headers.get("location", ""), subject.path)
    stated = [shape.stated_id(record), located, subject.target_id]
    ids = {str(each) for each in stated if isinstance(each, str | int) and not isinstance(each, bool)}
    if placeholders := {each for each in ids if is_null_like_id(each)} - {subject.target_id}:
        return Outcome("in_doubt", f"answered success with {min(placeholders)} in place of an id", answer.status)
    if not ids:
        return Outcome("in_doubt", "answered success without an id", answer.status)
    if not all(map(is_valid_target_id, ids)):
        return Outcome(
            "in_doubt", "answered success with an id that is not 1 to 64 printable characters", answer.status
        )
    if len(ids) > 1 or subject.name not in {None, _default_if_missing(shape.name_of(record), subject.name)}:
        created = min(ids) if subject.target_id is None else None
        return Outcome("in_doubt", "answered success for another record", answer.status, target_id=created)
    return Outcome(
        "delivered", "", answer.status, None, ids.pop(), _usable_entity_tag(answer), shape.changed_at(record)
    )


def is_null_like_id(target_id: str) -> bool:
    """Return whether APIs answer with this where a record was not made, in place of an id."""
    return target_id.lower() in _NO_IDS


def _error_place_in_success_answer(
    answer: Answer, body: Any, record: Any, subject: ExpectedRecord, shape: RecordShape
) -> str | None:
    """Return the member of an answer of success that reports an error, or None.

    Beside a record, or in place of one, any status or code counts. If the whole answer is the record, it may have them
    as its own.
    """
    from crossdock.reading.sources.signs_of_unread_records import (  # noqa: PLC0415  as above
        collect_signs_beside_empty_list,
        member_reporting_failure,
    )

    for place in _places_up_to(shape.record):
        if (member := member_reporting_failure(value_at_pointer_or_missing(body, place))) is not None:
            return f"{place}/{escaped_pointer_part(member)}"
    if not shape.record and (shape.id is None or _shows_answer_the_record(record, subject, shape)):
        return None
    read = ApiAnswer("", body, answer.status, answer.headers)
    return collect_signs_beside_empty_list(read, shape.record or None, _COPIES).place_of_error


def _text_of_error(body: Any, place: str) -> str:
    """Return the text of the error at *place*, or one around it, or an empty text.

    A word or number of other members than ``error``, such as a status, says less than a text beside it.
    """
    if not is_pointer(place):  # of a header
        return ""
    around, _, name = place.rpartition("/")
    found = value_at_pointer_or_missing(body, place)
    is_word = isinstance(found, str) and len(found.split()) == 1 and name.lower() not in {"error", "errors"}
    places = (around, "", place) if is_word else (place, around, "")
    return next(
        filter(
            None,
            (
                errors_in_api_answers.redacted_error_message_in_json(value_at_pointer_or_missing(body, each), str)
                for each in places
            ),
        ),
        "",
    )


def _shows_answer_the_record(record: Any, subject: ExpectedRecord, shape: RecordShape) -> bool:
    """Return whether an answer is the record that was written, and not only a word about it."""
    is_named = shape.name_of(record) is not MISSING
    return is_named or (subject.name is None if subject.target_id is None else shape.id_of(record) is not None)


def _default_if_missing(found: Any, other: Any) -> Any:
    return other if found is MISSING else found


def _id_in_location(location: str, path: str) -> str | None:
    """Return the id of a new record: the segment after the path of its collection (RFC 9110, section 10.2.2)."""
    try:
        collection, _, segment = urlsplit(location).path.rpartition("/")
    except ValueError:
        return None
    return unquote(segment) if segment and collection.endswith(path) else None


def _usable_entity_tag(answer: Answer) -> str | None:
    """Return the entity tag unchanged; None if it is too long or has a control character (RFC 9110, 8.8.3)."""
    etag = answer.headers.get("etag")
    return None if etag is None or len(etag) > MAX_ETAG or _CONTROL.search(etag) else etag


def tag_without_compression_marks(etag: str) -> str:
    """Return the tag of the target itself, without what a server before it marks compressed answers with.

    They become weak (nginx, Cloudflare), or get a suffix (Apache, Jetty), and ``If-Match`` fails with such a tag.
    """
    return _MARKED_TAG.sub(r'"\1"', etag)


def _rejected_outcome_of_problem(problem: Problem) -> Outcome:
    reasons: dict[int, Reason] = {403: "forbidden", 409: "conflict"}
    return Outcome(
        "rejected",
        problem.message,
        problem.status,
        reason=reasons.get(problem.status, "rejected"),
        pointer=problem.pointers[0] if problem.pointers else None,
    )
