"""Errors of JSON-RPC calls, which come with status 200, and errors that another attempt cannot change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crossdock.errors import RemoteError
from crossdock.reading.sources import api_error_messages
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer, ApiRequest

_PERMANENT = frozenset({-32700, -32600, -32601, -32602})
"""Codes of JSON-RPC 2.0, section 5.1: not JSON, no request, no such method, wrong parameters."""
_WRONG_QUERY = frozenset({
    "BAD_REQUEST", "BAD_USER_INPUT", "GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED",
    "OPERATION_RESOLUTION_FAILURE",
})  # fmt: skip
"""Codes of GraphQL servers for a query that they do not execute."""
_NOT_IMPLEMENTED = frozenset({501, 505})


def raise_json_rpc_error(request: ApiRequest, answer: ApiAnswer, shown: str, redacted: Callable[[str], str]) -> None:
    call = request.json
    if not (isinstance(call, dict) and isinstance(call.get("method"), str) and ("jsonrpc" in call or "params" in call)):
        return
    if (error := answer.at("/error")) and answer.at("/result") is None:
        found = [error, error.get("data")] if isinstance(error, dict) else [error]
        code = f" {error['code']}" if isinstance(error, dict) and isinstance(error.get("code"), int) else ""
        reason = api_error_messages.error_message_in(found, redacted) or "without a message"
        raise RemoteError(f"answered with the JSON-RPC error{code}: {reason}", where=shown, code="answer_failed")


def is_permanent_failure(status: int, body: Any) -> bool:
    """Return whether an answer of 500 or above, or its body, says that another attempt would fail, too."""
    if status in _NOT_IMPLEMENTED:
        return True
    if not isinstance(body, dict):
        return False
    error, errors = body.get("error"), body.get("errors")
    if isinstance(error, dict) and error.get("code") in _PERMANENT:
        return True
    codes = [each.get("extensions") for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []
    return bool(codes) and all(isinstance(each, dict) and each.get("code") in _WRONG_QUERY for each in codes)
