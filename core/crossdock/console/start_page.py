"""The start page: one line for each job and tenant, and what needs a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from starlette.responses import Response

from crossdock.console.action_definitions import GENERAL, permitted_action_links
from crossdock.console.page_request_context import PageRequest, page_address, tenant_page_address
from crossdock.console.page_tables import Cell, Link, Table, table
from crossdock.console.remedies_for_jobs_and_records import Remedy, next_step_for_job, remedies
from crossdock.console.tenant_overviews import JobCondition, JobOverview, Overview, sort_worst_first
from crossdock.console.visitors_and_roles import Role
from crossdock.errors import text_with_code
from crossdock.values.texts_of_numbers_and_times import count_with_noun, instant_text

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
        (each for name, found in seen for each in remedies(name, found)),
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
    todo = remedies(name, found)
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
        actions=permitted_action_links(visit, *((name, {}) for name in GENERAL)),
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


def _job_rows(name: str, found: Overview) -> Iterator[tuple[Cell, ...]]:
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
