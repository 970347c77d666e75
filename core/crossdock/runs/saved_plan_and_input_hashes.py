"""Files of hashes and counts that one command saves and a later one compares: plans, rehearsals, expected input."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from pydantic import ValidationError

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.errors import ConfigError, RefusedError
from crossdock.runs.stream_reading_and_state_comparison import StreamInput
from crossdock.state import State
from crossdock.values import exact_json
from crossdock.values.config_base_types import ConfigModel
from crossdock.values.run_states_and_tally import Tally
from crossdock.values.safe_local_files import read_regular_file_within_limit, replace_file_atomically

MAX_BYTES = 1 << 20
"""The limit for a file, which has a few hashes for each stream."""
PLANNED = "the source changed while the plan was applied", "plan again"
"""The error for a changed source of an approved plan, and its hint."""


class DigestFile(ConfigModel):
    """What was planned, as hashes and counts, without data of records.

    Attributes:
        noun: The word for it in messages.
        hint: The command that writes such a file.
    """

    noun: ClassVar[str]
    hint: ClassVar[str]

    def save(self, path: Path) -> None:
        """Write the file atomically. Raises ConfigError if the file cannot be written."""
        try:
            replace_file_atomically(path, exact_json.dumps(self.model_dump(mode="json")) + b"\n")
        except OSError as error:
            raise ConfigError(
                f"the {self.noun} cannot be written: {error.strerror}", where=str(path), code="file_unwritable"
            ) from error

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file. Raises ConfigError if it cannot be read or has another content."""
        try:
            return cls.model_validate(exact_json.loads(read_regular_file_within_limit(path, MAX_BYTES)))
        except OSError as error:
            message = f"the {cls.noun} cannot be read: {error.strerror}"
            raise ConfigError(message, where=str(path), hint=cls.hint, code="file_unreadable") from error
        except (ValueError, ValidationError):
            raise ConfigError(
                f"is not a {cls.noun} file", where=str(path), hint=cls.hint, code="saved_file_invalid"
            ) from None


def refuse_changed_input(bound: BoundStream, digest: str, expected: str, refusal: tuple[str, str] = PLANNED) -> None:
    if digest != expected:
        message, hint = refusal
        raise RefusedError(message, where=bound.name, hint=hint, code="saved_file_invalid")


class ExpectedInput(StreamInput):
    """Input that is refused as a whole if it has changed, before anything of it is decided."""

    def __init__(
        self,
        bound: BoundStream,
        state: State,
        tally: Tally,
        run_id: int,
        *,
        digest: str,
        refusal: tuple[str, str] = PLANNED,
    ) -> None:
        super().__init__(bound, state, tally, run_id, digested=True)
        self._expected_digest, self._refusal = digest, refusal

    def refuse_unexpected_input(self) -> None:
        refuse_changed_input(self._bound, self.digest, self._expected_digest, self._refusal)
