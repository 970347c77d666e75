"""Disturbed and killed commands of crossdock: how they may end, and what they must not show."""

from __future__ import annotations

from pathlib import Path

from crossdock.testing.connector_under_test import ConnectorUnderTest
from crossdock.testing.crossdock_process import EndedCommand

MOST_RUNS = 8  # the number of disturbed syncs within which everything must be delivered


class DisturbedCommands(ConnectorUnderTest):
    """A connector whose syncs run as processes.

    Attributes:
        seed: Decides when processes are killed.
    """

    seed: int = 0

    def ends_well(self, what: str, ended: EndedCommand, state_folder: Path, *, exit_code: int = 0) -> None:
        """Fail unless a command ended with *exit_code* and has shown no secret, not even in its state."""
        self.no_secret_shown(what, ended)
        self.no_secret_in_files(state_folder)
        is_expected = ended.exit_code == exit_code
        assert is_expected, f"{what} ends with exit code {ended.exit_code}:\n{ended.errors}{ended.output}"

    def was_killed(self, moment: str, ended: EndedCommand) -> None:
        """Fail unless a sync was killed."""
        self.no_secret_shown("crossdock sync", ended)
        what = f"a sync that was to be killed at {moment} ended before, with exit code {ended.exit_code}"
        assert ended.exit_code == -9, f"{what}:\n{ended.errors}{ended.output}"

    def no_secret_shown(self, what: str, ended: EndedCommand) -> None:
        """Fail if a command has shown a value of `environment`."""
        self.no_secret_in(f"the output of {what}", ended.output)
        self.no_secret_in(f"the errors of {what}", ended.errors)
