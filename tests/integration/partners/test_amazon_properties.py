from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.partners.amazon import INVENTORY, LOGIN, FakeAmazon
from tests.partners.amazon_document import CheckedPartner, available, operations
from tests.partners.amazon_seller import Seller
from tests.partners.amazon_site import MANY, OF_MARKETPLACE, ORDERS, order
from tests.partners.amazon_wire import RefusedError
from tests.partners.partner_server import PartnerRequest

from crossdock.testing.manual_clock import ManualClock
from crossdock.values import exact_json

Asked = Callable[..., tuple[int, Any]]


def offline(clock: ManualClock) -> tuple[Seller, Asked, list[str]]:
    """A seller, a function that asks on its behalf, and what the documents find wrong in the exchanges."""
    amazon = FakeAmazon(clock.now, limits=MANY, token_life=timedelta(days=1))
    seller = amazon.seller("SELLER-A")
    checked = CheckedPartner(amazon) if available() else None
    form = f"grant_type=refresh_token&client_id={amazon.client_id}&client_secret={amazon.client_secret}"
    login = amazon.answer(
        PartnerRequest("POST", LOGIN, {}, {}, f"{form}&refresh_token={seller.refresh_token}".encode())
    )
    headers = {"x-amz-access-token": login.body["access_token"]}

    def ask(method: str, path: str, body: Any = None, params: Any = None) -> tuple[int, Any]:
        content = b"" if body is None else exact_json.dumps(body)
        answer = (checked or amazon).answer(PartnerRequest(method, path, params or {}, headers, content))
        return answer.status, answer.body

    return seller, ask, checked.violations if checked else []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 300) | st.text(max_size=60),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=5,
)
NEARLY_RIGHT = st.sampled_from(
    [
        {"currencyCode": "USD", "value": "18.90"},
        {"currencyCode": "USD", "value": "18,90"},
        {"startDate": "2026-01-09T08:00:00Z", "endDate": "2026-01-09T10:00:00+01:00"},
        {"startDate": "2026-02-30T08:00:00Z", "endDate": "2026-01-09T24:00:00Z"},
        [{"featureName": "BLANK_BOX", "featureFulfillmentPolicy": "Required"}],
        ["a@example.com"],
        *("2026-01-09T19:46:45.5-05:00", "2026-01-09 19:46:45Z", "Hold", "FillAll", "Priority", "x" * 40, "x" * 50),
    ]
)
PLACES: list[tuple[str | int, ...]] = [
    *((name,) for name in order()),
    *(("items", 0, name) for name in order()["items"][0]),
    *(("destinationAddress", name) for name in order()["destinationAddress"]),
    *(("items", 0, name) for name in ("perUnitPrice", "giftMessage", "displayableComment", "fulfillmentNetworkSku")),
    *((name,) for name in ("deliveryWindow", "fulfillmentAction", "notificationEmails", "featureConstraints")),
    ("destinationAddress", "phone"),
]


@given(place=st.sampled_from(PLACES), value=NEARLY_RIGHT | JSON, missing=st.booleans())
@settings(max_examples=examples(300))
def test_the_document_allows_every_order_that_is_accepted(
    place: tuple[str | int, ...], value: Any, missing: bool
) -> None:
    """Whatever is changed in an order: it is refused, or it is as the document says, and so is every answer."""
    operations()
    seller, ask, violations = offline(ManualClock())
    seller.receive("TEA", 10)
    body = deepcopy(order())
    *parents, last = place
    inside: Any = body
    for part in parents:
        inside = inside[part]
    if missing:
        inside.pop(last, None)
    else:
        inside[last] = value
    status, _ = ask("POST", ORDERS, body)
    assert status in {200, 400}
    if status == 200:
        assert ask("GET", f"{ORDERS}/{quote(body['sellerFulfillmentOrderId'], safe='')}")[0] == 200
    assert violations == []


@given(st.lists(st.tuples(st.sampled_from(["A-1", "A-2"]), st.integers(1, 3)), max_size=12), st.randoms())
def test_a_key_creates_at_most_one_order(sent: list[tuple[str, int]], chance: Any) -> None:
    """However often a key is sent, with whatever body and after whatever else, one order is created with it."""
    seller, ask, violations = offline(ManualClock())
    seller.receive("TEA", 20)
    bodies: dict[str, Any] = {}
    for key, units in sent:
        body = order(key, ("TEA", units))
        status, _ = ask("POST", ORDERS, body)
        assert status == (400 if key in bodies else 200)
        bodies.setdefault(key, body)
        if chance.random() < 0.3:
            ask("PUT", f"{ORDERS}/{key}/cancel")
    created = [one["body"] for one in seller._effects if one["kind"] == "order_created"]
    assert created == list(bodies.values())
    assert violations == []


KINDS = (
    "create", "create", "hold", "update", "cancel", "plan", "pick", "ship", "ship", "cannot_fulfill", "receive",
    "announce", "adjust", "lose", "damage",
)  # fmt: skip
POLICIES = st.sampled_from(["FillOrKill", "FillAll", "FillAllAvailable"])
STEPS = st.tuples(
    st.sampled_from(KINDS),
    st.sampled_from(["A-1", "A-2", "A-3"]),
    st.sampled_from(["TEA", "JAM"]),
    st.integers(0, 4),
    POLICIES,
    st.booleans(),
)


def carry_out(seller: Seller, ask: Asked, step: tuple[str, str, str, int, str, bool]) -> int:
    """Carry out one step, and say by how many units the warehouse has more or fewer now; impossible ones do nothing."""
    kind, key, sku, units, policy, partly = step
    before = sum(stock.total for stock in seller.stock.values())
    items = {"1": units} if partly else None
    try:
        match kind:
            case "create" | "hold":
                action = "Hold" if kind == "hold" else "Ship"
                lines = [(sku, units), ("TEA", 2)]
                ask("POST", ORDERS, order(key, *lines, fulfillmentPolicy=policy, fulfillmentAction=action))
            case "update":
                lines_of = [{"sellerFulfillmentOrderItemId": "1", "quantity": units}]
                ask("PUT", f"{ORDERS}/{key}", {"items": lines_of, "fulfillmentAction": "Hold" if partly else "Ship"})
            case "cancel":
                ask("PUT", f"{ORDERS}/{key}/cancel")
            case "plan":
                seller.plan(key)
            case "pick" | "cannot_fulfill":
                getattr(seller, kind)(key, items)
            case "ship":
                shipment = seller.ship(key, items)
                return -sum(shipment.units.values())
            case "adjust":
                seller.adjust(sku, units - 3)
                return units - 3
            case "receive" | "announce" | "lose" | "damage":
                getattr(seller, kind)(sku, units)
                return sum(stock.total for stock in seller.stock.values()) - before
    except (ValueError, KeyError, RefusedError):
        assert sum(stock.total for stock in seller.stock.values()) == before
    return 0


@pytest.mark.nightly
@given(st.lists(STEPS, min_size=10, max_size=40), st.tuples(POLICIES, POLICIES))
@settings(max_examples=examples(150))
def test_stock_adds_up(steps: list[tuple[str, str, str, int, str, bool]], policies: tuple[str, str]) -> None:
    """Whatever happens, no unit appears or vanishes, and what is reserved is what open orders hold."""
    clock = ManualClock()
    seller, ask, violations = offline(clock)
    seller.receive("TEA", 12)
    seller.receive("JAM", 12)
    expected = 24
    for key, policy in zip(("A-1", "A-2"), policies, strict=True):
        assert ask("POST", ORDERS, order(key, ("TEA", 4), ("JAM", 2), fulfillmentPolicy=policy))[0] == 200
    for step in steps:
        clock.advance(0.7)
        expected += carry_out(seller, ask, step)
        assert sum(stock.total for stock in seller.stock.values()) == expected
        items = [(order, item) for order in seller.orders.values() for item in order.items]
        for stock in seller.stock.values():
            assert min(stock.inbound, stock.fulfillable, stock.reserved, stock.researching, stock.damaged) >= 0
            held = sum(item.held + item.picked for _, item in items if item.sku == stock.seller_sku)
            assert stock.reserved == held
        for one, item in items:
            assert min(item.held, item.picked, item.shipped, item.cancelled, item.unfulfillable) >= 0
            assert item.held <= item.open
            assert one.status not in {"Complete", "CompletePartialled", "Unfulfillable", "Cancelled"} or not (
                item.open or item.picked
            )
        for one in seller.orders.values():
            assert ask("GET", f"{ORDERS}/{one.key}")[0] == 200
        params = {name: [value] for name, value in OF_MARKETPLACE.items()} | {"details": ["true"]}
        assert ask("GET", INVENTORY, None, params)[0] == 200
    assert violations == []
