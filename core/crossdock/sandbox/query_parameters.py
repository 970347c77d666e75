"""Checks of query parameters. An unknown or malformed one is 400: ignoring it would give a misleading answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from crossdock.sandbox.problem_errors import ProblemError

SEQUENCE_NUMBERS = range(2**63)
LOG_LIMITS = range(1, 10_001)


def raise_if_unknown_parameter(query: Mapping[str, str], *known: str) -> None:
    if unknown := set(query) - set(known):
        raise ProblemError(400, f"{len(unknown)} unknown query parameter(s); known: {', '.join(known)}.")


def whole_number_parameter(query: Mapping[str, str], name: str, default: int, allowed: range) -> int:
    text = query.get(name, str(default))
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    if number not in allowed:
        raise ProblemError(400, f"{name} must be a whole number from {allowed[0]} to {allowed[-1]}.")
    return number


def raise_unless_one_of(query: Mapping[str, str], name: str, allowed: Iterable[str]) -> None:
    if query.get(name) not in {None, *allowed}:
        raise ProblemError(400, f"{name} must be one of {', '.join(allowed)}.")
