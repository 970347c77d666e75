"""Recording of real answers, without secrets and personal data, for tests that replay them."""

from __future__ import annotations

import base64
import binascii
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import httpx

from crossdock.errors import ConfigError, RefusedError
from crossdock.testing.recorded_exchange import RecordedExchange, body_as_file_members
from crossdock.testing.sensitive_data import PersonalMembers, SensitiveDataRemover, is_secret_name
from crossdock.values.safe_local_files import read_regular_file_within_limit

MAX_BYTES = 64 << 20
_CHALLENGES = frozenset({"www-authenticate", "proxy-authenticate", "authentication-info"})
_OF_TRANSFER = frozenset({"content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive"})
_SLUG = re.compile(r"[^A-Za-z0-9]+")
_LONGEST_SLUG = 40


@contextmanager
def record(
    folder: Path | str, transport: httpx.BaseTransport, *, personal: Iterable[str] = (), secrets: Iterable[str] = ()
) -> Iterator[httpx.BaseTransport]:
    """Record the requests to *transport* and their answers. The folder is written when the context ends.

    ``crossdock try CONNECTION.STREAM --record FOLDER`` does so for a stream of a config.

    Args:
        folder: A new folder.
        personal: Names of personal members and parameters, in addition to the usual ones.
        secrets: Values that must not be recorded, in addition to those of headers and members with names of secrets.

    Raises:
        ConfigError: If the folder exists and is not empty, or cannot be written.
        RefusedError: If the answers exceed 64 MiB.
    """
    recording = Recording(folder, personal=personal, secrets=secrets)
    try:
        yield recording.recording_transport(transport)
    finally:
        recording.clean_and_write()


class Recording:
    """Exchanges in memory that are written to a folder, with a file for each.

    Personal data can be in an answer long before a member names it as such, so nothing is written before the end.
    For the arguments and errors see `record`.

    Attributes:
        request_count: The number of requests.
        replaced: The number of different values that were replaced.
    """

    def __init__(self, folder: Path | str, *, personal: Iterable[str] = (), secrets: Iterable[str] = ()) -> None:
        self.folder, self.replaced = Path(folder), 0
        self._members = PersonalMembers(personal)
        self._texts = SensitiveDataRemover(self._members)
        self._exchanges, self._bytes = list[RecordedExchange](), 0
        self._lock = threading.Lock()
        for secret in secrets:
            self._texts.add_credential(secret)
        try:
            if self.folder.exists() and any(self.folder.iterdir()):
                raise ConfigError(
                    "exists already",
                    where=str(folder),
                    hint="name a new folder, or remove this one",
                    code="file_exists",
                )
        except OSError as error:
            raise ConfigError(
                f"cannot be written: {error.strerror}", where=str(folder), code="file_unwritable"
            ) from error

    @property
    def request_count(self) -> int:
        return len(self._exchanges)

    def recording_transport(self, transport: httpx.BaseTransport) -> httpx.BaseTransport:
        """Return a transport that records *transport*."""
        return _RecordingTransport(transport, self)

    def learn_personal_paths(self, item: Any, members: Mapping[str, Any]) -> None:
        """Learn from the record *item* which of its members are in the personal *members* of its draft."""
        self._members.learn_personal_paths(item, members)

    def add(self, request: httpx.Request, response: httpx.Response, content: bytes) -> None:
        """Keep an exchange.

        Args:
            content: The body of *response*, unpacked.

        Raises:
            RefusedError: If the recording becomes too large.
        """
        url = request.url
        exchange = RecordedExchange(
            request.method,
            str(url.copy_with(query=None, fragment=None, userinfo=b"")),
            list(url.params.multi_items()),
            body_as_file_members(request.read(), request.headers.get("content-type", "")),
            response.status_code,
            [(name, value) for name, value in response.headers.multi_items() if _is_recorded_header(name)],
            body_as_file_members(content, response.headers.get("content-type", "")),
        )
        with self._lock:
            for value in _credentials_in_headers(request.headers):
                self._texts.add_credential(value)
            for name, value in response.headers.multi_items():
                if name == "set-cookie":
                    self._texts.add_credential(value.partition(";")[0].partition("=")[2])
            self._bytes += len(content)
            if self._bytes > MAX_BYTES:
                hint = "read fewer records, or smaller pages"
                raise RefusedError(
                    f"the recording exceeds {MAX_BYTES >> 20} MiB",
                    where=str(self.folder),
                    hint=hint,
                    code="recording_unusable",
                )
            self._exchanges.append(exchange)

    def clean_and_write(self) -> None:
        """Write the files, if there was a request.

        Raises:
            ConfigError: If they cannot be written.
        """
        for exchange in self._exchanges:
            self._cleaned_exchange(exchange)  # collects
        self._texts.collecting = False
        cleaned = [self._cleaned_exchange(exchange) for exchange in self._exchanges]
        self.replaced = len(self._texts.replaced)
        try:
            for number, exchange in enumerate(cleaned, 1):
                self.folder.mkdir(parents=True, exist_ok=True)
                slug = _SLUG.sub("-", exchange.url_path).strip("-").lower()[:_LONGEST_SLUG].strip("-") or "root"
                name = f"{number:04}-{exchange.method.lower()}-{slug}.json"
                (self.folder / name).write_text(exchange.file_text(), encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"cannot be written: {error.strerror}", where=str(self.folder), code="file_unwritable"
            ) from error

    def _cleaned_exchange(self, exchange: RecordedExchange) -> RecordedExchange:
        texts = self._texts
        segments = exchange.url_path.split("/")
        path = "/".join(quote(texts.clean_text(unquote(segment)), safe="()@:!$&'*+,;=~") for segment in segments)
        return replace(
            exchange,
            url=f"{exchange.origin}{path}",
            params=texts.clean_parameters(exchange.params),
            body=self._cleaned_body(exchange.body),
            headers=[(name, texts.clean_text(value)) for name, value in exchange.headers],
            answer=self._cleaned_body(exchange.answer),
        )

    def _cleaned_body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if "form" in body:
            return {"form": [*map(list, self._texts.clean_parameters(body["form"]))]}
        return {name: inner if name == "left_out" else self._texts.clean_json(inner) for name, inner in body.items()}


class _RecordingTransport(httpx.BaseTransport):
    def __init__(self, transport: httpx.BaseTransport, recording: Recording) -> None:
        self._transport, self._recording = transport, recording

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        response = self._transport.handle_request(request)
        content = response.read()
        sink = request.extensions.get("sink")
        if sink is not None and not content and response.status_code == 200:
            sink.flush()
            content = _read_downloaded_file(Path(sink.name))
        self._recording.add(request, response, content)
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_TRANSFER]
        return httpx.Response(
            response.status_code, headers=headers, content=b"" if sink is not None and not response.content else content
        )

    def close(self) -> None:
        self._transport.close()


def _read_downloaded_file(path: Path) -> bytes:
    try:
        return read_regular_file_within_limit(path, MAX_BYTES)
    except OSError as error:
        raise RefusedError(
            f"the download cannot be recorded: {error.strerror}", where=path.name, code="file_unwritable"
        ) from None


def _is_recorded_header(name: str) -> bool:
    return name not in _OF_TRANSFER | _CHALLENGES and not is_secret_name(name)


def _credentials_in_headers(headers: httpx.Headers) -> Iterator[str]:
    """Yield the words of a request's headers that usually have a credential, also those in Base64."""
    for name, value in headers.multi_items():
        if not is_secret_name(name):
            continue
        words = re.split(r"[\s,;]+", value)
        yield from words
        for word in words:
            yield word.partition("=")[2].strip('"')
            try:
                user, _, password = base64.b64decode(word, validate=True).decode().partition(":")
            except (binascii.Error, ValueError):
                continue
            yield from (user, password)
