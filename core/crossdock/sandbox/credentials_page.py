"""API keys and OAuth clients on the sandbox's page: create (the secret is shown once), list, narrow, revoke."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import Response

from crossdock.errors import ConfigError
from crossdock.sandbox import scopes
from crossdock.sandbox.access_control import Caller
from crossdock.sandbox.api_keys import DEFAULT_TENANT
from crossdock.sandbox.api_routes import COLLECTIONS
from crossdock.sandbox.html_page_responses import html_response, render
from crossdock.sandbox.oauth_clients_and_tokens import OAuthClient
from crossdock.values.serving.cross_site_protection import FormError, Session, SubmittedFields

PAGE_SIZE = 50  # credentials on one page of the list

_NARROWABLE = {"accounts": "Only these ledger accounts", "bins": "Only these warehouse bins"}


class CredentialStore(Protocol):
    def create_credential(self, tenant: str, scopes: Iterable[str]) -> tuple[Caller | OAuthClient, str]: ...

    def narrow_scopes(self, credential_id: str, scopes: Iterable[str], /) -> bool: ...

    def revoke(self, credential_id: str, /) -> bool: ...

    def list_credentials(self) -> list[dict[str, Any]]: ...


@dataclass(frozen=True)
class CredentialsPage:
    """The pages for one kind of credential, named by *noun*. *path* is that of its forms, *home* that of the list."""

    store: CredentialStore
    noun: str
    secret: str
    title: str
    path: str
    home: str

    async def answer(self, session: Session, request: Request) -> Response:
        path = request.scope["path"]
        credential_id, _, action = path.removeprefix(self.path).lstrip("/").partition("/")
        match request.method, credential_id, action:
            case "GET", "", "" if path in {self.home, self.path}:
                return self._show_list(session, request)
            case "GET", _, "" | "narrow" | "revoke" if credential_id:
                return self._show_stored_credential(session, credential_id)
            case "POST", "", "" if path == self.path:
                return await self._create(session, request)
            case "POST", _, "narrow" if credential_id:
                return await self._narrow_scopes(session, request, credential_id)
            case "POST", _, "revoke" if credential_id:
                return await self._revoke(session, request, credential_id)
        raise FormError(404, "There is nothing at this path.")

    def show_refusal(self, session: Session, request: Request, error: FormError) -> Response:
        return self._show_list(session, request, error.status, errors={"": error.message})

    async def _create(self, session: Session, request: Request) -> Response:
        fields = await session.read_form(request)
        tenant, form = fields.first_or_empty("tenant"), _form_values_to_show_again(fields)
        try:
            credential, secret = await asyncio.to_thread(
                self.store.create_credential, tenant, _ticked_scopes_narrowed_to_records(fields)
            )
        except ConfigError as error:
            return self._show_list(session, request, 422, form=form, errors=_field_errors(error))
        path = _first_readable_collection_path(credential.scopes)
        created = {"id": credential.id, "secret": secret, "tenant": credential.tenant, "path": path}
        return self._show_list(session, request, 201, created=created)

    async def _narrow_scopes(self, session: Session, request: Request, credential_id: str) -> Response:
        fields = await session.read_form(request)
        try:
            if not await asyncio.to_thread(
                self.store.narrow_scopes, credential_id, _ticked_scopes_narrowed_to_records(fields)
            ):
                raise self._unknown_credential_error(credential_id)
        except ConfigError as error:
            return self._show_stored_credential(
                session, credential_id, 422, form=_form_values_to_show_again(fields), errors=_field_errors(error)
            )
        return self._show_stored_credential(session, credential_id, message="The scopes were narrowed.")

    async def _revoke(self, session: Session, request: Request, credential_id: str) -> Response:
        await session.read_form(request)
        if not await asyncio.to_thread(self.store.revoke, credential_id):
            raise self._unknown_credential_error(credential_id)
        return self._show_list(session, request, message=f"{self.noun.capitalize()} {credential_id} was revoked.")

    def _show_list(
        self,
        session: Session,
        request: Request,
        status: int = 200,
        *,
        form: Mapping[str, Any] | None = None,
        errors: Mapping[str, str] | None = None,
        message: str = "",
        created: Mapping[str, str] | None = None,
    ) -> Response:
        listed = self.store.list_credentials()[::-1]
        pages = max(1, -(-len(listed) // PAGE_SIZE))
        wanted = request.query_params.get("page", "1")
        page = min(max(int(wanted), 1), pages) if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 else 1
        text = render(
            "credentials.html",
            here=self.home,
            session=session,
            kind=self,
            listed=listed[(page - 1) * PAGE_SIZE : page * PAGE_SIZE],
            total=len(listed),
            page=page,
            pages=pages,
            form=form or {"tenant": DEFAULT_TENANT, "scopes": []},
            scope_rows=_scope_checkbox_rows("*:write"),
            narrowable=_NARROWABLE,
            errors=errors or {},
            message=message,
            created=created,
            base_url=str(request.base_url).rstrip("/"),
        )
        return html_response(text, status)

    def _show_stored_credential(
        self,
        session: Session,
        credential_id: str,
        status: int = 200,
        *,
        form: Mapping[str, Any] | None = None,
        errors: Mapping[str, str] | None = None,
        message: str = "",
    ) -> Response:
        found = next((each for each in self.store.list_credentials() if each["id"] == credential_id), None)
        if found is None:
            raise self._unknown_credential_error(credential_id)
        held = " ".join(found["scopes"])
        text = render(
            "credential.html",
            here="",
            session=session,
            kind=self,
            credential=found,
            form=form or {"scopes": []},
            scope_rows=_scope_checkbox_rows(held),
            narrowable=_NARROWABLE,
            errors=errors or {},
            message=message,
        )
        return html_response(text, status)

    def _unknown_credential_error(self, credential_id: str) -> FormError:
        shown = credential_id if len(credential_id) <= 63 else "with this id"
        return FormError(404, f"There is no {self.noun} {shown}. It may have been revoked.")


def _form_values_to_show_again(fields: SubmittedFields) -> Mapping[str, Any]:
    texts = {name: fields.first_or_empty(name) for name in ("tenant", *_NARROWABLE)}
    return {**texts, "scopes": fields.all("scope")}


def _ticked_scopes_narrowed_to_records(fields: SubmittedFields) -> list[str]:
    """Return the scopes of a form: those that are ticked, narrowed to the records that are named beside them."""
    ticked = fields.all("scope")
    if not ticked:
        raise ConfigError("choose at least one scope", where="scopes", code="option_value_invalid")
    for name, label in _NARROWABLE.items():
        records = fields.first_or_empty(name).split()
        whole = [each for each in ticked if each.partition(":")[0] == name]
        if records and (not whole or any(each.startswith("*:") for each in ticked)):
            hint = "Tick reading or writing for them, and not for all resources."
            raise ConfigError(
                f"{label[11:]} are named, but their scope is not chosen",
                where=name,
                hint=hint,
                code="option_value_invalid",
            )
        if records:
            narrowed = [f"{name}:{record}:{each.rpartition(':')[2]}" for each in whole for record in records]
            ticked = [each for each in ticked if each not in whole] + narrowed
    return ticked


def _scope_checkbox_rows(held: str) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    for name, label in scopes.LABELS.items():
        boxes = [
            {"value": scope, "label": f"{access} {label.lower()}", "allowed": _can_tick_scope(held, scope)}
            for access in ("Read", "Write")
            if (scope := f"{name}:{access.lower()}")
        ]
        if any(each["allowed"] for each in boxes):
            rows.append({"label": label, "scopes": boxes})
    return rows


def _can_tick_scope(held: str, scope: str) -> bool:
    name, _, access = scope.partition(":")
    records = {each.partition(":")[2].rpartition(":")[0] for each in held.split() if each.count(":") > 1}
    return scopes.is_scope_included(held, scope) or any(
        scopes.is_scope_included(held, f"{name}:{each}:{access}") for each in records
    )


def _first_readable_collection_path(held: str) -> str:
    collections = list(COLLECTIONS.values())
    readable = (
        each.path
        for each in collections
        if scopes.permitted_single_record_names(held, each.kind.name, "read") != frozenset()
    )
    return next(readable, collections[0].path)


def _field_errors(error: ConfigError) -> Mapping[str, str]:
    return {error.where or "": f"{error.message[:1].upper()}{error.message[1:]}. {error.hint or ''}".strip()}
