"""Protection of streams that are being undone: nothing else works on their records until the undo ends or is
abandoned.
"""

from __future__ import annotations

from collections.abc import Iterable

from crossdock.errors import RefusedError
from crossdock.state import Transaction
from crossdock.values.times_in_text import instant_text

RESUME = "crossdock apply --resume"
ADVICE = f"complete the undo: {RESUME}; or end it as it is: crossdock apply --give-up"


def refusals(tx: Transaction, names: Iterable[str]) -> dict[str, RefusedError]:
    """Return why those of the streams *names* that are being undone are not read, by stream."""
    since = tx.begun_undos.since()
    return {name: _refusal(name, instant_text(since[name])) for name in sorted({*names} & since.keys())}


def check_not_undone(tx: Transaction, names: Iterable[str]) -> None:
    for refusal in refusals(tx, names).values():
        raise refusal


def check_no_undo(tx: Transaction) -> None:
    since = tx.begun_undos.since()
    check_not_undone(tx, list(since)[:1])


def _refusal(name: str, since: str) -> RefusedError:
    message = f"an undo of {name} was begun {since} and has not ended, so nothing else of it is done"
    return RefusedError(message, hint=ADVICE)
