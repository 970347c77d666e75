"""Why a connection failed, in sentences of ours.

The libraries' own texts quote what the other side sent, which may be a token or personal data. They choose a sentence
here and are never shown.
"""

from __future__ import annotations

import ssl
import zlib
from collections.abc import Mapping

import httpcore

NOT_SENT: tuple[type[Exception], ...] = (
    httpcore.ConnectError,
    httpcore.ConnectTimeout,
    httpcore.PoolTimeout,
    httpcore.UnsupportedProtocol,
    httpcore.ProxyError,
    httpcore.ConnectionNotAvailable,
)
AMBIGUOUS: tuple[type[Exception], ...] = (
    httpcore.ReadTimeout,
    httpcore.WriteTimeout,
    httpcore.ReadError,
    httpcore.WriteError,
    httpcore.RemoteProtocolError,
    httpcore.LocalProtocolError,
    zlib.error,
)

_BROKEN_RULES: Mapping[str, str] = {
    "Server disconnected": "the server closed the connection without an answer",
    "peer closed connection": "the connection ended in the middle of the answer",
    "Receive buffer too long": "the head of the answer is too long",
}
_OTHERS: Mapping[type[Exception], str] = {
    httpcore.ConnectTimeout: "no connection in time",
    httpcore.TimeoutException: "no whole answer in time",
    httpcore.LocalProtocolError: "the request breaks the rules of HTTP",
    httpcore.UnsupportedProtocol: "the address is neither http nor https",
    zlib.error: "the packed answer is damaged",
}


def http_reason(error: Exception) -> str:
    """Why a request failed with *error*, one of `NOT_SENT` or `AMBIGUOUS`."""
    if isinstance(error, httpcore.RemoteProtocolError):
        text = str(error)
        found = (said for beginning, said in _BROKEN_RULES.items() if text.startswith(beginning))
        return next(found, "the answer breaks the rules of HTTP")
    cause = error.args[0] if error.args else None  # where httpcore keeps what it has mapped
    if isinstance(cause, OSError) and not isinstance(error, httpcore.TimeoutException):
        return network_reason(cause)
    if isinstance(cause, ValueError):
        return "the address names no host"
    return next((said for kind, said in _OTHERS.items() if isinstance(error, kind)), "the connection failed")


def network_reason(error: OSError) -> str:
    """What the operating system or the TLS library says of *error*; its words never come from the other side."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"it does not encrypt as it should: {error.reason or 'the connection ended'}"
    if isinstance(error, TimeoutError) and not error.strerror:
        return "timed out"
    return error.strerror.lower() if error.strerror else "the connection failed"
