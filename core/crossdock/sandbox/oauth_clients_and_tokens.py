"""The OAuth clients of a data directory, and their access tokens, of which only the SHA-256 is stored.

As with API keys, any process may create, list and revoke clients. A token is valid until it expires or is revoked.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import re
import secrets
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from crossdock.errors import ConfigError
from crossdock.sandbox import database, general_ledger
from crossdock.sandbox.access_control import Caller
from crossdock.sandbox.api_keys import (
    DEFAULT_TENANT,
    SLUG_PATTERN,
    NewCredential,
    raise_if_not_tenant_slug,
    scope_text_within_held_scopes,
    validated_scope_text,
)
from crossdock.sandbox.body_validation import parse_body_as_model
from crossdock.sandbox.problem_errors import ProblemError, method_not_allowed_error
from crossdock.sandbox.rfc3339 import instant_text

PATH = "/_sandbox/clients"
SCHEMA = """
CREATE TABLE IF NOT EXISTS oauth_clients (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL, secret_hash BLOB NOT NULL, scopes TEXT NOT NULL,
    created_at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS oauth_tokens (
    token_hash BLOB PRIMARY KEY, client TEXT NOT NULL, scopes TEXT NOT NULL, issued_at REAL NOT NULL,
    expires_at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS oauth_tokens_expire ON oauth_tokens (expires_at);
CREATE INDEX IF NOT EXISTS oauth_tokens_client ON oauth_tokens (client);
CREATE INDEX IF NOT EXISTS stored_account_codes ON stored (tenant, json_extract(body, '$.code'))
    WHERE resource = 'ledger_account';
"""
_ID_OF_A_KEY = re.compile("[0-9a-f]{12}")  # a client with such an id could take the place of a key in both logs


class OAuthClient(NamedTuple):
    id: str
    tenant: str
    secret_hash: bytes
    scopes: str  # what its tokens may have


class _NewClient(NewCredential):
    """The body of a request for a client."""

    id: str | None = None


class OAuthClientStore(contextlib.AbstractContextManager["OAuthClientStore"]):
    def __init__(self, data_dir: Path) -> None:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = data_dir / database.DATABASE_FILE_NAME
        self._reader = database.open_database(self._path)
        self._reader.executescript(database.SCHEMA + SCHEMA)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._reader.close()

    def create_credential(
        self, tenant: str = DEFAULT_TENANT, scopes: Iterable[str] = (), client_id: str | None = None
    ) -> tuple[OAuthClient, str]:
        """Create a client and return its secret, of which only the hash is stored."""
        raise_if_not_tenant_slug(tenant)
        name = f"client-{secrets.token_hex(6)}" if client_id is None else client_id
        if not SLUG_PATTERN.fullmatch(name) or _ID_OF_A_KEY.fullmatch(name):
            hint = "Use 1 to 63 letters, digits, '.', '_' and '-', but not 12 hexadecimal digits as in ids of keys."
            raise ConfigError("is not a client id", where="id", hint=hint, code="option_value_invalid")
        secret, now = secrets.token_hex(24), time.time()
        client = OAuthClient(name, tenant, _sha256(secret), validated_scope_text(scopes))
        with contextlib.closing(database.open_database(self._path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            general_ledger.get_or_create_default_accounts(connection, tenant, now)
            try:
                connection.execute("INSERT INTO oauth_clients VALUES (?, ?, ?, ?, ?)", (*client, instant_text(now)))
            except sqlite3.IntegrityError:
                hint = "Give another id, or revoke that client first."
                raise ConfigError(
                    "another client has this id", where="id", hint=hint, code="option_value_invalid"
                ) from None
            connection.execute("COMMIT")
        return client, secret

    def narrow_scopes(self, client_id: str, scopes: Iterable[str]) -> bool:
        """Replace the scopes by some that they include, and revoke the tokens. Return False for an unknown client."""
        with contextlib.closing(database.open_database(self._path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            row = connection.execute("SELECT scopes FROM oauth_clients WHERE id = ?", (client_id,)).fetchone()
            if row is None:
                return False
            values = scope_text_within_held_scopes(row[0], scopes), client_id
            connection.execute("UPDATE oauth_clients SET scopes = ? WHERE id = ?", values)
            connection.execute("DELETE FROM oauth_tokens WHERE client = ?", (client_id,))
            connection.execute("COMMIT")
        return True

    def revoke(self, client_id: str) -> bool:
        with contextlib.closing(database.open_database(self._path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM oauth_tokens WHERE client = ?", (client_id,))
            found = connection.execute("DELETE FROM oauth_clients WHERE id = ?", (client_id,)).rowcount
            connection.execute("COMMIT")
        return found > 0

    def list_credentials(self, tenant: str | None = None) -> list[dict[str, Any]]:
        rows = self._reader.execute(
            "SELECT id, tenant, scopes, created_at FROM oauth_clients WHERE tenant = coalesce(?, tenant)"
            " ORDER BY rowid",
            (tenant,),
        )
        return [{"id": row[0], "tenant": row[1], "scopes": row[2].split(), "createdAt": row[3]} for row in rows]

    def authenticate(self, client_id: str, secret: str) -> OAuthClient | None:
        query = "SELECT id, tenant, secret_hash, scopes FROM oauth_clients WHERE id = ?"
        row = self._reader.execute(query, (client_id,)).fetchone()
        matches = hmac.compare_digest(row[2] if row else bytes(32), _sha256(secret))
        return OAuthClient(*row) if row and matches else None


async def answer_clients_request(clients: OAuthClientStore, request: Request, body: bytes) -> Response:
    client_id = request.scope["path"].removeprefix(PATH).lstrip("/")
    match request.method, client_id:
        case "GET", "":
            return JSONResponse({"data": clients.list_credentials()})
        case "POST", "":
            client, secret = await asyncio.to_thread(
                _create_client_or_refuse, clients, parse_body_as_model(_NewClient, body or b"{}")
            )
            facts = {"client_id": client.id, "client_secret": secret, "tenant": client.tenant}
            return JSONResponse({**facts, "scopes": client.scopes.split()}, 201)
        case "DELETE", client_id if client_id:
            if not await asyncio.to_thread(clients.revoke, client_id):
                raise ProblemError(404, "There is no such client.")
            return Response(status_code=204)
    raise method_not_allowed_error("DELETE" if client_id else "GET, POST")


def _create_client_or_refuse(clients: OAuthClientStore, wanted: _NewClient) -> tuple[OAuthClient, str]:
    try:
        return clients.create_credential(wanted.tenant, wanted.scopes, wanted.id)
    except ConfigError as error:
        findings = [(f"#/{error.where}", f"{error.message}. {error.hint}")]
        raise ProblemError(422, "The client cannot be created.", findings=findings) from None


def _sha256(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()


class AccessToken(NamedTuple):
    """The stored part of a token. Times are seconds since the epoch, on the sandbox's clock."""

    client: str
    scopes: str
    issued_at: float
    expires_at: float


def store_new_token(connection: sqlite3.Connection, client: OAuthClient, scopes: str, now: float, life_s: int) -> str:
    """Store a new token and return it. Expired tokens are deleted."""
    token = f"sbt_{secrets.token_hex(32)}"
    connection.execute("DELETE FROM oauth_tokens WHERE expires_at <= ?", (now,))
    values = (_sha256(token), client.id, scopes, now, now + life_s)
    connection.execute("INSERT INTO oauth_tokens VALUES (?, ?, ?, ?, ?)", values)
    return token


def find_token(connection: sqlite3.Connection, token: str, now: float) -> AccessToken | None:
    query = "SELECT client, scopes, issued_at, expires_at FROM oauth_tokens WHERE token_hash = ? AND expires_at > ?"
    row = connection.execute(query, (_sha256(token), now)).fetchone()
    return AccessToken(*row) if row else None


def find_caller_by_token(connection: sqlite3.Connection, token: str, now: float) -> Caller | None:
    row = connection.execute(
        "SELECT client.id, client.tenant, token.token_hash, token.scopes, client.scopes FROM oauth_tokens AS token"
        " JOIN oauth_clients AS client ON client.id = token.client WHERE token_hash = ? AND expires_at > ?",
        (_sha256(token), now),
    ).fetchone()
    return Caller(*row) if row else None


def revoke_token(connection: sqlite3.Connection, token: str) -> None:
    connection.execute("DELETE FROM oauth_tokens WHERE token_hash = ?", (_sha256(token),))
