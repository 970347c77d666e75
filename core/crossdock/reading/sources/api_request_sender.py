"""Sends the requests of one API, and removes its credentials from shown texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, quote_plus, urlencode

from crossdock.errors import ConfigError, CrossdockError
from crossdock.printable import mask_secrets
from crossdock.reading.sources import errors_in_api_answers
from crossdock.reading.sources.api_declaration import Api
from crossdock.reading.sources.api_requests_and_answers import ApiRequest, parameter_pairs
from crossdock.reading.transport.connector_http_client import (
    AnswerLimits,
    httpx_errors_as_delivery_errors,
    httpx_errors_as_unavailable,
    make_httpx_client_with_limits,
)
from crossdock.reading.transport.http_answers_and_errors import Answer, redacted_answer
from crossdock.reading.transport.http_auth import TimedAuth, TokenAuth
from crossdock.reading.transport.httpcore_client import UNQUOTED
from crossdock.values import exact_json
from crossdock.values.author_code_errors import (
    AUTH,
    AuthorCodeError,
    convert_author_errors,
    is_interruption_or_engine_error,
    masked_exception_text_with_place,
)
from crossdock.values.clock import Clock
from crossdock.values.config_base_types import secrets_in
from crossdock.values.json_paths import texts_within

if TYPE_CHECKING:
    import httpx

_JSON = {"content-type": "application/json", "accept": "application/json, application/problem+json"}
_HARMLESS = frozenset({"accept", "accept-encoding", "connection", "content-length", "content-type", "host"})


class ApiRequestSender:
    """Sends requests with the headers and credentials of *api*. `digest` is the hash of the last answer's body."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        transport: httpx.BaseTransport | None,
        recorded: Callable[[httpx.BaseTransport], httpx.BaseTransport] | None = None,
    ) -> None:
        self._api, self._transport, self._recorded = api, api.transport or transport, recorded
        self._credentials = _words_in_values(api.headers.values())
        self._before_auth, self._added_by_auth = set[str](), set[str]()
        self._has_left = False  # of what is delivered
        self.digest = 0
        self._sent = set[str]()  # by the author, in the last request that had any; those of following pages are links
        if isinstance(api.auth, TimedAuth):
            api.auth.clock = clock
        if isinstance(api.auth, TokenAuth):
            api.auth.message_of = partial(errors_in_api_answers.redacted_error_message_in_json, redacted=self.redacted)
        limits = AnswerLimits(api.timeout_s, api.total_timeout_s, api.max_answer_bytes)
        self._client = self._make_client(limits, authorized=True)

    def _make_client(self, limits: AnswerLimits, *, authorized: bool) -> httpx.Client:
        api = self._api
        return make_httpx_client_with_limits(
            api.base_url.rstrip("/"),
            headers={**api.plain_headers, **api.headers} if authorized else {},
            auth=api.auth if authorized else None,
            limits=limits,
            connection=api.connection if authorized else api.connection.anonymous(),
            on_request=self._record_auth_values,
            transport=self._transport,
            recorded=self._recorded,
        )

    def send(self, address: str, request: ApiRequest) -> Answer:
        """Send *request* and read the whole answer. Raises UnavailableError, after a time-out TimedOutError."""
        body: dict[str, Any] = {}
        headers = dict(request.headers)
        content = request.content
        if content is not None:
            body["content"] = exact_json.dumps(content)
            headers = self._headers_not_configured({"content-type": "application/json"}) | headers
        elif request.form is not None:
            body["data"] = dict(request.form)
        with httpx_errors_as_unavailable(self._client.base_url.host):
            query = request.query.replace("?", "&", 1) if "?" in address else request.query
            url = quote(self._with_configured_params(address + query), safe=UNQUOTED)
            made = self._client.build_request(request.method, url, headers=headers, **body)
            made.headers.setdefault("cache-control", "no-cache")  # asks caches for what the API has now, RFC 9111
            self._before_auth, self._added_by_auth = _header_and_query_values(made), set()
            sent = _texts_to_redact(request)
            self._sent = self._sent | sent if "?" in address else sent or self._sent
            answer = _answer_from_response(self._client.send(made))
            self.digest = hash(answer.body)
            return answer

    def send_operation_once(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        may_leave: Callable[[], bool] = lambda: True,
    ) -> Answer:
        """Send the bytes of an operation once, as `HttpClient.send` does. After UnauthorizedError, it was not sent."""
        self._has_left = False
        with self._auth_errors_as_author_errors(), httpx_errors_as_delivery_errors(self._client.base_url.host):
            address = quote(self._with_configured_params(self._api.base_url.rstrip("/") + path), safe=UNQUOTED)
            given = {**self._headers_not_configured(_JSON), **(headers or {})}
            extensions = {"may_leave": may_leave}
            made = self._client.build_request(method, address, headers=given, content=body, extensions=extensions)
            self._before_auth, self._added_by_auth = _header_and_query_values(made), set()
            return redacted_answer(_answer_from_response(self._client.send(made)), self.redacted)

    def _with_configured_params(self, address: str) -> str:
        """Add those parameters of the API that *address* lacks."""
        if not self._api.params:
            return address
        given = {name for name, _ in parse_qsl(address.partition("?")[2], keep_blank_values=True)}
        added = {name: value for name, value in self._api.params.items() if name not in given}
        return f"{address}{'&' if '?' in address else '?'}{urlencode(added)}" if added else address

    def _headers_not_configured(self, defaults: Mapping[str, str]) -> dict[str, str]:
        """Return those of *defaults* that the headers of the connection do not set."""
        own = {name.lower() for name in (*self._api.plain_headers, *self._api.headers)}
        return {name: value for name, value in defaults.items() if name not in own}

    @contextmanager
    def _auth_errors_as_author_errors(self) -> Iterator[None]:
        """Raise `AuthorCodeError` for an error of an `httpx.Auth` before the request is sent."""
        try:
            yield
        except CrossdockError:
            raise
        except BaseException as error:
            if self._has_left or is_interruption_or_engine_error(error):
                raise
            auth, settings = self._api.auth, self._api.connection
            what = f"raised {masked_exception_text_with_place(error, auth, 'auth_flow', settings=settings)}"
            raise AuthorCodeError(AUTH, what, where=self._api.base_url) from error

    def download(self, address: str, path: Path, *, authorized: bool) -> Answer:
        """Stream the file at *address* to *path*, which changes only when the whole file has arrived."""
        part = path.with_name(f"{path.name}.part")
        limits = AnswerLimits(self._api.timeout_s, self._api.total_download_s, self._api.max_file_bytes)
        client = self._make_client(limits, authorized=authorized)
        try:
            with client, part.open("wb") as sink, httpx_errors_as_unavailable():
                made = client.build_request("GET", quote(address, safe=UNQUOTED), extensions={"sink": sink})
                self._before_auth = _header_and_query_values(made)
                response = client.send(made)
                if response.status_code == 200 and response.content:  # of a transport that reads whole bodies
                    sink.write(response.content)
            if response.status_code == 200:
                part.replace(path)
                return Answer(200, {}, b"")
            return _answer_from_response(response)
        finally:
            with suppress(FileNotFoundError):
                part.unlink()

    def redacted(self, text: str) -> str:
        return mask_secrets(text, self._credentials | self._configured_secrets | self._added_by_auth | self._sent)

    @cached_property
    def _configured_secrets(self) -> set[str]:
        """The secrets of the connection's settings, including those that only token requests contain."""
        found = set[str]()
        for secret in secrets_in(self._api.connection):
            with suppress(ConfigError):  # one that cannot be read was not sent
                found |= _url_encoded_forms(secret.reveal())
        return found

    def close(self) -> None:
        with convert_author_errors("close", self._api.base_url, code=self._transport, settings=self._api.connection):
            self._client.close()

    def _record_auth_values(self, request: httpx.Request) -> None:
        self._added_by_auth |= _words_in_values(_header_and_query_values(request) - self._before_auth)
        self._has_left = self._has_left or "may_leave" in request.extensions  # else it is a request for a token


def _answer_from_response(response: httpx.Response) -> Answer:
    return Answer(
        response.status_code, {name.lower(): text for name, text in response.headers.items()}, response.content
    )


def _header_and_query_values(request: httpx.Request) -> set[str]:
    headers = {value for name, value in request.headers.items() if name.lower() not in _HARMLESS}
    return headers | {value for _, value in request.url.params.multi_items()}


def _texts_to_redact(request: ApiRequest) -> set[str]:
    sent = [value for _, value in parameter_pairs(request.params)]
    values = texts_within(
        [sent, request.json, dict(request.form or {}), dict(request.variables), dict(request.headers)]
    )
    return {written for text in values for written in _url_encoded_forms(text)}


def _url_encoded_forms(text: str) -> set[str]:
    return {text, quote(text, safe=""), quote_plus(text)}


def _words_in_values(values: Iterable[str]) -> set[str]:
    return {word for value in values for word in value.split()}
