"""The fake of ShipBob keeps to what ShipBob documents: access, orders, lists, the rate limit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest
from tests.partners import shipbob_schema as schema
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.shipbob import ShipBob
from tests.partners.shipbob_client import CHANNELS, LOCATIONS, client, conforms, effects, order, placed, stocked
from tests.partners.shipbob_state import Place, Transaction
from tests.partners.shipbob_stockroom import stock_of

from crossdock.testing import ManualClock
from crossdock.values import exact_json


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC))


@pytest.fixture
def fake(clock: ManualClock) -> ShipBob:
    return ShipBob({"ours": [1, 2], "rival": [3]}, CHANNELS, LOCATIONS, limit=100_000, now=clock.now)


@pytest.fixture
def http(fake: ShipBob) -> Iterator[httpx.Client]:
    with serving(PartnerServer(fake)) as server, client(server) as http:
        yield http


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "ours"}])
def test_a_request_without_a_known_token_is_refused(http: httpx.Client, headers: dict[str, str]) -> None:
    """The answer to a missing, wrong or bare token is 401."""
    assert httpx.get(f"{http.base_url}order", headers=headers, trust_env=False).status_code == 401


@pytest.mark.parametrize(("channel", "status"), [(None, 400), ("x", 400), ("3", 403)])
def test_an_order_needs_a_channel_of_the_token(
    http: httpx.Client, fake: ShipBob, channel: str | None, status: int
) -> None:
    """Without the header, with nonsense or with another merchant's channel nothing is created."""
    headers = {} if channel is None else {"shipbob_channel_id": channel}
    assert http.post("/order", json=order("R1", LAMP=1), headers=headers).status_code == status
    assert fake.effects == []


def test_an_accepted_order_is_stored_as_it_was_sent(http: httpx.Client, fake: ShipBob) -> None:
    """The answer is the documented record, a look-up finds it, and the effect holds the exact body."""
    stocked(fake, "LAMP", 5)
    body = order("0017", LAMP=2)
    body["products"][0]["unit_price"] = Decimal("12.10")
    body["financials"] = {"total_price": Decimal("0.1")}
    made = placed(http, body)
    conforms(made, schema.ORDER)
    assert (made["status"], made["reference_id"], made["channel"]) == ("Processing", "0017", {"id": 1, "name": "Lamps"})
    assert http.get(f"/order/{made['id']}").json() == made
    (effect,) = effects(fake, "order_created")
    assert (effect["body"], effect["channel"], effect["order_id"]) == (body, 1, made["id"])
    assert "12.1," in http.get(f"/order/{made['id']}").text


def test_a_reference_id_is_used_once_per_channel(http: httpx.Client, fake: ShipBob) -> None:
    """A second order with it is refused with 422, even after a cancellation; another channel may use it."""
    made = placed(http, order("R1", LAMP=1))
    header = {"shipbob_channel_id": "1"}
    refused = http.post("/order", json=order("R1", LAMP=9), headers=header)
    assert (refused.status_code, "already exists" in refused.json()["reference_id"][0]) == (422, True)
    conforms(refused.json(), schema.MEMBER_ERRORS)
    assert http.post(f"/order/{made['id']}:cancel", headers=header).status_code == 200
    assert http.post("/order", json=order("R1", LAMP=1), headers=header).status_code == 422
    placed(http, order("R1", LAMP=1), channel=2)
    assert len(effects(fake, "order_created")) == 2


@pytest.mark.parametrize("member", ["products", "recipient", "shipping_method", "type", "reference_id"])
def test_a_required_member_is_missed(http: httpx.Client, fake: ShipBob, member: str) -> None:
    """An order without it is refused with 400, which names it."""
    body = {name: value for name, value in order("R1", LAMP=1).items() if name != member}
    refused = http.post("/order", json=body, headers={"shipbob_channel_id": "1"})
    assert (refused.status_code, list(refused.json())) == (400, [member])
    assert fake.effects == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"reference_id": "R" * 301},
        {"reference_id": 17},
        {"type": "Gift"},
        {"products": []},
        {"products": [{"reference_id": "LAMP", "quantity": 0}]},
        {"products": [{"reference_id": "LAMP", "quantity": "1"}]},
        {"misspelt": 1},
    ],
)
def test_a_wrong_member_is_refused(http: httpx.Client, fake: ShipBob, wrong: dict[str, Any]) -> None:
    """Values out of bounds or of another type, and members that ShipBob does not document, are answered with 400."""
    refused = http.post("/order", json={**order("R1", LAMP=1), **wrong}, headers={"shipbob_channel_id": "1"})
    assert refused.status_code == 400
    conforms(refused.json(), schema.MEMBER_ERRORS)
    assert fake.effects == []


def test_a_body_that_is_no_json_is_refused(http: httpx.Client) -> None:
    """The answer is 400, not a broken connection."""
    assert http.post("/order", content=b"{", headers={"shipbob_channel_id": "1"}).status_code == 400


def test_a_product_is_created_by_an_order_that_names_it(http: httpx.Client, fake: ShipBob) -> None:
    """An unknown product with a name is created and lacks stock; one without a name is refused with 422."""
    assert placed(http, order("R1", LAMP=1))["status"] == "Exception"
    assert [effect["sku"] for effect in effects(fake, "product_created")] == ["LAMP"]
    nameless = {**order("R2"), "products": [{"reference_id": "CHAIR", "quantity": 1}]}
    assert http.post("/order", json=nameless, headers={"shipbob_channel_id": "1"}).status_code == 422
    unknown = {**order("R2"), "products": [{"id": 5, "quantity": 1}]}
    assert http.post("/order", json=unknown, headers={"shipbob_channel_id": "1"}).status_code == 422
    by_id = {**order("R2"), "products": [{"id": fake.warehouse.product(1, "LAMP").id, "quantity": 1}]}
    assert placed(http, by_id)["products"][0]["sku"] == "LAMP"


def test_lists_have_the_orders_of_all_channels_of_the_token(http: httpx.Client, fake: ShipBob) -> None:
    """Each order carries its channel, the header narrows the list to one, and another token sees none of them."""
    first, second = placed(http, order("R1", LAMP=1)), placed(http, order("R1", LAMP=1), channel=2)
    assert [(o["id"], o["channel"]["id"]) for o in http.get("/order").json()] == [(second["id"], 2), (first["id"], 1)]
    assert [o["id"] for o in http.get("/order", headers={"shipbob_channel_id": "1"}).json()] == [first["id"]]
    rival = {"Authorization": "Bearer rival"}
    assert http.get("/order", headers=rival).json() == []
    assert http.get(f"/order/{first['id']}", headers=rival).status_code == 404


def test_pages_of_orders_have_each_order_once(http: httpx.Client) -> None:
    """Orders of one second, newest first: pages are a bare array, the last is short, and one beyond it is empty."""
    ids = [placed(http, order(f"R{number}", LAMP=1))["id"] for number in range(5)]
    pages = [http.get("/order", params={"Page": page, "Limit": 2}).json() for page in (1, 2, 3, 4)]
    assert [len(page) for page in pages] == [2, 2, 1, 0]
    assert [o["id"] for page in pages for o in page] == ids[::-1]
    assert {o["shipments"][0]["last_update_at"] for page in pages for o in page} == {"2026-03-01T12:00:00+00:00"}
    assert [o["id"] for o in http.get("/order", params={"SortOrder": "Oldest"}).json()] == ids


@pytest.mark.parametrize(
    "params", [{"Limit": 251}, {"Limit": 0}, {"Page": 0}, {"Page": "x"}, {"LastUpdateStartDate": "soon"}]
)
def test_a_wrong_parameter_is_refused(http: httpx.Client, params: dict[str, Any]) -> None:
    """The answer is 400 and names the parameter."""
    refused = http.get("/order", params=params)
    assert (refused.status_code, list(refused.json())) == (400, list(params))


def test_orders_are_filtered(http: httpx.Client, fake: ShipBob, clock: ManualClock) -> None:
    """By ids, references, creation and last change; both bounds are exclusive, and a shipment is a change."""
    stocked(fake, "LAMP", 5)
    first = placed(http, order("R1", LAMP=1))
    clock.advance(60)
    second = placed(http, order("R2", LAMP=1))

    def found(**params: str) -> list[int]:
        return [o["id"] for o in http.get("/order", params={**params, "SortOrder": "Oldest"}).json()]

    noon, later = "2026-03-01T12:00:00Z", "2026-03-01T12:01:00+00:00"
    assert found(ReferenceIds="R2,R9") == found(IDs=str(second["id"])) == [second["id"]]
    assert found(StartDate=noon) == found(LastUpdateStartDate=noon) == [second["id"]]
    assert found(EndDate=later) == found(LastUpdateEndDate=later) == [first["id"]]
    clock.advance(60)
    fake.warehouse.ship(first["id"])
    assert found(LastUpdateStartDate=later) == [first["id"]]
    assert found(StartDate=later) == []


def test_cancelling_an_order_releases_its_stock(http: httpx.Client, fake: ShipBob) -> None:
    """An order that waits is cancelled whole, for its own channel only; a second time it is refused with 422."""
    place = Place(stocked(fake, "LAMP", 5), None, 8)
    made = placed(http, order("R1", LAMP=3))
    assert fake.warehouse.stock.fulfillable(place) == 2
    path = f"/order/{made['id']}:cancel"
    assert [http.post(path, headers=h).status_code for h in ({}, {"shipbob_channel_id": "2"})] == [400, 404]
    answer = http.post(path, headers={"shipbob_channel_id": "1"}).json()
    conforms(answer, schema.CANCELLED)
    assert (answer["status"], answer["order"]["status"]) == ("Success", "Cancelled")
    assert fake.warehouse.stock.fulfillable(place) == 5
    again = http.post(path, headers={"shipbob_channel_id": "1"})
    assert again.status_code == 422
    conforms(again.json(), schema.MEMBER_ERRORS)
    assert len(effects(fake, "order_cancelled")) == 1


def test_what_was_shipped_cannot_be_cancelled(http: httpx.Client, fake: ShipBob) -> None:
    """Of an order that was shipped in part the rest is cancelled; of a fulfilled one nothing."""
    stocked(fake, "LAMP", 5)
    parts, whole = (placed(http, order(reference, LAMP=2))["id"] for reference in ("R1", "R2"))
    fake.warehouse.ship(parts, {"LAMP": 1})
    fake.warehouse.ship(whole)
    header = {"shipbob_channel_id": "1"}
    answer = http.post(f"/order/{parts}:cancel", headers=header).json()
    assert answer["status"] == "PartialSuccess"
    assert [result["is_success"] for result in answer["canceled_shipment_results"]] == [False, True]
    assert http.post(f"/order/{whole}:cancel", headers=header).status_code == 422


def test_the_address_of_an_open_shipment_can_change(http: httpx.Client, fake: ShipBob) -> None:
    """The shipment goes elsewhere, the order keeps its recipient; once shipped, the change is refused with a code."""
    stocked(fake, "LAMP", 5)
    made = placed(http, order("R1", LAMP=1))
    path = f"/shipment/{made['shipments'][0]['id']}:updateAddress"
    change = {"street_address1": "2 High St", "city": "Leeds", "country_code": "GB", "recipient_name": "Bea"}
    answer = http.put(path, json=change)
    conforms(answer.json(), schema.ADDRESS_UPDATED)
    changed = http.get(f"/order/{made['id']}").json()
    conforms(changed, schema.ORDER)
    assert changed["recipient"] == made["recipient"]
    to = changed["shipments"][0]["recipient"]
    assert (to["name"], to["address"]["address1"], to["address"]["country"]) == ("Bea", "2 High St", "GB")
    fake.warehouse.ship(made["id"])
    refused = http.put(path, json=change)
    assert refused.status_code == 400
    conforms(refused.json(), schema.CODED_ERROR)
    assert [effect["body"] for effect in effects(fake, "address_updated")] == [change]
    assert http.put("/shipment/5:updateAddress", json=change).json()["code"] == "NOT_FOUND"


def test_the_rate_limit_slides(clock: ManualClock) -> None:
    """150 requests in any minute by token: the next is refused with the seconds to wait, after them it is served."""
    with serving(PartnerServer(ShipBob({"ours": [1], "theirs": [1]}, now=clock.now))) as server, client(server) as http:
        assert http.get("/order").headers["x-remaining-calls"] == "149"
        clock.advance(30)
        served = [http.get("/order") for _ in range(149)]
        assert served[-1].headers["x-remaining-calls"] == "0"
        refused = http.get("/order")
        assert (refused.status_code, refused.headers["x-retry-after"]) == (429, "30")
        message = "Rate limit is exceeded. Try again in 30 seconds."
        assert refused.json() == {"statusCode": 429, "message": message}
        with client(server, "theirs") as other:
            assert other.get("/order").status_code == 200
        clock.advance(30)
        assert [http.get("/order").status_code for _ in range(2)] == [200, 429]


def test_an_order_whose_answer_was_lost_is_there(fake: ShipBob) -> None:
    """The connection ends, the order exists, and a second attempt is refused as a duplicate."""
    headers = {"shipbob_channel_id": "1"}
    lost = PartnerServer(fake, faults={"lost_answer": 1.0}, chosen=lambda request: len(lost.requests) == 0)
    with serving(lost), client(lost) as http:
        with pytest.raises(httpx.TransportError):
            http.post("/order", json=order("R1", LAMP=1), headers=headers)
        assert http.post("/order", json=order("R1", LAMP=1), headers=headers).status_code == 422
        (found,) = http.get("/order", params={"ReferenceIds": "R1"}).json()
    assert [effect["order_id"] for effect in effects(fake, "order_created")] == [found["id"]]


def test_a_throttled_request_is_answered_as_shipbob_does(fake: ShipBob) -> None:
    """The fault has the partner's status, header and body, and nothing is carried out."""
    with serving(PartnerServer(fake, faults={"throttled": 1.0})) as server, client(server) as http:
        refused = http.post("/order", json=order("R1", LAMP=1), headers={"shipbob_channel_id": "1"})
    assert (refused.status_code, refused.headers["x-retry-after"]) == (429, "1")
    assert json.loads(refused.content)["statusCode"] == 429
    assert fake.effects == []


def test_an_unknown_path_is_not_found(http: httpx.Client) -> None:
    """Nor is version 1.0's path of a cancellation."""
    assert http.get("/nonsense").status_code == 404
    made = placed(http, order("R1", LAMP=1))
    assert http.post(f"/order/{made['id']}/cancel", headers={"shipbob_channel_id": "1"}).status_code == 404


def test_bills_are_exact_and_of_the_last_month(http: httpx.Client, fake: ShipBob, clock: ManualClock) -> None:
    """Invoices are listed newest first with a running balance; older ones need a date; fees name what they are for."""
    today = clock.now().date()
    fees = [
        Transaction("T1", Decimal("4.10"), "Shipping", "700", "Shipment"),
        Transaction("T2", Decimal("0.20"), "Per Pick Fee", "700", "Shipment"),
    ]
    fake.warehouse.add_invoice(1, "Shipping", fees, day=today - timedelta(days=40))
    latest = fake.warehouse.add_invoice(1, "Shipping", fees)
    fake.warehouse.add_invoice(3, "Shipping", fees)
    answer = http.get("/invoices")
    conforms(answer.json(), schema.page(schema.INVOICE))
    (listed,) = exact_json.loads(answer.content)["items"]
    assert (listed["invoice_id"], listed["amount"], listed["running_balance"]) == (
        latest.id,
        Decimal("4.3"),
        Decimal("8.6"),
    )
    assert len(http.get("/invoices", params={"FromDate": "2026-01-01"}).json()["items"]) == 2
    charged = http.get(f"/invoices/{latest.id}/transactions").json()
    conforms(charged, schema.page(schema.TRANSACTION))
    assert [(fee["transaction_fee"], fee["reference_id"]) for fee in charged["items"]] == [
        ("Shipping", "700"),
        ("Per Pick Fee", "700"),
    ]


def test_effects_tell_orders_and_stock(http: httpx.Client, fake: ShipBob) -> None:
    """Orders as a multiset of bodies, and units by channel, SKU, lot and location, are what effects alone say."""
    stocked(fake, "LAMP", 5, lot="L1")
    stocked(fake, "LAMP", 7, channel=2)
    bodies = [order("R1", LAMP=2), order("R2", LAMP=3)]
    first, _ = (placed(http, body) for body in bodies)
    fake.warehouse.ship(first["id"])
    made = Counter(exact_json.dumps(effect["body"]) for effect in effects(fake, "order_created"))
    assert made == Counter(exact_json.dumps(body) for body in bodies)
    assert stock_of(fake.effects) == {(1, "LAMP", "L1", 8): 3, (2, "LAMP", None, 8): 7}
