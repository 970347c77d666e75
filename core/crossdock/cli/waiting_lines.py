"""Waiting records for people: one line for all that wait for the same record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.runs.waiting_groups import WaitingGroup
    from crossdock.state import DeadLetterFilter, Transaction

_SHOWN_ROOTS = 3  # of a group that waits for many records


def items(loaded: Project, tx: Transaction, choice: DeadLetterFilter, limit: int) -> list[dict[str, Any]]:
    """Return items of ``crossdock records list``. ``records`` is the number of records of a line."""
    from crossdock.runs.waiting_groups import waiting_groups

    return [_item(each) for each in waiting_groups(tx, loaded.scopes, choice)[:limit]]


def _item(group: WaitingGroup) -> dict[str, Any]:
    key = group.first_key if group.number == 1 else f"{group.first_key} and {group.number - 1:,} more"
    roots = [
        f"{resource} {namespace}:{key}" + (f", which is rejected ({code})" if code else "")
        for resource, namespace, key in group.roots[:_SHOWN_ROOTS]
        for code in [group.rejected.get((resource, namespace, key))]
    ]
    more = len(group.roots) - len(roots)
    why = "; ".join(roots) + (f" and {more:,} more" if more else "")
    facts = {"state": "waiting", "stream": group.stream, "key": key, "why": f"waits for {why}"}
    return facts | {"since": group.since, "records": group.number}
