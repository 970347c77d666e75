"""Kinds of events and the messages about them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from crossdock.errors import RefusedError
from crossdock.printable import printable
from crossdock.services.notifications import run_events_and_messages
from crossdock.services.notifications.run_events_and_messages import (
    Event,
    RunOverdue,
    RunWaiting,
    ScheduledRunEnded,
    compose_message,
    compose_message_of_several_events,
    notification_kinds_of_event,
)
from crossdock.values import exact_json
from crossdock.values.run_progress_and_messages import RunMessage
from crossdock.values.run_states_and_tally import OpenCounts

AT = datetime(2026, 3, 15, 2, tzinfo=UTC)


def failed(text: str) -> tuple[RunMessage, ...]:
    return (RunMessage("error", "", text),)


GOOD = ScheduledRunEnded(
    job="nightly",
    business_date=date(2026, 3, 14),
    due=datetime(2026, 3, 15, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")),
    run_id=17,
    status="done",
    seconds=312.4,
    requests=12_345,
    messages=(),
    previous="done",
)
SIX = OpenCounts(rejected=4, waiting=1, in_doubt=1)
LATE = RunOverdue("nightly", date(2026, 3, 14), AT.replace(hour=7), AT.replace(hour=6))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, set()),
        ({"previous": None}, set()),
        ({"previous": "skipped"}, set()),
        ({"status": "failed"}, {"failed"}),
        ({"status": "failed", "open": SIX, "previous": "failed"}, {"failed"}),
        ({"status": "incomplete"}, {"failed"}),
        ({"status": "incomplete", "previous": None}, {"failed"}),
        ({"status": "degraded", "open": SIX}, {"degraded"}),
        ({"status": "degraded", "open": SIX, "previous": "degraded"}, {"degraded"}),
        ({"status": "degraded", "open": SIX, "previous": "degraded", "repeated": True}, set()),
        ({"previous": "degraded"}, {"recovered"}),
        ({"previous": "failed"}, {"recovered"}),
        ({"previous": "incomplete"}, {"recovered"}),
        ({"status": "degraded", "open": SIX, "previous": "failed"}, {"recovered", "degraded"}),
        ({"messages": (RunMessage("warning", "wms.lots", "the snapshot is short"),)}, {"degraded"}),
        ({"status": "skipped", "previous": "failed"}, set()),
        ({"status": "skipped", "previous": "degraded"}, set()),
    ],
)
def test_kinds_of_events(changes: dict[str, Any], expected: set[str]) -> None:
    """A run without news has none; an unfinished run failed; a better one after a bad one is a recovery."""
    assert notification_kinds_of_event(replace(GOOD, **changes)) == expected


def test_an_overdue_run_is_late() -> None:
    assert notification_kinds_of_event(LATE) == {"late"}


def test_the_text_about_a_failed_run() -> None:
    """Job, outcome and date; then the error, the numbers, and the command for details."""
    bad = replace(
        GOOD, status="failed", messages=failed("wms: cannot be reached\n  look at the tunnel"), previous="incomplete"
    )
    message = run_events_and_messages.compose_message(bad, {"failed"}, AT)
    assert message.subject == "nightly failed (2026-03-14)"
    assert message.lines == (
        "Job nightly failed for 2026-03-14.",
        "wms: cannot be reached",
        "look at the tunnel",
        "Due: 2026-03-15 02:30:00+01:00",
        "Duration: 5 min 12 s",
        "Requests: 12,345",
        "Previous run: incomplete",
        "Details: crossdock show 17",
    )


@pytest.mark.parametrize(
    ("event", "subject"),
    [
        (replace(GOOD, status="incomplete"), "nightly did not finish (2026-03-14)"),
        (replace(GOOD, status="degraded", open=SIX), "nightly completed with open records (2026-03-14)"),
        (replace(GOOD, previous="failed"), "nightly recovered (2026-03-14)"),
        (
            replace(GOOD, status="degraded", open=SIX, previous="failed"),
            "nightly recovered with open records (2026-03-14)",
        ),
        (LATE, "nightly is running late (2026-03-14)"),
    ],
)
def test_the_subject_names_job_outcome_and_date(event: ScheduledRunEnded | RunOverdue, subject: str) -> None:
    assert run_events_and_messages.compose_message(event, notification_kinds_of_event(event), AT).subject == subject


def test_the_text_about_open_records() -> None:
    """It says how many are open, by state."""
    degraded = replace(GOOD, status="degraded", open=SIX)
    assert (
        run_events_and_messages.compose_message(degraded, {"degraded"}, AT).lines[1]
        == "Open records: 4 rejected, 1 waiting, 1 in doubt"
    )


def test_the_text_about_an_overdue_run() -> None:
    """Each time is shown in its own time zone."""
    late = structs.replace(LATE, done_by=datetime(2026, 7, 1, 6, tzinfo=ZoneInfo("Europe/Berlin")))
    lines = run_events_and_messages.compose_message(late, {"late"}, AT).lines
    assert lines[1:] == ("Expected end: 2026-03-15 07:00:00Z", "Deadline: 2026-07-01 06:00:00+02:00")


def test_the_payload() -> None:
    """It has the selected kinds, the most severe one as type, and each fact as JSON."""
    ended = replace(GOOD, status="degraded", open=SIX, previous="failed")
    message = run_events_and_messages.compose_message(ended, {"recovered", "degraded"}, AT)
    payload = exact_json.loads(exact_json.dumps(message.payload))
    assert payload == {
        "type": "night.degraded",
        "timestamp": "2026-03-15T02:00:00Z",
        "text": "\n".join(message.lines),
        "data": {
            "kinds": ["degraded", "recovered"],
            "job": "nightly",
            "business_date": "2026-03-14",
            "due": "2026-03-15T01:30:00Z",
            "run": 17,
            "status": "degraded",
            "open": {"rejected": 4, "waiting": 1, "pending": 0, "in_doubt": 1, "overdue": 0, "unverified": 0},
            "seconds": payload["data"]["seconds"],
            "requests": 12_345,
            "error": None,
            "errors": [],
            "previous": "failed",
            "warnings": [],
        },
    }
    assert str(payload["data"]["seconds"]) == "312.4"
    assert run_events_and_messages.compose_message(ended, {"recovered"}, AT).payload["type"] == "night.recovered"


@given(job=st.text(), error=st.text(), run_id=st.none() | st.integers(min_value=1))
def test_messages_are_short_and_printable(job: str, error: str, run_id: int | None) -> None:
    """Any job and error make few short printable lines and JSON below 20 kB."""
    message = run_events_and_messages.compose_message(
        replace(GOOD, status="failed", job=job, messages=failed(error), run_id=run_id, due=None), {"failed"}, AT
    )
    assert len(message.lines) <= 11
    for line in (message.subject, *message.lines):
        assert line == printable(line)
        assert len(line) <= 300
    assert len(message.subject) <= 70
    assert len(exact_json.dumps(message.payload)) < 20_000 + 12 * len(job)


def test_a_long_error_is_cut() -> None:
    """`crossdock show` prints the rest."""
    error = "\n".join(["x" * 1000, "a\x1b[2Jb\u202ec\ud800", *"cdefg"])
    lines = run_events_and_messages.compose_message(
        replace(GOOD, status="failed", messages=failed(error)), {"failed"}, AT
    ).lines
    assert lines[1:6] == ("x" * 297 + "...", r"a\x1b[2Jb\u202ec\ud800", "c", "d", "...")


def test_the_code_of_a_long_error_stays() -> None:
    """People look it up."""
    messages = (RunMessage.of_error("wms.items", RefusedError("x" * 1000, code="file_damaged")),)
    first = run_events_and_messages.compose_message(
        replace(GOOD, status="failed", messages=messages), {"failed"}, AT
    ).lines[1]
    assert first.endswith("xx... [file_damaged]")
    assert len(first) == 300


def test_ids_are_unique() -> None:
    """Receivers drop messages with repeated ids."""
    assert (
        run_events_and_messages.compose_message(GOOD, {"failed"}, AT).id
        != run_events_and_messages.compose_message(GOOD, {"failed"}, AT).id
    )


DUE = AT


def test_a_run_that_has_not_started_is_late() -> None:
    """With the reason."""
    event = RunWaiting("nightly", date(2026, 11, 24), AT, "the Dask scheduler does not answer\nat all")
    assert notification_kinds_of_event(event) == {"late"}
    message = compose_message(event, notification_kinds_of_event(event), AT)
    assert message.subject == "nightly has not started (2026-11-24)"
    assert any(line.startswith("Reason: the Dask scheduler does not answer") for line in message.lines)
    assert message.payload["data"]["due"] == AT


def test_the_events_of_many_tenants_are_one_message() -> None:
    """The worst first, a line each, and what is too much for people is in the data."""
    run = ScheduledRunEnded("nightly", date(2026, 11, 24), AT, 7, "failed", 1.0, 8, failed("wms: no route\nhint"), None)
    degraded = replace(run, status="degraded", messages=(), open=OpenCounts(rejected=2))
    events: list[tuple[str, Event]] = [(f"t{number:02}", degraded) for number in range(30)]
    events += [("zinc", run), ("acme", RunWaiting("nightly", date(2026, 11, 24), AT, "no workers"))]
    message = compose_message_of_several_events(events, 300, AT)
    assert message.subject == "32 of 300 tenants: 1 failed, 1 late, 30 degraded"
    assert message.lines[:4] == (
        "32 of 300 tenants: 1 failed, 1 late, 30 degraded.",
        "zinc: nightly failed for 2026-11-24. wms: no route",
        "acme: nightly has not started for 2026-11-24. Reason: no workers",
        "t00: nightly completed with open records for 2026-11-24. Open records: 2 rejected",
    )
    assert message.lines[-1] == "... and 12 more; 'crossdock runs --fleet' lists them"
    assert message.payload["type"] == "fleet.failed"
    assert len(message.payload["data"]["events"]) == 32
    assert message.payload["data"]["events"][0]["tenant"] == "zinc"


def test_a_line_about_a_tenant_keeps_the_reason_behind_a_long_path() -> None:
    """Its name is cut, and the reason follows the path of its config."""
    error = f"its config cannot be used: /srv/{'customers/' * 18}acme.yaml:1:9: is not valid YAML"
    run = ScheduledRunEnded("(all jobs)", date(2026, 11, 24), AT, None, "failed", 0.0, 0, failed(error), None)
    (line,) = compose_message_of_several_events([("acme" * 60, run)], 1, AT).lines[1:]
    assert line.startswith("acmeacmeacmeacmeacmeacmeacmeacmeacmea...: (all jobs) failed for 2026-11-24. its config")
    assert line.endswith("acme.yaml:1:9: is not valid YAML")


def test_a_warning_that_is_cut_keeps_its_code() -> None:
    """As an error does: people look up what it means by it."""
    warned = replace(GOOD, messages=(RunMessage("warning", "wms.lots", "x" * 400, "snapshot_differs"),))
    (line,) = (each for each in compose_message(warned, ["degraded"], AT).lines if each.startswith("Warning: "))
    assert line.endswith("xxx... [snapshot_differs]")
    assert len(line) == 300


def test_an_error_without_a_text_is_told() -> None:
    """In the line of a tenant and in the message about one run: a state of an older version may have such an error."""
    ended = replace(GOOD, status="failed", messages=(*failed(""), *failed("no disk")))
    (line,) = compose_message_of_several_events([("acme", ended)], 1, AT).lines[1:]
    assert line.endswith("2026-03-14. an error without a text; no disk")
    assert "an error without a text" in compose_message(replace(ended, messages=failed("")), ["failed"], AT).lines
