"""What one answered request shows about the server's token bucket."""

from __future__ import annotations

from msgspec import Struct

LOWEST_PER_S = 0.1


class BucketSample(Struct, frozen=True):
    """The bucket held *level* tokens at *at*, on the monotonic clock, after *accepted* requests in total."""

    at: float
    accepted: int
    level: float = 0.0

    def refill_rate_since(self, earlier: BucketSample) -> float:
        """Return the tokens per second that were added in between, provided that the bucket was never full."""
        gained = self.accepted - earlier.accepted + self.level - earlier.level
        return max(gained / (self.at - earlier.at), LOWEST_PER_S)


class AnsweredRequest(Struct, frozen=True):
    """An answered request. Instants are on the monotonic clock.

    Attributes:
        number: The number of its token.
        sent_at: When the token was taken.
        answered_at: When the answer arrived.
        latency_s: The shortest latency of recent requests.
        sample: The moment at which the request reached the bucket, taken as half-way.
        paced: Whether it had waited for its token.
        others: Other requests that were in flight when it was sent, or were sent until its answer arrived.
    """

    number: int
    sent_at: float
    answered_at: float
    latency_s: float
    sample: BucketSample
    paced: bool = False
    others: int = 0

    @property
    def max_sample_error_tokens(self) -> float:
        """Tokens by which *sample* may be wrong, because requests that overlap arrive in any order."""
        return min(self.others, 2 + 0.2 * self.others)
