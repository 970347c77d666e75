"""Transports for tests of HTTP connectors that pass requests on.

They record requests or the times in answers, answer some requests with a fault, leave out of answers to GraphQL
requests what these do not select, or tell exceptions of an author's transport apart from those of the connector.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import httpx

from crossdock.errors import CrossdockError
from crossdock.testing.graphql_selection import GraphQLRequest
from crossdock.values import exact_json
from crossdock.values.author_code_errors import AuthorCodeError, masked_exception_text_with_place


class SelectedMembersTransport(httpx.BaseTransport):
    """Passes requests on, and leaves out of answers to GraphQL requests what they do not select.

    Attributes:
        left_out: Where answers have had such members.
    """

    def __init__(self, network: httpx.BaseTransport) -> None:
        self._network = network
        self.left_out: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        asked = GraphQLRequest.parse_body(request.read())
        response = self._network.handle_request(request)
        if asked is None:
            return response
        try:
            body = exact_json.loads(response.read())
        except ValueError:
            return response
        if not (lacking := asked.unselected_members(body)):
            return response
        self.left_out += (each for each in lacking if each not in self.left_out)
        headers = [(name, value) for name, value in response.headers.items() if name != "content-length"]
        content = exact_json.dumps(asked.answer_with_selected_members(body))
        return httpx.Response(response.status_code, headers=headers, content=content, extensions=response.extensions)


_HTML = "<html><body>Maintenance</body></html>"

FAULTY_ANSWERS: dict[str, Callable[[httpx.Response], httpx.Response | None]] = {
    "429": lambda _: httpx.Response(429, headers={"retry-after": "2"}),
    "500": lambda _: httpx.Response(500, text="internal error"),
    "503": lambda _: httpx.Response(503),
    "401": lambda _: httpx.Response(401, json={"error": "the token has expired"}),
    "403": lambda _: httpx.Response(403, json={"error": "missing scope"}),
    "404": lambda _: httpx.Response(404),
    "302": lambda _: httpx.Response(302, headers={"location": "https://other.example/"}),
    "HTML": lambda _: httpx.Response(200, html=_HTML),
    "malformed JSON": lambda answer: httpx.Response(
        200, content=answer.content[:-1], headers=_paging_and_retry_headers(answer)
    ),
    "an empty body": lambda answer: httpx.Response(200, headers=_paging_and_retry_headers(answer)),
    "null": lambda answer: httpx.Response(200, text="null", headers=_paging_and_retry_headers(answer)),
    "another charset": lambda answer: httpx.Response(
        200, content=b'{"\xff": "\xe9"}', headers=_paging_and_retry_headers(answer)
    ),
    "a broken connection": lambda _: None,
}
"""The replacements of a proper answer, by name; None for a connection that breaks."""


def transport_with_faults(
    transport: httpx.BaseTransport, fault: str, first: int, times: int | None, echoed: Sequence[str] = ()
) -> httpx.BaseTransport:
    """Answer the requests to *transport* from number *first* (from 0) on with *fault*.

    Args:
        times: The number of such answers; None for all.
        echoed: Texts that answers of 400 and above repeat, as systems do with credentials.
    """
    seen = 0

    def answer(request: httpx.Request) -> httpx.Response:
        nonlocal seen
        number, seen = seen, seen + 1
        if number < first or (times is not None and number >= first + times):
            return transport.handle_request(request)
        made = FAULTY_ANSWERS[fault](transport.handle_request(request))
        if made is None:
            raise httpx.RemoteProtocolError(f"broken {' '.join(echoed)}", request=request)
        if made.status_code >= 400 and echoed:
            return httpx.Response(
                made.status_code, headers=_paging_and_retry_headers(made), json={"detail": list(echoed)}
            )
        return made

    return httpx.MockTransport(answer)


def _paging_and_retry_headers(answer: httpx.Response) -> dict[str, str]:
    return {name: answer.headers[name] for name in ("link", "retry-after") if name in answer.headers}


_NAME = "the transport of the test"


class AuthorsTransport(httpx.BaseTransport):
    """Passes requests to the transport of a test. What that raises names its file and line, and not the connector's.

    Faults of a network that it simulates, `httpx.TransportError`, and errors of crossdock stay as they are.

    Attributes:
        error: The first error, also if the connector suppresses it; None without one.
    """

    def __init__(self, own: httpx.BaseTransport) -> None:
        self._own = own
        self.error: AuthorCodeError | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        try:
            return self._own.handle_request(request)
        except httpx.TransportError:
            raise
        except CrossdockError:
            raise
        except Exception as error:
            code = getattr(self._own, "handler", self._own)
            what = f"raised {masked_exception_text_with_place(error, code, 'handle_request')}"
            where = f"{request.method} {request.url.path}"
            made = AuthorCodeError(_NAME, what, where=where)
            self.error = self.error or made
            raise made from error

    def close(self) -> None:
        self._own.close()


def first_error_of_authors_transport(transport: object) -> AuthorCodeError | None:
    """Return the first error of a test's transport, if *transport* is one."""
    return transport.error if isinstance(transport, AuthorsTransport) else None


_INSTANT = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?")


class LatestTimeRecorder(httpx.BaseTransport):
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
