"""What Shopify's answers to GraphQL requests of a target mean."""

from __future__ import annotations

from typing import Any

import pytest

from crossdock.targets import Answer
from crossdock.values import exact_json
from crossdock_connectors.shop.shopify.target_answers import (
    POINTS,
    outcome_if_answer_lacks_data,
    outcome_of_user_errors,
    rate_headers_from_points,
)


def answered(body: Any, status: int = 200) -> Answer:
    return Answer(status, {}, exact_json.dumps(body))


def error(code: str | None, message: str = "no") -> dict[str, Any]:
    return {"message": message} if code is None else {"message": message, "extensions": {"code": code}}


def cost(left: int, rate: int = 100, wanted: int = 10) -> dict[str, Any]:
    status = {"maximumAvailable": 2000, "currentlyAvailable": left, "restoreRate": rate}
    return {"cost": {"requestedQueryCost": wanted, "throttleStatus": status}}


@pytest.mark.parametrize(
    ("code", "kind", "status"),
    [
        ("THROTTLED", "throttled", 200),
        ("ACCESS_DENIED", "rejected", 403),
        ("INTERNAL_SERVER_ERROR", "in_doubt", 200),
        ("TIMEOUT", "in_doubt", 200),
        ("MAX_COST_EXCEEDED", "rejected", 400),
        (None, "rejected", 400),
    ],
)
def test_an_error_inside_200_means_what_its_code_says(code: str | None, kind: str, status: int) -> None:
    """Only what may have been carried out is in doubt; a refused scope concerns every record."""
    found = outcome_if_answer_lacks_data(answered({"errors": [error(code)], "extensions": cost(0)}))
    assert found is not None
    assert (found.kind, found.status, found.message) == (kind, status, "no")


def test_the_wait_is_until_the_points_are_there() -> None:
    """The bucket refills at a rate that the answer tells."""
    found = outcome_if_answer_lacks_data(
        answered({"errors": [error("THROTTLED")], "extensions": cost(4, rate=2, wanted=10)})
    )
    assert found is not None
    assert found.retry_after_s == 3.0
    without = outcome_if_answer_lacks_data(answered({"errors": [error("THROTTLED")]}))
    assert without is not None
    assert without.retry_after_s == 1.0


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"data": null}', b'{"data": {"a"'])
def test_an_answer_without_data_is_in_doubt(body: bytes) -> None:
    """Nothing is guessed of an answer that was cut off or is another one."""
    found = outcome_if_answer_lacks_data(Answer(200, {}, body))
    assert found is not None
    assert found.kind == "in_doubt"


def test_other_statuses_are_left_to_what_all_targets_know() -> None:
    """A shop that is frozen, locked or wary is unavailable; data is no failure."""
    for status in (402, 423, 430):
        found = outcome_if_answer_lacks_data(answered({"errors": "Unavailable Shop"}, status))
        assert found is not None
        assert (found.kind, found.status) == ("unavailable", status)
    assert outcome_if_answer_lacks_data(answered({}, 502)) is None
    assert outcome_if_answer_lacks_data(answered({"data": {"shop": None}})) is None


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (None, "in_doubt"),
        ({"fulfillment": None}, "in_doubt"),
        ({"userErrors": [{"code": "IDEMPOTENCY_CONCURRENT_REQUEST", "message": "no"}]}, "in_doubt"),
        ({"userErrors": [{"code": "CHANGE_FROM_QUANTITY_STALE", "message": "no"}]}, "changed"),
        ({"userErrors": [{"field": ["input"], "message": "no"}]}, "rejected"),
        ({"userErrors": ["no"]}, "rejected"),
    ],
)
def test_user_errors_refuse_one_record(payload: Any, kind: str) -> None:
    """A payload without a list of them says nothing of the mutation."""
    found = outcome_of_user_errors(payload)
    assert found is not None
    assert found.kind == kind


def test_no_user_errors_are_no_refusal() -> None:
    """An empty list is the shop's word that it was carried out."""
    assert outcome_of_user_errors({"userErrors": []}) is None


def test_messages_are_joined_once_and_bounded() -> None:
    """Equal ones are told once; a shop's control characters and endless texts are not passed on."""
    found = outcome_of_user_errors({"userErrors": [{"message": text} for text in ("a\x1b[2J", "b", "b", "c" * 5_000)]})
    assert found is not None
    assert "\x1b" not in found.message
    assert found.message.count("b;") == 1
    assert len(found.message) < 3_000
    silent = outcome_of_user_errors({"userErrors": [{}]})
    assert silent is not None
    assert silent.message == "refused without a reason"


def test_the_bucket_of_points_is_one_of_requests() -> None:
    """Each answer tells what is left; one that does not tell all three numbers tells nothing."""
    found = rate_headers_from_points(answered({"data": {}, "extensions": cost(left=500)}))
    assert found is not None
    assert (found.remaining, found.burst, found.rate_per_s) == (500 / POINTS, 2000 / POINTS, 100 / POINTS)
    del (broken := cost(500))["cost"]["throttleStatus"]["restoreRate"]
    bodies: list[Any] = [{"data": {}}, {"data": {}, "extensions": broken}, []]
    for body in bodies:
        assert rate_headers_from_points(answered(body)) is None
    assert rate_headers_from_points(Answer(502, {}, b"<html>")) is None
