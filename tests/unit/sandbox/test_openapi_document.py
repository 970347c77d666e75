from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jsonschema_rs import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from tests.unit.sandbox.raw import Raw

from crossdock.sandbox import openapi_document, openapi_schemas
from crossdock.sandbox.collections import COLLECTIONS

METHODS = ("get", "post", "patch", "delete")


def test_document_is_valid_openapi(raw: Raw) -> None:
    """What is served, without any credential, is a valid OpenAPI 3.1 document."""
    document = raw("GET", "/openapi.json", authorization=None, x_tenant_slug=None).json()
    OpenAPIV31SpecValidator(document).validate()
    assert document["openapi"].startswith("3.1")


def test_every_path_and_method_of_the_sandbox_is_described() -> None:
    """Seven collections, their members and what is below those, with the methods that the sandbox answers."""
    paths = openapi_document.document()["paths"]
    below = {
        "/api/v1/finance/invoices/{id}/approve": {"post"},
        "/api/v1/inventory/lots/{id}/movements": {"post"},
        "/api/v1/finance/ledger-accounts/{id}/entries": {"get"},
    }
    assert set(paths) == {path + end for path in COLLECTIONS for end in ("", "/{id}")} | set(below)
    for path, item in paths.items():
        expected = below.get(path) or ({"get", "patch", "delete"} if path.endswith("}") else {"get", "post"})
        assert expected == set(item) & set(METHODS)


def test_everything_but_the_documented_invoice_request_is_marked_as_assumed() -> None:
    """Only POST invoices is documented, and of it not the answers, not the idempotency key."""
    document = openapi_document.document()
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
    plain = {name for name, each in parts["schemas"].items() if not each.get("x-assumption")}
    assert plain == {"Invoice", "Line"}


def test_schemas_tell_what_the_spec_tells() -> None:
    """The invoice input has exactly the documented members, and the stored one five more."""
    told = openapi_document.document()["components"]["schemas"]
    documented = {"customerId", "currency", "items", "autoPostLedger"}
    assert set(told["Invoice"]["properties"]) == documented
    assert set(told["Invoice"]["required"]) == documented - {"autoPostLedger"}
    given = {"id", "createdAt", "updatedAt", "status", "total"}
    assert set(told["StoredInvoice"]["properties"]) == documented | given
    assert "required" not in told["InvoicePatch"]


def test_every_example_fits_its_schema() -> None:
    """Examples of schemas, bodies and events can be sent as they are, and each object schema has one."""
    document = openapi_document.document()
    bodies = [schema["examples"][0] for schema in document["components"]["schemas"].values()]
    assert all(fits(name, body) for name, body in zip(document["components"]["schemas"], bodies, strict=True))
    items = [*document["paths"].values(), *document["webhooks"].values()]
    operations = [item[method] for item in items for method in METHODS if method in item]
    contents = [each for one in operations for each in one.get("requestBody", {"content": {}})["content"].values()]
    assert len(contents) == 7 + 7 + 1 + 3  # creations, changes, movements, events
    assert all(fits(each["schema"]["$ref"].rpartition("/")[2], each["example"]) for each in contents)


def fits(name: str, body: Any) -> bool:
    schema = openapi_schemas.of(name, "http://sandbox.test")
    assert schema is not None
    return bool(Draft202012Validator(schema).is_valid(body))


def test_the_three_events_are_described() -> None:
    """Under webhooks, with the headers of Standard Webhooks, a closed payload of three members, and no bearer."""
    webhooks = openapi_document.document()["webhooks"]
    assert set(webhooks) == {"order.created", "inventory.lot_moved", "invoice.approved"}
    for event, item in webhooks.items():
        sent = item["post"]
        names = [each["name"] for each in sent["parameters"]]
        assert names == ["webhook-id", "webhook-timestamp", "webhook-signature"]
        schema = openapi_schemas.components()[
            sent["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        ]
        assert schema["required"] == ["type", "timestamp", "data"]
        assert schema["properties"]["type"]["const"] == event
        assert schema["additionalProperties"] is False
        assert (sent["security"], item["x-assumption"], sent["x-assumption"]) == ([], True, True)


def test_the_document_tells_what_is_accepted() -> None:
    """Objects are closed, texts and numbers have bounds, no title is a machine's, and each operation has its scope."""
    document = openapi_document.document()
    for place, schema in walk(document["components"]["schemas"]):
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False, place
        if "examples" not in place:
            assert not isinstance(schema.get("title"), str), place
    for name in (each.kind.wire.__name__ for each in COLLECTIONS.values()):
        for member, schema in openapi_schemas.components()[name]["properties"].items():
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
