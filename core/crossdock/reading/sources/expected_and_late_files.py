"""Expected files: whether a stream must find a new file, and the error if there is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Annotated, Any

from msgspec import Struct
from pydantic import BeforeValidator

from crossdock.errors import UnavailableError
from crossdock.reading.sources.run_and_stream_context import JobRun, SourceContext
from crossdock.reading.sources.stream_input_report import InputFacts, input_facts_of_stream, newest_accepted_file
from crossdock.state import FileFacts
from crossdock.values.config_base_types import ConfigModel, TimeOfDay, duration_schema, is_duration, parse_duration
from crossdock.values.texts_of_numbers_and_times import instant_text

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
        """Report to *run* what *stream* found and misses; for arguments see `input_facts_of_stream` and `violation`."""
        known = run.intake.known_files(stream)
        facts = run.inputs[stream] = input_facts_of_stream(known, taken, unread, run.intake.passed_over_files(stream))
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
