"""Input of a stream that must be the same as when a person looked at it."""

from __future__ import annotations

from crossdock.config.project.connector_instances import BoundStream
from crossdock.errors import RefusedError
from crossdock.runs.stream_input import StreamInput
from crossdock.state import State
from crossdock.values.tally import Tally

PLANNED = "the source changed while the plan was applied", "plan again"
"""The error for a changed source of an approved plan, and its hint."""


def check_digest(bound: BoundStream, digest: str, expected: str, refusal: tuple[str, str] = PLANNED) -> None:
    """Compare the digest of a stream's input with the expected one.

    Args:
        refusal: The error and the hint if they differ.

    Raises:
        RefusedError: If they differ.
    """
    if digest != expected:
        message, hint = refusal
        raise RefusedError(message, where=bound.name, hint=hint)


class ExpectedInput(StreamInput):
    """Input that is refused as a whole if it has changed, before anything of it is decided.

    Args:
        refusal: As for `check_digest`.
    """

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

    def accept(self) -> None:
        check_digest(self._bound, self.digest, self._expected_digest, self._refusal)
