"""The proof at the end: what the sandbox saw, held against what the runs say they delivered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from crossdock import exact_json
from crossdock.errors import InternalError
from crossdock.platform.platform_target import PlatformTarget
from crossdock.project.project import Project
from crossdock.runs.run_report import Report

PAGE = 1000


def compare(project: Project, reports: list[Report]) -> Counter[str]:
    """How many effects of each kind the sandbox saw: one for each delivery in the reports and in the state, no more.

    Raises:
        InternalError: If that is not so, or a tally does not balance.
    """
    if not all(report.balanced for report in reports):
        raise InternalError("the tally does not balance")
    effects = list(_effects(project))
    with project.look() as tx:
        intents = tx.intents.listed(("delivered",), limit=len(effects) + 1)
    seen = Counter((effect["idempotencyKey"], effect["operation"], effect["id"]) for effect in effects)
    ours = {(intent.idempotency_key, intent.operation, intent.platform_id) for intent in intents}
    told = sum(tally.delivered for report in reports for tally in report.tallies.values())
    if seen != Counter(ours) or told != len(effects):
        raise InternalError(f"the sandbox saw {len(effects)} effects, the runs delivered {told}, the state {len(ours)}")
    return Counter(effect["operation"] for effect in effects)


def _effects(project: Project) -> Iterator[dict[str, Any]]:
    client = PlatformTarget(project.platform).client()
    try:
        after = 0
        page: list[dict[str, Any]] = [{}]
        while page:
            query = {"after": str(after), "limit": str(PAGE)}
            page = exact_json.loads(client.send("GET", "/_sandbox/effects", params=query).body)["data"]
            yield from page
            after = page[-1]["seq"] if page else after
    finally:
        client.close()
