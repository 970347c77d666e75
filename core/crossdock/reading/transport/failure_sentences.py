"""Sentences about failed connections. The libraries' own texts may quote what the server sent, so they never appear."""

from __future__ import annotations

import re
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
_REFUSED = "; the server does not accept the client certificate, see client_certificate"
_CERTIFICATE_ALERTS: Mapping[str, str] = {
    "ALERT_CERTIFICATE_REQUIRED": "; the server requires a client certificate, see client_certificate",
    "ALERT_HANDSHAKE_FAILURE": "; the server may require a client certificate, see client_certificate",
    "ALERT_UNKNOWN_CA": _REFUSED,
    "ALERT_BAD_CERTIFICATE": _REFUSED,
    "ALERT_UNSUPPORTED_CERTIFICATE": _REFUSED,
    "ALERT_CERTIFICATE_REVOKED": _REFUSED,
    "ALERT_CERTIFICATE_EXPIRED": _REFUSED,
    "ALERT_CERTIFICATE_UNKNOWN": _REFUSED,
}
_STATUS = re.compile("[1-5][0-9]{2}(?= |$)")


def http_exception_reason(error: Exception) -> str:
    if isinstance(error, httpcore.RemoteProtocolError):
        text = str(error)
        found = (reason for beginning, reason in _BROKEN_RULES.items() if text.startswith(beginning))
        return next(found, "the response is not valid HTTP")
    cause = error.args[0] if error.args else None  # where httpcore keeps the original error
    if isinstance(error, httpcore.ProxyError):
        return _proxy_failure_reason(cause)
    if isinstance(cause, OSError) and not isinstance(error, httpcore.TimeoutException):
        return network_failure_reason(cause) + _client_certificate_hint(cause)
    if isinstance(cause, ValueError):
        return "the address has no valid host"
    return next((reason for kind, reason in _OTHERS.items() if isinstance(error, kind)), "the connection failed")


def _proxy_failure_reason(cause: object) -> str:
    if isinstance(cause, OSError):
        return f"the proxy cannot be reached: {network_failure_reason(cause)}"
    status = _STATUS.match(str(cause))
    if status is None:
        return "the proxy did not connect to the server"
    hint = "; see proxy_user and proxy_password" if status[0] == "407" else ""
    return f"the proxy refused to connect to the server: HTTP {status[0]}{hint}"


def is_client_certificate_refused(error: Exception) -> bool:
    """Return whether the server refuses the client certificate, which with TLS 1.3 follows the handshake.

    No request is processed before that (RFC 8446 section 4.4.2.4).
    """
    cause = error.args[0] if error.args else None
    return isinstance(cause, ssl.SSLError) and bool(_client_certificate_hint(cause))


def _client_certificate_hint(error: OSError) -> str:
    reason = str(getattr(error, "reason", ""))
    return next((hint for alert, hint in _CERTIFICATE_ALERTS.items() if alert in reason), "")


def network_failure_reason(error: OSError) -> str:
    """Return the text of the operating system or the TLS library, which never quotes the server."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"the TLS handshake failed: {getattr(error, 'reason', None) or 'the connection ended'}"
    if isinstance(error, TimeoutError) and not error.strerror:
        return "timed out"
    return error.strerror.lower() if error.strerror else "the connection failed"
