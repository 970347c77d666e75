"""What a tenant's bucket lets us send, over the bucket's arithmetic: a reserve, and what answers say."""

from __future__ import annotations

from datetime import UTC, datetime

from crossdock.clock import Clock
from crossdock.pacing.bucket import Bucket

RESERVE_SHARE = 100  # one hundredth of the burst stays unspent: requests sent apart may arrive together


class Allowance:
    """Tokens of one bucket on the wall clock, so that the next run knows how far it is spent.

    Args:
        rate_per_s: Tokens a second.
        burst: Tokens when full, as the server has it.
        spent_until: Where an earlier run left it.
    """

    def __init__(self, clock: Clock, rate_per_s: float, burst: int, spent_until: datetime | None = None) -> None:
        self._clock = clock
        reserve = burst // RESERVE_SHARE
        self._bucket = Bucket(rate_per_s, burst - reserve)
        if spent_until is not None:
            latest = self._now() + self._bucket.burst / rate_per_s
            self._bucket = Bucket(rate_per_s, burst - reserve, min(spent_until.timestamp(), latest))

    def take_up_to(self, wanted: int) -> int:
        """Take what is there, at most *wanted*; how many that was."""
        now = self._now()
        taken = min(wanted, self._bucket.tokens(now))
        if taken:
            self._bucket = self._bucket.take(now, taken)
        return taken

    @property
    def tokens(self) -> int:
        """What could leave now."""
        return self._bucket.tokens(self._now())

    def wait_s(self) -> float:
        """Seconds until the next token."""
        return self._bucket.wait_s(self._now())

    def refused(self, retry_after_s: float) -> None:
        """The server refused a request and has a token again in *retry_after_s* seconds."""
        self._bucket = self._bucket.empty_until(self._now() + retry_after_s)

    @property
    def spent_until(self) -> datetime | None:
        """To be kept between runs; None while nothing was taken."""
        instant = self._bucket.spent_until
        return datetime.fromtimestamp(instant, UTC) if instant > 0 else None

    def _now(self) -> float:
        return self._clock.now().timestamp()
