"""The start page: one line for each job and tenant, and what needs a person, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct
from starlette.responses import Response

from crossdock.console.action_definitions import ACTIONS_ON_ALL_STREAMS, permitted_action_links
from crossdock.console.page_request_context import PageRequest, page_address, tenant_page_address
from crossdock.console.page_tables import Cell, Link, Table, table
from crossdock.console.tenant_overviews import JobCondition, JobOverview, TenantOverview, sort_worst_first
from crossdock.console.visitors_and_roles import Role
from crossdock.errors import add_code_to_first_line, text_with_code
from crossdock.values.run_progress_and_messages import RunMessage
from crossdock.values.run_states_and_tally import RecordState
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
REMEDY_BY_ERROR_CATEGORY = {
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


def remedies_of_tenant(tenant: str, found: TenantOverview) -> list[Remedy]:
    """Return what needs a person, what has waited longest first."""
    of_jobs = (_job_remedy(tenant, line, found) for line in found.jobs if not _only_waits_for_approval(line, found))
    listed = [*filter(None, of_jobs), *_record_remedies(tenant, found)]
    listed.sort(key=lambda each: (each.since is None, each.since or found.at))
    return [*_config_remedies(tenant, found), *listed]


def next_step_for_job(tenant: str, line: JobOverview, found: TenantOverview) -> Remedy | None:
    """Return what to do about one job; None if nothing is to be done."""
    if _only_waits_for_approval(line, found):
        return next(_approval_remedies(tenant, found), None)
    if line.condition is JobCondition.DEGRADED:
        return next(_record_remedies(tenant, found), None) or _nothing_to_do_remedy(tenant, found)
    if line.condition is JobCondition.NEW:
        do = "Nothing: it begins when it is due, if a scheduler runs."
        return Remedy(tenant, "", do, tenant_page_address(tenant, "settings", "schedule"), None)
    return _job_remedy(tenant, line, found)


def _config_remedies(tenant: str, found: TenantOverview) -> Iterator[Remedy]:
    if found.problem:
        what = f"The config cannot be loaded, so no run can start with it: {found.problem}"
        yield Remedy(
            tenant, what, "Correct the config where the error says.", tenant_page_address(tenant, "settings"), None
        )


def _job_remedy(tenant: str, line: JobOverview, found: TenantOverview) -> Remedy | None:
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
    do, parts = REMEDY_BY_ERROR_CATEGORY.get(code, (f"Read its errors and correct what they name, {_AGAIN}", ()))
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


def _record_remedies(tenant: str, found: TenantOverview) -> Iterator[Remedy]:
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


def _approval_remedies(tenant: str, found: TenantOverview) -> Iterator[Remedy]:
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


def _nothing_to_do_remedy(tenant: str, found: TenantOverview) -> Remedy:
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


def _only_waits_for_approval(line: JobOverview, found: TenantOverview) -> bool:
    errors = line.errors
    return (
        line.condition is JobCondition.FAILED and bool(errors) and all(_is_limit_error(each, found) for each in errors)
    )


def _is_limit_error(error: RunMessage, found: TenantOverview) -> bool:
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


_COLUMNS = ("job", "status", "business date", "since", "open", "next due", "what to do")
_REMEDIES = ("since", "what", "what to do")
_TENANTS_SHOWN = 100
_REMEDIES_SHOWN = 50
_RENEWED_S = 30
_LABELS = {"start-job": "Start now", "stop-run": "Stop", "pause-job": "Pause", "resume-job": "Resume"}


def show_all_tenants(visit: PageRequest) -> Response:
    """Show all tenants that the person may see; of a single one, its own page."""
    console = visit.console
    if not console.tenants.of_fleet:
        (only,) = console.tenants.all()
        return visit.redirect(tenant_page_address(only.name))
    known = console.overviews.latest_with_background_refresh()
    seen = [(name, found) for name, found in known.found.items() if visit.person.role_at_tenant(name)]
    errors = [
        (name, text_with_code(error)) for name, error in known.errors.items() if visit.person.role_at_tenant(name)
    ]
    wanted = visit.query.get("show", "")
    shown = [(name, found) for name, found in sort_worst_first(seen) if not wanted or found.condition == wanted]
    todo = sorted(
        (each for name, found in seen for each in remedies_of_tenant(name, found)),
        key=lambda each: (each.since is None, each.since or visit.now),
    )
    page = _page_number(visit.query.get("page"))
    part = shown[(page - 1) * _TENANTS_SHOWN : page * _TENANTS_SHOWN]
    unread = sum(visit.person.role_at_tenant(name) is not None for name in known.unread)
    return visit.render_page(
        "today.html",
        "Today",
        refreshes=2 if unread else _RENEWED_S,
        tenants=count_with_noun(len(seen) + len(errors) + unread, "tenant"),
        counts=[
            (condition, sum(found.condition is condition for _, found in seen))
            for condition in JobCondition
            if any(found.condition is condition for _, found in seen)
        ],
        wanted=wanted,
        errors=errors,
        unread=unread,
        jobs=table(
            ("tenant", *_COLUMNS),
            (
                (Link(name, tenant_page_address(name)), *cells)
                for name, found in part
                for cells in _job_rows(name, found)
            ),
        ),
        todo=_remedies_table(todo, with_tenant=True),
        more_todo=max(len(todo) - _REMEDIES_SHOWN, 0),
        pages=_previous_and_next_links(page, len(shown), wanted),
        at=instant_text(min((found.at for _, found in seen), default=visit.now)),
    )


def show_tenant(visit: PageRequest) -> Response:
    name, found = visit.required_tenant.name, visit.console.overviews.read_tenant(visit.required_tenant)
    todo = remedies_of_tenant(name, found)
    return visit.render_page(
        "today.html",
        name,
        refreshes=_RENEWED_S,
        tenants="",
        counts=[],
        wanted="",
        errors=[],
        unread=0,
        jobs=table(
            (*_COLUMNS, "actions") if visit.has_role(Role.OPERATOR) else _COLUMNS,
            (
                (*cells, _action_links(visit, line)) if visit.has_role(Role.OPERATOR) else cells
                for line, cells in zip(found.jobs, _job_rows(name, found), strict=bool(found.jobs))
            ),
        ),
        actions=permitted_action_links(visit, *((name, {}) for name in ACTIONS_ON_ALL_STREAMS)),
        open=[
            (
                each.state.display_text,
                each.state.meaning,
                tenant_page_address(name, "records", each.state.option_value),
                f"{each.number:,}",
            )
            for each in found.open
        ],
        todo=_remedies_table(todo, with_tenant=False),
        more_todo=max(len(todo) - _REMEDIES_SHOWN, 0),
        pages=[],
        at=instant_text(found.at),
    )


def _job_rows(name: str, found: TenantOverview) -> Iterator[tuple[Cell, ...]]:
    if not found.jobs:
        yield (Link("no job and no run yet", tenant_page_address(name)), JobCondition.NEW.value, "", "", "", "", "")
    for number, line in enumerate(found.jobs):
        step = next_step_for_job(name, line, found)
        total = sum(each.number for each in found.open)
        yield (
            Link(_job_label(line), tenant_page_address(name, "runs", job=line.job)),
            _status_cell(name, line),
            line.business_date,
            "" if line.since is None else instant_text(line.since),
            Link(f"{total:,}", tenant_page_address(name, "records")) if number == 0 and total else "",
            "" if line.next_due is None else instant_text(line.next_due),
            line.progress or "has begun"
            if line.condition is JobCondition.RUNNING
            else Link(step.do, step.address)
            if step
            else "",
        )


def _job_label(line: JobOverview) -> str:
    """Return the name of the job, which may be one that is not in the config."""
    return line.job or (line.run and line.run.job) or "started by hand"


def _action_links(visit: PageRequest, line: JobOverview) -> Sequence[Link]:
    wanted = list[tuple[str, dict[str, str]]]()
    if line.condition is JobCondition.RUNNING and line.run is not None:
        wanted.append(("stop-run", {"run": str(line.run.id)}))
    elif line.job:
        wanted.append(("start-job", {"job": line.job}))
    if line.job:
        wanted.append(("resume-job" if line.is_paused else "pause-job", {"job": line.job}))
    names = [name for name, _ in wanted]
    return [
        Link(_LABELS[name], address)
        for name, (_, address) in zip(names, permitted_action_links(visit, *wanted), strict=True)
    ]


def _status_cell(name: str, line: JobOverview) -> Cell:
    if line.run is None:
        return line.condition.value
    return Link(line.condition.value, tenant_page_address(name, "runs", line.run.id), kind=line.condition.value)


def _remedies_table(found: Sequence[Remedy], *, with_tenant: bool) -> Table:
    columns = ("tenant", *_REMEDIES) if with_tenant else _REMEDIES
    rows = (
        (
            *((Link(each.tenant, tenant_page_address(each.tenant)),) if with_tenant else ()),
            "" if each.since is None else instant_text(each.since),
            [each.what, each.advice] if each.advice else each.what,
            Link(each.do, each.address),
        )
        for each in found[:_REMEDIES_SHOWN]
    )
    return table(columns, rows)


def _page_number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and 0 < int(text) < 1_000_000 else 1


def _previous_and_next_links(page: int, number: int, wanted: str) -> list[tuple[str, str]]:
    return [
        *([("Previous", page_address(page=page - 1, show=wanted))] if page > 1 else []),
        *([("Next", page_address(page=page + 1, show=wanted))] if page * _TENANTS_SHOWN < number else []),
    ]
