"""A plan that was approved, and the sync that does it and nothing else."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from crossdock import exact_json
from crossdock.clock import Clock
from crossdock.config_file import ConfigModel
from crossdock.delivery.operations import Operation
from crossdock.errors import ConfigError, RefusedError
from crossdock.local_files import read_regular, replace_file
from crossdock.progress import Progress, Silent
from crossdock.project.project import BoundStream, Project
from crossdock.runs import dry_run
from crossdock.runs.dry_run import PlanListener, Planned
from crossdock.runs.run_report import Report
from crossdock.runs.runner import Run
from crossdock.runs.session import opened
from crossdock.runs.stream_input import StreamInput
from crossdock.state import DeadLetter, Intent, WaitingRecord
from crossdock.tally import Tally

MAX_BYTES = 1 << 20
"""Of a plan file, which holds a few hashes for each stream."""


class PlanFile(ConfigModel):
    """What was planned, as hashes: no data of a record is in it.

    Attributes:
        decisions: SHA-256 over everything that would be done, refused or kept waiting, in its order.
        sources: SHA-256 over what each stream reads, by its name.
    """

    base_url: str
    tenant: str
    selection: tuple[str, ...]
    operations: dict[str, int]
    decisions: str
    sources: dict[str, str]

    def save(self, path: Path) -> None:
        """Write it, as `crossdock.local_files.replace_file` does.

        Raises:
            ConfigError: If that cannot be done.
        """
        try:
            replace_file(path, exact_json.dumps(self.model_dump(mode="json")) + b"\n")
        except OSError as error:
            raise ConfigError(f"the plan cannot be written: {error.strerror}", where=str(path)) from error

    @classmethod
    def load(cls, path: Path) -> PlanFile:
        """Read it.

        Raises:
            ConfigError: If it is no plan.
        """
        hint = "'crossdock plan -o PLAN' makes one"
        try:
            return cls.model_validate(exact_json.loads(read_regular(path, MAX_BYTES)))
        except OSError as error:
            raise ConfigError(f"the plan cannot be read: {error.strerror}", where=str(path), hint=hint) from error
        except (ValueError, ValidationError):
            raise ConfigError("is no plan of crossdock", where=str(path), hint=hint) from None


@dataclass(frozen=True, slots=True)
class Digest:
    """A sink that hashes every decision before it hands it on."""

    listener: PlanListener
    sum: Any

    @classmethod
    def over(cls, listener: PlanListener) -> Digest:
        return cls(listener, hashlib.sha256())

    def as_sink(self) -> PlanListener:
        return PlanListener(
            self._operation, self._refused, self._waiting, self._resend, self._in_doubt, self.listener.withheld
        )

    def _operation(self, operation: Operation) -> None:
        self._add(operation.kind, operation.identity.stream, operation.record.key, operation.changes)
        self.listener.operation(operation)

    def _refused(self, dead_letter: DeadLetter) -> None:
        self._add("refuse", dead_letter.identity.stream, dead_letter.identity.key, dead_letter.code)
        self.listener.refused(dead_letter)

    def _waiting(self, record: WaitingRecord) -> None:
        self._add("wait", record.identity.stream, record.identity.key, record.waits_for)
        self.listener.waiting(record)

    def _resend(self, intent: Intent) -> None:
        self._add("resend", intent.identity.stream, intent.identity.key, intent.idempotency_key)
        self.listener.resend(intent)

    def _in_doubt(self, intent: Intent) -> None:
        self._add("in doubt", intent.identity.stream, intent.identity.key, intent.idempotency_key)
        self.listener.in_doubt(intent)

    def _add(self, *facts: object) -> None:
        self.sum.update(exact_json.dumps(list(facts)))


def plan(
    project: Project, selection: Sequence[str], listener: PlanListener, *, clock: Clock, progress: Progress
) -> tuple[Planned, PlanFile]:
    """Plan, as `crossdock.runs.dry_run.plan` does, and sum it up.

    Raises:
        CrossdockError: If the state cannot be read.
    """
    digest = Digest.over(listener)
    planned = dry_run.plan(project, list(selection), digest.as_sink(), clock=clock, progress=progress, summed=True)
    return planned, _summed(project, selection, planned, digest)


def apply(
    project: Project, approved: PlanFile, *, clock: Clock, progress: Progress, interrupt: threading.Event
) -> Report:
    """Do what *approved* says, if it is still what would be done.

    The state is held from the comparison to the end of the run, and a stream that reads something else than the plan
    did delivers nothing.

    Raises:
        RefusedError: If the source, the state or the config has changed since.
        CrossdockError: If the run could not begin. What stops it later is in the report.
    """
    with opened(project, clock) as session:
        state = session.state
        digest = Digest.over(PlanListener(*[_ignore] * 6))
        planned = dry_run.look_ahead(
            project, state, list(approved.selection), digest.as_sink(), clock, Silent(), summed=True
        )
        for error in planned.errors.values():
            raise error
        if planned.operations["resend"]:
            raise RefusedError(
                "an earlier run left something to send", hint="run 'crossdock sync' first, then plan again"
            )
        if _summed(project, approved.selection, planned, digest) != approved:
            raise RefusedError(
                "this is no longer what would be done: the source, the state or the config has changed",
                hint="look at a new plan: crossdock plan -o PLAN",
            )
        run = Run(session, progress, interrupt)

        def source(bound: BoundStream, tally: Tally, run_id: int) -> StreamInput:
            return _Approved(bound, state, tally, run_id, approved.sources[bound.name])

        return run.execute(project.selected(approved.selection), source)


class _Approved(StreamInput):
    """A reading that must be the one that was approved."""

    def __init__(self, bound: BoundStream, state: Any, tally: Tally, run_id: int, expected: str) -> None:
        super().__init__(bound, state, tally, run_id, digested=True)
        self._expected_digest = expected

    def accept(self) -> None:
        if self.digest != self._expected_digest:
            raise RefusedError(
                "the source has changed while the plan was applied", where=self._bound.name, hint="plan again"
            )


def _summed(project: Project, selection: Sequence[str], planned: Planned, digest: Digest) -> PlanFile:
    pin = project.pin
    return PlanFile(
        base_url=pin.base_url,
        tenant=pin.tenant,
        selection=tuple(selection),
        operations=dict(Counter(planned.operations)),
        decisions=digest.sum.hexdigest(),
        sources=planned.sources,
    )


def _ignore(_: object) -> None:
    """Nobody looks on."""
