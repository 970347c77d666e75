"""Storage of the rate limits of HTTP sources between runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.pacing.token_bucket import BucketState
from crossdock.state import Transaction


def read(tx: Transaction, connections: Iterable[str], reading_platform: Collection[str]) -> dict[str, BucketState]:
    """Return the token buckets as the last run left them; for *reading_platform*, the platform's if that is newer."""
    found = {name: tx.buckets.get(_bucket_name(name)) for name in connections}
    for name in found.keys() & reading_platform:
        buckets = [each for each in (found[name], tx.buckets.get(PLATFORM)) if each is not None]
        found[name] = max(buckets, key=lambda each: each.as_of, default=None)
    return {name: bucket_state for name, bucket_state in found.items() if bucket_state is not None}


def write(tx: Transaction, limits: Mapping[str, BucketState]) -> None:
    for name, bucket_state in limits.items():
        tx.buckets.put(_bucket_name(name), bucket_state)


def _bucket_name(connection: str) -> str:
    return f"api of {connection}"
