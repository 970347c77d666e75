"""Runs a command of crossdock that kills its own process at one boundary of a record's way.

python -P tests/chaos/failing.py NAME:NTH:before|after ARGUMENTS...

The engine has no hooks for this: the NTH call of one of its functions, counted over all threads, ends in SIGKILL
before or after its work. A line in the file that ``CROSSDOCK_CHAOS_NOTE`` names is written first, which proves that it
struck. A function of `FAILPOINTS`, `LISTENING` or `MIGRATING` that the engine no longer has is an AttributeError or
ImportError before the command begins.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce, wraps
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Literal

NOTE_VARIABLE = "CROSSDOCK_CHAOS_NOTE"

Side = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Failpoint:
    """A function of the engine that stands at a boundary.

    Attributes:
        attribute: Its qualified name in *module*, where it is looked up when it is called.
        often: What brings at least one call: a whole night, each stream of it, each turn that sends, each record.
        sides: Where a strike means something of its own.
        filled: Position of the argument that must not be empty for a call to count, *self* being 0; None: all count.
    """

    module: str
    attribute: str
    often: Literal["night", "stream", "turn", "record"]
    sides: tuple[Side, ...] = ("after",)
    filled: int | None = None

    def owner(self) -> tuple[Any, str]:
        """What holds the function, and under which name; fails if it is not there."""
        *path, name = self.attribute.split(".")
        owner = reduce(getattr, path, import_module(self.module))
        getattr(owner, name)
        return owner, name


_BOTH: tuple[Side, ...] = ("before", "after")

FAILPOINTS: Mapping[str, Failpoint] = {  # in the order of a record's way
    "listed": Failpoint("crossdock.reading.transport.sftp_store", "SftpSession.list", "stream"),
    "downloaded": Failpoint("crossdock.reading.transport.sftp_store", "SftpSession.fetch", "stream"),
    "spooled": Failpoint("pathlib", "Path.replace", "stream"),
    "batch_read": Failpoint("crossdock.delta.latest_records", "add_key_filter_and_fingerprint_columns", "stream"),
    "accepted": Failpoint(
        "crossdock.runs.imported_file_log", "IntakeLogInState.record_accepted_files", "stream", _BOTH
    ),
    "scan_done": Failpoint("crossdock.delta.latest_records", "LatestRecords.find_latest_of_each_key", "stream"),
    "chunk_decided": Failpoint("crossdock.runs.planning.planner", "Planner._decide_chunk", "stream"),
    "dead_letter_written": Failpoint(
        "crossdock.state.tables.dead_letters_and_waiting_records", "DeadLetters.put", "night", filled=1
    ),
    "waiting_written": Failpoint(
        "crossdock.state.tables.dead_letters_and_waiting_records", "WaitingRecords.put", "night", filled=1
    ),
    "intents_added": Failpoint("crossdock.state.tables.intents_and_stored_batches", "Intents.add", "stream", filled=1),
    "committed": Failpoint(
        "crossdock.writing.delivery.send_queue_and_threads",
        "SenderThreads.give_batches_to_threads",
        "turn",
        _BOTH,
        filled=1,
    ),
    "sent": Failpoint("crossdock.writing.targets.target", "Target.send", "record", _BOTH),
    "settle_written": Failpoint(
        "crossdock.writing.delivery.state_writer", "store_outcomes_and_bindings", "turn", _BOTH, filled=1
    ),
    "settled": Failpoint("crossdock.writing.delivery.state_writer", "StateWriter.commit", "turn", filled=1),
    "index_written": Failpoint("crossdock.state.sidecar_files.key_index_files", "KeyIndex._write", "stream", _BOTH),
    "stream_finished": Failpoint("crossdock.runs.stream_input", "StreamInput.store_completion", "stream", _BOTH),
    "files_finished": Failpoint(
        "crossdock.runs.imported_file_log", "IntakeLogInState.mark_accepted_finished", "stream", _BOTH
    ),
    "run_finished": Failpoint("crossdock.state.tables.run_history", "Runs.finish", "night", _BOTH),
}

LISTENING: Mapping[str, Failpoint] = {  # in the order of a webhook's way; those of delivery follow it
    "received": Failpoint("crossdock.state.tables.webhooks_and_records_to_fetch", "Inbox.receive", "turn"),
    "stored": Failpoint(
        "crossdock.services.inbox.webhook_receiver_and_writer", "WebhookWriter._store_in_one_transaction", "turn"
    ),
    "fetching": Failpoint("crossdock.runs.named_record_delivery", "NamedRecordDelivery.deliver", "turn", _BOTH),
    "hints_removed": Failpoint(
        "crossdock.state.tables.webhooks_and_records_to_fetch", "Inbox.remove_fetched", "turn", _BOTH, filled=1
    ),
}
"""``received``: written and not committed. ``stored``: committed and not answered. ``fetching``: answered, and not
delivered or not settled."""


MIGRATING: Mapping[str, Failpoint] = {
    "wave_begun": Failpoint("crossdock.state.tables.system_migrations", "Migrations.add_run", "night", _BOTH),
    "undo_begun": Failpoint(
        "crossdock.state.tables.pending_approvals_and_begun_undos", "BegunUndos.begin", "night", _BOTH
    ),
    "undo_ended": Failpoint(
        "crossdock.state.tables.pending_approvals_and_begun_undos", "BegunUndos.end", "night", _BOTH
    ),
    "corrected": Failpoint(
        "crossdock.runs.reconciliation.reconcile_and_repair", "_writer_of_corrections_to_state", "night", _BOTH
    ),
}
"""``wave_begun``: the run of a wave is written and not committed. ``undo_begun``, ``undo_ended``: so are the streams of
an undo. ``corrected``: a repair is about to correct the state."""


def arm(name: str, nth: int, side: Side, note: Path) -> None:
    """Put a killing function in the place of the one that *name* stands for."""
    point = {**FAILPOINTS, **LISTENING, **MIGRATING}[name]
    owner, attribute = point.owner()
    setattr(
        owner, attribute, _killing(getattr(owner, attribute), point.filled, nth, side, f"{name}:{nth}:{side}", note)
    )


def _killing(
    function: Callable[..., Any], filled: int | None, nth: int, side: Side, label: str, note: Path
) -> Callable[..., Any]:
    calls, lock = count(1), threading.Lock()

    @wraps(function)
    def killing(*args: Any, **kwargs: Any) -> Any:
        if filled is not None and not args[filled]:
            return function(*args, **kwargs)
        with lock:
            strikes = next(calls) == nth
        if strikes and side == "before":
            _kill(label, note)
        result = function(*args, **kwargs)
        if strikes:
            _kill(label, note)
        return result

    return killing


def _kill(label: str, note: Path) -> None:
    with note.open("a") as out:
        out.write(f"{label}\n")
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    name, nth, side = sys.argv.pop(1).split(":")
    if side not in {"before", "after"}:
        raise ValueError(f"{side!r} is neither before nor after")
    arm(name, int(nth), "before" if side == "before" else "after", Path(os.environ[NOTE_VARIABLE]))
    runpy.run_module("crossdock", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
