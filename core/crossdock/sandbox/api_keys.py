"""The API keys of a data directory. Any process may create, list and revoke them; a running sandbox notices at once."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from crossdock.errors import ConfigError
from crossdock.sandbox import access_control, database, general_ledger, json_codec
from crossdock.sandbox.access_control import Caller
from crossdock.sandbox.problem_errors import Finding, ProblemError, method_not_allowed
from crossdock.sandbox.rfc3339 import instant_text

TENANT = "sandbox"
PATH = "/_sandbox/keys"
SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class Keyring(contextlib.AbstractContextManager["Keyring"]):
    """The keys in *data_dir*, which is created if it does not exist. Close it, or use it as a context manager."""

    def __init__(self, data_dir: Path) -> None:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = data_dir / database.FILE_NAME
        self._reader = database.connect(self._path)
        self._reader.executescript(database.SCHEMA)
        self._version, self._known = -1, dict[str, Caller]()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._reader.close()

    def current(self) -> Mapping[str, Caller]:
        """The valid credentials by id. They are read again only after a process has written to the file."""
        (version,) = self._reader.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            rows = self._reader.execute("SELECT id, tenant, key_hash, scopes FROM credentials")
            self._known, self._version = {row[0]: Caller(*row) for row in rows}, version
        return self._known

    def add(self, tenant: str = TENANT, scopes: Iterable[str] = ()) -> tuple[Caller, str]:
        """Create a key. Only its hash is stored. Without *scopes* it may read and write everything.

        Raises:
            ConfigError: If *tenant* is not a slug, or a scope does not exist.
        """
        if not SLUG.fullmatch(tenant):
            hint = "Use 1 to 63 letters, digits, '.', '_' and '-', starting with a letter or digit."
            raise ConfigError("is not a tenant slug", where="tenant", hint=hint)
        credential, key = access_control.generate_key(tenant, _scope_text(scopes))
        now = time.time()
        with contextlib.closing(database.connect(self._path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            general_ledger.default_accounts(connection, tenant, now)  # the first key of a tenant creates the tenant
            connection.execute(
                "INSERT INTO credentials (id, tenant, key_hash, scopes, created_at) VALUES (?, ?, ?, ?, ?)",
                (*credential, instant_text(now)),
            )
            connection.execute("COMMIT")
        return credential, key

    def revoke(self, key_id: str) -> bool:
        """Revoke a key; False if there is none with this id."""
        with contextlib.closing(database.connect(self._path)) as connection:
            return connection.execute("DELETE FROM credentials WHERE id = ?", (key_id,)).rowcount > 0

    def listed(self, tenant: str | None = None) -> list[dict[str, Any]]:
        """The public facts about the keys, oldest first."""
        rows = self._reader.execute(
            "SELECT id, tenant, scopes, created_at FROM credentials WHERE tenant = coalesce(?, tenant) ORDER BY rowid",
            (tenant,),
        )
        return [{"id": row[0], "tenant": row[1], "scopes": row[2].split(), "createdAt": row[3]} for row in rows]


async def answer(keyring: Keyring, request: Request, body: bytes) -> Response:
    """Answer a request to `PATH` or below it."""
    key_id = request.scope["path"].removeprefix(PATH).lstrip("/")
    match request.method, key_id:
        case "GET", "":
            return JSONResponse({"data": keyring.listed()})
        case "POST", "":
            credential, key = await asyncio.to_thread(_add, keyring, _parse(body))
            facts = {"api_key": key, "credential": credential.id, "tenant": credential.tenant}
            return JSONResponse({**facts, "scopes": credential.scopes.split()}, 201)
        case "DELETE", key_id if key_id:
            if not await asyncio.to_thread(keyring.revoke, key_id):
                raise ProblemError(404, "There is no such key.")
            return Response(status_code=204)
    raise method_not_allowed("DELETE" if key_id else "GET, POST")


def _scope_text(scopes: Iterable[str]) -> str:
    wanted = sorted(set(scopes)) or ["*:write"]
    if unknown := [scope for scope in wanted if scope not in access_control.SCOPES]:
        known = ", ".join(access_control.SCOPES)
        raise ConfigError(f"{len(unknown)} unknown scope(s)", where="scopes", hint=f"Known scopes: {known}.")
    return " ".join(wanted)


def _add(keyring: Keyring, options: Mapping[str, Any]) -> tuple[Caller, str]:
    try:
        return keyring.add(**options)
    except ConfigError as error:
        raise _unprocessable([(f"#/{error.where}", f"{error.message}. {error.hint}")]) from None


def _parse(body: bytes) -> dict[str, Any]:
    """The tenant and the scopes that a body names, both optional, as is the body."""
    try:
        options = json_codec.read(body or b"{}")
    except ValueError as error:
        raise ProblemError(400, f"The body is not acceptable JSON: {error}.") from None
    if not isinstance(options, dict):
        raise _unprocessable([("#", "must be an object")])
    findings = [(f"#/{quote(each, safe='')}", "is not known") for each in options if each not in {"tenant", "scopes"}]
    if not isinstance(options.get("tenant", ""), str):
        findings.append(("#/tenant", "must be a string"))
    scopes = options.get("scopes", [])
    if not isinstance(scopes, list) or not all(isinstance(each, str) for each in scopes):
        findings.append(("#/scopes", "must be a list of strings"))
    if findings:
        raise _unprocessable(findings)
    return options


def _unprocessable(findings: list[Finding]) -> ProblemError:
    return ProblemError(422, "The body does not describe a key.", findings=findings)
