"""Values are replaced wherever they are, and nothing else changes."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.testing import readable_json
from crossdock.testing.sensitive_data import PersonalMembers, SensitiveDataRemover

EMAIL = "ada.lovelace@analytical.example.org"
NAME = "Ada Lovelace"
TOKEN = "tok+/en&90%12~x"
CUSTOMER = {"customer": {"id": 7, "name": NAME, "email": EMAIL}}


def cleaned(*values: Any, credentials: tuple[str, ...] = ()) -> list[Any]:
    """*values* after both passes."""
    texts = SensitiveDataRemover(PersonalMembers())
    for credential in credentials:
        texts.add_credential(credential)
    read = [readable_json.loads_keeping_number_texts(json.dumps(value)) for value in values]
    for value in read:
        texts.clean_json(value)
    texts.collecting = False
    return [json.loads(readable_json.dumps_on_one_line(texts.clean_json(value))) for value in read]


ENCODINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "percent-encoded": lambda text: quote(text, safe=""),
    "percent-encoded twice": lambda text: quote(quote(text, safe=""), safe=""),
    "as of a form": quote_plus,
    "in Base64": lambda text: b64encode(text.encode()).decode(),
    "in Base64 for URLs": lambda text: urlsafe_b64encode(f"id>>?:{text}".encode()).decode(),
    "as JSON": lambda text: json.dumps({"value": text}),
    "as JSON in JSON": lambda text: json.dumps({"value": json.dumps([text])}),
    "in a URL": lambda text: f"https://shop.example/list?q={quote_plus(text)}&page=2",
    "in Base64 in a URL": lambda text: f"/list?after={quote(b64encode(text.encode()).decode(), safe='')}",
    "in a sentence": lambda text: f"Dear {text}, thank you",
    "in capitals": str.upper,
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("value", [EMAIL, NAME])
def test_a_personal_value_is_replaced_in_every_encoding(value: str, encoding: str) -> None:
    """In members that are not personal too, with the same substitute, and before the member that tells."""
    encode = ENCODINGS[encoding]
    other, customer = cleaned({"other": encode(value)}, CUSTOMER)
    member = "email" if value is EMAIL else "name"
    made = customer["customer"][member]
    assert made != value
    assert other["other"] == encode(made)


@pytest.mark.parametrize("encoding", [name for name in ENCODINGS if name != "in capitals"])
def test_a_credential_is_masked_in_every_encoding(encoding: str) -> None:
    """Even as a part of a word."""
    (other,) = cleaned({"other": ENCODINGS[encoding](TOKEN), "part": f"x{TOKEN}y"}, credentials=(TOKEN,))
    assert TOKEN not in str(other)
    for each in ENCODINGS.values():
        assert each(TOKEN) not in str(other)
    assert other["part"] == "x(secret)y"
    assert "(secret)" in cleaned({"other": TOKEN}, credentials=(TOKEN,))[0]["other"]


def test_members_with_the_names_of_secrets_are_masked_everywhere() -> None:
    """The token that an answer grants, also where it is repeated; an object of secrets is masked as a whole."""
    first, second = cleaned(
        {"access_token": "granted-token-1", "expires_in": 3600, "credentials": {"user": "u", "pins": ["1"]}},
        {"echo": "your token granted-token-1", "next": "https://a.example/?api_key=abc&page=2", "page_token": "p2"},
    )
    assert first == {
        "access_token": "(secret)", "expires_in": 3600, "credentials": {"user": "(secret)", "pins": ["(secret)"]},
    }  # fmt: skip
    assert second == {
        "echo": "your token (secret)", "next": "https://a.example/?api_key=(secret)&page=2", "page_token": "p2",
    }  # fmt: skip


def test_what_is_not_personal_stays() -> None:
    """Ids, dates, money, codes, numbers and the white space of texts, even beside personal members."""
    value = {
        "customer": {
            "id": "C-17", "email": "", "phone": None, "currency": "EUR", "status": "active", "verified": True,
            "updated_at": "2026-11-20T10:00:00+01:00", "visits": 3, "address": {"country": "DE", "addressType": "home"},
        },
        "total": "19.90", "price": 19.90, "sku": "0017", "text": " two  spaces ", "url": "https://a.example/x?page=2&q=a+b",
        "gid": "gid://shopify/Customer/1",
    }  # fmt: skip
    assert cleaned(value) == [value]


def test_personal_numbers_dates_and_names_of_members() -> None:
    """A number stays a number of as many digits, a birthday stays a day, and mail addresses may be names."""
    (made,) = cleaned({"phone": 491719998877, "dateOfBirth": "1815-12-10", "by_email": {EMAIL: 1}, "zip": 20095})
    assert made["phone"] != 491719998877
    assert len(str(made["phone"])) == 12
    assert len(str(made["zip"])) == 5
    assert made["dateOfBirth"] != "1815-12-10"
    assert len(made["dateOfBirth"]) == 10
    (name,) = made["by_email"]
    assert name != EMAIL
    assert "@" in name


def test_short_and_common_values_are_replaced_only_where_they_are_personal() -> None:
    """A house number or a word in a note says nothing elsewhere, and codes keep words that are also names."""
    made, _ = cleaned(
        {"quantity": "12", "kind": "lovelace", "text": "express", "note": "express"},
        {"address": {"line1": "12", "role": "buyer"}, "name": "Bo Lovelace", "text": "the buyer Lovelace"},
    )
    assert {name: made[name] for name in ("quantity", "kind", "text")} == {
        "quantity": "12", "kind": "lovelace", "text": "express",
    }  # fmt: skip
    assert made["note"] != "express"
    assert _["text"].startswith("the buyer ")
    assert "Lovelace" not in _["text"]


TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT | st.emails(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", "email", "name", "id", "token", "address", "note"]) | TEXT, inner, max_size=4
        )
    ),
    max_leaves=12,
)


def kinds(value: Any) -> Any:
    """*value* without its texts and numbers."""
    if isinstance(value, dict):
        return [kinds(inner) for inner in value.values()]
    return [kinds(inner) for inner in value] if isinstance(value, list) else type(value)


@given(VALUES)
def test_the_form_of_any_value_stays(value: Any) -> None:
    """Whatever is in it: no member is lost, and each has a value of the same type."""
    names = [EMAIL, EMAIL.upper()]
    (made, last) = cleaned(value, {"email": EMAIL, "again": names})
    if not isinstance(value, dict):
        assert kinds(made) == kinds(value)
    assert last["email"] != EMAIL
    assert EMAIL not in json.dumps([made, last]).lower()
