"""What a person is told of a night: which events are worth it, and the words, short enough for a phone."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal
from uuid import uuid4

from crossdock.printable import printable
from crossdock.scheduling.times_and_durations import in_words

Kind = Literal["failed", "late", "degraded", "recovered"]
Status = Literal["done", "incomplete", "failed", "skipped"]
GRAVEST_FIRST: tuple[Kind, ...] = ("failed", "late", "degraded", "recovered")

_LONGEST_JOB, _LONGEST_LINE, _MOST_LINES = 40, 200, 4
_UNWELL = {"incomplete", "failed"}
_ENDED = {"done": "is done", "incomplete": "did not finish", "failed": "failed", "skipped": "was skipped"}


@dataclass(frozen=True, slots=True)
class ScheduledRunEnded:
    """A run of a job has ended, or was skipped.

    Attributes:
        due: When it was due, aware; None for a run by hand. Shown in its own zone.
        run_id: None where nothing was begun.
        degraded: It is done, but something was rejected, waits or is in doubt.
        error: Why it is not done, without secrets and personal data.
        previous: How the night before ended; None if there was none. Where nights were skipped, the last that was
            not, or a recovery after them goes unnoticed.
    """

    job: str
    business_date: date
    due: datetime | None
    run_id: int | None
    status: Status
    degraded: bool
    seconds: float
    requests: int
    error: str | None
    previous: Status | None


@dataclass(frozen=True, slots=True)
class RunOverdue:
    """A night is expected to end after the time that it is wanted by; both aware, and shown in their own zones."""

    job: str
    business_date: date
    expected_end: datetime
    done_by: datetime


Event = ScheduledRunEnded | RunOverdue


def kinds(event: Event) -> set[Kind]:
    """What *event* is, of what a person can ask to be told; nothing for a good night after a good one.

    A run that did not finish counts as failed. A skipped one is what the schedule asked for, and nothing.
    """
    if isinstance(event, RunOverdue):
        return {"late"}
    if event.status in _UNWELL:
        return {"failed"}
    found: set[Kind] = set()
    if event.status == "done" and event.degraded:
        found.add("degraded")
    if event.status == "done" and event.previous in _UNWELL:
        found.add("recovered")
    return found


@dataclass(frozen=True, slots=True)
class Message:
    """One notification, in words for people and as data for programs.

    Attributes:
        id: The same however often it is sent, and never that of another.
        at: When it was made.
        subject: One line.
        lines: The text, one fact each.
        payload: What `crossdock.exact_json` writes.
    """

    id: str
    at: datetime
    subject: str
    lines: tuple[str, ...]
    payload: dict[str, Any]


def notice(event: Event, wanted: Collection[Kind], at: datetime) -> Message:
    """What to tell of *event*, which is of the *wanted* kinds."""
    told = [kind for kind in GRAVEST_FIRST if kind in wanted]
    job, what = _cut(printable(event.job), _LONGEST_JOB), _verdict(event)
    lines = (f"{job} of {event.business_date} {what}.", *_facts(event))
    data = {"kinds": told, "job": printable(event.job), "business_date": event.business_date, **_data(event)}
    payload = {"type": f"night.{told[0]}", "timestamp": at, "text": "\n".join(lines), "data": data}
    return Message(f"msg_{uuid4().hex}", at, f"{job} {what}, {event.business_date}", lines, payload)


def _verdict(event: Event) -> str:
    if isinstance(event, RunOverdue):
        return "will be late"
    verdict = "is well again" if "recovered" in kinds(event) else _ENDED[event.status]
    return f"{verdict}, with open records" if "degraded" in kinds(event) else verdict


def _facts(event: Event) -> Iterator[str]:
    if isinstance(event, RunOverdue):
        yield f"Expected end: {_moment(event.expected_end)}"
        yield f"Wanted by: {_moment(event.done_by)}"
        return
    yield from _error_lines(event.error)
    if event.due is not None:
        yield f"Due: {_moment(event.due)}"
    yield f"Took: {in_words(event.seconds)}"
    yield f"Requests: {event.requests:,}"
    if event.previous is not None:
        yield f"Night before: {event.previous}"
    if event.run_id is not None:
        yield f"See: crossdock show {event.run_id}"


def _data(event: Event) -> dict[str, Any]:
    if isinstance(event, RunOverdue):
        return {"expected_end": event.expected_end, "done_by": event.done_by}
    return {
        "due": event.due,
        "run": event.run_id,
        "status": event.status,
        "degraded": event.degraded,
        "seconds": Decimal(f"{event.seconds:.3f}"),
        "requests": event.requests,
        "error": "\n".join(_error_lines(event.error)) or None,
        "previous": event.previous,
    }


def _error_lines(error: str | None) -> list[str]:
    """The error's own sentence and its hint; a longer one is read where the run is shown."""
    lines = [_cut(printable(line.strip()), _LONGEST_LINE) for line in (error or "").split("\n") if line.strip()]
    return lines if len(lines) <= _MOST_LINES else [*lines[:_MOST_LINES], "..."]


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _moment(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M} {instant.tzname()}"
