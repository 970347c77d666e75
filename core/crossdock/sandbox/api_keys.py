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
from crossdock.sandbox import access_control, database, general_ledger, scopes
from crossdock.sandbox.access_control import Caller
from crossdock.sandbox.body_validation import parse_body_as_model
from crossdock.sandbox.problem_errors import ProblemError, method_not_allowed_error
from crossdock.sandbox.rfc3339 import instant_text

DEFAULT_TENANT = "sandbox"
PATH = "/_sandbox/keys"
_MAX_SCOPES = 100
SLUG_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def _raise_unless_list_of_strings(value: object) -> object:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError("must be a list of strings")
    return value


class NewCredential(BaseModel):
    """The body of a request for a key or an OAuth client."""

    model_config = ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True)

    tenant: str = DEFAULT_TENANT
    scopes: Annotated[list[str], BeforeValidator(_raise_unless_list_of_strings)] = []


class ApiKeyStore(contextlib.AbstractContextManager["ApiKeyStore"]):
    def __init__(self, data_dir: Path) -> None:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = data_dir / database.DATABASE_FILE_NAME
        self._reader = database.open_database(self._path)
        self._reader.executescript(database.SCHEMA)
        self._version, self._known = -1, dict[str, Caller]()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._reader.close()

    def valid_callers_by_key_id(self) -> Mapping[str, Caller]:
        """Return the valid credentials by id. They are read again only after a process has written to the file."""
        (version,) = self._reader.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            rows = self._reader.execute("SELECT id, tenant, key_hash, scopes FROM credentials")
            self._known, self._version = {row[0]: Caller(*row) for row in rows}, version
        return self._known

    def create_credential(self, tenant: str = DEFAULT_TENANT, scopes: Iterable[str] = ()) -> tuple[Caller, str]:
        """Create a key. Only its hash is stored. Without *scopes* it may read and write everything."""
        raise_if_not_tenant_slug(tenant)
        credential, key = access_control.generate_api_key(tenant, validated_scope_text(scopes))
        now = time.time()
        with contextlib.closing(database.open_database(self._path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            general_ledger.get_or_create_default_accounts(
                connection, tenant, now
            )  # the first key of a tenant creates the tenant
            connection.execute(
                "INSERT INTO credentials (id, tenant, key_hash, scopes, created_at) VALUES (?, ?, ?, ?, ?)",
                (*credential[:4], instant_text(now)),
            )
            connection.execute("COMMIT")
        return credential, key

    def narrow_scopes(self, key_id: str, scopes: Iterable[str]) -> bool:
        """Replace the scopes of a key by some that they include. Return False if there is no key with this id."""
        with contextlib.closing(database.open_database(self._path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            row = connection.execute("SELECT scopes FROM credentials WHERE id = ?", (key_id,)).fetchone()
            if row is None:
                return False
            connection.execute(
                "UPDATE credentials SET scopes = ? WHERE id = ?",
                (scope_text_within_held_scopes(row[0], scopes), key_id),
            )
            connection.execute("COMMIT")
        return True

    def revoke(self, key_id: str) -> bool:
        with contextlib.closing(database.open_database(self._path)) as connection:
            return connection.execute("DELETE FROM credentials WHERE id = ?", (key_id,)).rowcount > 0

    def list_credentials(self, tenant: str | None = None) -> list[dict[str, Any]]:
        rows = self._reader.execute(
            "SELECT id, tenant, scopes, created_at FROM credentials WHERE tenant = coalesce(?, tenant) ORDER BY rowid",
            (tenant,),
        )
        return [{"id": row[0], "tenant": row[1], "scopes": row[2].split(), "createdAt": row[3]} for row in rows]


async def answer_keys_request(keyring: ApiKeyStore, request: Request, body: bytes) -> Response:
    key_id = request.scope["path"].removeprefix(PATH).lstrip("/")
    match request.method, key_id:
        case "GET", "":
            return JSONResponse({"data": keyring.list_credentials()})
        case "POST", "":
            credential, key = await asyncio.to_thread(
                _create_key_or_refuse, keyring, parse_body_as_model(NewCredential, body or b"{}")
            )
            facts = {"api_key": key, "credential": credential.id, "tenant": credential.tenant}
            return JSONResponse({**facts, "scopes": credential.scopes.split()}, 201)
        case "DELETE", key_id if key_id:
            if not await asyncio.to_thread(keyring.revoke, key_id):
                raise ProblemError(404, "There is no such key.")
            return Response(status_code=204)
    raise method_not_allowed_error("DELETE" if key_id else "GET, POST")


def raise_if_not_tenant_slug(tenant: str) -> None:
    if not SLUG_PATTERN.fullmatch(tenant):
        hint = "Use 1 to 63 letters, digits, '.', '_' and '-', starting with a letter or digit."
        raise ConfigError("is not a tenant slug", where="tenant", hint=hint, code="option_value_invalid")


def validated_scope_text(wanted: Iterable[str]) -> str:
    """Return the scopes sorted, separated by spaces. Without any, they permit reading and writing everything."""
    distinct = sorted(set(wanted)) or ["*:write"]
    if unknown := [each for each in distinct if not scopes.is_valid_scope(each)]:
        raise ConfigError(
            f"{len(unknown)} unknown scope(s)",
            where="scopes",
            hint=f"Known scopes: {scopes.TEXT_OF_KNOWN_SCOPES}.",
            code="option_value_invalid",
        )
    if len(distinct) > _MAX_SCOPES:
        raise ConfigError(
            f"{len(distinct)} scopes", where="scopes", hint=f"Give at most {_MAX_SCOPES}.", code="option_value_invalid"
        )
    return " ".join(distinct)


def scope_text_within_held_scopes(held: str, wanted: Iterable[str]) -> str:
    """Return the text of *wanted* scopes, or raise ConfigError if those *held* do not include them."""
    text = validated_scope_text(wanted)
    if wider := [each for each in text.split() if not scopes.is_scope_included(held, each)]:
        hint = "Create another one for them."
        raise ConfigError(
            f"it does not have {', '.join(wider)}", where="scopes", hint=hint, code="option_value_invalid"
        )
    return text


def _create_key_or_refuse(keyring: ApiKeyStore, wanted: NewCredential) -> tuple[Caller, str]:
    try:
        return keyring.create_credential(wanted.tenant, wanted.scopes)
    except ConfigError as error:
        findings = [(f"#/{error.where}", f"{error.message}. {error.hint}")]
        raise ProblemError(422, "The key cannot be created.", findings=findings) from None
