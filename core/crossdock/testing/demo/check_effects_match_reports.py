"""The check at the end of the demo: compares the sandbox's effects log with the reports of the runs."""

from __future__ import annotations

from collections import Counter

from crossdock.config.project.project import Project
from crossdock.errors import InternalError
from crossdock.runs.run_report import Report
from crossdock.testing.sandbox_effects_comparison import list_effects_of_tenant


def check_and_count_effects(project: Project, reports: list[Report]) -> Counter[str]:
    """Count the effects by operation. There must be exactly one for each delivery in the reports and in the state.

    Raises:
        InternalError: If the effects differ, or a tally does not balance.
    """
    if not all(report.balanced for report in reports):
        raise InternalError("the tally does not balance", code="tally_unbalanced")
    effects = list(list_effects_of_tenant(project.platform))
    with project.read_state() as tx:
        intents = tx.intents.page_with_statuses(("delivered",), limit=len(effects) + 1)
    logged = Counter((effect["idempotencyKey"], effect["operation"], effect["id"]) for effect in effects)
    expected = Counter({(intent.idempotency_key, intent.operation, intent.target_id) for intent in intents})
    delivered = sum(tally.delivered for report in reports for tally in report.tallies.values())
    if logged != expected or delivered != len(effects):
        counts = f"effects log {len(effects)}, runs {delivered}, state {len(expected)}"
        raise InternalError(f"the deliveries do not match the effects log: {counts}", code="demo_differs")
    return Counter(effect["operation"] for effect in effects)
