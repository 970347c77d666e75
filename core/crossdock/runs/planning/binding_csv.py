"""Export of bindings to CSV, and import: records that a target already has are not created again.

A row without resource and namespace has the number of the last file of its target, after which the state goes on. Rows
of such a target have the fingerprint of what it was given: one that takes files cannot be asked what it holds.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TextIO

from crossdock.config.project.project import KnownNamespaces
from crossdock.delta.fingerprint import key_hashes
from crossdock.errors import ConfigError, RefusedError
from crossdock.printable import printable
from crossdock.runs.planning.references import ScopedKey
from crossdock.runs.planning.undo_in_progress import RESUME, raise_if_undo_in_progress
from crossdock.state import Binding, RunResult, Scope, Transaction
from crossdock.values.field_types import MAX_ID_LENGTH, is_valid_target_id
from crossdock.values.formula_guarded_csv import unguard_formulas, write_csv_rows_guarding_formulas
from crossdock.values.record_keys import key_text, key_text_of_input
from crossdock.writing.targets.target import Target

COLUMNS = ("target", "resource", "namespace", "key", "target_id")
FINGERPRINT = "fingerprint"  # a further column
LAST_FILE = "number of the last file"  # in place of a key
PART = 1000
_MAX_DIGITS = 18  # of a number in the state

_Row = tuple[str, str, str, int | None]  # place in the file, key, target id, fingerprint
_FINGERPRINT_FORM = re.compile(r"fp-([0-9a-f]{32})")  # a spreadsheet would take digits for a number


def export_bindings(tx: Transaction, out: TextIO, *, raw: bool = False) -> int:
    """Write all live bindings as CSV with `COLUMNS`, with unescaped formulas if *raw*, and return their number."""
    listed, last = tx.bindings.listed(), tx.batches.last_numbers_by_target()
    rows = (
        (*scope.columns.values(), key, target_id, *(_fingerprint_cells(found) if scope.target in last else ()))
        for scope, key, target_id, found in listed
    )
    numbers = ((target, "", "", LAST_FILE, str(number)) for target, number in last.items())
    header = (*COLUMNS, FINGERPRINT) if last else COLUMNS
    return write_csv_rows_guarding_formulas(out, chain([header], rows, numbers), raw=raw) - 1 - len(last)


def _fingerprint_cells(found: int | None) -> tuple[str, ...]:
    return () if found is None else (f"fp-{found:032x}",)


def import_bindings(
    tx: Transaction,
    path: Path,
    targets: Mapping[str, Target],
    *,
    at: datetime,
    raw: bool = False,
    namespaces: KnownNamespaces | None = None,
) -> int:
    """Bind the records of a CSV file with `COLUMNS`, all or none, and return the number of new bindings.

    Keys are in text form, as `export_bindings` writes them with the same *raw*, or as their only column is in the
    source. What the target holds is unknown, so the next sync compares the records with it first. Then it sends every
    member of a record that can be updated, and nothing for one that is written once. A record of a target that cannot
    be compared with it is unchanged as long as its rows have the fingerprint of the file. A record whose id the
    target does not have stays unverified, until another import corrects it. A row with none of *namespaces* is refused;
    None allows any.
    """
    raise_if_undo_in_progress(tx)
    run_id, number = tx.runs.start(business_date=at.date().isoformat(), at=at, command="bindings import"), 0
    found, last_numbers = _read_rows(path, targets, namespaces, raw=raw)
    for target, last in last_numbers.items():
        tx.batches.use_up_numbers_to(target, last)
    for scope, rows in found.items():
        for start in range(0, len(rows), PART):
            is_readable = targets[scope.target].resources[scope.resource].endpoint.reads
            fresh = _new_bindings(tx, scope, rows[start : start + PART], keeps_fingerprints=not is_readable)
            tx.bindings.put(scope, fresh, run_id=run_id, at=at)
            if is_readable and targets[scope.target].resources[scope.resource].holds_records:
                tx.unverified.mark_bindings_and_resource(scope, fresh)
            number += len(fresh)
        for name, kind in targets[scope.target].resources.items():
            if scope.resource in kind.parents and kind.holds_records:
                tx.unverified.mark_resource(scope.target, name)  # which of them refer to these is unknown
    tx.runs.finish(run_id, RunResult("done"), at=at)
    return number


def _new_bindings(tx: Transaction, scope: Scope, rows: list[_Row], *, keeps_fingerprints: bool) -> list[Binding]:
    hashes = key_hashes([key for _, key, *_ in rows])
    known = tx.bindings.target_id_by_key_hash(scope, list(hashes.values()))
    correctable = tx.bindings.unverified_imports_among(scope, list(known))
    unsettled = {intent.identity.key_hash for intent in tx.intents.unsettled_in_scope(scope)}
    found = tx.bindings.records_of_target_ids(scope.target, scope.resource, [target_id for _, _, target_id, _ in rows])
    owners = {target_id: (namespace, key) for target_id, namespace, _, key in found}
    fresh = []
    for where, key, target_id, found_fingerprint in rows:
        key_hash = hashes[key]
        is_corrected = known.get(key_hash, target_id) != target_id
        if is_corrected and key_hash not in correctable:
            bound = known[key_hash]
            raise ConfigError(f"{key} is already bound to {bound}", where=where, code="bindings_conflict")
        owner = owners.setdefault(target_id, (scope.namespace, key))
        if owner != (scope.namespace, key):
            raise ConfigError(
                f"{target_id} is already bound to {':'.join(owner)}", where=where, code="bindings_conflict"
            )
        if key_hash in unsettled:
            hint = f"send it: {RESUME}; record its outcome: crossdock records resolve; or give it up: crossdock records"
            hint = f"{hint} drop"
            raise RefusedError(f"an operation on {key} is not settled", where=where, hint=hint, code="operations_left")
        if is_corrected or key_hash not in known:
            kept = found_fingerprint if keeps_fingerprints else None
            fresh.append(Binding(key_hash, key, target_id, kept, None, "import", {}, None, 0))
    return fresh


def _read_rows(
    path: Path, targets: Mapping[str, Target], namespaces: KnownNamespaces | None, *, raw: bool
) -> tuple[dict[Scope, list[_Row]], dict[str, int]]:
    """Return the bindings by scope, and the number of the last file by target."""
    found: dict[Scope, list[_Row]] = defaultdict(list)
    last_numbers: dict[str, int] = {}
    lines: dict[ScopedKey, int] = {}
    for line, (target, resource, namespace, written, target_id, fingerprint) in _read_csv_lines(path, raw=raw):
        where = f"{path}:{line}"
        if (resource, namespace, written) == ("", "", LAST_FILE):
            _raise_if_target_unknown(target, targets, where)
            last_numbers[target] = max(_parse_number(target_id, where), last_numbers.get(target, 0))
            continue
        if not (target and resource and namespace and written and target_id):
            raise ConfigError(
                f"needs a value in each of {', '.join(COLUMNS)}", where=where, code="bindings_file_invalid"
            )
        if not is_valid_target_id(target_id):
            message = f"target_id must be 1 to {MAX_ID_LENGTH} printable characters, not '.' or '..'"
            raise ConfigError(message, where=where, code="bindings_file_invalid")
        scope, key = Scope(target, resource, namespace), _parse_key_or_raise_if_ambiguous(written, where)
        _raise_if_scope_unknown(scope, targets, namespaces, where)
        if (first := lines.setdefault((scope, key), line)) != line:
            raise ConfigError(f"duplicate of {key} on line {first}", where=where, code="bindings_file_invalid")
        found[scope].append((where, key, target_id, _parse_fingerprint(fingerprint, where)))
    return found, last_numbers


def _parse_number(text: str, where: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS):
        message = f"the {LAST_FILE} must have digits only, at most {_MAX_DIGITS}"
        raise ConfigError(message, where=where, code="bindings_file_invalid")
    return int(text)


def _parse_fingerprint(text: str, where: str) -> int | None:
    if not text:
        return None
    if (found := _FINGERPRINT_FORM.fullmatch(text)) is None:
        raise ConfigError(
            f"a {FINGERPRINT} must be as 'crossdock bindings export' writes it, or empty",
            where=where,
            code="bindings_file_invalid",
        )
    return int(found[1], 16)


def _parse_key_or_raise_if_ambiguous(written: str, where: str) -> str:
    """Return the text form of a key. One that may be of one column or of several is refused: it could bind nothing."""
    key = key_text_of_input(written)
    if "|" in written and key != written:
        several = key_text(written.split("|"))
        hint = f"write {several} if | separates columns, or {key} if the key is one column"
        raise ConfigError(
            f"the key {written} has a | and is not percent-encoded",
            where=where,
            hint=hint,
            code="bindings_file_invalid",
        )
    return key


def _raise_if_scope_unknown(
    scope: Scope, targets: Mapping[str, Target], namespaces: KnownNamespaces | None, where: str
) -> None:
    _raise_if_target_unknown(scope.target, targets, where)
    if scope.resource not in (resources := targets[scope.target].resources):
        raise ConfigError(
            f"unknown resource {scope.resource!r}; known: {', '.join(resources)}",
            where=where,
            code="bindings_file_invalid",
        )
    if namespaces is not None and (namespace := scope.whole_record_scope.namespace) not in namespaces:
        hint = "a binding there is never used: correct it, add its connection to the config first, or leave out the row"
        raise ConfigError(
            f"no stream writes in the namespace {namespace!r}; known: {', '.join(sorted(namespaces.written))}",
            where=where,
            hint=hint,
            code="bindings_file_invalid",
        )


def _raise_if_target_unknown(target: str, targets: Mapping[str, Target], where: str) -> None:
    if target not in targets:
        message = f"unknown target {target!r}; known: {', '.join(targets)}"
        raise ConfigError(message, where=where, code="bindings_file_invalid")


def _read_csv_lines(path: Path, *, raw: bool) -> Iterator[tuple[int, list[str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, None)
            if header not in ([*COLUMNS], [*COLUMNS, FINGERPRINT]):
                raise ConfigError(
                    f"the first line must be {','.join(COLUMNS)}", where=f"{path}:1", code="bindings_file_invalid"
                )
            for cells in reader:
                where = f"{path}:{reader.line_num}"
                if not len(COLUMNS) <= len(cells) <= len(header):
                    raise ConfigError(
                        f"has {len(cells)} cells; expected {len(header)}", where=where, code="bindings_file_invalid"
                    )
                if any(printable(cell) != cell for cell in cells):
                    raise ConfigError(
                        "has a character that is not printable", where=where, code="bindings_file_invalid"
                    )
                whole = [*cells, *[""] * (1 + len(COLUMNS) - len(cells))]
                yield reader.line_num, whole if raw else list(map(unguard_formulas, whole))
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path), code="file_unreadable") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"is not CSV in UTF-8: {error}", where=str(path), code="bindings_file_invalid") from None
