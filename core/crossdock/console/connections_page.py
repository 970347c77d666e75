"""The page of connections: what is read and written, with which credentials, within which limits, and the inbox."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from starlette.responses import Response

from crossdock.config.project.connections_and_bound_streams import Connection
from crossdock.config.project.project import Project
from crossdock.console import connection_facts_without_connecting
from crossdock.console.action_definitions import permitted_action_links
from crossdock.console.connection_facts_without_connecting import ConnectionFacts, Credential, StreamLastRead
from crossdock.console.page_request_context import PageError, PageRequest, raise_if_too_many_partner_requests
from crossdock.console.page_tables import Cell, Link, table
from crossdock.console.plot_shapes import plot_allowance_and_refusals, runs_within_day_of_newest
from crossdock.errors import CrossdockError, add_code_to_first_line
from crossdock.services.inbox.vendor_webhook_subscriptions import open_subscriptions_of_connection
from crossdock.services.system_check import tests_of_state_platform_and_connections
from crossdock.state import RunRecord, Transaction
from crossdock.state.tables.webhooks_and_records_to_fetch import InboxCount
from crossdock.values.run_states_and_tally import RecordState
from crossdock.values.texts_of_numbers_and_times import count_with_noun, duration_text, instant_text

LOOKED_AT = 50  # runs, the latest ones
_UNREADABLE = 50  # most webhooks listed
_DAY = timedelta(days=1)
_CONNECTIONS = ("connection", "kind", "address", "last read", "tokens now", "requests", "refused")
_STREAMS = ("stream", "mode", "last read", "in run", "what was read")
_CREDENTIALS = ("credential", "reference", "condition")
_RUNS = ("run", "started", "duration", "requests", "refused", "share")
_HINTS = ("stream", "records to fetch", "failing", "oldest")
_RECEIVED = ("connection", "webhooks", "unreadable", "last")
_PROBLEMS = ("received", "connection", "topic", "problem")
_SUBSCRIPTIONS = ("id", "topic", "address", "active")
_FINDINGS = ("result", "subject", "finding")


def show_connections(visit: PageRequest) -> Response:
    project, now = visit.project(), visit.now
    with visit.read_transaction() as tx:
        runs = _latest_runs_and_their_timings(tx)
        facts = [
            connection_facts_without_connecting.facts_of_platform(tx, project, runs, now),
            *(
                connection_facts_without_connecting.facts_of_connection(tx, project, each, runs, now)
                for each in project.connections
            ),
        ]
        received, hints = tx.inbox.received_counts_since(now - _DAY), tx.inbox.record_counts_by_stream()
        unreadable = tx.inbox.unreadable_webhooks(limit=_UNREADABLE)
    night = runs_within_day_of_newest(runs, now)
    return visit.render_page(
        "connections.html",
        f"Connections of {visit.required_tenant.name}",
        connections=table(_CONNECTIONS, (_connection_row(visit, each) for each in facts)),
        looked_at=count_with_noun(len(runs), "run"),
        answer=_refused_requests_sentence(runs),
        night=plot_allowance_and_refusals(night, now),
        runs=table(_RUNS, (_run_requests_row(visit, run) for run in reversed(night) if run.requests), kind="runs"),
        details=[_connection_details(visit, project, each) for each in facts],
        hints=table(_HINTS, (_stream_inbox_row(visit, each) for each in hints), kind="numbers"),
        received=table(_RECEIVED, ((name, *numbers, instant_text(at)) for name, *numbers, at in received)),
        unreadable=table(_PROBLEMS, ((instant_text(at), *texts) for at, *texts in unreadable)),
        other_targets=len(project.targets(visit.console.clock)) > 1,
        receives=any(_receives_webhooks(each) for each in project.connections),
    )


def check_connections(visit: PageRequest) -> Response:
    """Answer a form: open the connections, as ``crossdock check`` does, and show what was found."""
    project = visit.project()
    chosen = _chosen_connection(visit, project)
    with raise_if_too_many_partner_requests():
        if chosen is None:
            found = list(tests_of_state_platform_and_connections.findings_of_all_tests(project))
        else:
            found = [
                (chosen.name, each)
                for each in tests_of_state_platform_and_connections.findings_of_connection(project, chosen)
            ]
    failed = sum(not finding.ok for _, finding in found)
    rows = (
        ("ok" if each.ok else "FAIL", subject, add_code_to_first_line(each.text, each.code)) for subject, each in found
    )
    return visit.render_page(
        "connection_check.html",
        "Check",
        title=f"Check of {chosen.name if chosen else 'all connections'}",
        answer=f"{count_with_noun(failed, 'test')} failed." if failed else "All tests passed.",
        failed=failed,
        table=table(_FINDINGS, rows),
        at=instant_text(visit.now),
    )


def list_subscriptions(visit: PageRequest) -> Response:
    """Answer a form: ask a vendor for the subscriptions of a connection, as ``crossdock listen list`` does."""
    project = visit.project()
    chosen = _chosen_connection(visit, project)
    if chosen is None:
        raise PageError(400, "No connection was chosen.")
    with (
        raise_if_too_many_partner_requests(),
        open_subscriptions_of_connection(project, chosen.name, visit.console.clock) as opened,
    ):
        found = list(opened.subscriptions_at_vendor())
    rows = ((each.id, each.topic, each.address, "yes" if each.active else "no") for each in found)
    return visit.render_page(
        "connection_check.html",
        "Subscriptions",
        title=f"Subscriptions of {chosen.name}",
        answer=f"{count_with_noun(len(found), 'subscription')} at the vendor, those to other addresses included.",
        failed=0,
        table=table(_SUBSCRIPTIONS, rows),
        at=instant_text(visit.now),
    )


def _chosen_connection(visit: PageRequest, project: Project) -> Connection | None:
    assert visit.form is not None
    name = visit.form.first_or_empty("connection")
    found = next((each for each in project.connections if each.name == name), None)
    if name and found is None:
        raise PageError(404, f"There is no connection {name}.")
    return found


def _latest_runs_and_their_timings(tx: Transaction) -> list[RunRecord]:
    """Return the latest runs with their timings, the newest first."""
    found = (tx.runs.get(run.id) for run in tx.runs.listed(limit=LOOKED_AT))
    return [run for run in found if run is not None]


def _connection_row(visit: PageRequest, facts: ConnectionFacts) -> tuple[Cell, ...]:
    read = [each for each in facts.streams if each.last_read_at is not None]
    last = max(read, key=lambda each: each.last_read_at or visit.now, default=None)
    return (
        Link(facts.name, f"#{_anchor(facts)}"),
        facts.kind,
        facts.address,
        "" if last is None else _last_read_link(visit, last),
        [each.partition(";")[0] for each in facts.limits],
        facts.refusals.requests,
        facts.refusals.refused,
    )


def _connection_details(visit: PageRequest, project: Project, facts: ConnectionFacts) -> dict[str, object]:
    connection = next((each for each in project.connections if each.name == facts.name), None)
    settings = project.platform.auth if connection is None else connection.settings
    has_subscriptions = connection is not None and _declares_subscription_api(connection)
    found = [
        *connection_facts_without_connecting.credential_facts_without_secrets(settings, visit.now),
        *(
            ()
            if connection is None
            else connection_facts_without_connecting.facts_of_authorization_tokens(connection, visit.now)
        ),
    ]
    return {
        "name": facts.name,
        "anchor": _anchor(facts),
        "facts": [("kind", facts.kind), ("address", facts.address), *(("rate limit", each) for each in facts.limits)],
        "streams": table(_STREAMS, (_stream_row(visit, each) for each in facts.streams)),
        "credentials": table(_CREDENTIALS, map(_credential_row, found)),
        "is_platform": connection is None,
        "has_subscriptions": has_subscriptions,
        "register": permitted_action_links(visit, ("register-webhooks", {"connection": facts.name}))
        if has_subscriptions
        else [],
    }


def _anchor(facts: ConnectionFacts) -> str:
    return f"connection-{facts.name}"


def _stream_row(visit: PageRequest, each: StreamLastRead) -> tuple[Cell, ...]:
    return (
        Link(each.name, visit.link("records", stream=each.name)),
        each.mode,
        "not yet" if each.last_read_at is None else instant_text(each.last_read_at),
        "" if each.run is None else Link(str(each.run.id), visit.link("runs", each.run.id)),
        [*_last_reads_and_cursor_texts(each)],
    )


def _last_reads_and_cursor_texts(each: StreamLastRead) -> Iterator[str]:
    known = {"file": each.last_file, "snapshot": each.last_snapshot, "full list": each.last_full_list}
    yield from (f"{what}: {instant_text(at)}" for what, at in known.items() if at is not None)
    if each.cursor:
        yield f"continues after {each.cursor}"


def _last_read_link(visit: PageRequest, each: StreamLastRead) -> Cell:
    assert each.last_read_at is not None
    at = instant_text(each.last_read_at)
    return at if each.run is None else Link(at, visit.link("runs", each.run.id))


def _credential_row(each: Credential) -> tuple[Cell, ...]:
    return each.name, each.reference, each.condition if each.is_usable else f"Not usable: {each.condition}"


def _refused_requests_sentence(runs: Sequence[RunRecord]) -> str:
    """Answer whether a target throttles the tenant."""
    requests, refused = sum(run.requests for run in runs), sum(run.throttled for run in runs)
    of = f"the last {count_with_noun(len(runs), 'run')}"
    if not runs:
        return "No run has sent anything yet."
    if not refused:
        return f"No target refused any of the {count_with_noun(requests, 'request')} of {of} for its rate."
    last = next(run for run in runs if run.throttled)
    share = f"{100 * refused / max(requests, 1):.2g} %"
    verb = "was" if refused == 1 else "were"
    return (
        f"{refused:,} of {count_with_noun(requests, 'request')} ({share}) of {of} {verb} refused, last in run "
        f"{last.id}."
    )


def _run_requests_row(visit: PageRequest, run: RunRecord) -> tuple[Cell, ...]:
    return (
        Link(str(run.id), visit.link("runs", run.id)),
        instant_text(run.started_at),
        "" if run.duration is None else duration_text(run.duration),
        run.requests,
        run.throttled,
        f"{100 * run.throttled / run.requests:.2g} %",
    )


def _stream_inbox_row(visit: PageRequest, each: InboxCount) -> tuple[Cell, ...]:
    number = Link(f"{each.number:,}", visit.link("records", RecordState.INBOX.option_value, stream=each.stream))
    return each.stream, number, each.failing, instant_text(each.first_at)


def _receives_webhooks(connection: Connection) -> bool:
    try:
        return connection.webhooks is not None
    except CrossdockError:  # an error of 'crossdock listen', which a check shows
        return False


def _declares_subscription_api(connection: Connection) -> bool:
    try:
        return connection.webhooks is not None and connection.webhooks.subscriptions is not None
    except CrossdockError:
        return False
