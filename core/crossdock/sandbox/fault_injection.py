"""Fault injection: faults by name, probability and route, each with a seeded generator and its own counts.

ASGI cannot break connections, so the server gives each request access to its transport.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from collections.abc import Sequence
from random import Random
from typing import Annotated, Any, Literal

from msgspec import Struct, field
from pydantic import BaseModel, ConfigDict, Field, field_validator
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from crossdock.sandbox.api_routes import COLLECTIONS
from crossdock.sandbox.problem_errors import ProblemError
from crossdock.values.serving import LimitedConnection

_TRANSPORT = "transport"  # in the state of a request
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class BreakableConnection(LimitedConnection):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self.app_state = {**self.app_state, _TRANSPORT: transport}


class BrokenResponse(Response):
    """Closes or resets the connection instead of sending *response*, or after half of its body."""

    def __init__(self, response: Response, *, half: bool = False, reset: bool = False) -> None:
        super().__init__(response.body, response.status_code)
        self.raw_headers = response.raw_headers
        self._half, self._reset = half, reset

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._half:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            part = self.body[: len(self.body) // 2]
            await send({"type": "http.response.body", "body": part, "more_body": True})
        transport = scope.get("state", {}).get(_TRANSPORT)
        if transport is None:
            raise ConnectionAbortedError("an injected fault broke this connection")
        if self._reset:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        transport.close()
        while (await receive())["type"] != "http.disconnect":  # returning earlier would make the server answer 500
            pass


FaultName = Literal[
    "reset_before",  # the connection is reset before anything happens
    "error_before",  # 503 with Retry-After; nothing has happened
    "throttle",  # 429 without any header
    "expire_token",  # 401 invalid_token
    "slow",  # the effect happens at once, the response follows ``ms`` later; meanwhile its key is running
    "lying_headers",  # the rate limit headers show a full or an empty bucket, both wrong
    "lost_answer",  # the effect happens, then the connection is closed without a byte
    "error_after_commit",  # the effect happens, but the response is 500; a resend under its key gets the real one
    "cut_body",  # the effect happens, then the connection is closed in the middle of the response body
    "webhook_duplicate",  # a delivery that succeeded is sent once more
    "webhook_reorder",  # a delivery is sent after the next one of its subscription, or after ``ms`` if none follows
    "webhook_late",  # a delivery is sent ``ms`` later
]
_ROUTE = re.compile(r"(?P<method>[A-Z]+(?= |$))? ?(?P<place>/\S*|[a-z_]*)")
_PATHS: dict[str, str] = {each.kind.name: path for path, each in COLLECTIONS.items()}


class Fault(BaseModel):
    """One fault; *probability* is the share of the requests that it applies to."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True)

    name: FaultName
    probability: Annotated[float, Field(ge=0, le=1)]
    route: str = ""  # "POST", a resource, the beginning of a path, or "POST invoice"; empty for every request
    ms: Annotated[int, Field(ge=0, le=600_000)] = 1000  # for slow, webhook_reorder, webhook_late

    @field_validator("route")
    @classmethod
    def _raise_if_route_malformed(cls, route: str) -> str:
        found = _ROUTE.fullmatch(route)
        if not found or not (found["place"].startswith("/") or found["place"] in {"", *_PATHS}):
            places = ", ".join(_PATHS)
            raise ValueError(
                f"must be a method, a location, or both; a location is a path that begins with '/', or {places}"
            )
        return route

    def applies_to(self, method: str, path: str) -> bool:
        found = _ROUTE.fullmatch(self.route)
        assert found is not None
        return found["method"] in {None, method} and path.startswith(_PATHS.get(found["place"], found["place"]))


class FaultSet(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True)

    faults: tuple[Fault, ...] = ()
    seed: int = 0


class _ActiveFault(Struct):
    fault: Fault
    random: Random
    met: int = 0  # requests for which it was drawn
    struck: int = 0  # requests that got it


class FaultInjector:
    """Draws the faults of each request. Equal sets and equal requests give equal faults."""

    def __init__(self, given: FaultSet) -> None:
        self._seed = given.seed
        seeded = ((each, f"{given.seed} {each.name} {each.route}") for each in given.faults)
        self._active = [_ActiveFault(each, Random(seed)) for each, seed in seeded]  # noqa: S311  reproducible on purpose

    def faults_for_request(self, method: str, path: str) -> RequestFaults:
        return RequestFaults([each for each in self._active if each.fault.applies_to(method, path)], method)

    def as_json(self) -> dict[str, Any]:
        faults = [{**each.fault.model_dump(), "met": each.met, "struck": each.struck} for each in self._active]
        return {"seed": self._seed, "faults": faults}


class RequestFaults(Struct):
    """The faults of one request, in the order of its life. A fault that comes too late to strike is not drawn."""

    _applicable: Sequence[_ActiveFault]
    _method: str
    struck: list[FaultName] = field(default_factory=list)

    def _draw_fault(self, name: FaultName) -> _ActiveFault | None:
        for each in self._applicable:
            if each.fault.name == name:
                each.met += 1
                if each.random.random() < each.fault.probability:
                    each.struck += 1
                    self.struck.append(name)
                    return each
        return None

    def response_before_execution(self) -> Response | None:
        if not self._applicable:
            return None
        if self._draw_fault("reset_before"):
            return BrokenResponse(Response(status_code=0), reset=True)
        if self._draw_fault("error_before"):
            headers = {"retry-after": "1"}
            return ProblemError(503, "Temporarily unavailable (an injected fault).", headers=headers).response
        if self._draw_fault("throttle"):
            return Response(status_code=429)
        if self._draw_fault("expire_token"):
            challenge = {"www-authenticate": 'Bearer error="invalid_token", error_description="The token expired"'}
            return ProblemError(401, "The token has expired (an injected fault).", headers=challenge).response
        return None

    def delivery_delay_s(self, name: Literal["webhook_reorder", "webhook_late"]) -> float | None:
        drawn = self._draw_fault(name)
        return None if drawn is None else drawn.fault.ms / 1000

    def duplicates_delivery(self) -> bool:
        return self._draw_fault("webhook_duplicate") is not None

    def delay_s(self) -> float:
        slow = self._draw_fault("slow")
        return slow.fault.ms / 1000 if slow else 0.0

    def draw_false_bucket_level(self) -> Literal["full", "empty"] | None:
        active = self._draw_fault("lying_headers")
        return None if active is None else "full" if active.random.random() < 0.5 else "empty"

    def disturb_response(self, response: Response) -> Response:
        if not self._applicable:
            return response
        if self._draw_fault("lost_answer"):
            return BrokenResponse(response)
        committed = self._method != "GET" and response.status_code < 300
        if committed and "idempotent-replayed" not in response.headers and self._draw_fault("error_after_commit"):
            return ProblemError(500, "Internal error (an injected fault).").response
        if len(response.body) > 1 and self._draw_fault("cut_body"):
            return BrokenResponse(response, half=True)
        return response
