"""Reads a paged JSON API without a connector that declares it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crossdock.sources.api import Api
from crossdock.sources.api_client import ApiClient
from crossdock.sources.api_request import ApiAnswer, ApiRequest, Params
from crossdock.sources.pagination import LinkHeader, Paginator
from crossdock.sources.source_context import SourceContext

if TYPE_CHECKING:
    import httpx


class HttpSource(AbstractContextManager["HttpSource"]):
    """A JSON API to read from. A connector that declares its `Api` uses ``ctx.api``, which streams share.

    Args:
        headers: Sent with every request, including credentials.
        run: Where the run is executed; ``ctx.run``.
        timeout_s: Longest silence of the server.
        auth: Authorizes requests.
        transport: Replaces the network in tests, such as an `httpx.MockTransport`; default: that of *run*.

    Raises:
        ConfigError: If *base_url* is not an address that `Api` takes.
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        run: SourceContext,
        *,
        timeout_s: float = 30.0,
        auth: httpx.Auth | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._api = ApiClient(Api(base_url, auth, headers, timeout_s=timeout_s, transport=transport), run)

    def pages(
        self, path: str, params: Params, next_page: Callable[[ApiAnswer], str | None] | None = None
    ) -> Iterator[ApiAnswer]:
        """Pages starting at *path*; see `ApiClient.pages`.

        Args:
            next_page: Returns the next page's address, relative or absolute, or None after the last page. By default
                it is taken from the ``Link`` header (RFC 8288).

        Raises:
            CrossdockError: As `ApiClient.pages`.
        """
        return self._api.pages(path, params, paginator=_NextPage(next_page) if next_page else LinkHeader())

    def __exit__(self, *_: object) -> None:
        self._api.close()


@dataclass(frozen=True)
class _NextPage(Paginator):
    of: Callable[[ApiAnswer], str | None]

    def following(self, request: ApiRequest, answer: ApiAnswer) -> ApiRequest | None:
        target = self.of(answer)
        return None if target is None else request.following(target)
