"""Random graphs of ledger accounts and invoices whose parents come late, and what must become of them.

The truth is worked out here from the exported rows alone, by walking from account to parent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

NEVER = "never-"  # parents of this name are exported by nobody


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """What one night's exports hold: accounts as code -> parent ("" for none), and rows of the other streams."""

    accounts: dict[str, str]
    customers: list[str]
    products: list[str]
    invoices: dict[str, tuple[str, list[str]]]
    """Number -> (customer, products)."""


@dataclass(slots=True)
class Expected:
    """What must stand after some nights.

    Attributes:
        parents: The accounts that stand, each with its parent.
        waiting: Those that do not stand, or stand with a parent that they shall lose, for want of one.
        fresh: Accounts that the last night created.
        circles: Circles that the last night created; each costs one more write.
        moved: Writes for accounts that stood before and have another parent now.
    """

    parents: dict[str, str] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    fresh: set[str] = field(default_factory=set)
    circles: list[set[str]] = field(default_factory=list)
    moved: int = 0

    @property
    def most_writes(self) -> int:
        """Nodes and back edges."""
        return len(self.fresh) + len(self.circles) + self.moved


def two_nights(rng: Random, nodes: int) -> list[ScheduledRun]:
    """Exports of two nights: chains, trees, circles and loops; parents that come the second night, or never."""
    codes = [f"A{number}" for number in range(nodes)]
    parents: dict[str, str] = {}
    for number, code in enumerate(codes):
        parents[code] = _parent(rng, codes, number)
    late = set(rng.sample(codes, nodes // 5))
    names = [*parents]
    rng.shuffle(names)
    first = {code: parents[code] for code in names if code not in late}
    second = {code: parents[code] for code in names if code in late}
    for code in rng.sample(sorted(first), max(1, len(first) // 12)):
        second[code] = _parent(rng, codes, codes.index(code))  # moved below another one
    for place in (first, second):
        place.update({f"{NEVER}child{len(place)}": f"{NEVER}{len(place)}"})
    customers, products = ([f"{kind}{number}" for number in range(max(4, nodes // 4))] for kind in "CP")
    invoices = {
        str(number): (rng.choice(customers), [rng.choice(products) for _ in range(rng.randint(1, 3))])
        for number in range(nodes // 2)
    }
    invoices["lonely"] = f"{NEVER}C", [products[0]]
    half = len(customers) // 2
    return [
        ScheduledRun(first, customers[:half], products[half:], invoices),
        ScheduledRun(second, customers[half:], products[:half], {}),
    ]


def _parent(rng: Random, codes: list[str], number: int) -> str:
    kind = rng.choices(["root", "chain", "tree", "any", "self", "never"], [2, 4, 4, 4, 1, 1])[0]
    earlier = codes[: number + 1]
    return {
        "root": "",
        "chain": earlier[number - 1] if number else "",
        "tree": rng.choice(earlier),
        "any": rng.choice(codes),
        "self": codes[number],
        "never": f"{NEVER}{number}",
    }[kind]


def stand(before: Expected, known: dict[str, str]) -> Expected:
    """What stands once the accounts *known* so far, with the newest parent of each, are delivered as far as can be."""
    now = Expected()
    for code, parent in known.items():
        road, end = _road(code, known, before.parents)
        if code in before.parents:
            there = not parent or parent in before.parents or _stands(parent, known, before.parents)
            now.parents[code] = parent if there else before.parents[code]
            now.moved += there and parent != before.parents[code]
            if not there:
                now.waiting.add(code)
        elif _stands(code, known, before.parents):
            now.parents[code] = parent
            now.fresh.add(code)
            if end in road and end not in before.parents:
                circle = set(road[road.index(end) :])
                if circle not in now.circles:
                    now.circles.append(circle)
        else:
            now.waiting.add(code)
    return now


def _stands(code: str, known: dict[str, str], bound: dict[str, str]) -> bool:
    road, end = _road(code, known, bound)
    return end == "" or end in bound or end in road


def _road(code: str, known: dict[str, str], bound: dict[str, str]) -> tuple[list[str], str]:
    """The way up from *code*, and what ends it: "" above a root, one that stood before, one met already, or one that
    nobody has."""
    road: list[str] = []
    while code in known and code not in road and code not in bound:
        road.append(code)
        code = known[code]
    return road, code
