"""Secrets that others repeat."""

from __future__ import annotations

from crossdock.printable import mask_secrets


def test_each_secret_is_masked_wherever_it_stands() -> None:
    """Short words are left, since they stand in many others."""
    assert mask_secrets("key=abcdefgh&x=abcdefghabcdefgh Bearer", ["Bearer", "abcdefgh"]) == (
        "key=(secret)&x=(secret)(secret) Bearer"
    )
