"""Forms of pages: their CSRF tokens, which can be used once, and their fields."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import OrderedDict
from typing import Literal
from urllib.parse import parse_qsl

from msgspec import Struct, field
from starlette.requests import Request
from starlette.responses import Response

from crossdock.values.serving.request_bodies import media_type, read_body_cut_if_longer

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

    def __init__(self, tokens: FormTokens, request: Request, cookie: str) -> None:
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


class FormTokens:
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
