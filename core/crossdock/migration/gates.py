"""Gates: whether a migration may continue after a wave, as arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from crossdock.config.project.migration_config import Gate
from crossdock.state import WaveApproval
from crossdock.values.tally import OpenCounts

GateState = Literal["open", "closed", "waits for a person", "approved"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision of a gate."""

    state: GateState
    why: str

    @property
    def word(self) -> str:
        """The decision for people, in a word that does not resemble an open record."""
        return "passed" if self.state == "open" else self.state

    @property
    def passes(self) -> bool:
        return self.state in {"open", "approved"}


def verdict(gate: Gate, open_records: OpenCounts, records: int, approval: WaveApproval | None) -> Verdict:
    """Decide about a wave that was loaded to its end.

    Args:
        records: The number of known records of the wave's streams, delivered or open, read by any run.
        approval: The approval of a person. It is valid as long as no more is open than when it was given.
    """
    found = f"{open_records.total:,} of {records:,} records open ({open_records})"
    if approval is not None and not open_records.exceeds(approval.open):
        return Verdict("approved", f"{found}; {approval.approved_by} let it go on")
    if not _is_within(gate, open_records.total, records):
        more = "; more than when a person let it go on" if approval is not None else ""
        return Verdict("closed", f"{found}; {_limit(gate)} may be{more}")
    if gate.person:
        return Verdict("waits for a person", found)
    return Verdict("open", found)


def _limit(gate: Gate) -> str:
    """Describe how many records may be open. A limit of 0 is left out if there is another one."""
    number, percent = gate.rejected_at_most, gate.rejected_at_most_percent
    given = [text for limit, text in ((number, f"{number:,}"), (percent, f"{percent:g} %")) if limit]
    return "at most " + " or ".join(given) if given else "none"


def _is_within(gate: Gate, number: int, records: int) -> bool:
    return number <= gate.rejected_at_most or number * 100 <= gate.rejected_at_most_percent * records
