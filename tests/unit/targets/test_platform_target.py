"""Requests to the platform."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crossdock.mapping.resource_types import make_platform_external_id
from crossdock.platform.platform_config import Profile
from crossdock.targets import Request, Update
from crossdock.writing.targets.platform_target import PlatformTarget


def target(**settings: Any) -> PlatformTarget:
    facts = {"base_url": "http://127.0.0.1:1", "tenant": "acme", "auth": {"kind": "api_key", "token": "env:KEY"}}
    return PlatformTarget(Profile.model_validate(facts | settings, context={"folder": Path()}))


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(
            target().create("order", {"a": 1}),
            Request("POST", "/api/v1/sales/orders", b'{"a":1}', holds_payload=True),
            id="create",
        ),
        pytest.param(
            target().create("lot_movement", {"lotId": "l/1", "quantity": 2}),
            Request("POST", "/api/v1/inventory/lots/l%2F1/movements", b'{"quantity":2}'),
            id="movement",
        ),
        pytest.param(
            target().create("invoice_approval", {"invoiceId": "i1"}),
            Request("POST", "/api/v1/finance/invoices/i1/approve", b"{}"),
            id="approval",
        ),
        pytest.param(
            target().update("order", "o/1", Update({}, {"a": 2}, {"a": 2, "b": 1})),
            Request("PATCH", "/api/v1/sales/orders/o%2F1", b'{"a":2}'),
            id="update",
        ),
        pytest.param(target().delete("order", "o1"), Request("DELETE", "/api/v1/sales/orders/o1"), id="delete"),
        pytest.param(target().look_up("order", "wms:7", "o1"), Request("GET", "/api/v1/sales/orders/o1"), id="by id"),
        pytest.param(
            target().look_up("order", "wms:7", None),
            Request("GET", "/api/v1/sales/orders?externalId=wms%3A7"),
            id="by external id",
        ),
        pytest.param(target().ping("order"), Request("GET", "/api/v1/sales/orders?limit=1"), id="ping"),
        pytest.param(
            target(paths={"order": "/orders"}, lookup={"parameter": "ref"}).look_up("order", "wms:7", None),
            Request("GET", "/orders?ref=wms%3A7"),
            id="configured path and parameter",
        ),
    ],
)
def test_requests(request_: Request, expected: Request) -> None:
    """Method, path and exact bytes."""
    assert request_ == expected


@pytest.mark.parametrize(
    ("status", "setting"),
    [(401, "platform.auth"), (403, "platform.tenant"), (404, "paths.order"), (405, "paths.order"), (429, "rate")],
)
def test_advice_names_a_setting(status: int, setting: str) -> None:
    """The one that a refusal of every record is about."""
    assert setting in target().advice("order", status)


def test_only_resources_with_an_external_id_send_it() -> None:
    """The invoice has the documented members only."""
    members = {"currency": "EUR"}
    assert target().payload("order", "wms", "7", members) == {
        "externalId": make_platform_external_id("wms", "7"),
        **members,
    }
    assert target().payload("invoice", "wms", "7", members) == members
