"""Whether a snapshot shows that a record is gone: it must be whole, new, and hide no key (law 4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from crossdock.delta.scan import Scan
from crossdock.project.project import BoundStream
from crossdock.records import Proof, RawBatch
from crossdock.state import Intent, PastSnapshot, Transaction, WaitingRecord
from crossdock.state.tables.snapshot_history import COMPARED_SNAPSHOTS
from crossdock.tally import Tally


class Completeness:
    """What the source itself says of a snapshot's wholeness; noted while its batches pass."""

    def __init__(self) -> None:
        self._proofs: set[Proof | None] = set()

    def watched(self, batches: Iterable[RawBatch]) -> Iterator[RawBatch]:
        for batch in batches:
            self._proofs.add(batch.proof)
            yield batch

    @property
    def counted(self) -> bool:
        return bool(self._proofs) and all(proof is not None and proof.counted for proof in self._proofs)

    @property
    def cut(self) -> bool:
        return any(proof is not None and proof.cut for proof in self._proofs)

    def content(self) -> str | None:
        """What names the snapshot's content; None where it is not of one piece that has a name."""
        names = {proof.content() if proof else None for proof in self._proofs}
        return names.pop() if len(names) == 1 else None


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """What a run has read of a snapshot, and what it knows beside it.

    Attributes:
        rows: The rows' account.
        unsettled: Operations of the stream's records that are not settled.
    """

    scan: Scan
    completeness: Completeness
    rows: Tally
    waiting: Sequence[WaitingRecord]
    unsettled: Sequence[Intent]

    @property
    def source(self) -> str:
        return self.scan.sources[0]


@dataclass(frozen=True, slots=True)
class Blocker:
    """Why a snapshot does not show that a record is gone."""

    message: str
    hint: str | None = None
    is_grave: bool = True


def blocker(tx: Transaction, bound: BoundStream, found: SnapshotFacts, nameless: int) -> Blocker | None:
    """Why what was found does not show that a record is gone; None if it does.

    Args:
        nameless: Rows without a key that a filter left out.
    """
    completeness, keyless = found.completeness, found.rows.rows_rejected + nameless
    if found.scan.latest.is_empty():
        return Blocker("no record is left in the snapshot", "an empty list is no evidence")
    if keyless:
        rows = "1 row has" if keyless == 1 else f"{keyless:,} rows have"
        return Blocker(f"{rows} no key, and may be theirs", "have the sender mend them")
    content = completeness.content()
    if content is not None and tx.snapshots.knows(bound.name, content):
        said = "the same bytes were worked through on an earlier day"
        return Blocker(said, "ask the sender whether it is tonight's")
    latest = tx.snapshots.latest(bound.name, COMPARED_SNAPSHOTS)
    if not latest or latest[0].present is None:
        return Blocker("it is the first snapshot that may, and there is nothing to compare it with", is_grave=False)
    return None if completeness.counted else _doubt_without_count(bound, found, latest)


def _doubt_without_count(bound: BoundStream, found: SnapshotFacts, latest: Sequence[PastSnapshot]) -> Blocker | None:
    """Why a snapshot whose source does not count its rows may not be whole."""
    if found.completeness.cut:
        hint = "a trailer with the number of rows proves what is whole"
        return Blocker("the last line does not end, as if it was cut", hint)
    if len(latest) < COMPARED_SNAPSHOTS:
        said = (
            f"no trailer shows that it is whole, and {len(latest)} of {COMPARED_SNAPSHOTS} earlier snapshots are known"
        )
        return Blocker(said, is_grave=False)
    rows, within = found.rows.rows_read, bound.stream.gone.rows_within_percent
    if any(abs(rows - past.rows) * 100 > within * past.rows for past in latest):
        earlier = ", ".join(f"{past.rows:,}" for past in latest)
        hint = (
            f"the difference exceeds gone.rows_within_percent ({within:g});"
            f" after {COMPARED_SNAPSHOTS} snapshots of this size it is accepted"
        )
        return Blocker(f"it has {rows:,} rows, and the latest ones had {earlier}", hint)
    return None
