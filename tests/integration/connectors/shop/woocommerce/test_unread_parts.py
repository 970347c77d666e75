"""A list of one WooCommerce record that cannot be read keeps no other records from delivery, and moves no cursor."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.integration.connectors.shop.woocommerce.test_contract import _OfWooCommerce, filled_shop
from tests.integration.connectors.test_hidden_records import rows
from tests.partners.partner_server import Partner, PartnerAnswer, PartnerRequest
from tests.partners.partner_transport import transport
from tests.partners.woocommerce.shop import FakeShop

from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.errors import RemoteError
from crossdock.testing import context
from crossdock.testing.connector_context_and_reading import read

Change = Callable[[PartnerAnswer], PartnerAnswer]


@dataclass
class Changing:
    """A partner whose answers are changed where the end of the path matches *path*."""

    partner: Partner
    path: str
    change: Change

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        given = self.partner.answer(request)
        return self.change(given) if re.search(f"{self.path}$", request.path) else given


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in _OfWooCommerce.environment.items():
        monkeypatch.setenv(name, value)


def refused(status: int) -> Change:
    return lambda given: replace(given, status=status, body={"code": "x", "message": "No."})


def listing(*refunds: Any) -> Change:
    total = {"x-wp-total": str(len(refunds))}
    return lambda given: replace(given, body=[*refunds], headers={**given.headers, **total})


def without_amount(given: PartnerAnswer) -> PartnerAnswer:
    return replace(given, body=[{**refund, "amount": "0.00000000"} for refund in given.body])


def shop_of(*refunded: bool) -> FakeShop:
    """A shop with an order each, some of which are refunded in part."""
    shop = FakeShop()
    lamp = shop.catalog.add("Lamp", "10")
    for each in refunded:
        order = shop.orders.place((lamp, 1))
        if each:
            shop.orders.refund(order, "1.00")
    return shop


@pytest.mark.parametrize(
    ("change", "read", "said"),
    [
        pytest.param(listing(), 2, "names refunds that this list lacks", id="none"),
        pytest.param(without_amount, 3, "or has without an amount: 103", id="without its amount"),
        pytest.param(listing({"errors": {}}), 3, "names refunds that this list lacks", id="an error"),
        pytest.param(refused(404), 2, "although the order is there", id="404"),
        pytest.param(refused(400), 2, "responded with HTTP 400", id="400"),
        pytest.param(refused(403), 2, "refused the credentials", id="403"),
        pytest.param(refused(500), 2, "failed 5 times", id="500"),
    ],
)
def test_refunds_that_an_order_names_are_not_passed_over(change: Change, read: int, said: str) -> None:
    """All orders are read, and the cursor stays until the refund is, so that no credit note is lost."""
    shop = shop_of(True, False)
    assert rows(shop, "invoices")[::2] == (3, "")
    number, cursor, doubt = rows(Changing(shop, "/refunds", change), "invoices")
    assert (number, cursor) == (read, None)
    assert said in doubt
    assert rows(Changing(shop, "/refunds", change), "orders")[:2] == (2, None)


@pytest.mark.parametrize("told", [{}, {"refunds": None}, {"refunds": {"0": {"id": 103}}}])
def test_an_order_that_does_not_name_its_refunds_may_have_some(told: dict[str, Any]) -> None:
    """Only an empty list says that it has none: its list of refunds is read, and the credit note is there."""

    def unnamed(given: PartnerAnswer) -> PartnerAnswer:
        orders = [{name: value for name, value in order.items() if name != "refunds"} | told for order in given.body]
        return replace(given, body=orders)

    shop = shop_of(True, False)
    assert rows(Changing(shop, "/orders", unnamed), "invoices")[::2] == (3, "")
    assert rows(Changing(shop, "/orders", unnamed), "orders")[::2] == (2, "")


def test_a_refund_of_an_order_that_is_gone() -> None:
    """The order was deleted while it was read, and nothing can be read again."""
    shop = shop_of(True, False)
    gone, _ = shop.orders.orders.values()
    shop.meanwhile(lambda asked: asked.path.endswith("/refunds"), lambda: shop.orders.delete(gone))
    number, cursor, doubt = rows(shop, "invoices")
    assert (number, cursor is None, doubt) == (2, False, "")


def test_a_shop_that_fails_is_not_asked_for_each_order() -> None:
    """After three failures in a row the reading ends; a success between them shows that the shop is at work."""
    shop = shop_of(True, True, True, True)
    with pytest.raises(RemoteError, match="failed 5 times"):
        rows(Changing(shop, "/refunds", refused(500)), "orders")
    third = list(shop.orders.orders)[2]
    others = f"/orders/(?!{third}/)[0-9]+/refunds"
    assert rows(Changing(shop, others, refused(500)), "orders")[:2] == (4, None)


@pytest.mark.parametrize("status", [404, 400, 403, 500])
@pytest.mark.parametrize("stream", ["products", "stock"])
def test_variations_that_cannot_be_read(stream: str, status: int) -> None:
    """Other products are read, and nothing of this one counts as gone."""
    shop = filled_shop()
    number, _, doubt = rows(shop, stream)
    less, cursor, doubt = rows(Changing(shop, "/variations", refused(status)), stream)
    assert (number - less, cursor) == (1, None)
    assert doubt


@pytest.mark.parametrize(
    ("stream", "path"),
    [("products", "/products/[0-9]+(/variations)?"), ("stock", "/products/[0-9]+(/variations)?"),
     ("invoices", "/orders/[0-9]+(/refunds)?")],
)  # fmt: skip
def test_a_404_that_is_not_of_the_shop_does_not_say_that_a_record_was_deleted(stream: str, path: str) -> None:
    """A rule of a server or a security plugin answers so to single records, whose parts would be left out for good."""
    shop = shop_of(True, False) if stream == "invoices" else filled_shop()
    number, *_ = rows(shop, stream)
    less, cursor, doubt = rows(Changing(shop, path, refused(404)), stream)
    assert (number - less, cursor) == (1, None)
    assert "does not say that it was deleted" in doubt


@pytest.mark.parametrize("member", ["billing", "shipping"])
def test_an_address_without_members_is_the_empty_array_of_php(member: str) -> None:
    """An order with it is read as one without that address."""

    def emptied(given: PartnerAnswer) -> PartnerAnswer:
        return replace(given, body=[{**order, member: []} for order in given.body])

    connector = load_connector("woocommerce")
    partner: Any = Changing(shop_of(False), "/orders", emptied)
    for stream in ("orders", "invoices", "customers"):
        run = context(connector, _OfWooCommerce.settings, transport=transport(partner))
        assert [tried.problem for tried in read(connector, run, stream).records] == [None]
