"""The page of removals and updates beyond a limit, which wait for a person."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from crossdock.console.actions import ACTIONS, permitted_actions
from crossdock.console.page_tables import Link
from crossdock.console.visits import Visit
from crossdock.state import PendingApproval, Scope, Transaction
from crossdock.values.display_texts import instant_text

_SAMPLE = 20  # records of each


def show_approvals(visit: Visit) -> Response:
    """Show what waits for approval, or is approved and not executed yet, with some of the records."""
    project, problem = visit.project_or_problem()
    scopes = {} if project is None else project.scope_by_stream
    with visit.reading() as tx:
        found = tx.pending_approvals.listed()
        shown = [_approval_values(visit, tx, each, scopes.get(each.stream)) for each in found if each.stream in scopes]
    return visit.show(
        "approvals.html",
        f"Approvals of {visit.of_tenant.name}",
        approvals=shown,
        problem=problem,
        others=", ".join(each.stream for each in found if each.stream not in scopes),
    )


def _approval_values(visit: Visit, tx: Transaction, pending: PendingApproval, scope: Scope | None) -> dict[str, Any]:
    keys = [] if scope is None else [each.key for each in tx.bindings.get(scope, pending.key_hashes[:_SAMPLE]).values()]
    return {
        "stream": pending.stream,
        "what": pending.what,
        "number": f"{pending.number:,}",
        "since": instant_text(pending.since),
        "approved": "" if pending.approved_at is None else instant_text(pending.approved_at),
        "sample": [Link(key, visit.link("record", stream=pending.stream, key=key)) for key in sorted(keys)],
        "more": f"{pending.number - len(keys):,}" if pending.number > len(keys) else "",
        "plan": permitted_actions(visit, ("plan", {"streams": pending.stream})),
        "approve": visit.link("do", "approve", stream=pending.stream, number=pending.number)
        if pending.approved_at is None and visit.may(ACTIONS["approve"].role)
        else "",
    }
