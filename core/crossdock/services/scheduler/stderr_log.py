"""The scheduler's log on stderr: sentences, or one JSON object per line."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, date, datetime
from typing import Any, Literal

from crossdock.printable import printable, printable_lines
from crossdock.runs.run_report import Report, Timings
from crossdock.services.inbox.webhook_record_delivery import ConnectionAndTarget, InboxWorkResult
from crossdock.services.notifications.run_events_and_messages import ScheduledRunEnded
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import SilentProgress, error_texts
from crossdock.values.texts_of_numbers_and_times import duration_text

LogFormat = Literal["text", "json"]
LOGGER = logging.getLogger("crossdock.schedule")
_LEVELS = {"done": logging.INFO, "degraded": logging.WARNING}
_WARNINGS = LOGGER.getChild("run")  # shown with the prefix "warning: "
_FACTS = ("tenant", "job", "business_date", "run", "status", "seconds", "errors")


@contextmanager
def logging_to_stderr(form: LogFormat) -> Iterator[None]:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if form == "json" else _TextFormatter())
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)


def print_notice_between_log_lines(text: str) -> None:
    """Write *text* to stderr after an empty line, while no thread logs.

    Before 3.12.4, CPython may lose a line that two threads write at once (gh-119506).
    """
    with ExitStack() as held:
        for handler in LOGGER.handlers:
            handler.acquire()
            held.callback(handler.release)
        sys.stderr.write(f"\n{printable(text)}\n")
        sys.stderr.flush()


def log_warning(text: str) -> None:
    _WARNINGS.warning(text)


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        first, *others = record.getMessage().split("\n")
        begin = f"crossdock: {'warning: ' * (record.name == _WARNINGS.name)}{printable(first)}"
        # Indented, so that quoted text cannot pass for an entry.
        return "\n  ".join([begin, *(printable(line.strip()) for line in others)])


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
            "level": record.levelname.lower(),
            "message": printable_lines(record.getMessage()),
        }
        line |= {name: value for name in _FACTS if (value := getattr(record, name, None)) is not None}
        return json.dumps(line)


class WebhookLog(SilentProgress):
    """Logs the warnings of runs that deliver the records of webhooks."""

    def warn(self, text: str) -> None:
        _WARNINGS.warning(text)


def log_inbox_work(partners: ConnectionAndTarget, worked: InboxWorkResult) -> None:
    of = _name_of_partners_webhooks(partners)
    records, failed = f"{worked.fetched:,} record{'s' * (worked.fetched != 1)} fetched", f"{worked.failed:,}"
    if worked.failed:
        LOGGER.warning("%s: %s, %s failed: see 'crossdock records list --state inbox'", of, records, failed)
    elif worked.fetched:
        LOGGER.info("%s: %s", of, records)


def log_slow_partners(partners: ConnectionAndTarget, seconds: float) -> None:
    text = "%s: the same records have taken %s, so %s may answer slowly or not at all; those of others go on"
    systems = " or ".join(filter(None, partners))
    LOGGER.warning(text, _name_of_partners_webhooks(partners), duration_text(seconds), systems)


def _name_of_partners_webhooks(partners: ConnectionAndTarget) -> str:
    return f"webhooks of {partners}" if partners.connection else "webhooks"


class RunLog(SilentProgress):
    """Logs one scheduled run and listens to its progress. *show* gets the number of requests that could be sent now."""

    def __init__(
        self,
        job: str,
        business_date: date | str,
        show: Callable[[int | None], None] = lambda _: None,
        *,
        tenant: str | None = None,
    ) -> None:
        self._name, self._show = f"{f'{tenant}: ' if tenant else ''}{job} for {business_date}", show
        self.facts: dict[str, Any] = {"job": job, "business_date": str(business_date)}
        if tenant is not None:
            self.facts["tenant"] = tenant

    def make_logged_timings(self, clock: Clock) -> Timings:
        return Timings(clock, self, self._log_start)

    def _log_start(self, report: Report) -> None:
        self.facts["run"] = report.run
        self.log("started")

    def warn(self, text: str) -> None:
        _WARNINGS.warning(text, extra=self.facts)

    def allowance(self, tokens: int | None) -> None:
        self._show(tokens)

    def log_end(self, event: ScheduledRunEnded) -> None:
        level, why = _LEVELS.get(event.status, logging.ERROR), error_texts(event.messages)
        if event.open.total:
            why.append(f"open: {event.open}")
        text = f"{event.status} after {duration_text(event.seconds)}{': ' * bool(why)}" + "\n".join(why)
        errors = [each.as_json() for each in event.messages if each.level == "error"]
        self.log(text, level, status=event.status, seconds=round(event.seconds, 3), errors=errors or None)

    def log(self, text: str, level: int = logging.INFO, **facts: Any) -> None:
        LOGGER.log(level, "%s: %s", self._name, text, extra=self.facts | facts)
