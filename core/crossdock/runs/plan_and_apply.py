"""Plan files: an approved plan as hashes, and the sync that does exactly that, or refuses input that has changed."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from msgspec import Struct
from pydantic import ValidationError

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.config.project.masked_effective_config import effective_config_of_project
from crossdock.config.project.project import Project
from crossdock.errors import ConfigError, RefusedError
from crossdock.runs import dry_run
from crossdock.runs.active_run import ActiveRun
from crossdock.runs.plan_result import PlanListener, PlanResult
from crossdock.runs.planning import undo_in_progress
from crossdock.runs.run_report import Report
from crossdock.runs.run_start_and_stop_requests import RunRequest
from crossdock.runs.session_shared_by_runs import open_session
from crossdock.runs.stream_input import StreamInput
from crossdock.runs.sync_and_replay import raise_if_wave_not_loaded_yet
from crossdock.state import DeadLetter, Intent, RecordIdentity, State, WaitingRecord
from crossdock.values import exact_json
from crossdock.values.clock import Clock
from crossdock.values.config_base_types import ConfigModel
from crossdock.values.run_progress_and_messages import Progress, SilentProgress
from crossdock.values.run_states_and_tally import Tally
from crossdock.values.safe_local_files import read_regular_file_within_limit, replace_file_atomically
from crossdock.writing.delivery.operations_and_intents import Operation

MAX_BYTES = 1 << 20
"""The limit for a file, which has a few hashes for each stream."""
PLANNED = "the source changed while the plan was applied", "plan again"
"""The error for a changed source of an approved plan, and its hint."""


class SavedHashesFile(ConfigModel):
    """What was planned, as hashes and counts, without data of records.

    Attributes:
        noun: The word for it in messages.
        hint: The command that writes such a file.
    """

    noun: ClassVar[str]
    hint: ClassVar[str]

    def save(self, path: Path) -> None:
        """Write the file atomically. Raises ConfigError if the file cannot be written."""
        try:
            replace_file_atomically(path, exact_json.dumps(self.model_dump(mode="json")) + b"\n")
        except OSError as error:
            raise ConfigError(
                f"the {self.noun} cannot be written: {error.strerror}", where=str(path), code="file_unwritable"
            ) from error

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file. Raises ConfigError if it cannot be read or has another content."""
        try:
            return cls.model_validate(exact_json.loads(read_regular_file_within_limit(path, MAX_BYTES)))
        except OSError as error:
            message = f"the {cls.noun} cannot be read: {error.strerror}"
            raise ConfigError(message, where=str(path), hint=cls.hint, code="file_unreadable") from error
        except (ValueError, ValidationError):
            raise ConfigError(
                f"is not a {cls.noun} file", where=str(path), hint=cls.hint, code="saved_file_invalid"
            ) from None


def raise_if_input_changed(bound: BoundStream, digest: str, expected: str, refusal: tuple[str, str] = PLANNED) -> None:
    if digest != expected:
        message, hint = refusal
        raise RefusedError(message, where=bound.name, hint=hint, code="saved_file_invalid")


class ExpectedInput(StreamInput):
    """Input that is refused as a whole if it has changed, before anything of it is decided."""

    def __init__(
        self,
        bound: BoundStream,
        state: State,
        tally: Tally,
        run_id: int,
        *,
        digest: str,
        refusal: tuple[str, str] = PLANNED,
    ) -> None:
        super().__init__(bound, state, tally, run_id, digested=True)
        self._expected_digest, self._refusal = digest, refusal

    def raise_if_input_unexpected(self) -> None:
        raise_if_input_changed(self._bound, self.digest, self._expected_digest, self._refusal)


class PlanFile(SavedHashesFile):
    """A plan as hashes, without data of records.

    Attributes:
        kind: A sync, the repair of what a reconciliation found, or an undo.
        run: The run that is undone; None for a migration.
        wave: The wave of the migration that is undone; None for all.
        remove_extra: Whether a repair deletes what only the platform has.
        decisions: SHA-256 over all operations, rejections and waiting records, in this order.
        sources: SHA-256 over what each stream reads, by its name.
        settings: SHA-256 over the platform, the streams and the targets of the config, since some of their settings
            count only during delivery; empty in a plan of an earlier version.
    """

    noun: ClassVar[str] = "plan"
    hint: ClassVar[str] = "'crossdock plan -o PLAN' writes one; so do 'reconcile' and 'undo'"

    kind: Literal["sync", "repair", "undo"] = "sync"
    run: int | None = None
    wave: str | None = None
    remove_extra: bool = False
    base_url: str
    tenant: str
    selection: tuple[str, ...]
    operations: dict[str, int]
    decisions: str
    sources: dict[str, str]
    settings: str = ""


class DecisionHash(Struct, frozen=True):
    """Hashes every decision and passes it on to a listener."""

    listener: PlanListener
    sum: Any

    @classmethod
    def wrapping_listener(cls, listener: PlanListener) -> DecisionHash:
        return cls(listener, hashlib.sha256())

    def as_listener(self) -> PlanListener:
        return PlanListener(
            self._hash_and_forward_operation,
            self._hash_and_forward_refused,
            self._hash_and_forward_waiting,
            self._hash_and_forward_resend,
            self._hash_and_forward_in_doubt,
            self.listener.withheld,
            suppressed=self.listener.suppressed,
        )

    def _hash_and_forward_operation(self, operation: Operation) -> None:
        self.hash_decision(operation.kind, operation.identity.stream, operation.record.key, operation.changes)
        self.listener.operation(operation)

    def _hash_and_forward_refused(self, dead_letter: DeadLetter) -> None:
        self.hash_decision("refuse", dead_letter.identity.stream, dead_letter.identity.key, dead_letter.code)
        self.listener.refused(dead_letter)

    def _hash_and_forward_waiting(self, record: WaitingRecord) -> None:
        self.hash_decision("wait", record.identity.stream, record.identity.key, record.waits_for)
        self.listener.waiting(record)

    def _hash_and_forward_resend(self, intent: Intent) -> None:
        self.hash_decision("resend", intent.identity.stream, intent.identity.key, intent.idempotency_key)
        self.listener.resend(intent)

    def _hash_and_forward_in_doubt(self, identity: RecordIdentity) -> None:
        self.hash_decision("in doubt", identity.stream, identity.key, str(identity.fingerprint))
        self.listener.in_doubt(identity)

    def hash_decision(self, *facts: object) -> None:
        """Hash a decision that no listener receives."""
        self.sum.update(exact_json.dumps(list(facts)))


def plan_sync_and_hash_decisions(
    project: Project, selection: Sequence[str], listener: PlanListener, *, clock: Clock, progress: Progress
) -> tuple[PlanResult, PlanFile]:
    """Plan, as `crossdock.runs.dry_run.plan_sync` does, and hash the plan."""
    digest = DecisionHash.wrapping_listener(listener)
    planned = dry_run.plan_sync(
        project, list(selection), digest.as_listener(), clock=clock, progress=progress, hash_sources=True
    )
    return planned, _plan_file_with_hashes(project, selection, planned, digest)


def apply_sync_plan_if_unchanged(
    project: Project, approved: PlanFile, *, clock: Clock, progress: Progress, interrupt: threading.Event
) -> Report:
    """Do what *approved* says, if a new plan is the same; otherwise raise RefusedError.

    The state is held from the comparison to the end of the run. A stream that reads something else than the plan did
    delivers nothing.
    """
    attempt = RunRequest(command=" ".join(["apply: sync", *approved.selection]), action="apply")
    with open_session(project, clock, attempt=attempt) as session:
        state = session.state
        raise_if_wave_not_loaded_yet(project, state, project.selected_streams(approved.selection))
        with state.begin_read_only() as tx:
            undo_in_progress.raise_if_undo_in_progress(tx)
        digest = DecisionHash.wrapping_listener(PlanListener.ignoring())
        planned = dry_run.plan_sync_with_open_state(
            project, state, list(approved.selection), digest.as_listener(), clock, SilentProgress(), hash_sources=True
        )
        for error in planned.errors.values():
            raise error
        if planned.operations["resend"]:
            raise RefusedError(
                "an earlier run left operations to send",
                hint=f"send them, without reading a source: {undo_in_progress.RESUME}; then plan again",
                code="operations_left",
            )
        made = _plan_file_with_hashes(project, approved.selection, planned, digest)
        if made != (approved if approved.settings else approved.model_copy(update={"settings": made.settings})):
            raise plan_outdated_error("crossdock plan")
        run = ActiveRun(session, progress, interrupt, attempt=attempt)

        def source(bound: BoundStream, tally: Tally, run_id: int) -> StreamInput:
            return ExpectedInput(bound, state, tally, run_id, digest=approved.sources[bound.name])

        return run.execute(project.selected_streams(approved.selection), source)


def plan_outdated_error(command: str) -> RefusedError:
    message = "the plan is out of date: the source, the state, the config or the platform has changed"
    return RefusedError(message, hint=f"make a new plan: {command} -o PLAN", code="plan_outdated")


def _plan_file_with_hashes(
    project: Project, selection: Sequence[str], planned: PlanResult, digest: DecisionHash
) -> PlanFile:
    pin = project.pinned_tenant
    return PlanFile(
        base_url=pin.base_url,
        tenant=pin.tenant,
        selection=tuple(selection),
        operations=dict(Counter(planned.operations)),
        decisions=digest.sum.hexdigest(),
        sources=planned.sources,
        settings=_hash_of_settings(project),
    )


def _hash_of_settings(project: Project) -> str:
    """Hash what says how records are delivered. Credentials and places may differ where a plan is applied."""
    config = effective_config_of_project(project)
    platform = {name: value for name, value in config["platform"].items() if name != "auth"}
    sections = [[each.get("streams"), each.get("target")] for each in config["connections"].values()]
    return hashlib.sha256(exact_json.dumps([platform, sections])).hexdigest()
