"""API keys of one data directory: any process makes, lists and revokes them, and a running sandbox notices at once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sqlite3
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from crossdock.errors import ConfigError
from crossdock.sandbox import access_control, database, general_ledger, json_codec
from crossdock.sandbox.access_control import Caller
from crossdock.sandbox.collections import instant_text
from crossdock.sandbox.problem_answers import ProblemError

TENANT = "sandbox"
EVERYTHING = "*:write"
SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class Keyring(contextlib.AbstractContextManager["Keyring"]):
    """The keys of the sandbox in *data_dir*, which is made if it is not there.

    Close it, or use it as a context manager.
    """

    def __init__(self, data_dir: Path) -> None:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = data_dir / database.FILE_NAME
        self._reader = database.connect(self._path)
        self._reader.executescript(database.SCHEMA)
        _add_missing_columns(self._reader)
        self._version, self._known = -1, dict[str, Caller]()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._reader.close()

    def current(self) -> Mapping[str, Caller]:
        """The credentials in force now, by id; they are read again only when somebody has written to the file."""
        (version,) = self._reader.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            rows = self._reader.execute("SELECT id, tenant, key_hash, scopes FROM credentials")
            self._known, self._version = {row[0]: Caller(*row) for row in rows}, version
        return self._known

    def add(self, tenant: str = TENANT, scopes: Iterable[str] = ()) -> tuple[Caller, str]:
        """Make a key; it is told here and never again. Without *scopes* it may read and write everything.

        Raises:
            ConfigError: If *tenant* is no slug, or a scope does not exist.
        """
        if not SLUG.fullmatch(tenant):
            hint = "Use 1 to 63 letters, digits, '.', '_' and '-', a letter or digit first."
            raise ConfigError("is no tenant slug", where="tenant", hint=hint)
        credential, key = access_control.mint(tenant, _checked(scopes))
        now = datetime.now(UTC)
        with contextlib.closing(database.connect(self._path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            general_ledger.own_accounts(connection, tenant, now.timestamp())  # a tenant begins with its first key
            connection.execute(
                "INSERT INTO credentials (id, tenant, key_hash, scopes, created_at) VALUES (?, ?, ?, ?, ?)",
                (*credential, instant_text(now)),
            )
            connection.execute("COMMIT")
        return credential, key

    def revoke(self, name: str) -> bool:
        """Revoke the key with this id; False if there is none."""
        with contextlib.closing(database.connect(self._path)) as connection:
            return connection.execute("DELETE FROM credentials WHERE id = ?", (name,)).rowcount > 0

    def listed(self, tenant: str | None = None) -> list[dict[str, Any]]:
        """What may be told of the keys, oldest first."""
        rows = self._reader.execute(
            "SELECT id, tenant, scopes, created_at FROM credentials WHERE tenant = coalesce(?, tenant) ORDER BY rowid",
            (tenant,),
        )
        return [{"id": row[0], "tenant": row[1], "scopes": row[2].split(), "createdAt": row[3] or None} for row in rows]


def _checked(scopes: Iterable[str]) -> str:
    wanted = sorted(set(scopes)) or [EVERYTHING]
    if unknown := [scope for scope in wanted if scope not in access_control.SCOPES]:
        there = ", ".join(access_control.SCOPES)
        raise ConfigError(f"{len(unknown)} of the scopes do not exist", where="scopes", hint=f"There are: {there}.")
    return " ".join(wanted)


def _add_missing_columns(connection: sqlite3.Connection) -> None:
    """Directories of the first version know no scopes: their keys may do everything, as they always could."""
    connection.execute("BEGIN IMMEDIATE")
    present = {row[1] for row in connection.execute("PRAGMA table_info(credentials)")}
    for name, default in (("scopes", EVERYTHING), ("created_at", "")):
        if name not in present:
            connection.execute(f"ALTER TABLE credentials ADD COLUMN {name} TEXT NOT NULL DEFAULT '{default}'")
    connection.execute("COMMIT")


async def answer(keyring: Keyring, request: Request, body: bytes) -> Response:
    """Answer at ``/_sandbox/keys`` and ``/_sandbox/keys/{id}``."""
    name = request.scope["path"].removeprefix("/_sandbox/keys").lstrip("/")
    match request.method, name:
        case "GET", "":
            return Response(json.dumps({"data": keyring.listed()}), media_type="application/json")
        case "POST", "":
            wanted = _wanted(body)
            credential, key = await asyncio.to_thread(_add, keyring, wanted)
            told = {"api_key": key, "credential": credential.id, "tenant": credential.tenant}
            told_all = json.dumps({**told, "scopes": credential.scopes.split()})
            return Response(told_all, 201, media_type="application/json")
        case "DELETE", name if name:
            if not await asyncio.to_thread(keyring.revoke, name):
                raise ProblemError(404, "There is no such key.")
            return Response(status_code=204)
    allowed = "DELETE" if name else "GET, POST"
    raise ProblemError(405, "This path has no such method.", headers={"allow": allowed})


def _add(keyring: Keyring, wanted: Mapping[str, Any]) -> tuple[Caller, str]:
    try:
        return keyring.add(**wanted)
    except ConfigError as error:
        findings = [(f"#/{error.where}", f"{error.message}. {error.hint}")]
        raise ProblemError(422, "No such key can be made.", findings=findings) from None


def _wanted(body: bytes) -> dict[str, Any]:
    """The tenant and the scopes that a body names; it may be empty."""
    try:
        wanted = json_codec.read(body or b"{}")
    except ValueError as error:
        raise ProblemError(400, f"The body is no acceptable JSON: {error}.") from None
    if not isinstance(wanted, dict):
        raise ProblemError(422, "The body is no object.", findings=[("#", "must be an object")])
    findings = [(f"#/{quote(name, safe='')}", "is not known") for name in wanted if name not in {"tenant", "scopes"}]
    if not isinstance(wanted.get("tenant", ""), str):
        findings.append(("#/tenant", "must be text"))
    scopes = wanted.get("scopes", [])
    if not isinstance(scopes, list) or not all(isinstance(each, str) for each in scopes):
        findings.append(("#/scopes", "must be a list of texts"))
    if findings:
        raise ProblemError(422, "No such key can be made.", findings=findings)
    return wanted
