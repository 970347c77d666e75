"""Events of scheduled runs for notifications, and their messages."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal
from uuid import uuid4

from msgspec import Struct

from crossdock.config.notify_config import Kind
from crossdock.printable import printable, printable_lines
from crossdock.state.tables.run_history import COMPLETED
from crossdock.values.run_progress_and_messages import RunMessage, error_texts, warning_texts
from crossdock.values.run_states_and_tally import NOTHING_OPEN, OpenCounts
from crossdock.values.texts_of_numbers_and_times import duration_text, instant_text

Status = Literal["done", "degraded", "incomplete", "failed", "skipped"]
KINDS_WORST_FIRST: tuple[Kind, ...] = ("failed", "late", "degraded", "recovered")

_ERROR_FACTS = ("stream", "code", "category", "place", "message", "advice")
_MAX_NAME, _MAX_LINE, _MAX_ERROR_LINES = 40, 300, 4  # a line may begin with a path
_MAX_ERRORS, _MAX_GROUP_LINES, _MAX_GROUP = 20, 20, 1_000
_CODE = re.compile(r" \[\w+\]$")  # of an error or a warning, which stays if its line is cut
_NO_TEXT = "an error without a text"
_UNSUCCESSFUL = {"incomplete", "failed"}
_OUTCOMES = {
    "done": "completed",
    "degraded": "completed",
    "incomplete": "did not finish",
    "failed": "failed",
    "skipped": "was skipped",
}


@dataclass(frozen=True, slots=True)
class ScheduledRunEnded:
    """A run of a job ended or was skipped.

    Attributes:
        due: In the time zone of the schedule; None for a manual run.
        run_id: None if no run was started.
        status: ``degraded`` if it completed, but records are open.
        repeated: Whether it is degraded as before and no reminder is due, or was retried and failed as before.
        messages: Its errors and warnings, without secrets and personal data.
        previous: Status of the previous run that was not skipped.
    """

    job: str
    business_date: date
    due: datetime | None
    run_id: int | None
    status: Status
    seconds: float
    requests: int
    messages: tuple[RunMessage, ...]
    previous: Status | None
    open: OpenCounts = NOTHING_OPEN
    repeated: bool = False

    @property
    def warnings(self) -> list[str]:
        return warning_texts(self.messages)


class RunOverdue(Struct, frozen=True):
    """A run will probably end after its deadline, or has not ended by then. *expected_end* is None if it has passed."""

    job: str
    business_date: date
    expected_end: datetime | None
    done_by: datetime

    @property
    def summary(self) -> str:
        return f"{'has not ended by' if self.expected_end is None else 'expected to end after'} {self.done_by:%H:%M}"


class RunWaiting(Struct, frozen=True):
    """A run was due some time ago and has not started because of *reason*."""

    job: str
    business_date: date
    due: datetime
    reason: str

    @property
    def summary(self) -> str:
        return f"has not started: {self.reason}"


Event = ScheduledRunEnded | RunOverdue | RunWaiting


def notification_kinds_of_event(event: Event) -> set[Kind]:
    """Return the kinds of *event*; empty for a run without news and for a skipped run."""
    if isinstance(event, RunOverdue | RunWaiting):
        return {"late"}
    if event.status in _UNSUCCESSFUL:
        return set() if event.repeated else {"failed"}
    found: set[Kind] = set()
    if (event.status == "degraded" and not event.repeated) or (event.status in COMPLETED and event.warnings):
        found.add("degraded")
    if event.status in COMPLETED and event.previous in _UNSUCCESSFUL:
        found.add("recovered")
    if event.status == "done" and event.previous == "degraded":
        found.add("recovered")
    return found


class Message(Struct, frozen=True):
    """One notification, as lines of text and as JSON. *id* is unique, and the same for every attempt to send it."""

    id: str
    subject: str
    lines: tuple[str, ...]
    payload: dict[str, Any]


def compose_message(event: Event, selected: Collection[Kind], at: datetime) -> Message:
    ordered = [kind for kind in KINDS_WORST_FIRST if kind in selected]
    job, outcome = _shortened(printable(event.job), _MAX_NAME), _outcome_text(event)
    lines = (f"Job {job} {outcome} for {event.business_date}.", *_detail_lines(event))
    data = _event_document(event, ordered)
    payload = {"type": f"night.{ordered[0]}", "timestamp": at, "text": "\n".join(lines), "data": data}
    return Message(f"msg_{uuid4().hex}", f"{job} {outcome} ({event.business_date})", lines, payload)


def compose_message_of_several_events(events: Sequence[tuple[str, Event]], tenants: int, at: datetime) -> Message:
    """Make one message about several events, each with its tenant. *tenants* is the number of tenants in the fleet."""
    found = {kind: sum(kind in notification_kinds_of_event(event) for _, event in events) for kind in KINDS_WORST_FIRST}
    counts = ", ".join(f"{number:,} {kind}" for kind, number in found.items() if number)
    names = {tenant for tenant, _ in events}
    subject = f"{len(names):,} of {tenants:,} tenants: {counts}"
    ordered = sorted(events, key=lambda each: (_severity_rank_of_event(each[1]), each[0], each[1].job))
    lines = [f"{subject}.", *(_tenant_event_line(tenant, event) for tenant, event in ordered[:_MAX_GROUP_LINES])]
    if (more := len(ordered) - _MAX_GROUP_LINES) > 0:
        lines.append(f"... and {more:,} more; 'crossdock runs --fleet' lists them")
    listed = [
        {
            "tenant": printable(tenant),
            **_event_document(
                event, [kind for kind in KINDS_WORST_FIRST if kind in notification_kinds_of_event(event)]
            ),
        }
        for tenant, event in ordered[:_MAX_GROUP]
    ]
    data = {"kinds": [kind for kind, number in found.items() if number], "tenants": tenants, "events": listed}
    worst = next(kind for kind, number in found.items() if number)
    payload = {"type": f"fleet.{worst}", "timestamp": at, "text": "\n".join(lines), "data": data}
    return Message(f"msg_{uuid4().hex}", subject, tuple(lines), payload)


def _severity_rank_of_event(event: Event) -> int:
    return min(KINDS_WORST_FIRST.index(kind) for kind in notification_kinds_of_event(event))


def _tenant_event_line(tenant: str, event: Event) -> str:
    job = _shortened(printable(event.job), _MAX_NAME)
    errors = error_texts(event.messages) if isinstance(event, ScheduledRunEnded) else []
    fact = next((text for text in _detail_lines(event) if not text.startswith("Due: ")), "")
    if len(errors) > 1:
        fact = _shortened("; ".join(_first_printable_lines(text)[0] for text in errors), 2 * _MAX_LINE)
    return f"{_shortened(printable(tenant), _MAX_NAME)}: {job} {_outcome_text(event)} for {event.business_date}. {fact}"


def _event_document(event: Event, selected: Sequence[Kind]) -> dict[str, Any]:
    facts = {"kinds": selected, "job": printable(event.job), "business_date": event.business_date}
    return facts | _facts_of_event_kind(event)


def _outcome_text(event: Event) -> str:
    if isinstance(event, RunOverdue):
        return "is running late"
    if isinstance(event, RunWaiting):
        return "has not started"
    outcome = "recovered" if "recovered" in notification_kinds_of_event(event) else _OUTCOMES[event.status]
    if event.status == "degraded":
        return f"{outcome} with open records"
    return f"{outcome} with warnings" if event.status == "done" and event.warnings else outcome


def _detail_lines(event: Event) -> Iterator[str]:
    if isinstance(event, RunOverdue):
        yield f"Expected end: {'unknown' if event.expected_end is None else instant_text(event.expected_end)}"
        yield f"Deadline: {instant_text(event.done_by)}"
        return
    if isinstance(event, RunWaiting):
        yield f"Due: {instant_text(event.due)}"
        yield f"Reason: {_shortened(printable(event.reason), _MAX_LINE)}"
        return
    yield from _error_lines(event)
    if event.open.total:
        yield f"Open records: {event.open}"
    yield from _warning_lines(event)
    if event.due is not None:
        yield f"Due: {instant_text(event.due)}"
    yield f"Duration: {duration_text(event.seconds)}"
    yield f"Requests: {event.requests:,}"
    if event.previous is not None:
        yield f"Previous run: {event.previous}"
    if event.run_id is not None:
        yield f"Details: crossdock show {event.run_id}"


def _facts_of_event_kind(event: Event) -> dict[str, Any]:
    if isinstance(event, RunOverdue):
        return {"expected_end": event.expected_end, "done_by": event.done_by}
    if isinstance(event, RunWaiting):
        return {"due": event.due, "reason": _shortened(printable(event.reason), _MAX_LINE)}
    return {
        "due": event.due,
        "run": event.run_id,
        "status": event.status,
        "open": event.open.as_json(),
        "seconds": Decimal(f"{event.seconds:.3f}"),
        "requests": event.requests,
        "error": "\n".join(_error_lines(event)) or None,
        "errors": [_error_facts(each) for each in event.messages if each.level == "error"][:_MAX_ERRORS],
        "previous": event.previous,
        "warnings": _warning_lines(event),
    }


def _error_lines(event: ScheduledRunEnded) -> list[str]:
    texts = error_texts(event.messages)
    found = [line for text in texts[:_MAX_ERRORS] for line in _first_printable_lines(text)]
    return [*found, *_line_about_hidden_messages(len(texts) - _MAX_ERRORS, "errors", event)]


def _first_printable_lines(text: str) -> list[str]:
    lines = [_shortened_line_keeping_code(printable(line.strip())) for line in text.split("\n") if line.strip()] or [
        _NO_TEXT
    ]
    return lines if len(lines) <= _MAX_ERROR_LINES else [*lines[:_MAX_ERROR_LINES], "..."]


def _shortened_line_keeping_code(line: str) -> str:
    code = _CODE.search(line)
    end = code[0] if code else ""
    return f"{_shortened(line.removesuffix(end), _MAX_LINE - len(end))}{end}"


def _error_facts(message: RunMessage) -> dict[str, Any]:
    facts = message.as_json()
    return {name: facts[name] and _shortened(printable_lines(facts[name]), _MAX_LINE) for name in _ERROR_FACTS}


def _warning_lines(event: ScheduledRunEnded) -> list[str]:
    lines = [_shortened_line_keeping_code(f"Warning: {printable(text)}") for text in event.warnings]
    return [*lines[:_MAX_ERRORS], *_line_about_hidden_messages(len(lines) - _MAX_ERRORS, "warnings", event)]


def _line_about_hidden_messages(number: int, noun: str, event: ScheduledRunEnded) -> list[str]:
    return [f"{number:,} more {noun}; 'crossdock show {event.run_id}' lists them"] if number > 0 else []


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
