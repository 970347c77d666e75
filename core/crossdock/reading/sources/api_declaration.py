"""The declaration of the HTTP API that a connection reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from crossdock.errors import ConfigError
from crossdock.pacing.answer_headers import Throttling, throttling_from_connector_result
from crossdock.pacing.rate_limit_and_retry_settings import LimitSettings, RateLimit
from crossdock.reading.transport.http_answers_and_errors import MAX_RESPONSE_BYTES, TOTAL_TIMEOUT_S
from crossdock.reading.transport.proxy_and_tls_settings import DIRECT, HttpConnection
from crossdock.values.author_code_errors import (
    AuthorCodeError,
    convert_author_errors,
    text_with_line_of_code,
    type_name_of_wrong_value,
)
from crossdock.values.web_address_checks import checked_base_url_without_slash

if TYPE_CHECKING:
    import httpx

    from crossdock.reading.sources.api_requests_and_answers import ApiAnswer
    from crossdock.reading.transport.http_answers_and_errors import RefusedCredentials

S = TypeVar("S")


def _predicate_for_object_with_method(method: str) -> Callable[[Any], bool]:
    return lambda value: value is None or (callable(getattr(value, method, None)) and not isinstance(value, type))


def _is_text_mapping(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(each, str) for pair in value.items() for each in pair)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_ERRORS = range(400, 600)
_NUMBERS = ("timeout_s", "total_timeout_s", "max_answer_bytes", "max_file_bytes", "total_download_s")
_TEXTS = _is_text_mapping, "a dict whose names and values are texts"
_ARGUMENTS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "auth": (_predicate_for_object_with_method("auth_flow"), "a credential such as BearerAuth(settings.token)"),
    **dict.fromkeys(("headers", "plain_headers", "params"), _TEXTS),
    "rate": (
        _predicate_for_object_with_method("estimate"),
        "a limit such as RateLimit(per_minute=120)",
    ),
    "throttled": (callable, "a function"),
    "failed": (callable, "a function"),
    "transport": (
        _predicate_for_object_with_method("handle_request"),
        "a transport such as httpx.MockTransport(handler)",
    ),
    **dict.fromkeys(_NUMBERS, (_is_number, "a number")),
}
"""How the arguments of `Api` are checked, and what each must be."""


def never(_: ApiAnswer) -> bool:
    return False


def no_failure_status(_: ApiAnswer) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Api:
    """The HTTP API of one connection.

    Attributes:
        base_url: https, or http on this machine, without a user, a password or a query.
        headers: Sent with every request; may contain credentials.
        rate: The rate limit, as far as it is known. None for no configured one.
        throttled: Recognizes an answer by which the API limits the rate other than by 429, such as a 403: True, or
            the seconds until the next request, 0 to 900. After True, the wait is that of ``Retry-After`` or of a text
            such as ``retry after 1500 milliseconds``, if there is one. Any number, also 0, says that it is throttled.
        failed: Returns the status, 400 to 599, that an answer of success stands for if its body says that the request
            failed: after 503, a request of reading is sent again, and 422 is the refusal of a record by a target. None
            if it did not fail.
        timeout_s: Longest silence of the server.
        total_timeout_s: Limit from the start of a request to the last byte of its answer.
        max_answer_bytes: Limit for the body of an answer, before and after decompression.
        max_file_bytes: Limit for a file of `ApiClient.download`; `total_download_s` limits its time.
        download_hosts: Other hosts from which files may be downloaded, without credentials.
        connection: Proxy, trusted certificates and client certificate, such as `HttpSettings`; also for token requests
            and, without the client certificate, for files of other hosts.
        transport: Replaces the network in tests, such as an `httpx.MockTransport`.
        plain_headers: Further headers of every request, without credentials: errors may show their values.
        params: Query parameters of every request to `base_url`, also of a target, unless it has one of this name. They
            must not be credentials, since servers log addresses.

    Raises:
        ConfigError: If *base_url* is not such an address.
    """

    base_url: str
    auth: httpx.Auth | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    rate: LimitSettings = field(default_factory=RateLimit)
    throttled: Callable[[ApiAnswer], bool | float | Decimal | None] = never
    timeout_s: float = 30.0
    total_timeout_s: float = TOTAL_TIMEOUT_S
    max_answer_bytes: int = MAX_RESPONSE_BYTES
    max_file_bytes: int = 10 * 1024**3
    total_download_s: float = 3600.0
    download_hosts: tuple[str, ...] = ()
    connection: HttpConnection = DIRECT
    transport: httpx.BaseTransport | None = None
    plain_headers: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    failed: Callable[[ApiAnswer], int | None] = no_failure_status

    def __post_init__(self) -> None:
        if cast("LimitSettings | None", self.rate) is None:  # a setting that is left out
            object.__setattr__(self, "rate", RateLimit())
        for name, (is_right, expected) in _ARGUMENTS.items():
            if not is_right(given := getattr(self, name)):
                raise TypeError(f"{name} of Api is {type_name_of_wrong_value(given)} instead of {expected}")
        try:
            checked_base_url_without_slash(self.base_url)
        except ValueError as error:
            raise ConfigError(f"the base URL {error}", code="address_invalid") from None

    def throttling(self, answer: ApiAnswer) -> Throttling | None:
        """Return what `throttled` says about *answer*, or None. Raises AuthorCodeError for a value of another type."""
        said = self.throttled(answer)
        try:
            return throttling_from_connector_result(said)
        except TypeError:
            raise self._wrong_result_error("throttled", said, "True, False or a number of seconds") from None

    def status_of_failure(self, answer: ApiAnswer) -> int | None:
        """Return what `failed` says about *answer*. Raises AuthorCodeError for what is not a status of an error."""
        said: object = self.failed(answer)
        if said is None or (type(said) is int and said in _ERRORS):
            return said
        raise self._wrong_result_error("failed", said, "None or a status from 400 to 599")

    def _wrong_result_error(self, function: str, said: object, expected: str) -> AuthorCodeError:
        given = str(said) if type(said) in {int, bool} else type_name_of_wrong_value(said)
        what = f"returned {given} instead of {expected}{text_with_line_of_code(getattr(self, function), function)}"
        return AuthorCodeError(function, what, where=self.base_url)


def declared_api(
    declare: Callable[[S], Api],
    settings: S,
    connection: str,
    tokens: Path | None = None,
    refused: RefusedCredentials | None = None,
) -> Api:
    """Return the API that a connector declares. A failure is an error at the place of its code.

    Args:
        tokens: The file for tokens that a person gives access to, unless the connector names one.
        refused: What all that use the connection know of refusals.
    """
    from crossdock.reading.transport.authorization_code_tokens import (  # noqa: PLC0415  it imports httpx
        AuthorizationCodeAuth,
    )
    from crossdock.reading.transport.http_auth import TokenAuth  # noqa: PLC0415  it imports httpx

    with convert_author_errors("api", connection, code=declare, settings=settings):
        made: object = declare(settings)
    if not isinstance(made, Api):
        what = f"returned {type_name_of_wrong_value(made)} instead of an Api{text_with_line_of_code(declare, 'api')}"
        raise AuthorCodeError("api", what, where=connection)
    if isinstance(made.auth, AuthorizationCodeAuth):
        made.auth.keep(tokens, connection)
    if isinstance(made.auth, TokenAuth) and refused is not None:
        made.auth.refused_before = refused
    return made
