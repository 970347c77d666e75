"""Addresses and texts of shops: what lacks is named, and what is assumed, cleaned or left out is counted."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs
from tests.partners.shopify.reading import json_record

from crossdock import Record, RecordError
from crossdock_connectors.shop.addresses_and_texts import AddressFields, TextReader
from crossdock_connectors.shop.settings import ShopSettings

FIELDS = AddressFields("/street", "/more", "/city", ("/code", "/region"), "/zip", "/country")
FIELDS_WITH_COMPANY = structs.replace(FIELDS, company="/firm")
BERLIN = {"street": "Hauptstraße 1", "city": "Berlin", "zip": "10115", "country": "DE"}


def texts(address: Any, fields: AddressFields = FIELDS, **settings: Any) -> tuple[Record, TextReader]:
    record = json_record({"to": address})
    chosen = ShopSettings.model_validate({"kind": "shop", "base_url": "https://shop.example", **settings})
    return record, TextReader(record, chosen, fields)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"city": ""}, "has no city;"),
        ({"street": None, "country": " "}, "has no street and no country;"),
        ({"country": "XX"}, "has no valid country;"),
        ({"country": "GB-ENG"}, "has no valid country;"),
    ],
)
def test_an_incomplete_address_is_refused_with_what_lacks(changed: dict[str, Any], message: str) -> None:
    """An order without its recipient cannot be sent; the customer is there, without the address, and it is counted."""
    _, of_order = texts({**BERLIN, **changed})
    with pytest.raises(RecordError) as caught:
        of_order.order_address("/to", "Ada", None)
    assert caught.value.pointer == "/to"
    assert message in caught.value.message
    assert "incomplete_addresses" in caught.value.message
    record, of_customer = texts({**BERLIN, **changed})
    assert of_customer.customer_address("/to") is None
    assert record.parts == {"address left out": 1}
    record, left_out = texts({**BERLIN, **changed}, incomplete_addresses="leave_out")
    assert (left_out.order_address("/to", "Ada", None), record.parts) == (None, {"address left out": 1})
    with pytest.raises(RecordError):
        texts({**BERLIN, **changed}, incomplete_addresses="reject")[1].customer_address("/to")


def test_the_city_of_a_city_state_is_known() -> None:
    """Shops do not ask for it there; a setting names others, and each use is counted."""
    record, found = texts({**BERLIN, "city": "", "country": "SG"})
    address = found.order_address("/to", "Ada", None)
    assert address is not None
    assert (address.city, record.parts) == ("Singapore", {"city assumed": 1})
    _, named = texts({**BERLIN, "city": None, "country": "BM"}, cities={"BM": "Hamilton"})
    customer = named.customer_address("/to")
    assert customer is not None
    assert customer.city == "Hamilton"


@pytest.mark.parametrize(
    ("changed", "name", "line2"),
    [
        pytest.param({"firm": "ACME"}, "Ada", "ACME", id="beside a name"),
        pytest.param({"firm": "ACME", "more": "Gate 7"}, "Ada", "ACME, Gate 7", id="before the rest of the line"),
        pytest.param({"firm": "ACME"}, "ACME", None, id="as the name"),
        pytest.param({"firm": "ACME", "more": "ACME"}, "Ada", "ACME", id="that is in the address already"),
        pytest.param({"firm": " "}, "Ada", None, id="that is empty"),
    ],
)
def test_the_company_is_in_the_second_line(changed: dict[str, Any], name: str, line2: str | None) -> None:
    """The platform's addresses have no member for it, and the carrier needs it."""
    record, found = texts({**BERLIN, **changed}, FIELDS_WITH_COMPANY)
    address = found.order_address("/to", name, None)
    assert address is not None
    assert (address.name, address.line1, address.line2, record.parts) == (name, "Hauptstraße 1", line2, {})


def test_a_company_is_no_address() -> None:
    """An address with nothing else but a country is empty."""
    record, found = texts({"firm": "ACME", "country": "DE"}, FIELDS_WITH_COMPANY)
    assert (found.order_address("/to", "Ada", None), record.parts) == (None, {"country without an address": 1})


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        (None, {}),
        ({}, {}),
        ({"street": " ", "city": "", "country": ""}, {}),
        ({"country": "DE", "region": "BE"}, {"country without an address": 1}),
    ],
)
def test_no_address_is_none(address: Any, parts: dict[str, int]) -> None:
    """Shops fill in a country before the buyer writes anything; that is no address, and it is counted."""
    record, found = texts(address)
    assert (found.order_address("/to", None, None), record.parts) == (None, parts)


def test_texts_are_cleaned_and_cut() -> None:
    """Names of any kind cost nobody an order; what cannot be used in part is left out."""
    record, found = texts({"street": "\u200bHaupt\u200bstraße\x07 1\u2060", "more": "x" * 501, "city": "\u200b"})
    assert found.read_cut_text(record.part("/to"), "/street") == "Hauptstraße 1"
    assert found.read_cut_text(record.part("/to"), "/more") == "x" * 500
    assert found.read_text_unless_too_long(record.part("/to"), "/more") is None
    assert found.read_cut_text(record.part("/to"), "/city") is None
    assert record.parts == {"text cleaned": 2, "text cut": 1, "text left out": 1}


@pytest.mark.parametrize("name", ["\u0645\u06cc\u200c\u062e", "👩\u200d🚀", "Zoë", "line\nbreak"])
def test_what_people_see_stays(name: str) -> None:
    """Joiners inside of a word are part of its writing."""
    record, found = texts({"street": name})
    assert (found.read_cut_text(record.part("/to"), "/street"), record.parts) == (name, {})


def test_texts_stay_if_the_settings_say_so() -> None:
    """A name that is too long is then the record's dead letter."""
    record, found = texts({"street": "a\u200bb", "more": "x" * 501}, clean=False)
    assert found.read_cut_text(record.part("/to"), "/street") == "a\u200bb"
    assert len(found.read_cut_text(record.part("/to"), "/more") or "") == 501
    assert record.parts == {}
