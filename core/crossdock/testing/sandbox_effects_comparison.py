"""What a sandbox has done: its effects, counted with external ids in place of ids, and how two counts differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

from crossdock.platform.platform_config import Profile
from crossdock.values import exact_json
from crossdock.writing.targets.platform_target import PlatformTarget

MEMBERS_ADDED_BY_PLATFORM = ("id", "createdAt", "updatedAt")
"""Members that the platform adds."""


def list_effects_of_tenant(platform: Profile, after: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the effects at the platform's tenant after the first *after* ones of the sandbox, oldest first."""
    with closing(PlatformTarget(platform).client()) as client:
        query = {"after": str(after), "limit": "1000"}
        while page := exact_json.loads(client.send("GET", "/_sandbox/effects", params=query).body)["data"]:
            yield from (effect for effect in page if effect["tenant"] == platform.tenant)
            query["after"] = str(page[-1]["seq"])


def count_stored_records_by_body(happened: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Count what is stored after these effects: resources and bodies, with external ids in place of ids.

    Equal bodies are possible, such as those of invoices, which have no external id.
    """
    happened, latest = list(happened), dict[str, str]()
    names = _external_ids_by_id(happened)
    for effect in happened:
        if effect["operation"] == "delete":
            latest.pop(effect["id"], None)
        elif effect["operation"] in {"create", "update"}:
            latest[effect["id"]] = f"{effect['resource']} {_canonical_body(effect['body'], names)}"
    return Counter(latest.values())


def count_effects_by_body(happened: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Count these effects: operations, resources and bodies, with external ids in place of ids."""
    happened = list(happened)
    names = _external_ids_by_id(happened)
    return Counter(
        f"{each['operation']} {each['resource']} {_canonical_body(each['body'], names)}" for each in happened
    )


def _external_ids_by_id(happened: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {each["id"]: each["body"]["externalId"] for each in happened if "externalId" in each["body"]}


def _canonical_body(body: Mapping[str, Any], names: Mapping[str, str]) -> str:
    kept = {
        name: _with_external_ids(value, names) for name, value in body.items() if name not in MEMBERS_ADDED_BY_PLATFORM
    }
    return exact_json.dumps(kept).decode()


def _with_external_ids(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _with_external_ids(inner, names) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_external_ids(inner, names) for inner in value]
    return names.get(value, value) if isinstance(value, str) else value


def describe_count_differences(expected: Counter[str], found: Counter[str]) -> str:
    """Describe how the resources of *found* differ from *expected*, with some bodies; empty if they are equal.

    A record that is stored with another body counts as missing and as unexpected.
    """
    missing, more = expected - found, found - expected
    twice = Counter({body: number for body, number in more.items() if body in expected})
    kinds = {"missing": missing, "delivered more than once": twice, "unexpected": more - twice}
    return "".join(
        f"\n  {bodies.total()} {what}, such as {body}" for what, bodies in kinds.items() for body in list(bodies)[:1]
    )
