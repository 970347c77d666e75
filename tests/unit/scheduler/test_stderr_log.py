"""What the scheduler logs: one entry per event, whatever it quotes."""

from __future__ import annotations

import json
import logging
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.config.schedules.due_times import DueTime
from crossdock.printable import printable
from crossdock.services.inbox.webhook_record_delivery import ConnectionAndTarget, InboxWorkResult
from crossdock.services.scheduler import stderr_log
from crossdock.services.scheduler.run_events_and_pending_notices import could_not_start_event
from crossdock.services.scheduler.stderr_log import LogFormat, RunLog
from crossdock.values.run_progress_and_messages import RunMessage

AT = datetime(2026, 1, 1, tzinfo=UTC)
FORGED = "a\x1b[2J\u202e\ncrossdock: nightly for 2026-01-01: done after 1 s"
UNSEEN = st.text(st.characters() | st.sampled_from("\n\r\0\x1b\x85\u2028\u202e"))


def logged(form: LogFormat, text: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a run that failed because of *text*, and a warning, write to stderr."""
    with stderr_log.logging_to_stderr(form):
        this_run = RunLog("nightly", date(2026, 1, 1))
        this_run.log_end(could_not_start_event("nightly", DueTime(AT, AT.date()), RunMessage("error", "", text)))
        this_run.warn(text)
    return capsys.readouterr().err


def test_no_sentence_can_be_forged(capsys: pytest.CaptureFixture[str]) -> None:
    """What is quoted cannot begin a line: lines of one event are indented, and controls are escaped."""
    lines = logged("text", FORGED, capsys).splitlines()
    assert lines == [
        r"crossdock: nightly for 2026-01-01: failed after 0.0 s: a\x1b[2J\u202e",
        "  crossdock: nightly for 2026-01-01: done after 1 s",
        r"crossdock: warning: a\x1b[2J\u202e",
        "  crossdock: nightly for 2026-01-01: done after 1 s",
    ]


def test_no_object_can_be_forged(capsys: pytest.CaptureFixture[str]) -> None:
    """One object per line; its message is escaped for terminals as well."""
    ended, warned = map(json.loads, logged("json", FORGED, capsys).splitlines())
    assert ended["message"].startswith("nightly for 2026-01-01: failed after 0.0 s: a\\x1b[2J\\u202e\n")
    assert (ended["level"], warned["level"]) == ("error", "warning")


@given(text=UNSEEN)
def test_any_text_stays_in_its_event(text: str) -> None:
    """Whatever is quoted, a log has as many events as were logged, in both forms."""
    record = logging.LogRecord(stderr_log.LOGGER.name, logging.INFO, "", 0, text, None, None)
    sentences = stderr_log._TextFormatter().format(record).split("\n")
    assert sentences[0].startswith("crossdock: ")
    assert all(line.startswith("  ") for line in sentences[1:])
    assert all(printable(line) == line for line in sentences)
    (line,) = stderr_log._JsonFormatter().format(record).splitlines()
    assert json.loads(line)["message"].count("\n") == text.count("\n")


@pytest.mark.parametrize(
    ("fetched", "failed", "text"),
    [
        (0, 0, ""),
        (1, 0, "crossdock: webhooks of s: 1 record fetched\n"),
        (1_200, 0, "crossdock: webhooks of s: 1,200 records fetched\n"),
        (2, 1, "crossdock: webhooks of s: 2 records fetched, 1 failed: see 'crossdock records list --state inbox'\n"),
    ],
)
def test_the_work_on_webhooks_is_one_line(
    fetched: int, failed: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is logged if nothing was fetched."""
    with stderr_log.logging_to_stderr("text"):
        stderr_log.log_inbox_work(ConnectionAndTarget("s", "platform"), InboxWorkResult(fetched, failed))
    assert capsys.readouterr().err == text
