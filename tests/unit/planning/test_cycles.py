"""Records that wait for each other: circles are opened, and only what cannot be had stays."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.planning.cycles import cycle_breakers

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
        pytest.param({1: [1]}, [1], [1], id="one that names itself"),
        pytest.param({1: [2], 2: [1]}, [1, 2], [1], id="a pair: the first"),
        pytest.param({1: [2], 2: [1]}, [2], [2], id="a pair: the one that can"),
        pytest.param({1: [2], 2: [1]}, [], [], id="a pair: none can"),
        pytest.param({1: [2], 2: [3], 3: [2]}, [1, 2, 3], [2], id="a tail is not opened"),
        pytest.param({1: [2], 2: [1], 3: [4], 4: [3]}, [1, 2, 3, 4], [1, 3], id="two circles: one of each"),
        pytest.param({1: [9]}, [1], [], id="waits for what is not to be had"),
        pytest.param({1: [2, 9], 2: [1]}, [1, 2], [], id="a circle that also waits for what is not to be had"),
        pytest.param({1: [2], 2: [9]}, [1, 2], [], id="waits for one that waits for it"),
    ],
)
def test_who_goes_first(waits_for: Graph, can_open: list[int], chosen: list[int]) -> None:
    """One record of each circle, and none where it would help nobody."""
    assert cycle_breakers(waits_for, can_open) == chosen


def reaches(graph: Mapping[int, list[int]], start: int) -> set[int]:
    """What *start* waits for, and what that waits for, and so on."""
    found: set[int] = set()
    ahead = list(graph.get(start, ()))
    while ahead:
        node = ahead.pop()
        if node not in found:
            found.add(node)
            ahead += graph.get(node, ())
    return found


def back_edges(graph: Mapping[int, list[int]]) -> int:
    """How many edges lead back to a node that a depth-first walk has not left yet."""
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
def test_openers_stand_in_circles_and_are_few(graph: Graph, data: st.DataObject) -> None:
    """Each opener waits for itself by way of others, can be opened, and there are no more than edges lead back."""
    allowed = data.draw(st.sets(st.sampled_from(sorted(graph))))
    chosen = cycle_breakers(graph, sorted(allowed))
    assert len(set(chosen)) == len(chosen)
    assert len(chosen) <= back_edges(graph)
    for node in chosen:
        assert node in allowed
        assert node in reaches(graph, node)
        assert reaches(graph, node) <= set(graph), "it waits for something that is not to be had"


@given(circles=st.lists(st.integers(1, 6), min_size=1, max_size=6), data=st.data())
def test_each_separate_circle_is_opened_once(circles: list[int], data: st.DataObject) -> None:
    """Of circles that share no record each gets one opener, in whatever order their records stand."""
    graph: Graph = {}
    for size in circles:
        first = len(graph)
        graph |= {first + n: [first + (n + 1) % size] for n in range(size)}
    shuffled = {node: graph[node] for node in data.draw(st.permutations(sorted(graph)))}
    chosen = cycle_breakers(shuffled, list(shuffled))
    assert len(chosen) == len(circles)
    assert {component(graph, node) for node in chosen} == {component(graph, node) for node in graph}


@given(graph=GRAPHS, data=st.data())
def test_rounds_end_and_leave_only_what_cannot_be_had(graph: Graph, data: st.DataObject) -> None:
    """Opening circles and completing what is ready ends, and where all may be opened what stays waits for the lost.

    Nobody is opened twice, and nobody is opened in vain.
    """
    waits = {node: list(dict.fromkeys(ahead)) for node, ahead in graph.items()}
    can_open = data.draw(st.just(set(graph)) | st.sets(st.sampled_from(sorted(graph))))
    everybody = can_open == set(graph)
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
        chosen = cycle_breakers(missing, sorted(can_open - set(opened)))
        if not chosen:
            break
        opened += chosen
        there.update(chosen)
    else:
        pytest.fail("the rounds do not end")
    assert len(set(opened)) == len(opened)
    lost = {node for node in graph if not reaches(graph, node) <= set(graph)}
    if everybody:
        assert set(waits) == lost
        assert not lost & set(opened)
    else:
        assert set(waits) >= lost
