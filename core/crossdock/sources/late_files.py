"""Files that come late: until when a source waits for one, and what becomes of it then.

A source never sleeps until its file is there. It says that it is late (`LateError`) and is asked again, so that
other streams go meanwhile, nothing is held open, and who asks can be interrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from crossdock.config_file import ConfigModel
from crossdock.errors import RefusedError, UnavailableError
from crossdock.scheduling.times_and_durations import TimeOfDay, duration_schema, is_duration, span
from crossdock.sources.source_context import Patience, SourceContext

LONGEST = timedelta(hours=24)
_UNITS = "smh"

T = TypeVar("T")


def _duration(value: Any) -> str:
    if not is_duration(value, _UNITS) or span(value) > LONGEST:
        raise ValueError(f"{str(value)!r} is no duration such as 90s, 45m or 6h, up to 24h")
    return str(value)


Duration = Annotated[str, BeforeValidator(_duration), duration_schema(_UNITS)]


class Wait(ConfigModel):
    """How long a run waits for a new file: either until a time or for a while, counted from when the run was due."""

    until: TimeOfDay | None = None
    """A time of day, such as "05:00", in quotes: the first one since the run was due, by the clocks of its schedule."""
    for_: Annotated[Duration | None, Field(alias="for")] = None
    """A while, such as 45m; up to 24h."""
    poll: Duration = "60s"
    """How often to look."""
    then: Literal["without", "fail"] = "fail"
    """What becomes of the stream when no file came: it runs ``without`` one, or fails with exit 3."""

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.until is None) == (self.for_ is None):
            raise ValueError("needs either until or for, and not both")
        return self

    @property
    def pause(self) -> timedelta:
        return span(self.poll)

    def deadline(self, patience: Patience) -> datetime:
        """The instant until which a run waits, in UTC.

        A time that the clocks show twice counts whenever it comes first; one that they skip comes as much later as
        they jumped.
        """
        since = patience.since.astimezone(UTC)
        if self.for_ is not None:
            return since + span(self.for_)
        assert self.until is not None
        at, day = time.fromisoformat(self.until), since.astimezone(patience.zone).date()
        shown = (
            datetime.combine(day + timedelta(days=days), at.replace(fold=fold), patience.zone)
            for days in (0, 1)
            for fold in (0, 1)
        )
        return next(instant for instant in (local.astimezone(UTC) for local in shown) if instant >= since)


class LateError(UnavailableError):
    """What a source waits for is not there, and there is time left to wait for it.

    Args:
        pause: When to ask again.
    """

    def __init__(self, message: str, *, where: str, pause: timedelta) -> None:
        super().__init__(message, where=where)
        self.pause = pause


class LateFileWatch:
    """Looks for the late files of one source in one run.

    Args:
        files: What the source reads, to be named in messages.
        patience: Of the run.

    Attributes:
        early: There is time left after the look that is under way.
        without: How to say that the source goes on without a new file; empty unless it does.
    """

    def __init__(self, wait: Wait, files: str, run: SourceContext, patience: Patience) -> None:
        self._wait, self._files, self._run = wait, files, run
        deadline = wait.deadline(patience)
        self._deadline = self._now + (deadline - run.clock.now())  # by the monotonic clock, as all that follows
        self._until = f"{deadline.astimezone(patience.zone):%Y-%m-%d %H:%M:%S %Z}"
        self._again = timedelta()
        self._late: LateError | None = None
        self.early, self.without = True, ""

    def look(self, take: Callable[[], T], arrived: Callable[[T], bool]) -> T:
        """What *take* gives once *arrived* is true of it, or the time is over.

        While there is time left, a file that is refused (because it still grows, say) and a server that does not
        answer are late too.

        Raises:
            LateError: If it is too early to tell. *take* is not called again before the pause of that is over.
            UnavailableError: If the time is over and nothing arrived, where that is a failure.
            CrossdockError: What *take* raises.
        """
        if self._late is not None and self._now < self._again:
            raise self._late
        left = self._deadline - self._now  # before the look, so that one comes after the deadline
        self.early = left > timedelta()
        try:
            taken = take()
        except (RefusedError, UnavailableError) as failure:
            if self.early:
                raise self._put_off(f"{failure.where or self._files}: {failure.message}", left) from failure
            raise
        if arrived(taken):
            return taken
        if self.early:
            raise self._put_off(f"{self._files}: no new file", left)
        if self._wait.then == "fail":
            hint = "ask its sender; 'crossdock sync' takes it in when it is there, and 'then: without' needs none"
            raise UnavailableError(f"no new file until {self._until}", where=self._files, hint=hint)
        self.without = f"no new file {self._files} until {self._until}; went on without it"
        return taken

    @property
    def _now(self) -> timedelta:
        return timedelta(seconds=self._run.clock.monotonic())

    def _put_off(self, reason: str, left: timedelta) -> LateError:
        if self._late is None:
            self._run.progress.warn(f"{reason}; waiting until {self._until}")
        pause = min(self._wait.pause, left)
        self._again = self._now + pause
        self._late = LateError(f"waits until {self._until}", where=self._files, pause=pause)
        return self._late
