"""A vendor whose refresh tokens are used once, with a page where people give access, and a list of two pages.

Facts: RFC 6749, RFC 7636, RFC 8628; reuse of a refresh token revokes its whole family, as Auth0 and Okta do; with
*grace*, the last one works until its successor is used, as at Xero and Shopify.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any
from urllib.parse import parse_qs, urlencode

from tests.partners.partner_server import PartnerAnswer, PartnerRequest

CLIENT = "app-id", "canary-client-secret"
_PAGES = 2


class TokenVendor:
    """A `Partner`.

    Attributes:
        grace: Whether the last refresh token works until its successor is used.
        denies: Whether people deny access.
        pending: How many times a device must ask before the person has entered the code.
        expires_after_page: Access tokens end after each answer with this page.
        forms: The requests for tokens.
        refusal_status: Of answers to a refresh token that is not accepted; some vendors say 200.
        rotations: How many refresh tokens were replaced.
        reused: Whether a refresh token was used twice.
        keeps: Whether refresh tokens stay the same, and answers to them have none.
        refresh_prefix: How the next refresh tokens begin.
        ended: The answer to an access token that has ended.
        before_rotation, after_rotation: Called around it, before the answer is sent.
    """

    def __init__(self, *, grace: bool = False) -> None:
        self.effects: list[dict[str, Any]] = []
        self.grace, self.denies, self.pending, self.expires_after_page = grace, False, 0, 0
        self.forms: list[dict[str, str]] = []
        self.rotations, self.reused, self.life_s, self.refusal_status = 0, False, 3600, 400
        self.keeps, self.refresh_prefix = False, "canary-refresh-"
        self.ended = PartnerAnswer(401, {"error": "the token has ended"})
        self.before_rotation: Callable[[], None] = lambda: None
        self.after_rotation: Callable[[], None] = lambda: None
        self._access, self._refresh, self._previous = "", "", ""
        self._codes: dict[str, dict[str, str]] = {}
        self._numbers = count(1)

    def throttled(self) -> PartnerAnswer:
        return PartnerAnswer(429)

    def expire(self) -> None:
        """The access token ends."""
        self._access = ""

    def revoke(self) -> None:
        """The person withdraws access."""
        self._access = self._refresh = self._previous = ""

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        match request.method, request.path:
            case "GET", "/authorize":
                return self._authorized(request)
            case "POST", "/token":
                return self._token(request)
            case "POST", "/device":
                return PartnerAnswer(200, self._device())
            case "GET", "/items":
                return self._items(request)
        return PartnerAnswer(404, {"error": "not found"})

    def _authorized(self, request: PartnerRequest) -> PartnerAnswer:
        asked = {name: values[0] for name, values in request.params.items()}
        assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT[0])
        if self.denies:
            answer = {"error": "access_denied", "error_description": "canary-description"}
        else:
            answer = {"code": f"canary-code-{next(self._numbers)}"}
            self._codes[answer["code"]] = asked
        query = urlencode(answer | {"state": asked["state"]})
        return PartnerAnswer(302, None, {"location": f"{asked['redirect_uri']}?{query}"})

    def _device(self) -> Mapping[str, Any]:
        return {
            "device_code": "canary-device",
            "user_code": "WDJB-MJHT",
            "verification_uri": "https://vendor.example/device",
            "interval": 1,
            "expires_in": 600,
        }

    def _token(self, request: PartnerRequest) -> PartnerAnswer:
        form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        self.forms.append(form)
        sent = b64decode(request.headers.get("authorization", "Basic ").removeprefix("Basic ")).decode()
        if sent != ":".join(CLIENT):
            return PartnerAnswer(401, {"error": "invalid_client"})
        match form["grant_type"]:
            case "authorization_code":
                return self._first(form)
            case "refresh_token":
                return self._rotated(form["refresh_token"])
        if self.denies:
            return PartnerAnswer(400, {"error": "access_denied"})
        if self.pending:
            self.pending -= 1
            return PartnerAnswer(400, {"error": "slow_down" if self.pending else "authorization_pending"})
        return self._granted()

    def _first(self, form: Mapping[str, str]) -> PartnerAnswer:
        asked = self._codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = urlsafe_b64encode(digest).decode().rstrip("=")
        given = (challenge, "S256", form["redirect_uri"])
        if asked is None or given != (asked["code_challenge"], asked["code_challenge_method"], asked["redirect_uri"]):
            return PartnerAnswer(400, {"error": "invalid_grant"})
        return self._granted()

    def _rotated(self, token: str) -> PartnerAnswer:
        self.before_rotation()
        if not token or token not in {self._refresh, self._previous if self.grace else self._refresh}:
            self.reused = self.reused or token == self._previous
            self.revoke()
            refusal = {"error": "invalid_grant", "error_description": f"canary: {token} was used"}
            return PartnerAnswer(self.refusal_status, refusal)
        if self.keeps:
            kept = self._refresh
            answer, self._refresh = self._granted(), kept
            return PartnerAnswer(200, {name: each for name, each in answer.body.items() if name != "refresh_token"})
        self.rotations, self._previous = self.rotations + 1, token
        answer = self._granted()
        self.after_rotation()
        return answer

    def _granted(self) -> PartnerAnswer:
        number = next(self._numbers)
        self._access, self._refresh = f"canary-access-{number}", f"{self.refresh_prefix}{number}"
        tokens = {"access_token": self._access, "refresh_token": self._refresh, "expires_in": self.life_s}
        return PartnerAnswer(200, tokens)

    def _items(self, request: PartnerRequest) -> PartnerAnswer:
        if not self._access or request.headers.get("authorization") != f"Bearer {self._access}":
            return self.ended
        page = int(request.param("page", "1"))
        if page == self.expires_after_page:
            self.expire()
        items = [{"id": f"{page}-{number}"} for number in range(3)]
        return PartnerAnswer(200, {"items": items, "next": page + 1 if page < _PAGES else None})
