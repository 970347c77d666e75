"""Access tokens, of which only the SHA-256 is stored. A token is valid until it expires or is revoked."""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from typing import NamedTuple

from crossdock.sandbox.access_control import Caller
from crossdock.sandbox.oauth_clients import OAuthClient


class AccessToken(NamedTuple):
    """The stored part of a token. Times are seconds since the epoch, on the sandbox's clock."""

    client: str
    scopes: str
    issued_at: float
    expires_at: float


def issue(connection: sqlite3.Connection, client: OAuthClient, scopes: str, now: float, life_s: int) -> str:
    """Store a new token and return it. Expired tokens are deleted."""
    token = f"sbt_{secrets.token_hex(32)}"
    connection.execute("DELETE FROM oauth_tokens WHERE expires_at <= ?", (now,))
    values = (_hash(token), client.id, scopes, now, now + life_s)
    connection.execute("INSERT INTO oauth_tokens VALUES (?, ?, ?, ?, ?)", values)
    return token


def find(connection: sqlite3.Connection, token: str, now: float) -> AccessToken | None:
    query = "SELECT client, scopes, issued_at, expires_at FROM oauth_tokens WHERE token_hash = ? AND expires_at > ?"
    row = connection.execute(query, (_hash(token), now)).fetchone()
    return AccessToken(*row) if row else None


def find_caller(connection: sqlite3.Connection, token: str, now: float) -> Caller | None:
    row = connection.execute(
        "SELECT client.id, client.tenant, token.token_hash, token.scopes, client.scopes FROM oauth_tokens AS token"
        " JOIN oauth_clients AS client ON client.id = token.client WHERE token_hash = ? AND expires_at > ?",
        (_hash(token), now),
    ).fetchone()
    return Caller(*row) if row else None


def revoke(connection: sqlite3.Connection, token: str) -> None:
    connection.execute("DELETE FROM oauth_tokens WHERE token_hash = ?", (_hash(token),))


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
