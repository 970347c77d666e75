from __future__ import annotations

from typing import Any

from openapi_spec_validator import OpenAPIV31SpecValidator
from tests.unit.sandbox.raw import METHODS, Raw
from tests.unit.sandbox.test_openapi_schemas import walk

from crossdock.sandbox import openapi_document, openapi_schemas
from crossdock.sandbox.api_routes import COLLECTIONS


def test_document_is_valid_openapi(raw: Raw) -> None:
    """The document, served without a credential, is valid OpenAPI 3.1."""
    document = raw("GET", "/openapi.json", authorization=None, x_tenant_slug=None).json()
    OpenAPIV31SpecValidator(document).validate()
    assert document["openapi"].startswith("3.1")


def test_every_path_and_method_of_the_sandbox_is_described() -> None:
    """The seven collections, their resources and the paths below, with the methods that the sandbox supports."""
    paths = openapi_document.build_openapi_document()["paths"]
    webhooks = {path for path in paths if path.startswith("/api/v1/webhooks/")}
    below = {
        "/api/v1/finance/invoices/{id}/approve": {"post"},
        "/api/v1/inventory/lots/{id}/movements": {"post"},
        "/api/v1/finance/ledger-accounts/{id}/entries": {"get"},
    }
    assert set(paths) == {path + end for path in COLLECTIONS for end in ("", "/{id}")} | set(below) | webhooks
    for path, item in paths.items():
        if path in webhooks:
            continue
        expected = below.get(path) or ({"get", "patch", "delete"} if path.endswith("}") else {"get", "post"})
        assert expected == set(item) & set(METHODS)


def test_everything_but_the_documented_invoice_request_is_marked_as_assumed() -> None:
    """Only the request of POST invoices is documented: its responses and the idempotency key are assumed."""
    document = openapi_document.build_openapi_document()
    unmarked = [
        (path, method)
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item and not item[method].get("x-assumption")
    ]
    assert unmarked == [("/api/v1/finance/invoices", "post")]
    answers: dict[str, Any] = document["paths"]["/api/v1/finance/invoices"]["post"]["responses"]
    parts = document["components"]
    assert answers["201"]["x-assumption"] is True
    assert all(
        parts["responses"][each["$ref"].rpartition("/")[2]]["x-assumption"] for n, each in answers.items() if n != "201"
    )
    assert [name for name, each in parts["parameters"].items() if not each.get("x-assumption")] == ["Tenant"]
    plain = {name for name, each in parts["schemas"].items() if each.get("x-assumption") is not True}
    assert plain == {"Invoice", "Line"}


def test_the_rules_that_are_assumed_are_marked_inside_the_documented_request() -> None:
    """The form of ids, the digits, the currencies, the closed members: every rule that the specification lacks."""
    schemas = openapi_document.build_openapi_document()["components"]["schemas"]
    marks = {
        f"{name}{f'.{member}' if member else ''}": schema["x-assumption"]
        for name in ("Invoice", "Line")
        for member, schema in [("", schemas[name]), *schemas[name]["properties"].items()]
    }
    assert marks == {
        "Invoice": ["additionalProperties", "if", "then"],
        "Invoice.customerId": ["pattern"],
        "Invoice.currency": ["$ref"],
        "Invoice.items": ["minItems"],
        "Invoice.autoPostLedger": ["type"],
        "Line": ["additionalProperties"],
        "Line.productId": ["pattern"],
        "Line.quantity": ["$ref"],
        "Line.unitPrice": ["$ref"],
    }
    assert all(schemas[each]["x-assumption"] is True for each in ("Currency", "Exact"))


def test_every_amount_is_a_decimal() -> None:
    """Each number that is not a whole one has the format that generators map to a decimal type."""
    for place, schema in walk(openapi_document.build_openapi_document()):
        if schema.get("type") == "number":
            assert schema["format"] == "decimal", place


def test_the_three_events_are_described() -> None:
    """Under webhooks, with the headers of Standard Webhooks, a closed payload of three members, and no security."""
    webhooks = openapi_document.build_openapi_document()["webhooks"]
    assert set(webhooks) == {"order.created", "inventory.lot_moved", "invoice.approved"}
    for event, item in webhooks.items():
        sent = item["post"]
        names = [each["name"] for each in sent["parameters"]]
        assert names == ["webhook-id", "webhook-timestamp", "webhook-signature"]
        schema = openapi_schemas.component_schemas()[
            sent["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        ]
        assert schema["required"] == ["type", "timestamp", "data"]
        assert schema["properties"]["type"]["const"] == event
        assert schema["additionalProperties"] is False
        assert (sent["security"], item["x-assumption"], sent["x-assumption"]) == ([], True, True)
