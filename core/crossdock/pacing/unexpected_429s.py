"""Whether a bare refusal means an empty bucket, or nothing: some platforms refuse for reasons of their own.

Who believes every refusal is slowed down to nothing by a platform that refuses one request in fifty at random. So a
refusal that the model did not expect is checked: a few requests leave at once, and an empty bucket refuses those too.
"""

from __future__ import annotations

from collections import deque

CHECKS = 4
FAILING_CHECKS = 3
LATEST = 6
FAILING_LATEST = 5  # in a flood of requests no check is needed
USUAL = 200  # one dismissed refusal in so many answers
REMEMBERED = 4_000  # answers


class Unexpected429s:
    """What speaks for an empty bucket."""

    def __init__(self) -> None:
        self._answered = self._dismissed = 0
        self.clear()

    def clear(self) -> None:
        """It was acted upon."""
        self._latest: deque[bool] = deque(maxlen=LATEST)
        self._checks: list[bool] = []
        self._first: int | None = None

    def raised(self, spent: int) -> None:
        """A refusal that nobody expected: the next tokens after the first *spent* check it."""
        if self._first is None:
            self._first, self._checks = spent + 1, []

    def checks_left(self, spent: int) -> int:
        """How many tokens more than there seem to be may be taken to check."""
        return 0 if self._first is None else max(0, self._first + CHECKS - 1 - spent)

    def answered(self, number: int, *, accepted: bool) -> None:
        """The request with the token of this *number* was accepted or refused."""
        self._latest.append(accepted)
        self._answered += 1
        if self._answered == REMEMBERED:
            self._answered, self._dismissed = self._answered // 2, self._dismissed // 2
        if self._first is not None and self._first <= number < self._first + CHECKS:
            self._checks.append(accepted)
            if len(self._checks) == CHECKS and not self.confirmed:
                self._first = None
                self._dismissed += 1

    @property
    def confirmed(self) -> bool:
        return self._latest.count(False) >= FAILING_LATEST or self._checks.count(False) >= FAILING_CHECKS

    @property
    def usual(self) -> bool:
        """The platform often refuses for other reasons, so that even an expected refusal proves nothing."""
        return self._dismissed >= 2 and self._dismissed * USUAL > self._answered
