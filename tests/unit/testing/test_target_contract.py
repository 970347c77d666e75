"""The contract of targets accepts a correct target, and finds seeded bugs."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import Any
from unittest import SkipTest
from urllib.parse import quote, urlencode

import pytest
from tests.unit.testing.parcels_target import ParcelsContract, ParcelsOfOneOrderContract, ParcelTarget, parcels
from tests.unit.testing.target_connector import OrdersContract, OrderTarget, connector, failure, orders

from crossdock.sources import ApiAnswer
from crossdock.targets import (
    Answer,
    EndpointProfile,
    ExpectedRecord,
    Outcome,
    RecordShape,
    Request,
    Update,
    body_of,
)
from crossdock.testing.target_under_test import TargetUnderTest
from crossdock.values import exact_json


class TestOrders(OrdersContract):
    """The contract itself, inherited as authors do."""


class RandomNumberInTheBody(OrderTarget):
    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        return Request.json("POST", "/orders", {"order": payload, "request": uuid.uuid4().hex})


class OrderOfMembersInTheBody(OrderTarget):
    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        return Request("POST", "/orders", json.dumps(payload, default=str).encode())


class CountedRequests(OrderTarget):
    count = 0

    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        self.count += 1
        return Request.json("POST", "/orders", {"order": payload, "number": self.count})


class NameCut(OrderTarget):
    def name_of(self, resource: str, namespace: str, key: str) -> str | None:
        return f"{namespace}:{key}"[:40]

    def check_key(self, resource: str, namespace: str, key: str) -> None:
        """Every key will do."""


class NameCutInThePayload(OrderTarget):
    def payload(self, resource: str, namespace: str, key: str, members: dict[str, Any]) -> dict[str, Any]:
        return {"reference": f"{namespace}:{key}"[:30], **members}


class NameWithoutNamespace(OrderTarget):
    def name_of(self, resource: str, namespace: str, key: str) -> str | None:
        return key


class NameInSmallLetters(OrderTarget):
    def name_of(self, resource: str, namespace: str, key: str) -> str | None:
        return f"{namespace}:{key}".lower()


class PayloadWithoutName(OrderTarget):
    def payload(self, resource: str, namespace: str, key: str, members: dict[str, Any]) -> dict[str, Any]:
        return members


class FloatInTheBody(OrderTarget):
    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        return Request("POST", "/orders", json.dumps(payload, sort_keys=True, default=float).encode())


class FloatInTheUpdate(OrderTarget):
    def update(self, resource: str, target_id: str, update: Update) -> Request:
        body = json.dumps(update.after, sort_keys=True, default=float).encode()
        return Request("PUT", f"/orders/{quote(target_id, safe='')}", body)


class UpdateWithOldMembers(OrderTarget):
    def update(self, resource: str, target_id: str, update: Update) -> Request:
        return Request.json("PUT", f"/orders/{quote(target_id, safe='')}", {"touch": True})


class UnquotedId(OrderTarget):
    def delete(self, resource: str, target_id: str) -> Request:
        return Request("DELETE", f"/orders/{target_id}")


class SlashOfIdKept(OrderTarget):
    def delete(self, resource: str, target_id: str) -> Request:
        return Request("DELETE", f"/orders/{quote(target_id)}")


class UnquotedName(OrderTarget):
    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        if target_id is not None:
            return super().look_up(resource, name, target_id)
        return Request("GET", f"/orders?reference={name}")


class PathWithHost(OrderTarget):
    def ping(self, resource: str) -> Request:
        return Request("GET", "//depot.example/orders")


class WrappedPayload(OrderTarget):
    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        return Request("POST", "/orders", exact_json.dumps({"order": payload}), holds_payload=True)


class PingThatWrites(OrderTarget):
    def ping(self, resource: str) -> Request:
        return Request.json("POST", "/orders", {})


class LookUpOfAll(OrderTarget):
    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        return Request("GET", f"/orders/{quote(target_id, safe='')}" if target_id else "/orders")


class LookUpOfNamespace(OrderTarget):
    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        if target_id is not None:
            return super().look_up(resource, name, target_id)
        return Request("GET", f"/orders?{urlencode({'reference': str(name)[:4]})}")


class TokenInThePath(OrderTarget):
    def ping(self, resource: str) -> Request:
        return Request("GET", f"/orders?{urlencode({'token': self.token})}")


class TokenInAHeader(OrderTarget):
    def headers(self, resource: str, idempotency_key: str | None, if_match: str | None) -> dict[str, str]:
        return {**super().headers(resource, idempotency_key, if_match), "authorization": f"Bearer {self.token}"}


class VersionNotSent(OrderTarget):
    def headers(self, resource: str, idempotency_key: str | None, if_match: str | None) -> dict[str, str]:
        return {}


class KeyNotSent(OrderTarget):
    resources = orders(EndpointProfile(idempotent=True, header="key"))

    def headers(self, resource: str, idempotency_key: str | None, if_match: str | None) -> dict[str, str]:
        return {}


class KeyNotInTheBody(OrderTarget):
    resources = orders(EndpointProfile(key_member="/key"))

    def with_key(self, resource: str, request: Request, idempotency_key: str) -> Request:
        return request


class IdElsewhere(OrderTarget):
    def shape(self, resource: str) -> RecordShape:
        return replace(super().shape(resource), id="/id")


class NameElsewhere(OrderTarget):
    def shape(self, resource: str) -> RecordShape:
        return replace(super().shape(resource), name="/externalId")


class ListElsewhere(OrderTarget):
    def shape(self, resource: str) -> RecordShape:
        return replace(super().shape(resource), listed="/data")


class SuccessIsEnough(OrderTarget):
    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        outcome = super().outcome(resource, answer, expected)
        if outcome.kind == "in_doubt" and answer.status < 300:
            return Outcome("delivered", status=answer.status, target_id="4711")
        return outcome


class AnyErrorIsARefusal(OrderTarget):
    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        if answer.status >= 500:
            return Outcome("rejected", "refused", answer.status, reason="rejected")
        return super().outcome(resource, answer, expected)


class TimeOutIsARefusal(OrderTarget):
    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        if answer.status == 408:
            return Outcome("unavailable", "not carried out", answer.status)
        return super().outcome(resource, answer, expected)


class ConflictIsADelivery(OrderTarget):
    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        if answer.status == 409 and b"taken" not in answer.body:
            return Outcome("delivered", status=409, target_id=expected.target_id or "4711")
        return super().outcome(resource, answer, expected)


class RedirectIsADelivery(OrderTarget):
    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        is_redirect = answer.status == 303
        done = Outcome("delivered", status=303, target_id=expected.target_id or "4711")
        return done if is_redirect else super().outcome(resource, answer, expected)


class ThrottlingOverlooked(OrderTarget):
    def throttled(self, answer: Answer) -> Outcome | None:
        return None


class ShorterPause(OrderTarget):
    def throttled(self, answer: Answer) -> Outcome | None:
        return Outcome("throttled", "slow down", 429, 3.0) if answer.status in {403, 429} else None


class PauseOverlooked(OrderTarget):
    def throttled(self, answer: Answer) -> Outcome | None:
        found = super().throttled(answer)
        return found and Outcome("throttled", "too many requests", answer.status)


class CredentialIsARefusal(OrderTarget):
    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        outcome = super().outcome(resource, answer, expected)
        return Outcome("rejected", "refused", 401, reason="forbidden") if answer.status == 401 else outcome


class RepeatIsAnyRefusal(OrderTarget):
    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        return super(OrderTarget, self).outcome(resource, answer, expected)


class RefusalIsDoubt(OrderTarget):
    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        outcome = super().outcome(resource, answer, expected)
        return Outcome("in_doubt", "?", answer.status) if answer.status == 400 else outcome


class RefusalIn200Overlooked(OrderTarget):
    """A GraphQL API answers with HTTP 200 and errors."""

    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        return Request.json("POST", "/graphql", {"query": "mutation { create }", "variables": payload})


class ErrorOfCallOverlooked(OrderTarget):
    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        return Request.json("POST", "/rpc", {"jsonrpc": "2.0", "method": "create", "params": payload})


class ReasonOverlooked(OrderTarget):
    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        outcome = super().outcome(resource, answer, expected)
        return Outcome("rejected", "refused", answer.status) if answer.status in {400, 422} else outcome


class CodeOfThrottlingOverlooked(RefusalIn200Overlooked):
    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        is_refused = answer.status == 200 and b'"errors"' in answer.body
        return Outcome("rejected", "refused", 200) if is_refused else super().outcome(resource, answer, expected)


class AnyRefusalIsAConflict(OrderTarget):
    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        if answer.status == 422:
            pointer = self.resources[resource].name_pointer
            return Outcome("rejected", "refused", 422, reason="conflict", pointer=pointer)
        return super().outcome(resource, answer, expected)


class EverythingResent(OrderTarget):
    resources = orders(EndpointProfile(True, True, conditional=True, rules={"update": "resend"}))


class VerifiedWithoutLookUp(OrderTarget):
    resources = orders(EndpointProfile(conditional=True, rules={"create": "verify"}))


class FirstOfTheList(OrderTarget):
    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        outcome = super().found(resource, answer, expected)
        if outcome.kind == "unavailable" and answer.status == 200 and answer.body.startswith(b'{"orders":[{'):
            try:
                record = exact_json.loads(answer.body)["orders"][0]
            except ValueError:
                return outcome
            return Outcome("found", status=200, target_id=str(record["order_id"]), held=record)
        return outcome


class FoundWithoutMembers(OrderTarget):
    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        outcome = super().found(resource, answer, expected)
        if outcome.kind == "found" and outcome.held is not None:
            held = {"order_id": outcome.held["order_id"], "reference": outcome.held["reference"]}
            return Outcome("found", status=200, target_id=outcome.target_id, held=held)
        return outcome


class VoidIsFound(OrderTarget):
    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        return super(OrderTarget, self).found(resource, answer, expected)


class FailureIsAbsence(OrderTarget):
    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        outcome = super().found(resource, answer, expected)
        return Outcome("absent", status=answer.status) if outcome.kind == "unavailable" else outcome


class RefusalIsAbsence(OrderTarget):
    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        outcome = super().found(resource, answer, expected)
        return Outcome("absent", status=answer.status) if 400 <= answer.status < 500 else outcome


class NothingIsDoubt(OrderTarget):
    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        outcome = super().found(resource, answer, expected)
        return Outcome("in_doubt", "?", answer.status) if outcome.kind == "unavailable" else outcome


class AbsenceIsAFailure(OrderTarget):
    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        outcome = super().found(resource, answer, expected)
        return Outcome("unavailable", "?", answer.status) if outcome.kind == "absent" else outcome


PURE = "equal_payloads_have_equal_requests"
NAMES = "names_tell_records_apart"
FORM = "requests_are_well_formed"
EXACT = "numbers_are_exact"
SUCCESS = "a_success_is_delivered"
DOUBT = "an_ambiguous_answer_is_in_doubt"
DELIVERED = "a_failure_is_no_delivery"
FALSE = "a_false_success_is_in_doubt"
FOUND = "a_look_up_finds_what_was_sent"
OTHER = "a_look_up_believes_no_other_answer"
THROTTLED = "throttling_is_recognized"
RULES = "only_safe_repeats_are_resent"
SECRET = "no_secret_is_in_a_request"
KEYS = "keys_and_versions_are_sent_as_declared"
HARMLESS = "pings_and_look_ups_change_nothing"
BUGS: dict[type[OrderTarget], tuple[str, str]] = {
    RandomNumberInTheBody: (PURE, "is another request the second time"),
    CountedRequests: (PURE, "is another request the second time"),
    OrderOfMembersInTheBody: (PURE, "the order of members changes the request"),
    NameCut: (NAMES, "NameCut.check_key, orders: accepts a name of 20000 characters"),
    NameCutInThePayload: (NAMES, "the payload holds another name than name_of gives"),
    NameWithoutNamespace: (NAMES, "different records have the same name"),
    NameInSmallLetters: (NAMES, "different records have the same name"),
    PayloadWithoutName: (NAMES, "does not hold the external id"),
    FloatInTheBody: (EXACT, "FloatInTheBody.create, orders: a number loses digits"),
    FloatInTheUpdate: (EXACT, "FloatInTheUpdate.update, orders: a number loses digits"),
    UpdateWithOldMembers: ("an_update_says_what_changes", "does not depend on what changes"),
    UnquotedId: (FORM, "must be percent-encoded"),
    SlashOfIdKept: (FORM, "leads to another path"),
    UnquotedName: (FORM, "lacks the external id"),
    PathWithHost: (FORM, "does not begin with one /"),
    WrappedPayload: (FORM, "the body is not the payload"),
    PingThatWrites: (HARMLESS, "POST /orders may change something"),
    LookUpOfAll: ("a_look_up_asks_for_the_name", "does not depend on the name"),
    LookUpOfNamespace: (FORM, "lacks the external id"),
    TokenInThePath: (SECRET, "contains the secret DEPOT_TOKEN"),
    TokenInAHeader: (SECRET, "contains the secret DEPOT_TOKEN"),
    VersionNotSent: (KEYS, "sends no If-Match"),
    KeyNotSent: (KEYS, "lacks the key"),
    KeyNotInTheBody: (KEYS, "with_key, orders, create: /key lacks the key"),
    IdElsewhere: (SUCCESS, "a success is in_doubt"),
    NameElsewhere: (FALSE, "of another record is delivered"),
    ListElsewhere: (FOUND, "the record is unavailable"),
    SuccessIsEnough: (FALSE, "instead of in doubt"),
    AnyErrorIsARefusal: (DOUBT, "HTTP 500 is rejected"),
    TimeOutIsARefusal: (DOUBT, "HTTP 408 is unavailable"),
    ConflictIsADelivery: (DELIVERED, "any HTTP 409 is taken for delivered"),
    RedirectIsADelivery: (DELIVERED, "any HTTP 303 is taken for delivered"),
    ShorterPause: (THROTTLED, "the pause is 3.0 s after a Retry-After of 7.0 s; wait so long, or longer"),
    ThrottlingOverlooked: (THROTTLED, "HTTP 403 is rejected instead of throttled"),
    PauseOverlooked: (THROTTLED, "the pause is None s, not 3.0 s"),
    CredentialIsARefusal: ("a_refused_credential_is_recognized", "HTTP 401 is rejected"),
    RepeatIsAnyRefusal: ("a_repeat_is_a_conflict_of_the_name", "instead of"),
    RefusalIsDoubt: ("a_refusal_is_rejected", "HTTP 400 is in_doubt"),
    RefusalIn200Overlooked: ("a_refusal_is_rejected", "is in_doubt instead of rejected; say which answers of success"),
    ErrorOfCallOverlooked: ("a_refusal_is_rejected", "is in_doubt instead of rejected; say which answers of success"),
    ReasonOverlooked: ("a_refusal_is_rejected", "the reason of HTTP 400 is 'refused'; give the message of the API"),
    CodeOfThrottlingOverlooked: (THROTTLED, "HTTP 200 is rejected instead of throttled"),
    AnyRefusalIsAConflict: ("a_refusal_is_rejected", "HTTP 422 is a conflict of the name; return it only"),
    EverythingResent: (RULES, "does not make repeats harmless"),
    VerifiedWithoutLookUp: (RULES, "the record cannot be looked up"),
    FirstOfTheList: (OTHER, "another record is taken for found"),
    FoundWithoutMembers: (FOUND, "what was found lacks"),
    VoidIsFound: ("a_removed_record_is_absent", "look_up by id: a removed record is found instead of absent"),
    FailureIsAbsence: (OTHER, "is taken for absent"),
    RefusalIsAbsence: ("a_failed_look_up_shows_nothing", "HTTP 400 is taken for absent"),
    NothingIsDoubt: (OTHER, "is taken for in_doubt; a look-up that shows nothing is Outcome('unavailable', ...)"),
    AbsenceIsAFailure: ("a_look_up_finds_nothing_that_is_missing", "is unavailable instead of absent"),
}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_seeded_bug_is_found(bug: type[OrderTarget]) -> None:
    """The test of the contract that is meant for it fails for this reason; `TestOrders` passes without the bug."""
    test, reason = BUGS[bug]
    case = type("Case", (OrdersContract,), {"connector": connector(bug)})
    assert reason in failure(case, test)


IN_PROGRESS = Answer(409, {}, b'{"code": "in_progress", "message": "try later"}')


class InProgressIsDoubt(OrderTarget):
    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        if b"in_progress" in answer.body:
            return Outcome("in_doubt", "an earlier request is in progress", answer.status)
        return super().outcome(resource, answer, expected)


@pytest.mark.parametrize(("target", "is_right"), [(OrderTarget, False), (InProgressIsDoubt, True)])
def test_a_stated_ambiguous_answer_must_be_in_doubt(target: type[OrderTarget], is_right: bool) -> None:
    """Only the author knows that a 409 says so; `super` takes it for a taken name."""
    case = type("Case", (OrdersContract,), {"connector": connector(target), "ambiguous": (IN_PROGRESS,)})
    why = '"try later"} is rejected instead of in doubt; return Outcome'
    assert (failure(case, DOUBT) == "", why in failure(case, DOUBT)) == (is_right, not is_right)


@pytest.mark.parametrize("kept", [{"header": "key"}, {"key_member": "/key"}])
def test_an_idempotency_key_without_an_ambiguous_answer_is_a_gap(kept: dict[str, str]) -> None:
    """The example shows no answer for a request that is in progress."""
    endpoint: Any = EndpointProfile(True, True, **kept)  # type: ignore[arg-type]  # one of two keys
    keyed = type("Keyed", (OrderTarget,), {"resources": orders(endpoint)})
    for ambiguous in ((), (IN_PROGRESS,)):
        case = type("Case", (OrdersContract,), {"connector": connector(keyed), "ambiguous": ambiguous})
        with pytest.raises(SkipTest) as skipped:
            case().test_the_example_can_show_bugs()
        assert ("orders: ambiguous states no answer" in str(skipped.value)) == (not ambiguous)


def test_a_refusal_that_super_takes_for_a_taken_name_is_explained() -> None:
    """A vendor's 409 may refuse a record for another reason."""
    refused = (Answer(409, {}, b'{"message": "no stock"}'), "no stock")
    case = type("Case", (OrdersContract,), {"refusals": (refused,)})
    assert "super().outcome takes a 409 for a taken name; return another" in failure(case, "a_refusal_is_rejected")


class AlwaysAMinute(OrderTarget):
    """The vendor documents the pause after each 429."""

    def throttled(self, answer: Answer) -> Outcome | None:
        return Outcome("throttled", "slow down", 429, 60.0) if answer.status == 429 else super().throttled(answer)


class GoneIsDeleted(OrderTarget):
    """What is gone needs no delete."""

    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        is_gone = answer.status in {404, 410} and expected.target_id is not None and "/orders/" in expected.path
        done = Outcome("delivered", status=answer.status, target_id=expected.target_id)
        return done if is_gone else super().outcome(resource, answer, expected)


@pytest.mark.parametrize(
    ("target", "operations", "test"),
    [(AlwaysAMinute, ("create", "update", "delete"), THROTTLED), (GoneIsDeleted, ("create", "delete"), DELIVERED)],
)
def test_a_correct_outcome_is_accepted(target: type[OrderTarget], operations: tuple[str, ...], test: str) -> None:
    """A pause that is longer than the answer asks for, and a delete of what is gone."""
    attributes = {"connector": connector(target), "operations": lambda *_: operations}
    assert failure(type("Case", (OrdersContract,), attributes), test) == ""


class AnyParcel(ParcelTarget):
    def is_it(self, parcel: Any, number: str) -> bool:
        return True


class LastParcelOnly(ParcelTarget):
    """It compares the last one alone."""

    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        body = body_of(answer)
        if answer.status == 200 and isinstance(body, dict) and body.get("parcels"):
            cut = exact_json.dumps({**body, "parcels": body["parcels"][-1:]})
            return super().found(resource, Answer(200, {}, cut), expected)
        return super().found(resource, answer, expected)


class OnlyParcelOfItsOrder(ParcelTarget):
    """The record is in doubt for ever if its order has others."""

    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        outcome = super().found(resource, answer, expected)
        is_absent = outcome.kind == "absent" and b"number" in answer.body
        return Outcome("unavailable", "another parcel", 200) if is_absent else outcome


class OrderWithoutItsId(ParcelTarget):
    """The look-up does not depend on the order, either."""

    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        return Request("GET", "/orders/latest")


APART = "a_look_up_tells_records_of_a_parent_apart"
OF_PARENTS: dict[type[ParcelTarget], tuple[str, str]] = {
    AnyParcel: (
        APART,
        "A%2F0|1Z%7C1 of the same parent alone, and the record is found as 'A%2F0|1Z%7C1'",
    ),
    LastParcelOnly: (APART, "after ours, and the record is absent instead of 'A%2F0|1Z%7C0'; compare each record"),
    OnlyParcelOfItsOrder: (APART, "alone, and the record is unavailable instead of absent"),
    OrderWithoutItsId: ("a_look_up_asks_for_the_name", "ask for records of this name, or of its parent, alone"),
}


@pytest.mark.parametrize("case", [ParcelsContract, ParcelsOfOneOrderContract], ids=lambda case: case.__name__)
@pytest.mark.parametrize("bug", OF_PARENTS, ids=lambda bug: bug.__name__)
def test_a_bug_in_telling_records_of_a_parent_apart_is_found(
    bug: type[ParcelTarget], case: type[ParcelsContract]
) -> None:
    """Also if the records of the example have different parents: one with the same parent is made of their keys."""
    test, reason = OF_PARENTS[bug]
    assert reason in failure(type("Case", (case,), {"connector": parcels(bug)}), test)


def test_every_test_of_the_contract_finds_a_bug() -> None:
    """Apart from those that are about the author's own example."""
    tests = {name.removeprefix("test_") for name in dir(OrdersContract) if name.startswith("test_")}
    assert tests - {test for test, _ in (*BUGS.values(), *OF_PARENTS.values())} == {
        "each_resource_has_a_valid_example",
        "requests_are_as_expected",
        "the_example_can_show_bugs",
    }


def test_what_is_not_stated_of_removed_records_is_said() -> None:
    """Most APIs still show a cancelled order; the test passes where it is stated that none is shown."""
    case = type("Case", (OrdersContract,), {"removed": TargetUnderTest.removed})
    with pytest.raises(SkipTest, match="removed is not defined: whether the target takes a record that was deleted"):
        case().test_a_removed_record_is_absent()
    gone = type("Case", (OrdersContract,), {"removed": lambda *_: None})
    assert failure(gone, "a_removed_record_is_absent") == ""


class Refusing(OrderTarget):
    """An API that refuses in answers of success, each operation in its own way."""

    def failed(self, resource: str, answer: ApiAnswer) -> int | None:
        return 422 if answer.at("/order/refused") or answer.at("/0/refused") else None


NO_SKU = Answer(200, {}, b'[{"refused": true, "message": "unknown SKU"}]'), "unknown SKU"
SHIPPED = Answer(200, {}, b'{"order": {"refused": true}, "message": "shipped"}'), "shipped"


class Unpacking(Refusing):
    """It makes another answer of the one to a create."""

    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        if expected.target_id is None and answer.body.startswith(b"["):
            answer = replace(answer, body=b'{"order": {}}')
        return super().outcome(resource, answer, expected)


def refusing(target: type[OrderTarget], refusals: Any) -> str:
    case = type("Case", (OrdersContract,), {"connector": connector(target), "refusals": refusals})
    return failure(case, "a_refusal_is_rejected")


@pytest.mark.parametrize(
    "stated", [(NO_SKU,), {"create": [NO_SKU], "delete": [SHIPPED]}, {("orders", "update"): [SHIPPED]}, {}]
)
def test_refusals_may_be_stated_by_operation(stated: Any) -> None:
    """An answer to one operation may mean nothing to another."""
    assert refusing(Refusing, stated) == ""


@pytest.mark.parametrize("key", ["creates", ("order", "create"), ("orders", "look_up")])
def test_a_statement_about_no_operation_is_refused(key: Any) -> None:
    """Nothing would be tested by it."""
    assert f"Case.refusals: {key!r} is no operation that is tested; its keys are 'create', (" in refusing(
        Refusing, {key: [NO_SKU]}
    )


def test_a_refusal_that_failed_does_not_see_says_what_it_sees() -> None:
    """The body that outcome made of it; where that is the one that was sent, nothing is said of it."""
    blind = refusing(Unpacking, {"create": [NO_SKU]})
    assert '[{"refused": true' in blind
    assert 'failed was given the body that outcome had made of it: {"order": {}}' in blind
    assert "failed was given" not in refusing(OrderTarget, {"create": [NO_SKU]})


def test_a_look_up_may_show_members_in_another_form() -> None:
    """The target says which ones it shows as they were sent; the message of the contract names the attribute."""
    shown = {"stored": lambda self, resource, target_id, payload: {
        "order_id": int(target_id), **payload, "note": {"text": payload["note"]}, "lines": payload["lines"]
    }}  # fmt: skip
    assert "lacks note, as it was sent; return the record in held, or name" in failure(
        type("Case", (OrdersContract,), shown), FOUND
    )
    kind = OrderTarget.resources["orders"]
    for members, wanted in ((("lines",), ""), (("lines", "note"), "lacks note")):
        declared = {"orders": replace(kind, shown=frozenset(members))}
        made = connector(type("Partly", (OrderTarget,), {"resources": declared}))
        assert wanted in failure(case := type("Case", (OrdersContract,), {**shown, "connector": made}), FOUND)
        assert wanted or not failure(case, FOUND)


def test_shown_members_that_nobody_sends_are_said() -> None:
    """They are misspelt, or the example lacks them."""
    declared = {"orders": replace(OrderTarget.resources["orders"], shown=frozenset({"notes"}))}
    made = connector(type("Misspelt", (OrderTarget,), {"resources": declared}))
    with pytest.raises(SkipTest, match="orders: no record has the member notes, which TargetResource.shown names"):
        type("Case", (OrdersContract,), {"connector": made})().test_the_example_can_show_bugs()


def test_an_example_of_equal_records_is_refused() -> None:
    """It could show no difference."""
    case = type("Case", (OrdersContract,), {"members": lambda *_: {"note": "same", "lines": []}})
    assert "Case.members: those of orders 0 and 1 are the same" in failure(case, "each_resource_has_a_valid_example")


def test_a_connector_without_a_target_is_refused() -> None:
    """The failure says what is missing."""
    from tests.unit.testing.reference_connector import OrdersContract as Shop

    attributes = {name: getattr(Shop, name) for name in ("connector", "settings", "environment")}
    case = type("Case", (OrdersContract,), attributes)
    assert "the connector 'shop' declares no target, or no API" in failure(case, PURE)


LOOKED_UP = {
    ("orders", "look_up by id"): ("GET", "/orders/4711", None),
    ("orders", "look_up by name"): ("GET", "/orders?reference=examples%3A0000", None),
}


def test_look_ups_can_be_stated() -> None:
    """A look-up by another parameter is found by nothing else: a fake of the author may know no other."""
    stated = type("Case", (OrdersContract,), {"expects": LOOKED_UP})
    bug = type("BySlug", (OrderTarget,), {"look_up": lambda *_: Request("GET", "/o")})
    with pytest.raises(SkipTest, match=r"expects states no request for \('orders', 'create'\)"):
        stated().test_requests_are_as_expected()
    wrong = failure(type("Case", (stated,), {"connector": connector(bug)}), "requests_are_as_expected")
    assert "look_up, orders by id: the request is GET /o" in wrong


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (("orders", "look_up"), "expects states ('orders', 'look_up'), and orders has no such request; state one of"),
        (("order", "create"), "expects states ('order', 'create'), and the target has no such resource"),
    ],
)
def test_a_statement_about_no_request_is_refused(name: tuple[str, str], told: str) -> None:
    """It would be compared with nothing."""
    case = type("Case", (OrdersContract,), {"expects": {name: ("GET", "/", None)}})
    assert failure(case, "requests_are_as_expected").startswith(told)
