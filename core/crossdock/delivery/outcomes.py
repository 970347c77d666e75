"""What an answer, or its absence, means for an operation: one place, by exact class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from crossdock import wire
from crossdock.pacing.headers import LONGEST_FIELD, MAX_WAIT_S, http_date
from crossdock.platform import problems
from crossdock.platform.problems import Problem
from crossdock.records import Reason
from crossdock.transport.answers import AmbiguousError, Answer, NotSentError

MAX_ETAG = 512  # characters; RFC 9110 sets no bound, and the state keeps one with each record

Class = Literal[
    "delivered", "rejected", "throttled", "unavailable", "in_doubt", "unauthorized",
    "changed",  # the target holds another version than we know (412)
    "found", "absent",  # answers to a look-up
    "answered",  # to the question whether the platform works at all
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """The fate of one attempt.

    Attributes:
        retry_after_s: When the server wants to be asked again; None if it did not say.
        platform_id: Of a delivered record, where the answer names it.
        etag: The record's version, for ``If-Match``; None without one, or with one of more than `MAX_ETAG` characters.
        reason: Why it was rejected.
        held: What a look-up found, all its members.
    """

    kind: Class
    message: str = ""
    status: int | None = None
    retry_after_s: float | None = None
    platform_id: str | None = None
    etag: str | None = None
    reason: Reason | None = None
    pointer: str | None = None
    held: dict[str, Any] | None = None


def of_failure(error: NotSentError | AmbiguousError, *, harmless: bool = False) -> Outcome:
    """The outcome of an attempt that got no answer; one that is *harmless* does nothing, so it leaves no doubt."""
    return Outcome("unavailable" if harmless or isinstance(error, NotSentError) else "in_doubt", error.message)


def of_answer(answer: Answer) -> Outcome:
    """The outcome that *answer* tells.

    Only answers that say so mean "not done": a 500, 502, 504 or 408 may come from a gateway after the work was done,
    and so may a success whose body is broken.
    """
    status = answer.status
    if 200 <= status < 300:
        return _success(answer)
    problem = problems.read(status, answer.body)
    wait = retry_after_s(answer)
    kind: Class = "in_doubt"
    if status == 429:
        kind = "throttled"
    elif status == 401:
        kind = "unauthorized"
    elif status == 412:
        kind = "changed"
    elif status == 503 and wait is not None:
        kind = "unavailable"
    elif 400 <= status < 500 and not _is_running(problem, wait):
        return _rejection(problem)
    return Outcome(kind, problem.message, status, wait)


def of_look_up(answer: Answer) -> Outcome:
    """The outcome of asking for one record, by its id or by a list with at most one entry."""
    if answer.status in {404, 410}:
        return Outcome("absent", status=answer.status)
    if answer.status != 200:
        told = of_answer(answer)
        return told if told.kind in {"throttled", "unauthorized"} else replace(told, kind="unavailable")
    try:
        body = wire.loads(answer.body)
    except ValueError:
        return Outcome("unavailable", "answered a look-up with a broken body", answer.status)
    listed, etag = body.get("data") if isinstance(body, dict) else None, _etag(answer)
    if isinstance(listed, list):
        body, etag = listed[0] if listed else None, None  # a tag would be the list's
    if body is None:
        return Outcome("absent", status=200)
    if not isinstance(body, dict) or not isinstance(body.get("id"), str):
        return Outcome("unavailable", "answered a look-up with something else than a record", answer.status)
    return Outcome("found", status=200, platform_id=body["id"], etag=etag, held=body)


def of_ping(answer: Answer) -> Outcome:
    """The outcome of a harmless question: whatever is answered below 500 shows that the platform works."""
    return Outcome("answered" if answer.status < 500 else "unavailable", status=answer.status)


def _is_running(problem: Problem, wait_s: float | None) -> bool:
    """True for a time-out, and for a conflict with the first attempt under the same key, which still runs."""
    return problem.status == 408 or (problem.status == 409 and (wait_s is not None or "idempoten" in problem.kind))


def _success(answer: Answer) -> Outcome:
    try:
        body = wire.loads(answer.body) if answer.body else {}
    except ValueError:
        return Outcome("in_doubt", "answered success with a broken body", answer.status)
    given = body.get("id") if isinstance(body, dict) else None
    location = answer.headers.get("location", "")
    platform_id = given if isinstance(given, str) and given else location.rstrip("/").rpartition("/")[2] or None
    return Outcome("delivered", status=answer.status, platform_id=platform_id, etag=_etag(answer))


def _etag(answer: Answer) -> str | None:
    tag = answer.headers.get("etag")
    return tag if tag is not None and len(tag) <= MAX_ETAG else None


def _rejection(problem: Problem) -> Outcome:
    reasons: dict[int, Reason] = {403: "forbidden", 409: "conflict"}
    return Outcome(
        "rejected",
        problem.message,
        problem.status,
        reason=reasons.get(problem.status, "rejected"),
        pointer=problem.pointers[0] if problem.pointers else None,
    )


def retry_after_s(answer: Answer) -> float | None:
    """Seconds that ``Retry-After`` asks for (RFC 9110 section 10.2.3), 0 to 900; None where it is absent or no sense.

    A date is compared with the answer's own ``Date``, so that our clock does not matter. What is longer than 256
    characters makes no sense.
    """
    value = answer.headers.get("retry-after")
    if value is None or len(value) > LONGEST_FIELD:
        return None
    if value.strip().isdecimal():
        return min(float(value), MAX_WAIT_S)
    until, date = http_date(value), http_date(answer.headers.get("date", ""))
    return None if until is None or date is None else min(max(until - date, 0.0), MAX_WAIT_S)
