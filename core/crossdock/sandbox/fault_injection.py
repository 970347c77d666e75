"""Misbehaviour on demand: faults by name, probability and route, each with a seeded generator and counts of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from starlette.responses import Response

from crossdock.sandbox.broken_connections import Broken
from crossdock.sandbox.collections import COLLECTIONS
from crossdock.sandbox.problem_answers import ProblemError

FaultName = Literal[
    "reset_before",  # the connection is reset before anything happens
    "error_before",  # 503 with Retry-After, nothing has happened
    "throttle",  # 429 without any header
    "expire_token",  # 401 invalid_token
    "slow",  # the effect happens at once, the answer comes ``ms`` later; meanwhile its key is running
    "lying_headers",  # the rate headers tell of plenty or of nothing, both untrue
    "lost_answer",  # all is done, then the connection is closed without a byte
    "error_after_commit",  # an effect has happened, but the answer is 500; a resend under its key gets the real one
    "cut_body",  # all is done, then the connection is closed in the middle of the answer's body
]
_ROUTE = re.compile(r"(?P<method>[A-Z]+(?= |$))? ?(?P<place>/\S*|[a-z_]*)")
_PATHS: dict[str, str] = {each.kind.name: path for path, each in COLLECTIONS.items()}


class Fault(BaseModel):
    """One way to misbehave, and how often: *probability* is of every request that it could strike."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True)

    name: FaultName
    probability: Annotated[float, Field(ge=0, le=1)]
    route: str = ""  # "POST", a resource, a path's beginning, or "POST invoice"; empty for every request
    ms: Annotated[int, Field(ge=0, le=600_000)] = 1000  # for slow

    @field_validator("route")
    @classmethod
    def _is_a_route(cls, route: str) -> str:
        found = _ROUTE.fullmatch(route)
        if not found or not (found["place"].startswith("/") or found["place"] in {"", *_PATHS}):
            places = ", ".join(_PATHS)
            raise ValueError(f"must be a method, a place, or both; a place is a path that begins with '/', or {places}")
        return route

    def may_strike(self, method: str, path: str) -> bool:
        found = _ROUTE.fullmatch(self.route)
        assert found is not None
        return found["method"] in {None, method} and path.startswith(_PATHS.get(found["place"], found["place"]))


class FaultSet(BaseModel):
    """The faults that are to be in force together, and what they are drawn from."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True)

    faults: tuple[Fault, ...] = ()
    seed: int = 0


@dataclass(slots=True)
class _Armed:
    fault: Fault
    random: Random
    met: int = 0  # requests that it could strike
    struck: int = 0


class Faults:
    """A set in force: after the same requests equal sets have struck alike."""

    def __init__(self, given: FaultSet) -> None:
        self._given = given
        seeded = ((each, f"{given.seed} {each.name} {each.route}") for each in given.faults)
        self._armed = [_Armed(each, Random(seed)) for each, seed in seeded]  # noqa: S311  reproducible on purpose

    def meet(self, method: str, path: str) -> Encounter:
        return Encounter([each for each in self._armed if each.fault.may_strike(method, path)], method)

    def told(self) -> dict[str, Any]:
        """The set as it was given, and of each fault how many requests it ``met`` and how many it ``struck``."""
        told = [{**each.fault.model_dump(), "met": each.met, "struck": each.struck} for each in self._armed]
        return {"seed": self._given.seed, "faults": told}


@dataclass(slots=True)
class Encounter:
    """What strikes one request, in the order of its life. A fault that comes too late to strike is not drawn."""

    _armed: Sequence[_Armed]
    _method: str
    struck: list[FaultName] = field(default_factory=list)

    def _draw(self, name: FaultName) -> _Armed | None:
        for each in self._armed:
            if each.fault.name == name:
                each.met += 1
                if each.random.random() < each.fault.probability:
                    each.struck += 1
                    self.struck.append(name)
                    return each
        return None

    def instead(self) -> Response | None:
        """What is answered although nothing happens, if so."""
        if not self._armed:
            return None
        if self._draw("reset_before"):
            return Broken(Response(status_code=0), reset=True)
        if self._draw("error_before"):
            return ProblemError(503, "Out of service for a moment (a fault).", headers={"retry-after": "1"}).response
        if self._draw("throttle"):
            return Response(status_code=429)
        if self._draw("expire_token"):
            challenge = {"www-authenticate": 'Bearer error="invalid_token", error_description="The token expired"'}
            return ProblemError(401, "The token has expired (a fault).", headers=challenge).response
        return None

    def delay_s(self) -> float:
        slow = self._draw("slow")
        return slow.fault.ms / 1000 if slow else 0.0

    def lie(self) -> bool | None:
        """None for the truth; else whether plenty is left, which it is not, or nothing is, for an hour."""
        lying = self._draw("lying_headers")
        return lying.random.random() < 0.5 if lying else None

    def after(self, response: Response) -> Response:
        """What becomes of an answer."""
        if not self._armed:
            return response
        if self._draw("lost_answer"):
            return Broken(response)
        committed = self._method != "GET" and response.status_code < 300
        if committed and "idempotent-replayed" not in response.headers and self._draw("error_after_commit"):
            return ProblemError(500, "Something went wrong (a fault).").response
        if len(response.body) > 1 and self._draw("cut_body"):
            return Broken(response, half=True)
        return response
