"""``crossdock approve``: a person's word that so many records may be removed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli.shared_options import MOST, as_json, config_option, counted, example, say
from crossdock.errors import ConfigError

if TYPE_CHECKING:
    from crossdock.state import PendingRemoval, Transaction


@click.command(epilog=example("crossdock approve", "crossdock approve wms.products 150"))
@click.argument("stream", required=False)
@click.argument("number", type=click.IntRange(1, MOST), required=False)
@config_option
@as_json
def approve(stream: str | None, number: int | None, config: Path, *, as_json: bool) -> None:
    """Let the next sync remove the NUMBER of records of STREAM at which the last one stopped; without both, list them.

    It holds once, for exactly these records: if one of them comes back, or one more goes, the next sync stops again.
    """
    if (stream is None) is not (number is None):
        raise ConfigError("name the stream, and how many records may go; 'crossdock approve' alone lists both")
    from crossdock.cli import terminal_output
    from crossdock.project import project

    loaded = project.load(config)
    if stream is None or number is None:
        with loaded.look() as tx:
            waiting = tx.snapshots.listed()
        if as_json:
            terminal_output.print_json([_facts(each) for each in waiting])
        else:
            _show(waiting)
        return
    with loaded.alone() as state:
        approved = state.apply(lambda tx: _approve(tx, stream, number))
    if as_json:
        terminal_output.print_json(_facts(approved))
    else:
        say(f"approved: {_told(approved)}; 'crossdock sync {stream}' does it")


def _approve(tx: Transaction, stream: str, number: int) -> PendingRemoval:
    from crossdock.clock import SystemClock

    waits = tx.snapshots.get(stream)
    if waits is None:
        raise ConfigError(f"nothing of {stream} waits for approval", hint="'crossdock approve' lists what does")
    if waits.number != number:
        raise ConfigError(f"what waits for approval is to {_told(waits)}, and not {number:,}")
    tx.snapshots.approve(waits, at=SystemClock().now())
    return tx.snapshots.get(stream) or waits


def _show(waiting: list[PendingRemoval]) -> None:
    from crossdock.cli import terminal_output

    rows = [
        (each.stream, each.number, each.what, f"{each.since:%Y-%m-%d %H:%M}Z", "yes" if each.approved_at else "")
        for each in waiting
    ]
    console = terminal_output.out()
    if rows:
        columns = ("stream", "records", "what", "since", "approved")
        console.print(terminal_output.table("Removals", columns, rows, numbers=("records",)))
    else:
        console.print("no removal waits for approval")


def _told(removal: PendingRemoval) -> str:
    return f"{removal.what}: {counted(removal.number, 'record')}"


def _facts(removal: PendingRemoval) -> dict[str, Any]:
    return {
        "stream": removal.stream,
        "number": removal.number,
        "what": removal.what,
        "since": removal.since.isoformat(),
        "approved_at": removal.approved_at.isoformat() if removal.approved_at else None,
    }
