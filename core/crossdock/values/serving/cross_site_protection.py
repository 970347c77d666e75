"""What protects a server from pages of other sites: the host names that it answers to, headers of pages, CSRF tokens.

A web page of another site can send requests to a server on this machine: directly, and as if it had the same origin
if its name resolves to 127.0.0.1 (DNS rebinding). The first is visible in Origin, or as an image or a frame in the
Fetch Metadata (https://www.w3.org/TR/fetch-metadata/), the second in Host. A form has a token, which can be used once.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import OrderedDict
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Literal
from urllib.parse import parse_qsl

from msgspec import Struct, field
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from crossdock.errors import ConfigError
from crossdock.values.serving.request_body_limits import media_type, read_body_cut_if_longer
from crossdock.values.web_address_checks import is_loopback

FIELD = "csrf_token"

_MEDIA_TYPE = "application/x-www-form-urlencoded"
_MAX_BODY_BYTES = 64 << 10
_MAX_FIELDS = 1_000
_REMEMBERED = 100  # used tokens of a session, so that nobody makes those of others too old
_SESSIONS = 1_000  # that sent forms last; of another one, a form can be sent twice
_SESSION = re.compile(r"[0-9a-f]{64}")
_TOKEN = re.compile(r"([0-9]{1,15})\.([0-9a-f]{64})")


class FormError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class SubmittedFields:
    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs

    def first_or_empty(self, name: str) -> str:
        return next((value.strip() for field, value in self._pairs if field == name), "")

    def all(self, name: str) -> list[str]:
        return [value for field, value in self._pairs if field == name]


class Session:
    """One browser, known by a *cookie* that only this server reads and that no other site can send."""

    def __init__(self, tokens: CsrfTokens, request: Request, cookie: str) -> None:
        given = request.cookies.get(cookie, "")
        self._tokens, self._cookie, self._known = tokens, cookie, _SESSION.fullmatch(given) is not None
        self.id = given if self._known else secrets.token_hex(32)

    def issue_form_token(self) -> str:
        return self._tokens.issue(self.id)

    def renew_id(self) -> None:
        """Give the browser another id, so that one that somebody else has set or read is of no use."""
        self.id, self._known = secrets.token_hex(32), False

    def set_cookie_if_missing(
        self, response: Response, *, secure: bool = False, same_site: Literal["lax", "strict"] = "strict"
    ) -> Response:
        """Set the cookie unless the browser has it. Cookies are shared by all ports, so an existing one is kept."""
        if not self._known:
            response.set_cookie(self._cookie, self.id, httponly=True, samesite=same_site, secure=secure)
        return response

    async def read_form(self, request: Request) -> SubmittedFields:
        """Return the fields of a form that this session received and has not sent before."""
        body = await read_body_cut_if_longer(request, _MAX_BODY_BYTES)
        if media_type(request.headers) != _MEDIA_TYPE:
            raise FormError(415, "Send this form from the page.")
        try:
            pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
        except ValueError:
            raise FormError(400, "The form cannot be read. Send it from the page.") from None
        if len(body) > _MAX_BODY_BYTES:
            raise FormError(413, f"The form is longer than {_MAX_BODY_BYTES} bytes. Send a shorter one.")
        if not self._known:
            raise FormError(403, "The browser sent no session cookie. Allow cookies for this page and send it again.")
        self._tokens.use_once_or_error(self.id, next((value for name, value in pairs if name == FIELD), ""))
        return SubmittedFields([(name, value) for name, value in pairs if name != FIELD])


class _UsedTokens(Struct):
    """Serial numbers of one session. Those up to *expired* are too old, used or not."""

    serials: set[int] = field(default_factory=set)
    expired: int = 0


class CsrfTokens:
    """CSRF tokens: a serial number, signed with the id of its session. They are valid until the process ends."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self._issued = 0  # the last serial number
        self._used: OrderedDict[str, _UsedTokens] = OrderedDict()

    def issue(self, session: str) -> str:
        self._issued += 1
        return f"{self._issued}.{self._signature(session, self._issued)}"

    def use_once_or_error(self, session: str, token: str) -> None:
        """Accept a *token* of this *session* once. Raise FormError 409 if it was used, and 403 if it is not valid."""
        found = _TOKEN.fullmatch(token)
        if found is None or not hmac.compare_digest(self._signature(session, int(found[1])), found[2]):
            raise FormError(403, "The form is not valid in this session, or the server was restarted. Send it again.")
        serial, used = int(found[1]), self._used.setdefault(session, _UsedTokens())
        self._used.move_to_end(session)
        if serial in used.serials:
            raise FormError(409, "This form was already sent. It is not carried out again.")
        if serial <= used.expired:
            raise FormError(403, "The form is too old. Send it again.")
        used.serials.add(serial)
        if len(used.serials) > _REMEMBERED:
            used.expired = min(used.serials)
            used.serials.remove(used.expired)
        if len(self._used) > _SESSIONS:
            self._used.popitem(last=False)

    def _signature(self, session: str, serial: int) -> str:
        return hmac.new(self._secret, f"{session}.{serial}".encode(), hashlib.sha256).hexdigest()


PAGE_HEADERS = {
    "cache-control": "no-store",  # a page can show a key, and a browser keeps no copy of it
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none';"
        " frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",  # with no-referrer a browser sends "Origin: null" from the page's own forms
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?")  # RFC 3986 section 3.2, as hosts are named


class AllowedHostNames:
    """Loopback names and the connection's address, with the port, and *allowed* names: ``HOST`` or ``HOST:PORT``."""

    def __init__(self, allowed: Iterable[str], command: str) -> None:
        self._allowed = frozenset(name.lower() for name in allowed)
        self._command = command
        for name in self._allowed:
            if not _AUTHORITY.fullmatch(name):
                hint = "Use HOST or HOST:PORT, for example metrics.example.com:9464."
                raise ConfigError(
                    f"{name!r} is not a valid host", where="--allow-host", hint=hint, code="option_value_invalid"
                )

    def refusal_reason(self, scope: Scope) -> str | None:
        """Return why a request must not be answered, or None if it is for these names and from no other site's page."""
        headers = Headers(scope=scope)
        has_tls = scope.get("scheme") == "https"
        default = 443 if has_tls else 80
        local, port = scope.get("server") or ("", None)
        host = headers.get("host", "").lower()
        if not self._is_allowed_host(host, local, port or default, default):
            return (
                f"Host is not this server. Use localhost:{port or default} or 127.0.0.1:{port or default}, or allow the"
                f" name: {self._command} --allow-host NAME."
            )
        own = {f"https://{host}"} if has_tls else {f"http://{host}", f"https://{host}"}  # https: a proxy may have TLS
        if any(origin.lower() not in own for origin in headers.getlist("origin")):
            return "Origin is another site. Send the request from a page of this server, or without Origin."
        if is_cross_site_request(headers) and not _opens_a_page(headers):
            return "The request is part of a page of another site. Open the address itself."
        return None

    def _is_allowed_host(self, host: str, local: str, local_port: int, default_port: int) -> bool:
        found = _AUTHORITY.fullmatch(host)
        if found is None:
            return False
        name, port = found[1], int(found[2] or default_port)
        if name in self._allowed or host in self._allowed:
            return True
        address = name.strip("[]")
        return port == local_port and (is_loopback(address) or _is_same_ip_address(address, local))


def is_cross_site_request(headers: Headers) -> bool:
    """Return whether a browser says that a page of another site, or of another port, has caused the request."""
    return headers.get("sec-fetch-site") in {"cross-site", "same-site"}


def _opens_a_page(headers: Headers) -> bool:
    """Return whether it opens a tab, as by a link in a ticket: such a page cannot see what is answered."""
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")


def _is_same_ip_address(address: str, other: str) -> bool:
    try:
        return ip_address(address) == ip_address(other)
    except ValueError:
        return False
