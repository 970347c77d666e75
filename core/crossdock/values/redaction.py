"""Removal of secrets from texts of other systems, which may repeat them."""

from __future__ import annotations

from collections.abc import Iterable

MASK = "(secret)"
SHORTEST = 8  # a shorter one is a test's secret, and part of many words


def redacted(text: str, secrets: Iterable[str]) -> str:
    """Replace each of *secrets* that has at least `SHORTEST` characters by `MASK`."""
    for secret in secrets:
        if len(secret) >= SHORTEST:
            text = text.replace(secret, MASK)
    return text
