"""Tests that every target should pass, to inherit in the tests of a connector. They need no network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import SkipTest, mock

from crossdock.targets import Answer, ApiTarget, ConnectorTarget, Outcome, Request
from crossdock.testing.target_request_contract import TargetRequestContract
from crossdock.testing.target_under_test import (
    STATUS,
    Example,
    TargetUnderTest,
    answer_with_selected_members,
    json_answer,
)
from crossdock.values import exact_json
from crossdock.writing.targets.payload_comparison import has_wanted_members
from crossdock.writing.targets.target_code_guard import author_target_without_guard

__all__ = ["TargetContract"]

_AMBIGUOUS = (302, 408, 500, 502, 503, 504)
_FAILURES = (*range(300, 309), *range(400, 452), *range(500, 512), *range(520, 531))  # 52x are those of Cloudflare
_CONFLICT, _GONE = 409, (404, 410)
_HTML = b"<html><body>Maintenance</body></html>"
_PROBLEM = b'{"message": "try again later"}'
_REASON, _SHOWN = "the postcode is wrong", 200
_DECIDED = {"found", "absent", "removed", "delivered"}
_FAILED = "say which answers of success are refusals by Api(..., failed=...), or by the method failed of the target"


class TargetContract(TargetRequestContract):
    """Tests of a target's requests and of its interpretation of answers.

    Set the attributes of `TargetUnderTest`, and define `members`; describe the answers of the API by `stored`,
    `answered`, `listing`, `removed`, `repeated`, `throttling`, `refusals` and `ambiguous`.
    """

    def first_examples(self) -> Iterator[Example]:
        """Yield the first record of each resource."""
        for target, resource in self.targets():
            yield self.example(target, resource)

    def _write_requests(self) -> Iterator[tuple[Example, str, Request]]:
        """Yield each write of each record."""
        for one in self.first_examples():
            operations = self.operations(one.resource)
            after = self.example(one.target, one.resource, 1, key=one.key).payload
            made = one.requests(after, one.target_id, operations)
            yield from ((one, operation, made[operation]) for operation in operations)

    def _stored_record(self, one: Example) -> Any:
        return self.stored(one.resource, one.target_id, one.payload)

    def _look_up_requests(self, one: Example) -> Iterator[tuple[str, Request, str | None]]:
        """Yield the look-ups of a record, each with the id that it requests."""
        if {*self.operations(one.resource)} - {"create"}:
            yield "look_up by id", one.target.look_up(one.resource, None, one.target_id), one.target_id
        if one.target.resources[one.resource].endpoint.look_up:
            yield "look_up by name", one.target.look_up(one.resource, one.name, None), None

    # ---- writes

    def test_a_success_is_delivered(self) -> None:
        """The answer to an executed write gives the id of the record."""
        for one, operation, request in self._write_requests():
            answer = answer_with_selected_members(
                request, self._api_answer_to_operation(one, operation, self._stored_record(one))
            )
            outcome = _outcome(one, operation, request, answer)
            where, wanted = f"{one.method('outcome')}, {operation}", one.target_id
            hint = "describe the answers of the API by RecordShape, and those of the test by stored and answered"
            assert outcome.kind == "delivered", f"{where}: a success is {outcome.kind}: {outcome.message}; {hint}"
            assert outcome.target_id == wanted, (
                f"{where}: the id is {outcome.target_id!r} instead of {wanted!r}; {hint}"
            )

    def test_a_false_success_is_in_doubt(self) -> None:
        """A success of another record, without an id or with a broken body is never treated as a delivery."""
        for one, operation, request in self._write_requests():
            for what, answer in self._false_successes(one, operation):
                outcome = _outcome(one, operation, request, answer)
                where = f"{one.method('outcome')}, {operation}: a success {what}"
                hint = "call super().outcome, which compares the id and the external id"
                assert outcome.kind == "in_doubt", f"{where} is {outcome.kind} instead of in doubt; {hint}"

    def _false_successes(self, one: Example, operation: str) -> Iterator[tuple[str, Answer]]:
        good = self._api_answer_to_operation(one, operation, self._stored_record(one))
        if good.body:
            yield "that is cut off", replace(good, headers={}, body=good.body[:-1])
        yield "that is an HTML page", Answer(STATUS[operation], {"content-type": "text/html"}, _HTML)
        if one.target.resources[one.resource].shape.id is None:
            return  # the external id is the id, whatever else an answer shows
        another = self.example(one.target, one.resource, 1)
        other = self._api_answer_to_operation(one, operation, self._stored_record(another))
        if operation == "create" and good.body:
            yield "without a body", Answer(good.status, {}, b"")
            yield "without an id", json_answer(STATUS[operation], {})
        # An answer that tells no records apart, such as {"success": true}, cannot be that of another one.
        if (another.name or "\0").encode() in other.body if operation == "create" else other != good:
            yield "of another record", other

    def test_a_failure_is_no_delivery(self) -> None:
        """No status of 300 or more is a success of a write, except 404 and 410 to a delete.

        One that the API gives to a success is an `Answer` of `answered`.
        """
        for one, operation, request in self._write_requests():
            allowed = {self._api_answer_to_operation(one, operation, self._stored_record(one)).status}
            allowed |= {*_GONE} if operation == "delete" else set()
            for status in (each for each in _FAILURES if each not in allowed):
                for body in (_PROBLEM, b""):
                    outcome = _outcome(one, operation, request, Answer(status, {}, body))
                    where, hint = f"{one.method('outcome')}, {operation}", "the record would count as sent"
                    assert outcome.kind != "delivered", f"{where}: any HTTP {status} is taken for delivered; {hint}"

    def test_throttling_is_recognized(self) -> None:
        """429 and the answers of `throttling` are throttled, with the pause that they ask for. After a 429 it may be
        longer, such as one that the vendor documents for all of them.
        """
        for where, answer, least_s, outcome in self._outcomes_of_answers(
            [(Answer(429, {"retry-after": "7"}, _PROBLEM), 7.0), (Answer(429, {}, b""), None)]
        ):
            _assert_throttled(where, answer, outcome)
            is_enough = (outcome.retry_after_s or 0.0) >= (least_s or 0.0)
            text = f"{where}: the pause is {outcome.retry_after_s} s after a Retry-After of {least_s} s"
            assert is_enough, f"{text}; wait so long, or longer"
        for where, answer, pause_s, outcome in self._outcomes_of_answers(self.throttling):
            _assert_throttled(where, answer, outcome)
            hint = "return the seconds from throttled of the Api"
            is_same = outcome.retry_after_s == pause_s
            assert is_same, f"{where}: the pause is {outcome.retry_after_s} s, not {pause_s} s; {hint}"
        for one, operation, request in self._write_requests():
            for answer in _graphql_throttling_answers(request):  # they state no pause
                outcome = _outcome(one, operation, request, answer)
                _assert_throttled(f"{one.method('outcome')}, {operation}", answer, outcome)

    def test_a_refused_credential_is_recognized(self) -> None:
        """401 concerns every record: it is unauthorized."""
        for where, _, _, outcome in self._outcomes_of_answers([(Answer(401, {}, _PROBLEM), None)]):
            text = f"{where}: HTTP 401 is {outcome.kind} instead of unauthorized; call super()"
            assert outcome.kind == "unauthorized", text

    def _outcomes_of_answers(
        self, answers: Iterable[tuple[Answer, float | None]]
    ) -> Iterator[tuple[str, Answer, float | None, Outcome]]:
        """Yield the outcome of *answers* to each write and look-up."""
        answers = list(answers)
        for one, operation, request in self._write_requests():
            for answer, value in answers:
                yield f"{one.method('outcome')}, {operation}", answer, value, _outcome(one, operation, request, answer)
        for one in self.first_examples():
            for what, request, target_id in self._look_up_requests(one):
                for answer, value in answers:
                    found = one.target.found(one.resource, answer, one.expected(request, target_id))
                    yield f"{one.method('found')}, {what}", answer, value, found

    def test_an_ambiguous_answer_is_in_doubt(self) -> None:
        """A write may have been executed before a gateway answered 5xx or 408, a redirect, or an answer of
        `ambiguous`.
        """
        answers = [Answer(status, {}, _PROBLEM) for status in _AMBIGUOUS]
        for one, operation, request in self._write_requests():
            for answer in (*answers, *self.ambiguous):
                outcome = _outcome(one, operation, request, answer)
                where, is_stated = f"{one.method('outcome')}, {operation}", answer in self.ambiguous
                hint = "return Outcome('in_doubt', ...) for this answer" if is_stated else "call super().outcome"
                what = f"{where}: {_shown_answer(answer)} is {outcome.kind} instead of in doubt; {hint}"
                assert outcome.kind == "in_doubt", what

    def test_a_refusal_is_rejected(self) -> None:
        """400, 422, `refusals`, and GraphQL or JSON-RPC errors without data concern one record; nothing was done."""
        self._assert_refusals_name_operations()
        for one, operation, request in self._write_requests():
            plain = [(json_answer(status, {"message": _REASON}), _REASON) for status in (400, 422)]
            stated = self.refusals_of(one.resource, operation)
            for answer, reason in (*plain, *_graphql_or_json_rpc_refusals(request), *stated):
                with _note_bodies_passed_to_failed(one.target) as seen:
                    outcome = _outcome(one, operation, request, answer)
                where, what = f"{one.method('outcome')}, {operation}", _shown_answer(answer)
                hint = (
                    "call super().outcome" if answer.status >= 300 else _FAILED + _rewritten_answer_hint(answer, seen)
                )
                assert outcome.kind == "rejected", f"{where}: {what} is {outcome.kind} instead of rejected; {hint}"
                hint = "return it only for the answer by which the API refuses a second record of a name"
                if answer.status == _CONFLICT:
                    hint = "super().outcome takes a 409 for a taken name; return another outcome for this one"
                assert outcome.reason != "conflict", f"{where}: {what} is a conflict of the name; {hint}"
                hint = "give the message of the API"
                assert reason in outcome.message, f"{where}: the reason of {what} is {outcome.message!r}; {hint}"

    def _assert_refusals_name_operations(self) -> None:
        """Fail if a mapping of `refusals` names what is no operation, since it would not be tested."""
        known: list[str | tuple[str, str]] = []
        for _, resource in self.targets():
            known += [key for operation in self.operations(resource) for key in (operation, (resource, operation))]
        unknown = [repr(key) for key in self.refusals if key not in known] if isinstance(self.refusals, Mapping) else []
        assert not unknown, (
            f"{type(self).__name__}.refusals: {', '.join(unknown)} is no operation that is tested; its keys are "
            f"{', '.join(map(repr, dict.fromkeys(known)))}"
        )

    def test_a_repeat_is_a_conflict_of_the_name(self) -> None:
        """The refusal of a second record with the same external id says so, if the target relies on it. An API that
        replaces the record has delivered it.
        """
        for one in self.first_examples():
            endpoint, answer = one.target.resources[one.resource].endpoint, self.repeated(one.resource)
            by_name = endpoint.idempotent and not endpoint.has_key("create")
            if by_name:
                where = f"{one.method('resources')}: is idempotent"
                assert one.name is not None, f"{where} without a key, and has no name; set name_member"
                assert answer is not None, f"{where} by its name; define repeated in the test"
            if answer is not None and "create" in self.operations(one.resource):
                outcome = _outcome(one, "create", one.create(), answer)
                found = outcome.kind, outcome.reason, outcome.pointer
                wanted: tuple[str, str | None, str | None] = ("rejected", "conflict", one.name_pointer)
                if self.replaces(one.resource):
                    wanted = ("delivered", None, None)
                text = f"{one.method('outcome')}: the repeat of a create is {found} instead of {wanted}"
                assert found == wanted, f"{text}; return this Outcome"

    def test_only_safe_repeats_are_resent(self) -> None:
        """The rule after an ambiguous answer requires the guarantees of the endpoint."""
        for one in self.first_examples():
            endpoint = one.target.resources[one.resource].endpoint
            for operation in self.operations(one.resource):
                rule = endpoint.rule(operation)
                repeatable = endpoint.has_key(operation) or (endpoint.idempotent and operation == "create")
                where = f"{one.method('resources')}, {operation}: the rule after an ambiguous answer is {rule}"
                assert rule != "resend" or repeatable, f"{where}, and the endpoint does not make repeats harmless"
                can_verify = endpoint.can_verify(operation)
                assert rule != "verify" or can_verify, f"{where}, and the record cannot be looked up"

    # ---- look-ups

    def test_a_look_up_finds_what_was_sent(self) -> None:
        """The members that were sent are found, so that an update in doubt can be compared with them."""
        for one in self.first_examples():
            for what, request, target_id in self._look_up_requests(one):
                answer = answer_with_selected_members(
                    request, self._api_answer_to_look_up(one, target_id, [self._stored_record(one)])
                )
                outcome = one.target.found(one.resource, answer, one.expected(request, target_id))
                where, wanted = f"{one.method('found')}, {what}", one.target_id
                hint = "describe look-ups by RecordShape, and those of the test by listing and answered"
                assert outcome.kind == "found", f"{where}: the record is {outcome.kind}: {outcome.message}; {hint}"
                is_same = outcome.target_id == wanted
                assert is_same, f"{where}: the id is {outcome.target_id!r} instead of {wanted!r}; {hint}"
                if outcome.held == {} and "update" not in self.operations(one.resource):
                    continue  # nothing is compared
                shown = one.target.resources[one.resource].comparable(one.payload)
                lacking = [name for name in shown if not has_wanted_members(outcome.held or {}, {name: shown[name]})]
                is_graphql = _name_of_request_protocol(request) == "graphql"
                hint = "select it in the query" if is_graphql else "return the record in held"
                assert not lacking, (
                    f"{where}: what was found lacks {', '.join(lacking)}, as it was sent; {hint}, "
                    "or name the members that look-ups show as they were sent in TargetResource(shown=frozenset(...))"
                )

    def test_a_look_up_finds_nothing_that_is_missing(self) -> None:
        """An empty list, and the answer `missing` where one record is asked for, say that it does not exist."""
        for one in self.first_examples():
            for what, request, target_id in self._look_up_requests(one):
                answer = self._api_answer_to_look_up(one, target_id, [])
                outcome = one.target.found(one.resource, answer, one.expected(request, target_id))
                text = f"{one.method('found')}, {what}: a missing record is {outcome.kind} instead of absent"
                is_missing = self._shows_missing_record(one, outcome)
                assert is_missing, f"{text}; return Outcome('absent'), or define missing in the test"

    def test_a_removed_record_is_absent(self) -> None:
        """A record that was deleted or cancelled is absent by its id, also if the API still shows it."""
        deleted = [each for each in self.first_examples() if "delete" in self.operations(each.resource)]
        if deleted and type(self).removed is TargetUnderTest.removed:
            raise SkipTest(
                "removed is not defined: whether the target takes a record that was deleted or cancelled, and that the "
                "API still shows, for one that exists is not tested; a deletion in doubt would never end"
            )
        for one in deleted:
            shown = self.removed(one.resource, self._stored_record(one))
            answer = (
                self.missing(one.resource) if shown is None else self._api_answer_to_operation(one, "look_up", shown)
            )
            request = one.target.look_up(one.resource, None, one.target_id)
            outcome = one.target.found(
                one.resource, answer_with_selected_members(request, answer), one.expected(request, one.target_id)
            )
            where = one.method("found")
            assert self._shows_missing_record(one, outcome), (
                f"{where}, look_up by id: a removed record is {outcome.kind} instead of absent; return "
                "Outcome('absent', status=answer.status) for it"
            )

    def test_a_look_up_believes_no_other_answer(self) -> None:
        """Another record, a failure and a broken body show neither that the record exists nor that it does not."""
        for one in self.first_examples():
            two = self.example(one.target, one.resource, 1)
            another, is_beside = self._stored_record(two), any(each.key == two.key for each in self.beside(one))
            for what, request, target_id in self._look_up_requests(one):
                good = answer_with_selected_members(
                    request, self._api_answer_to_look_up(one, target_id, [self._stored_record(one)])
                )
                answers = [
                    (
                        "another record",
                        answer_with_selected_members(request, self._api_answer_to_look_up(one, target_id, [another])),
                    ),
                    ("HTTP 500", Answer(500, {}, _PROBLEM)),
                    ("HTTP 503", Answer(503, {}, _PROBLEM)),
                    ("a body that is cut off", Answer(200, {}, good.body[:-1])),
                    ("an HTML page", Answer(200, {"content-type": "text/html"}, _HTML)),
                ]
                shape, by_query = (
                    one.target.resources[one.resource].shape,
                    _name_of_request_protocol(request) == "graphql",
                )
                if (target_id is None and shape.absent) or shape.null_is_absent or by_query:
                    answers.append(("HTTP 404 of another path", Answer(404, {"content-type": "text/html"}, _HTML)))
                for given, answer in answers:
                    outcome = one.target.found(one.resource, answer, one.expected(request, target_id))
                    where = f"{one.method('found')}, {what}: {given}"
                    is_listed = is_beside or one.resource in self.lists_others
                    is_list = given == "another record" and target_id is None and is_listed
                    is_disbelieved = outcome.kind == "unavailable" or (
                        is_list and self._shows_missing_record(one, outcome)
                    )
                    hint = "call super().found, which compares the id and the external id"
                    if outcome.kind not in _DECIDED:
                        hint = "a look-up that shows nothing is Outcome('unavailable', ...)"
                    if by_query and given.startswith("HTTP 404") and not shape.null_is_absent:
                        hint = "set null_is_absent of the RecordShape, since GraphQL has no 404 of a record"
                    assert is_disbelieved, f"{where} is taken for {outcome.kind}; {hint}"

    def test_a_look_up_tells_records_of_a_parent_apart(self) -> None:
        """Of several records in an answer, such as all parcels of an order, a look-up finds that of its name, and none
        if there are only others.
        """
        for one in self.first_examples():
            for another in self.beside(one):
                request = one.target.look_up(one.resource, one.name, None)
                own, other = self._stored_record(one), self._stored_record(another)
                for given, records in (("alone", [other]), ("before ours", [other, own]), ("after ours", [own, other])):
                    answer = answer_with_selected_members(request, self._api_answer_to_look_up(one, None, records))
                    outcome = one.target.found(one.resource, answer, one.expected(request, None))
                    is_own = outcome.kind == "found" and outcome.target_id == one.target_id
                    is_right = is_own if own in records else self._shows_missing_record(one, outcome)
                    found = f"found as {outcome.target_id!r}" if outcome.kind == "found" else outcome.kind
                    assert is_right, (
                        f"{one.method('found')}, look_up by name of {one.key}: the answer has {another.key} of the "
                        f"same parent {given}, and the record is {found} instead of "
                        f"{repr(one.target_id) if own in records else 'absent'}; compare each record with expected.name"
                    )

    def test_a_failed_look_up_shows_nothing(self) -> None:
        """No status of 300 or more says that a record exists, or that it does not, except 404 and 410 to a look-up by
        id, or if the API so answers a look-up of what is missing.
        """
        for one in self.first_examples():
            for what, request, target_id in self._look_up_requests(one):
                missing = self._api_answer_to_look_up(one, target_id, []).status
                allowed = {missing, *_GONE} if missing in _GONE or target_id is not None else {missing}
                for status in (each for each in _FAILURES if each not in allowed):
                    outcome = one.target.found(
                        one.resource, Answer(status, {}, _PROBLEM), one.expected(request, target_id)
                    )
                    where, hint = f"{one.method('found')}, {what}", "return Outcome('unavailable', ...)"
                    is_undecided = outcome.kind not in _DECIDED
                    assert is_undecided, f"{where}: any HTTP {status} is taken for {outcome.kind}; {hint}"

    def _shows_missing_record(self, one: Example, outcome: Outcome) -> bool:
        """Return whether a look-up shows that the record does not exist. One that no stream creates may be rejected."""
        is_rejected = outcome.kind == "rejected" and outcome.reason == "missing"
        return outcome.kind == "absent" or (is_rejected and "create" not in self.operations(one.resource))

    def _api_answer_to_look_up(self, one: Example, target_id: str | None, records: list[Any]) -> Answer:
        if target_id is None and not one.target.resources[one.resource].shape.finds_one:
            listed = self.listing(one.resource, records)
            return listed if isinstance(listed, Answer) else json_answer(200, listed)
        return self._api_answer_to_operation(one, "look_up", records[0]) if records else self.missing(one.resource)


def _assert_throttled(where: str, answer: Answer, outcome: Outcome) -> None:
    hint = "call super(), and describe a limit that is not a 429 by Api(..., throttled=...)"
    text = f"{where}: HTTP {answer.status} is {outcome.kind} instead of throttled; {hint}"
    assert outcome.kind == "throttled", text


def _shown_answer(answer: Answer) -> str:
    """Return how messages name an answer: by its status, or by its body if many have that status."""
    is_told = answer.status >= 300 and answer.status != _CONFLICT
    body = answer.body[:_SHOWN].decode(errors="replace")
    return f"HTTP {answer.status}" if is_told else f"the answer {answer.status} {body}".rstrip()


def _graphql_throttling_answers(request: Request) -> list[Answer]:
    errors = [{"message": "slow down", "extensions": {"code": "THROTTLED"}}]
    return [json_answer(200, {"errors": errors})] if _name_of_request_protocol(request) == "graphql" else []


def _graphql_or_json_rpc_refusals(request: Request) -> list[tuple[Answer, str]]:
    """Return an answer of success which says that the request was not executed: by GraphQL, section 7.1, it has errors
    and no data, and by JSON-RPC 2.0, section 5, an error and no result.
    """
    match _name_of_request_protocol(request):
        case "graphql":
            return [(json_answer(200, {"errors": [{"message": _REASON}]}), _REASON)]
        case "json-rpc":
            error = {"code": -32602, "message": _REASON}
            return [(json_answer(200, {"jsonrpc": "2.0", "id": 1, "error": error}), _REASON)]
    return []


def _name_of_request_protocol(request: Request) -> str | None:
    try:
        body = exact_json.loads(request.body or b"null")
    except ValueError:
        return None
    if not isinstance(body, dict) or request.method != "POST":
        return None
    if isinstance(body.get("query"), str) and "{" in body["query"]:
        return "graphql"
    return "json-rpc" if "jsonrpc" in body else None


@contextmanager
def _note_bodies_passed_to_failed(target: ConnectorTarget) -> Iterator[list[bytes]]:
    """Yield the bodies of the answers that `ApiTarget.with_status` is given, which passes them to `failed`."""
    own, seen = author_target_without_guard(target), list[bytes]()
    if not isinstance(own, ApiTarget):
        yield seen
        return
    given = own.with_status

    def with_status(resource: str, answer: Answer) -> Answer:
        seen.append(answer.body)
        return given(resource, answer)

    with mock.patch.object(own, "with_status", with_status):
        yield seen


def _rewritten_answer_hint(answer: Answer, seen: list[bytes]) -> str:
    """Say which body `failed` has seen in place of that of *answer*; empty if it has seen that one."""
    if not seen or answer.body in seen:
        return ""
    return f"; failed was given the body that outcome had made of it: {seen[0][:_SHOWN].decode(errors='replace')}"


def _outcome(one: Example, operation: str, request: Request, answer: Answer) -> Outcome:
    target: ConnectorTarget = one.target
    target_id = None if operation == "create" else one.target_id
    return target.outcome(one.resource, answer, one.expected(request, target_id))
