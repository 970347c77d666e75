"""The page of removals and updates beyond a limit, which wait for a person."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from crossdock.console.action_definitions import ACTIONS, permitted_action_links
from crossdock.console.page_request_context import PageRequest
from crossdock.console.page_tables import Link
from crossdock.state import PendingApproval, Scope, Transaction
from crossdock.values.texts_of_numbers_and_times import instant_text

_SAMPLE = 20  # records of each


def show_approvals(visit: PageRequest) -> Response:
    """Show what waits for approval, or is approved and not executed yet, with some of the records."""
    project, problem = visit.project_or_problem()
    scopes = {} if project is None else project.scope_by_stream
    with visit.read_transaction() as tx:
        found = tx.pending_approvals.listed()
        shown = [_approval_values(visit, tx, each, scopes.get(each.stream)) for each in found if each.stream in scopes]
    return visit.render_page(
        "approvals.html",
        f"Approvals of {visit.required_tenant.name}",
        approvals=shown,
        problem=problem,
        others=", ".join(each.stream for each in found if each.stream not in scopes),
    )


def _approval_values(
    visit: PageRequest, tx: Transaction, pending: PendingApproval, scope: Scope | None
) -> dict[str, Any]:
    keys = [] if scope is None else [each.key for each in tx.bindings.get(scope, pending.key_hashes[:_SAMPLE]).values()]
    return {
        "stream": pending.stream,
        "what": pending.what,
        "number": f"{pending.record_count:,}",
        "since": instant_text(pending.since),
        "approved": "" if pending.approved_at is None else instant_text(pending.approved_at),
        "sample": [Link(key, visit.link("record", stream=pending.stream, key=key)) for key in sorted(keys)],
        "more": f"{pending.record_count - len(keys):,}" if pending.record_count > len(keys) else "",
        "plan": permitted_action_links(visit, ("plan", {"streams": pending.stream})),
        "approve": visit.link("do", "approve", stream=pending.stream, number=pending.record_count)
        if pending.approved_at is None and visit.has_role(ACTIONS["approve"].role)
        else "",
    }
