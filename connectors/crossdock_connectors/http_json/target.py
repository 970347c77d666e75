"""A connection as a target, declared only by its config: requests, and the interpretation of answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal
from urllib.parse import quote, urlencode

from crossdock.errors import RemoteError
from crossdock.pacing.answer_headers import wait_stated_by_answer_s
from crossdock.reading.sources import errors_in_api_answers
from crossdock.reading.sources.api_requests_and_answers import parameter_pairs
from crossdock.sources import ApiAnswer
from crossdock.targets import (
    Answer,
    ApiTarget,
    BatchProfile,
    EndpointProfile,
    ExpectedRecord,
    Outcome,
    RecordShape,
    Request,
    TargetResource,
    Update,
    body_of,
)
from crossdock.values import exact_json
from crossdock.values.field_types import MAX_ID_LENGTH
from crossdock.values.json_paths import MISSING, value_at_pointer_or_missing
from crossdock.writing.targets import answer_outcomes
from crossdock.writing.targets.api_target import outcome_of_write_with_reason
from crossdock_connectors.declared_target_records import draft_model
from crossdock_connectors.http_json.pagination_settings import pointers_and_headers_to_ignore
from crossdock_connectors.http_json.recognized_answers import REFUSED, RepeatedAnswer, error_members_in
from crossdock_connectors.http_json.request_declarations import DeclaredRequest, PostedRequest
from crossdock_connectors.http_json.target_settings import (
    ID,
    IN_PATH,
    NAME,
    BatchConfig,
    TargetConfig,
    TargetResourceConfig,
)

_GRAPHQL_PING = {"query": "{ __typename }"}  # https://graphql.org/learn/introspection/: each type has it
_THROTTLED = 429


class HttpJsonTarget(ApiTarget):
    def __init__(self, config: TargetConfig) -> None:
        self._config = config
        self._failed = None if config.failed is None else config.failed.when.json_predicate()
        self.retry, self.in_flight, self.kept_s, self.settle_s = (
            config.retry, config.in_flight, config.kept_s, config.settle_s,
        )  # fmt: skip
        own = {name: each for name, each in config.resources.items() if isinstance(each, TargetResourceConfig)}
        self._single = own  # a request for each record, or a batch of them
        self.resources = {name: _target_resource_from_config(name, each) for name, each in own.items()}

    # ---- requests

    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        config = self._single[resource]
        assert config.create is not None  # else no stream creates records
        if isinstance(config.create, PostedRequest):
            return self._fill_posted_request(config.create, {"record": payload})
        method, path = config.create.split()
        path = IN_PATH.sub(lambda found: quote(str(payload[found[1]]), safe=""), path)
        sent = {name: value for name, value in payload.items() if name not in config.members_in_path}
        body = self.resources[resource].in_body(sent)
        return Request(method, path, exact_json.dumps(body), holds_payload=body == payload)

    def batch(self, resource: str, requests: Sequence[Request]) -> Request:
        batch = self._single[resource].batch
        assert batch is not None
        listed = b"[" + b",".join(each.body or b"{}" for each in requests) + b"]"
        member = None if batch.items is None else exact_json.dumps(batch.items)
        body = listed if member is None else b"{" + member + b":" + listed + b"}"
        return Request(requests[0].method, requests[0].path, body)

    def _record_request_for_batch(
        self, resource: str, request: tuple[str, str], target_id: str, record: dict[str, Any]
    ) -> Request:
        config = self._single[resource]
        assert config.batch is not None
        try:
            known = {config.batch.id: int(target_id) if config.batch.numbers else target_id} if config.batch.id else {}
        except ValueError:
            place = f"{self.place}.target.resources.{resource}.batch"
            raise RemoteError(
                "a record's id is no whole number, as its numbers say", where=place, code="answer_misplaced"
            ) from None
        return Request.json(*request, self.resources[resource].in_body(record) | known)

    def update(self, resource: str, target_id: str, update: Update) -> Request:
        config = self._single[resource]
        posted = config.update if isinstance(config.update, PostedRequest) else None
        method, path = (
            ("", "") if isinstance(config.update, PostedRequest) else _method_and_path_for_id(config.update, target_id)
        )
        is_together = config.is_sent_in_batches("update")
        is_patch = method == "PATCH" if posted is None else posted.uses_any_placeholder("changes")
        sent = update.changes if is_patch else update.after
        compared = {other: update.before.get(member) for member, other in config.compare.items() if member in sent}
        if posted is not None:
            return self._fill_posted_request(
                posted, {"changes" if is_patch else "record": sent | compared, "id": target_id}
            )
        if is_together:
            return self._record_request_for_batch(resource, (method, path), target_id, sent | compared)
        return Request.json(method, path, self.resources[resource].in_body(sent | compared))

    def delete(self, resource: str, target_id: str) -> Request:
        config = self._single[resource]
        if isinstance(config.delete, PostedRequest):
            return self._fill_posted_request(config.delete, {"id": target_id})
        if config.is_sent_in_batches("delete"):
            return self._record_request_for_batch(
                resource, _method_and_path_for_id(config.delete, target_id), target_id, {}
            )
        return Request(*_method_and_path_for_id(config.delete, target_id))

    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        config = self._single[resource]
        if target_id is not None:
            if config.read is None:
                place = f"{self.place}.target.resources.{resource}"
                raise RemoteError(
                    "has no request that reads a record by its id", where=place, code="look_up_impossible"
                )
            if isinstance(config.read, PostedRequest):
                return self._fill_posted_request(config.read, {"id": target_id})
            return Request(*_method_and_path_for_id(config.read, target_id))
        assert config.look_up
        if config.look_up.is_post:
            return self._fill_posted_request(config.look_up, {"name": name or ""})
        return Request("GET", _path_with_query(config.look_up, {"name": name}))

    def ping(self, resource: str) -> Request:
        config = self._single[resource]
        request = config.create or config.update or ""
        path = request.path if isinstance(request, PostedRequest) else request.partition(" ")[2]
        if config.look_up and NAME not in config.look_up.path:
            path = config.look_up.path
        path = path.partition("{")[0].rstrip("/") or "/"
        is_graphql = isinstance(request, PostedRequest) and request.graphql is not None
        return Request.json("POST", path, _GRAPHQL_PING) if is_graphql else Request("GET", path)

    def _fill_posted_request(self, request: DeclaredRequest, values: Mapping[str, Any]) -> Request:
        numbers = request.numbers if isinstance(request, PostedRequest) else ()
        try:
            body = request.filled_body(values, numbers) if request.is_post else None
        except ValueError:
            place = f"{self.place}.target.resources"
            raise RemoteError(
                "a record's id is no whole number, as its numbers say", where=place, code="answer_misplaced"
            ) from None
        method = request.method if isinstance(request, PostedRequest) else "POST"
        return Request(method, _path_with_query(request, {name: values.get(name) for name in ("name", "id")}), body)

    # ---- answers

    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        return self.throttled(answer) or self._outcome_of_answer(resource, self.with_status(resource, answer), expected)

    def _outcome_of_answer(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        config, shape = self._single[resource], self.shape(resource)
        if expected.target_id is None and isinstance(config.create, PostedRequest) and config.create.id is not None:
            shape = replace(shape, record=config.create.id, id="")
        elif expected.target_id is None and config.creates_by_put:  # Location is another name of the record at the path
            expected = replace(expected, path=expected.path.rpartition("/")[0])
        made = outcome_of_write_with_reason(answer, expected, shape, judged=self._failed is not None)
        if made.kind != "rejected":
            return made
        if expected.target_id is not None:
            is_outdated = config.outdated is not None and config.outdated.matches(answer.status, body_of(answer))
            return replace(made, kind="changed") if is_outdated else made
        if isinstance(config.repeated, RepeatedAnswer) and config.repeated.matches(answer.status, body_of(answer)):
            return replace(made, reason="conflict", pointer=self.resources[resource].name_pointer)
        return made

    def batch_outcomes(
        self, resource: str, answer: Answer, expected: Sequence[ExpectedRecord]
    ) -> Outcome | Sequence[Outcome]:
        batch = self._single[resource].batch
        assert batch is not None
        told = _with_wait_if_throttled(self._outcomes_of_each(resource, batch, answer, expected), answer)
        kinds = {each.kind for each in told}
        if "delivered" in kinds:  # whatever the answer says of all, these were accepted
            return told
        if throttled := self.throttled(answer):
            return throttled
        whole = self.with_status(resource, answer)
        is_success = 200 <= whole.status < 300
        are_throttled = kinds == {"throttled"}
        may_be_of_one = batch.atomic and len(expected) > 1  # nothing was executed because of one of them
        is_of_all = are_throttled or (kinds == {"rejected"} and may_be_of_one)
        is_stated = bool(kinds & {"rejected", "unavailable"}) or (
            is_success and answer.status != answer_outcomes.ACCEPTED
        )
        if told and is_stated and not is_of_all:
            return told
        if is_success or (are_throttled and whole.status != _THROTTLED):
            return told[0] if is_of_all else _pending_or_in_doubt_without_results(answer)
        if len(expected) == 1:
            return self._outcome_of_answer(resource, whole, expected[0])
        return outcome_of_write_with_reason(whole, ExpectedRecord(expected[0].path), self.shape(resource))

    def _outcomes_of_each(
        self, resource: str, batch: BatchConfig, answer: Answer, expected: Sequence[ExpectedRecord]
    ) -> list[Outcome]:
        """Return what an answer says of each record; an empty list if it does not. The results of a refusal, or of an
        answer that promises to do it later, count only if each states what became of its record.
        """
        is_success = 200 <= answer.status < 300
        if is_success and not answer.body:  # such as 204
            return [self._outcome_of_answer(resource, answer, each) for each in expected]
        results = _match_results_to_records(batch, self.shape(resource), body_of(answer), expected)
        is_later = answer.status == answer_outcomes.ACCEPTED and not self._single[resource].accepted
        if results is None or (batch.status is None and (not is_success or is_later)):
            return []
        return [
            self._outcome_of_result(resource, batch, result, each)
            for result, each in zip(results, expected, strict=True)
        ]

    def _outcome_of_result(self, resource: str, batch: BatchConfig, result: Any, expected: ExpectedRecord) -> Outcome:
        answer = _answer_of_batch_result(batch, result)
        if answer is None:
            return Outcome("in_doubt", "the answer has no result for this record")
        if batch.status is None and self._failed is None and error_members_in(result):
            shape = self.shape(resource)
            target_id = shape.id_of(value_at_pointer_or_missing(_record_in_batch_result(batch, result), shape.record))
            if expected.target_id is None and target_id is not None and not answer_outcomes.is_null_like_id(target_id):
                reason = errors_in_api_answers.redacted_error_message_in_json(error_members_in(result), str)
                message = f"the result has both an id and an error: {reason}"
                return Outcome("in_doubt", message, answer.status, reason="rejected")
            answer = replace(answer, status=REFUSED)
        told = self.outcome(resource, answer, expected)
        if told.kind == "delivered" and expected.target_id is not None and _is_record_null(batch, result):
            message = "the result has null in place of the record"
            return Outcome("in_doubt", message, answer.status, reason="rejected")
        return told

    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        told, shape = self.with_status(resource, answer), self.shape(resource)
        if (
            told.status == 200
            and self._states_no_record(resource, body_of(told), expected)
            and not self.throttled(answer)
        ):
            place = shape.record if expected.target_id is not None else shape.listed or ""
            return answer_outcomes.outcome_without_record(told, body_of(told), shape, place)
        return super().found(resource, answer, expected)

    def _states_no_record(self, resource: str, body: Any, expected: ExpectedRecord) -> bool:
        """Return whether an answer to a look-up by id has null in place of the record, or one by name has no list, and
        states a total of 0.
        """
        config = self._single[resource]
        if expected.target_id is not None:
            return isinstance(config.read, PostedRequest) and _is_null_or_list_empty(body, self.shape(resource).record)
        look_up = config.look_up
        if not look_up or look_up.total is None or look_up.records is None:
            return False
        return (
            value_at_pointer_or_missing(body, look_up.records) is MISSING
            and value_at_pointer_or_missing(body, look_up.total) == 0
        )

    def failed(self, resource: str, answer: ApiAnswer) -> int | None:
        if status := self._status_of_declared_failure(answer.body):
            return status
        body, failed = answer.body, self._config.failed
        if not (
            isinstance(body, dict) and self._single[resource].has_graphql_or_call_requests and error_members_in(body)
        ):
            return None
        return REFUSED if failed is None else failed.status_of_failed_body(body)

    def _status_of_declared_failure(self, body: Any) -> int | None:
        failed = self._config.failed
        if failed is None or self._failed is None or not isinstance(body, dict) or not self._failed(body):
            return None
        return failed.status_of_failed_body(body)

    def advice(self, resource: str, status: int | None) -> str:
        match status:
            case 401 | 403:
                return f"check {self.place}.auth, and what the key permits"
            case 404 | 405:
                return f"check {self.place}.base_url and {self.place}.target.resources.{resource}.create"
        return f"check {self.place}.rate"


def _target_resource_from_config(name: str, config: TargetResourceConfig) -> TargetResource:
    absent = config.look_up.absent if config.look_up else None
    is_query = isinstance(config.read, PostedRequest) and config.read.graphql is not None
    return TargetResource(
        name,
        draft_model(name, config.members),
        write_once=config.update is None,
        creates=config.create is not None,
        body=config.body,
        deletes=config.delete is not None,
        endpoint=EndpointProfile(
            idempotent=config.idempotency_header is not None or config.repeated is not None,
            look_up=bool(config.look_up),
            accepted=config.accepted,
            conditional=config.conditional,
            compares=bool(config.compare),
            header=config.idempotency_header,
            key_member=config.idempotency_member,
        ),
        shape=RecordShape(
            id=None if config.id == NAME else config.id,
            id_form=config.id_form,
            record=config.record,
            listed=(config.look_up.records if config.look_up else None) or "",
            absent=absent,
            null_is_absent=absent is None and is_query,
            ignored=pointers_and_headers_to_ignore(config.look_up.ignore) if config.look_up else frozenset(),
        ),
        name_member=config.name,
        name_limit=min(config.name_max_length, MAX_ID_LENGTH) if config.id == NAME else config.name_max_length,
        name_form=config.name_form,
        deleted=config.deleted,
        shown=None if config.shown is None else frozenset(config.shown),
        batch=_batch_profile(config),
        look_up_setting=f"target.resources.{name}.look_up",
    )


def _batch_profile(config: TargetResourceConfig) -> BatchProfile | None:
    if config.batch is None:
        return None
    kinds: tuple[Literal["create", "update", "delete"], ...] = ("create", "update", "delete")
    together = frozenset(kind for kind in kinds if config.is_sent_in_batches(kind))
    return BatchProfile(config.batch.size, together, config.batch.atomic)


def _match_results_to_records(
    batch: BatchConfig, shape: RecordShape, body: Any, expected: Sequence[ExpectedRecord]
) -> list[Any] | None:
    """Return the result of each record, or `MISSING`; None if results cannot be matched with the records.

    A record whose name is not known, as that of a contribution, is found by its id.
    """
    found = value_at_pointer_or_missing(body, batch.results)
    if not isinstance(found, list):
        return None
    if batch.by is None:
        return found if len(found) == len(expected) else None
    by_key = defaultdict[tuple[str, Any], list[Any]](list)
    for result in found:
        name, record = (
            value_at_pointer_or_missing(result, batch.by),
            value_at_pointer_or_missing(_record_in_batch_result(batch, result), shape.record),
        )
        by_key["id", shape.id_of(record)].append(result)
        if isinstance(name, str | int):
            by_key["name", str(name)].append(result)
    keys = [("id", each.target_id) if each.name is None else ("name", each.name) for each in expected]
    repeated = {key for key, number in Counter(keys).items() if number > 1 or len(by_key[key]) != 1}
    return [MISSING if key in repeated else by_key[key][0] for key in keys]


def _record_in_batch_result(batch: BatchConfig, result: Any) -> Any:
    record = MISSING if batch.record is None else value_at_pointer_or_missing(result, batch.record)
    return result if record is MISSING or record is None else record


def _is_record_null(batch: BatchConfig, result: Any) -> bool:
    """Return whether *result* has null in place of its record; where it has a status, that is an empty body."""
    return (
        batch.status is None and batch.record is not None and value_at_pointer_or_missing(result, batch.record) is None
    )


def _answer_of_batch_result(batch: BatchConfig, result: Any) -> Answer | None:
    """Return the answer about one record that *result* stands for; None if it does not say what became of it: it is no
    object, or has no HTTP status where one is declared.
    """
    status = 200 if batch.status is None else value_at_pointer_or_missing(result, batch.status)
    number = int(status) if isinstance(status, str) and status.isdecimal() else status
    if not isinstance(result, dict) or type(number) is not int or not 200 <= number < 600:
        return None
    return Answer(number, {}, exact_json.dumps(_record_in_batch_result(batch, result)))


def _with_wait_if_throttled(told: list[Outcome], answer: Answer) -> list[Outcome]:
    """Give records that were refused because of their rate the wait that their results or else the whole answer state.

    If they are only some, they are sent again later: others go on. So is one alone if nothing else tells of the rate.
    """
    if all(each.kind != "throttled" for each in told):
        return told
    wait_s = wait_stated_by_answer_s(answer.headers, answer.body)
    waits = [wait_s if each.retry_after_s is None else each.retry_after_s for each in told]
    is_rate = len(told) > 1 or waits[0] is not None or answer.status == _THROTTLED
    is_of_all = is_rate and all(each.kind == "throttled" for each in told)
    kind: Literal["throttled", "unavailable"] = "throttled" if is_of_all else "unavailable"
    return [
        replace(each, kind=kind, retry_after_s=wait) if each.kind == "throttled" else each
        for each, wait in zip(told, waits, strict=True)
    ]


def _pending_or_in_doubt_without_results(answer: Answer) -> Outcome:
    if answer.status == answer_outcomes.ACCEPTED:
        return Outcome(
            "pending", "accepted the records, and does not say what becomes of each", answer_outcomes.ACCEPTED
        )
    reason = errors_in_api_answers.redacted_error_message_in_json(error_members_in(body_of(answer)), str)
    message = "answered a batch without a result for each record"
    return Outcome("in_doubt", f"{message}: {reason}" if reason else message, answer.status)


def _method_and_path_for_id(request: str | None, target_id: str) -> tuple[str, str]:
    assert request is not None  # the config has it where operations need it
    method, path = request.split()
    return method, path.replace(ID, quote(target_id, safe=""))


def _is_null_or_list_empty(body: Any, place: str) -> bool:
    """Return whether the member at *place* is null, or the first of an empty list. An absent member means nothing."""
    is_first = place.endswith("/0") and value_at_pointer_or_missing(body, place.removesuffix("/0")) == []
    return bool(place) and (is_first or value_at_pointer_or_missing(body, place) is None)


def _path_with_query(request: DeclaredRequest, values: Mapping[str, str | None]) -> str:
    """Return path and query with the texts of *values* in place of their names in braces."""
    known = {f"{{{name}}}": text for name, text in values.items() if text is not None}
    query = [(key, _fill_names_in_braces(text, known)) for key, text in parameter_pairs(request.params)]
    path = _fill_names_in_braces(request.path, {place: quote(text, safe="") for place, text in known.items()})
    return f"{path}?{urlencode(query)}" if query else path


def _fill_names_in_braces(text: str, known: Mapping[str, str]) -> str:
    return IN_PATH.sub(lambda found: known.get(found[0], found[0]), text)
