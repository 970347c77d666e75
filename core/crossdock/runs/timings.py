"""The timings of a run, and its allowance over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, structs

from crossdock.runs.run_report import Report
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import Progress, SilentProgress, Unit

MOST_STEPS = 100  # steps are merged to this number when there are twice as many
SLOTS = 250  # slots of time, each with two samples
OTHERS = "other steps"
_FIRST, _FINEST = "starting", timedelta(milliseconds=10)
_LONGEST_NAME = 200  # characters
_MS = timedelta(milliseconds=1)

Sample = tuple[timedelta, int]  # time since the run began, and tokens


class Step(Struct, frozen=True):
    name: str
    began: timedelta
    lasted: timedelta


class Timings:
    """Passes the progress of a run on to a listener, and records its steps in bounded memory."""

    def __init__(
        self, clock: Clock, listener: Progress | None = None, begun: Callable[[Report], None] = lambda _: None
    ) -> None:
        self._clock, self._listener, self._begun = clock, listener or SilentProgress(), begun
        self.report: Report | None = None
        self.job: str | None = None
        self._reset()

    @classmethod
    def reuse_or_wrap_progress(cls, progress: Progress, clock: Clock) -> Timings:
        """Return *progress* if it is a `Timings`, which its caller reads later, otherwise a new one over it."""
        return progress if isinstance(progress, cls) else cls(clock, progress)

    def start_run(self, report: Report, job: str | None) -> None:
        self._reset()
        self.report, self.job = report, job
        self._begun(report)

    def end_run_and_return_duration(self) -> timedelta:
        self._begin_step(_FIRST)
        return self._since

    def _reset(self) -> None:
        self.began: datetime = self._clock.now()
        self._zero, self._since = timedelta(seconds=self._clock.monotonic()), timedelta()
        self._outer, self._inner, self._left = _FIRST, "", 0
        self._outer_total: int | None = None
        self._outer_done, self._shows_inner = 0, False
        self._steps: list[Step] = []
        self._spacing = _FINEST
        self._slots: dict[int, tuple[Sample, Sample]] = {}  # by number: the lowest and the highest sample of each slot

    # ---- called by the run

    def begin_part(self, stage: str, total: int | None) -> None:
        """Begin a part of the run. It lasts until the next one, even after all of *total* is done."""
        self._listener.begin(stage, total)
        self._begin_step(stage)
        self._outer_total, self._outer_done, self._shows_inner = total, 0, False

    def begin(self, stage: str, total: int | None, unit: Unit = "records") -> None:
        """Begin a stage. One of known size is part of the present stage, which continues after it."""
        if total is None:
            self.begin_part(stage, None)
        elif total > 0:
            self._listener.begin(stage, total, unit)
            self._begin_step(self._outer, stage)
            self._left, self._shows_inner = total, True

    def advance(self, steps: int = 1) -> None:
        if self._inner:
            self._left -= steps
            if self._left <= 0:
                self._begin_step(self._outer)
        else:
            self._show_outer_stage_again()
            self._outer_done += steps
        self._listener.advance(steps)

    def _show_outer_stage_again(self) -> None:
        if self._shows_inner:
            self._shows_inner = False
            self._listener.begin(self._outer, self._outer_total)
            if self._outer_done:
                self._listener.advance(self._outer_done)

    def allowance(self, tokens: int | None) -> None:
        self._listener.allowance(tokens)
        if tokens is not None:
            sample = self._elapsed_since_run_began, tokens
            self._put_sample(sample, sample)
            while len(self._slots) > SLOTS:
                self._spacing *= 2
                kept, self._slots = self._slots, {}
                for low, high in kept.values():
                    self._put_sample(low, high)

    def waiting(self, wait: timedelta) -> None:
        self._listener.waiting(wait)

    def warn(self, text: str) -> None:
        self._listener.warn(text)

    # ---- read after the run

    @property
    def steps(self) -> list[Step]:
        """Finished steps. If there were more than twice `MOST_STEPS`, those of one name are merged."""
        return list(self._steps)

    @property
    def allowance_samples(self) -> list[Sample]:
        """The allowance over time, including its lowest and highest values."""
        return [sample for low, high in self._slots.values() for sample in sorted({low, high})]

    def as_json(self) -> dict[str, Any]:
        """Return times in milliseconds since the run began, without floats."""
        return {
            "steps": [[step.name, step.began // _MS, step.lasted // _MS] for step in self._steps],
            "samples": [[at // _MS, tokens] for at, tokens in self.allowance_samples],
        }

    @property
    def _elapsed_since_run_began(self) -> timedelta:
        return timedelta(seconds=self._clock.monotonic()) - self._zero

    def _begin_step(self, outer: str, inner: str = "") -> None:
        now, name = self._elapsed_since_run_began, _storable_name(self._inner or self._outer)
        if now > self._since:
            self._steps.append(Step(name, self._since, now - self._since))
        if len(self._steps) > 2 * MOST_STEPS:
            self._steps = _merge_steps(self._steps)
        self._outer, self._inner, self._since = outer, inner, now

    def _put_sample(self, low: Sample, high: Sample) -> None:
        number = low[0] // self._spacing
        lowest, highest = self._slots.get(number, (low, high))
        self._slots[number] = (
            min(lowest, low, key=_allowance_tokens_of_sample),
            max(highest, high, key=_allowance_tokens_of_sample),
        )


def _allowance_tokens_of_sample(sample: Sample) -> int:
    return sample[1]


def _storable_name(name: str) -> str:
    """Make *name* storable: file names may contain bytes that are not characters."""
    return name[:_LONGEST_NAME].encode(errors="replace").decode()


def _merge_steps(steps: Iterable[Step]) -> list[Step]:
    """Reduce to `MOST_STEPS`: merge the steps of one name, and the shortest as `OTHERS`."""
    merged: dict[str, Step] = {}
    for step in steps:
        _merge_with_same_name(merged, step)
    others = merged.pop(OTHERS, None)
    longest = sorted(merged.values(), key=lambda step: step.lasted, reverse=True)
    kept = {step.name: step for step in longest[: MOST_STEPS - 1]}
    for step in (*filter(None, (others,)), *longest[MOST_STEPS - 1 :]):
        _merge_with_same_name(kept, structs.replace(step, name=OTHERS))
    return sorted(kept.values(), key=lambda step: step.began)


def _merge_with_same_name(steps: dict[str, Step], step: Step) -> None:
    known = steps.get(step.name)
    if known is None:
        steps[step.name] = step
    else:
        steps[step.name] = structs.replace(known, began=min(known.began, step.began), lasted=known.lasted + step.lasted)
