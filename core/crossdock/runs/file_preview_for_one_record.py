"""Shows the file that one record would make, or the one that had it, without handing it over."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from crossdock.config.project.project import Project
from crossdock.delta.fingerprint import key_hashes
from crossdock.errors import ConfigError
from crossdock.runs import dry_run
from crossdock.runs.plan_result import PlanListener
from crossdock.state import StoredBatch
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import SilentProgress
from crossdock.writing.delivery.operations_and_intents import Operation
from crossdock.writing.targets.target import Target


def outgoing_file_of_record(project: Project, stream: str, key: str, clock: Clock) -> tuple[str, bytes]:
    """Return name and bytes of a file with the next operation on a record alone; without one, of its last file.

    Args:
        key: In text form.

    Raises:
        ConfigError: If *stream* writes no files, or has no such record.
        CrossdockError: As a plan of the stream.
    """
    target = project.targets(clock)[project.scope_by_stream[stream].target]
    batch = target.resources[project.scope_by_stream[stream].resource].batch
    if batch is None or not batch.stored:
        raise ConfigError(
            f"{stream} does not write files: see 'to' of the stream", where=stream, code="choice_unsuitable"
        )
    planned = list[Operation]()
    wanted = key_hashes([key])[key]

    def keep(operation: Operation) -> None:
        if operation.identity.key_hash == wanted and operation.identity.stream == stream:
            planned.append(operation)

    listener = replace(PlanListener.ignoring(), operation=keep)
    found = dry_run.plan_sync(project, [stream], listener, clock=clock, progress=SilentProgress())
    if not planned and (error := found.errors.get(stream)) is not None:
        raise error
    if planned:
        return _new_file_name_and_bytes(project, target, planned[-1], clock)
    stored = _last_stored_file_of_record(project, stream, wanted)
    if stored is None or not stored.body:
        hint = "'crossdock plan' shows what would be handed over, and 'crossdock records list' what is refused"
        raise ConfigError(
            f"nothing would be handed over for {key!r}, and no file has it",
            where=stream,
            hint=hint,
            code="record_unknown",
        )
    return stored.name, stored.body


def _new_file_name_and_bytes(project: Project, target: Target, operation: Operation, clock: Clock) -> tuple[str, bytes]:
    with closing(project.open_state(read_only=True)) as state, state.begin_read_only() as tx:
        number = tx.batches.next_unused_number(target.name, target.first_number)
    request = target.stored_batch(operation.scope.resource, [operation.as_batch_item(target)], number, clock.now())
    return request.path.removeprefix("/"), request.body or b""


def _last_stored_file_of_record(project: Project, stream: str, key_hash: int) -> StoredBatch | None:
    with closing(project.open_state(read_only=True)) as state, state.begin_read_only() as tx:
        operations = tx.intents.intents_of_record(project.scope_by_stream[stream], key_hash)
        ids = [intent.batch_id for intent in operations if intent.batch_id is not None]
        return tx.batches.batches_by_id(ids[-1:]).get(ids[-1]) if ids else None
