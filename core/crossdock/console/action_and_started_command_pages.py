"""The pages of actions: what one will do, its confirmation, and what people have started."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import sha256

from starlette.responses import Response

from crossdock.console.action_definitions import (
    ACTIONS,
    ACTIONS_ON_ALL_STREAMS,
    Action,
    Fields,
    Preview,
    permitted_action_links,
)
from crossdock.console.audit_log_page import subject_cell
from crossdock.console.error_code_page import error_codes_in, explanation_links
from crossdock.console.page_request_context import PageError, PageRequest
from crossdock.console.page_tables import Link, table
from crossdock.console.started_commands import WAITS_S, AlreadyStartedError, CommandSubject, StartedCommand
from crossdock.printable import is_storable
from crossdock.state import AuditFilter
from crossdock.values.acting_person_and_process import Actor
from crossdock.values.serving.cross_site_protection import SubmittedFields as FormFields
from crossdock.values.texts_of_numbers_and_times import instant_text

_COLUMNS = ("started", "what", "by", "reason", "result")
_LISTED = 100
_SOON = timedelta(hours=1)  # in which a command that was started makes its entry in the audit log
_CHANGED = "It has changed since it was shown, or somebody else was faster. Look again."
_NEXT_STEP_BY_EXIT_CODE = {
    0: ("It is done, and nothing of it is left to do.", ""),
    1: ("Look at what is open, and decide about it.", "records"),
    2: ("Correct the config, or what was entered, as the message says, then start it again.", "settings"),
    3: ("See what cannot be reached or used, as the message says, then start it again: it continues.", ""),
    4: ("Decide about what was refused, as the message says: nothing of that was done.", ""),
    70: ("Report this defect of crossdock, with what it has printed.", "runs"),
    130: ("Start it again when it may go on: it continues from what was delivered.", ""),
}
"""What to do after each exit code, and the page where; without a page, on the start page."""
_NEXT_STEP_BY_COMMAND = {
    "approve": "Start the job or a sync: it makes exactly these changes. Otherwise the next run does.",
    "records resolve": "What was not delivered is sent by the next run; nothing else is left to do.",
    "records reopen": "Decide about the record again.",
    "records drop": "Nothing: a new version from the source is processed as usual.",
    "jobs pause": "Resume the job when its runs may start again.",
    "jobs resume": "Nothing: it begins when it is due, if a scheduler runs.",
    "stop": "Wait until the run has settled what it has sent. The next run continues.",
    "migrate pause": "Resume the migration when its load may go on.",
}
"""What to do after a command has done its work, by how its arguments begin."""
_REFUSED = 4
_MEANINGS = {
    0: "done",
    1: "done, but records are open, or there are differences",
    2: "refused: wrong use or config",
    3: "could not run or finish",
    4: "refused for safety",
    70: "a defect, or the tally does not balance",
    130: "stopped",
}


def show_preview(visit: PageRequest) -> Response:
    """Show what an action will do, with the form that does it."""
    action = _permitted_action(visit)
    given = _subject_fields_in_address(action, visit.query)
    return _preview_page(visit, action, given, action.preview(visit, given))


def start_action(visit: PageRequest) -> Response:
    """Start an action if it would still do what was shown."""
    form, action = _submitted_form(visit), _permitted_action(visit)
    given, commands = _subject_fields_in_address(action, visit.query), visit.started_commands()
    found = action.preview(visit, given)
    if found.obstacle or _preview_digest(visit, action, given, found) != form.first_or_empty("shown"):
        last = commands.last_id_about(_identity_of_action(action, given))
        first = commands.get(last) if last != form.first_or_empty("last") else None
        warning = _already_started_text(first) if first else "" if found.obstacle else _CHANGED
        return _preview_page(visit, action, given, found, warning, first, http_status=409)
    entered = {each.name: form.first_or_empty(each.name) for each in action.inputs}
    for each in action.inputs:
        if not (each.is_valid_input(entered[each.name]) and is_storable(entered[each.name])):
            return _preview_page(
                visit, action, given, found, f"{each.label}: choose or enter something.", http_status=400
            )
    fields = given | {name: text for name, text in entered.items() if text}
    if "plan" in fields:
        fields["plan_file"] = str(commands.plan_path(fields["plan"]))
    commands.remove_old(visit.now)
    try:
        started = commands.start(
            visit.required_tenant.files,
            action.command(fields),
            about=_identity_of_action(action, given),
            last=form.first_or_empty("last"),
            title=_action_title(action, given),
            who=Actor(visit.person.name, visit.address, form.first_or_empty("why")[:500]),
            at=visit.now,
        )
    except AlreadyStartedError as error:
        warning = _already_started_text(error.command)
        return _preview_page(visit, action, given, found, warning, error.command, http_status=409)
    return visit.redirect(visit.link("commands", started.id))


def show_started_commands(visit: PageRequest) -> Response:
    found = [each for each, _ in zip(visit.started_commands().listed(), range(_LISTED), strict=False)]
    rows = (
        (
            Link(_formatted_time(each.started_at), visit.link("commands", each.id)),
            each.title,
            each.person,
            each.reason,
            command_result_text(each),
        )
        for each in found
    )
    return visit.render_page(
        "commands.html",
        "Started commands",
        commands=table(_COLUMNS, rows),
        actions=permitted_action_links(visit, *((name, {}) for name in ACTIONS_ON_ALL_STREAMS)),
    )


def show_started_command(visit: PageRequest) -> Response:
    """Show what a command has printed so far. While it runs, the browser loads the page again."""
    commands = visit.started_commands()
    command = commands.get(visit.path_params["command"])
    if command is None:
        raise PageError(404, "There is no such command.", "Commands are kept for 90 days.")
    printed = commands.output(command.id)
    return visit.render_page(
        "command.html",
        command.title,
        next_step=_next_step(visit, command),
        subject=_changed_subject_link(visit, command),
        refreshes=3 if command.is_running else 0,
        command=command,
        started=_formatted_time(command.started_at),
        result=command_result_text(command),
        output=printed,
        explained=explanation_links(visit, error_codes_in(printed)),
        can_apply=command.has_plan and command.exit_code in {0, 1} and visit.has_role(ACTIONS["apply"].role),
        apply=visit.link("do", "apply", plan=command.id),
    )


def _next_step(visit: PageRequest, command: StartedCommand) -> Link | None:
    if command.exit_code is None:
        return None
    if command.has_plan and command.exit_code in {0, 1}:
        return Link("Read the plan, then execute it, or leave it: nothing is changed yet.", "")
    do, page = _NEXT_STEP_BY_EXIT_CODE.get(command.exit_code, ("Read what it has printed.", ""))
    if command.exit_code == _REFUSED:
        with visit.read_transaction() as tx:
            page = "approvals" if any(each.approved_at is None for each in tx.pending_approvals.listed()) else ""
    if command.exit_code == 0:
        words = f"{' '.join(command.arguments)} "
        do = next((text for begin, text in _NEXT_STEP_BY_COMMAND.items() if words.startswith(f"{begin} ")), do)
    return Link(do, visit.link(*filter(None, [page])))


def _changed_subject_link(visit: PageRequest, command: StartedCommand) -> Link | None:
    """Return a link to what the command has changed, such as its run, as the audit log has it."""
    since = datetime.fromisoformat(command.started_at)
    choice = AuditFilter(command.person, since=since, until=since + _SOON)
    with visit.read_transaction() as tx:
        found = tx.audit_log.listed(choice, limit=_LISTED)
    words = "apply " if "--execute" in command.arguments else f"{' '.join(command.arguments)} "
    subject = next((each.subject for each in reversed(found) if words.startswith(f"{each.action} ")), None)
    cell = "" if subject is None else subject_cell(visit, subject)
    return cell if isinstance(cell, Link) else None


def command_result_text(command: StartedCommand) -> str:
    if command.is_running:
        return "running"
    if command.exit_code is None:
        return "its process was ended before its result was kept; the state shows what it has done"
    return f"{_MEANINGS.get(command.exit_code, 'ended')} (exit code {command.exit_code})"


def _permitted_action(visit: PageRequest) -> Action:
    action = ACTIONS.get(visit.path_params["action"])
    if action is None:
        raise PageError(404, f"There is no action {visit.path_params['action']}.")
    if not visit.has_role(action.role):
        raise PageError(403, f"{visit.person.name} may not do this: it needs the role {action.role.display_name}.")
    return action


def _subject_fields_in_address(action: Action, values: Mapping[str, str]) -> dict[str, str]:
    given = {name: values[name] for name in action.fields if values.get(name)}
    for name in action.required:
        if name not in given:
            raise PageError(400, f"The address does not say which {name} is meant.")
    return given


def _identity_of_action(action: Action, given: Fields) -> CommandSubject:
    return (action.name, *(f"{name}={text}" for name, text in given.items()))


def _preview_digest(visit: PageRequest, action: Action, given: Fields, found: Preview) -> str:
    """Tell whether two previews are the same: of the same, with the same config."""
    seen = [_identity_of_action(action, given), list(found.lines), visit.required_tenant.config_files_stamp()]
    return sha256(json.dumps(seen).encode()).hexdigest()[:32]


def _submitted_form(visit: PageRequest) -> FormFields:
    assert visit.form is not None
    return visit.form


def _preview_page(
    visit: PageRequest,
    action: Action,
    given: Fields,
    found: Preview,
    warning: str = "",
    first: StartedCommand | None = None,
    *,
    http_status: int = 200,
) -> Response:
    """Return the page of *action*, with the command that somebody has started *first*."""
    return visit.render_page(
        "action.html",
        action.title,
        http_status=http_status,
        action=action,
        address=visit.link("do", action.name, **given),
        digest=_preview_digest(visit, action, given, found),
        last="" if found.obstacle else visit.started_commands().last_id_about(_identity_of_action(action, given)),
        title=_action_title(action, given),
        found=found,
        running="" if found.obstacle or not action.needs_state else _running_run_notice(visit),
        warning=warning,
        result="" if first is None else visit.link("commands", first.id),
    )


def _running_run_notice(visit: PageRequest) -> str:
    with visit.read_transaction() as tx:
        active = tx.runs.listed(limit=1, status="running")
    return "".join(
        f"Run {run.id} is in progress since {instant_text(run.started_at)}. This action waits at most {WAITS_S} s for"
        " its end, and does nothing if the run goes on."
        for run in active
    )


def _action_title(action: Action, given: Fields) -> str:
    about = " ".join(text for name, text in given.items() if name != "plan")
    return f"{action.title}: {about}" if about else action.title


def _already_started_text(command: StartedCommand | None) -> str:
    if command is None:
        return "The same command is being started by somebody else."
    now = "it is running" if command.is_running else "it has ended"
    return f"{command.person} has started the same at {_formatted_time(command.started_at)}, and {now}."


def _formatted_time(text: str) -> str:
    return instant_text(datetime.fromisoformat(text))
