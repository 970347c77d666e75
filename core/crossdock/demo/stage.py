"""The steps of the demo: each does what the command of that name does, and returns what there is to tell."""

from __future__ import annotations

import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossdock import wire
from crossdock.clock import SystemClock
from crossdock.connector import Context, Finding
from crossdock.errors import InternalError
from crossdock.platform import probe
from crossdock.platform.target import PlatformTarget
from crossdock.progress import Progress, Silent
from crossdock.sources.workplace import Workplace
from crossdock.sync import preview, runner
from crossdock.sync.intake import NoIntake
from crossdock.sync.project import Project

PAGE = 1000


def check(project: Project) -> Iterator[Finding]:
    """Reach the platform and the warehouse once.

    Raises:
        CrossdockError: If one of them cannot be reached.
    """
    probe.reach(project.platform)
    yield Finding(ok=True, text=f"{project.pin.base_url} lets us in, as tenant {project.pin.tenant!r}")
    with tempfile.TemporaryDirectory(prefix="crossdock-") as work:
        place = Workplace(SystemClock(), Silent(), NoIntake(), Path(work), Path(work))
        for connection in project.connections:
            assert connection.connector.check is not None
            yield from connection.connector.check(Context(connection.settings, connection.name, place))


def plan(project: Project, progress: Progress) -> dict[str, Counter[str]]:
    """How many records of each stream would be created, updated, refused, or would wait."""
    counts: dict[str, Counter[str]] = {}

    def count(kind: str) -> Callable[[Any], None]:
        return lambda item: counts.setdefault(item.stream, Counter()).update([kind])

    def operation(item: Any) -> None:
        count(item.kind)(item)

    sink = preview.Sink(operation, count("reject"), count("wait"), count("resend"))
    planned = preview.plan(project, [], sink, clock=SystemClock(), progress=progress)
    for error in planned.errors.values():
        raise error
    return counts


def sync(project: Project, progress: Progress, interrupt: threading.Event) -> runner.Report:
    """Sync every stream.

    Raises:
        CrossdockError: What stopped a stream, or the run.
    """
    report = runner.sync(project, [], clock=SystemClock(), progress=progress, interrupt=interrupt)
    for error in report.errors.values():
        raise error
    return report


@dataclass(frozen=True, slots=True)
class Witness:
    """What the sandbox saw.

    Attributes:
        effects: By operation; each belongs to one delivered operation of ours, and each of those has one.
    """

    effects: Counter[str]


def witness(project: Project, reports: list[runner.Report]) -> Witness:
    """Compare what the sandbox says has happened to it with what the runs and the state say was delivered.

    Raises:
        InternalError: If they differ in anything.
    """
    effects = list(_effects(project))
    state = project.open_state(read_only=True)
    try:
        with state.begin() as tx:
            delivered = tx.intents.listed(("delivered",), limit=len(effects) + 1)
    finally:
        state.close()
    seen = Counter((effect["idempotencyKey"], effect["operation"], effect["id"]) for effect in effects)
    ours = Counter((intent.idempotency_key, intent.operation, intent.platform_id) for intent in delivered)
    told = sum(tally.delivered for report in reports for tally in report.tallies.values())
    if seen != ours or max(seen.values()) > 1 or told != len(effects):
        raise InternalError(f"{told} records delivered, {len(delivered)} in the state, {len(effects)} at the sandbox")
    return Witness(Counter(effect["operation"] for effect in effects))


def _effects(project: Project) -> Iterator[dict[str, Any]]:
    client = PlatformTarget(project.platform).client()
    try:
        after = 0
        while True:
            params = {"after": str(after), "limit": str(PAGE)}
            page = wire.loads(client.send("GET", "/_sandbox/effects", params=params).body)["data"]
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1]["seq"]
    finally:
        client.close()
