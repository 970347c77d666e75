"""The page of one record: why it is or is not at its target, and all that happened to it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from crossdock.config.project.project import Project
from crossdock.console.action_definitions import ACTIONS, permitted_action_links, record_action_links
from crossdock.console.error_code_page import explanation_links
from crossdock.console.open_records_pages import parent_record_address
from crossdock.console.page_request_context import PageError, PageRequest, raise_if_too_many_partner_requests
from crossdock.console.page_tables import Cell, Link, table
from crossdock.console.personal_data_access import log_and_permit_personal_data_if_asked
from crossdock.errors import CrossdockError, UnavailableError, text_with_code
from crossdock.runs import open_records, record_history, stream_trial
from crossdock.runs.doubtful_operation_look_ups import open_look_ups_at_target
from crossdock.runs.open_records import Item
from crossdock.runs.record_history import RecordHistory, RecordSearch, value_text
from crossdock.runs.stream_trial import Trial, fetch_and_map_one, map_stored_record
from crossdock.state import RecordFilter, RecordIdentity, Transaction
from crossdock.state.queries.record_history import DeliveredContent
from crossdock.values.run_states_and_tally import RecordState
from crossdock.values.texts_of_numbers_and_times import instant_text, place_text
from crossdock.writing.targets.payload_comparison import PERSONAL

_UNKNOWN_HINT = "It was not read yet, or its key is another one. Search for it on the page of records."
_AWAITED_BY = ("key", "stream", "since")
_AWAITED_BY_LISTED = 50
_MEMBERS = ("member", "value")
_WITHIN_S = 15  # after which no further request is sent to a source
_DECIDED = frozenset({"delivered", "pending"})  # by a person, who may have been wrong


class _StoredData(Struct, frozen=True):
    """What the state has of a record's data: *raw* rows of those that are open, and what the target has accepted."""

    contents: Sequence[DeliveredContent]
    accepted: Mapping[str, Any]
    raw: Sequence[tuple[RecordIdentity, Mapping[str, Any], str]]


def show_record(visit: PageRequest) -> Response:
    """Show the record that the address names by its stream and key, or by target, resource, namespace and key."""
    return _page(visit, _record_parameters(visit))


def show_record_fetched_live(visit: PageRequest) -> Response:
    """Show what the target holds now, or the source of the stream in the parameter ``of``, on the record's page."""
    named, of = _record_parameters(visit), visit.parameter("of")
    if of:
        return _page(visit, named, fetched=_fetch_from_source(visit, of, named["key"]))
    with visit.read_transaction() as tx:
        history = _find_record_history(tx, visit.project(), named)
    binding = _current_binding(history)
    if history.scope is None or binding is None:
        raise PageError(404, "This record is not at a target, which could be asked.")
    with (
        raise_if_too_many_partner_requests(),
        open_look_ups_at_target(visit.project(), visit.console.clock, history.scope.target) as target,
    ):
        held = target.look_up_record(history.scope.resource, binding["target_id"])
    return _page(visit, named, held=held or {})


def _record_parameters(visit: PageRequest) -> dict[str, str]:
    return {name: visit.parameter(name) for name in ("stream", "key", "target", "resource", "namespace")}


def _page(
    visit: PageRequest,
    named: Mapping[str, str],
    *,
    held: Mapping[str, Any] | None = None,
    fetched: Trial | None = None,
) -> Response:
    project, problem = visit.project_or_problem()
    with visit.read_transaction() as tx:
        try:
            history = _find_record_history(tx, project, named)
        except _UnknownError as error:
            return _unknown_but_awaited_record_page(visit, tx, named, error)
        items = open_records.open_states_of_record(tx, history)
        if project is None:
            for row in history.operations:
                row["changed"] = []  # without the config it is not known what is personal
        else:
            record_history.add_changed_members_to_operations(project, tx, history)
        difference = _delivered_and_rejected_value_rows(project, tx, history)
        data = _read_stored_data(tx, history)
    shows_data = log_and_permit_personal_data_if_asked(
        visit, f"record {next(iter(history.streams), '')} {named['key']}"
    )
    personal = frozenset() if shows_data else _personal_members(project, history)
    may_see = visit.may_see_personal_data and project is not None
    version = _chosen_version(visit, data.contents)
    return visit.render_page(
        "record.html",
        f"Record {history.key}",
        history=history,
        owner=record_history.streams_or_namespace_text(history),
        states=[_open_state_template_values(visit, each) for each in items],
        difference=table(("member", "delivered", "now"), difference),
        places=list(record_history.binding_lines(history)),
        missing=[_parent_link(visit, each) for row in history.waits for each in row["waits_for"]],
        events=[_event_template_values(visit, each) for each in record_history.events_of_record(history)],
        problem=problem,
        may_see=may_see,
        versions=table(("since", "operation", "run"), _version_rows(visit, named, data.contents)) if may_see else None,
        day=visit.query.get("day", ""),
        named={name: value for name, value in named.items() if value},
        version=_version_template_values(version, personal) if version is not None and may_see else None,
        shows_data=shows_data,
        data_address=visit.link("record", **named, **_version_and_day_parameters(visit), show="data"),
        hidden_address=visit.link("record", **named, **_version_and_day_parameters(visit)),
        has_data=any(raw for _, raw, _ in data.raw),
        mapped=[_mapped_again_template_values(visit, project, *each) for each in data.raw]
        if shows_data and project
        else [],
        asked_address=visit.link("record", **named),
        may_ask=may_see and _target_can_be_asked(visit, project, history),
        target=history.scope.target if history.scope else "",
        held=None if held is None or not may_see else _compare_accepted_with_held(data.accepted, held, personal),
        sources=[
            (name, visit.link("record", **named, of=name))
            for name in history.streams
            if may_see and project is not None and name in project.streams_fetching_by_key
        ],
        read=None
        if fetched is None or not may_see
        else _fetched_record_template_values(fetched, data.accepted, personal),
        within_s=_WITHIN_S,
        actions=[*_actions(visit, project, history, items)],
    )


def _find_record_history(tx: Transaction, project: Project | None, named: Mapping[str, str]) -> RecordHistory:
    """Return the record that is named. Raises PageError if the state does not know it."""
    search, key = RecordSearch(tx, {} if project is None else project.scope_by_stream), named["key"]
    if not key:
        raise PageError(400, "The address names no key.", "Search for the record on the page of records.")
    if named["stream"]:
        found = search.find_key_in_stream(named["stream"], key)
    else:
        names = {name: named[name] for name in ("target", "resource", "namespace")}
        found = search.find_key_in_scopes(key, **names)
    if not found:
        place = named["stream"] or f"{named['resource']} {named['namespace']}".strip() or "any stream"
        raise _UnknownError(404, f"The state has no record {key} of {place}.", _UNKNOWN_HINT)
    return found[0]


def _unknown_but_awaited_record_page(
    visit: PageRequest, tx: Transaction, named: Mapping[str, str], error: _UnknownError
) -> Response:
    """Show who waits for a record that is not known yet, and whether a webhook has named it; else raise *error*."""
    parent = {name: named[name] for name in ("resource", "namespace", "key")}
    most, groups = _AWAITED_BY_LISTED + 1, tx.waiting_records.counts_by_awaited_records(RecordFilter())
    first = sorted((each for each in groups if parent in each.waits_for), key=lambda each: each.since)[:most]
    lists = [each.waits_for for each in first]  # each of at least one record
    rows = tx.waiting_records.page(RecordFilter(), after=None, limit=most, waits_for=lists)
    hinted = open_records.inbox_items(
        tx.inbox.records_to_fetch(limit=1, choice=RecordFilter(named["stream"], named["key"]))
    )
    if not (rows or hinted):
        raise error
    shown = (
        (Link(row["key"], visit.link("record", stream=row["stream"], key=row["key"])), row["stream"], _since_text(row))
        for row in rows[:_AWAITED_BY_LISTED]
    )
    return visit.render_page(
        "record_unknown.html",
        f"Record {named['key']}",
        key=named["key"],
        message=error.message,
        advice=error.advice,
        hinted=[each["why"] for each in hinted],
        awaited_by=table(_AWAITED_BY, shown),
        are_all=len(rows) <= _AWAITED_BY_LISTED,
        waiting=visit.link("records", RecordState.WAITING.option_value),
    )


def _since_text(row: Mapping[str, Any]) -> str:
    return instant_text(row["since"])


class _UnknownError(PageError):
    """The state has no record of this name."""


def _version_and_day_parameters(visit: PageRequest) -> dict[str, str]:
    return {name: visit.query.get(name, "") for name in ("version", "day")}


def _current_binding(history: RecordHistory) -> dict[str, Any] | None:
    return next((row for row in history.bindings if not row["deleted_at"]), None)


def _personal_members(project: Project | None, history: RecordHistory) -> frozenset[str]:
    if project is None or history.scope is None:
        return frozenset()
    return frozenset().union(
        *(project.personal_data_masks.personal_members(stream, history.scope) for stream in history.streams)
    )


def _open_state_template_values(visit: PageRequest, item: Item) -> dict[str, Any]:
    shown, state = (
        open_records.open_record_item_without_data(item),
        next(each for each in RecordState if each.option_value == item["state"]),
    )
    parts = {
        "member": shown.get("pointer"),
        "read from": shown["at"],
        "since": shown["since"] and instant_text(shown["since"]),
        "attempts": shown.get("attempts"),
    }
    return {
        "state": state,
        "why": shown["why"],
        "meanings": explanation_links(visit, [item.get("code")]),
        "address": visit.link("records", state.option_value, stream=shown["stream"], reason=item.get("code")),
        "facts": [(name, str(value)) for name, value in parts.items() if value is not None],
    }


def _actions(
    visit: PageRequest, project: Project | None, history: RecordHistory, items: Sequence[Item]
) -> Iterator[tuple[str, str]]:
    for item in items:
        yield from record_action_links(visit, item["state"], item["stream"], None, history.key)
    last = history.operations[-1] if history.operations else None
    if last is not None and last["resolved_at"] and last["status"] in _DECIDED:
        yield from permitted_action_links(visit, ("reopen", {"stream": last["stream"], "key": history.key}))
    sync = ACTIONS["sync-record"]
    if project is not None and visit.has_role(sync.role) and not {"%", "|"} & set(history.key):
        for stream in project.streams_fetching_by_key.intersection(history.streams):
            yield sync.title, visit.link("do", sync.name, stream=stream, key=history.key)


def _delivered_and_rejected_value_rows(
    project: Project | None, tx: Transaction, history: RecordHistory
) -> Iterator[tuple[str, str, str]]:
    rows = [each for each in history.dead_letters if each["code"] == "changed_after_delivery"]
    letters = [tx.dead_letters.get(each["stream"], each["key_hash"]) for each in rows]
    found = [
        each
        for letter in letters
        if letter is not None and project is not None
        for each in open_records.difference_from_delivered(project, tx, letter, raw=False)
    ]
    return iter([(each["pointer"], value_text(each["before"]), value_text(each["after"])) for each in found])


def _parent_link(visit: PageRequest, parent: Mapping[str, str]) -> Link:
    resource, namespace, key = parent["resource"], parent["namespace"], parent["key"]
    return Link(f"{resource} {namespace}:{key}", parent_record_address(visit, (resource, namespace, key)))


def _event_template_values(visit: PageRequest, event: record_history.RecordEvent) -> dict[str, Any]:
    source = event.row["source"] if event.is_first or event.status in {"rejected", "dropped"} else ""
    return {
        "at": "not yet" if event.at is None else instant_text(event.at),
        "run": str(event.row["run_id"]),
        "run_address": visit.link("runs", event.row["run_id"]),
        "text": event.text,
        "kind": event.status,
        "changed": list(record_history.changed_lines(event.row)) if event.is_first else [],
        "place": Link(place_text(event.row), visit.link("files", name=source)) if source else None,
    }


# ---- how it looked


def _read_stored_data(tx: Transaction, history: RecordHistory) -> _StoredData:
    raw = list[tuple[RecordIdentity, Mapping[str, Any], str]]()
    for row in history.dead_letters:
        if letter := tx.dead_letters.get(row["stream"], row["key_hash"]):
            raw.append((_identity_of_row(letter), letter["raw"], letter["status"]))
    for row in history.waits:
        waiting = tx.waiting_records.records_among(row["stream"], [row["key_hash"]])
        raw += [(each.identity, each.raw, "waiting") for each in waiting]
    if history.scope is None:
        return _StoredData([], {}, raw)
    contents = tx.record_history.delivered_contents(history.scope, history.key_hash)
    intents = tx.intents.intents_of_record(history.scope, history.key_hash)
    raw += [(each.identity, each.raw, each.status.replace("_", " ")) for each in intents if each.raw]
    accepted = tx.bindings.get(history.scope, [history.key_hash]).get(history.key_hash)
    return _StoredData(contents, accepted.payload if accepted else {}, raw)


def _identity_of_row(row: Mapping[str, Any]) -> RecordIdentity:
    names = ("stream", "key", "key_hash", "record_fp", "position", "source", "line")
    return RecordIdentity(*(row[name] for name in names))


def _chosen_version(visit: PageRequest, contents: Sequence[DeliveredContent]) -> DeliveredContent | None:
    """Return the content of the version in the address, or at the end of the day in it, or else the last one."""
    if day := visit.query.get("day"):
        end = _end_of_day(day)
        return next((each for each in reversed(contents) if each.at < end), None)
    wanted = visit.query.get("version", "")
    named = (each for each in contents if str(each.intent_id) == wanted)
    return next(named, contents[-1] if contents else None)


def _end_of_day(day: str) -> datetime:
    try:
        return datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC) + timedelta(days=1)
    except (ValueError, OverflowError):
        raise PageError(400, f"{day} is no day.", "Write it as 2026-03-01.") from None


def _version_rows(
    visit: PageRequest, named: Mapping[str, str], contents: Sequence[DeliveredContent]
) -> Iterator[Iterator[Cell]]:
    for each in contents:
        address = visit.link("record", **named, version=each.intent_id)
        cells: tuple[Cell, ...] = (
            Link(instant_text(each.at), address),
            each.operation,
            Link(str(each.run_id), visit.link("runs", each.run_id)),
        )
        yield iter(cells)


def _version_template_values(version: DeliveredContent, personal: frozenset[str]) -> dict[str, Any]:
    return {
        "at": instant_text(version.at),
        "run": str(version.run_id),
        "is_deleted": version.after is None,
        "members": table(_MEMBERS, _masked_member_rows(version.after or {}, personal)),
    }


def _masked_member_rows(payload: Mapping[str, Any], personal: frozenset[str]) -> list[tuple[str, str]]:
    shown = {name: PERSONAL if name in personal and value is not None else value for name, value in payload.items()}
    return [(pointer, value_text(value)) for pointer, value in stream_trial.leaf_values(shown) if shown]


def _mapped_again_template_values(
    visit: PageRequest, project: Project, identity: RecordIdentity, raw: Mapping[str, Any], state: str
) -> dict[str, Any]:
    """Return a record's data as it was read, and what the mapping makes of it now."""
    shown: dict[str, Any] = {"state": state, "place": f"{identity.source}:{identity.line}", "problem": ""}
    tried = None
    try:
        tried = map_stored_record(project, identity, dict(raw), clock=visit.console.clock) if raw else None
    except CrossdockError as error:
        shown["problem"] = text_with_code(error)
    if tried is None:
        nothing = "A filter of the stream leaves it out now." if raw else "The state does not have its data any more."
        shown["problem"] = shown["problem"] or nothing
        return shown | {"record": table((), []), "draft": table((), [])}
    made = stream_trial.tried_record_document(tried, frozenset(), raw=True)
    if problem := made["problem"]:
        place = f" at {problem['pointer']}" if problem["pointer"] else ""
        shown["problem"] = f"{problem['code']}{place}: {problem['message']}"
    rows = ((name, value_text(value)) for name, value in made["record"].items())
    draft = ((name, value_text(value)) for name, value in stream_trial.leaf_values(made["draft"] or {}) if name)
    return shown | {"record": table(("column", "value"), rows), "draft": table(_MEMBERS, draft)}


# ---- what the source has and the target holds now


def _fetch_from_source(visit: PageRequest, stream: str, key: str) -> Trial:
    """Read the record from its source. The answer to a request that is under way is awaited as the config says."""
    project = visit.project()
    if stream not in project.streams_fetching_by_key:
        raise PageError(404, f"{stream} cannot read single records from its source.")
    interrupt = threading.Event()
    timer = threading.Timer(_WITHIN_S, interrupt.set)
    timer.start()
    try:
        with raise_if_too_many_partner_requests():
            found = fetch_and_map_one(project, stream, key, clock=visit.console.clock, interrupt=interrupt)
    finally:
        timer.cancel()
    if found.error is not None and interrupt.is_set():
        message = f"the source did not answer within {_WITHIN_S} s"
        found.error = UnavailableError(message, where=stream, hint="try again later", code="api_unavailable")
    return found


def _fetched_record_template_values(
    found: Trial, accepted: Mapping[str, Any], personal: frozenset[str]
) -> dict[str, Any]:
    """Return what the source has, what the mapping makes of it, and beside that what the target *accepted* last."""
    read: dict[str, Any] = {"of": found.bound.name, "problem": "", "record": table((), []), "members": table((), [])}
    if found.error is not None:
        return read | {"problem": text_with_code(found.error)}
    if not found.records:
        left_out = f"The source has it, but {', '.join(found.filtered)} leaves it out." if found.filtered else ""
        return read | {"problem": left_out or "The source has no such record."}
    made = stream_trial.tried_record_document(found.records[-1], personal, raw=False)
    if made["problem"]:
        read["problem"] = f"{made['problem']['code']}: {made['problem']['message']}"
    known, now = (dict(stream_trial.leaf_values(each)) for each in (dict(accepted), made["draft"] or {}))
    rows = (
        (pointer, _masked(pointer, known.get(pointer), personal), value_text(now.get(pointer)))
        for pointer in dict.fromkeys([*known, *now])
        if pointer
    )
    return read | {
        "record": table(("column", "value"), ((name, value_text(value)) for name, value in made["record"].items())),
        "members": table(("member", "delivered", "by the source now"), rows if made["draft"] else ()),
    }


def _target_can_be_asked(visit: PageRequest, project: Project | None, history: RecordHistory) -> bool:
    if project is None or history.scope is None or _current_binding(history) is None:
        return False
    target = project.targets(visit.console.clock).get(history.scope.target)
    kind = None if target is None else target.resources.get(history.scope.resource)
    return kind is not None and kind.endpoint.reads


def _compare_accepted_with_held(
    accepted: Mapping[str, Any], held: Mapping[str, Any], personal: frozenset[str]
) -> dict[str, Any]:
    """Compare the payload that the target *accepted* last with what it holds now."""
    known, now = (
        dict(stream_trial.leaf_values(dict(accepted))),
        dict(stream_trial.leaf_values(dict(held))),
    )
    rows = [
        (pointer, *(_masked(pointer, each, personal) for each in (known.get(pointer), now.get(pointer))), note)
        for pointer in dict.fromkeys([*known, *now])
        if pointer
        for note in ["differs" if pointer in known and known[pointer] != now.get(pointer) else ""]
    ]
    return {"is_there": bool(held), "members": table(("member", "delivered", "held now", ""), rows)}


def _masked(pointer: str, value: Any, personal: frozenset[str]) -> str:
    is_personal = pointer.split("/")[1] in personal and value is not None
    return PERSONAL if is_personal else value_text(value)
