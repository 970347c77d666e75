"""Streams written in a config file have the facts and the version that their sections declare."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from crossdock import Context, DeclaredStream, RawBatch, Record, Settings, Stream, StreamConfig


class Declared(DeclaredStream[Settings]):
    def pull(self, ctx: Context[Settings], since: str | None) -> Iterator[RawBatch]:
        yield from ()


MINIMAL = """
resource: product
mode: snapshot
key: [SKU]
map: {sku: SKU, name: NAME}
"""
FULL = """
resource: invoice
mode: append
key: ["NO", YEAR]
group_by: ["NO", YEAR]
order_by: [SEQ]
columns: {"NO": {strip: both, "null": "NULL"}}
skip: {test: {field: "NO", starts_with: T}}
fingerprint: xxh3_128
duplicates: last
adopt: external_id
personal: [currency]
mapping_failed: {at_most: 3}
map:
  customerId: {ref: customer, key: CUST, namespace: erp}
  currency: {const: EUR}
  items:
    each:
      productId: {ref: product, key: SKU}
      quantity: {from: QTY, as: decimal}
      unitPrice: {from: P, as: decimal, decimal_mark: ","}
"""
REMOVING = """
resource: customer
mode: snapshot
key: [ID]
on_gone: delete
gone: {at_most: 5, at_most_percent: 2.5}
map: {name: {template: "{FIRST} {LAST}"}, billingAddress: {object: {line1: L1, city: CITY, country: {const: DE}}}}
"""


def declared(text: str, **layout: Any) -> Declared:
    return Declared("items", StreamConfig.model_validate(yaml.safe_load(text)), layout)


@pytest.mark.parametrize(
    ("text", "layout", "version"),
    [
        pytest.param(MINIMAL, {}, "32ca7f85847017b9a17a719d5b5721fe", id="minimal"),
        pytest.param(MINIMAL, {"delimiter": "|"}, "458b4224367fd42aa8da1590230fbd1f", id="another layout"),
        pytest.param(FULL, {"delimiter": ";"}, "21c0f51c5c30d107c1aada7b3ae5e9c3", id="full"),
        pytest.param(REMOVING, {}, "4b0c546054b2513f7eabd6f251f4756e", id="removing"),
    ],
)
def test_the_version_of_a_declared_stream_stays(text: str, layout: dict[str, Any], version: str) -> None:
    """A state knows which version read its files: another hash for the same section would read everything again."""
    assert declared(text, **layout).version == version


@pytest.mark.parametrize("text", [MINIMAL, FULL, REMOVING])
def test_a_declared_stream_has_the_facts_of_its_section(text: str) -> None:
    """Every key of the section but ``map`` is an attribute of the stream."""
    stream, config = declared(text), StreamConfig.model_validate(yaml.safe_load(text))
    facts = StreamConfig.model_fields.keys() - {"map"}
    assert len(facts) >= 14
    assert {fact: getattr(stream, fact) for fact in facts} == {fact: getattr(config, fact) for fact in facts}


def test_a_section_and_a_stream_in_code_have_the_same_defaults() -> None:
    """What a section leaves out is as in a class that declares as little."""
    minimal = yaml.safe_load(MINIMAL)
    elsewhere = {name: value for name, value in minimal.items() if name != "resource"} | {"to": "shop.orders"}
    for section in (minimal, elsewhere):
        config = StreamConfig.model_validate(section)
        left_out = StreamConfig.model_fields.keys() - section.keys()
        assert {name: getattr(config, name) for name in left_out} == {name: getattr(Stream, name) for name in left_out}


def test_a_declared_stream_uses_the_columns_that_its_map_names() -> None:
    """A change in any other column changes no record."""
    assert set(declared(FULL).uses or ()) == {"CUST", "SKU", "QTY", "P"}


def test_a_declared_stream_uses_the_lists_that_its_map_names() -> None:
    """A change in an element of the list changes the record."""
    items = (
        """{of: cart.lines, each: {productId: {ref: product, key: sku}, quantity: {from: n}, unitPrice: {from: p}}}"""
    )
    made = f"""
resource: order
mode: append
key: [id]
map: {{customerId: {{ref: customer, key: c}}, currency: {{const: EUR}}, placedAt: at, items: {items}}}
"""
    assert set(declared(made).uses or ()) == {"c", "at", "cart.lines"}


def test_a_declared_stream_maps() -> None:
    """The draft has the members of the map."""
    record = Record("1", ({"SKU": "0017", "NAME": "Lamp"},), "f.csv", (2,))
    assert declared(MINIMAL).draft(record).payload() == {"sku": "0017", "name": "Lamp", "active": True}


@pytest.mark.parametrize(
    ("key", "value", "place", "message"),
    [
        ("group_by", ["OTHER"], (), "group_by and key must name the same columns"),
        ("on_gone", "archive", ("on_gone",), "needs mode: snapshot"),
        ("personal", ["email"], ("personal", 0), "unknown key; known: name, sku"),
        ("map", {"sku": "S"}, ("map",), "lacks name"),
        ("map", {"sku": "S", "name": "N", "prise": "P"}, ("map", "prise"), "unknown key; known"),
        ("map", {"sku": "S", "name": {"each": {"a": "A"}}}, ("map", "name"), "each"),
        (
            "map",
            {"sku": "S", "name": {"of": "l", "each": {"a": "A"}, "single": True}},
            ("map", "name"),
            "is not an object",
        ),
        ("map", {"sku": "S", "name": {"object": {"a": "A"}}}, ("map", "name"), "is not an object of members"),
        (
            "map",
            {"sku": "S", "name": {"when": {"field": "A", "empty": True}, "then": "N", "otherwise": {"object": {}}}},
            ("map", "name", "otherwise"),
            "is not an object of members",
        ),
        ("map", {"sku": "S", "name": "N", "unit_price": "P"}, ("map", "unit_price"), "did you mean 'unitPrice'?"),
    ],
)
def test_a_section_that_cannot_work_is_refused_at_its_place(
    key: str, value: object, place: tuple[object, ...], message: str
) -> None:
    """Each finding names the key that must be edited."""
    section = yaml.safe_load(MINIMAL) | {"mode": "append"}
    with pytest.raises(ValidationError) as refused:
        StreamConfig.model_validate(section | {key: value})
    (finding,) = refused.value.errors()
    assert finding.get("ctx", {}).get("key", ()) == place
    assert message in finding["msg"]


@pytest.mark.parametrize(
    ("member", "place", "message"),
    [
        ("items: {EACH, single: true}", ("map", "items"), "is a list: use each, without single"),
        ("ITEMS, shippingAddress: {of: l, each: {city: c}}", ("map", "shippingAddress"), "each needs single: true"),
        ("ITEMS, shippingAddress: {of: l, each: {city: c}, single: true}", ("map", "shippingAddress", "each"), "lacks"),
        ("items: {EACH, also: [{object: {quantity: q}}]}", ("map", "items", "also", 0, "object"), "lacks productId"),
        (
            "items: {EACH, also: [{when: {field: a, empty: true}, then: {object: {quantity: {const: many}}}}]}",
            ("map", "items", "also", 0, "then", "object", "quantity", "const"),
            "must be an exact number",
        ),
    ],
)
def test_objects_of_lists_are_checked_at_their_places(member: str, place: tuple[object, ...], message: str) -> None:
    """Those of each element, those that follow them, and the one that is the member itself."""
    each = "of: lines, each: {productId: p, quantity: {from: q, as: decimal}, unitPrice: {from: u, as: decimal}}"
    given = member.replace("ITEMS", "items: {EACH}").replace("EACH", each)
    order = "resource: order, mode: append, key: [ID], map: {customerId: c, currency: y, placedAt: t, MEMBER}"
    with pytest.raises(ValidationError) as refused:
        StreamConfig.model_validate(yaml.safe_load("{" + order.replace("MEMBER", given) + "}"))
    (finding,) = refused.value.errors()
    assert finding.get("ctx", {}).get("key", ()) == place
    assert message in finding["msg"]


@pytest.mark.parametrize(
    ("member", "message"),
    [
        pytest.param("name: {const: false}", "must be text here: quote it", id="boolean for text"),
        pytest.param("name: {const: 17}", "must be text here: quote it", id="number for text"),
        pytest.param("name: N, active: {const: 'true'}", "must be true or false here", id="text for a boolean"),
        pytest.param("name: N, unitPrice: {const: '1'}", "must be an exact number", id="text for a number"),
        pytest.param("name: N, currency: {const: EUU}", "'EUU' is not an ISO 4217", id="no currency"),
        pytest.param("name: {const: 2026-01-02}", "must be text", id="date"),
        pytest.param("name: {const: null}", "must be text", id="null"),
        pytest.param("name: {from: N, table: {A: NO}}", "must be text here: quote it", id="table"),
        pytest.param("name: N, currency: {from: C, table: {A: EUR, B: EUU}}", "'EUU' is not an ISO 4217", id="values"),
        pytest.param("name: {from: N, table: {A: A}, otherwise: 0}", "must be text here: quote it", id="otherwise"),
        pytest.param("name: N, active: {from: A, default: 'yes'}", "must be true or false here", id="default"),
        pytest.param("name: {when: {field: A, empty: true}, then: 7}", "must be text here: quote it", id="then"),
        pytest.param(
            "name: {when: {field: A, empty: true}, then: N, otherwise: {const: 7}}",
            "must be text here: quote it",
            id="a form of a condition",
        ),
    ],
)
def test_a_constant_must_fit_its_member(member: str, message: str) -> None:
    """A constant that would make a dead letter of each record is refused when the config is loaded."""
    with pytest.raises(ValidationError, match=message) as refused:
        declared(MINIMAL.replace("name: NAME", member))
    assert refused.value.error_count() == 1


def test_a_nested_constant_must_fit_its_member() -> None:
    """Constants in objects and in lines are checked as well."""
    with pytest.raises(ValidationError, match="must match the pattern"):
        declared(REMOVING.replace("const: DE", "const: Germany"))
    with pytest.raises(ValidationError, match="must be an exact number"):
        declared(FULL.replace("{from: QTY, as: decimal}", "{const: one}"))


def test_members_of_an_object_in_a_condition_are_checked() -> None:
    """As those of an object without one."""
    section = yaml.safe_load(REMOVING)
    address = section["map"]["billingAddress"]
    section["map"]["billingAddress"] = {"when": {"field": "L1", "empty": False}, "then": address}
    StreamConfig.model_validate(section)
    address["object"]["zip"] = "ZIP"
    with pytest.raises(ValidationError, match="unknown key; known: city, country") as refused:
        StreamConfig.model_validate(section)
    (finding,) = refused.value.errors()
    assert finding["ctx"]["key"] == ("map", "billingAddress", "then", "object", "zip")
