"""Servers in threads: the receiver of webhooks and the health endpoints have one way to listen."""

from __future__ import annotations

import socket

from crossdock.errors import ConfigError
from crossdock.values.serving import http_server


def test_answers_are_sent_at_once() -> None:
    """The protocol of the listening socket is named; otherwise a refusal's body waits 40 ms for the client's ACK."""

    def refused(error: OSError) -> ConfigError:
        raise AssertionError(error)

    with http_server._open_listener("127.0.0.1", 0, refused) as listener:
        assert listener.proto == socket.IPPROTO_TCP
