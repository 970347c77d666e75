"""Webhooks of shops: their signatures, and the records that an order is about."""

from __future__ import annotations

from collections.abc import Iterator

from crossdock.webhooks import Hint, WebhookScheme
from crossdock_connectors.shop.record_values_and_keys import GUEST_OF
from crossdock_connectors.shop.settings import ShopSettings


def body_signature_scheme(signature_header: str, id_header: str | None = None) -> WebhookScheme:
    """Return the scheme of HMAC-SHA256 over the body alone, in base64, with the secret's text as the key."""
    return WebhookScheme(
        signature_header=signature_header,
        id_header=id_header,
        timestamp_header=None,
        signed_content="{body}",
        prefix="",
        secret_encoding="text",  # noqa: S106  the name of an encoding
    )


def order_and_invoice_hints(settings: ShopSettings, key: str) -> Iterator[Hint]:
    yield Hint("orders", (key,))
    if settings.invoices != "never":
        yield Hint("invoices", (key,))


def guest_hint(order_key: str) -> Hint:
    """Return the guest of an order. No shop finds guests by their own key, so the order's key is used."""
    return Hint("customers", (f"{GUEST_OF}{order_key}",))
