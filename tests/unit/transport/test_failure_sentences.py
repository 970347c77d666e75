"""Sentences about failed connections."""

from __future__ import annotations

import errno
import os
import ssl
import zlib

import httpcore
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.reading.transport.failure_sentences import (
    AMBIGUOUS,
    NOT_SENT,
    http_exception_reason,
    network_failure_reason,
)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (httpcore.ConnectTimeout(), "connecting timed out"),
        (httpcore.ReadTimeout(TimeoutError("canary")), "timed out"),
        (httpcore.WriteTimeout(), "timed out"),
        (httpcore.ConnectError(ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")), "connection refused"),
        (httpcore.ConnectError(ValueError("canary")), "the address has no valid host"),
        (httpcore.RemoteProtocolError("Server disconnected without sending a response."),
         "the server closed the connection without a response"),
        (httpcore.RemoteProtocolError("peer closed connection without sending complete message body"),
         "the connection closed in the middle of the response"),
        (httpcore.RemoteProtocolError("canary"), "the response is not valid HTTP"),
        (httpcore.LocalProtocolError("canary"), "the request is not valid HTTP"),
        (httpcore.UnsupportedProtocol("canary"), "the address is neither http nor https"),
        (httpcore.ReadError("canary"), "the connection failed"),
        (zlib.error("canary"), "the compressed response is damaged"),
    ],
    ids=repr,
)  # fmt: skip
def test_each_failure_of_http_has_a_sentence(error: Exception, reason: str) -> None:
    """It depends on the kind of failure."""
    assert http_exception_reason(error) == reason


@given(kind=st.sampled_from([*NOT_SENT, *AMBIGUOUS]), text=st.text(alphabet="XYZ", min_size=3))
def test_texts_of_the_library_are_not_quoted(kind: type[Exception], text: str) -> None:
    """They may contain what the server sent."""
    assert text not in http_exception_reason(kind(text))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH)), "no route to host"),
        (TimeoutError("canary"), "timed out"),
        (OSError("canary"), "the connection failed"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] canary"), "the TLS handshake failed: the connection ended"),
    ],
    ids=repr,
)
def test_errors_of_the_system_are_its_own_text(error: OSError, reason: str) -> None:
    """Texts without an error number come from elsewhere and are not shown."""
    assert network_failure_reason(error) == reason
