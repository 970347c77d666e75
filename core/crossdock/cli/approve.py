"""``crossdock approve``: permission to remove or update more records than the limits allow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project, read_state_of_config
from crossdock.cli.shared_options_messages_and_signals import MOST, common_options, help_example, print_sentences
from crossdock.errors import ConfigError
from crossdock.values.clock import SystemClock
from crossdock.values.texts_of_numbers_and_times import count_with_noun

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.runs.audit_log import AuditedChange
    from crossdock.state import PendingApproval, Transaction


@click.command(epilog=help_example("crossdock approve", "crossdock approve wms.products 150"))
@click.argument("stream", required=False)
@click.argument("number", type=click.IntRange(1, MOST), required=False)
@common_options
def approve(stream: str | None, number: int | None, config: Path, *, as_json: bool) -> None:
    """Permit removals or updates that exceed the limits, or list them.

    The next sync removes or updates the NUMBER records of STREAM that made the last sync stop. An approval is valid
    once, for exactly these removals or updates: if one of the records reappears or has another content, or if there
    are further ones, the next sync stops again.

    It also permits that records which were sent to another address of a target count as sent to its new one.
    """
    if (stream is None) is not (number is None):
        raise ConfigError(
            "name a stream and the number of records; 'crossdock approve' lists both", code="options_incomplete"
        )
    if stream is None or number is None:
        with read_state_of_config(config) as (tx, _):
            listed = tx.pending_approvals.listed()
        known = load_project(config).scope_by_stream if listed else {}
        pending = [each for each in listed if each.stream in known]
        if as_json:
            terminal_output.print_json([_pending_approval_document(each) for each in pending])
        else:
            _print_pending_approvals(pending)
        if others := [each.stream for each in listed if each.stream not in known]:
            print_sentences(
                f"not listed, because the config does not have or use the stream: {', '.join(others)}", err=as_json
            )
        return
    from crossdock.runs.audit_log import change_state_exclusively_with_audit

    loaded = load_project(config)
    loaded.selected_streams([stream])

    def approve_all(tx: Transaction, change: AuditedChange) -> PendingApproval:
        earlier, given = tx.pending_approvals.get(stream), _approve_pending_or_raise(loaded, tx, stream, number)
        was_approved = earlier is not None and earlier.approved_at is not None
        change.store_audit_entry(tx, before={"approved": was_approved}, after={"approved": True, given.what: number})
        return given

    approved = change_state_exclusively_with_audit(
        loaded, "approve", f"stream {stream}", approve_all, clock=SystemClock()
    )
    text = f"approved: {_pending_approval_text(approved)}; run 'crossdock sync {stream}'"
    terminal_output.print_result(_pending_approval_document(approved), text, as_json=as_json)


def _approve_pending_or_raise(loaded: Project, tx: Transaction, stream: str, number: int) -> PendingApproval:
    from crossdock.runs.planning.undo_in_progress import raise_if_stream_is_being_undone

    raise_if_stream_is_being_undone(tx, stream, loaded.scope_by_stream)
    pending = tx.pending_approvals.get(stream)
    if pending is None:
        raise ConfigError(
            f"nothing of {stream} needs approval",
            hint="'crossdock approve' lists what does",
            code="approval_not_needed",
        )
    if pending.record_count != number:
        raise ConfigError(f"to be approved: {_pending_approval_text(pending)}, not {number:,}", code="approval_differs")
    now = SystemClock().now()
    tx.pending_approvals.approve(pending, at=now)
    tx.inbox.make_records_due_now(stream, pending.key_hashes, at=now)
    return tx.pending_approvals.get(stream) or pending


def _print_pending_approvals(pending: list[PendingApproval]) -> None:
    rows = [
        (each.stream, each.record_count, each.what, each.since, "yes" if each.approved_at else "") for each in pending
    ]
    console = terminal_output.output_console()
    if rows:
        columns = ("stream", "records", "what", "since", "approved")
        console.print(terminal_output.make_fitting_table("Removals and updates", columns, rows, numbers=("records",)))
    else:
        console.print("nothing needs approval")


def _pending_approval_text(pending: PendingApproval) -> str:
    return f"{pending.what}: {count_with_noun(pending.record_count, 'record')}"


def _pending_approval_document(pending: PendingApproval) -> dict[str, Any]:
    return {
        "stream": pending.stream,
        "number": pending.record_count,
        "what": pending.what,
        "since": pending.since,
        "approved_at": pending.approved_at,
    }
