"""Nights that would update too many known records: nothing is sent until a person approves exactly these updates."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.warehouse import CUSTOMERS, FORWARD, Front, Reply, Result, Site

AT_MOST = 10  # updates; tests/long has the default
PRODUCTS = 15  # more than that


def rows(*, swapped: bool = False, price: str = "1.50", numbers: range | None = None) -> str:
    """A headerless export; *swapped* if name and price have changed places, as after a change of the export.

    Args:
        numbers: Of the products, by default of `PRODUCTS`.
    """
    numbers = range(PRODUCTS) if numbers is None else numbers
    return "".join(
        f"P{number};{price};{number}.25\n" if swapped else f"P{number};{number}.25;{price}\n" for number in numbers
    )


def stock(site: Site) -> None:
    """Deliver `PRODUCTS` that come without a header, of which `AT_MOST` may be updated."""
    site.edit("key: [SKU]", f"key: [SKU]\n        changes: {{at_most: {AT_MOST}}}", within="products:")
    deliver(site, PRODUCTS)


def deliver(site: Site, number: int) -> None:
    layout = 'delimiter: ";", header: false, names: [SKU, NAME, PRICE]'
    site.edit('delimiter: ";"', layout, within="products:")
    site.edit("mode: append", "mode: snapshot", within="products:")
    site.init()
    site.export("PROD_0.csv", rows(numbers=range(number)))
    assert site.sync("wms.products").records("products") == {"read": number, "created": number}


@pytest.fixture
def stocked(site: Site) -> Site:
    """A site whose products are delivered."""
    stock(site)
    return site


def updated(site: Site) -> list[dict[str, Any]]:
    return [effect for effect in site.effects("product") if effect["operation"] == "update"]


def swapped_night(site: Site) -> Result:
    site.export("PROD_1.csv", rows(swapped=True))
    return site.sync()


def test_a_swapped_column_stops(site: Site) -> None:
    """Nothing of the stream is sent (exit 4), other streams go on, and the plan says the same; with default limits."""
    deliver(site, 150)
    site.export("CUST_1.csv", CUSTOMERS)
    site.export("PROD_1.csv", rows(swapped=True, numbers=range(150)))
    planned = site.run("plan", "--limit", "1")
    result = site.sync()
    assert (planned.code, result.code) == (4, 4)
    message = "PROD_1.csv: 150 of 150 known records would be updated, more than changes.at_most (100)"
    assert message in planned.err
    assert message in result.err
    assert "Members that change: name (150), unitPrice (150)" in result.err
    assert "150 hold wms.products" in planned.out
    assert "update: needs 'crossdock approve'" in planned.out
    assert 'name: "0.25" -> "1.50"' in planned.out
    assert result.records("products") == {"read": 150, "carried_on": 150}
    assert result.records("customers") == {"read": 2, "created": 2}
    assert updated(site) == []
    assert site.sync().code == 4, "it is read again"


@pytest.mark.nightly(but=["1.5-suppressed"])
@pytest.mark.parametrize(("price", "term"), [("1.5", "suppressed"), ("1.50", "unchanged")])
def test_a_corrected_file_needs_no_approval(stocked: Site, price: str, term: str) -> None:
    """The next snapshot replaces the one that was refused, and nothing needs approval, also if it is the old one."""
    assert swapped_night(stocked).code == 4
    stocked.export("PROD_2.csv", rows(price=price))
    assert stocked.sync().records("products") == {"read": PRODUCTS, term: PRODUCTS}
    assert stocked.run("approve", "--json").json == []
    assert updated(stocked) == []


def test_approved_updates_are_carried_out_once(stocked: Site) -> None:
    """The approval needs the right number, and lets the next sync send exactly what was refused."""
    assert swapped_night(stocked).code == 4
    (pending,) = stocked.run("approve", "--json").json
    assert (pending["number"], pending["what"]) == (PRODUCTS, "update product of wms on the platform")
    wrong = stocked.run("approve", "wms.products", str(PRODUCTS - 1))
    assert wrong.code == 2
    assert f"update product of wms on the platform: {PRODUCTS} records, not {PRODUCTS - 1}" in wrong.err
    assert stocked.run("approve", "wms.products", str(PRODUCTS)).code == 0
    assert stocked.run("plan").code == 0
    result = stocked.sync()
    assert (result.code, result.records("products")) == (0, {"read": PRODUCTS, "updated": PRODUCTS})
    assert len(updated(stocked)) == PRODUCTS
    assert stocked.run("approve", "--json").json == []
    stocked.export("PROD_2.csv", rows())
    assert stocked.sync().code == 4, "an approval is valid once"


def test_other_updates_are_not_approved(stocked: Site) -> None:
    """If one record has another content than was approved, the next sync asks again."""
    assert swapped_night(stocked).code == 4
    assert stocked.run("approve", "wms.products", str(PRODUCTS)).code == 0
    stocked.export("PROD_2.csv", rows(swapped=True, numbers=range(PRODUCTS - 1)) + f"P{PRODUCTS - 1};other;1.00\n")
    assert stocked.sync().code == 4
    assert updated(stocked) == []
    assert stocked.run("approve", "--json").json[0]["approved_at"] is None


@pytest.mark.usefixtures("soon_probing")
def test_an_interrupted_approval_stays_valid(site: Site) -> None:
    """The platform fails after some of the approved updates; the next sync sends the others without asking again."""
    with Front(site.platform.base_url) as front:
        site.base_url = front.base_url
        site.configure()
        stock(site)
        assert swapped_night(site).code == 4
        assert site.run("approve", "wms.products", str(PRODUCTS)).code == 0
        fates = iter(range(PRODUCTS // 4))
        front.fate = lambda seen: FORWARD if seen.method != "PATCH" or next(fates, None) is not None else Reply(503)
        assert site.sync().code == 3
        assert len(updated(site)) == PRODUCTS // 4
        front.fate = lambda _: FORWARD
        assert site.sync().code == 0
        assert len(updated(site)) == PRODUCTS


@pytest.mark.nightly
def test_a_changed_mapping_says_so(stocked: Site) -> None:
    """The unchanged file is mapped again, and plan and sync name the mapping as the cause before anything is sent."""
    stocked.edit("name: NAME", 'name: {template: "{NAME} x"}', within="products:")
    for result in (stocked.run("plan"), stocked.sync()):
        assert result.code == 4
        assert "the mapping of wms.products has changed since the import of 20" in result.err
        assert f"Z: {PRODUCTS} of {PRODUCTS} known records would be updated" in result.err
    assert updated(stocked) == []
    assert stocked.run("approve", "wms.products", str(PRODUCTS)).code == 0
    assert stocked.sync().records("products") == {"read": PRODUCTS, "updated": PRODUCTS}
    assert stocked.sync().json["streams"]["wms.products"]["notes"] == []


def test_a_mapping_that_changes_no_payload_is_no_update(stocked: Site) -> None:
    """Records that are mapped to what the platform has do not count, however many they are."""
    stocked.edit("name: NAME", 'name: {template: "{NAME}"}', within="products:")
    result = stocked.sync()
    assert (result.code, result.records("products")) == (0, {"read": PRODUCTS, "suppressed": PRODUCTS})
    (note,) = result.json["streams"]["wms.products"]["notes"]
    assert note.endswith("all records that the source still has are mapped again")


def test_usual_nights_never_stop(stocked: Site) -> None:
    """Few updates of many records, and any number of new ones, are within the limits."""
    more = range(AT_MOST, 4 * PRODUCTS)
    stocked.export("PROD_1.csv", rows(price="2.50", numbers=range(AT_MOST)) + rows(numbers=more))
    result = stocked.sync()
    assert (result.code, result.records("products")) == (
        0,
        {
            "read": 4 * PRODUCTS,
            "unchanged": PRODUCTS - AT_MOST,
            "updated": AT_MOST,
            "created": 3 * PRODUCTS,
        },
    )


def test_the_limits_are_settings(stocked: Site) -> None:
    """With other limits fewer updates stop, or all of them pass."""
    stocked.edit(f"at_most: {AT_MOST}", "at_most: 5, at_most_percent: 0", within="products:")
    stocked.export("PROD_1.csv", rows(price="2.50", numbers=range(6)) + rows(numbers=range(6, PRODUCTS)))
    result = stocked.sync()
    assert result.code == 4
    assert f"6 of {PRODUCTS} known records would be updated, more than changes.at_most (5)" in result.err
    stocked.edit("at_most: 5, at_most_percent: 0", "at_most: 5, at_most_percent: 100")
    assert stocked.sync().records("products") == {"read": PRODUCTS, "unchanged": PRODUCTS - 6, "updated": 6}
