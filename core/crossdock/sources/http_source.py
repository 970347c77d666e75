"""Paged HTTP: reading JSON page by page, with patience but never for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from crossdock import exact_json
from crossdock.addresses import without_user
from crossdock.errors import ConfigError, RefusedError, RemoteError, UnauthorizedError, UnavailableError
from crossdock.redaction import redacted
from crossdock.sources.link_header import next_target
from crossdock.sources.source_context import SourceContext
from crossdock.transport.http_answers import Answer
from crossdock.transport.http_client import HttpClient

ATTEMPTS = 5
MAX_PAGES = 100_000
MAX_ADDRESS = 8_000  # characters; RFC 9110 section 4.1 asks everybody to support so many


@dataclass(frozen=True, slots=True)
class Page:
    """One answered page: *body* is JSON with exact numbers, *address* where it came from.

    What the server repeats of our parameters in its links is ``***`` in *address*, and ``(secret)`` of our headers.
    """

    address: str
    body: Any


class HttpSource(AbstractContextManager["HttpSource"]):
    """A JSON API to read from.

    Args:
        headers: Sent with every request, credentials among them.
        timeout_s: How long the server may be silent.
        place: Of the run.

    Raises:
        ConfigError: If a user or a password stands in *base_url*: addresses are shown.
    """

    def __init__(
        self, base_url: str, headers: Mapping[str, str], place: SourceContext, *, timeout_s: float = 30.0
    ) -> None:
        try:
            without_user(base_url)
        except ValueError as error:
            raise ConfigError(f"the base address {error}") from None
        self._base_url, self._place = base_url.rstrip("/"), place
        self._secrets = [word for value in headers.values() for word in value.split()]
        self._client = HttpClient(self._base_url, headers=headers, read_timeout_s=timeout_s)

    def pages(
        self, path: str, params: Mapping[str, str], next_page: Callable[[Page], str | None] | None = None
    ) -> Iterator[Page]:
        """Pages from *path* on, until there is no next one.

        Args:
            next_page: The next page's address, relative or whole, or None after the last; without it the ``Link``
                header tells (RFC 8288). An empty page with a next one is no end.

        Raises:
            UnauthorizedError: If our credentials are refused.
            UnavailableError: If a page failed five times.
            RefusedError: If a page is no JSON, or where it leads to cannot be read, is another host or is in a circle.
        """
        address, query, seen = urljoin(f"{self._base_url}/", path.lstrip("/")), dict(params), set[int]()
        for _ in range(MAX_PAGES):
            shown = redacted(_shown(address, params), self._secrets)
            answer = self._get(address, query, shown)
            page = Page(shown, self._json(shown, answer))
            yield page
            following = next_page(page) if next_page else _linked(page, answer)
            if following is None:
                return
            address, query = _joined(page, address, following), {}
            if urlsplit(address)[:2] != urlsplit(self._base_url)[:2]:
                raise RefusedError("the next page is elsewhere", where=page.address, hint="it would get our token")
            if hash(address) in seen:  # the addresses themselves could take a gigabyte
                raise RefusedError("the pages lead in a circle", where=page.address)
            seen.add(hash(address))
        raise RefusedError(f"more than {MAX_PAGES} pages", where=page.address)

    def _get(self, address: str, query: Mapping[str, str], shown: str) -> Answer:
        reason = ""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                answer = self._client.send("GET", address, params=query or None)
            except UnavailableError as error:
                reason = redacted(error.message, self._secrets)
            else:
                if answer.status == 200:
                    return answer
                reason = f"HTTP {answer.status}"
                if answer.status in {401, 403}:
                    raise UnauthorizedError("refuses our credentials", where=shown)
                if answer.status != 429 and answer.status < 500:
                    raise RemoteError(f"answered {reason}", where=shown)
            if attempt < ATTEMPTS:
                self._place.clock.sleep(min(60.0, 0.5 * 2.0**attempt))
        raise UnavailableError(f"failed {ATTEMPTS} times, at last with {reason}", where=shown)

    @staticmethod
    def _json(address: str, answer: Answer) -> Any:
        try:
            return exact_json.loads(answer.body)
        except ValueError as error:
            raise RefusedError(f"cannot be read as JSON: {error}", where=address) from None

    def __exit__(self, *_: object) -> None:
        self._client.close()


def _shown(address: str, params: Mapping[str, str]) -> str:
    sent = set(params.items())
    members = parse_qsl(urlsplit(address).query, keep_blank_values=True)
    if sent.isdisjoint(members):
        return address
    shown = [(name, "***" if (name, value) in sent else value) for name, value in members]
    return urlsplit(address)._replace(query=urlencode(shown, safe="*")).geturl()


def _linked(page: Page, answer: Answer) -> str | None:
    try:
        return next_target(answer.headers.get("link", ""))
    except ValueError as error:
        raise RefusedError(str(error), where=page.address) from None


def _joined(page: Page, address: str, following: str) -> str:
    if len(following) > MAX_ADDRESS:
        said = f"the address of the next page has more than {MAX_ADDRESS:,} characters"
        raise RefusedError(said, where=page.address)
    try:
        return urljoin(address, following)
    except ValueError:  # its text would quote the address
        raise RefusedError("the link to the next page is not an address", where=page.address) from None
