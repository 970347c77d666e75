"""How the owner of an account gives access: in a browser (RFC 8252), or with a code for another device (RFC 8628).

The vendor sends the browser to a page on this machine (RFC 8252 section 7.3). The answer belongs to this attempt if it
has its ``state``, and the code is of no use to others, because its exchange needs the verifier of this attempt
(RFC 7636).
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from crossdock.errors import ConfigError, UnauthorizedError, UnavailableError
from crossdock.reading.sources.api_declaration import Api
from crossdock.reading.transport import oauth_messages
from crossdock.reading.transport.authorization_code_tokens import AuthorizationCodeAuth
from crossdock.reading.transport.connector_http_client import (
    AnswerLimits,
    httpx_errors_as_unavailable,
    make_httpx_client_with_limits,
)
from crossdock.values.clock import Clock
from crossdock.values.serving import AllowedHostNames, ConnectionLimits, ServerLimits, problem_response, serve_in_thread
from crossdock.values.web_address_checks import check_https_or_loopback_address, is_loopback

if TYPE_CHECKING:
    import httpx

PATH = "/callback"
_CLIENTS = ConnectionLimits(header_s=5.0, body_s=5.0, answer_s=5.0, connections=8)
_LIMITS = ServerLimits(clients=_CLIENTS, accepted_at_once=8, queued=16, stops_within_s=2)
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def is_loopback_redirect(redirect_url: str) -> bool:
    """Return whether the browser's answer can be taken here, rather than by a person who copies the address."""
    parts = urlsplit(redirect_url)
    return parts.scheme == "http" and is_loopback(parts.hostname or "")


class LoopbackRedirect:
    """Waits in `has_arrived_within` for an answer that *take* accepts. Other requests get a page and change nothing."""

    def __init__(self, redirect_url: str, path: str) -> None:
        self.url, self._path = redirect_url, path
        self.take: Callable[[str], bool] = lambda _: False
        self._taken, self._names = threading.Event(), AllowedHostNames((), "crossdock connect")

    def has_arrived_within(self, within_s: float) -> bool:
        """Return whether an answer came within so many seconds."""
        return self._taken.wait(within_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._response(scope)(scope, receive, send)

    def _response(self, scope: Scope) -> Response:
        if self._names.refusal_reason(scope):
            return problem_response(403, "Host or Origin is another site.")
        if (scope["method"], scope["path"]) != ("GET", self._path):
            return problem_response(404, "There is nothing here.")
        if self._taken.is_set():
            return _page(409, "An answer has arrived before. Only the first one counts.")
        if not self.take(scope["query_string"].decode("latin-1")):
            return _page(400, "This is not the answer that crossdock waits for. Open the address that it shows.")
        self._taken.set()
        return _page(200, "The answer has arrived. crossdock says in the terminal whether the connection works now.")


@contextmanager
def listening_for_redirect(redirect_url: str | None = None) -> Iterator[LoopbackRedirect]:
    """Listen at the port and the path of *redirect_url*, by default at a free port."""
    parts = urlsplit(redirect_url or f"http://127.0.0.1:0{PATH}")
    served, port = LoopbackRedirect(redirect_url or "", parts.path or "/"), parts.port or (80 if redirect_url else 0)
    host = "::1" if parts.hostname == "::1" else "127.0.0.1"

    def refused(error: OSError) -> ConfigError:
        hint = "stop the process that listens there, or use another redirect_url that the vendor knows"
        return ConfigError(
            f"cannot wait for the browser: {error.strerror}", where=f"{host}:{port}", hint=hint, code="port_unavailable"
        )

    with serve_in_thread(served, _LIMITS, host, port, name="connect", address_error=refused) as base_url:
        served.url = redirect_url or f"{base_url}{PATH}"
        yield served


def _page(status: int, text: str) -> Response:
    page = f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>crossdock</title><p>{text}</p></html>"
    return HTMLResponse(page, status, _HEADERS)


_REFUSALS = frozenset({
    "invalid_request", "unauthorized_client", "access_denied", "unsupported_response_type", "invalid_scope",
    "server_error", "temporarily_unavailable",  # RFC 6749 section 4.1.2.1
})  # fmt: skip
_LONGEST_POLL_S = 60.0
_DEVICE_CODE_S, _POLL_S = 600.0, 5.0  # where the vendor does not say, RFC 8628 section 3.2


class BrowserConsentAttempt:
    """One attempt in a browser.

    Attributes:
        address: What the owner opens.
        answer: What the vendor answered, once `take_answer_if_state_matches` has returned True.
    """

    def __init__(self, api: Api, auth: AuthorizationCodeAuth, redirect_url: str) -> None:
        self._api, self._auth, self._redirect_url = api, auth, redirect_url
        self._state, self._verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(64)
        self.address = auth.authorization_address(redirect_url, self._state, self._verifier)
        self.answer: Mapping[str, str] | None = None

    def take_answer_if_state_matches(self, query: str) -> bool:
        """Take the answer in the query of an address. Return whether it belongs to this attempt."""
        members = parse_qs(query, keep_blank_values=True)
        states = members.get("state", [])
        if len(states) != 1 or not secrets.compare_digest(states[0].encode(), self._state.encode()):
            return False
        self.answer = {name: values[0] for name, values in members.items() if len(values) == 1}
        return True

    def take_answer_in_pasted_address(self, pasted: str) -> None:
        """Take the answer in the address that the browser ended at."""
        try:
            query = urlsplit(pasted.strip()).query
        except ValueError:
            query = ""
        if not self.take_answer_if_state_matches(query):
            hint = "copy all of the address that the browser shows after access was given, and begin again"
            raise ConfigError(
                "this address is not the answer to this attempt: its state is another",
                hint=hint,
                code="consent_refused",
            )

    def exchange_code_and_store_tokens(self) -> None:
        """Exchange the code of the answer for tokens, and store them."""
        assert self.answer is not None
        if "code" not in self.answer:
            error = self.answer.get("error")
            reason = f" ({error})" if error in _REFUSALS else ""
            said = "access was denied" if error == "access_denied" else "the vendor gave no access"
            raise UnauthorizedError(f"{said}{reason}; nothing was stored", code="consent_refused")
        request = self._auth.code_request(self.answer["code"], self._redirect_url, self._verifier)
        self._auth.store(_send_without_credentials(self._api, request))


def obtain_and_store_tokens_by_device_code(
    api: Api, auth: AuthorizationCodeAuth, clock: Clock, show: Callable[[str, str], None], within_s: float
) -> None:
    """Request a code, *show* the address and the code, and wait until the owner has entered it there."""
    response = _send_without_credentials(api, auth.device_request())
    given = oauth_messages.json_object_or_empty(response.content)
    code, user_code = given.get("device_code"), given.get("user_code")
    address = given.get("verification_uri") or given.get(
        "verification_url"
    )  # the latter at Google, from before the RFC
    if response.status_code != 200 or not (oauth_messages.is_valid_access_token(code) and user_code and address):
        reason = oauth_messages.token_refusal_text(response.status_code, given.get("error"))
        raise UnauthorizedError(
            f"the vendor gave no code for another device: {reason}", where=auth.device_url, code="consent_refused"
        )
    try:
        show(check_https_or_loopback_address(str(address)), str(user_code))
    except ValueError as error:
        raise UnauthorizedError(
            f"the vendor's address for the code {error}", where=auth.device_url, code="consent_refused"
        ) from None
    pause_s = _seconds_or_default(given.get("interval"), _POLL_S)
    until = clock.monotonic() + min(within_s, _seconds_or_default(given.get("expires_in"), _DEVICE_CODE_S))
    while clock.monotonic() < until:
        clock.sleep(pause_s)
        try:
            response = _send_without_credentials(api, auth.device_token_request(str(code)))
        except UnavailableError:
            pause_s = _longer_pause_after_failure(pause_s)
            continue
        members = oauth_messages.json_object_or_empty(response.content)
        match members.get("error"):
            case "authorization_pending":
                pass
            case "slow_down":
                pause_s += _POLL_S
            case "access_denied":
                raise UnauthorizedError("access was denied (access_denied); nothing was stored", code="consent_refused")
            case "expired_token":
                break
            case _ if auth.is_passing(response, members):
                pause_s = _longer_pause_after_failure(pause_s)
            case _:
                auth.store(response)
                return
    raise access_not_given_error(within_s)


def _longer_pause_after_failure(pause_s: float) -> float:
    """Return the pause after a request without an answer, or with one that is none of the vendor: section 3.5."""
    return max(pause_s, min(2 * pause_s, _LONGEST_POLL_S))


def access_not_given_error(within_s: float) -> UnavailableError:
    return UnavailableError(
        f"nobody gave access within {within_s:.0f} s; nothing was stored", hint="begin again", code="consent_refused"
    )


def _seconds_or_default(value: object, default: float) -> float:
    return float(value) if isinstance(value, int) and value > 0 else default


def _send_without_credentials(api: Api, request: httpx.Request) -> httpx.Response:
    """Send a request by the connection of *api*, such as its proxy, without its credentials."""
    limits = AnswerLimits(api.timeout_s, api.total_timeout_s, api.max_answer_bytes)
    with (
        make_httpx_client_with_limits("", limits=limits, connection=api.connection, transport=api.transport) as client,
        httpx_errors_as_unavailable(),
    ):
        return client.send(request)
