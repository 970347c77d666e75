"""A target behind the HTTP API of a connection: a connector declares its resources, requests and answers.

`AnswerErrors` are errors by which an answer of success says that its request failed, as a GraphQL mutation does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from crossdock.errors import ConfigError, UnauthorizedError, UnavailableError
from crossdock.mapping.stream_declaration import Filter
from crossdock.pacing.answer_headers import Throttling
from crossdock.pacing.rate_limit_and_retry_settings import LimitSettings
from crossdock.reading.sources import errors_in_api_answers
from crossdock.reading.sources.api_declaration import Api, no_failure_status
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer
from crossdock.reading.transport.http_answers_and_errors import Answer
from crossdock.values import exact_json
from crossdock.values.json_paths import (
    MISSING,
    list_at_pointer_with_asterisk,
    value_at_path_or_missing,
    value_at_pointer_or_missing,
)
from crossdock.writing.targets import answer_outcomes
from crossdock.writing.targets.answer_outcomes import ExpectedRecord, Outcome, RecordShape, body_of, outcome_of_look_up
from crossdock.writing.targets.target import Client, ConnectorTarget, Target, external_id_of_no_record

if TYPE_CHECKING:
    from crossdock.reading.sources.api_request_sender import ApiRequestSender

_REFUSED, _NAME_TAKEN = 422, 409
_OF_GRAPHQL = "/errors"  # beside data: https://spec.graphql.org/October2021/#sec-Errors


@dataclass(frozen=True, slots=True)
class AnswerErrors:
    """One place of errors in answers of success. All but `at` are about one error there.

    Attributes:
        at: A JSON pointer to the list of errors, or to one error, such as ``/data/saved/errors``. It has none if it is
            missing, null or empty.
        code: Where an error has its code.
        statuses: The status, 400 to 599, that an error stands for, by code; see `ApiTarget.failed`.
        repeated: The code by which a second record of a name is refused; None for none.
        member: Where an error names the member that it is about: a text, or a list whose last one counts. An error with
            the code `repeated` that names another member than the external id is a refusal like others.
        otherwise: The status that any other error stands for. GraphQL's own ``/errors`` without ``data`` are always a
            refusal, since nothing was done.
    """

    at: str
    code: str = field(default="/code", kw_only=True)
    statuses: Mapping[str, int] = field(default_factory=dict, kw_only=True)
    repeated: str | None = field(default=None, kw_only=True)
    member: str = field(default="/field", kw_only=True)
    otherwise: int = field(default=_REFUSED, kw_only=True)

    def status_of(self, body: Any, name_member: str | None) -> int | None:
        """Return the status that the errors of an answer stand for; None without one.

        Args:
            name_member: The member with the external id.
        """
        found = value_at_pointer_or_missing(body, self.at)
        errors = found if isinstance(found, list) else [found] if isinstance(found, dict) and found else []
        if not errors:
            return None
        if any(self._reports_external_id_already_used(each, name_member) for each in errors):
            return _NAME_TAKEN
        stated = [self.statuses.get(self._code_of_error(each) or "") for each in errors]
        if status := next(filter(None, stated), None):
            return status
        is_undone = self.at == _OF_GRAPHQL and isinstance(body, dict) and body.get("data") is None
        return _REFUSED if is_undone else self.otherwise

    def _code_of_error(self, error: Any) -> str | None:
        found = value_at_pointer_or_missing(error, self.code)
        return str(found) if isinstance(found, str | int) else None

    def _reports_external_id_already_used(self, error: Any, name_member: str | None) -> bool:
        if self.repeated is None or self._code_of_error(error) != self.repeated:
            return False
        named = value_at_pointer_or_missing(error, self.member)
        named = named[-1] if isinstance(named, list) and named else named
        return not isinstance(named, str) or named == name_member


def outcome_of_look_up_with_deleted(
    answer: Answer, subject: ExpectedRecord, shape: RecordShape, deleted: Filter
) -> Outcome:
    """Return the outcome of a look-up with the status 200, as `outcome_of_look_up`, where a deleted record is
    ``absent`` by its id. By its external id it is left out beside others, and ``removed`` if there is no other.
    """
    if subject.target_id is not None:
        return _absent_by_id_if_deleted(answer, subject, shape, deleted)
    is_deleted = deleted.json_predicate()
    listed = shape.without_other_records(list_at_pointer_with_asterisk(body_of(answer), shape.listed or ""), subject)
    kept = []
    if not shape.finds_one and isinstance(listed, list) and listed:
        kept = [each for each in listed if not is_deleted(each)]
        answer = replace(answer, body=exact_json.dumps(kept or listed[-1:]))
        shape = replace(shape, listed="")
    made = outcome_of_look_up(answer, subject, shape)
    is_removed = made.kind == "found" and not kept and is_deleted(made.held)
    return replace(made, kind="removed") if is_removed else made


def _absent_by_id_if_deleted(answer: Answer, subject: ExpectedRecord, shape: RecordShape, deleted: Filter) -> Outcome:
    from crossdock.reading.sources.signs_of_unread_records import member_reporting_failure  # noqa: PLC0415  not in a plan

    made, body = outcome_of_look_up(answer, subject, shape), body_of(answer)
    record = value_at_pointer_or_missing(body, shape.found)
    if not isinstance(record, dict) or not deleted.json_predicate()(record):
        return made
    if made.kind == "found":
        return replace(made, kind="absent")
    stated_id = shape.id_of(record)
    has_mark = stated_id is None and any(
        value_at_path_or_missing(record, column) is not MISSING for column in deleted.columns()
    )
    is_deleted = has_mark or stated_id == subject.target_id
    return Outcome("absent", status=200) if is_deleted and not member_reporting_failure(body) else made


_NO_REASON = "the answer says that it failed, and gives no reason"
_TAKEN, _THROTTLED = 409, 429


class ApiTarget(ConnectorTarget):
    """Base class of the targets behind HTTP APIs. A subclass declares `resources` and makes the requests.

    It may set the attributes up to `settle_s`; `connect` sets those from `name` on.

    Attributes:
        resources: The resources by name, parents before those that refer to them.
        retry: How often a request is sent again, and after which pauses.
        in_flight: Most requests in flight, and thus most that can be in doubt after a crash.
        kept_s: Seconds for which the API keeps an idempotency key; a request is not resent after that.
        settle_s: Seconds after which an unanswered request has either taken effect or never will.
        errors: Where answers of success report errors, and what these mean; the first place that has some counts.
        is_of_author: Whether an author has written it, so that its code may fail.
        first_number: The number of its first stored batch, or of the next one if that is higher.
        name: The name of the connection, in the state, in reports, and in ``to`` of streams.
        title: The words for the target in a sentence.
        account: The account whose data the requests change; part of idempotency keys.
        account_at_address: What tells accounts at one address apart, such as a channel: records of one are not those of
            another.
        place: Its section in the config, for hints.
    """

    errors: Sequence[AnswerErrors] = ()
    _api: Api | None = None

    @property
    def api(self) -> Api:
        """The API of the connection.

        Raises:
            ConfigError: If its address or a certificate cannot be used, or if the target has no connection yet.
        """
        if self._api is None:
            if not hasattr(self, "_declared"):
                hint = "in tests, self.new_target() of a TargetUnderTest makes a connected one"
                raise ConfigError(
                    f"{type(self).__name__} is not connected, so that it has no API",
                    hint=hint,
                    code="connector_invalid",
                )
            self._api = self._declared()
        return self._api

    @property
    def address(self) -> str:
        return self.api.base_url

    @property
    def rate(self) -> LimitSettings:
        return self.api.rate

    # ---- requests

    def headers(self, resource: str, idempotency_key: str | None, if_match: str | None) -> dict[str, str]:
        endpoint, headers = self.resources[resource].endpoint, {}
        if endpoint.header is not None and idempotency_key is not None:
            headers[endpoint.header] = idempotency_key
        if endpoint.conditional and if_match is not None:
            headers["if-match"] = if_match
        return headers

    # ---- answers

    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        if throttled := self.throttled(answer):
            return throttled
        is_success = 200 <= answer.status < 300
        told = self.with_status(resource, answer)
        made = outcome_of_write_with_reason(
            told, expected, self.shape(resource), judged=is_success and self._has_rule_for_hidden_failures()
        )
        kind = self.resources[resource]
        is_repeat = is_success and told.status == _TAKEN and made.reason == "conflict"
        return replace(made, pointer=kind.name_pointer) if is_repeat and kind.name_member is not None else made

    def _has_rule_for_hidden_failures(self) -> bool:
        """Return whether something says which answers of success are failures."""
        return (
            bool(self.errors) or type(self).failed is not ApiTarget.failed or self.api.failed is not no_failure_status
        )

    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        if throttled := self.throttled(answer):
            return throttled
        told, shape = self.with_status(resource, answer), self.shape(resource)
        if told.status == 200 and (deleted := self.resources[resource].deleted) is not None:
            return outcome_of_look_up_with_deleted(told, expected, shape, deleted)
        return answer_outcomes.outcome_of_look_up(told, expected, shape, judged=told.status != answer.status)

    def shape(self, resource: str) -> RecordShape:
        """Return where answers have records, ids and external ids."""
        kind = self.resources[resource]
        return replace(kind.shape, name=kind.name_pointer, divided_name=kind.divided_name, deleted=kind.deleted)

    def failed(self, resource: str, answer: ApiAnswer) -> int | None:
        """Return the status, 400 to 599, that an answer of success stands for if its body says that the request failed:
        422 is a refusal of the record, 409 one of a repeated name, 404 a missing record, 429 throttling, 503 leaves a
        write in doubt. None if it did not fail. By default what `errors` say, and then `Api.failed`.

        An answer that also has the record was carried out, whatever errors it has beside it. Without this method,
        `errors` and `Api.failed`, one that reports an error is in doubt.

        It is called by `outcome` and `found`, with the answer that these were given. So a subclass that rewrites an
        answer before it calls ``super().outcome`` decides about the rewritten one here, too, unless it rewrites only
        what ``self.with_status(resource, answer)`` gives back as a success.
        """
        kind = self.resources[resource]
        if self.errors and kind.shape.id_of(value_at_pointer_or_missing(answer.body, kind.shape.record)) is not None:
            return None
        found = (each.status_of(answer.body, kind.name_member) for each in self.errors)
        return next((status for status in found if status is not None), None) or self.api.status_of_failure(answer)

    def with_status(self, resource: str, answer: Answer) -> Answer:
        """Give an answer of success the status that `failed` says, with the reason in its body as the detail."""
        if not 200 <= answer.status < 300 or (body := answer_outcomes.body_of(answer)) is None:
            return answer
        status = self.failed(resource, self._as_api_answer(answer))
        if status is None:
            return answer
        if status == _THROTTLED:  # its body may state the wait
            return replace(answer, status=status)
        reason = errors_in_api_answers.redacted_error_message_in_json(body, str) or _NO_REASON
        return Answer(status, answer.headers, exact_json.dumps({"detail": reason}))

    def throttled(self, answer: Answer) -> Outcome | None:
        """Return the outcome of an answer by which the API limits the rate, as `Api.throttled` or the GraphQL error
        ``THROTTLED`` says. None for any other, also for a 429 of which `Api.throttled` says nothing.
        """
        read = self._as_api_answer(answer)
        is_told = errors_in_api_answers.THROTTLED in errors_in_api_answers.graphql_error_codes(read)
        found = self.api.throttling(read) or (Throttling() if is_told else None)
        if found is None:
            return None
        wait_s = found.wait_after_answer_s(answer.headers, answer.body)
        return Outcome("throttled", "too many requests", answer.status, wait_s)

    def _as_api_answer(self, answer: Answer) -> ApiAnswer:
        return ApiAnswer(self.address, answer_outcomes.body_of(answer), answer.status, answer.headers)

    # ---- sending

    def reach(self) -> str:
        """Send a ping and return what it shows about the target. Any answer but a refusal of the credential suffices.

        Where a look-up by external id answers with one record, one of a name that no record has is sent as well: its
        answer must be the declared one.

        Raises:
            ConfigError: If the credential cannot be read.
            UnauthorizedError: If it is refused.
            UnavailableError: If there is no answer, one of 500 or above, or another answer to a look-up.
        """
        resource = next(iter(self.resources))
        with closing(self.client()) as client:
            ping = self.ping(resource)
            answer = self.with_status(resource, self.send(client, resource, ping))
            looked_up = [
                name
                for name in self.resources
                if answer.status < 500 and _is_unknown_name_absent_or_raise(self, client, name)
            ]
        if answer.status in {401, 403} and not self.throttled(answer):
            hint = self.advice(resource, answer.status)
            raise UnauthorizedError(
                f"rejected the credential (HTTP {answer.status})",
                where=self.address,
                hint=hint,
                code="target_unauthorized",
            )
        if answer.status >= 500:
            raise UnavailableError(
                f"responded with HTTP {answer.status}", where=self.address, code="target_unavailable"
            )
        is_unknown = answer.status in {404, *answer_outcomes.REDIRECTS} and not looked_up
        unknown = f" HTTP {answer.status} to {ping.method} {ping.path}" if is_unknown else ""
        hint = f"; check {self.place}.base_url unless the API has no such list" if unknown else ""
        return f"{self.address} answers{unknown}; can be written: {', '.join(self.resources)}{hint}"

    def client_of(self, address: str, *, authorized: bool = False) -> Client:
        """Make a client of a host, such as one that takes files.

        Args:
            address: https, or http on this machine, without a path.
            authorized: Whether it gets the credentials of the connection: for addresses of the API's own host.

        Raises:
            ConfigError: If it is none.
        """
        own = self.api
        if authorized:
            return self._client_of_api(replace(own, base_url=address))
        other = Api(
            address,
            timeout_s=own.timeout_s,
            total_timeout_s=own.total_timeout_s,
            max_answer_bytes=own.max_answer_bytes,
            connection=own.connection.anonymous(),
            transport=own.transport,
        )
        return self._client_of_api(other)

    def client(self) -> Client:
        return self._client_of_api(self.api)

    def _client_of_api(self, api: Api) -> Client:
        from crossdock.reading.sources.api_request_sender import ApiRequestSender  # noqa: PLC0415  most commands send nothing

        return _OperationSenderOfApi(ApiRequestSender(api, self._clock, None))


def _is_unknown_name_absent_or_raise(target: Target, client: Client, resource: str) -> bool:
    """Return whether a name that no record has is looked up and absent; False if look-ups answer with lists."""
    kind = target.resources[resource]
    if not kind.endpoint.look_up or not kind.shape.finds_one:
        return False
    name = external_id_of_no_record(target, resource)
    request = target.look_up(resource, name, None)
    found = target.found(resource, target.send(client, resource, request), ExpectedRecord(name=name))
    if found.kind in {"absent", "throttled", "unauthorized"}:
        return found.kind == "absent"
    hint = f"check {target.place}.base_url and {target.place}.{kind.look_up_setting}"
    message = f"{request.path.partition('?')[0]}: {found.message}"
    raise UnavailableError(message, where=target.address, hint=hint, code="target_unavailable")


def outcome_of_write_with_reason(
    answer: Answer, expected: ExpectedRecord, shape: RecordShape, *, judged: bool = False
) -> Outcome:
    """Return the outcome of a write, as `outcome_of_write`, with the reason in an answer that is no problem
    document.
    """
    outcome = answer_outcomes.outcome_of_write(answer, expected, shape, judged=judged)
    if outcome.message != f"HTTP {answer.status}":
        return outcome
    message = errors_in_api_answers.redacted_error_message_of_body(
        answer.body, answer.headers.get("content-type", ""), str
    )
    return replace(outcome, message=message or outcome.message)


class _OperationSenderOfApi:
    def __init__(self, exchange: ApiRequestSender) -> None:
        self.send, self.close = exchange.send_operation_once, exchange.close
