"""Errors in answers of success that a target declares: what they stand for, and a repeat that is told by its code."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.targets.test_api_target import connected
from tests.unit.testing.target_connector import OrderTarget

from crossdock.sources import ApiAnswer
from crossdock.targets import Answer, AnswerErrors, ExpectedRecord, Outcome
from crossdock.values import exact_json

SAVED = AnswerErrors("/saved/errors", repeated="UNIQUE", statuses={"NOT_FOUND": 404, "GONE": 404})
OF_GRAPHQL = AnswerErrors("/errors", code="/extensions/code", statuses={"DENIED": 403}, otherwise=503)


class Declaring(OrderTarget):
    """It declares where errors are."""

    errors = (SAVED, OF_GRAPHQL)


def written(body: Any, target: OrderTarget | None = None) -> Outcome:
    answer = Answer(200, {}, exact_json.dumps(body))
    return (target or connected(Declaring())).outcome("orders", answer, ExpectedRecord("/orders", None, "wms:1"))


def saved(*errors: Any) -> Any:
    return {"order": None, "saved": {"errors": list(errors)}}


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (saved({"code": "REQUIRED", "message": "no"}), ("rejected", "rejected", None)),
        (saved({"code": "UNIQUE", "field": "slug", "message": "no"}), ("rejected", "rejected", None)),
        (saved({"code": "UNIQUE", "field": "reference", "message": "no"}), ("rejected", "conflict", "/reference")),
        (saved({"code": "UNIQUE", "message": "no"}), ("rejected", "conflict", "/reference")),
        (
            saved({"code": "REQUIRED"}, {"code": "UNIQUE", "field": ["input", "reference"], "message": "no"}),
            ("rejected", "conflict", "/reference"),
        ),
        (saved({"code": "NOT_FOUND", "message": "no"}), ("rejected", "rejected", None)),
        ({"errors": [{"message": "no"}]}, ("rejected", "rejected", None)),
        ({"data": None, "errors": [{"message": "no"}]}, ("rejected", "rejected", None)),
        ({"data": {"order": None}, "errors": [{"message": "no"}]}, ("in_doubt", None, None)),
        (
            {"data": {"order": None}, "errors": [{"message": "no", "extensions": {"code": "DENIED"}}]},
            ("rejected", "forbidden", None),
        ),
    ],
    ids=str,
)
def test_declared_errors(body: Any, found: tuple[str, str | None, str | None]) -> None:
    """A repeat is a conflict of the name; errors beside data may have come after the effect, and are looked up."""
    outcome = written(body)
    assert (outcome.kind, outcome.reason, outcome.pointer) == found
    assert outcome.message == "no"


def test_what_was_carried_out_is_delivered() -> None:
    """Whatever errors are beside the record; an empty list of them is none."""
    order = {"order_id": 7, "reference": "wms:1"}
    for errors in ([], [{"code": "WARNING", "message": "no"}]):
        assert written({"order": order, "saved": {"errors": errors}}).kind == "delivered"


class Judging(OrderTarget):
    def failed(self, resource: str, answer: ApiAnswer) -> int | None:
        return 409 if answer.at("/errors") else None


def test_a_409_of_failed_is_a_conflict_of_the_name() -> None:
    """As its documentation says; a 409 of HTTP may mean something else."""
    target = connected(Judging())
    outcome = written({"errors": [{"message": "no"}]}, target)
    assert (outcome.kind, outcome.reason, outcome.pointer) == ("rejected", "conflict", "/reference")
    plain = target.outcome("orders", Answer(409, {}, b"{}"), ExpectedRecord("/orders", None, "wms:1"))
    assert (plain.reason, plain.pointer) == ("conflict", None)
