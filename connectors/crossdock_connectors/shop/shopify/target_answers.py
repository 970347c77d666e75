"""The interpretation of Shopify's answers to GraphQL requests of a target. Errors are in answers with status 200."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossdock.printable import printable
from crossdock.targets import Answer, Outcome, RateHeaders, body_of
from crossdock.values.json_paths import value_at_path_or_missing

POINTS = 25
"""The points counted for a request of a target: a mutation costs 10, a look-up of stock 10, of an order up to 38."""
_NOT_NOW = frozenset({402, 423, 430})  # the shop is frozen or locked, or took the request for an attack
_CHANGED = frozenset({"CHANGE_FROM_QUANTITY_STALE"})
_RUNNING = frozenset({"IDEMPOTENCY_CONCURRENT_REQUEST"})
_LONGEST = 2_000  # characters of a message


def outcome_if_answer_lacks_data(answer: Answer) -> Outcome | None:
    """Return the outcome of an answer without data; None with data, or for an HTTP status that targets know."""
    if answer.status in _NOT_NOW:
        return Outcome("unavailable", f"HTTP {answer.status}: the shop is closed to the app for now", answer.status)
    if answer.status != 200:
        return None
    body = body_of(answer)
    errors = body.get("errors") if isinstance(body, dict) else None
    if not errors:
        data = body.get("data") if isinstance(body, dict) else None
        return None if isinstance(data, dict) else Outcome("in_doubt", "the answer has no data", 200)
    return _outcome_of_graphql_errors(body, errors if isinstance(errors, list) else [errors])


def _outcome_of_graphql_errors(body: Mapping[str, Any], errors: list[Any]) -> Outcome:
    message = _joined_messages(errors)
    codes = {_text_or_none(value_at_path_or_missing(error, "extensions.code")) for error in errors}
    if "THROTTLED" in codes:
        return Outcome("throttled", message, 200, _seconds_until_enough_points(body))
    if "ACCESS_DENIED" in codes:
        return Outcome("rejected", message, 403, reason="forbidden")
    if codes & {"INTERNAL_SERVER_ERROR", "TIMEOUT"}:
        return Outcome("in_doubt", message, 200)
    return Outcome("rejected", message, 400)


def outcome_of_user_errors(payload: Any) -> Outcome | None:
    errors = value_at_path_or_missing(payload, "userErrors")
    if not isinstance(errors, list):
        return Outcome("in_doubt", "the answer says nothing of the mutation", 200)
    if not errors:
        return None
    codes = {_text_or_none(value_at_path_or_missing(error, "code")) for error in errors}
    if codes & _RUNNING:
        return Outcome("in_doubt", _joined_messages(errors), 200)
    return Outcome("changed" if codes & _CHANGED else "rejected", _joined_messages(errors), 200)


def rate_headers_from_points(answer: Answer) -> RateHeaders | None:
    """Return the bucket of points as a bucket of requests with `POINTS` each."""
    status = value_at_path_or_missing(body_of(answer), "extensions.cost.throttleStatus")
    names = ("currentlyAvailable", "maximumAvailable", "restoreRate")
    numbers = (
        [_float_or_none(value_at_path_or_missing(status, name)) for name in names] if isinstance(status, dict) else []
    )
    if len(numbers) < 3 or None in numbers:
        return None
    left, most, per_s = (float(number or 0) / POINTS for number in numbers)
    return RateHeaders("shopify", max(0.0, left), max(1.0, most), per_s or None)


def _seconds_until_enough_points(body: Mapping[str, Any]) -> float:
    """Return seconds until the bucket has the points that a refused query needs."""
    cost = "extensions.cost"
    wanted, left, per_s = (
        _float_or_none(value_at_path_or_missing(body, f"{cost}.{name}"))
        for name in ("requestedQueryCost", "throttleStatus.currentlyAvailable", "throttleStatus.restoreRate")
    )
    return max(0.0, (wanted or POINTS) - (left or 0)) / per_s if per_s else 1.0


def _joined_messages(errors: list[Any]) -> str:
    texts = (
        _text_or_none(value_at_path_or_missing(error, "message")) if isinstance(error, dict) else _text_or_none(error)
        for error in errors
    )
    return printable("; ".join(filter(None, dict.fromkeys(texts)))[:_LONGEST]) or "refused without a reason"


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _float_or_none(value: Any) -> float | None:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        return None
    return float(value)
