"""The flow of members between systems: no member may flow in both directions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True, slots=True)
class MemberFlow:
    """The members that a stream copies from records of one system to those of another.

    Attributes:
        stream: Its full name.
        read: The resource that it reads, such as ``platform.order``.
        members: The columns of each written member.
        contributes: Whether it writes members of records that another stream creates.
    """

    stream: str
    read: str
    written: str
    members: Mapping[str, Sequence[str]]
    contributes: bool


def two_way_member(flows: Iterable[MemberFlow]) -> str | None:
    """Return the error if two streams write a member from each other, or None.

    Streams that create whole records in both directions are not such a pair: each record was created on one side.
    A member that flows both ways would restore an older value, because neither side shows who has changed it last.
    """
    for flow, other in combinations(flows, 2):
        is_pair = (flow.read, flow.written) == (other.written, other.read)
        if is_pair and (flow.contributes or other.contributes):
            for there, here in _pairs(flow, other):
                written = f"{there} of {flow.written}, and {here} of {flow.read}"
                return f"{flow.stream} and {other.stream} write {written}, from each other"
    return None


def _pairs(flow: MemberFlow, other: MemberFlow) -> Iterator[tuple[str, str]]:
    for member, columns in flow.members.items():
        for back in dict.fromkeys(column.partition(".")[0] for column in columns):
            if any(column.partition(".")[0] == member for column in other.members.get(back, ())):
                yield member, back
