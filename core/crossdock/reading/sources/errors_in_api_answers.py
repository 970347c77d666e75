"""Errors in the answers of an API, also in those with status 200, as of GraphQL and JSON-RPC, and their messages, in a
form that may be shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any

from crossdock.errors import RemoteError
from crossdock.printable import printable
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer, ApiRequest
from crossdock.values import exact_json

THROTTLED = "THROTTLED"
_FAILED = frozenset({"INTERNAL_SERVER_ERROR", "TIMEOUT"})


class GraphQLError(RemoteError):
    """An answer with GraphQL errors. `codes` has the ``extensions.code`` of each error that has one."""

    code = "graphql_failed"

    def __init__(self, message: str, codes: frozenset[str], *, where: str) -> None:
        super().__init__(message, where=where)
        self.codes = codes


def graphql_error_codes_if_query(request: ApiRequest, answer: ApiAnswer) -> frozenset[str]:
    return frozenset() if request.graphql is None else graphql_error_codes(answer)


def graphql_error_codes(answer: ApiAnswer) -> frozenset[str]:
    """Return the ``extensions.code`` of each error of a GraphQL answer that has one."""
    errors = answer.at("/errors")
    found = [item for item in errors if isinstance(item, dict)] if isinstance(errors, list) else []
    codes = (item.get("extensions") for item in found)
    return frozenset(code["code"] for code in codes if isinstance(code, dict) and isinstance(code.get("code"), str))


def is_graphql_query_throttled(request: ApiRequest, answer: ApiAnswer) -> bool:
    return THROTTLED in graphql_error_codes_if_query(request, answer)


def is_graphql_internal_error(request: ApiRequest, answer: ApiAnswer) -> bool:
    return not _FAILED.isdisjoint(graphql_error_codes_if_query(request, answer))


def raise_if_graphql_errors(request: ApiRequest, answer: ApiAnswer, shown: str, redacted: Callable[[str], str]) -> None:
    """Raise GraphQLError if *answer* has GraphQL errors, even beside data."""
    errors: Any = answer.at("/errors") if request.graphql is not None else None
    if errors:
        reason = redacted_error_message_in_json(errors, redacted)
        message = f"answered with GraphQL errors: {reason or 'without a message'}"
        raise GraphQLError(message, graphql_error_codes_if_query(request, answer), where=shown)


SHOWN = 300  # characters
_LONGEST = 64 * 1024  # bytes of an answer that is not JSON
_MOST = 3  # messages of one list
_DEEPEST = 4  # levels of objects around members with errors
_TITLE = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)
_NAMES = ("o:errordetails", "detail", "title", "message", "text", "error_description", "error", "errors")
_PERSONAL = re.compile(r"[^\s@]+@[^\s@]+|\+?\d(?:[\s()/.-]?\d){5,}")  # mail addresses, telephone and other numbers


def redacted_error_message_of_body(body: bytes, content_type: str, redacted: Callable[[str], str]) -> str:
    """Return the message of an error answer, at most `SHOWN` characters, without credentials and personal data."""
    try:
        return redacted_error_message_in_json(exact_json.loads(body), redacted)
    except ValueError:
        text = body[:_LONGEST].decode(errors="replace")
    if "html" in content_type.lower():
        title = _TITLE.search(text)
        return _redacted_and_shortened(unescape(title[1]) if title else "", redacted)
    return _redacted_and_shortened(text, redacted) if content_type.lower().startswith("text/plain") else ""


def redacted_error_message_in_json(document: Any, redacted: Callable[[str], str]) -> str:
    """Return the messages of *document* or, if it has none at the top, of inner members such as ``userErrors``."""
    texts = (
        (*_messages(document, 3),)
        or (*_inner_messages(document, _DEEPEST),)
        or (*_messages_in_place_of_record(document),)
    )
    found = dict.fromkeys(texts)
    return _redacted_and_shortened("; ".join(found), redacted)


def _redacted_and_shortened(text: str, redacted: Callable[[str], str]) -> str:
    """Redact and shorten *text*. Credentials are removed first, because masks and cuts would leave parts of them."""
    return printable(_PERSONAL.sub("(personal)", " ".join(redacted(text).split())))[:SHOWN]


def _messages(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if text := value.strip():
            yield text
    elif isinstance(value, list) and depth:
        for item in value[:_MOST]:
            yield from _messages(item, depth - 1)
    elif isinstance(value, dict) and depth:
        members = {name.casefold(): each for name, each in value.items()}  # APIs in .NET say Message
        for name in _NAMES:
            found = list(_messages(members.get(name), depth - 1)) or list(_messages_by_member(name, members.get(name)))
            if found:
                yield from found
                return


def _inner_messages(value: Any, depth: int) -> Iterator[str]:
    for name, inner in value.items() if isinstance(value, dict) and depth else ():
        if name.casefold().endswith(("error", "errors")):
            yield from _messages(inner, 3)
        else:
            yield from _inner_messages(inner, depth - 1)


def _messages_in_place_of_record(document: Any) -> Iterator[str]:
    """Yield the messages of objects that a GraphQL mutation answers with in place of a record."""
    data = document.get("data") if isinstance(document, dict) else None
    for value in data.values() if isinstance(data, dict) else ():
        yield from _messages(value.get("message"), 2) if isinstance(value, dict) else ()


def _messages_by_member(name: str, value: Any) -> Iterator[str]:
    for member, messages in list(value.items())[:_MOST] if name == "errors" and isinstance(value, dict) else ():
        for message in messages[:_MOST] if isinstance(messages, list) else [messages]:
            if isinstance(message, str):
                yield f"{member}: {message.strip()}"


def raise_if_json_rpc_error(request: ApiRequest, answer: ApiAnswer, shown: str, redacted: Callable[[str], str]) -> None:
    call = request.json
    if not (isinstance(call, dict) and isinstance(call.get("method"), str) and ("jsonrpc" in call or "params" in call)):
        return
    if (error := answer.at("/error")) and answer.at("/result") is None:
        found = [error, error.get("data")] if isinstance(error, dict) else [error]
        code = f" {error['code']}" if isinstance(error, dict) and isinstance(error.get("code"), int) else ""
        reason = redacted_error_message_in_json(found, redacted) or "without a message"
        raise RemoteError(f"answered with the JSON-RPC error{code}: {reason}", where=shown, code="answer_failed")
