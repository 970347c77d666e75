"""API keys on the sandbox's page: create (shown once), list, narrow, revoke."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from crossdock.errors import ConfigError
from crossdock.sandbox import access_control
from crossdock.sandbox.api_keys import TENANT, Keyring
from crossdock.sandbox.page_forms import FormError, Session
from crossdock.sandbox.page_responses import html, render
from crossdock.sandbox.resource_paths import COLLECTIONS

PATH = "/page/keys"
PAGE_SIZE = 50  # keys on one page of the list

_EVERYTHING = "*:write"
_LABELS = {"*": "All resources", **access_control.SCOPE_LABELS}


async def answer(keyring: Keyring, session: Session, request: Request) -> Response:
    """Answer a request to ``/``, or to `PATH` or below it.

    Raises:
        FormError: If there is no such page or key, or the form is refused.
    """
    path = request.scope["path"]
    key_id, _, action = path.removeprefix(PATH).lstrip("/").partition("/")
    match request.method, key_id, action:
        case "GET", "", "" if path in {"/", PATH}:
            return _list(keyring, session, request)
        case "GET", key_id, "" | "narrow" | "revoke" if key_id:
            return _one(keyring, session, key_id)
        case "POST", "", "" if path == PATH:
            return await _create(keyring, session, request)
        case "POST", key_id, "narrow" if key_id:
            return await _narrow(keyring, session, request, key_id)
        case "POST", key_id, "revoke" if key_id:
            return await _revoke(keyring, session, request, key_id)
    raise FormError(404, "There is nothing at this path.")


async def _create(keyring: Keyring, session: Session, request: Request) -> Response:
    fields = await session.fields(request)
    tenant, wanted = fields.one("tenant"), fields.all("scope")
    form = {"tenant": tenant, "scopes": wanted}
    if not wanted:
        return _list(keyring, session, request, 422, form=form, errors={"scopes": "Choose at least one scope."})
    try:
        credential, key = await asyncio.to_thread(keyring.add, tenant, wanted)
    except ConfigError as error:
        return _list(keyring, session, request, 422, form=form, errors=_found(error))
    scopes = credential.scopes.split()
    created = {"id": credential.id, "key": key, "tenant": credential.tenant, "path": _readable_path(scopes)}
    return _list(keyring, session, request, 201, created=created)


async def _narrow(keyring: Keyring, session: Session, request: Request, key_id: str) -> Response:
    fields = await session.fields(request)
    scopes = fields.all("scope")
    if not scopes:
        return _one(keyring, session, key_id, 422, {"scopes": "Choose at least one scope, or revoke the key."})
    try:
        if not await asyncio.to_thread(keyring.narrow, key_id, scopes):
            raise _unknown(key_id)
    except ConfigError as error:
        return _one(keyring, session, key_id, 422, _found(error))
    return _one(keyring, session, key_id, message="The scopes were narrowed.")


async def _revoke(keyring: Keyring, session: Session, request: Request, key_id: str) -> Response:
    await session.fields(request)
    if not await asyncio.to_thread(keyring.revoke, key_id):
        raise _unknown(key_id)
    return _list(keyring, session, request, message=f"Key {key_id} was revoked.")


def refused(keyring: Keyring, session: Session, request: Request, error: FormError) -> Response:
    """The list of keys with the reason why a form was refused."""
    return _list(keyring, session, request, error.status, errors={"": error.message})


def _list(
    keyring: Keyring,
    session: Session,
    request: Request,
    status: int = 200,
    *,
    form: Mapping[str, Any] | None = None,
    errors: Mapping[str, str] | None = None,
    message: str = "",
    created: Mapping[str, str] | None = None,
) -> Response:
    keys = keyring.listed()[::-1]
    pages = max(1, -(-len(keys) // PAGE_SIZE))
    wanted = request.query_params.get("page", "1")
    page = min(max(int(wanted), 1), pages) if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 else 1
    text = render(
        "keys.html",
        here="/",
        session=session,
        keys=keys[(page - 1) * PAGE_SIZE : page * PAGE_SIZE],
        total=len(keys),
        page=page,
        pages=pages,
        form=form or {"tenant": TENANT, "scopes": []},
        scope_rows=_scope_rows(_EVERYTHING),
        errors=errors or {},
        message=message,
        created=created,
        base_url=str(request.base_url).rstrip("/"),
    )
    return html(text, status)


def _one(
    keyring: Keyring,
    session: Session,
    key_id: str,
    status: int = 200,
    errors: Mapping[str, str] | None = None,
    message: str = "",
) -> Response:
    key = next((each for each in keyring.listed() if each["id"] == key_id), None)
    if key is None:
        raise _unknown(key_id)
    text = render(
        "key.html",
        here="",
        session=session,
        key=key,
        form={"scopes": []},
        scope_rows=_scope_rows(" ".join(key["scopes"])),
        errors=errors or {},
        message=message,
    )
    return html(text, status)


def _scope_rows(held: str) -> list[Mapping[str, Any]]:
    """The checkboxes, a row for each resource; those not *allowed* by the scopes *held* are left out."""
    rows: list[Mapping[str, Any]] = []
    for name, label in _LABELS.items():
        scopes = [
            {"value": scope, "label": f"{access} {label.lower()}", "allowed": access_control.allows(held, scope)}
            for access in ("Read", "Write")
            if (scope := f"{name}:{access.lower()}")
        ]
        if any(each["allowed"] for each in scopes):
            rows.append({"label": label, "scopes": scopes})
    return rows


def _readable_path(scopes: Sequence[str]) -> str:
    """The path of a collection that a key with these *scopes* may read."""
    held = " ".join(scopes)
    readable = (
        each.path
        for each in COLLECTIONS.values()
        if access_control.allows(held, access_control.required_scope(each.kind.name, "GET"))
    )
    return next(readable, next(iter(COLLECTIONS)))


def _found(error: ConfigError) -> Mapping[str, str]:
    return {error.where or "": f"{error.message[:1].upper()}{error.message[1:]}. {error.hint or ''}".strip()}


def _unknown(key_id: str) -> FormError:
    shown = key_id if key_id.isalnum() and len(key_id) <= 40 else "with this id"
    return FormError(404, f"There is no key {shown}. It may have been revoked.")
