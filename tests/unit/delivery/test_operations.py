"""Idempotency keys: what makes two operations different, and what does not."""

from __future__ import annotations

import hashlib
from itertools import product

from crossdock.delivery.operations import idempotency_key
from crossdock.state import Scope


def test_no_two_operations_share_a_key() -> None:
    """Tenant, target, resource, namespace, key, operation and counter each make another key."""
    keys = {
        idempotency_key(tenant, Scope(target, resource, namespace), key, kind, counter)
        for tenant, target, resource, namespace, key, kind, counter in product(
            "AB", "AB", "AB", "AB", "AB", "AB", (1, 2)
        )
    }
    assert len(keys) == 2**7
    assert all(len(key) == 40 and key.isalnum() and key.isascii() for key in keys)


def test_a_key_stays_what_it_was() -> None:
    """A newer version mints the same key for the same operation."""
    text = b'["acme","platform","invoice","wms","17","create",1]'
    minted = idempotency_key("acme", Scope("platform", "invoice", "wms"), "17", "create", 1)
    assert minted == hashlib.sha256(text).hexdigest()[:40] == "25e01b7a403da3a617b11e2e005ec72921b5256c"
