"""Errors of GraphQL queries, which come in answers with status 200."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crossdock.errors import RemoteError
from crossdock.reading.sources import api_error_messages
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer, ApiRequest

THROTTLED = "THROTTLED"
_FAILED = frozenset({"INTERNAL_SERVER_ERROR", "TIMEOUT"})


class GraphQLError(RemoteError):
    """An answer with GraphQL errors. `codes` has the ``extensions.code`` of each error that has one."""

    code = "graphql_failed"

    def __init__(self, message: str, codes: frozenset[str], *, where: str) -> None:
        super().__init__(message, where=where)
        self.codes = codes


def error_codes_of_query(request: ApiRequest, answer: ApiAnswer) -> frozenset[str]:
    return frozenset() if request.graphql is None else error_codes(answer)


def error_codes(answer: ApiAnswer) -> frozenset[str]:
    """Return the ``extensions.code`` of each error of a GraphQL answer that has one."""
    errors = answer.at("/errors")
    found = [item for item in errors if isinstance(item, dict)] if isinstance(errors, list) else []
    codes = (item.get("extensions") for item in found)
    return frozenset(code["code"] for code in codes if isinstance(code, dict) and isinstance(code.get("code"), str))


def is_throttled(request: ApiRequest, answer: ApiAnswer) -> bool:
    return THROTTLED in error_codes_of_query(request, answer)


def is_internal_failure(request: ApiRequest, answer: ApiAnswer) -> bool:
    return not _FAILED.isdisjoint(error_codes_of_query(request, answer))


def raise_graphql_errors(request: ApiRequest, answer: ApiAnswer, shown: str, redacted: Callable[[str], str]) -> None:
    """Raise GraphQLError if *answer* has GraphQL errors, even beside data."""
    errors: Any = answer.at("/errors") if request.graphql is not None else None
    if errors:
        reason = api_error_messages.error_message_in(errors, redacted)
        message = f"answered with GraphQL errors: {reason or 'without a message'}"
        raise GraphQLError(message, error_codes_of_query(request, answer), where=shown)
