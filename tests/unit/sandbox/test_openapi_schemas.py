from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from jsonschema_rs import Draft202012Validator
from tests.unit.sandbox.raw import METHODS, Raw

from crossdock.sandbox import openapi_document, openapi_schemas
from crossdock.sandbox.api_routes import COLLECTIONS


def test_schemas_refuse_what_the_sandbox_refuses(raw: Raw) -> None:
    """A misspelt member, a fifth decimal, half a yen and a zero-width character are invalid."""
    schema = Draft202012Validator(raw("GET", "/schemas/invoice.json").json())
    fits = json.loads(raw.invoice(price="12"))
    fits["customerId"], fits["items"][0]["productId"] = ("cus_" + "0" * 25, "prd_" + "0" * 25)
    schema.validate(fits)
    line = fits["items"][0]
    for wrong in (
        {**fits, "customer_id": "x"},
        {**fits, "currency": "XQQ"},
        {**fits, "items": []},
        {**fits, "items": [{**line, "quantity": "2"}]},
        {**fits, "items": [{**line, "quantity": 10**15}]},
        {**fits, "currency": "JPY", "items": [{**line, "unitPrice": 0.5}]},
    ):
        assert not schema.is_valid(wrong), wrong
    customer = Draft202012Validator(raw("GET", "/schemas/customer.json").json())
    assert customer.is_valid({"externalId": "c", "name": "\u0645\u06cc\u200c\u062e\u0648"})
    assert not customer.is_valid({"externalId": "c\u200b", "name": "n"})


def test_the_invoice_schema_has_the_documented_members() -> None:
    """The invoice input has exactly the documented members, and the stored one five more."""
    schemas = openapi_document.build_openapi_document()["components"]["schemas"]
    documented = {"customerId", "currency", "items", "autoPostLedger"}
    assert set(schemas["Invoice"]["properties"]) == documented
    assert set(schemas["Invoice"]["required"]) == documented - {"autoPostLedger"}
    given = {"id", "createdAt", "updatedAt", "status", "total"}
    assert set(schemas["StoredInvoice"]["properties"]) == documented | given
    assert "required" not in schemas["InvoicePatch"]


def test_schemas_are_closed_and_bounded() -> None:
    """Objects are closed, texts and numbers have bounds, no title is generated, and each operation has its scope."""
    document = openapi_document.build_openapi_document()
    for place, schema in walk(document["components"]["schemas"]):
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False, place
        if "examples" not in place:
            assert not isinstance(schema.get("title"), str), place
    for name in (each.kind.wire.__name__ for each in COLLECTIONS.values()):
        for member, schema in openapi_schemas.component_schemas()[name]["properties"].items():
            if schema.get("type") == "string":
                assert {"pattern", "format", "enum", "const"} & set(schema), (name, member)
    scopes = {
        item[method]["operationId"]: item[method]["security"][0]["bearer"]
        for item in document["paths"].values()
        for method in METHODS
        if method in item
    }
    assert scopes["createInvoice"] == scopes["approveInvoice"] == scopes["deleteInvoice"] == ["invoices:write"]
    assert (scopes["listEntry"], scopes["moveInventoryLot"]) == (["accounts:read"], ["lots:write"])


def walk(value: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield place, value
        value = value.items()
    elif isinstance(value, list):
        value = enumerate(value)
    else:
        return
    for name, inner in value:
        yield from walk(inner, f"{place}/{name}")
