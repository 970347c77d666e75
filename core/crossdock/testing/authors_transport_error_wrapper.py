"""The transport that an author's test gives, whose own exceptions are told apart from those of the connector."""

from __future__ import annotations

import httpx

from crossdock.errors import CrossdockError
from crossdock.values.author_code_errors import AuthorCodeError, described_exception

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
            what = f"raised {described_exception(error, getattr(self._own, 'handler', self._own), 'handle_request')}"
            where = f"{request.method} {request.url.path}"
            made = AuthorCodeError(_NAME, what, where=where)
            self.error = self.error or made
            raise made from error

    def close(self) -> None:
        self._own.close()


def first_error_of_authors_transport(transport: object) -> AuthorCodeError | None:
    """Return the first error of a test's transport, if *transport* is one."""
    return transport.error if isinstance(transport, AuthorsTransport) else None
