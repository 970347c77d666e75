"""The reasons in a 3PL's refusals of orders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from msgspec import Struct

from crossdock.printable import printable
from crossdock.targets import Answer, Outcome
from crossdock.values import exact_json

_LONGEST = 2_000  # characters of a message


class Refusal(Struct, frozen=True):
    """Why a request was refused, and which member is wrong. *name_taken*: the 3PL has an order with the external id."""

    message: str
    pointer: str | None = None
    name_taken: bool = False


def rejection_with_reason_from_answer(
    outcome: Outcome, answer: Answer, read: Callable[[Any], Refusal | None], name_pointer: str
) -> Outcome:
    """Return *outcome* with the reason that *read* finds in the body of a refusal."""
    if outcome.kind != "rejected":
        return outcome
    try:
        found = read(exact_json.loads(answer.body))
    except ValueError:  # no JSON
        found = None
    if found is None:
        return outcome
    outcome = replace(outcome, message=printable(found.message[:_LONGEST]), pointer=found.pointer)
    return replace(outcome, reason="conflict", pointer=name_pointer) if found.name_taken else outcome
