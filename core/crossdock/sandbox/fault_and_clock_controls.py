"""The controls of a running sandbox: the injected faults, and the clock."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from crossdock.sandbox.body_validation import parse_body_as_model
from crossdock.sandbox.database import GroupCommitWriter
from crossdock.sandbox.fault_injection import FaultInjector, FaultSet
from crossdock.sandbox.problem_errors import ProblemError, method_not_allowed_error
from crossdock.sandbox.rfc3339 import instant_text

PATHS = ("/_sandbox/faults", "/_sandbox/clock")
_LATEST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()  # a year before the last date of Python


class _Advance(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True)

    advance_s: Annotated[float, Field(ge=0, le=_LATEST)]


class AdjustableClock:
    """The time of *source* plus an offset that only grows and is kept over restarts."""

    def __init__(self, source: Callable[[], float], reader: sqlite3.Connection) -> None:
        self._source = source
        row = reader.execute("SELECT offset_s FROM clock").fetchone()
        self.offset_s: float = row[0] if row else 0.0

    def __call__(self) -> float:
        return self._source() + self.offset_s

    def unadjusted_time(self) -> float:
        """Return seconds since the epoch without the offset: the time of everyone else."""
        return self._source()

    async def advance(self, seconds: float, writer: GroupCommitWriter) -> None:
        if self() + seconds > _LATEST:
            findings = [("#/advance_s", "is too large")]
            raise ProblemError(422, "The clock cannot pass the year 9998.", findings=findings)
        self.offset_s += seconds  # before it is stored: two requests at the same time both count
        values = (self.offset_s,)
        await writer.run_in_transaction(
            lambda connection: connection.execute("INSERT OR REPLACE INTO clock VALUES (1, ?)", values)
        )


class FaultAndClockControls:
    def __init__(self, faults: FaultSet, clock: AdjustableClock, writer: GroupCommitWriter) -> None:
        self.faults, self.clock, self._writer = FaultInjector(faults), clock, writer

    async def answer_request(self, request: Request, body: bytes) -> Response:
        match request.scope["path"], request.method:
            case "/_sandbox/faults", "POST":
                self.faults = FaultInjector(parse_body_as_model(FaultSet, body))
            case "/_sandbox/faults", "DELETE":
                self.faults = FaultInjector(FaultSet())
            case "/_sandbox/clock", "POST":
                await self.clock.advance(parse_body_as_model(_Advance, body).advance_s, self._writer)
            case (_, "GET"):
                pass
            case (path, _):
                raise method_not_allowed_error("GET, POST" if path == "/_sandbox/clock" else "GET, POST, DELETE")
        if request.scope["path"] == "/_sandbox/faults":
            return JSONResponse(self.faults.as_json())
        return JSONResponse({"now": instant_text(self.clock()), "offset_s": self.clock.offset_s})
