"""The OAuth 2.0 endpoints: tokens by client credentials (RFC 6749), introspection (7662) and revocation (7009)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from functools import partial
from sqlite3 import Connection
from urllib.parse import parse_qsl, unquote_plus

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from crossdock.sandbox import oauth_clients_and_tokens, scopes
from crossdock.sandbox.database import GroupCommitWriter
from crossdock.sandbox.oauth_clients_and_tokens import OAuthClient, OAuthClientStore
from crossdock.values.serving.request_body_limits import media_type, read_body_cut_if_longer

PATHS = ("/oauth/token", "/oauth/introspect", "/oauth/revoke")
_MAX_BODY_BYTES = 64 << 10
_MAX_FIELDS = 100
_NOT_KEPT = {"cache-control": "no-store", "pragma": "no-cache"}
_BASIC = 'Basic realm="sandbox", charset="UTF-8"'


class _OAuthError(Exception):
    """A refusal in the form of RFC 6749 section 5.2."""

    def __init__(self, code: str, description: str, status: int = 400, **headers: str) -> None:
        super().__init__(description)
        self.response = _json_response({"error": code, "error_description": description}, status, headers)


class OAuthEndpoints:
    def __init__(
        self,
        clients: OAuthClientStore,
        reader: Connection,
        writer: GroupCommitWriter,
        clock: Callable[[], float],
        life_s: int,
    ) -> None:
        self._clients, self._reader, self._writer, self._clock, self._life_s = clients, reader, writer, clock, life_s

    async def answer_request(self, request: Request) -> tuple[Response, str | None]:
        """Return the response, and the id of the client if it could be authenticated."""
        client = None
        try:
            form = await _read_form(request)
            client = self._authenticate_client(request.headers.get("authorization"), form)
            match request.scope["path"]:
                case "/oauth/token":
                    response = await self._issue_token(client, form)
                case "/oauth/introspect":
                    response = self._introspect(client, _required_parameter(form, "token"))
                case _:
                    response = await self._revoke(client, _required_parameter(form, "token"))
        except _OAuthError as refusal:
            response = refusal.response
        return response, client.id if client else None

    def _authenticate_client(self, header: str | None, form: Mapping[str, str]) -> OAuthClient:
        """Return the client, by HTTP Basic or by client_id and client_secret in the body (RFC 6749 section 2.3.1)."""
        if header is not None and "client_secret" in form:
            raise _OAuthError("invalid_request", "Send the credentials in the header or in the body, not in both.")
        given = (
            _decode_basic_credentials(header)
            if header is not None
            else (form.get("client_id", ""), form.get("client_secret", ""))
        )
        if given and form.get("client_id", given[0]) != given[0]:
            raise _OAuthError("invalid_request", "client_id differs from the one in the Authorization header.")
        client = self._clients.authenticate(*given) if given else None
        if client is None:
            challenge = {"www-authenticate": _BASIC}
            raise _OAuthError("invalid_client", "The client or its secret is unknown.", 401, **challenge)
        return client

    async def _issue_token(self, client: OAuthClient, form: Mapping[str, str]) -> Response:
        if _required_parameter(form, "grant_type") != "client_credentials":
            raise _OAuthError("unsupported_grant_type", "The only grant type is client_credentials.")
        granted = client.scopes
        if "scope" in form:
            wanted = set(form["scope"].split(" "))
            if not all(
                scopes.is_valid_scope(each) and scopes.is_scope_included(client.scopes, each) for each in wanted
            ):
                raise _OAuthError("invalid_scope", "A scope does not exist, or the client may not have it.")
            granted = " ".join(sorted(wanted))
        now, life_s = self._clock(), self._life_s
        issue = partial(oauth_clients_and_tokens.store_new_token, client=client, scopes=granted, now=now, life_s=life_s)
        token = await self._writer.run_in_transaction(issue)
        return _json_response({"access_token": token, "token_type": "Bearer", "expires_in": life_s, "scope": granted})

    def _introspect(self, client: OAuthClient, token: str) -> Response:
        """Return the facts about a token of *client*. Any other is inactive: a client learns nothing about others."""
        found = oauth_clients_and_tokens.find_token(self._reader, token, self._clock())
        if found is None or found.client != client.id:
            return _json_response({"active": False})
        times = {"iat": int(found.issued_at), "exp": int(found.expires_at)}
        names = {"client_id": client.id, "sub": client.id, "token_type": "Bearer", "scope": found.scopes}
        return _json_response({"active": True, **names, **times})

    async def _revoke(self, client: OAuthClient, token: str) -> Response:
        """Return 200 also for an invalid token. One of another client is refused (RFC 7009 section 2.1)."""
        found = oauth_clients_and_tokens.find_token(self._reader, token, self._clock())
        if found and found.client != client.id:
            raise _OAuthError("unauthorized_client", "The token was issued to another client.")
        if found:
            await self._writer.run_in_transaction(partial(oauth_clients_and_tokens.revoke_token, token=token))
        return Response(status_code=200, headers=_NOT_KEPT)


async def _read_form(request: Request) -> dict[str, str]:
    """Parse the parameters of the body. One without a value counts as absent, and none may be repeated."""
    body = await read_body_cut_if_longer(request, _MAX_BODY_BYTES)
    if request.method != "POST":
        raise _OAuthError("invalid_request", "Send a POST request.", 405, allow="POST")
    if request.url.query:
        raise _OAuthError("invalid_request", "Send the parameters in the body, not in the address.")
    if media_type(request.headers) != "application/x-www-form-urlencoded":
        raise _OAuthError("invalid_request", "Content-Type must be application/x-www-form-urlencoded.")
    if len(body) > _MAX_BODY_BYTES:
        raise _OAuthError("invalid_request", f"The body is longer than {_MAX_BODY_BYTES} bytes.", 413)
    try:
        fields = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise _OAuthError(
            "invalid_request", f"The body must be UTF-8, with at most {_MAX_FIELDS} parameters."
        ) from None
    if len({name for name, _ in fields}) < len(fields):
        raise _OAuthError("invalid_request", "A parameter is repeated.")
    return {name: value for name, value in fields if value}


def _decode_basic_credentials(header: str) -> tuple[str, str] | None:
    """Return id and secret of an Authorization header. Each is form-encoded before they are joined."""
    scheme, _, encoded = header.partition(" ")
    try:
        joined = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    client_id, colon, secret = joined.partition(":")
    return (unquote_plus(client_id), unquote_plus(secret)) if scheme.lower() == "basic" and colon else None


def _required_parameter(form: Mapping[str, str], name: str) -> str:
    if name not in form:
        raise _OAuthError("invalid_request", f"The parameter {name} is missing.")
    return form[name]


def _json_response(
    document: Mapping[str, object], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return JSONResponse(document, status, {**_NOT_KEPT, **(headers or {})})
