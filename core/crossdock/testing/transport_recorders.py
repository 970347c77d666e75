"""Transports for tests of HTTP connectors that pass requests on, and record them or the times in their answers."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime

import httpx

_INSTANT = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?")


class LatestTimeInAnswers(httpx.BaseTransport):
    """Passes requests to *network*.

    Attributes:
        latest: The latest time of an answer in ISO 8601; without an offset it counts as UTC. None before the first one.
    """

    def __init__(self, network: httpx.BaseTransport) -> None:
        self._network, self.latest = network, None

    latest: datetime | None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._network.handle_request(request)
        for found in _INSTANT.finditer(response.read()):
            with suppress(ValueError):  # no time of a calendar
                moment = datetime.fromisoformat(found[0].decode())
                moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
                self.latest = max(moment, self.latest or moment)
        return response


class RequestRecorder(httpx.BaseTransport):
    """Passes requests on to *transport*.

    Attributes:
        requests: Their methods, URLs and bodies.
        answers: The bodies of their answers; empty for one without an answer.
    """

    def __init__(self, transport: httpx.BaseTransport) -> None:
        self._transport = transport
        self.requests: list[tuple[str, str, bytes]] = []
        self.answers: list[bytes] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append((request.method, str(request.url), request.read()))
        self.answers.append(b"")
        response = self._transport.handle_request(request)
        self.answers[-1] = response.read()
        return response
