"""The input of a stream that must be what it was when somebody looked at it."""

from __future__ import annotations

from crossdock.errors import RefusedError
from crossdock.project.connector_instances import BoundStream
from crossdock.runs.stream_input import StreamInput
from crossdock.state import State
from crossdock.tally import Tally


class ExpectedInput(StreamInput):
    """Input that is refused as a whole if it has changed, before anything of it is decided.

    Args:
        digest: That it must have.
        refusal: What happened and what to do, if it has another one.
    """

    def __init__(
        self, bound: BoundStream, state: State, tally: Tally, run_id: int, *, digest: str, refusal: tuple[str, str]
    ) -> None:
        super().__init__(bound, state, tally, run_id, digested=True)
        self._expected_digest, self._refusal = digest, refusal

    def accept(self) -> None:
        if self.digest != self._expected_digest:
            message, hint = self._refusal
            raise RefusedError(message, where=self._bound.name, hint=hint)
