"""How the owner of an account gives access: in a browser (RFC 8252), or with a code for another device (RFC 8628).

The answer in the browser belongs to this attempt if it has its ``state``, and the code is of no use to others, because
its exchange needs the verifier of this attempt (RFC 7636).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from crossdock.errors import ConfigError, UnauthorizedError, UnavailableError
from crossdock.reading.sources.api_declaration import Api
from crossdock.reading.transport import oauth_messages
from crossdock.reading.transport.authorization_code_tokens import AuthorizationCodeAuth
from crossdock.reading.transport.connector_http_client import AnswerLimits, httpx_client, httpx_errors_as_unavailable
from crossdock.values.clock import Clock
from crossdock.values.web_address_checks import check_https_or_loopback_address

if TYPE_CHECKING:
    import httpx

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


def give_access_by_device_code(
    api: Api, auth: AuthorizationCodeAuth, clock: Clock, show: Callable[[str, str], None], within_s: float
) -> None:
    """Request a code, *show* the address and the code, and wait until the owner has entered it there."""
    response = _send_without_credentials(api, auth.device_request())
    given = oauth_messages.json_members(response.content)
    code, user_code = given.get("device_code"), given.get("user_code")
    address = given.get("verification_uri") or given.get(
        "verification_url"
    )  # the latter at Google, from before the RFC
    if response.status_code != 200 or not (oauth_messages.is_token(code) and user_code and address):
        reason = oauth_messages.refusal_text(response.status_code, given.get("error"))
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
        members = oauth_messages.json_members(response.content)
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
        httpx_client("", limits=limits, connection=api.connection, transport=api.transport) as client,
        httpx_errors_as_unavailable(),
    ):
        return client.send(request)
