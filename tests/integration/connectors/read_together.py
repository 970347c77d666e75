"""Contract tests of many streams whose processes with other hash seeds read all of them in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crossdock.runs.stream_trial import Trial
from crossdock.testing.contract import StreamContract


class ReadWithOthers(StreamContract):
    """One of several streams; an `EveryStream` of the same module reads them all."""

    def test_keys_and_drafts_are_the_same_in_every_process(self) -> None:
        """Tested for all streams of the module in one go."""


class EveryStream(StreamContract):
    """The records of all streams of a module.

    Attributes:
        cases: The contract of each stream.
    """

    cases: Sequence[type[StreamContract]]

    def read(self, since: str | None = None) -> Trial:
        trials = [case().read(since) for case in self.cases]
        assert all(trial.records for trial in trials)
        return replace(trials[0], records=[tried for trial in trials for tried in trial.records])
