"""Requests the scopes of the client's own credential by token introspection (RFC 7662)."""

from __future__ import annotations

from contextlib import closing
from urllib.parse import urlencode

from crossdock.errors import UnauthorizedError, UnavailableError
from crossdock.platform.platform_config import ClientCredentials, Profile
from crossdock.platform.request_credentials import Credential
from crossdock.platform.token_endpoint import MAX_ANSWER_BYTES
from crossdock.reading.transport import oauth_messages


def granted_scopes(profile: Profile, url: str, credential: Credential) -> tuple[str, ...] | None:
    """Return the scopes of a prepared *credential*; None if the answer does not state them.

    A client authenticates as at the token endpoint, an API key by itself.
    """
    from crossdock.reading.transport.httpcore_client import HttpClient  # noqa: PLC0415  most commands do not ask

    rule, authorization = profile.auth, credential.authorization()
    form, headers = {"token": authorization.removeprefix("Bearer ")}, {"authorization": authorization}
    if isinstance(rule, ClientCredentials):
        fields, headers = oauth_messages.client_fields(rule.client_id, rule.client_secret.reveal(), rule.client_auth)
        form |= fields
    headers |= {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
    http = profile.http
    client = HttpClient(url, headers=headers, connection=http, max_response_bytes=MAX_ANSWER_BYTES, **http.timeouts())
    with closing(client):
        answer = client.send("POST", "", body=urlencode(form).encode())
    if answer.status in {401, 403}:
        hint = "see platform.auth, or remove platform.introspection_url"
        raise UnauthorizedError(
            f"refused the introspection (HTTP {answer.status})", where=url, hint=hint, code="introspection_failed"
        )
    found = oauth_messages.members(answer.body)
    active, scope = found.get("active"), found.get("scope", "")
    if answer.status != 200 or not isinstance(active, bool) or not isinstance(scope, str):
        hint = "platform.introspection_url is the address of an RFC 7662 endpoint"
        raise UnavailableError(
            f"gave no introspection answer (HTTP {answer.status})", where=url, hint=hint, code="introspection_failed"
        )
    if not active:
        raise UnauthorizedError(
            "the credential is not active", where=url, hint="see platform.auth", code="credential_refused"
        )
    return tuple(scope.split()) if "scope" in found else None
