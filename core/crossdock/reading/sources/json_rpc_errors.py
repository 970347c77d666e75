"""Errors of JSON-RPC calls, which come with status 200, and errors that another attempt cannot change."""

from __future__ import annotations

from collections.abc import Callable

from crossdock.errors import RemoteError
from crossdock.reading.sources import api_error_messages
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer, ApiRequest


def raise_json_rpc_error(request: ApiRequest, answer: ApiAnswer, shown: str, redacted: Callable[[str], str]) -> None:
    call = request.json
    if not (isinstance(call, dict) and isinstance(call.get("method"), str) and ("jsonrpc" in call or "params" in call)):
        return
    if (error := answer.at("/error")) and answer.at("/result") is None:
        found = [error, error.get("data")] if isinstance(error, dict) else [error]
        code = f" {error['code']}" if isinstance(error, dict) and isinstance(error.get("code"), int) else ""
        reason = api_error_messages.error_message_in(found, redacted) or "without a message"
        raise RemoteError(f"answered with the JSON-RPC error{code}: {reason}", where=shown, code="answer_failed")
