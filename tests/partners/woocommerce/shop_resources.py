"""What the API of the fake WooCommerce shop does with each of its resources in the same way: list, read, write, batch.

Sources: ``WC_REST_CRUD_Controller`` and ``WC_REST_Controller::batch_items`` in github.com/woocommerce/woocommerce.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.partners.woocommerce.shop_errors import (
    RefusedError,
    already_trashed,
    invalid_id,
    no_route,
    trash_not_supported,
)
from tests.partners.woocommerce.shop_queries import Query, narrowed, paged

MOST_IN_A_BATCH = 100
Effects = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of record behind one address.

    Args:
        name: In the effects log, such as ``order``.
        kind: WordPress's name, such as ``shop_order``.
        url: The address of its list.
        trash: Moves a record to the trash; None for resources that do not support it.
    """

    name: str
    kind: str
    url: str
    find: Callable[[int], Any | None]
    rows: Callable[[Query], Sequence[Any]]
    create: Callable[[dict[str, Any]], Any]
    change: Callable[[Any, dict[str, Any]], None]
    delete: Callable[[Any], None]
    view: Callable[[Any, Query], dict[str, Any]]
    trash: Callable[[Any], None] | None = None

    def shown(self, record: Any, query: Query) -> dict[str, Any]:
        links = {"self": [{"href": f"{self.url}/{record.id}"}], "collection": [{"href": self.url}]}
        return {**self.view(record, query), "_links": links}


class Writes:
    """Carries out requests for a resource, and notes writes in the effects log."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects

    def note(self, kind: str, record_id: Any, body: Any = None) -> None:
        self._effects.append({"kind": kind, "id": record_id, "body": body})

    def answer(self, resource: Resource, rest: list[str], request: PartnerRequest, query: Query) -> PartnerAnswer:
        """*rest* is what follows the address of the list."""
        method = "PUT" if request.method in {"POST", "PATCH"} and rest else request.method
        match [method, *rest]:
            case ["GET"]:
                return paged(query, resource.rows(query), resource.url, lambda record: resource.shown(record, query))
            case ["POST"]:
                view = self._create(resource, sent_body(request), query)
                headers = {"location": f"{resource.url}/{view['id']}"}
                return PartnerAnswer(201, narrowed(view, query), headers)
            case ["PUT", "batch"]:
                return PartnerAnswer(200, self._batch(resource, sent_body(request), query))
            case ["GET", number] if number.isdecimal():
                view = resource.shown(_found(resource, int(number)), query)
            case ["PUT", number] if number.isdecimal():
                view = self._update(resource, int(number), sent_body(request), query)
            case ["DELETE", number] if number.isdecimal():
                view = self._delete(resource, int(number), query, force=query.boolean("force"))
            case _:
                raise no_route()
        return PartnerAnswer(200, narrowed(view, query))

    def _create(self, resource: Resource, sent: dict[str, Any], query: Query) -> dict[str, Any]:
        if sent.get("id"):
            raise RefusedError(
                400, f"woocommerce_rest_{resource.kind}_exists", f"Cannot create existing {resource.kind}."
            )
        record = resource.create(sent)
        self.note(f"{resource.name}_created", record.id, sent)
        return resource.shown(record, query)

    def _update(self, resource: Resource, number: int, sent: dict[str, Any], query: Query) -> dict[str, Any]:
        record = _found(resource, number, missing=400)
        resource.change(record, sent)
        self.note(f"{resource.name}_updated", record.id, sent)
        return resource.shown(record, query)

    def _delete(self, resource: Resource, number: int, query: Query, *, force: bool) -> dict[str, Any]:
        """The record as it was before."""
        record = _found(resource, number)
        view = resource.shown(record, query)
        if force:
            resource.delete(record)
        elif resource.trash is None:
            raise trash_not_supported(f"{resource.name.capitalize()}s")
        elif view["status"] == "trash":
            raise already_trashed(resource.kind)
        else:
            resource.trash(record)
        self.note(f"{resource.name}_{'deleted' if force else 'trashed'}", record.id)
        return view

    def _batch(self, resource: Resource, sent: dict[str, Any], query: Query) -> dict[str, Any]:
        """At most `MOST_IN_A_BATCH` records, each on its own: a refusal stands in its place, and the status is 200.
        Records are deleted for ever, not moved to the trash."""
        actions: dict[str, Callable[[Any], dict[str, Any]]] = {
            "create": lambda item: self._create(resource, item, query),
            "update": lambda item: self._update(resource, item.get("id", 0), item, query),
            "delete": lambda number: self._delete(resource, int(number), query, force=True),
        }
        if sum(len(sent.get(name) or ()) for name in actions) > MOST_IN_A_BATCH:
            message = f"Unable to accept more than {MOST_IN_A_BATCH} items for this request."
            raise RefusedError(413, "woocommerce_rest_request_entity_too_large", message)
        answers: dict[str, Any] = {}
        for name, action in actions.items():
            for item in sent.get(name) or ():
                try:
                    answers.setdefault(name, []).append(action(item))
                except RefusedError as refused:
                    number = {"create": 0, "update": item.get("id", 0) if isinstance(item, dict) else 0}.get(name, item)
                    answers.setdefault(name, []).append({"id": number, "error": refused.body()})
        return answers


def _found(resource: Resource, number: int, missing: int = 404) -> Any:
    record = resource.find(number)
    if record is None:
        raise invalid_id(resource.kind, missing)
    return record


def sent_body(request: PartnerRequest) -> dict[str, Any]:
    """The object that a request sends, empty without a body."""
    try:
        body = request.json()
    except ValueError:
        extra = {"json_error_code": 4, "json_error_message": "Syntax error"}
        raise RefusedError(400, "rest_invalid_json", "Invalid JSON body passed.", **extra) from None
    return body if isinstance(body, dict) else {}
