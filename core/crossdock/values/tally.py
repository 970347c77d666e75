"""The tally of a run, which must balance for rows and for records (law 3); no term is computed by subtraction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from crossdock.values.state_words import RecordState

Term = Literal[
    "carried_over", "read", "gone",
    "unchanged", "suppressed", "created", "updated", "deleted",
    "handed_over", "acknowledged",
    "rejected", "replaced", "ignored", "dropped", "carried_on",
]  # fmt: skip
IN: tuple[Term, ...] = ("carried_over", "read", "gone")
DELIVERED: tuple[Term, ...] = ("created", "updated", "deleted")
OUT: tuple[Term, ...] = (
    "unchanged", "suppressed", *DELIVERED, "handed_over", "acknowledged", "rejected", "replaced",
    "ignored", "dropped", "carried_on",
)  # fmt: skip


@dataclass(slots=True)
class Tally:
    """The tally of one stream in one run. *rows_filtered* is by filter, in their order.

    *parts* counts the parts of decided records that the mapping left out, changed or assumed, by what was done. They
    are not a term of the balance.
    """

    rows_read: int = 0
    rows_filtered: dict[str, int] = field(default_factory=dict)
    rows_superseded: int = 0
    rows_rejected: int = 0
    rows_in_records: int = 0
    records: Counter[Term] = field(default_factory=Counter)
    parts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> Self:
        rows, records = document["rows"], document["records"]
        terms = Counter({term: records[term] for term in (*IN, *OUT) if records.get(term)})
        counts = rows["read"], dict(rows["filtered"]), rows["superseded"], rows["rejected"], rows["in_records"]
        return cls(*counts, terms, Counter(document.get("parts", {})))

    def count(self, term: Term, number: int = 1) -> None:
        self.records[term] += number

    def take_rows(self, other: Tally) -> None:
        self.rows_read += other.rows_read
        for name, number in other.rows_filtered.items():
            self.rows_filtered[name] = self.rows_filtered.get(name, 0) + number
        self.rows_superseded += other.rows_superseded
        self.rows_rejected += other.rows_rejected
        self.rows_in_records += other.rows_in_records
        self.records.update(other.records)
        self.parts.update(other.parts)

    @property
    def delivered(self) -> int:
        return sum(self.records[term] for term in DELIVERED)

    @property
    def balanced(self) -> bool:
        rows = sum(self.rows_filtered.values()) + self.rows_superseded + self.rows_rejected + self.rows_in_records
        entered = sum(self.records[term] for term in IN)
        left = sum(self.records[term] for term in OUT)
        return self.rows_read == rows and entered == left

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": {
                "read": self.rows_read,
                "filtered": dict(self.rows_filtered),
                "superseded": self.rows_superseded,
                "rejected": self.rows_rejected,
                "in_records": self.rows_in_records,
            },
            "records": {term: self.records[term] for term in (*IN, *OUT)} | {"delivered": self.delivered},
            "parts": dict(sorted(self.parts.items())),
            "balanced": self.balanced,
        }


@dataclass(frozen=True, slots=True)
class OpenCounts:
    """Records that are not delivered and need a person or another run, by the states of ``crossdock records list``."""

    rejected: int = 0
    waiting: int = 0
    pending: int = 0
    in_doubt: int = 0
    overdue: int = 0
    unverified: int = 0

    @classmethod
    def of_json(cls, document: Mapping[str, int]) -> Self:
        return cls(**{name: document.get(name, 0) for name in cls.__slots__})

    def as_json(self) -> dict[str, int]:
        return asdict(self)

    @property
    def total(self) -> int:
        return sum(self.as_json().values())

    def __add__(self, other: OpenCounts) -> OpenCounts:
        theirs = other.as_json()
        return OpenCounts(**{name: number + theirs[name] for name, number in self.as_json().items()})

    def has_any_more_than(self, other: OpenCounts) -> bool:
        theirs = other.as_json()
        return any(number > theirs[name] for name, number in self.as_json().items())

    def __str__(self) -> str:
        """Format the counts, for example ``6 rejected, 45 waiting, 1 in doubt``, or ``none``."""
        counts = (f"{number:,} {RecordState(name).display_text}" for name, number in self.as_json().items() if number)
        return ", ".join(counts) or "none"


NOTHING_OPEN = OpenCounts()
