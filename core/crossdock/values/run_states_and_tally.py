"""What runs, records, rows and files are said to be: the words, with a sentence each, and their tally in a run.

The names are stored in the state and used in JSON. A test compares them with the code and the documentation. The tally
must balance for rows and for records (law 3); no term is computed by subtraction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Literal, Self


class StateWord(StrEnum):
    """A name and its sentence."""

    meaning: str

    def __new__(cls, name: str, meaning: str = "") -> Self:
        word = str.__new__(cls, name)
        word._value_, word.meaning = name, meaning
        return word

    @property
    def display_text(self) -> str:
        return self.value.replace("_", " ")

    @property
    def option_value(self) -> str:
        return self.value.replace("_", "-")


class RunState(StateWord):
    """The status of a run."""

    RUNNING = "running", "it is in progress: its process holds the lease on the state"
    DONE = "done", "it reached its end, and no record of its streams is open"
    DEGRADED = (
        "degraded",
        "it reached its end, but records are open, whichever run read them, or newer versions left to the next",
    )
    INCOMPLETE = (
        "incomplete",
        "it did not reach its end: an error stopped it or a stream, it was killed, or its end could not be recorded",
    )
    FAILED = "failed", "it could not begin, a defect ended it, or its tally does not balance"
    SKIPPED = "skipped", "a scheduled run that was not executed, as its schedule says"


class RecordState(StateWord):
    """The state of a record that is not delivered, or not known to be."""

    REJECTED = "rejected", "the mapping, the validation or the target refused it"
    WAITING = "waiting", "it refers to a record that is not delivered yet"
    PENDING = "pending", "an operation on it is stored, which the next run sends, or sends again"
    IN_DOUBT = "in_doubt", "an operation on it may or may not have been carried out"
    HANDED_OVER = "handed_over", "its file was handed over, and the partner has not acknowledged it yet"
    OVERDUE = "overdue", "its file was handed over, and the time in which the partner acknowledges it is over"
    UNVERIFIED = (
        "unverified",
        "the state was restored, or it was imported, and no run has compared it with its target and found it there yet",
    )
    DROPPED = "dropped", "a person has given it up; a new version from its source is processed"
    INBOX = "inbox", "a webhook named it, and it was not fetched yet"


BY_URGENCY = (
    RecordState.REJECTED,
    RecordState.WAITING,
    RecordState.IN_DOUBT,
    RecordState.OVERDUE,
    RecordState.PENDING,
    RecordState.UNVERIFIED,
    RecordState.HANDED_OVER,
    RecordState.DROPPED,
    RecordState.INBOX,
)
"""The states of records in the order of lists: what a person must look at comes first."""


class RowTerm(StateWord):
    """The decision about a row."""

    READ = "read", "it was read from the source"
    FILTERED = "filtered", "a filter of `skip` left it out; counted by filter"
    SUPERSEDED = "superseded", "a newer row of the same record took its place"
    REJECTED = "rejected", "it has no key, so it belongs to no record"
    IN_RECORDS = "in_records", "it is a part of a record"


class RecordTerm(StateWord):
    """The origin of a record in a run, and the decision about it."""

    CARRIED_OVER = "carried_over", "an earlier run left it open, and this run took it up"
    READ = "read", "it was read from the source"
    GONE = "gone", "its source does not list it any more, or marks it as deleted"
    UNCHANGED = "unchanged", "it is as it was when it was read before"
    SUPPRESSED = "suppressed", "its payload is the one that the target accepted last, so nothing was sent"
    CREATED = "created", "the target has created it"
    UPDATED = "updated", "the target has updated it"
    DELETED = "deleted", "the target has deleted it"
    HANDED_OVER = "handed_over", RecordState.HANDED_OVER.meaning
    ACKNOWLEDGED = "acknowledged", "it is an acknowledgement, which has settled what was handed over"
    REJECTED = "rejected", RecordState.REJECTED.meaning
    REPLACED = "replaced", "a newer version took its place before it was sent"
    IGNORED = (
        "ignored",
        "nothing was to be done: it is older than what is known, it is gone and left alone, or it was read twice",
    )
    DROPPED = "dropped", "a person has given it up"
    CARRIED_ON = "carried_on", "it is left to the next run: waiting, pending or in doubt, or not reached"


class InputState(StateWord):
    """The result of looking for files."""

    NEW = "new", "files with new content came"
    UNCHANGED = "unchanged", "a file came again with the content that was read before"
    NONE = "none", "no new file came"


class PlanTerm(StateWord):
    """The decision of a plan about a record, if it is no new request."""

    HOLD = "hold", "it is not sent: the update or removal exceeds a limit, and needs 'crossdock approve'"
    SEND = "send", "an operation is stored and was not sent yet"
    RESEND = "resend", "an operation is stored and was sent without an answer: it is sent again, or looked up first"
    DOUBT = "doubt", "an operation may have been carried out, which a person decides"
    WAIT = "wait", "it refers to a record that is not delivered yet"
    REJECT = "reject", "the mapping or the validation refuses it"
    ARCHIVE = "archive", "an update marks it as archived, because its source does not list it any more"
    GONE = "gone", "its source does not list it any more, and it is left alone"


_KINDS: Mapping[type[StateWord], str] = {
    RunState: "a run",
    RecordState: "a record",
    RecordTerm: "a record in the tally of a run",
    RowTerm: "a row in the tally of a run",
    InputState: "the files of a stream",
    PlanTerm: "a record in a plan",
}


def known_words() -> list[str]:
    """Return all words as reports show them, sorted."""
    return sorted({word.display_text for kind in _KINDS for word in kind})


def meanings_of_state_word(word: str) -> list[tuple[str, str]]:
    """Return what *word* is said of and what it means, once for each meaning; empty if no report shows it."""
    name = word.lower().replace(" ", "_").replace("-", "_")
    found: dict[str, str] = {}
    for kind, said_of in _KINDS.items():
        if name in {*kind}:
            found.setdefault(kind(name).meaning, said_of)
    return [(said_of, meaning) for meaning, said_of in found.items()]


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
