"""Requests for each record of a list: a record for which the API always fails keeps no others from being read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from crossdock.errors import CrossdockError, UnauthorizedError
from crossdock.reading.sources.api_token_buckets import SourceAllowance
from crossdock.reading.sources.retried_requests import ForbiddenError, ThrottledError
from crossdock.sources import UnavailableError

_UNPROVED = 3  # records that may fail before one is answered
_MOST = 10  # records that are set aside in a run; with more, the API is out of order

Ask = Callable[[Any], tuple[Any, bool]]
"""Returns a record with what the API answered for it, and whether anything had to be requested."""


class FailingRecords:
    """Tells a record for which the API fails, or only answers 429, from an API that does so for all.

    A record is set aside if its requests failed, those of another record were answered after that, and its own failed
    once more. Without another record, or with too many that fail and are not forbidden, the first error ends the
    reading. What its own 429s have taught of the rate limit is forgotten.
    """

    def __init__(self, allowance: SourceAllowance) -> None:
        self._allowance, self._before = allowance, allowance.bucket_state
        self._answered: Any = None
        self._set_aside = 0

    def request_each_or_set_aside(
        self, items: Sequence[Any], ask: Ask, failed: Callable[[Any, CrossdockError], Any]
    ) -> list[Any]:
        """Return what *ask* returns for each of *items*, and *failed* of those that are set aside.

        Raises:
            UnauthorizedError, UnavailableError: If *ask* raises it, and no single record is the reason.
        """
        made, left = list(items), dict[int, CrossdockError]()
        for number, item in enumerate(items):
            if not left:
                self._before = self._allowance.bucket_state
            try:
                made[number], is_answered = ask(item)
            except (UnauthorizedError, UnavailableError) as error:
                left[number] = error
                if self._answered is not None:
                    ask(self._answered)  # this raises the error if the API fails for all
                elif len(left) < _UNPROVED:
                    continue
                else:
                    raise
            else:
                if not is_answered:
                    continue
                self._answered = item
            for place in left:
                made[place] = self._retry_or_set_aside(items[place], ask, failed)
            left.clear()
        if left:
            raise next(iter(left.values()))
        return made

    def _retry_or_set_aside(self, item: Any, ask: Ask, failed: Callable[[Any, CrossdockError], Any]) -> Any:
        try:
            return ask(item)[0]
        except (UnauthorizedError, UnavailableError) as error:
            self._set_aside += not isinstance(error, ForbiddenError)  # some APIs say so of what does not exist
            if self._set_aside > _MOST:
                raise
            if isinstance(error, ThrottledError):
                self._allowance.forget_refusals_since(self._before)
            return failed(item, error)
