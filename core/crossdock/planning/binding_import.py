"""Bindings that crossdock did not make: told by a file, so that records are taken over and not created again."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TextIO

from crossdock.errors import ConfigError, RefusedError
from crossdock.field_types import MAX_ID_LENGTH, is_platform_id
from crossdock.planning.references import key_hashes
from crossdock.platform.platform_target import PlatformTarget
from crossdock.printable import printable
from crossdock.resources import RESOURCES
from crossdock.state import Binding, Scope, Transaction

COLUMNS = ("resource", "namespace", "key", "platform_id")
PART = 1000


def export(tx: Transaction, out: TextIO) -> int:
    """Write all live bindings as CSV with `COLUMNS`; how many."""
    writer, number = csv.writer(out, lineterminator="\n"), 0
    writer.writerow(COLUMNS)
    for scope, key, platform_id in tx.bindings.listed():
        writer.writerow((scope.resource, scope.namespace, key, platform_id))
        number += 1
    return number


def import_bindings(tx: Transaction, path: Path, *, at: datetime) -> int:
    """Bind the records of a CSV file with `COLUMNS`; keys in text form, as 'bindings export' writes them.

    What the platform holds of them is not known: the next sync sends every field of a record that may be changed,
    and nothing of an invoice. Nothing is bound unless the whole file is good.

    Returns:
        How many are new; those that are bound so already are no news.

    Raises:
        RefusedError: If a row is incomplete, names no resource, or contradicts a binding, with its line.
        ConfigError: If there is no such file.
    """
    run_id, number = tx.runs.start(business_date=at.date().isoformat(), at=at), 0
    for scope, rows in _read(path).items():
        for start in range(0, len(rows), PART):
            number += _bind(tx, scope, rows[start : start + PART], path, run_id=run_id, at=at)
    tx.runs.finish(run_id, status="done", requests=0, throttled=0, tally={}, error=None, at=at)
    return number


def _bind(
    tx: Transaction, scope: Scope, rows: list[tuple[int, str, str]], path: Path, *, run_id: int, at: datetime
) -> int:
    hashes = key_hashes([key for _, key, _ in rows])
    known = tx.bindings.ids(scope, list(hashes.values()))
    unsettled = {intent.identity.key_hash for intent in tx.intents.unsettled(scope)}
    owners = {
        platform_id: (namespace, key)
        for platform_id, namespace, _, key in tx.bindings.owners(
            scope.target, scope.resource, [platform_id for _, _, platform_id in rows]
        )
    }
    fresh = []
    for line, key, platform_id in rows:
        bound = known.get(hashes[key], platform_id)
        if bound != platform_id:
            raise RefusedError(f"{key} is bound to {bound} already", where=f"{path}:{line}")
        owner = owners.setdefault(platform_id, (scope.namespace, key))
        if owner != (scope.namespace, key):
            raise RefusedError(f"{platform_id} is bound to {':'.join(owner)} already", where=f"{path}:{line}")
        if hashes[key] in unsettled:
            hint = "'crossdock sync' sends it, or 'crossdock records resolve' says what became of it"
            raise RefusedError(f"an operation on {key} is not settled", where=f"{path}:{line}", hint=hint)
        if hashes[key] not in known:
            fresh.append(_unknown(hashes[key], key, platform_id))
    tx.bindings.put(scope, fresh, run_id=run_id, at=at)
    return len(fresh)


def _unknown(key_hash: int, key: str, platform_id: str) -> Binding:
    return Binding(
        key_hash=key_hash,
        key=key,
        platform_id=platform_id,
        fingerprint=None,
        position=None,
        step="import",
        payload={},
        etag=None,
        counter=0,
    )


def _read(path: Path) -> dict[Scope, list[tuple[int, str, str]]]:
    """Line, key and platform id of every row, by scope."""
    found: dict[Scope, list[tuple[int, str, str]]] = defaultdict(list)
    seen: dict[tuple[Scope, str], int] = {}
    for line, row in _rows(path):
        if row["resource"] not in RESOURCES or not all(row.values()):
            raise RefusedError(f"must have {', '.join(COLUMNS)}, and a known resource", where=f"{path}:{line}")
        if not is_platform_id(row["platform_id"]):
            told = f"platform_id must be 1 to {MAX_ID_LENGTH} printable characters, not '.' or '..'"
            raise RefusedError(told, where=f"{path}:{line}")
        scope = Scope(PlatformTarget.name, RESOURCES[row["resource"]].name, row["namespace"])  # type: ignore[index]  # it is one of them
        if (first := seen.setdefault((scope, row["key"]), line)) != line:
            raise RefusedError(f"names {row['key']} again, after line {first}", where=f"{path}:{line}")
        found[scope].append((line, row["key"], row["platform_id"]))
    return found


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file, strict=True)
            if next(reader, None) != list(COLUMNS):
                raise RefusedError(f"must begin with the line {','.join(COLUMNS)}", where=f"{path}:1")
            for cells in reader:
                if len(cells) != len(COLUMNS):
                    raise RefusedError(f"has {len(cells)} cells, not {len(COLUMNS)}", where=f"{path}:{reader.line_num}")
                if any(printable(cell) != cell for cell in cells):
                    raise RefusedError("has a character that cannot be seen", where=f"{path}:{reader.line_num}")
                yield reader.line_num, dict(zip(COLUMNS, cells, strict=True))
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path)) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise RefusedError(f"is no CSV in UTF-8: {error}", where=str(path)) from None
