"""The contents of a sandbox: referenced records that are put there before a test, and the result at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from crossdock.config.project.project import Project
from crossdock.mapping.resource_types import external_id
from crossdock.mapping.stream_facts import PLATFORM
from crossdock.planning.binding_csv import COLUMNS, import_bindings
from crossdock.planning.references import found_in
from crossdock.platform.platform_config import Profile
from crossdock.runs.stream_trial import Trial
from crossdock.values import exact_json
from crossdock.values.clock import SystemClock
from crossdock.values.spreadsheet_csv import write_rows
from crossdock.writing.targets.platform_target import PlatformTarget

GIVEN = ("id", "createdAt", "updatedAt")
"""Members that the platform adds."""

Name = tuple[str, str, str]
"""Resource, namespace and key of a record."""


def absent_records(trials: Iterable[Trial]) -> list[Name]:
    """Return the records that drafts of *trials* refer to, and that none of *trials* has read."""
    names: dict[Name, None] = {}
    read: set[tuple[str, str, str]] = set()
    for trial in trials:
        bound = trial.bound
        for tried in trial.records:
            read.add((bound.kind.name, bound.namespace, tried.record.key))
            for each in found_in(tried.members or {}):
                namespace, key = bound.name_of(each)
                names[each.resource, namespace, key] = None
    return [name for name in names if name not in read]


def create_referenced(project: Project, names: Iterable[Name], file: Path, *, at: datetime) -> None:
    """Create a record for each of *names* at the platform, and import its binding.

    Args:
        file: Where the bindings are written, as ``crossdock bindings export`` does.
    """
    rows = [(PLATFORM, *name, _created(project.platform, name, number)) for number, name in enumerate(names)]
    with file.open("w", encoding="utf-8", newline="") as out:
        write_rows(out, [COLUMNS, *rows])
    targets = project.targets(SystemClock())
    with project.alone() as state:
        state.apply(lambda tx: import_bindings(tx, file, targets, at=at))


def _created(platform: Profile, name: Name, number: int) -> str:
    """Create a record with the members that its resource needs, and return its id."""
    resource, namespace, key = name
    code = f"given-{number}"
    members: Mapping[str, dict[str, Any]] = {
        "customer": {"name": code},
        "product": {"sku": code, "name": code},
        "warehouse_bin": {"code": code, "warehouse": code},
        "ledger_account": {"code": code, "name": code, "type": "asset"},
    }
    body = {"externalId": external_id(namespace, key), **members[resource]}
    with closing(PlatformTarget(platform).client()) as client:
        headers = {"content-type": "application/json"}
        answer = client.send("POST", platform.path(resource), body=exact_json.dumps(body), headers=headers)
    assert answer.status == 201, f"{resource} {key!r} cannot be created in the sandbox: status {answer.status}"
    created: str = exact_json.loads(answer.body)["id"]
    return created


def effects(platform: Profile, after: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the effects at the platform's tenant after the first *after* ones of the sandbox, oldest first."""
    with closing(PlatformTarget(platform).client()) as client:
        query = {"after": str(after), "limit": "1000"}
        while page := exact_json.loads(client.send("GET", "/_sandbox/effects", params=query).body)["data"]:
            yield from (effect for effect in page if effect["tenant"] == platform.tenant)
            query["after"] = str(page[-1]["seq"])


def stored(happened: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Count what is stored after these effects: resources and bodies, with external ids in place of ids.

    Equal bodies are possible, such as those of invoices, which have no external id.
    """
    happened, latest = list(happened), dict[str, str]()
    names = _names(happened)
    for effect in happened:
        if effect["operation"] == "delete":
            latest.pop(effect["id"], None)
        elif effect["operation"] in {"create", "update"}:
            latest[effect["id"]] = f"{effect['resource']} {_canonical(effect['body'], names)}"
    return Counter(latest.values())


def done(happened: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Count these effects: operations, resources and bodies, with external ids in place of ids."""
    happened = list(happened)
    names = _names(happened)
    return Counter(f"{each['operation']} {each['resource']} {_canonical(each['body'], names)}" for each in happened)


def _names(happened: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {each["id"]: each["body"]["externalId"] for each in happened if "externalId" in each["body"]}


def _canonical(body: Mapping[str, Any], names: Mapping[str, str]) -> str:
    kept = {name: _named(value, names) for name, value in body.items() if name not in GIVEN}
    return exact_json.dumps(kept).decode()


def _named(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _named(inner, names) for name, inner in value.items()}
    if isinstance(value, list):
        return [_named(inner, names) for inner in value]
    return names.get(value, value) if isinstance(value, str) else value


def differences(expected: Counter[str], found: Counter[str]) -> str:
    """Describe how the resources of *found* differ from *expected*, with some bodies; empty if they are equal.

    A record that is stored with another body counts as missing and as unexpected.
    """
    missing, more = expected - found, found - expected
    twice = Counter({body: number for body, number in more.items() if body in expected})
    kinds = {"missing": missing, "delivered more than once": twice, "unexpected": more - twice}
    return "".join(
        f"\n  {bodies.total()} {what}, such as {body}" for what, bodies in kinds.items() for body in list(bodies)[:1]
    )
