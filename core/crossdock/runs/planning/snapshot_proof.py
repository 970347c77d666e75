"""The proof that a record is gone: the snapshot or list of keys must be complete, new, and hide no key (law 4)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import polars as pl
from msgspec import Struct

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.errors import CrossdockError
from crossdock.state import Intent, PastSnapshot, State, Transaction, Wait
from crossdock.state.tables.inputs_of_streams import COMPARED_SNAPSHOTS
from crossdock.values.raw_rows_and_records import Proof, RawBatch

FEWER_ROWS = 10  # a snapshot that lacks fewer rows is never called short, so that small sets do not warn


class Completeness:
    """Collects facts about the completeness of a snapshot while its batches are read.

    `doubt` is why records may be missing. `look_again` looks for such a reason at the source, which is slow, before
    records count as gone.
    """

    def __init__(self) -> None:
        self._proofs: set[Proof | None] = set()
        self.doubt: CrossdockError | None = None
        self.look_again: Callable[[pl.Series], CrossdockError | None] = lambda _: None

    def collect_proofs(self, batches: Iterable[RawBatch]) -> Iterator[RawBatch]:
        for batch in batches:
            self._proofs.add(batch.proof)
            yield batch

    def recheck_source_and_note_doubt(self, bound: BoundStream, missing: pl.Series) -> None:
        """Look at the source once more for *missing*, by their key hashes. A doubt is an error of the stream."""
        if self.doubt is None and (doubt := self.look_again(missing)) is not None:
            self.doubt = bound.context.run.failures.setdefault(bound.name, doubt)

    @property
    def has_proved_counts(self) -> bool:
        return bool(self._proofs) and all(proof is not None and proof.counted for proof in self._proofs)

    @property
    def may_be_truncated(self) -> bool:
        return any(proof is not None and proof.cut for proof in self._proofs)

    @property
    def unread(self) -> str:
        """What was not read and may belong to the snapshot; empty if there is nothing of the kind."""
        return ", ".join(sorted({proof.unread for proof in self._proofs if proof is not None and proof.unread}))

    def content_name(self) -> str | None:
        """Return the content name of the snapshot; None if its parts have none, or several."""
        names = {proof.content() if proof else None for proof in self._proofs}
        return names.pop() if len(names) == 1 else None

    def hashed_export_or_content_name(self) -> str | None:
        """Return the name of this export, or of the content if exports have no names; None as for `content_name`."""
        names = {(proof.export or proof.content()) if proof else None for proof in self._proofs}
        name = names.pop() if len(names) == 1 else None
        return None if name is None else hashlib.sha256(name.encode()).hexdigest()


class SnapshotFacts(Struct, frozen=True):
    """A snapshot that was read, and the open items of the stream.

    `filtered` returns those of given key hashes that the filtered rows have, or that exist although the list lacks
    them, and the number of filtered rows without a key. It is slow, and None if there are no such records.
    """

    source: str
    rows: int
    without_key: int
    records: int
    completeness: Completeness
    waiting: Sequence[Wait]
    unsettled: Sequence[Intent]
    filtered: Callable[[pl.Series], tuple[pl.Series, int]] | None = None
    name: Literal["snapshot", "full list", "list of existing records"] = "snapshot"


class Blocker(Struct, frozen=True):
    """Why a snapshot does not prove that a record is gone. If it `ends_by_itself`, a later snapshot may prove it."""

    message: str
    hint: str | None = None
    ends_by_itself: bool = False
    may_be_approved: bool = True


def find_removal_blocker(
    tx: Transaction, bound: BoundStream, found: SnapshotFacts, filtered_without_key: int
) -> Blocker | None:
    completeness, without_key = found.completeness, found.without_key + filtered_without_key
    if completeness.doubt is not None:
        return Blocker(completeness.doubt.message, completeness.doubt.hint, ends_by_itself=True)
    is_declared = not found.rows and bound.stream.empty == "all_gone"
    if not found.records and not is_declared:
        message = f"the {found.name} lists no records"
        return Blocker(message, f"an empty {found.name} never removes records", may_be_approved=False)
    if (hidden := _blocker_of_hidden_keys(found, without_key)) is not None:
        return hidden
    content = completeness.content_name()
    if content is not None and tx.snapshots.was_snapshot_read_before(bound.name, content):
        message = f"the {found.name} is identical to one that an earlier run processed"
        return Blocker(message, "ask the sender whether the file is current")
    past = tx.snapshots.latest_snapshots(
        bound.name, COMPARED_SNAPSHOTS, without=completeness.hashed_export_or_content_name()
    )
    if not past or past[0].present is None:
        message = f"this is the first {found.name} that on_gone applies to, so there is none to compare it with"
        return Blocker(message, ends_by_itself=True)
    return None if completeness.has_proved_counts or is_declared else _blocker_without_count(bound, found, past)


def _blocker_of_hidden_keys(found: SnapshotFacts, without_key: int) -> Blocker | None:
    if without_key:
        rows = "1 row has" if without_key == 1 else f"{without_key:,} rows have"
        return Blocker(f"{rows} no key and may belong to a missing record", "ask the sender to fix the rows")
    if unread := found.completeness.unread:
        message = f"the {found.name} may have more than was read: {unread}"
        return Blocker(message, "let the config read what belongs to it, or ask the sender for the usual names")
    return None


def _blocker_without_count(bound: BoundStream, found: SnapshotFacts, past: Sequence[PastSnapshot]) -> Blocker | None:
    if found.completeness.may_be_truncated:
        hint = "a trailer with the number of rows proves that a file is complete"
        return Blocker("the last line has no line break, so the file may be truncated", hint)
    if len(past) < COMPARED_SNAPSHOTS:
        message = f"without a stated number of rows, {COMPARED_SNAPSHOTS} earlier ones are needed to compare with"
        known = f"known: {len(past)}"
        if found.completeness.content_name() is not None:
            known += "; identical ones in which nothing was gone count once"
        return Blocker(f"{message} ({known})", ends_by_itself=True)
    rows, within = found.rows, bound.stream.gone.rows_within_percent
    if any(abs(rows - earlier.rows) * 100 > within * earlier.rows for earlier in past):
        hint = (
            f"the difference exceeds gone.rows_within_percent ({within:g});"
            f" the new size is accepted once {COMPARED_SNAPSHOTS} in a row have it"
        )
        earlier_rows = ", ".join(f"{earlier.rows:,}" for earlier in past)
        return Blocker(f"the {found.name} has {rows:,} rows; the previous ones had {earlier_rows}", hint)
    return None


def fewer_rows_warning(bound: BoundStream, rows: int, past: Sequence[PastSnapshot]) -> str | None:
    """Return a sentence if a snapshot of *rows* is much shorter than each of the *past* ones, or None."""
    percent = bound.stream.fewer_rows_percent
    if not past or any((earlier.rows - rows) * 100 <= percent * earlier.rows for earlier in past):
        return None
    if min(earlier.rows for earlier in past) - rows < FEWER_ROWS:
        return None
    earlier_rows = ", ".join(f"{earlier.rows:,}" for earlier in past)
    return (
        f"the snapshot has {rows:,} rows; the previous ones had {earlier_rows} (newest first), which is more than"
        f" fewer_rows_percent ({percent:g}) fewer: ask the sender whether the export is complete"
    )


def other_keys_warning(known: int, gone: int, new: int) -> str | None:
    """Return a sentence if a snapshot lists other keys than the *known* ones, or None."""
    if new < FEWER_ROWS or min(gone, new) * 2 <= known:
        return None
    return (
        f"the snapshot lists {new:,} new records, and {gone:,} of {known:,} known ones are gone: ask the sender whether"
        " the columns of the key have changed"
    )


def remember_snapshot(
    tx: Transaction, bound: BoundStream, rows: int, completeness: Completeness, run_id: int, *, unproved: bool
) -> None:
    """Store what later snapshots are compared with. An *unproved* one is known by its export, not by its content."""
    content, export = completeness.content_name(), completeness.hashed_export_or_content_name()
    name = (export if unproved else content) or f"run-{run_id}"
    counts = bound.stream.on_gone != "nothing"  # which is slow for many records
    past = PastSnapshot(rows, tx.snapshots.count_records_present_at_target(bound.scope) if counts else None)
    tx.snapshots.record_snapshot(bound.name, name, past, at=bound.context.run.clock.now(), instead_of=export)


def warn_if_unlike_past_snapshots(
    bound: BoundStream, state: State, completeness: Completeness, rows: int, known: int, gone: int, new: int
) -> None:
    with state.begin_read_only() as tx:
        past = tx.snapshots.latest_snapshots(
            bound.name, COMPARED_SNAPSHOTS, without=completeness.hashed_export_or_content_name()
        )
    for text in (fewer_rows_warning(bound, rows, past), other_keys_warning(known, gone, new)):
        if text is not None:
            bound.context.run.warn(bound.name, text, code="snapshot_differs")
