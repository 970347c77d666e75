"""Records that wait for each other: cycles are broken, and only records with a missing parent stay."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.runs.planning.waiting_records import choose_one_record_per_cycle

Graph = dict[int, list[int]]

GRAPHS = st.integers(1, 9).flatmap(
    lambda size: st.dictionaries(
        st.integers(1, size), st.lists(st.integers(0, size), min_size=1, max_size=4), min_size=1, max_size=size
    )
)


@pytest.mark.parametrize(
    ("waits_for", "can_open", "chosen"),
    [
        pytest.param({}, [], [], id="nothing waits"),
        pytest.param({1: [1]}, [1], [1], id="a record that refers to itself"),
        pytest.param({1: [2], 2: [1]}, [1, 2], [1], id="a pair: the first"),
        pytest.param({1: [2], 2: [1]}, [2], [2], id="a pair: the one that can be opened"),
        pytest.param({1: [2], 2: [1]}, [], [], id="a pair: none can be opened"),
        pytest.param({1: [2], 2: [3], 3: [2]}, [1, 2, 3], [2], id="a tail is not opened"),
        pytest.param({1: [2], 2: [1], 3: [4], 4: [3]}, [1, 2, 3, 4], [1, 3], id="two cycles: one of each"),
        pytest.param({1: [9]}, [1], [], id="waits for a missing record"),
        pytest.param({1: [2, 9], 2: [1]}, [1, 2], [], id="a cycle that also waits for a missing record"),
        pytest.param({1: [2], 2: [9]}, [1, 2], [], id="waits for a record that waits for a missing one"),
    ],
)
def test_cycle_breakers(waits_for: Graph, can_open: list[int], chosen: list[int]) -> None:
    """One record of each cycle, and none where it would not help."""
    assert choose_one_record_per_cycle(waits_for, can_open) == chosen


def reaches(graph: Mapping[int, list[int]], start: int) -> set[int]:
    """Every record that *start* waits for, directly or indirectly."""
    found: set[int] = set()
    ahead = list(graph.get(start, ()))
    while ahead:
        node = ahead.pop()
        if node not in found:
            found.add(node)
            ahead += graph.get(node, ())
    return found


def back_edges(graph: Mapping[int, list[int]]) -> int:
    """The number of back edges of a depth-first search."""
    entered: set[int] = set()
    left: set[int] = set()

    def walk(node: int) -> int:
        entered.add(node)
        number = 0
        for ahead in set(graph.get(node, ())):
            number += (ahead in entered and ahead not in left) if ahead in entered else walk(ahead)
        left.add(node)
        return number

    return sum(walk(node) for node in graph if node not in entered)


def component(graph: Mapping[int, list[int]], node: int) -> frozenset[int]:
    return frozenset(other for other in reaches(graph, node) if node in reaches(graph, other))


@given(graph=GRAPHS, data=st.data())
def test_cycle_breakers_are_in_cycles_and_few(graph: Graph, data: st.DataObject) -> None:
    """Each waits for itself indirectly and can be opened; there are no more than back edges."""
    allowed = data.draw(st.sets(st.sampled_from(sorted(graph))))
    chosen = choose_one_record_per_cycle(graph, sorted(allowed))
    assert len(set(chosen)) == len(chosen)
    assert len(chosen) <= back_edges(graph)
    for node in chosen:
        assert node in allowed
        assert node in reaches(graph, node)
        assert reaches(graph, node) <= set(graph), "it waits for a missing record"


@given(cycles=st.lists(st.integers(1, 6), min_size=1, max_size=6), data=st.data())
def test_each_separate_cycle_is_opened_once(cycles: list[int], data: st.DataObject) -> None:
    """Cycles without common records get one opened record each, in any order of the records."""
    graph: Graph = {}
    for size in cycles:
        first = len(graph)
        graph |= {first + n: [first + (n + 1) % size] for n in range(size)}
    shuffled = {node: graph[node] for node in data.draw(st.permutations(sorted(graph)))}
    chosen = choose_one_record_per_cycle(shuffled, list(shuffled))
    assert len(chosen) == len(cycles)
    assert {component(graph, node) for node in chosen} == {component(graph, node) for node in graph}


@given(graph=GRAPHS, data=st.data())
def test_rounds_end_and_leave_only_records_with_missing_parents(graph: Graph, data: st.DataObject) -> None:
    """Rounds of breaking cycles and completing ready records end; no record is opened twice or in vain."""
    waits = {node: list(dict.fromkeys(ahead)) for node, ahead in graph.items()}
    can_open = data.draw(st.just(set(graph)) | st.sets(st.sampled_from(sorted(graph))))
    all_can_open = can_open == set(graph)
    there: set[int] = set()  # has an id
    opened: list[int] = []
    for _ in range(3 * len(graph) + 3):
        ready = [node for node, ahead in waits.items() if there.issuperset(ahead)]
        if ready:
            for node in ready:
                there.add(node)
                del waits[node]
            continue
        missing = {node: [each for each in ahead if each not in there] for node, ahead in waits.items()}
        chosen = choose_one_record_per_cycle(missing, sorted(can_open - set(opened)))
        if not chosen:
            break
        opened += chosen
        there.update(chosen)
    else:
        pytest.fail("the rounds do not end")
    assert len(set(opened)) == len(opened)
    lost = {node for node in graph if not reaches(graph, node) <= set(graph)}
    if all_can_open:
        assert set(waits) == lost
        assert not lost & set(opened)
    else:
        assert set(waits) >= lost
