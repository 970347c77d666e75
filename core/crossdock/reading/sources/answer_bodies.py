"""JSON values in the bodies of answers."""

from __future__ import annotations

import codecs
import re
from typing import Any

from crossdock.reading.transport.http_answers import Answer
from crossdock.values import exact_json

_CHARSET = re.compile(r"charset\s*=\s*\"?([A-Za-z0-9._-]{1,40})", re.IGNORECASE)
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NOT_JSON = "cannot be read as JSON: "


def read(answer: Answer) -> tuple[Any, str]:
    """Return the value, or None for an empty body, and the reason why it cannot be read, or an empty text.

    A byte order mark is ignored, as RFC 8259 section 8.1 permits. The reason quotes nothing of the body.
    """
    try:
        return (exact_json.loads(answer.body.removeprefix(codecs.BOM_UTF8)) if answer.body else None), ""
    except ValueError as error:
        return None, _NOT_JSON + _reason(answer, error)


def _reason(answer: Answer, error: ValueError) -> str:
    start, kind = answer.body[:100].lstrip().lower(), answer.headers.get("content-type", "").lower()
    if "html" in kind or start.startswith((b"<!doctype html", b"<html")):
        return "it is an HTML page, such as that of a log-in or a proxy"
    if start.startswith(b"<"):
        return "it is XML; the API may have another address or parameter for JSON"
    if start.startswith(_UTF_16) or b"\0" in start[:4]:
        return "it is UTF-16, and JSON must be UTF-8 (RFC 8259)"
    if isinstance(error, UnicodeDecodeError):
        declared = _declared_charset(kind)
        return f"byte {error.start + 1:,} is not UTF-8, which JSON must be (RFC 8259){declared}"
    return str(error)


def _declared_charset(content_type: str) -> str:
    """Return the charset of a content type if it is a known one other than UTF-8. Other texts could contain a
    secret.
    """
    found = _CHARSET.search(content_type)
    try:
        name = codecs.lookup(found[1]).name if found else "utf-8"
    except LookupError:
        return ""
    return "" if name == "utf-8" else f"; its content type declares {name}"
