from __future__ import annotations

import re

import pytest
from jsonschema_rs import Draft202012Validator, meta
from tests.unit.sandbox.raw import BASE_URL, CUSTOMERS, Raw, assert_problem, exact


@pytest.mark.parametrize("name", ["invoice", "Invoice", "inventory_lot", "inventory-lot", "StoredOrder", "Problem"])
def test_a_schema_is_self_contained(raw: Raw, name: str) -> None:
    """It is valid 2020-12, has its own URL as $id, accepts its example, and has no external references."""
    answer = raw("GET", f"/schemas/{name}.json", authorization=None)
    assert answer.headers["content-type"] == "application/schema+json"
    schema = answer.json()
    meta.validate(schema)
    Draft202012Validator(schema).validate(schema["examples"][0])
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    path = schema["$id"].removeprefix(BASE_URL)
    assert raw("GET", path, authorization=None).json() == schema
    assert all(each.startswith("#/$defs/") for each in re.findall(r'"\$ref": ?"([^"]*)"', answer.text))


@pytest.mark.parametrize(
    "path", ["/docs/", "/docsx", "/openapi.json/", "/schemas/", "/schemas/nothing.json", "/schemas/x"]
)
def test_other_paths_are_404(raw: Raw, path: str) -> None:
    """Other paths are 404 without a credential, and only GET is supported."""
    assert_problem(raw("GET", path, authorization=None), 404)
    assert_problem(raw("POST", "/openapi.json", "", authorization=None), 405)


def test_descriptions_cost_no_token_and_are_not_logged(raw: Raw) -> None:
    """The bucket stays full, and the request log has only the request to the API."""
    for path in ("/openapi.json", "/schemas/invoice.json"):
        raw("GET", path, authorization=None)
    assert raw("GET", CUSTOMERS).headers["ratelimit"].startswith('"default";r=1999')
    assert exact(raw("GET", "/_sandbox/requests"))["total"] == 1
