"""Late files: how long a source waits for a file, and what happens when it does not arrive.

A source never waits until its file arrives. It raises `LateError` and is called again, so that other streams can run
meanwhile, nothing stays open, and the run can be interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from crossdock.errors import RefusedError, UnavailableError
from crossdock.reading.sources.run_and_stream_context import SourceContext, WaitingRun
from crossdock.reading.sources.stream_input_report import input_facts_of_stream
from crossdock.state import FileFacts
from crossdock.values.config_base_types import ConfigModel, TimeOfDay, duration_schema, is_duration, parse_duration
from crossdock.values.texts_of_numbers_and_times import instant_text

LONGEST = timedelta(hours=24)
_UNITS = "smh"

T = TypeVar("T")


def _checked_duration(value: Any) -> str:
    if not is_duration(value, _UNITS) or parse_duration(value) > LONGEST:
        raise ValueError(f"{str(value)!r} is not a duration such as 90s, 45m or 6h, up to 24h")
    return str(value)


Duration = Annotated[str, BeforeValidator(_checked_duration), duration_schema(_UNITS)]


class Wait(ConfigModel):
    """How long a run waits for a new file: until a time of day or for a duration, counted from when the run was due."""

    until: TimeOfDay | None = None
    """A time of day, such as "05:00", in quotes: the first one after the run was due, in its schedule's time zone."""
    for_: Annotated[Duration | None, Field(alias="for")] = None
    """A duration, such as 45m; up to 24h."""
    poll: Duration = "60s"
    """How often to check."""
    then: Literal["without", "fail"] = "fail"
    """What to do when no file has arrived: run ``without`` one, or fail with exit 3."""

    @model_validator(mode="after")
    def _check_until_or_for(self) -> Self:
        if (self.until is None) == (self.for_ is None):
            raise ValueError("needs either until or for, but not both")
        return self

    @property
    def pause(self) -> timedelta:
        return parse_duration(self.poll)

    def deadline(self, patience: WaitingRun) -> datetime:
        """Return the instant until which a run waits, in UTC. Skipped and repeated times count as in `Expect.begin`."""
        since = patience.since.astimezone(UTC)
        if self.for_ is not None:
            return since + parse_duration(self.for_)
        assert self.until is not None
        at, day = time.fromisoformat(self.until), since.astimezone(patience.zone).date()
        shown = (
            datetime.combine(day + timedelta(days=days), at.replace(fold=fold), patience.zone)
            for days in (0, 1)
            for fold in (0, 1)
        )
        return next(instant for instant in (local.astimezone(UTC) for local in shown) if instant >= since)


class LateError(UnavailableError):
    """The expected file has not arrived, and there is time left. After *pause*, try again."""

    code = "file_missing"

    def __init__(self, message: str, *, where: str, pause: timedelta) -> None:
        super().__init__(message, where=where)
        self.pause = pause


class LateFileWatch:
    """Waits for the late files of one source in one run. `early` is true if the attempt began before the deadline."""

    def __init__(self, wait: Wait, files: str, run: SourceContext, patience: WaitingRun) -> None:
        self._wait, self._files, self._run = wait, files, run
        deadline = wait.deadline(patience)
        self._deadline = self._monotonic_now + (deadline - run.clock.now())  # by the monotonic clock
        self._until = instant_text(deadline.astimezone(patience.zone))
        self._again = timedelta()
        self._late: LateError | None = None
        self.early, self.without = True, ""

    def take_or_raise_until_deadline(self, take: Callable[[], T], arrived: Callable[[T], bool]) -> T:
        """Call *take* and return its result if *arrived* is true of it or the time is over.

        While there is time left, a refused file, such as one that still grows, and an unavailable server count as late.

        Raises:
            LateError: If there is time left. Before its pause is over, *take* is not called again.
            UnavailableError: If the time is over without a file, and that is a failure.
        """
        if self._late is not None and self._monotonic_now < self._again:
            raise self._late
        left = self._deadline - self._monotonic_now  # before the attempt, so that one follows the deadline
        self.early = left > timedelta()
        try:
            taken = take()
        except (RefusedError, UnavailableError) as failure:
            if self.early:
                raise self._late_error(f"{failure.where or self._files}: {failure.message}", left) from failure
            raise
        if arrived(taken):
            return taken
        if self.early:
            raise self._late_error(f"{self._files}: no new file", left)
        if self._wait.then == "fail":
            hint = "ask the sender; run 'crossdock sync' when it has arrived, or set 'then: without' to do without it"
            raise UnavailableError(
                f"no new file arrived by {self._until}", where=self._files, hint=hint, code="file_missing"
            )
        self.without = f"no new file {self._files} until {self._until}; continued without it"
        return taken

    @property
    def _monotonic_now(self) -> timedelta:
        return timedelta(seconds=self._run.clock.monotonic())

    def _late_error(self, reason: str, left: timedelta) -> LateError:
        if self._late is None:
            self._run.note("", f"{reason}; waiting until {self._until}")
        pause = min(self._wait.pause, left)
        self._again = self._monotonic_now + pause
        self._late = LateError(f"waiting until {self._until}", where=self._files, pause=pause)
        return self._late


def has_file_arrived_since_due(
    run: SourceContext, streams: Sequence[str], taken: Sequence[FileFacts], *, snapshot: bool
) -> bool:
    """Return whether a file was taken in since the run was due, or a snapshot was exported again with known content."""
    assert run.patience is not None
    known = [run.intake.known_files(stream) for stream in streams]
    accepted = (facts.accepted_at for files in known for facts in files)
    if any(at is not None and at >= run.patience.since for at in accepted):
        return True
    return snapshot and all(input_facts_of_stream(files, taken, ()).has_arrived for files in known)
