"""What a person should do next, in a sentence with a link, from what is known of a tenant."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from crossdock.console.page_request_context import tenant_page_address
from crossdock.console.tenant_overviews import JobCondition, JobOverview, Overview
from crossdock.errors import add_code_to_first_line
from crossdock.values.run_messages import RunMessage
from crossdock.values.state_words import RecordState
from crossdock.values.texts_of_numbers_and_times import count_with_noun, instant_text


class Remedy(Struct, frozen=True):
    """What needs a person *since* some time; *address* is the page where it is done.

    The *advice* is that of the command that met an error.
    """

    tenant: str
    what: str
    do: str
    address: str
    since: datetime | None
    advice: str = ""


_OPEN = {
    RecordState.REJECTED: ("rejected", "Correct the source or the mapping, then replay what was rejected."),
    RecordState.IN_DOUBT: ("in doubt", "Look whether the target has them, then resolve them."),
}
"""What waits for a person. Waiting and pending records, and those of the inbox, go on by themselves."""
_GO_ON = {
    RecordState.WAITING: "Nothing, unless it takes long: records wait for others, and are delivered after them.",
    RecordState.PENDING: "Nothing: the next run sends what is pending.",
    RecordState.HANDED_OVER: "Nothing: a partner has not acknowledged its file yet, and still has time.",
    RecordState.INBOX: "Nothing: what webhooks have named is fetched by 'crossdock listen' or the next run.",
}
_AGAIN = "then start it again: it continues from what was delivered."
REPAIRS = {
    "config": (f"Correct the config where the error says, {_AGAIN}", ("settings",)),
    "unauthorized": (f"Correct the credentials or permissions that were refused, {_AGAIN}", ("connections",)),
    "unavailable": (f"See whether the other system answers again, {_AGAIN}", ("connections",)),
    "remote": (f"Read what the other system has answered and have it corrected, {_AGAIN}", ()),
    "clock": (f"Set the wrong clock, {_AGAIN}", ()),
    "refused": (f"Correct or allow what was refused, as its error says, {_AGAIN}", ()),
    "state": (f"Make the state usable, as the error says, {_AGAIN}", ()),
    "state_busy": (f"Wait until the process that uses the state has ended, {_AGAIN}", ("runs",)),
    "connector": (f"Have the code of the connector corrected, {_AGAIN}", ()),
    "stopped": ("Start it again when it may go on: it continues from what was delivered.", ()),
    "unrecorded": ("Find out what ended its process, then start it again: it continues from what was delivered.", ()),
    "not_started": ("Start it now if its records are needed before the next run.", ()),
    "internal": (f"Report this defect of crossdock with the log of the run, {_AGAIN}", ()),
}
"""What to do about each kind of error, and the page where; without parts, that of the run."""


def remedies(tenant: str, found: Overview) -> list[Remedy]:
    """Return what needs a person, what has waited longest first."""
    of_jobs = (_job_remedy(tenant, line, found) for line in found.jobs if not _only_waits_for_approval(line, found))
    listed = [*filter(None, of_jobs), *_record_remedies(tenant, found)]
    listed.sort(key=lambda each: (each.since is None, each.since or found.at))
    return [*_config_remedies(tenant, found), *listed]


def next_step_for_job(tenant: str, line: JobOverview, found: Overview) -> Remedy | None:
    """Return what to do about one job; None if nothing is to be done."""
    if _only_waits_for_approval(line, found):
        return next(_approval_remedies(tenant, found), None)
    if line.condition is JobCondition.DEGRADED:
        return next(_record_remedies(tenant, found), None) or _nothing_to_do_remedy(tenant, found)
    if line.condition is JobCondition.NEW:
        do = "Nothing: it begins when it is due, if a scheduler runs."
        return Remedy(tenant, "", do, tenant_page_address(tenant, "settings", "schedule"), None)
    return _job_remedy(tenant, line, found)


def _config_remedies(tenant: str, found: Overview) -> Iterator[Remedy]:
    if found.problem:
        what = f"The config cannot be loaded, so no run can start with it: {found.problem}"
        yield Remedy(
            tenant, what, "Correct the config where the error says.", tenant_page_address(tenant, "settings"), None
        )


def _job_remedy(tenant: str, line: JobOverview, found: Overview) -> Remedy | None:
    name = f"Job {line.job}" if line.job else "The last run"
    if line.condition is JobCondition.MISSING:
        return _missed_run_remedy(tenant, name, line)
    if line.condition is JobCondition.PAUSED:
        what = _with_full_stop(f"{name} is paused: {line.note or 'nothing starts until it is resumed'}")
        do = "Resume it when its runs may start again."
        return Remedy(tenant, what, do, tenant_page_address(tenant, "runs", job=line.job), line.since)
    if line.condition is not JobCondition.FAILED:
        return None
    error = next((each for each in line.errors if not _is_limit_error(each, found)), None) or next(
        iter(line.errors), None
    )
    code = "not_started" if line.run is None else "" if error is None else error.category or error.code or ""
    do, parts = REPAIRS.get(code, (f"Read its errors and correct what they name, {_AGAIN}", ()))
    address = (
        tenant_page_address(tenant, *(parts or ("runs", line.run.id)))
        if line.run
        else tenant_page_address(tenant, "runs", job=line.job)
    )
    what = f"{name} for {line.business_date} did not end as it should: {_failure_sentence(line, error)}"
    return Remedy(
        tenant, what, do, address, line.since, _with_full_stop(error.advice) if error and error.advice else ""
    )


def _missed_run_remedy(tenant: str, name: str, line: JobOverview) -> Remedy:
    assert line.delay is not None
    due = "at an unknown time" if line.since is None else f"at {instant_text(line.since)}"
    what = f"{name} for {line.business_date} has not begun; it was due {due}: {line.delay.text}."
    if line.delay.run is not None:
        address = tenant_page_address(tenant, "runs", line.delay.run.id)
        return Remedy(tenant, what, f"Wait for run {line.delay.run.id}, or stop it.", address, line.since)
    if line.delay.job:
        do = f"See why {line.delay.job} has not ended."
        return Remedy(tenant, what, do, tenant_page_address(tenant, "runs", job=line.delay.job), line.since)
    do = "Start the job now, and see that 'crossdock schedule' runs."
    return Remedy(tenant, what, do, tenant_page_address(tenant, "do", "start-job", job=line.job), line.since)


def _record_remedies(tenant: str, found: Overview) -> Iterator[Remedy]:
    yield from _approval_remedies(tenant, found)
    for file, is_marked in found.overdue_files:
        records, due = count_with_noun(file.records, "record"), instant_text(file.due_at)
        what = f"{file.target} has not acknowledged {file.name} with {records}, which was due by {due}."
        do = "Ask the partner whether it has the file, then resolve the records."
        if not is_marked:
            do = "Ask the partner whether it has the file; after the next run the records can be resolved."
        state = RecordState.OVERDUE if is_marked else RecordState.HANDED_OVER
        batch = None if is_marked else file.name  # a list of one file has no action, because no command takes a file
        address = tenant_page_address(tenant, "records", state.option_value, stream=file.stream, batch=batch)
        yield Remedy(tenant, what, do, address, file.due_at)
    for each in found.open:
        if each.state in _OPEN:
            words, do = _OPEN[each.state]
            verb = _singular_or_plural_verb(each.number, "is", "are")
            what = f"{count_with_noun(each.number, 'record')} {verb} {words}."
            yield Remedy(tenant, what, do, tenant_page_address(tenant, "records", each.state.option_value), each.since)


def _approval_remedies(tenant: str, found: Overview) -> Iterator[Remedy]:
    if found.held:
        verb = _singular_or_plural_verb(found.held, "waits", "wait")
        what = (
            f"{count_with_noun(found.held, 'change')} of {', '.join(sorted(found.held_streams))} beyond a limit {verb}"
        )
        do = "Look at them, then approve them, or correct the source."
        yield Remedy(tenant, f"{what} for a decision.", do, tenant_page_address(tenant, "approvals"), found.held_since)
    elif found.approved:
        do = "Start it again to make the changes that were approved, or wait for the next run."
        yield Remedy(tenant, "Approved changes are not made yet.", do, tenant_page_address(tenant, "approvals"), None)


def _nothing_to_do_remedy(tenant: str, found: Overview) -> Remedy:
    for each in found.open:
        if each.state in _GO_ON:
            return Remedy(
                tenant,
                "",
                _GO_ON[each.state],
                tenant_page_address(tenant, "records", each.state.option_value),
                each.since,
            )
    return Remedy(tenant, "", "Nothing: what was open was settled since.", tenant_page_address(tenant, "records"), None)


def _only_waits_for_approval(line: JobOverview, found: Overview) -> bool:
    errors = line.errors
    return (
        line.condition is JobCondition.FAILED and bool(errors) and all(_is_limit_error(each, found) for each in errors)
    )


def _is_limit_error(error: RunMessage, found: Overview) -> bool:
    return (error.category or error.code) == "refused" and error.stream in found.held_streams | found.approved


def _failure_sentence(line: JobOverview, error: RunMessage | None) -> str:
    if error is not None:
        first = error.message.split("\n")[0]
        text = f"{error.place}: {first}" if error.place else first
        return add_code_to_first_line(text, error.code) if error.code else _with_full_stop(text)
    return _with_full_stop(line.note or "its end was not recorded")


def _singular_or_plural_verb(number: int, one: str, several: str) -> str:
    return one if number == 1 else several


def _with_full_stop(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."
