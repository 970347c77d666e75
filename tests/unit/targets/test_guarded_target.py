"""What the code of a target returns must say what is needed to go on; else it is an error about one record."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.testing.target_connector import OrderTarget

from crossdock.targets import Answer, ExpectedRecord, Outcome, Request
from crossdock.values.author_code import AuthorCodeError
from crossdock.writing.targets.guarded_target import guarded_target

ANSWER = Answer(202, {}, b"")
NEW, KNOWN = ExpectedRecord("/orders", None, "R1"), ExpectedRecord("/orders/7", "7", "R1")


class Odd(OrderTarget):
    """Returns what it is given."""

    given: Any = None

    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        return Request("POST", self.given)

    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        found: Outcome = self.given
        return found

    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        return self.outcome(resource, answer, expected)


def odd(given: Any) -> Any:
    target = Odd()
    target.given = given
    return guarded_target(target, None)


@pytest.mark.parametrize("path", ["orders", "https://other.example/orders", "/orders\n", "/or\x1bders"])
def test_a_request_whose_path_cannot_be_sent_is_an_error_of_its_record(path: str) -> None:
    """Nothing is sent, and the target does not count as unavailable."""
    with pytest.raises(AuthorCodeError, match=r"Request\.path that does not begin with a slash"):
        odd(path).create("orders", {})
    assert odd("/orders").create("orders", {}) == Request("POST", "/orders")


@pytest.mark.parametrize(
    ("method", "outcome", "expected"),
    [
        ("outcome", Outcome("delivered", status=202), NEW),
        ("found", Outcome("found", status=200, held={"note": "x"}), NEW),
        ("found", Outcome("found", status=200, held={"note": "x"}), KNOWN),
        ("found", Outcome("found", status=200, target_id="7"), NEW),
    ],
)
def test_an_outcome_without_the_id_of_a_new_record_is_an_error(
    method: str, outcome: Outcome, expected: ExpectedRecord
) -> None:
    """The record is in doubt then, with the place in the code of the target."""
    with pytest.raises(AuthorCodeError, match="without (target_id|held)"):
        getattr(odd(outcome), method)("orders", ANSWER, expected)


def test_an_outcome_of_a_known_record_needs_no_id() -> None:
    """As of an update or a delete."""
    delivered = Outcome("delivered", status=204)
    assert odd(delivered).outcome("orders", ANSWER, KNOWN) == delivered
