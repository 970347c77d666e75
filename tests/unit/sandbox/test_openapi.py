from __future__ import annotations

from typing import Any

from openapi_spec_validator import OpenAPIV31SpecValidator
from tests.unit.sandbox.raw import Raw

from crossdock.sandbox import openapi
from crossdock.sandbox.resources import COLLECTIONS

METHODS = ("get", "post", "patch", "delete")


def test_document_is_valid_openapi(raw: Raw) -> None:
    """What is served, without any credential, is a valid OpenAPI 3.1 document."""
    document = raw("GET", "/openapi.json", authorization=None, x_tenant_slug=None).json()
    OpenAPIV31SpecValidator(document).validate()
    assert document["openapi"].startswith("3.1")


def test_every_path_and_method_of_the_sandbox_is_described() -> None:
    """Seven collections and their members, with the methods that the sandbox answers."""
    paths = openapi.document()["paths"]
    assert set(paths) == {path + end for path in COLLECTIONS for end in ("", "/{id}")}
    for path, item in paths.items():
        expected = {"get", "patch", "delete"} if path.endswith("}") else {"get", "post"}
        assert expected == set(item) & set(METHODS)


def test_everything_but_the_documented_invoice_request_is_marked_as_assumed() -> None:
    """Only POST invoices is documented, and of it not the answers, not the idempotency key."""
    document = openapi.document()
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
    """The invoice input has exactly the documented members, and the stored one three more."""
    schemas = openapi.document()["components"]["schemas"]
    documented = {"customerId", "currency", "items", "autoPostLedger"}
    assert set(schemas["Invoice"]["properties"]) == documented
    assert set(schemas["Invoice"]["required"]) == documented - {"autoPostLedger"}
    assert set(schemas["StoredInvoice"]["properties"]) == documented | {"id", "createdAt", "updatedAt"}
    assert "required" not in schemas["InvoicePatch"]
