"""Keeps other runs away from the records of a stream that is being undone, until the undo ends or is given up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from crossdock.errors import RefusedError
from crossdock.state import Scope, Transaction
from crossdock.values.texts_of_numbers_and_times import instant_text

RESUME = "crossdock apply --resume"
ADVICE = f"complete the undo: {RESUME}; or end it as it is: crossdock apply --give-up"


def refusals_of_streams_being_undone(
    tx: Transaction, names: Iterable[str], scopes: Mapping[str, Scope]
) -> dict[str, RefusedError]:
    """Return why those of *names* that are being undone, or that write the same records, are not read, by stream."""
    since = tx.begun_undos.begun_at_by_stream()
    undone = _undone_stream_by_scope(tx) if since else {}
    found = {}
    for name in sorted(names):
        begun = name if name in since else undone.get(_whole_scope_and_contribution_flag(scopes[name]))
        if begun is not None:
            found[name] = _undo_in_progress_error(name, begun, instant_text(since[begun]))
    return found


def _undone_stream_by_scope(tx: Transaction) -> dict[tuple[Scope, bool], str]:
    begun = tx.begun_undos.listed()
    names, run, migration = {each.stream for each in begun}, begun[0].plan["run"], tx.migrations.current()
    of_migration = [each.run_id for each in tx.migrations.runs(migration.id)] if migration else []
    delivered = tx.delivered_history.streams_and_scopes_of_runs(of_migration if run is None else [run])
    return {_whole_scope_and_contribution_flag(scope): stream for stream, scope in delivered if stream in names}


def _whole_scope_and_contribution_flag(scope: Scope) -> tuple[Scope, bool]:
    return scope.whole_record_scope, scope.is_contribution


def raise_if_stream_is_being_undone(tx: Transaction, stream: str, scopes: Mapping[str, Scope]) -> None:
    for refusal in refusals_of_streams_being_undone(tx, [stream], scopes).values():
        raise refusal


def raise_if_undo_in_progress(tx: Transaction) -> None:
    for name, begun_at in tx.begun_undos.begun_at_by_stream().items():
        raise _undo_in_progress_error(name, name, instant_text(begun_at))


def _undo_in_progress_error(name: str, begun: str, since: str) -> RefusedError:
    message = f"an undo of {begun} was begun {since} and has not ended"
    if name == begun:
        return RefusedError(f"{message}, so nothing else of it is done", hint=ADVICE, code="undo_in_progress")
    return RefusedError(
        f"{message}, and {name} writes the same records, so nothing of it is done", hint=ADVICE, code="undo_in_progress"
    )
