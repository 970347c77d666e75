"""Shopify publishes our part of its schema just so: ``pytest tests/long/test_shopify_published_schema.py``, by npm."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from graphql import NoDeprecatedCustomRule, parse, validate
from tests.consumers.generated_clients import npm_registry_answers
from tests.partners.shopify import access
from tests.partners.shopify.lists import LISTS
from tests.partners.shopify.published_schema import differences, fetched, introspection, kept_in, published_schema
from tests.partners.shopify.schema import admin_schema
from tests.partners.shopify.sent_queries import bulk_queries, documents
from tests.partners.shopify.site import ORDERS_BY_CHANGE
from tests.servers import require

from crossdock_connectors.shop.shopify.webhooks import (
    SCOPE_BY_TOPIC_RESOURCE,
    topic_in_header_form,
    topic_in_schema_form,
)


@pytest.fixture(name="file", scope="module")
def _file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published schema, from an earlier run of the tests or by npm."""
    cache: pytest.Cache | None = getattr(request.config, "cache", None)  # None with -p no:cacheprovider
    folder = tmp_path_factory.mktemp("schema") if cache is None else cache.mkdir("shopify-admin-schema")
    if not kept_in(folder).exists():
        require(npm_registry_answers(), "access to the npm registry", optional_by="CROSSDOCK_NPM_OPTIONAL")
    return fetched(folder)


def test_our_schema_is_a_part_of_the_published_one(file: Path) -> None:
    """Each of our types, fields, arguments and values is published just so, and so is what a query of ours means."""
    assert differences(admin_schema(), published_schema(file)) == []


def test_a_query_of_ours_is_valid_by_the_published_schema(file: Path) -> None:
    """What the fake accepts, Shopify accepts."""
    assert validate(published_schema(file), parse(ORDERS_BY_CHANGE)) == []


@pytest.mark.parametrize("name", [*documents(), *bulk_queries()])
def test_a_query_of_the_connector_is_valid_by_the_published_schema(file: Path, name: str) -> None:
    """Shopify accepts each query that is sent, and calls none deprecated."""
    document = parse({**documents(), **bulk_queries()}[name])
    assert validate(published_schema(file), document) == []
    assert validate(published_schema(file), document, [NoDeprecatedCustomRule]) == []


def test_each_filter_is_in_the_published_description(file: Path) -> None:
    """The fields that lists can be searched for are those that Shopify describes."""
    types = {one["name"]: one for one in introspection(file)["__schema"]["types"]}
    fields = {one["name"]: one for name in ("Location", "QueryRoot") for one in types[name]["fields"]}
    for name, listed in LISTS.items():
        [query] = [one["description"] for one in fields[name]["args"] if one["name"] == "query"]
        assert listed.filters.keys() <= set(re.findall(r"^\| (\w+) \|", query, re.MULTILINE)), name


def test_the_scopes_are_the_published_ones(file: Path) -> None:
    """A scope opens what Shopify says that it opens."""
    types = {one["name"]: one for one in introspection(file)["__schema"]["types"]}
    for name, scopes in access.TYPES.items():
        assert all(f"`{scope}`" in types[name]["requiredAccess"] for scope in scopes), name
    mutations = {one["name"]: one for one in types["Mutation"]["fields"]}
    for name, scopes in access.MUTATIONS.items():
        assert all(f"`{scope}`" in mutations[name]["requiredAccess"] for scope in scopes), name


def test_topics_and_their_scopes_are_the_published_ones(file: Path) -> None:
    """The header's form of a topic is that of its description, which also names a scope that we name."""
    types = {one["name"]: one for one in introspection(file)["__schema"]["types"]}
    descriptions = {one["name"]: one["description"] for one in types["WebhookSubscriptionTopic"]["enumValues"]}
    topics = {
        name: found[1] for name, text in descriptions.items() if (found := re.search("`([a-z_]+/[a-z_]+)`", text))
    }
    assert len(topics) > 150
    for name, topic in topics.items():
        assert (topic_in_header_form(name), topic_in_schema_form(topic)) == (topic, name)
        resource = topic.partition("/")[0]
        if topic != "customers/merge":
            assert SCOPE_BY_TOPIC_RESOURCE.get(resource, "") in descriptions[name], name
    for resource, scope in SCOPE_BY_TOPIC_RESOURCE.items():
        assert access.TOPICS[resource.partition("_")[0].upper()] == (scope,)
