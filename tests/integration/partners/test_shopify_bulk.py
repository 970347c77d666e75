from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import httpx
import pytest
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.shopify.access import ALL_SCOPES
from tests.partners.shopify.bulk import Failure
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.site import Site

RUN = """mutation ($query: String!, $grouped: Boolean = false) {
  bulkOperationRunQuery(query: $query, groupObjects: $grouped) {
  bulkOperation { id status url } userErrors { field message code } } }"""
ID_ONLY = "{ edges { node { id } } }"
DEEP = """{ customers { edges { node { id
  orders { edges { node { id
    fulfillmentOrders { edges { node { id lineItems { edges { node { id } } } } } } } } } } } } }"""
WIDE = f"{{ orders {{ edges {{ node {{ id {' '.join(f'{name}: lineItems {ID_ONLY}' for name in 'abcde')} }} }} }} }}"
STATE = """query ($id: ID!) { node(id: $id) { ... on BulkOperation {
  status errorCode createdAt completedAt objectCount rootObjectCount fileSize url partialDataUrl type } } }"""
CANCEL = (
    """mutation ($id: ID!) { bulkOperationCancel(id: $id) { bulkOperation { status } userErrors { field message } } }"""
)
ORDERS = """{ orders(query: "updated_at:>='2026-01-01T00:00:00Z'") { edges { node { id name
  lineItems { edges { node { id quantity taxLines { rate } } } }
  fulfillmentOrders { edges { node { id lineItems { edges { node { id remainingQuantity } } } } } } } } } }"""
IDS = "{ products { edges { node { id } } } }"


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


def run(site: Site, query: str = ORDERS, **options: Any) -> str:
    """The id of an operation that was started."""
    payload = site.data(RUN, query=query, **options)["bulkOperationRunQuery"]
    assert payload["userErrors"] == []
    assert (payload["bulkOperation"]["status"], payload["bulkOperation"]["url"]) == ("CREATED", None)
    return str(payload["bulkOperation"]["id"])


def refused(site: Site, query: str) -> list[dict[str, Any]]:
    payload = site.data(RUN, query=query)["bulkOperationRunQuery"]
    assert payload["bulkOperation"] is None
    errors: list[dict[str, Any]] = payload["userErrors"]
    return errors


def state(site: Site, operation: str) -> Any:
    return site.data(STATE, id=operation)["node"]


def result(site: Site, operation: str) -> list[Any]:
    site.clock.advance(10)
    return [json.loads(line) for line in site.client.get(state(site, operation)["url"]).text.splitlines()]


def test_an_operation_is_created_runs_and_completes(site: Site) -> None:
    """Its status follows the clock; counts and sizes are texts, and the file is read without a token."""
    site.shop.orders.place(Line(site.lamp, 2), Line(None))
    operation = run(site)
    site.clock.advance(1)
    assert state(site, operation)["status"] == "RUNNING"
    site.clock.advance(9)
    done = state(site, operation)
    assert (done["status"], done["objectCount"], done["rootObjectCount"]) == ("COMPLETED", "6", "1")
    assert (done["completedAt"], done["errorCode"], done["partialDataUrl"]) == ("2026-01-01T00:00:10Z", None, None)
    del site.client.headers["x-shopify-access-token"]
    file = site.client.get(done["url"])
    assert (file.status_code, str(len(file.content))) == (200, done["fileSize"])
    assert b'"gid:\\/\\/shopify\\/Order\\/' in file.content


def test_children_are_lines_with_the_id_of_their_parent(site: Site) -> None:
    """Grouped, each parent is before its children; grandchildren name their own parent; plain lists stay inside."""
    first = site.shop.orders.place(Line(site.lamp, 2))
    second = site.shop.orders.place(Line(site.lamp, 1))
    lines = result(site, run(site, grouped=True))
    assert [(one["id"].split("/")[3], one.get("__parentId")) for one in lines] == [
        row
        for order in (first, second)
        for row in (
            ("Order", None),
            ("LineItem", order.id),
            ("FulfillmentOrder", order.id),
            ("FulfillmentOrderLineItem", order.fulfillment_orders[0].id),
        )
    ]
    assert lines[1] == {"id": first.line_items[0].id, "quantity": 2, "taxLines": [], "__parentId": first.id}


def test_without_grouping_children_are_anywhere(site: Site) -> None:
    """By default the same lines come in any order: some children are before their parents, some after."""
    for _ in range(8):
        site.shop.orders.place(Line(site.lamp))
    grouped, loose = result(site, run(site, grouped=True)), result(site, run(site))
    key = json.dumps
    assert sorted(loose, key=key) == sorted(grouped, key=key)
    places = {one["id"]: index for index, one in enumerate(loose)}
    before = [places[one["__parentId"]] < places[one["id"]] for one in loose if "__parentId" in one]
    assert set(before) == {True, False}


def test_nothing_found_is_no_file(site: Site) -> None:
    """An operation that finds nothing completes without an address."""
    operation = run(site)
    site.clock.advance(10)
    done = state(site, operation)
    assert (done["status"], done["url"], done["objectCount"], done["fileSize"]) == ("COMPLETED", None, "0", "0")


def test_it_sees_what_is_there_when_it_is_carried_out(site: Site) -> None:
    """What changes while it runs is in the result."""
    operation = run(site)
    site.clock.advance(5)
    site.shop.orders.place(Line(None))
    site.clock.advance(5)
    assert state(site, operation)["rootObjectCount"] == "1"


def test_five_run_at_a_time(site: Site) -> None:
    """The sixth is refused, until one ends."""
    for _ in range(5):
        run(site)
    [error] = refused(site, ORDERS)
    assert (error["field"], error["code"]) == (None, "LIMIT_REACHED")
    site.clock.advance(10)
    run(site)


def test_one_at_a_time_names_the_running_one() -> None:
    """A shop that lets one run at a time says which one runs."""
    site = Site(bulk_limit=1)
    operation = run(site)
    message = f"A bulk query operation for this app and shop is already in progress: {operation}."
    assert refused(site, ORDERS) == [{"field": None, "message": message, "code": "OPERATION_IN_PROGRESS"}]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "Invalid bulk query: Syntax Error"),
        ("{ orders { edges { node { colour } } } }", "Invalid bulk query: Cannot query field 'colour'"),
        ('mutation { bulkOperationCancel(id: "1") { userErrors { field } } }', "Invalid operation type. Only `query`"),
        ("{ shop { name } }", "Bulk queries must contain at least one connection."),
        ('{ node(id: "1") { id } }', "Bulk queries cannot contain a top level `node` field."),
        (
            "{ products { nodes { id } } }",
            "All connection fields in a bulk query must select their contents using 'edges'",
        ),
        (
            "{ products { edges { node { title variants { edges { node { id } } } } } } }",
            "The parent 'node' field for a nested connection must select the 'id' field without an alias",
        ),
        (
            "{ orders { edges { node { id refunds { id transactions { edges { node { id } } } } } } } }",
            "Queries that contain a connection field within a list field are not currently supported.",
        ),
        (
            DEEP,
            "Bulk queries cannot contain connections with a nesting depth greater than 2.",
        ),
        (
            WIDE,
            "Bulk queries cannot contain more than 5 connections.",
        ),
        (
            "{ products { edges { node { id } } } orders { edges { node { id } } } }",
            "Bulk queries must contain a single top",
        ),
    ],
)
def test_a_query_that_cannot_run_in_bulk_is_refused(site: Site, query: str, message: str) -> None:
    """The rules of bulk queries are user errors, and nothing starts."""
    error = refused(site, query)[0]
    assert (error["field"], error["code"]) == (["query"], "INVALID")
    assert error["message"].startswith(message)
    assert site.shop.effects == []


def test_a_failed_operation_has_partial_data(site: Site) -> None:
    """What was found before the failure has an address of its own."""
    site.shop.orders.place(Line(site.lamp))
    site.shop.bulk.failures += [Failure("TIMEOUT", lines=2), Failure()]
    partial, nothing = run(site), run(site)
    site.clock.advance(10)
    failed = state(site, partial)
    assert (failed["status"], failed["errorCode"], failed["url"], failed["completedAt"]) == (
        "FAILED",
        "TIMEOUT",
        None,
        None,
    )
    assert len(site.client.get(failed["partialDataUrl"]).text.splitlines()) == 2
    failed = state(site, nothing)
    assert (failed["errorCode"], failed["partialDataUrl"], failed["objectCount"]) == (
        "INTERNAL_SERVER_ERROR",
        None,
        "0",
    )


def test_without_access_an_operation_fails() -> None:
    """A scope that is missing fails the operation, not the request that starts it."""
    site = Site(scopes=ALL_SCOPES - {"read_customers"})
    operation = run(site, "{ customers { edges { node { id } } } }")
    site.clock.advance(10)
    assert (state(site, operation)["status"], state(site, operation)["errorCode"]) == ("FAILED", "ACCESS_DENIED")


def test_an_operation_is_cancelled(site: Site) -> None:
    """It is cancelled a little after the request; one that has ended, or does not exist, is not."""
    operation = run(site)
    payload = site.data(CANCEL, id=operation)["bulkOperationCancel"]
    assert payload == {"bulkOperation": {"status": "CANCELING"}, "userErrors": []}
    site.clock.advance(1)
    assert (state(site, operation)["status"], state(site, operation)["url"]) == ("CANCELED", None)
    payload = site.data(CANCEL, id=operation)["bulkOperationCancel"]
    message = "A bulk operation cannot be canceled when it is canceled"
    assert payload["userErrors"] == [{"field": None, "message": message}]
    payload = site.data(CANCEL, id="gid://shopify/BulkOperation/1")["bulkOperationCancel"]
    assert payload["userErrors"] == [{"field": ["id"], "message": "Bulk operation does not exist"}]


def test_an_address_expires(site: Site) -> None:
    """After seven days the address is no longer told, and answers with an error in XML."""
    operation = run(site, IDS)
    site.clock.advance(10)
    url = state(site, operation)["url"]
    assert site.client.get(url.replace(operation.rpartition("/")[2], "1")).status_code == 404
    site.clock.advance(timedelta(days=7).total_seconds())
    assert state(site, operation)["url"] is None
    answer = site.client.get(url)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/xml; charset=UTF-8")
    assert b"ExpiredToken" in answer.content


def test_a_file_can_be_cut(site: Site) -> None:
    """A download can end in the middle of a line with nothing to tell it but the size; the next one is whole."""
    operation = run(site, IDS)
    site.clock.advance(10)
    done = state(site, operation)
    site.shop.bulk.cuts.append(20)
    assert len(site.client.get(done["url"]).content) == 20
    assert str(len(site.client.get(done["url"]).content)) == done["fileSize"]


def test_operations_are_listed_newest_first(site: Site) -> None:
    """The list has filters; the older field has the newest operation."""
    assert site.data("{ currentBulkOperation { id } }")["currentBulkOperation"] is None
    first = run(site, IDS)
    site.clock.advance(10)
    second = run(site, IDS)
    query = "query ($query: String) { bulkOperations(first: 5, query: $query) { nodes { id } } }"
    assert [one["id"] for one in site.data(query)["bulkOperations"]["nodes"]] == [second, first]
    running = site.data(query, query="status:created operation_type:query")["bulkOperations"]["nodes"]
    assert running == [{"id": second}]
    assert site.data("{ currentBulkOperation { id } }")["currentBulkOperation"] == {"id": second}
    assert [one["kind"] for one in site.shop.effects] == ["bulk_started", "bulk_started"]


def test_a_served_file_is_at_the_server(site: Site) -> None:
    """The address of a file is one that the client can reach."""
    operation = run(site, IDS)
    site.clock.advance(10)
    headers = dict(site.client.headers)
    with serving(PartnerServer(site.shop)) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        body = {"query": STATE, "variables": {"id": operation}}
        token = {"x-shopify-access-token": headers["x-shopify-access-token"]}
        url = client.post("/admin/api/2026-10/graphql.json", json=body, headers=token).json()["data"]["node"]["url"]
        assert url.startswith(server.url)
        assert client.get(url).status_code == 200
