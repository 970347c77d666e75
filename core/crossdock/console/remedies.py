"""What a person should do next, in a sentence with a link, from what is known of a tenant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from crossdock.console.overviews import JobLine, Light, Overview
from crossdock.console.visits import link
from crossdock.values.display_texts import counted
from crossdock.values.display_times import instant_text
from crossdock.values.state_words import RecordState


@dataclass(frozen=True, slots=True)
class Remedy:
    """What needs a person *since* some time; *address* is the page where it is done."""

    tenant: str
    what: str
    do: str
    address: str
    since: datetime | None


_OPEN = {
    RecordState.REJECTED: ("rejected", "Correct the source or the mapping, then replay them."),
    RecordState.IN_DOUBT: ("in doubt", "Look whether the target has them, then resolve them."),
    RecordState.OVERDUE: (
        "not acknowledged in time",
        "Ask the partner whether it has their files, then resolve them.",
    ),
}
"""What waits for a person. Waiting and pending records, and those of the inbox, go on by themselves."""


def remedies(tenant: str, found: Overview) -> list[Remedy]:
    """Return what needs a person, what has waited longest first."""
    listed = [*_of_jobs(tenant, found), *_of_records(tenant, found)]
    return sorted(listed, key=lambda each: (each.since is None, each.since or found.at))


def next_step(tenant: str, line: JobLine, found: Overview) -> Remedy | None:
    """Return what to do about one job; None if nothing is to be done."""
    if line.light in {Light.FAILED, Light.MISSING}:
        return next(remedy for job, remedy in _job_remedies(tenant, [line]) if job is line)
    if line.light is Light.DEGRADED:
        return next(_of_records(tenant, found), None)
    return None


def _of_jobs(tenant: str, found: Overview) -> Iterator[Remedy]:
    return (remedy for _, remedy in _job_remedies(tenant, found.jobs))


def _job_remedies(tenant: str, lines: Iterable[JobLine]) -> Iterator[tuple[JobLine, Remedy]]:
    for line in lines:
        name = f"Job {line.job}" if line.job else "The last run"
        if line.light is Light.MISSING:
            what = f"{name} for {line.business_date} has not begun; it was due {_time(line.since)}."
            do = "See that 'crossdock schedule' runs, or start the job now."
            yield line, Remedy(tenant, what, do, link(tenant, "settings", "schedule"), line.since)
        elif line.light is Light.FAILED:
            what = f"{name} for {line.business_date} did not end as it should: {_reason(line)}"
            do = line.error.advice if line.error and line.error.advice else "Read its errors, then run it again."
            address = link(tenant, "runs", line.run.id) if line.run else link(tenant, "runs")
            yield line, Remedy(tenant, what, _sentence(do), address, line.since)


def _of_records(tenant: str, found: Overview) -> Iterator[Remedy]:
    if found.held:
        what = f"{counted(found.held, 'change')} beyond a limit {_verb(found.held, 'waits', 'wait')} for a decision."
        do = "Look at them, then approve them, or correct the source."
        yield Remedy(tenant, what, do, link(tenant, "approvals"), found.held_since)
    for each in found.open:
        if each.state in _OPEN:
            words, do = _OPEN[each.state]
            verb = _verb(each.number, "is", "are")
            what = f"{counted(each.number, 'record')} {verb} {words}."
            yield Remedy(tenant, what, do, link(tenant, "records", each.state.option), each.since)


def _reason(line: JobLine) -> str:
    if line.error is not None:
        return _sentence(line.error.message.split("\n")[0])
    return _sentence(line.note or "its end was not recorded")


def _verb(number: int, one: str, several: str) -> str:
    return one if number == 1 else several


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _time(at: datetime | None) -> str:
    return "at an unknown time" if at is None else f"at {instant_text(at)}"
