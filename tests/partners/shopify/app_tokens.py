"""What Shopify grants to an app by its client id and secret, at ``/admin/oauth/access_token``.

Sources: shopify.dev/docs/apps/build/authentication-authorization/client-credentials-grant, access-tokens/
offline-access-tokens, and the changelog of August 28, 2026: a refresh token that was used works until its replacement
is used, for up to 30 days. Refusals are pages for people, as developers have quoted them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Literal
from urllib.parse import parse_qs

from tests.partners.partner_server import PartnerAnswer, PartnerRequest

PATH = "/admin/oauth/access_token"
DAY, HOUR, RECOVERY = timedelta(seconds=86_399), timedelta(hours=1), timedelta(days=30)
_TEXTS = {
    "app_not_installed": "The application is not installed on this shop.",
    "shop_not_permitted": "Client credentials cannot be performed on this shop.",
    "application_cannot_be_found": "Your app couldn't be found.",
    "invalid_client": "Client authentication failed.",
    "invalid_grant": "The refresh token is invalid.",
    "unsupported_grant_type": "This grant type is not supported.",
}
Refusal = Literal["app_not_installed", "shop_not_permitted"]


@dataclass
class AppTokens:
    """The tokens of one app in one shop.

    Attributes:
        refusing: Why Shopify grants no token.
        code: Of the merchant's approval, until it is used.
        granted: The number of tokens so far.
    """

    now: Callable[[], datetime]
    client_id: str = "app-id"
    client_secret: str = "shpss_fake"
    refusing: Refusal | None = None
    code: str | None = None
    granted: int = 0
    _until: dict[str, datetime] = field(default_factory=dict)
    _refresh: str = ""
    _previous: tuple[str, datetime] = ("", datetime.min.replace(tzinfo=UTC))
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def accepts(self, token: str) -> bool:
        return token in self._until and self.now() < self._until[token]

    def expire(self) -> None:
        """All access tokens end now."""
        self._until.clear()

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        refusal = self._refusal(form)
        return _refused(refusal) if refusal else self._answer(form)

    def _refusal(self, form: dict[str, str]) -> str | None:
        if form.get("client_id") != self.client_id:
            return "application_cannot_be_found"
        return "invalid_client" if form.get("client_secret") != self.client_secret else self.refusing

    def _answer(self, form: dict[str, str]) -> PartnerAnswer:
        match form.get("grant_type"):
            case "client_credentials":
                return self._grant(DAY, offline=False)
            case "refresh_token":
                return self._refreshed(form.get("refresh_token", ""))
            case None | "authorization_code" if "code" in form:
                return self._approved(form)
        return _refused("unsupported_grant_type")

    def _approved(self, form: dict[str, str]) -> PartnerAnswer:
        code, self.code = self.code, None
        if form["code"] != code:
            return _refused("invalid_grant")
        assert form.get("expiring") == "1"
        return self._grant(HOUR, offline=True)

    def _refreshed(self, given: str) -> PartnerAnswer:
        previous, used_at = self._previous
        if given == self._refresh:
            self._previous = (given, self.now())
        elif given != previous or self.now() > used_at + RECOVERY:
            return _refused("invalid_grant")
        return self._grant(HOUR, offline=True)

    def _grant(self, life: timedelta, *, offline: bool) -> PartnerAnswer:
        self.granted += 1
        token = f"shpat_granted-{next(self._numbers)}"
        self._until[token] = self.now() + life
        body = {"access_token": token, "scope": "read_orders", "expires_in": int(life.total_seconds())}
        if offline:
            self._refresh = f"shprt_granted-{next(self._numbers)}"
            body |= {"refresh_token": self._refresh, "refresh_token_expires_in": 7_776_000}
        return PartnerAnswer(200, body)


def _refused(code: str) -> PartnerAnswer:
    page = f"<!DOCTYPE html><html><head><title>Oauth error {code}: {_TEXTS[code]}</title></head></html>"
    return PartnerAnswer(400, page.encode(), {"content-type": "text/html; charset=utf-8"})
