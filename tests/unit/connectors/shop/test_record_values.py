"""Values that the mappings of all shops read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.partners.shopify.reading import json_record

from crossdock import RecordError, Reference
from crossdock_connectors.shop.record_values_and_keys import (
    GUEST,
    Guests,
    customer_reference,
    guest_key,
    platform_status_or_error,
    text_or_none,
)

emails = st.emails()


@given(emails)
def test_a_guest_is_known_by_the_address(email: str) -> None:
    """Case and space do not matter, the order does not matter, and the key does not show the address."""
    key = guest_key("email", email, "1")
    assert key == guest_key("email", f" {email.upper()} ", "2") == guest_key("email", email.casefold(), "3")
    assert key.startswith(f"{GUEST}-")
    assert email.casefold() not in key


@given(emails, emails)
def test_two_addresses_are_two_guests(one: str, other: str) -> None:
    """Two keys are equal only if the addresses are."""
    equal = one.casefold() == other.casefold()
    assert (guest_key("email", one, "1") == guest_key("email", other, "1")) == equal


@pytest.mark.parametrize(
    ("guests", "email", "key"),
    [
        pytest.param("email", None, GUEST, id="no address"),
        pytest.param("email", "  ", GUEST, id="an empty address"),
        pytest.param("one", "a@example.com", GUEST, id="one for all"),
        pytest.param("order", "a@example.com", "guest-order-7", id="one for each order"),
        pytest.param("order", None, "guest-order-7", id="one for each order without an address"),
    ],
)
def test_the_key_of_a_guest(guests: Guests, email: str | None, key: str) -> None:
    """It follows the setting; without an address all are one."""
    assert guest_key(guests, email, "7") == key


def test_an_account_comes_before_the_guest() -> None:
    """An order with an account names it, whatever its address."""
    assert customer_reference("12", "order", "a@example.com", "7") == Reference("customer", "12")
    assert customer_reference(None, "order", "a@example.com", "7") == Reference("customer", "guest-order-7")


def test_a_status_must_be_known() -> None:
    """The reason names the place and the setting, and not the value."""
    record = json_record({"status": "LOST"})
    assert platform_status_or_error(record, "/status", {"LOST": "on_hold"}) == "on_hold"
    with pytest.raises(RecordError, match="not in the setting statuses") as caught:
        platform_status_or_error(record, "/status", {})
    assert caught.value.pointer == "/status"
    assert "LOST" not in str(caught.value)


@pytest.mark.parametrize(("value", "read"), [(" a ", "a"), ("  ", None), ("", None), (None, None), (17, "17")])
def test_text_is_stripped(value: str | int | None, read: str | None) -> None:
    """Empty text is none, and so is a missing member; a number is its text."""
    assert text_or_none(json_record({"name": value}), "/name") == read
    assert text_or_none(json_record({}), "/name") is None
