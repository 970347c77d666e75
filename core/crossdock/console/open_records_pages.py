"""The pages of open records: how many there are in each state, a search, and the list of one state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, time
from typing import Any

from msgspec import structs
from starlette.responses import Response

from crossdock.config.project.project import Project
from crossdock.console.action_definitions import record_action_links
from crossdock.console.error_code_page import explanation_links
from crossdock.console.page_request_context import PageError, PageRequest, parse_business_date
from crossdock.console.page_tables import Cell, Link, Table, table
from crossdock.runs import open_records, record_history
from crossdock.runs.open_records import (
    Item,
    OpenRecordGroup,
    ParentRecord,
    WaitingGroup,
    group_waiting_records_by_root_cause,
)
from crossdock.runs.record_history import RecordHistory, RecordSearch
from crossdock.state import RecordFilter, Transaction
from crossdock.values.run_states_and_tally import BY_URGENCY, RecordState
from crossdock.values.texts_of_numbers_and_times import instant_text

_LISTED = 50
_COLUMNS = ("key", "stream", "why", "member", "read from", "since", "attempts")
_STATES = {state.option_value: state for state in RecordState}


def show_counts_or_search(visit: PageRequest) -> Response:
    """Show how many records are open in each state, or what a search has found."""
    wanted, in_messages = visit.parameter("q"), visit.query.get("in") == "messages"
    project, problem = visit.project_or_problem()
    scopes = {} if project is None else project.scope_by_stream
    found, first_line, elsewhere, files = list[RecordHistory](), None, list[tuple[str, Table]](), 0
    with visit.read_transaction() as tx:
        if not wanted:
            counts = _read_state_counts_table(visit, tx, RecordFilter(), project)
            return _render_counts_or_search(visit, counts=counts, problem=problem)
        if not in_messages:
            found, first_line = RecordSearch(tx, scopes).find(wanted)
        if len(found) == 1 and first_line is None:
            return visit.redirect(record_address(visit, found[0]))
        if not found:
            listed = [
                (title, _read_state_counts_table(visit, tx, choice, project))
                for title, choice in _source_batch_and_message_filters(wanted)
            ]
            named = open_records.record_filter_from_options(None, wanted, None, None)
            if not in_messages and (
                number := tx.inbox.count_records_to_fetch(named)
            ):  # a record of the inbox has no history yet
                inbox = {RecordState.INBOX.option_value: number}
                listed.insert(0, (f"With the key {wanted}", _state_counts_table(visit, inbox, named)))
            elsewhere = [(title, counts) for title, counts in listed if counts.rows]
            files = len(tx.intake.search(wanted, before=None, limit=1))
    if files and not elsewhere:
        return visit.redirect(visit.link("files", name=wanted))
    return _render_counts_or_search(
        visit,
        problem=problem,
        wanted=wanted,
        found=table(("record", "of", "resource", "state"), (_search_result_row(visit, each) for each in found)),
        nearest="" if first_line is None else f"Nearest known record, which begins on line {first_line:,}:",
        elsewhere=elsewhere,
        files=visit.link("files", name=wanted) if files else "",
        messages=visit.link("records", q=wanted, **{"in": "messages"}) if found else "",
    )


def _render_counts_or_search(visit: PageRequest, **values: Any) -> Response:
    nothing: Mapping[str, Any] = {
        "counts": table((), []), "wanted": "", "found": table((), []), "nearest": "", "elsewhere": [], "files": "",
        "messages": "",
    }  # fmt: skip
    return visit.render_page("records.html", f"Records of {visit.required_tenant.name}", **{**nothing, **values})


def _source_batch_and_message_filters(wanted: str) -> Iterator[tuple[str, RecordFilter]]:
    yield f"Read from {wanted}", RecordFilter(source=wanted)
    yield f"Handed over in {wanted}", RecordFilter(handed_over_in=wanted)
    yield f"With “{wanted}” in the message", RecordFilter(text=wanted)


def _read_state_counts_table(
    visit: PageRequest, tx: Transaction, choice: RecordFilter, project: Project | None
) -> Table:
    """Return the number of records of *choice* in each state; all states without a choice, else those with records."""
    scopes = {} if project is None else open_records.stream_by_unverified_scope(project, choice)
    return _state_counts_table(visit, open_records.counts_by_state(tx, choice, scopes), choice)


def _state_counts_table(visit: PageRequest, numbers: Mapping[str, int], choice: RecordFilter) -> Table:
    narrowed = {
        "key": choice.key, "file": choice.source, "batch": choice.handed_over_in, "text": choice.text,
    }  # fmt: skip
    rows = (
        (Link(state.display_text, address), Link(f"{number:,}", address), state.meaning)
        for state in BY_URGENCY
        for number, address in [
            (numbers.get(state.option_value, 0), visit.link("records", state.option_value, **narrowed))
        ]
        if number or choice == RecordFilter()
    )
    return table(("state", "records", "what it means"), rows, kind="counts")


def _search_result_row(visit: PageRequest, history: RecordHistory) -> Iterator[Cell]:
    yield Link(history.key or "(no key)", record_address(visit, history))
    yield record_history.streams_or_namespace_text(history)
    yield history.scope.resource if history.scope else ""
    yield ", ".join(
        dict.fromkeys(each.status.replace("_", " ") for each in record_history.events_of_record(history) if each.status)
    )


# ---- one state


def show_records_in_state(visit: PageRequest) -> Response:
    """Show the records in one state, grouped by what they have in common."""
    state = _STATES.get(visit.path_params["state"])
    if state is None:
        raise PageError(
            404, f"There is no state {visit.path_params['state']}.", "The page of records has a link to each."
        )
    kind, choice, name = state.option_value, record_filter_from_query(visit), visit.parameter("group")
    by_source, after = visit.query.get("by") == "file", visit.parameter("after")
    project, problem = visit.project_or_problem()
    streams = {} if project is None else project.scope_by_stream
    scopes = {} if project is None else open_records.stream_by_unverified_scope(project, choice)
    with visit.read_transaction() as tx:
        group = open_records.find_waiting_group_by_name(tx, streams, name) if name else None
        if name and group is None:
            raise PageError(404, "No records wait for this any more.", "The list of what waits shows the others.")
        page = open_records.page_of_open_records(tx, kind, choice, scopes, after=after, limit=_LISTED, group=group)
        groups, waiting = list[OpenRecordGroup](), list[WaitingGroup]()
        if (choice.key, choice.text, group) == (None, None, None):  # a text is looked for only until a page is full
            waiting = group_waiting_records_by_root_cause(tx, streams, choice) if state is RecordState.WAITING else []
            groups = open_records.group_open_records(tx, kind, choice, scopes, waiting, by_source=by_source)
        if group is not None:
            total = f"{group.number:,}"
        elif 0 < len(groups) < open_records.MOST_GROUPS:
            total = f"{sum(each.number for each in groups):,}"
        elif not after and not page.after:
            total = f"{len(page.items):,}"
        else:
            total = "Many" if choice.text else f"{open_records.count_records_in_state(tx, kind, choice, scopes):,}"
        unreadable = open_records.unreadable_webhook_items(tx, _LISTED) if state is RecordState.INBOX else []
    narrowed = {name: value for name, value in visit.query.items() if name in _PARAMETERS and value}
    return visit.render_page(
        "record_list.html",
        f"Records of {visit.required_tenant.name}: {state.display_text}",
        state=state,
        problem=problem if state is RecordState.UNVERIFIED or visit.query.get("group") else "",
        total=total,
        filters=_filter_fields(state, narrowed),
        narrowed=narrowed,
        groups=[_group_template_values(visit, kind, each, narrowed) for each in groups],
        are_all_groups=len(groups) < open_records.MOST_GROUPS,
        by_file="" if by_source or not choice.code else visit.link("records", kind, **narrowed, by="file"),
        actions=[] if name or choice.text or choice.since or choice.handed_over_in else _actions(visit, kind, choice),
        records=table(_COLUMNS, (_row(visit, each) for each in page.items), kind="records"),
        unreadable=table(_COLUMNS, (_row(visit, each) for each in unreadable)),
        first=visit.link("records", kind, **narrowed) if after else "",
        following=visit.link("records", kind, **narrowed, after=page.after) if page.after else "",
    )


_PARAMETERS = ("stream", "reason", "key", "file", "since", "batch", "text", "group")


def _filter_fields(state: RecordState, narrowed: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return the label, parameter and value of each field that narrows the list."""
    fields = [("Stream", "stream"), ("Key", "key")]
    none = RecordFilter()
    if open_records.may_state_match(structs.replace(none, code="bad_value"), state.option_value):
        fields += [("Reason", "reason"), ("Rejected since", "since")]
    if open_records.may_state_match(structs.replace(none, source="f"), state.option_value):
        fields.append(("File", "file"))
    if open_records.may_state_match(structs.replace(none, handed_over_in="f"), state.option_value):
        fields.append(("Handed over in", "batch"))
    if open_records.may_state_match(structs.replace(none, text="t"), state.option_value):
        fields.append(("Text of the message", "text"))
    return [(label, name, narrowed.get(name, "")) for label, name in fields]


def _actions(visit: PageRequest, kind: str, choice: RecordFilter) -> Sequence[tuple[str, str]]:
    return record_action_links(visit, kind, choice.stream, choice.code, choice.key, choice.source)


def _group_template_values(
    visit: PageRequest, kind: str, group: OpenRecordGroup, narrowed: Mapping[str, str]
) -> dict[str, Any]:
    parameters = {**narrowed, **group.choice}
    chosen = RecordFilter(parameters["stream"], code=parameters.get("reason"), source=parameters.get("file"))
    return {
        "stream": group.stream,
        "reason": group.reason,
        "meanings": explanation_links(visit, [group.choice.get("reason")]),
        "file": group.choice.get("file", ""),
        "number": f"{group.number:,}",
        "address": visit.link("records", kind, **parameters),
        "since": "" if group.since is None else instant_text(group.since),
        "run": "" if group.first_run is None else visit.link("runs", group.first_run),
        "example": group.example,
        "missing": [(_parent_text(each), parent_record_address(visit, each)) for each in group.waits_for[:3]],
        "actions": [] if {"group", "batch", "text", "since"} & set(parameters) else _actions(visit, kind, chosen),
    }


def _row(visit: PageRequest, item: Item) -> Iterator[Cell]:
    shown = open_records.open_record_item_without_data(item)
    address = visit.link("record", stream=shown["stream"], key=shown["key"])
    yield Link(shown["key"], address) if shown["key"] else "(no key)"
    yield shown["stream"]
    yield shown["why"]
    yield shown.get("pointer", "")
    yield shown["at"]
    yield "" if shown["since"] is None else instant_text(shown["since"])
    yield str(shown.get("attempts", ""))


# ---- what these pages share


def record_address(visit: PageRequest, history: RecordHistory) -> str:
    if history.streams or history.scope is None:
        return visit.link("record", stream=history.streams[0] if history.streams else "", key=history.key)
    return visit.link("record", **history.scope.columns, key=history.key)


def parent_record_address(visit: PageRequest, parent: ParentRecord) -> str:
    """Return the address of a record that others refer to."""
    resource, namespace, key = parent
    return visit.link("record", resource=resource, namespace=namespace, key=key)


def _parent_text(parent: ParentRecord) -> str:
    resource, namespace, key = parent
    return f"{resource} {namespace}:{key}"


def record_filter_from_query(visit: PageRequest) -> RecordFilter:
    """Return the choice of records in the address. Raises ConfigError for an unknown reason."""
    given = {name: visit.parameter(name) or None for name in _PARAMETERS}
    since = None if given["since"] is None else datetime.combine(parse_business_date(given["since"]), time())
    choice = open_records.record_filter_from_options(
        given["stream"], given["key"], given["reason"], since, given["file"]
    )
    chosen = structs.replace(choice, text=given["text"], handed_over_in=given["batch"])
    return structs.replace(chosen, key_hash=open_records.chosen_key_hash(chosen))
