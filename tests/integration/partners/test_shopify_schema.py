"""Our part of Shopify's schema, and how it is compared with the published one."""

from __future__ import annotations

import pytest
from graphql import GraphQLSchema, build_schema, print_schema
from tests.partners.shopify.fake_shop import FakeShopify
from tests.partners.shopify.published_schema import differences
from tests.partners.shopify.roots import root
from tests.partners.shopify.schema import admin_schema

from crossdock.testing.manual_clock import ManualClock


@pytest.mark.parametrize(
    ("published", "ours", "difference"),
    [
        ("orderNumber: Int!", "orderNumber: Int", "Thing.orderNumber: Int, and not Int!"),
        ("orders(first: Int): Int", "orders(last: Int): Int", "Thing.orders: other arguments"),
        ("orders(first: Int = 5): Int", "orders(first: Int = 6): Int", "Thing.orders: other arguments"),
        ("orders(id: ID!): Int", "orders: Int", "Thing.orders: other arguments"),
        ("id: ID", "id: ID name: String", "Thing.name: unknown field"),
        ('id: ID @deprecated(reason: "x")', "id: ID", "Thing.id: deprecated in one of them"),
    ],
)
def test_a_difference_is_found(published: str, ours: str, difference: str) -> None:
    """The comparison sees each way in which a schema can be no part of another."""
    theirs, own = (build_schema(f"type Query {{ thing: Thing }} type Thing {{ {one} }}") for one in (published, ours))
    assert differences(own, theirs) == [difference]


def test_a_difference_of_other_types_is_found() -> None:
    """Values, members, input fields, kinds and directives are compared too."""
    base = """type Query { a(i: I): U } enum E { X } input I { x: Int } union U = A | B
    type A { e: E } type B { e: E } directive @once(key: String!) on FIELD"""
    theirs = build_schema(base)
    changed = base.replace("E { X }", "E { X Y }").replace("x: Int", "x: Int!").replace("String!) on", "String) on")
    found = {"I: other input fields", "E.Y: unknown value", "@once: not as published"}
    assert set(differences(build_schema(changed), theirs)) == found
    assert differences(build_schema(base.replace("union U = A | B", "scalar U")), theirs) == ["U: another kind of type"]
    assert differences(build_schema(base + " type C { x: Int }"), theirs) == ["C: unknown type"]


def test_every_field_of_the_roots_is_answered() -> None:
    """The fake has a resolver for each query and mutation in its schema."""
    schema: GraphQLSchema = admin_schema()
    fake = FakeShopify(ManualClock().now)
    assert schema.query_type is not None
    assert schema.mutation_type is not None
    assert schema.query_type.fields.keys() <= root({}).keys()
    assert schema.mutation_type.fields.keys() <= fake._root.keys()
    assert "subscription" not in print_schema(schema)
