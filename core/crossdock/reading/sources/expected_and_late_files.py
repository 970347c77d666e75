"""Whether a stream must find a new file, and how long it waits for one.

A source never waits until its file arrives. It raises `LateFileError` and is called again, so that other streams can
run meanwhile, nothing stays open, and the run can be interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Annotated, Any, Literal, Self, TypeVar

from msgspec import Struct
from pydantic import BeforeValidator, Field, model_validator

from crossdock.errors import RefusedError, UnavailableError
from crossdock.reading.sources.run_context import JobRun, SourceContext, WaitingRun
from crossdock.reading.sources.stream_input_report import InputFacts, newest_accepted_file, report_of_stream_input
from crossdock.state import FileFacts
from crossdock.values.config_base_types import ConfigModel, TimeOfDay, duration_schema, is_duration, parse_duration
from crossdock.values.texts_of_numbers_and_times import instant_text

LONGEST_WAIT = timedelta(hours=24)
_DURATION_UNITS = "smh"

T = TypeVar("T")


def _checked_duration(value: Any) -> str:
    if not is_duration(value, _DURATION_UNITS) or parse_duration(value) > LONGEST_WAIT:
        raise ValueError(f"{str(value)!r} is not a duration such as 90s, 45m or 6h, up to 24h")
    return str(value)


Duration = Annotated[str, BeforeValidator(_checked_duration), duration_schema(_DURATION_UNITS)]


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
    def _raise_unless_either_until_or_for(self) -> Self:
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


class LateFileError(UnavailableError):
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
        self._late: LateFileError | None = None
        self.attempt_began_before_deadline, self.note_on_run_without_file = True, ""

    def take_files_or_raise_late_error(self, take: Callable[[], T], arrived: Callable[[T], bool]) -> T:
        """Call *take* and return its result if *arrived* is true of it or the time is over.

        While there is time left, a refused file, such as one that still grows, and an unavailable server count as late.

        Raises:
            LateFileError: If there is time left. Before its pause is over, *take* is not called again.
            UnavailableError: If the time is over without a file, and that is a failure.
        """
        if self._late is not None and self._monotonic_now < self._again:
            raise self._late
        left = self._deadline - self._monotonic_now  # before the attempt, so that one follows the deadline
        self.attempt_began_before_deadline = left > timedelta()
        try:
            taken = take()
        except (RefusedError, UnavailableError) as failure:
            if self.attempt_began_before_deadline:
                raise self._late_error(f"{failure.where or self._files}: {failure.message}", left) from failure
            raise
        if arrived(taken):
            return taken
        if self.attempt_began_before_deadline:
            raise self._late_error(f"{self._files}: no new file", left)
        if self._wait.then == "fail":
            hint = "ask the sender; run 'crossdock sync' when it has arrived, or set 'then: without' to do without it"
            raise UnavailableError(
                f"no new file arrived by {self._until}", where=self._files, hint=hint, code="file_missing"
            )
        self.note_on_run_without_file = f"no new file {self._files} until {self._until}; continued without it"
        return taken

    @property
    def _monotonic_now(self) -> timedelta:
        return timedelta(seconds=self._run.clock.monotonic())

    def _late_error(self, reason: str, left: timedelta) -> LateFileError:
        if self._late is None:
            self._run.note("", f"{reason}; waiting until {self._until}")
        pause = min(self._wait.pause, left)
        self._again = self._monotonic_now + pause
        self._late = LateFileError(f"waiting until {self._until}", where=self._files, pause=pause)
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
    return snapshot and all(report_of_stream_input(files, taken, ()).has_arrived for files in known)


_UNITS = "mhd"
_LONGEST = timedelta(days=366)
_A_DAY = "1d"


def _checked_interval(value: Any) -> str:
    if not is_duration(value, _UNITS) or parse_duration(value) > _LONGEST:
        raise ValueError(f"{str(value)!r} is not an interval such as 6h, 1d or 7d, up to 366d")
    return str(value)


Interval = Annotated[str, BeforeValidator(_checked_interval), duration_schema(_UNITS)]


class Expect(ConfigModel):
    """How often a new file must come; judged by the modification times of the files."""

    every: Interval = _A_DAY
    """The interval, such as ``6h``, ``1d`` or ``7d``, in each of which at least one new file must come; at most
    366d."""
    by: TimeOfDay | None = None
    """A time of day, such as "05:00", in quotes: the interval ends there, so that a file may be late until then."""

    def begin(self, now: datetime, zone: tzinfo | None) -> datetime:
        """Return the start of the last interval that has ended at *now*, in UTC.

        A time of day that occurs twice on a day counts when it occurs first; one that is skipped counts as much later
        as the clocks jumped.
        """
        end = now.astimezone(UTC)
        if self.by is not None:
            at, today = time.fromisoformat(self.by), now.astimezone(zone).date()
            days = (datetime.combine(today - timedelta(days=number), at, zone) for number in (0, 1, 2))
            end = next(each for each in (day.astimezone(UTC) for day in days) if each <= end)
        return end - parse_duration(self.every)


@dataclass(frozen=True, slots=True)
class Expectation:
    """Whether a stream must find a new file in a run.

    Attributes:
        required: Each run needs a new file; in a scheduled run, one that came since the previous run of its job. None
            for the default: *is_usual* in scheduled runs, and false in others.
        expect: How often a new file must come; replaces *required*.
    """

    required: bool | None = None
    expect: Expect | None = None
    is_usual: bool = False

    def compare(
        self, run: SourceContext, stream: str, taken: Sequence[FileFacts], unread: Sequence[FileFacts], files: str
    ) -> InputFacts:
        """Report to *run* what *stream* found and misses. Arguments are those of `report_of_stream_input` and
        `violation`.
        """
        known = run.intake.known_files(stream)
        facts = run.inputs[stream] = report_of_stream_input(known, taken, unread, run.intake.passed_over_files(stream))
        if not facts.has_arrived and (error := self.violation(known, run, files)):
            run.failures[stream] = error
        return facts

    def violation(self, known: Iterable[FileFacts], run: SourceContext, files: str) -> UnavailableError | None:
        """Return the error of a stream that needs a new file and finds none; it has read the *known* ones before."""
        missing, newest = self._new_file_requirement(run), newest_accepted_file(known)
        if missing is None or (newest is not None and missing.is_met_by(newest, by_file_time=self.expect is not None)):
            return None
        last = "there was none before"
        if newest is not None:
            last = f"newest: {newest.name} of {instant_text(newest.modified_at.astimezone(UTC))}"
        hint = "ask the sender; run 'crossdock sync' when it has arrived. If it may be missing, set 'required: false'"
        return UnavailableError(f"{missing.text}; {last}", where=files, hint=hint, code="file_missing")

    def _new_file_requirement(self, run: SourceContext) -> _NewFileRequirement | None:
        job = run.job
        if self.expect is not None:
            begin = self.expect.begin(run.clock.now(), run.patience.zone if run.patience else None)
            return _NewFileRequirement(f"no new file since {instant_text(begin)}", begin)
        if not ((self.is_usual and job is not None) if self.required is None else self.required):
            return None
        if job is None:
            return _NewFileRequirement("no new file", None)
        if job.previous_end is None:
            return _NewFileRequirement("no new file", datetime.min.replace(tzinfo=UTC))
        if _did_previous_run_just_end(job, run.clock.now()):
            return None
        ended = instant_text(job.previous_end.astimezone(UTC))
        return _NewFileRequirement(f"no new file since the job's last run ({ended})", job.previous_end)


NO_FILE_EXPECTED = Expectation()


def _did_previous_run_just_end(job: JobRun, now: datetime) -> bool:
    """Return whether the previous run ended just now, after this one was due: no file can have come in between.

    A run that another program starts once a day with the date of yesterday is also due before the previous one ends.
    A day has passed since then, so that a file must have come.
    """
    if job.previous_end is None or job.previous_end < job.due:
        return False
    return job.previous_due is None or now - job.previous_end < (job.due - job.previous_due) / 2


class _NewFileRequirement(Struct, frozen=True):
    text: str
    begin: datetime | None

    def is_met_by(self, newest: FileFacts, *, by_file_time: bool) -> bool:
        accepted = newest.accepted_at or newest.modified_at
        at = min(newest.modified_at, accepted) if by_file_time else accepted
        return self.begin is not None and at > self.begin
