"""Reads a paged JSON API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode, urljoin, urlsplit

from crossdock import exact_json
from crossdock.addresses import without_user
from crossdock.errors import ConfigError, RefusedError, RemoteError, UnauthorizedError, UnavailableError
from crossdock.redaction import redacted
from crossdock.sources.link_header import next_target
from crossdock.sources.source_context import SourceContext
from crossdock.transport.connector_http_client import httpx_client, unavailable_errors
from crossdock.transport.httpcore_client import UNQUOTED

if TYPE_CHECKING:
    import httpx

ATTEMPTS = 5
MAX_PAUSE_S = 60.0
MAX_PAGES = 100_000
MAX_ADDRESS = 8_000  # characters; RFC 9110 section 4.1 recommends to support at least as many


@dataclass(frozen=True, slots=True)
class Page:
    """One page: *body* is JSON with exact numbers, *address* where it was read.

    In *address*, request parameters that the server repeats in its links are ``***``, and credentials ``(secret)``.
    """

    address: str
    body: Any


class HttpSource(AbstractContextManager["HttpSource"]):
    """A JSON API to read from.

    Args:
        headers: Sent with every request, including credentials.
        run: Where the run is executed; ``ctx.run``.
        timeout_s: Longest silence of the server.
        auth: Authorizes requests.
        transport: Replaces the network in tests, such as an `httpx.MockTransport`; default: that of *run*.

    Raises:
        ConfigError: If *base_url* contains a user or a password, since addresses are shown.
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
        try:
            without_user(base_url)
        except ValueError as error:
            raise ConfigError(f"the base URL {error}") from None
        self._base_url, self._run = base_url.rstrip("/"), run
        self._credentials = _words(headers.values())
        self._before_auth, self._added_by_auth = set[str](), set[str]()
        self._client = httpx_client(
            self._base_url,
            headers=headers,
            auth=auth,
            timeout_s=timeout_s,
            on_request=self._note_auth,
            transport=transport or run.transport,
        )

    def pages(
        self, path: str, params: Mapping[str, str], next_page: Callable[[Page], str | None] | None = None
    ) -> Iterator[Page]:
        """Pages starting at *path*.

        Args:
            next_page: Returns the next page's address, relative or absolute, or None after the last page. By default
                it is taken from the ``Link`` header (RFC 8288). An empty page does not end the pages.

        Raises:
            UnauthorizedError: If the credentials are refused.
            UnavailableError: If a page failed five times.
            RefusedError: If a page is not JSON, or the next page's address is invalid, on another host or a loop.
        """
        address = urljoin(f"{self._base_url}/", path.lstrip("/"))
        query, seen = f"?{urlencode(params)}" if params else "", set[int]()
        for _ in range(MAX_PAGES):
            shown = self._redacted(_masked(address, params))
            response = self._get(address + query, shown)
            page = Page(self._redacted(shown), _json(shown, response))
            yield page
            following = next_page(page) if next_page else _linked(page, response)
            if following is None:
                return
            address, query = _joined(page, address, following), ""
            if urlsplit(address)[:2] != urlsplit(self._base_url)[:2]:
                hint = "The credentials would be sent to another host."
                raise RefusedError("the next page is on another host", where=page.address, hint=hint)
            if hash(address) in seen:  # hashes, since the addresses could take a gigabyte
                raise RefusedError("pagination loop", where=page.address)
            seen.add(hash(address))
        raise RefusedError(f"more than {MAX_PAGES} pages", where=page.address)

    def _get(self, address: str, shown: str) -> httpx.Response:
        reason = ""
        for attempt in range(1, ATTEMPTS + 1):
            pause_s = 0.5 * 2.0**attempt
            try:
                response = self._send(address)
            except UnavailableError as error:
                reason = self._redacted(error.message)
            else:
                if response.status_code == 200:
                    return response
                reason = f"HTTP {response.status_code}"
                if response.status_code in {401, 403}:
                    raise UnauthorizedError("refused the credentials", where=shown)
                if response.status_code != 429 and response.status_code < 500:
                    raise RemoteError(f"responded with {reason}", where=shown)
                pause_s = max(pause_s, _retry_after_s(response))
            if attempt < ATTEMPTS:
                self._run.clock.sleep(min(MAX_PAUSE_S, pause_s))
        raise UnavailableError(f"failed {ATTEMPTS} times; last error: {reason}", where=shown)

    def _send(self, address: str) -> httpx.Response:
        with unavailable_errors():
            request = self._client.build_request("GET", quote(address, safe=UNQUOTED))
            self._before_auth, self._added_by_auth = _values(request), set()
            return self._client.send(request)

    def _note_auth(self, request: httpx.Request) -> None:
        self._added_by_auth |= _words(_values(request) - self._before_auth)

    def _redacted(self, text: str) -> str:
        return redacted(text, self._credentials | self._added_by_auth)

    def __exit__(self, *_: object) -> None:
        self._client.close()


def _values(request: httpx.Request) -> set[str]:
    return {value for _, value in [*request.headers.items(), *request.url.params.multi_items()]}


def _words(values: Iterable[str]) -> set[str]:
    return {word for value in values for word in value.split()}


def _retry_after_s(response: httpx.Response) -> float:
    seconds = response.headers.get("retry-after", "")
    return float(seconds) if seconds.isascii() and seconds.isdecimal() else 0.0


def _json(address: str, response: httpx.Response) -> Any:
    try:
        return exact_json.loads(response.content)
    except ValueError as error:
        raise RefusedError(f"cannot be read as JSON: {error}", where=address) from None


def _masked(address: str, params: Mapping[str, str]) -> str:
    sent = set(params.items())
    members = parse_qsl(urlsplit(address).query, keep_blank_values=True)
    if sent.isdisjoint(members):
        return address
    masked = [(name, "***" if (name, value) in sent else value) for name, value in members]
    return urlsplit(address)._replace(query=urlencode(masked, safe="*")).geturl()


def _linked(page: Page, response: httpx.Response) -> str | None:
    try:
        return next_target(response.headers.get("link", ""))
    except ValueError as error:
        raise RefusedError(str(error), where=page.address) from None


def _joined(page: Page, address: str, following: str) -> str:
    if len(following) > MAX_ADDRESS:
        reason = f"the address of the next page has more than {MAX_ADDRESS:,} characters"
        raise RefusedError(reason, where=page.address)
    try:
        return urljoin(address, following)
    except ValueError:  # its text would quote the address
        raise RefusedError("the link to the next page is not a URL", where=page.address) from None
