"""What the code of a target returns must say what is needed to go on; else it is an error about one record."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.testing.target_connector import OrderTarget

from crossdock.targets import Answer, ExpectedRecord, Outcome, Request, Update
from crossdock.values.author_code_errors import AuthorCodeError
from crossdock.writing.targets.target_code_guard import wrap_target_in_guard

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
    return wrap_target_in_guard(target, None)


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


class Changing(Odd):
    """Changes everything that it gets."""

    def payload(self, resource: str, namespace: str, key: str, members: dict[str, Any]) -> dict[str, Any]:
        members["lines"][0].pop("sku")
        return self.changed(members)

    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        return Request.json("POST", "/orders", self.changed(payload))

    def create_from(self, resource: str, payload: dict[str, Any], held: dict[str, Any]) -> Request:
        return Request.json("POST", "/orders", self.changed(held) | self.changed(payload))

    def update(self, resource: str, target_id: str, update: Update) -> Request:
        before: Any = update.before
        return Request.json(
            "PUT", "/orders", self.changed(before) | self.changed(update.changes) | self.changed(update.after)
        )

    def name_in(self, resource: str, payload: Any) -> str | None:
        return str(self.changed(payload))

    def also_changes(self, resource: str, payload: Any) -> list[tuple[str, str]]:
        self.changed(payload)
        return []

    @staticmethod
    def changed(payload: dict[str, Any]) -> dict[str, Any]:
        payload["lines"].append(payload.pop("note"))
        return payload


@pytest.mark.parametrize("method", ["payload", "create", "create_from", "update", "name_in", "also_changes"])
def test_a_target_that_changes_what_it_gets_changes_no_record(method: str) -> None:
    """It gets copies: what is stored has all members, and the same request is made again."""
    whole = {"note": "a", "lines": [{"sku": "0017"}]}
    parts = [json.loads(json.dumps(whole)) for _ in range(3)]
    arguments: dict[str, list[Any]] = {
        "payload": ["w", "1", parts[0]],
        "create": [parts[0]],
        "create_from": parts[:2],
        "update": ["7", Update(*parts)],
        "name_in": [parts[0]],
        "also_changes": [parts[0]],
    }
    target = wrap_target_in_guard(Changing(), None)
    first, second = (getattr(target, method)("orders", *arguments[method]) for _ in range(2))
    assert first == second
    assert parts == [whole] * 3


def test_a_target_keeps_nothing_that_it_has_returned() -> None:
    """One payload or found record that is filled anew for each record does not change those before."""
    made = {"note": "a", "lines": ["x"]}

    class Reusing(Odd):
        def payload(self, resource: str, namespace: str, key: str, members: dict[str, Any]) -> dict[str, Any]:
            made["note"] = key
            return made

    target = Reusing()
    guarded = wrap_target_in_guard(target, None)
    assert [guarded.payload("orders", "w", key, {}) for key in "12"] == [{**made, "note": key} for key in "12"]
    target.given = Outcome("found", status=200, target_id="7", held=made)
    found = guarded.found("orders", ANSWER, NEW)
    made["note"] = "3"
    assert found.held == {**made, "note": "2"}
