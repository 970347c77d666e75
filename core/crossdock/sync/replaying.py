"""Dead letters as a source: records that were refused, to be mapped and delivered once more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from crossdock.records import Record
from crossdock.state import Choice, DeadLetter, Intent, State
from crossdock.sync.plan import Read
from crossdock.sync.project import BoundStream
from crossdock.sync.tally import Tally


class Replaying:
    """One stream's turn in a replay. A letter goes when its record gets through, waits or is refused anew."""

    def __init__(self, bound: BoundStream, state: State, tally: Tally, choice: Choice) -> None:
        self._bound, self._state, self._tally = bound, state, tally
        self._choice = replace(choice, stream=bound.name)
        self._letters: list[DeadLetter] = []

    def read(self, doubtful: list[Intent], advance: Callable[[int], None]) -> None:
        """Take the chosen letters, but for those of whose record an operation is unsettled."""
        unsettled = {intent.key_hash for intent in doubtful}
        with self._state.begin() as tx:
            chosen = tx.refused.chosen(self._choice)
        self._letters = [each for each in chosen if each.key_hash not in unsettled and each.raw]
        self._tally.count("carried_over", len(self._letters))
        advance(len(self._letters))

    def give_up(self) -> None:
        """The letters stay as they are."""
        self._tally.count("carried_on", len(self._letters))

    @property
    def expected(self) -> int:
        return len(self._letters)

    def records(self) -> Iterator[Read]:
        for letter in self._letters:
            record = Record.restored(letter.key, letter.source, letter.raw)
            yield Read(record, letter.key_hash, letter.record_fp, letter.position)

    def finish(self) -> None:
        """Nothing was read from the source, so nothing of it is worked through."""
