"""Which planned creates the platform has already. This asks the platform, and writes nothing."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, cast

import polars as pl

from crossdock.clock import Clock
from crossdock.delivery.operations import Operation
from crossdock.planning.references import key_hashes
from crossdock.platform_source.live_records import READS, LiveRecords
from crossdock.progress import Progress
from crossdock.project.project import Project
from crossdock.resource_types import RESOURCES
from crossdock.resources import ResourceName
from crossdock.runs.intake_logs import NoIntake
from crossdock.runs.temporary_folder import run_folder
from crossdock.sources.source_context import SourceContext
from crossdock.state import Scope
from crossdock.stream_facts import PLATFORM

_HALF = (1 << 64) - 1  # of a key hash: enough to compare with, and 8 bytes in memory


class PlannedCreates:
    """The keys of the records that a plan creates on the platform, 8 bytes for each."""

    def __init__(self) -> None:
        self._keys: dict[str, array[int]] = defaultdict(lambda: array("Q"))

    def take(self, operation: Operation) -> None:
        if operation.kind == "create" and operation.scope.target == PLATFORM:
            self._keys[operation.identity.stream].append(operation.identity.key_hash & _HALF)

    def keys(self, stream: str) -> pl.Series:
        """Their hashes, UInt64."""
        return pl.Series(self._keys[stream], dtype=pl.UInt64)


def already_there(
    project: Project, streams: Iterable[str], creates: PlannedCreates, *, clock: Clock, progress: Progress
) -> dict[str, int]:
    """How many of the planned *creates* the platform has under our external id, by stream.

    Without the streams whose resource has no external id, such as invoices, and those of other targets. The platform
    lists all records of the other resources, up to 1,000 with each request, within its rate limit.

    Raises:
        CrossdockError: If the platform cannot be read.
    """
    found: dict[str, set[int]] = defaultdict(set)  # a record that changes meanwhile is listed twice
    scopes = {name: scope for name in streams if _has_external_id(scope := project.scopes[name])}
    with project.look() as tx:
        bucket_state = tx.buckets.get(PLATFORM)
    with ExitStack() as stack:
        work, limits = run_folder(stack, None), {} if bucket_state is None else {READS: bucket_state}
        run = SourceContext(clock, progress, NoIntake(), work, work, work, limits=limits)
        live = stack.enter_context(LiveRecords(project.platform, run))
        for resource in dict.fromkeys(scope.resource for scope in scopes.values()):
            progress.begin(f"listing {resource} records of the platform", None)
            planned = {name: creates.keys(name) for name, scope in scopes.items() if scope.resource == resource}
            for page in live.pages(cast("ResourceName", resource)):
                progress.advance(len(page))
                keys = _keys(page)
                for name, hashes in planned.items():
                    listed = pl.Series(keys[scopes[name].namespace], dtype=pl.UInt64)
                    found[name].update(listed.filter(listed.is_in(hashes.implode())))
    return {name: len(found[name]) for name in scopes}


def _keys(page: list[dict[str, Any]]) -> dict[str, list[int]]:
    """The hashes of the keys in the external ids of *page*, by namespace."""
    keys: dict[str, list[str]] = defaultdict(list)
    for record in page:
        namespace, colon, key = str(record.get("externalId") or "").partition(":")
        if colon:
            keys[namespace].append(key)
    hashes = ((namespace, key_hashes(names).values()) for namespace, names in keys.items())
    return defaultdict(list, {namespace: [each & _HALF for each in found] for namespace, found in hashes})


def _has_external_id(scope: Scope) -> bool:
    kind = RESOURCES.get(scope.resource)
    return scope.target == PLATFORM and kind is not None and kind.has_external_id and not scope.is_contribution
