"""Which members are secrets or personal, by name, by place and by drafts."""

from __future__ import annotations

from typing import Any

import pytest

from crossdock.testing.sensitive_data import Kind, PersonalMembers, is_secret_name, is_secret_parameter, words_of


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("shippingAddress", ("shipping", "address")),
        ("shipping_address", ("shipping", "address")),
        ("ShippingAddress1", ("shipping", "address1")),
        ("customerID", ("customer", "id")),
        ("IBANNumber", ("iban", "number")),
        ("e-mail", ("e", "mail")),
        ("straße", ("straße",)),
        ("", ()),
    ],
)
def test_names_have_words(name: str, words: tuple[str, ...]) -> None:
    """In any of the usual notations."""
    assert words_of(name) == words


@pytest.mark.parametrize(
    "name", ["access_token", "accessToken", "X-Shopify-Access-Token", "apiKey", "password", "Authorization", "Cookie"]
)
def test_names_of_secrets(name: str) -> None:
    """Of members, parameters and headers alike."""
    assert is_secret_name(name)
    assert is_secret_parameter(name)


@pytest.mark.parametrize("name", ["nextPageToken", "page_token", "continuation-token", "key", "passfile", "author"])
def test_names_of_no_secrets(name: str) -> None:
    """The token of a page is needed to ask for it, and is no credential."""
    assert not is_secret_name(name)


def leaves(value: Any, members: PersonalMembers | None = None) -> dict[str, Kind]:
    """The kind of each value in *value*, by its path."""
    found: dict[str, Kind] = {}

    def note(kind: Kind, path: tuple[str, ...], _: Any) -> None:
        found["/".join(path[1:])] = kind

    (members or PersonalMembers()).map_leaves_with_kind(value, note)
    return found


def test_members_of_a_person_are_personal() -> None:
    """A name is, if its object or the one around it is that of a person."""
    found = leaves(
        {"customers": [{"id": 1, "name": "Ada"}], "buyerName": "Bo", "items": [{"name": "Lamp", "sku": "1"}]}
    )
    assert found == {
        "customers/id": Kind.KEPT, "customers/name": Kind.PERSONAL, "buyerName": Kind.PERSONAL,
        "items/name": Kind.PLAIN, "items/sku": Kind.PLAIN,
    }  # fmt: skip
    assert leaves({"name": "Ada", "email": "a@b.de"})["name"] is Kind.PERSONAL


def test_what_is_in_an_address_is_personal_but_codes() -> None:
    """Countries, ids and types are codes, which mappings and references need."""
    found = leaves({"shippingAddress": {"line1": "x", "zip_code": "1", "countryCode": "DE", "id": 7, "floor": "3rd"}})
    assert found == {
        "shippingAddress/line1": Kind.PERSONAL, "shippingAddress/zip_code": Kind.PERSONAL,
        "shippingAddress/countryCode": Kind.KEPT, "shippingAddress/id": Kind.KEPT,
        "shippingAddress/floor": Kind.INHERITED,
    }  # fmt: skip


def test_an_author_names_others() -> None:
    """In any notation; the author's word counts more than a code or secret by name."""
    members = PersonalMembers(["vat_code", "Loyalty-Token"])
    assert leaves({"vatCode": "x", "loyalty_token": "y"}, members) == {
        "vatCode": Kind.PERSONAL, "loyalty_token": Kind.PERSONAL,
    }  # fmt: skip


def test_drafts_tell_where_personal_data_comes_from() -> None:
    """Members whose values, or parts of them, a mapping puts into personal members; countries are codes."""
    members = PersonalMembers()
    item = {"who": {"given": "Ada", "family": "Lovelace"}, "display": "Ada Lovelace", "land": "DE", "status": "new"}
    members.learn_personal_paths(
        item, {"name": "Ada Lovelace", "billingAddress": {"city": "New York", "country": "DE"}}
    )
    assert members.learned == {("who", "family"), ("display",)}
    found = leaves({"data": [item]}, members)
    assert found["data/display"] is found["data/who/family"] is Kind.PERSONAL
    assert found["data/status"] is Kind.KEPT
