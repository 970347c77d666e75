"""``crossdock approve``: permission to remove more records than the limits allow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli import terminal_output
from crossdock.cli.shared_options import MOST, common_options, counted, example, load
from crossdock.clock import SystemClock
from crossdock.errors import ConfigError

if TYPE_CHECKING:
    from crossdock.state import PendingRemoval, Transaction


@click.command(epilog=example("crossdock approve", "crossdock approve wms.products 150"))
@click.argument("stream", required=False)
@click.argument("number", type=click.IntRange(1, MOST), required=False)
@common_options
def approve(stream: str | None, number: int | None, config: Path, *, as_json: bool) -> None:
    """Permit a removal that exceeds the limits, or list such removals.

    The next sync removes the NUMBER records of STREAM that made the last sync stop. An approval is valid once, for
    exactly these records: if one of them reappears, or another one disappears, the next sync stops again.
    """
    if (stream is None) is not (number is None):
        raise ConfigError("name a stream and the number of records; 'crossdock approve' lists both")
    loaded = load(config)
    if stream is None or number is None:
        with loaded.look() as tx:
            pending = tx.snapshots.listed()
        if as_json:
            terminal_output.print_json([_facts(each) for each in pending])
        else:
            _show(pending)
        return
    with loaded.alone() as state:
        approved = state.apply(lambda tx: _approve(tx, stream, number))
    text = f"approved: {_summary(approved)}; run 'crossdock sync {stream}'"
    terminal_output.print_result(_facts(approved), text, as_json=as_json)


def _approve(tx: Transaction, stream: str, number: int) -> PendingRemoval:
    pending = tx.snapshots.get(stream)
    if pending is None:
        raise ConfigError(f"no removal of {stream} needs approval", hint="'crossdock approve' lists those that do")
    if pending.number != number:
        raise ConfigError(f"the removal to approve is {_summary(pending)}, not {number:,}")
    tx.snapshots.approve(pending, at=SystemClock().now())
    return tx.snapshots.get(stream) or pending


def _show(pending: list[PendingRemoval]) -> None:
    rows = [(each.stream, each.number, each.what, each.since, "yes" if each.approved_at else "") for each in pending]
    console = terminal_output.out()
    if rows:
        columns = ("stream", "records", "what", "since", "approved")
        console.print(terminal_output.table("Removals", columns, rows, numbers=("records",)))
    else:
        console.print("no removal needs approval")


def _summary(removal: PendingRemoval) -> str:
    return f"{removal.what}: {counted(removal.number, 'record')}"


def _facts(removal: PendingRemoval) -> dict[str, Any]:
    return {
        "stream": removal.stream,
        "number": removal.number,
        "what": removal.what,
        "since": removal.since,
        "approved_at": removal.approved_at,
    }
