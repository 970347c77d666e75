"""An OpenAPI document is compared with what is sent: every difference is named, and settings are proposed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.targets.test_platform_access import profile_of

from crossdock.errors import ConfigError
from crossdock.mapping.resource_types import RESOURCES
from crossdock.platform import comparison_with_openapi
from crossdock.platform.comparison_with_openapi import DifferenceFromOpenApi
from crossdock.platform.openapi_file import OpenApiDocument
from crossdock.resources import ResourceName
from crossdock.sandbox.openapi_document import build_openapi_document
from crossdock.values import exact_json

Json = dict[str, Any]
SANDBOX: Json = exact_json.loads(json.dumps(build_openapi_document()))
PRODUCTS = "/api/v1/catalog/products"
LOOKED_UP = [name for name, kind in RESOURCES.items() if kind.has_external_id]

OTHER = """\
openapi: 3.0.3
servers: [{url: https://api.example.com/v2}]
paths:
  /items/:
    parameters: [{$ref: '#/components/parameters/Tenant'}]
    post:
      parameters: [{name: X-Idempotency-Token, in: header, schema: {type: string}}]
      requestBody: {$ref: '#/components/requestBodies/Item'}
      responses:
        '201':
          content: {application/json: {schema: {type: object, properties: {item_id: {type: integer}}}}}
    get:
      parameters: [{name: external_id, in: query, schema: {type: string}}]
  /items/{item}:
    put: {}
components:
  parameters:
    Tenant: {name: X-Tenant, in: header, required: true, schema: {type: string}}
  requestBodies:
    Item: {content: {application/json; charset=utf-8: {schema: {$ref: '#/components/schemas/Item'}}}}
  schemas:
    Base: {type: object, required: [sku, tax_class], properties: {sku: {type: integer}, tax_class: {type: string}}}
    Item:
      allOf:
      - $ref: '#/components/schemas/Base'
      - type: object
        properties:
          name: {type: string, maxLength: 80}
          external_id: {type: string, nullable: true}
          unitPrice: {type: number, minimum: 0, multipleOf: 0.01}
"""


def compared(
    data: Json, *written: ResourceName, base_url: str = "https://a.example", **settings: Any
) -> list[DifferenceFromOpenApi]:
    chosen = written or get_args(ResourceName)
    found = OpenApiDocument("openapi.yaml", data)
    return comparison_with_openapi.compare_openapi_with_profile(
        found, profile_of(base_url, **settings), chosen, LOOKED_UP, chosen
    )


def test_the_sandbox_s_own_document_has_no_difference() -> None:
    """It describes all that is sent for each resource."""
    assert compared(SANDBOX) == []


def product(data: Json) -> Json:
    found: Json = data["components"]["schemas"]["Product"]
    return found


def member(name: str, **changes: Any) -> Callable[[Json], object]:
    return lambda data: product(data)["properties"][name].update(changes)


MUTATIONS: dict[str, tuple[Callable[[Json], object], str, str, bool]] = {
    "path": (lambda data: data["paths"].pop(PRODUCTS), f"POST {PRODUCTS}", "has no such path for product", True),
    "create": (
        lambda data: data["paths"][PRODUCTS].pop("post"),
        f"POST {PRODUCTS}",
        "not described; the path has GET",
        True,
    ),
    "update": (
        lambda data: data["paths"][f"{PRODUCTS}/{{id}}"].pop("patch"),
        f"PATCH {PRODUCTS}/{{id}}",
        "not described; the path has GET, DELETE",
        True,
    ),
    "delete": (
        lambda data: data["paths"][f"{PRODUCTS}/{{id}}"].pop("delete"),
        f"DELETE {PRODUCTS}/{{id}}",
        "not described",
        True,
    ),
    "look-up": (lambda data: data["paths"][PRODUCTS].pop("get"), f"GET {PRODUCTS}", "not described", True),
    "parameter": (
        lambda data: data["components"]["parameters"]["ExternalId"].update(name="extId"),
        f"GET {PRODUCTS}",
        "has no parameter externalId",
        True,
    ),
    "header": (
        lambda data: data["paths"][PRODUCTS]["post"]["parameters"].append(
            {"name": "X-Region", "in": "header", "required": True}
        ),
        f"POST {PRODUCTS}",
        "requires the header X-Region",
        True,
    ),
    "no body": (
        lambda data: data["paths"][PRODUCTS]["post"].pop("requestBody"),
        f"POST {PRODUCTS}",
        "no JSON body",
        True,
    ),
    "member": (
        lambda data: product(data)["properties"].update(SKU_code=product(data)["properties"].pop("sku")),
        f"POST {PRODUCTS} /sku",
        "is not accepted",
        True,
    ),
    "required": (lambda data: product(data)["required"].append("brand"), f"POST {PRODUCTS} /brand", "never sent", True),
    "required optional": (
        lambda data: product(data)["required"].append("barcode"),
        f"POST {PRODUCTS} /barcode",
        "sent only if it is mapped",
        False,
    ),
    "type": (member("sku", type="integer"), f"POST {PRODUCTS} /sku", "type is integer", True),
    "boolean": (
        member("active", type="string"),
        f"POST {PRODUCTS} /active",
        "type is string; a value of type boolean",
        True,
    ),
    "length": (member("name", maxLength=80), f"POST {PRODUCTS} /name", "at most 80 characters; up to 500", False),
    "least": (member("name", minLength=3), f"POST {PRODUCTS} /name", "at least 3 characters", False),
    "values": (member("unitOfMeasure", enum=["EA", "KG"]), f"POST {PRODUCTS} /unitOfMeasure", "only EA, KG", False),
    "external id": (
        member("externalId", pattern="^[0-9]+$"),
        f"POST {PRODUCTS} /externalId",
        "must match ^[0-9]+$",
        True,
    ),
    "amount": (
        lambda data: data["components"]["schemas"]["Exact"].update(minimum=0),
        f"POST {PRODUCTS} /unitPrice",
        "is at least 0",
        False,
    ),
    "decimals": (
        lambda data: data["components"]["schemas"]["Exact"].update(multipleOf=exact_json.loads("0.01")),
        f"POST {PRODUCTS} /unitPrice",
        "is a multiple of 0.01",
        False,
    ),
    "currency": (
        lambda data: data["components"]["schemas"]["Currency"].update(enum=["EUR", "USD"]),
        f"POST {PRODUCTS} /currency",
        "does not accept AED, AFN",
        False,
    ),
    "id": (
        lambda data: data["components"]["schemas"]["StoredProduct"]["properties"].pop("id"),
        f"POST {PRODUCTS}",
        "the response has no id",
        True,
    ),
    "id type": (
        lambda data: data["components"]["schemas"]["StoredProduct"]["properties"].update(id={"type": "integer"}),
        f"POST {PRODUCTS}",
        "the id in the response has the type integer",
        True,
    ),
    "patch": (
        lambda data: data["components"]["schemas"]["ProductPatch"].update(required=["sku"]),
        f"PATCH {PRODUCTS}/{{id}}",
        "requires sku; only changed members",
        True,
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_each_mutation_is_named(name: str) -> None:
    """With its operation, member and whether every request fails."""
    mutate, where, what, is_error = MUTATIONS[name]
    changed = copy.deepcopy(SANDBOX)
    mutate(changed)
    found = [each for each in compared(changed, "product") if each.where == where and what in each.what]
    assert [each.is_error for each in found] == [is_error]


def test_members_of_lines_are_compared() -> None:
    """Also inside of arrays, whose length is a limit too."""
    changed = copy.deepcopy(SANDBOX)
    changed["components"]["schemas"]["Line"]["properties"]["quantity"] = {"type": "integer"}
    changed["components"]["schemas"]["Invoice"]["properties"]["items"]["maxItems"] = 100
    found = {(each.where, each.what, each.is_error) for each in compared(changed, "invoice")}
    path = "POST /api/v1/finance/invoices"
    assert found == {
        (f"{path} /items/0/quantity", "the type is integer; a value of type number is sent", True),
        (f"{path} /items", "has at most 100 items; more may be sent", False),
    }


def test_settings_are_proposed_for_a_platform_of_another_shape() -> None:
    """Paths, headers and the look-up's parameter; then what no setting can change."""
    data = yaml.safe_load(OTHER.replace("0.01", '"0.01"')) | {}
    data["components"]["schemas"]["Item"]["allOf"][1]["properties"]["unitPrice"]["multipleOf"] = exact_json.loads(
        "0.01"
    )
    found = compared(data, "product", base_url="https://api.example.com")
    assert {each.fix for each in found if each.fix} == {
        "platform.paths.product: /v2/items/",
        "platform.tenant_header: X-Tenant",
        "platform.idempotency.header: X-Idempotency-Token",
        "platform.lookup.parameter: external_id",
    }
    said = {each.where.rpartition(" ")[2]: each.what for each in found}
    assert said["/sku"] == "the type is integer; a value of type string is sent"
    assert said["/externalId"] == "is not described; it describes external_id"
    assert said["/tax_class"] == "is required; it is never sent"
    assert "the response has no id; it has item_id" in {each.what for each in found}


def test_the_proposed_settings_remove_their_differences() -> None:
    """A path is relative to the base address, which may have a path itself."""
    settings: Json = {
        "paths": {"product": "/items/"},
        "tenant_header": "X-Tenant",
        "idempotency": {"header": "X-Idempotency-Token"},
        "lookup": {"parameter": "external_id"},
    }
    found = compared(yaml.safe_load(OTHER), "product", base_url="https://api.example.com/v2", **settings)
    assert not [each for each in found if each.fix]
    unset = compared(yaml.safe_load(OTHER), "product", base_url="https://api.example.com/v2")
    assert "platform.paths.product: /items/" in {each.fix for each in unset}


def places(value: object, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The place of each value within *value*."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(found for key, each in inner for found in places(each, (*place, key)))]


OTHER_DOCUMENT = yaml.safe_load(OTHER)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.decimals(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.just("$ref"), inner, max_size=3),
    max_leaves=5,
)


@given(place=st.sampled_from(places(OTHER_DOCUMENT)[1:]), value=JSON)
def test_a_wrong_value_in_any_place_is_no_traceback(place: tuple[Any, ...], value: object) -> None:
    """A document may be wrong anywhere: it is compared as far as it can be, or refused."""
    changed = copy.deepcopy(OTHER_DOCUMENT)
    holder = changed
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    try:
        found = compared(changed, "product", base_url="https://api.example.com")
    except ConfigError:
        return
    assert all(each.where and each.what for each in found)
