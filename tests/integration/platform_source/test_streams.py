"""Streams over the lists of a real sandbox: nothing is missing, also while it changes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.integration.platform_source.reading import COPIES, Reading, reading
from tests.partners import fetched_rows

from crossdock.errors import UnauthorizedError
from crossdock.sandbox import SandboxSettings
from crossdock.testing import context
from crossdock.values import exact_json
from crossdock.values.raw_rows_and_records import JSON, RawBatch

PRODUCTS = {"products": COPIES}
ORDERS = {
    "read": "order",
    "resource": "order",
    "namespace": "copies",
    "skip": {"ours": {"field": "externalId", "starts_with": "copies:"}},
    "map": {
        "customerId": "customerId",
        "currency": "currency",
        "placedAt": {"from": "placedAt", "as": "instant"},
        "items": {
            "of": "items",
            "each": {
                "productId": "productId",
                "quantity": {"from": "quantity", "as": "decimal"},
                "unitPrice": {"from": "unitPrice", "as": "decimal"},
            },
        },
    },
}


def test_a_list_is_read_to_its_end_as_the_platform_serves_it(erp: Reading) -> None:
    """All pages are read, and a record has all members of the platform."""
    ids = erp.products(250)
    erp.configure(PRODUCTS)
    trial = erp.tried()
    assert trial.error is None
    assert [tried.record.key for tried in trial.records] == ids
    assert trial.records[0].record.json().keys() >= {"id", "externalId", "sku", "createdAt", "updatedAt"}
    assert len(erp.requested("/api/v1/catalog/products")) == 3


def test_what_it_wrote_itself_is_read_and_left_out(erp: Reading) -> None:
    """A stream that writes to the platform that it reads ends, and writes no copies of its copies."""
    ids = erp.products(7)
    erp.configure(PRODUCTS)
    for _ in range(3):
        erp.sync()
    assert erp.copies() == {each: f"Part {number}" for number, each in enumerate(ids)}


@pytest.mark.nightly
def test_a_second_run_reads_only_what_changed(erp: Reading) -> None:
    """It begins at the last change that the run before has read, that one included."""
    ids = erp.products(250)
    erp.configure({"products": COPIES | {"overlap_s": 0}})
    erp.sync()
    first = erp.sync().tallies["erp.products"].rows_read
    assert first == 250 + 1  # the copies, which were written while the first run read, and the last one it read
    erp.client.products.update(ids[3], {"name": "Lamp"})
    report = erp.sync()
    assert report.tallies["erp.products"].rows_read == 2
    assert report.tallies["erp.products"].records["updated"] == 1
    assert erp.copies()[ids[3]] == "Lamp"


def test_records_with_the_same_time_of_change_are_all_read(erp: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ties that fill several pages, and that come after the end of the first run, are neither lost nor repeated."""
    monkeypatch.setattr(erp.server.sandbox._controls.clock, "_source", datetime.now(UTC).timestamp().__float__)
    ids = erp.products(25)
    erp.configure(PRODUCTS, {"page_size": 10})
    assert [tried.record.key for tried in erp.tried().records] == ids
    erp.sync()
    ids += erp.products(5, "Q")
    erp.sync()
    assert erp.copies().keys() == set(ids)


def pulled(erp: Reading, mode: str, page_size: int) -> Iterator[RawBatch]:
    """The batches of a stream over products, one page each."""
    loaded = erp.configure({"products": COPIES | {"mode": mode}}, {"page_size": page_size})
    (connection,) = loaded.connections
    ctx = context(connection.connector, connection.settings, folder=erp.folder, clock=erp.clock)
    yield from (batch for batch in connection.streams[0].pull(ctx, None) if isinstance(batch, RawBatch))


@pytest.mark.parametrize("mode", ["incremental", "snapshot"])
def test_what_changes_while_the_list_is_read_is_not_missed(erp: Reading, mode: str) -> None:
    """Records that change, come or go between two pages: the last version of each that exists is read."""
    ids = erp.products(40)
    batches = pulled(erp, mode, 10)
    found = [next(batches)]
    erp.client.products.update(ids[0], {"name": "was read"})
    erp.client.products.update(ids[15], {"name": "is next"})
    erp.client.products.delete(ids[1])
    erp.client.products.delete(ids[20])
    ids += erp.products(3, "Q")
    found += batches
    items = [item for batch in found for item in records(batch)]
    latest = {item["id"]: item for item in items}
    assert {each.id for each in erp.client.products.list()} <= latest.keys()
    assert {each.id: each.name for each in erp.client.products.list()}.items() <= {
        key: item["name"] for key, item in latest.items()
    }.items()
    assert ids[20] not in latest


def records(batch: RawBatch) -> list[Any]:
    return [exact_json.loads(text) for text in batch.load()[JSON]]


def test_a_snapshot_takes_the_newer_version_of_a_record_that_it_lists_twice(erp: Reading) -> None:
    """A record that changes while a snapshot is read is in it twice, and is no reason to refuse it."""
    ids = erp.products(5)
    erp.configure({"products": COPIES | {"mode": "snapshot"}}, {"page_size": 2})
    stream = erp.project.connections[0].streams[0]
    pull = stream.pull

    def changed_meanwhile(ctx: Any, since: str | None) -> Iterator[Any]:
        batches = pull(ctx, since)
        yield next(batches)
        erp.client.products.update(ids[0], {"name": "Lamp"})
        yield from batches

    object.__setattr__(stream, "pull", changed_meanwhile)
    erp.sync()
    assert erp.copies()[ids[0]] == "Lamp"


@pytest.mark.nightly(but=["incremental"])
@pytest.mark.parametrize("mode", ["incremental", "snapshot"])
def test_a_deleted_record_is_removed(erp: Reading, mode: str) -> None:
    """Changes do not show it, so all records are listed after them; a snapshot lists them anyway."""
    ids = erp.products(10)
    limits = {"at_most_percent": 100, "rows_within_percent": 100}
    erp.configure({"products": COPIES | {"mode": mode, "on_gone": "delete", "gone": limits}})
    for _ in range(4):  # earlier lists show how many records there usually are
        erp.sync()
    assert erp.copies().keys() == set(ids)
    erp.client.products.delete(ids[4])
    erp.sync()
    assert erp.copies().keys() == {*ids} - {ids[4]}


def test_expanded_records_are_beside_their_ids_and_read_once(erp: Reading) -> None:
    """The customer of an order and the products of its lines are there; each is requested once."""
    lamp, shelf = erp.products(2)
    erp.order([lamp, shelf, lamp], key="o1")
    erp.order([shelf], key="o2")
    erp.configure({"orders": ORDERS | {"expand": ["customerId", "productId"]}})
    first, second = (tried.record.json() for tried in erp.tried("erp.orders").records)
    assert first["customer"]["name"] == "Ada"
    assert [line["product"]["sku"] for line in first["items"]] == ["P0", "P1", "P0"]
    assert [line["product"]["sku"] for line in second["items"]] == ["P1"]
    assert first["items"][0]["unitPrice"] == Decimal("9.5")
    assert len(erp.requested(f"/api/v1/catalog/products/{lamp}")) == 1
    assert len(erp.requested(f"/api/v1/catalog/products/{shelf}")) == 1


def test_an_expanded_record_that_is_deleted_is_null(erp: Reading) -> None:
    """The order is read all the same."""
    lamp, shelf = erp.products(2)
    erp.order([lamp, shelf])
    erp.client.products.delete(lamp)
    erp.configure({"orders": ORDERS | {"expand": ["productId"]}})
    (tried,) = erp.tried("erp.orders").records
    assert [line["product"] and line["product"]["sku"] for line in tried.record.json()["items"]] == [None, "P1"]


def test_the_first_run_begins_where_the_config_says(erp: Reading) -> None:
    """With ``first``, older records are not read."""
    old = erp.products(3)
    moment = erp.client.products.update(old[2], {"name": "changed"}).updated_at
    new = erp.products(2, "Q")
    erp.configure({"products": COPIES | {"first": moment.isoformat()}})
    assert [tried.record.key for tried in erp.tried().records] == [old[2], *new]


@pytest.mark.parametrize(
    ("scopes", "missing"), [(["products:write"], "orders:read"), (["orders:read"], "products:read")]
)
def test_a_refusal_names_the_scope(erp: Reading, scopes: list[str], missing: str) -> None:
    """Of what is read, and of what is expanded."""
    erp.order(erp.products(1))
    (erp.folder / "platform-key").write_text(erp.server.sandbox.new_key(erp.server.tenant, *scopes))
    erp.configure({"orders": ORDERS | {"expand": ["productId"]}})
    error = erp.tried("erp.orders").error
    assert isinstance(error, UnauthorizedError)
    assert f"needs the scope {missing}" in str(error)


def test_access_tokens_are_used_as_for_delivery(erp: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream reads with OAuth 2.0 client credentials of the section ``platform``, also when a token was revoked."""
    ids = erp.products(3)
    _, secret = erp.server.sandbox.clients.create_credential(scopes=["products:read"], client_id="reader")
    monkeypatch.setenv("CLIENT_SECRET", secret)
    auth = {"kind": "oauth2_client_credentials", "client_id": "reader", "client_secret": "env:CLIENT_SECRET"}
    erp.configure(PRODUCTS, platform={"auth": auth})
    assert [tried.record.key for tried in erp.tried().records] == ids


def test_a_rate_limit_is_waited_for(tmp_path: Path) -> None:
    """Reading more pages than the bucket has tokens ends with everything read."""
    with reading(tmp_path, SandboxSettings(rate_per_min=60_000, burst=60)) as erp:
        ids = erp.products(50)
        erp.configure(PRODUCTS, {"page_size": 1}, {"rate": {"per_minute": "learn"}})
        assert [tried.record.key for tried in erp.tried(most=50).records] == ids


def test_the_project_knows_what_they_read_from_the_platform(erp: Reading) -> None:
    """The project knows the resources, for their scopes, and the connection, for its bucket."""
    loaded = erp.configure({"orders": ORDERS | {"expand": ["productId", "customerId"]}})
    assert loaded.resource_names_read_from_platform == ("order", "product", "customer")
    assert loaded.names_of_connections_reading_platform == {"erp"}


def test_a_record_is_fetched_as_it_is_listed(erp: Reading) -> None:
    """With the records that it names, so that no run changes back what a webhook has brought."""
    orders = [erp.order(erp.products(2, name), key=name).id for name in ("A", "B")]
    erp.configure({"orders": {**ORDERS, "expand": ["customerId", "productId"]}})
    (connection,) = erp.project.connections
    ctx = context(connection.connector, connection.settings)
    pulled = fetched_rows.pulled(connection.connector, ctx, "orders")
    found = fetched_rows.fetched(connection.connector, ctx, "orders", [*orders, "unknown"])
    assert found == pulled
    assert found.keys == set(orders)
