"""``crossdock audit``: what people have changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import FleetStates, read_state_of_config
from crossdock.cli.shared_options_messages_and_signals import (
    MOST,
    UtcTime,
    common_options,
    explicitly_given_fleet_base_files,
    fleet_option,
    help_example,
    print_counts_if_not_all_shown,
    raise_if_value_not_utf8,
)

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.state import AuditEntry, AuditFilter, Transaction


@click.command(
    epilog=help_example(
        "crossdock audit",
        "crossdock audit --since 2026-03-01 --action records",
        "crossdock -C base.yaml audit --fleet 'tenants/*.yaml' --person ann",
    )
)
@click.option("--since", type=UtcTime(), help="Only from this time on (UTC).")
@click.option("--person", metavar="NAME", callback=raise_if_value_not_utf8, help="Only what this person did.")
@click.option(
    "--action",
    metavar="TEXT",
    callback=raise_if_value_not_utf8,
    help="Only this command, or group: 'records drop', or 'records'.",
)
@click.option("--limit", type=click.IntRange(1, MOST), default=20, show_default=True, help="Entries to list.")
@fleet_option
@common_options
def audit(
    config: Path,
    *,
    since: datetime | None,
    person: str | None,
    action: str | None,
    limit: int,
    fleet: str | None,
    as_json: bool,
) -> int:
    """List what people have changed, newest first: who, when, what, and how it ended.

    Commands that only read, and runs of the schedule, are not listed. Whoever has seen personal data in the console is.
    """
    from crossdock.state import AuditFilter

    choice = AuditFilter(person, action, since.replace(tzinfo=UTC) if since else None)
    if fleet is None:
        with read_state_of_config(config) as (tx, _):
            found, total = _entries_and_total(tx, choice, limit)
        _print_audit_entries([("", entry) for entry in found], total, of_fleet=False, as_json=as_json)
        return 0
    states = FleetStates(fleet, explicitly_given_fleet_base_files(config))
    of_tenants = dict(states.read_each_tenant(partial(_entries_and_total_of_tenant, choice=choice, limit=limit)))
    of_fleet = [(tenant, entry) for tenant, (entries, _) in of_tenants.items() for entry in entries]
    newest = sorted(of_fleet, key=lambda each: (each[1].at, each[0], each[1].id), reverse=True)[:limit]
    _print_audit_entries(newest, sum(total for _, total in of_tenants.values()), of_fleet=True, as_json=as_json)
    return states.exit_code


def _entries_and_total_of_tenant(loaded: Project, choice: AuditFilter, limit: int) -> tuple[list[AuditEntry], int]:
    with loaded.read_state() as tx:
        return _entries_and_total(tx, choice, limit)


def _entries_and_total(tx: Transaction, choice: AuditFilter, limit: int) -> tuple[list[AuditEntry], int]:
    return tx.audit_log.listed(choice, limit=limit), tx.audit_log.count(choice)


def _print_audit_entries(found: Sequence[tuple[str, AuditEntry]], total: int, *, of_fleet: bool, as_json: bool) -> None:
    from crossdock.runs import audit_log

    if as_json:
        documents = [
            ({"tenant": tenant} if of_fleet else {}) | audit_log.audit_entry_document(entry) for tenant, entry in found
        ]
        terminal_output.print_json(documents)
    else:
        rows = [
            (tenant, entry.at, entry.person, audit_log.audit_entry_text(entry), entry.outcome)
            for tenant, entry in found
        ]
        columns = ("tenant", "when", "who", "what", "outcome")
        terminal_output.output_console().print(terminal_output.make_fitting_table("Audit log", columns, rows))
    print_counts_if_not_all_shown(len(found), total, "entries", err=as_json)
