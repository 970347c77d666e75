"""Secrets and signatures of webhooks (Standard Webhooks 1.0, symmetric)."""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Iterable

_PREFIX = "whsec_"
_SECRET_BYTES = 32


def new_secret() -> str:
    return _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def signed_headers(event_id: str, timestamp: int, body: bytes, signing_secrets: Iterable[str]) -> dict[str, str]:
    """Return the headers of a delivery, with a signature for each secret. *timestamp* is in seconds since the epoch."""
    content = f"{event_id}.{timestamp}.".encode() + body
    signatures = (
        base64.b64encode(hmac.digest(base64.b64decode(each.removeprefix(_PREFIX)), content, "sha256")).decode()
        for each in signing_secrets
    )
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{each}" for each in signatures),
    }
