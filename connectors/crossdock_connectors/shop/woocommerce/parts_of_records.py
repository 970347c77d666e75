"""Lists that single records have, such as the refunds of an order: one that cannot be read is set aside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from crossdock.errors import RefusedError, RemoteError
from crossdock.reading.sources.list_evidence import DoubtfulListError
from crossdock.reading.sources.retried_requests import ThrottledError

MOST_IN_A_ROW = 3
"""As many failures in a row are those of the shop, and no longer those of single records."""
_OTHERS = "all other records are delivered, and the next run reads this one again"


class UnreadParts:
    """Why lists of single records were not read whole, or not at all. The records themselves and all others are read.

    `check` raises the first reason at the end of the main list, so that no cursor moves and nothing counts as gone.
    """

    def __init__(self) -> None:
        self._first: DoubtfulListError | None = None
        self._in_a_row = 0

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """Keep the error of one record's list, unless it comes for each of `MOST_IN_A_ROW` records."""
        try:
            yield
        except DoubtfulListError as doubt:
            self._first = self._first or doubt
        except ThrottledError:
            raise  # the next request would be refused as well
        except (RefusedError, RemoteError) as error:
            self._in_a_row += 1
            if self._in_a_row == MOST_IN_A_ROW:
                raise
            hint = "; ".join(filter(None, (error.hint, _OTHERS)))
            self._first = self._first or DoubtfulListError(error.message, where=error.where, hint=hint)
            return
        self._in_a_row = 0

    def check(self) -> None:
        if self._first is not None:
            raise self._first
