"""The API keys of a data directory. Any process may create, list and revoke them; a running sandbox notices at once."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from crossdock.errors import ConfigError
from crossdock.sandbox import access_control, database, general_ledger
from crossdock.sandbox.access_control import Caller
from crossdock.sandbox.body_validation import parsed
from crossdock.sandbox.problem_errors import ProblemError, method_not_allowed
from crossdock.sandbox.rfc3339 import instant_text

TENANT = "sandbox"
PATH = "/_sandbox/keys"
SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def _must_be_strings(value: object) -> object:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError("must be a list of strings")
    return value


class _NewKey(BaseModel):
    """The body of a request for a key."""

    model_config = ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True)

    tenant: str = TENANT
    scopes: Annotated[list[str], BeforeValidator(_must_be_strings)] = []


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

    def narrow(self, key_id: str, scopes: Iterable[str]) -> bool:
        """Replace the scopes of a key by some that they include; False if there is no key with this id.

        Raises:
            ConfigError: If a scope does not exist, or the key does not have it.
        """
        wanted = _scope_text(scopes)
        with contextlib.closing(database.connect(self._path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            row = connection.execute("SELECT scopes FROM credentials WHERE id = ?", (key_id,)).fetchone()
            if row is None:
                return False
            if wider := [each for each in wanted.split() if not access_control.allows(row[0], each)]:
                hint = "Create another key for them."
                raise ConfigError(f"the key does not have {', '.join(wider)}", where="scopes", hint=hint)
            connection.execute("UPDATE credentials SET scopes = ? WHERE id = ?", (wanted, key_id))
            connection.execute("COMMIT")
        return True

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
            credential, key = await asyncio.to_thread(_add, keyring, parsed(_NewKey, body or b"{}"))
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


def _add(keyring: Keyring, wanted: _NewKey) -> tuple[Caller, str]:
    try:
        return keyring.add(wanted.tenant, wanted.scopes)
    except ConfigError as error:
        findings = [(f"#/{error.where}", f"{error.message}. {error.hint}")]
        raise ProblemError(422, "The key cannot be created.", findings=findings) from None
