"""What a plan said compared with what the sync after it did, number by number; both as ``--json`` prints them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DELIVERED = ("created", "updated", "deleted")


def differences(
    planned: Mapping[str, Any],
    report: Mapping[str, Any],
    refused: Mapping[str, int] | None = None,
    *,
    looked_up: bool = False,
) -> list[str]:
    """Every number that differs; none if the plan said what the sync did.

    Args:
        refused: How many records the platform refused, by stream, which a plan cannot know. So many may be rejected
            instead of delivered, and again instead of unchanged if the night has them twice. The requests are not
            compared.
        looked_up: The sync asked the platform what it holds, which a plan cannot know: it may need more requests than
            planned, and what the platform has already is suppressed instead of delivered.
    """
    refused = refused or {}
    found = _unequal("streams", sorted(planned["streams"]), sorted(report["streams"]))
    found += _unequal("errors", sorted(planned["errors"]), sorted(report["errors"]))
    for name in planned["streams"].keys() & report["streams"].keys():
        said, done = planned["streams"][name], report["streams"][name]
        found += _unequal(f"{name} balanced", [said["balanced"], done["balanced"]], [True, True])
        found += _unequal(f"{name} rows", said["rows"], done["rows"])
        found += _records(name, said["records"], done["records"], refused.get(name, 0), looked_up=looked_up)
    if not looked_up and not any(refused.values()):
        forecasts = (planned["forecast"], *planned["other_forecasts"].values())
        found += _unequal("requests", sum(each["requests"] for each in forecasts), report["requests"])
    return found


def _records(
    name: str, said: Mapping[str, int], done: Mapping[str, int], refused: int, *, looked_up: bool
) -> list[str]:
    uncertain = {*DELIVERED, "delivered", "rejected"} if refused or looked_up else set[str]()
    uncertain |= {"suppressed"} if looked_up else set()
    uncertain |= {"unchanged"} if refused else set()
    found = [
        line for term in said if term not in uncertain for line in _unequal(f"{name} {term}", said[term], done[term])
    ]
    settled = ["delivered", "suppressed"] if looked_up else ["delivered"]
    said_settled, done_settled = (sum(each[term] for term in settled) for each in (said, done))
    found += _unequal(f"{name} delivered", said_settled - refused, done_settled)
    again = max(0, said["unchanged"] - done["unchanged"]) if refused else 0
    found += _unequal(f"{name} unchanged", said["unchanged"] - again, done["unchanged"])
    return found + _unequal(f"{name} rejected", said["rejected"] + refused + again, done["rejected"])


def _unequal(what: str, said: object, done: object) -> list[str]:
    return [] if said == done else [f"{what}: the plan said {said}, the sync did {done}"]
