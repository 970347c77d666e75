"""Which member of which system a stream writes from which, so that no member flows in both directions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True, slots=True)
class MemberFlow:
    """What a stream moves from the records of one system to those of another.

    Attributes:
        stream: Its full name.
        read: The resource that it reads, such as ``platform.order``.
        written: The resource that it writes.
        members: The columns that each written member is made of.
        contributes: It writes members of records that another stream creates.
    """

    stream: str
    read: str
    written: str
    members: Mapping[str, Sequence[str]]
    contributes: bool


def two_way_member(flows: Iterable[MemberFlow]) -> str | None:
    """What is wrong if two streams write a member from each other; None if no two do.

    Streams that create whole records in both directions are no such pair: each record has one side that created it. A
    member that flows both ways would bring back an older value, because neither side tells who has changed it last.
    """
    for flow, other in combinations(flows, 2):
        is_pair = (flow.read, flow.written) == (other.written, other.read)
        if is_pair and (flow.contributes or other.contributes):
            for there, here in _pairs(flow, other):
                written = f"{there} of {flow.written}, and {here} of {flow.read}"
                return f"{flow.stream} and {other.stream} write {written}, from each other"
    return None


def _pairs(flow: MemberFlow, other: MemberFlow) -> Iterator[tuple[str, str]]:
    """The members that *flow* and *other* write from each other."""
    for member, columns in flow.members.items():
        for back in dict.fromkeys(column.partition(".")[0] for column in columns):
            if any(column.partition(".")[0] == member for column in other.members.get(back, ())):
                yield member, back
