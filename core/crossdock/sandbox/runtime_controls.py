"""What can be changed while the sandbox runs: the faults in force, and what time it is."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from crossdock.sandbox.collections import findings_of, instant_text
from crossdock.sandbox.database import Writer
from crossdock.sandbox.fault_injection import Faults, FaultSet
from crossdock.sandbox.problem_answers import ProblemError

PATHS = ("/_sandbox/faults", "/_sandbox/clock")
_LAST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()  # a year before dates end

M = TypeVar("M", bound=BaseModel)


class _Advance(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True)

    advance_s: Annotated[float, Field(ge=0, le=_LAST)]


class Clock:
    """The time of *source*, moved forward and never back, over restarts too."""

    def __init__(self, source: Callable[[], float], reader: sqlite3.Connection) -> None:
        self._source = source
        row = reader.execute("SELECT offset_s FROM clock").fetchone()
        self.offset_s: float = row[0] if row else 0.0

    def __call__(self) -> float:
        """Seconds since the epoch."""
        return self._source() + self.offset_s

    async def advance(self, seconds: float, writer: Writer) -> None:
        """Let *seconds* pass at once."""
        if self() + seconds > _LAST:
            raise ProblemError(422, "Time ends before that.", findings=[("#/advance_s", "is too long")])
        self.offset_s += seconds  # before the disk knows, so that two who advance together do not lose a part
        values = (self.offset_s,)
        await writer.run(lambda connection: connection.execute("INSERT OR REPLACE INTO clock VALUES (1, ?)", values))


class Controls:
    """The faults in force and the clock, and the doors ``/_sandbox/faults`` and ``/_sandbox/clock`` to them."""

    def __init__(self, faults: FaultSet, clock: Clock, writer: Writer) -> None:
        self.faults, self.clock, self._writer = Faults(faults), clock, writer

    async def answer(self, request: Request, body: bytes) -> Response:
        match request.scope["path"], request.method:
            case "/_sandbox/faults", "POST":
                self.faults = Faults(_read(FaultSet, body))
            case "/_sandbox/faults", "DELETE":
                self.faults = Faults(FaultSet())
            case "/_sandbox/clock", "POST":
                await self.clock.advance(_read(_Advance, body).advance_s, self._writer)
            case (_, "GET"):
                pass
            case (path, _):
                allowed = "GET, POST" if path == "/_sandbox/clock" else "GET, POST, DELETE"
                raise ProblemError(405, "This path has no such method.", headers={"allow": allowed})
        told = self.faults.told() if request.scope["path"] == "/_sandbox/faults" else self._time()
        return Response(json.dumps(told), media_type="application/json")

    def _time(self) -> dict[str, object]:
        now = instant_text(datetime.fromtimestamp(self.clock(), UTC))
        return {"now": now, "offset_s": self.clock.offset_s}


def _read(model: type[M], body: bytes) -> M:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            raise ProblemError(400, "The body is no JSON.") from None
        raise ProblemError(422, "The body does not fit.", findings=findings_of(error)) from None
