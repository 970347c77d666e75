"""The report of a signed-off migration, as a plain document without data or keys of records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from importlib.metadata import version
from typing import Any

from msgspec import Struct

from crossdock.config.project.project import Project
from crossdock.migration.waves import WaveStatus
from crossdock.state import Migration, MigrationRun, RecordFilter, Transaction, WaveApproval

FORMAT = "crossdock sign-off 1"
PLACES = 100  # the most places listed for records that were rejected for one reason

Document = dict[str, Any]


class Signature(Struct, frozen=True):
    """Who signs, when, and why exceptions are accepted; None if they are not."""

    by: str
    at: datetime
    accepted: str | None = None


def sign_off_report(
    tx: Transaction,
    project: Project,
    migration: Migration,
    waves: Sequence[WaveStatus],
    sources: Mapping[str, str],
    signature: Signature,
) -> Document:
    """Make the report for canonical JSON: times as instants, numbers exact. *sources* has a hash for each stream."""
    streams = sorted(name for wave in waves for name in wave.wave.streams)
    exceptions = summarize_exceptions(tx, project, migration, waves)
    return {
        "format": FORMAT,
        "crossdock": version("crossdock"),
        "migration": {
            "name": migration.name,
            "tenant": project.pinned_tenant.tenant,
            "base_url": project.pinned_tenant.base_url,
            "started_at": migration.started_at,
            "started_by": migration.started_by,
            "signed_off_at": signature.at,
            "signed_off_by": signature.by,
            "accepted_exceptions": signature.accepted if counts_of_exceptions_to_accept(exceptions) else None,
        },
        "rehearsal": migration.rehearsal,
        "waves": list(_wave_entries(waves, tx.migrations.approval_by_wave(migration.id))),
        "runs": [_run_entry(tx, run) for run in tx.migrations.runs(migration.id)],
        "reconciliation": _reconciliation_without_ids(migration.reconciliation),
        "freeze": migration.freeze,
        "sources": dict(sources),
        "exceptions": exceptions,
        "already_there": tx.migration_outcome.unneeded_write_counts(migration.id),
        "files": [file for name in streams for file in _imported_files(tx, name)],
    }


def counts_of_exceptions_to_accept(exceptions: Mapping[str, Any]) -> dict[str, int]:
    """Count the exceptions that a person must accept, by kind.

    Records that a person has dropped, or a config keeps, are decided already. A rejected or waiting record is in the
    state, and also a difference if its stream can be compared. It counts once.
    """
    found = Counter[str]()
    for each in exceptions["differences"]:
        found[each["class"]] += each["records"]
    for name in ("rejected", "waiting"):
        found[name] = max(found[name], sum(each["records"] for each in exceptions[name]))
    found["without a file"] = len(exceptions["without_file"])
    return {name: number for name, number in sorted(found.items()) if number}


def _wave_entries(waves: Sequence[WaveStatus], approvals: Mapping[str, WaveApproval]) -> Iterator[Document]:
    for each in waves:
        wave, gate, approval = each.wave, each.wave.gate, approvals.get(each.wave.name)
        yield {
            "wave": wave.name,
            "streams": sorted(wave.streams),
            "state": each.state,
            "records": each.records,
            "delivered": each.delivered,
            "open": each.open.as_json(),
            "gate": {
                "state": each.gate and each.gate.state,
                "why": each.gate and each.gate.why,
                "rejected_at_most": gate.rejected_at_most,
                "rejected_at_most_percent": Decimal(str(gate.rejected_at_most_percent)),
                "person": gate.person,
            },
            "approval": approval
            and {"at": approval.approved_at, "by": approval.approved_by, "open": approval.open.as_json()},
        }


def _run_entry(tx: Transaction, run: MigrationRun) -> Document:
    found = tx.runs.get(run.run_id)
    assert found is not None  # the state refers to it
    return {
        "run": run.run_id,
        "kind": run.kind,
        "wave": run.wave,
        "started_at": found.started_at,
        "ended_at": found.finished_at,
        "status": found.status,
        "requests": found.requests,
        "throttled": found.throttled,
        "streams": {
            name: {"rows": tally["rows"], "records": tally["records"]} for name, tally in (found.tally or {}).items()
        },
    }


def _reconciliation_without_ids(facts: Mapping[str, Any] | None) -> Document | None:
    """Remove the ids of products and customers whose totals differ."""
    if facts is None:
        return None
    totals = {
        resource: {name: side for name, side in sides.items() if name != "differing"}
        for resource, sides in facts["totals"].items()
    }
    return {**facts, "totals": totals}


def summarize_exceptions(
    tx: Transaction, project: Project, migration: Migration, waves: Sequence[WaveStatus]
) -> Document:
    """Return what differs, was rejected or waits, and what was not read, by the last reconciliation and the state."""
    streams = sorted(name for wave in waves for name in wave.wave.streams)
    found = migration.reconciliation or {"differences": [], "kept": {}}
    reads_files = {name for name in streams if project.stream(name).reads_files}
    return {
        "differences": found["differences"],
        "kept": found["kept"],
        "unavailable": found.get("unavailable", {}),  # which older versions did not store
        "without_file": sorted(name for wave in waves for name in wave.without_file),
        "waiting": [each for name in streams for each in _waiting_counts(tx, name)],
        **_dead_letter_counts_and_places(tx, streams, reads_files),
    }


def _dead_letter_counts_and_places(
    tx: Transaction, streams: Sequence[str], reads_files: Collection[str]
) -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = {"rejected": [], "dropped": []}
    for group in tx.migration_outcome.dead_letter_counts(streams):
        is_file = group.stream in reads_files
        places = tx.migration_outcome.dead_letter_files_and_lines(group, limit=PLACES, reads_files=is_file)
        found[group.status].append(
            {
                "stream": group.stream,
                "code": group.code,
                "records": group.records,
                "places": [f"{name}:{line}" for name, line in places],
            }
        )
    return found


def _waiting_counts(tx: Transaction, stream: str) -> Iterator[Document]:
    numbers = Counter[str]()
    for count in tx.waiting_records.counts_by_awaited_records(RecordFilter(stream)):
        numbers[", ".join(sorted({each["resource"] for each in count.waits_for}))] += count.number
    for resources, number in sorted(numbers.items()):
        yield {"stream": stream, "for": resources, "records": number}


def _imported_files(tx: Transaction, stream: str) -> Iterator[Document]:
    """Yield each file of *stream* once, for all versions of its mapping that have imported it."""
    seen = set[tuple[str, str]]()
    for file in tx.intake.known_files(stream):
        if (file.name, file.content_hash) not in seen:
            seen.add((file.name, file.content_hash))
            yield {
                "stream": stream,
                "name": file.name,
                "size": file.size,
                "sha256": file.content_hash,
                "modified_at": file.modified_at,
                "imported_at": file.accepted_at,
            }
