"""Webhook subscriptions on the sandbox's page. It executes operations of the API, so that both obey the same rules."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from crossdock.sandbox.api_keys import DEFAULT_TENANT, SLUG_PATTERN
from crossdock.sandbox.api_routes import SUBSCRIPTIONS
from crossdock.sandbox.html_page_responses import html_response, render
from crossdock.sandbox.openapi_schemas import EVENTS
from crossdock.values.serving.cross_site_protection import FormError, Session

PATH = "/page/webhooks"

Operate = Callable[[str, str, str, Mapping[str, str], Any], Awaitable[Response]]
"""Executes an operation of the API: tenant, method, path, query and JSON body, or None."""

_STATUS_OF = {"enable": "enabled", "disable": "disabled"}
_MESSAGES = {
    "enable": "The subscription was enabled. It receives every event since it was disabled.",
    "disable": "The subscription was disabled. It keeps its place in the list of events.",
    "redeliver": "The event is sent again.",
}


class WebhooksPage:
    """The pages at `PATH` and below it: ``/TENANT/SUBSCRIPTION/DELIVERY``, each followed by an action for a form."""

    path = home = PATH

    def __init__(self, operate: Operate, tenants: Callable[[], Iterable[str]]) -> None:
        self._operate, self._tenants = operate, tenants

    async def answer(self, session: Session, request: Request) -> Response:
        parts = request.scope["path"].removeprefix(PATH).strip("/").split("/")
        if request.method == "GET":
            return await self._answer_get(session, request, parts)
        return await self._answer_post(session, request, parts)

    async def _answer_get(self, session: Session, request: Request, parts: Sequence[str]) -> Response:
        match parts:
            case [""]:
                return await self._show_list(session, DEFAULT_TENANT)
            case [tenant]:
                return await self._show_list(session, tenant)
            case [tenant, subscription] | [tenant, subscription, "rotate" | "enable" | "disable"]:
                return await self._show_subscription(session, tenant, subscription, request.query_params.get("cursor"))
            case [tenant, subscription, delivery] | [tenant, subscription, delivery, "redeliver"]:
                return await self._show_delivery(session, tenant, subscription, delivery)
        raise FormError(404, "There is nothing at this path.")

    async def _answer_post(self, session: Session, request: Request, parts: Sequence[str]) -> Response:
        match parts:
            case [tenant] if tenant:
                return await self._create(session, request, tenant)
            case [tenant, subscription, action]:
                return await self._change_subscription(session, request, tenant, subscription, action)
            case [tenant, subscription, delivery, "redeliver"]:
                return await self._redeliver(session, request, tenant, subscription, delivery)
        raise FormError(404, "There is nothing at this path.")

    async def _show_list(
        self,
        session: Session,
        tenant: str,
        status: int = 200,
        *,
        form: Mapping[str, Any] | None = None,
        errors: Mapping[str, str] | None = None,
        message: str = "",
        secret: Mapping[str, Any] | None = None,
    ) -> Response:
        found = await self._call_own_api(tenant, "GET", SUBSCRIPTIONS)
        text = render(
            "webhooks.html",
            here=PATH,
            session=session,
            tenant=tenant,
            tenants=sorted({DEFAULT_TENANT, tenant, *self._tenants()}),
            subscriptions=found["data"],
            events=[(event, about) for event, _, about in EVENTS.values()],
            form=form or {"url": "", "events": []},
            errors=errors or {},
            message=message,
            secret=secret,
        )
        return html_response(text, status)

    async def _show_subscription(
        self,
        session: Session,
        tenant: str,
        subscription_id: str,
        cursor: str | None = None,
        *,
        message: str = "",
        secret: Mapping[str, Any] | None = None,
    ) -> Response:
        path = _subscription_api_path(subscription_id)
        query = {"limit": "50", **({"cursor": cursor} if cursor else {})}
        deliveries = await self._call_own_api(tenant, "GET", f"{path}/deliveries", query)
        text = render(
            "webhook.html",
            here="",
            session=session,
            tenant=tenant,
            subscription=await self._call_own_api(tenant, "GET", path),
            deliveries=deliveries["data"],
            next_cursor=deliveries["nextCursor"],
            message=message,
            errors={},
            secret=secret,
        )
        return html_response(text)

    async def _show_delivery(
        self, session: Session, tenant: str, subscription_id: str, delivery_id: str, message: str = ""
    ) -> Response:
        delivery = await self._call_own_api(
            tenant, "GET", _subscription_api_path(subscription_id, "deliveries", delivery_id)
        )
        above = f"{PATH}/{tenant}/{subscription_id}"
        text = render(
            "webhook_delivery.html",
            here="",
            session=session,
            above=above,
            delivery=delivery,
            message=message,
            errors={},
        )
        return html_response(text)

    async def _create(self, session: Session, request: Request, tenant: str) -> Response:
        fields = await session.read_form(request)
        form = {"url": fields.first_or_empty("url"), "events": fields.all("event")}
        if not form["events"]:
            return await self._show_list(
                session, tenant, 422, form=form, errors={"events": "Choose at least one event."}
            )
        response = await self._operate(_tenant_or_raise_404(tenant), "POST", SUBSCRIPTIONS, {}, form)
        document = json.loads(bytes(response.body))
        if response.status_code != 201:
            return await self._show_list(
                session, tenant, response.status_code, form=form, errors=_errors_by_member(document)
            )
        return await self._show_list(session, tenant, 201, secret=document)

    async def _change_subscription(
        self, session: Session, request: Request, tenant: str, subscription_id: str, action: str
    ) -> Response:
        await session.read_form(request)
        path = _subscription_api_path(subscription_id)
        if action == "rotate":
            secret = await self._call_own_api(tenant, "POST", f"{path}/rotate-secret")
            return await self._show_subscription(session, tenant, subscription_id, secret=secret)
        if action == "delete":
            await self._call_own_api(tenant, "DELETE", path)
            return await self._show_list(session, tenant, message="The subscription and its deliveries were deleted.")
        if action not in _STATUS_OF:
            raise FormError(404, "There is nothing at this path.")
        await self._call_own_api(tenant, "PATCH", path, body={"status": _STATUS_OF[action]})
        return await self._show_subscription(session, tenant, subscription_id, message=_MESSAGES[action])

    async def _redeliver(
        self, session: Session, request: Request, tenant: str, subscription_id: str, delivery_id: str
    ) -> Response:
        await session.read_form(request)
        await self._call_own_api(
            tenant, "POST", _subscription_api_path(subscription_id, "deliveries", delivery_id, "redeliver")
        )
        return await self._show_delivery(session, tenant, subscription_id, delivery_id, _MESSAGES["redeliver"])

    async def _call_own_api(
        self, tenant: str, method: str, path: str, query: Mapping[str, str] | None = None, body: Any = None
    ) -> Any:
        response = await self._operate(_tenant_or_raise_404(tenant), method, path, query or {}, body)
        document = json.loads(bytes(response.body) or b"null")
        if response.status_code >= 400:
            raise FormError(response.status_code, document["detail"])
        return document


def _subscription_api_path(subscription_id: str, *below: str) -> str:
    return "/".join([SUBSCRIPTIONS, *(quote(each, safe="") for each in (subscription_id, *below))])


def _tenant_or_raise_404(tenant: str) -> str:
    if not SLUG_PATTERN.fullmatch(tenant):
        raise FormError(404, "There is no such tenant.")
    return tenant


def _errors_by_member(problem: Mapping[str, Any]) -> Mapping[str, str]:
    found: Sequence[Mapping[str, str]] = problem.get("errors", ())
    sentences = {each["pointer"].split("/")[1]: f"{each['pointer'].split('/')[1]} {each['detail']}." for each in found}
    return sentences or {"": problem["detail"]}
