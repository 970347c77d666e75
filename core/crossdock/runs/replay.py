"""Dead letters as a source: records that were refused, to be mapped and delivered once more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from crossdock.delta.scan import Read
from crossdock.planning.removals import Gone
from crossdock.project.connector_errors import Failing
from crossdock.project.project import BoundStream
from crossdock.records import Record
from crossdock.state import Choice, DeadLetter, Intent, State
from crossdock.state.tables.snapshot_history import GONE_FP
from crossdock.tally import Tally


class Replaying:
    """One stream's turn in a replay. A letter goes when its record gets through, waits or is refused anew.

    The letter of a removal asks for the removal again, as long as the stream removes anything.
    """

    def __init__(self, bound: BoundStream, state: State, tally: Tally, choice: Choice) -> None:
        self._bound, self._state, self._tally = bound, state, tally
        self._choice = replace(choice, stream=bound.name)
        self._letters: list[DeadLetter] = []
        self.gone = Gone()

    def read(self, doubtful: list[Intent], advance: Callable[[int], None]) -> None:
        """Take the chosen letters, but for those of whose record an operation is unsettled."""
        unsettled = {intent.key_hash for intent in doubtful}
        with self._state.look() as tx:
            chosen = tx.refused.chosen(self._choice)
        chosen = [each for each in chosen if each.key_hash not in unsettled]
        self._letters = [each for each in chosen if each.raw]
        if self._bound.stream.on_gone != "nothing":
            refused = [each for each in chosen if each.record_fp == GONE_FP]
            self.gone = Gone(removed=tuple(each.key_hash for each in refused), source="replay")
        self._tally.count("carried_over", self.expected)
        advance(self.expected)

    def give_up(self) -> None:
        """The letters stay as they are."""
        self._tally.count("carried_on", self.expected)

    @property
    def expected(self) -> int:
        return len(self._letters) + len(self.gone.removed)

    def failing(self) -> Failing:
        """Any number may fail: they are dead letters already."""
        return Failing(self._bound, None)

    def records(self) -> Iterator[Read]:
        for letter in self._letters:
            record = Record.restored(letter.key, letter.source, letter.raw)
            yield Read(record, letter.key_hash, letter.record_fp, letter.position)

    def finish(self) -> None:
        """Nothing was read from the source, so nothing of it is worked through."""
