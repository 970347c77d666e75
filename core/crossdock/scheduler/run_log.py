"""What the scheduler logs: sentences for people, or one JSON object a line for machines."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, date, datetime
from typing import Any, Literal

from crossdock.clock import Clock
from crossdock.printable import printable, printable_lines
from crossdock.progress import Silent
from crossdock.runs.run_report import Report
from crossdock.runs.timings import Timings

LogFormat = Literal["text", "json"]
LOGGER = logging.getLogger("crossdock.schedule")
_WARNINGS = LOGGER.getChild("run")  # what runs warn of, which people have always read as a warning
_FACTS = ("job", "business_date", "run", "status", "seconds")


@contextmanager
def shown(form: LogFormat) -> Iterator[None]:
    """Write what is logged to stderr while the block lasts."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Objects() if form == "json" else _Sentences())
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)


def beside(text: str) -> None:
    """Write *text* after an empty line, and not while a thread logs: two writers at once may lose a line.

    That is a defect of CPython before 3.12.4 (gh-119506).
    """
    with ExitStack() as held:
        for handler in LOGGER.handlers:
            handler.acquire()
            held.callback(handler.release)
        sys.stderr.write(f"\n{printable(text)}\n")
        sys.stderr.flush()


def warn(text: str) -> None:
    """Log what a person should look at, and no night is about."""
    _WARNINGS.warning(text)


class _Sentences(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        first, *others = record.getMessage().split("\n")
        begin = f"crossdock: {'warning: ' * (record.name == _WARNINGS.name)}{printable(first)}"
        return "\n  ".join(
            [begin, *(printable(line.strip()) for line in others)]
        )  # indented: none looks like another's


class _Objects(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
            "level": record.levelname.lower(),
            "message": printable_lines(record.getMessage()),
        }
        line |= {name: value for name in _FACTS if (value := getattr(record, name, None)) is not None}
        return json.dumps(line)


class RunLog(Silent):
    """The log of one night, which looks on at its run.

    Args:
        show: Told how many requests could leave, as often as that is known.

    Attributes:
        facts: What is known of the night by now; each line has them.
    """

    def __init__(self, job: str, business_date: date, show: Callable[[int | None], None] = lambda _: None) -> None:
        self._name, self._show = f"{job} for {business_date}", show
        self.facts: dict[str, Any] = {"job": job, "business_date": business_date.isoformat()}

    def timings(self, clock: Clock) -> Timings:
        """A course for the run of this night, whose begin and warnings are logged."""
        return Timings(clock, self, self._begun)

    def _begun(self, report: Report) -> None:
        self.facts["run"] = report.run
        self.say("begins")

    def warn(self, text: str) -> None:
        _WARNINGS.warning(text, extra=self.facts)

    def allowance(self, tokens: int | None) -> None:
        self._show(tokens)

    def ended(self, report: Report | None, error: str | None = None) -> None:
        """It came to an end, as *report* tells; without one it could not be run, because of *error*."""
        status, seconds, level = "failed", 0.0, logging.ERROR
        if report is not None:
            status, seconds = report.status, report.seconds
            error = next(map(str, report.errors.values()), None)
            level = {0: logging.INFO, 1: logging.WARNING}.get(report.exit_code, logging.ERROR)
        told = f"{status} after {seconds:.0f} s{f': {error}' if error else ''}"
        self.say(told, level, status=status, seconds=round(seconds, 3))

    def say(self, text: str, level: int = logging.INFO, **facts: Any) -> None:
        """Log a sentence about this night."""
        LOGGER.log(level, "%s: %s", self._name, text, extra=self.facts | facts)
