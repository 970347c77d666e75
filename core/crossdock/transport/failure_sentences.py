"""Sentences about failed connections.

The libraries' own texts may quote what the server sent, such as a token or personal data, so they are never shown.
"""

from __future__ import annotations

import ssl
import zlib
from collections.abc import Mapping

import httpcore

CANNOT_BE_REACHED, REQUEST_FAILED = "cannot be reached: ", "request failed: "
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
    "Server disconnected": "the server closed the connection without a response",
    "peer closed connection": "the connection closed in the middle of the response",
    "Receive buffer too long": "the response header is too long",
}
_OTHERS: Mapping[type[Exception], str] = {
    httpcore.ConnectTimeout: "connecting timed out",
    httpcore.TimeoutException: "timed out",
    httpcore.LocalProtocolError: "the request is not valid HTTP",
    httpcore.UnsupportedProtocol: "the address is neither http nor https",
    zlib.error: "the compressed response is damaged",
}


def http_reason(error: Exception) -> str:
    """Why a request failed with *error*, one of `NOT_SENT` or `AMBIGUOUS`."""
    if isinstance(error, httpcore.RemoteProtocolError):
        text = str(error)
        found = (reason for beginning, reason in _BROKEN_RULES.items() if text.startswith(beginning))
        return next(found, "the response is not valid HTTP")
    cause = error.args[0] if error.args else None  # where httpcore keeps the original error
    if isinstance(cause, OSError) and not isinstance(error, httpcore.TimeoutException):
        return network_reason(cause)
    if isinstance(cause, ValueError):
        return "the address has no valid host"
    return next((reason for kind, reason in _OTHERS.items() if isinstance(error, kind)), "the connection failed")


def network_reason(error: OSError) -> str:
    """The text of the operating system or the TLS library; it never quotes the server."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"the TLS handshake failed: {getattr(error, 'reason', None) or 'the connection ended'}"
    if isinstance(error, TimeoutError) and not error.strerror:
        return "timed out"
    return error.strerror.lower() if error.strerror else "the connection failed"
