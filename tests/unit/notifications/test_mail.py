"""Addresses of mail notifications."""

from __future__ import annotations

from email.headerregistry import Address

from hypothesis import given
from hypothesis import strategies as st

from crossdock.values import web_address_checks


@given(st.text(alphabet="ab1.@_-+'\"<>(), \\\n", max_size=12))
def test_accepted_mailboxes_are_valid_in_headers(text: str) -> None:
    """Each accepted address is written to a header unchanged."""
    for said in ("o'neil+ops@mail_relay.example.com", text, f"{text}@b.c", f"a@{text}"):
        try:
            taken = web_address_checks.check_email_address(said)
        except ValueError:
            assert said != "o'neil+ops@mail_relay.example.com"
        else:
            assert str(Address("crossdock", addr_spec=taken)) == f"crossdock <{said}>"
