"""Items that are worked on ahead come in their order, and so does what goes wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from crossdock.reading.formats.parallel_map import map_in_parallel


def broken_after(count: int) -> Iterator[int]:
    yield from range(count)
    raise ValueError("no more")


def test_results_come_in_the_order_of_their_items() -> None:
    """An item that takes long holds up those behind it, which are done meanwhile, and is not overtaken."""
    second = threading.Event()

    def work(number: int) -> int:
        if number == 0:
            assert second.wait(30)
        if number == 1:
            second.set()
        return number

    assert list(map_in_parallel(work, iter(range(20)))) == list(range(20))


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_a_source_that_breaks_does_so_in_its_turn(count: int) -> None:
    """All that came before the fault is given first."""
    given: list[int] = []
    with pytest.raises(ValueError, match="no more"):
        given.extend(map_in_parallel(lambda number: number, broken_after(count)))  # which keeps what it was given
    assert given == list(range(count))


def test_work_that_fails_does_so_in_its_turn() -> None:
    """It comes before a fault of the source, though that was seen earlier."""

    def work(number: int) -> int:
        if number == 3:
            raise KeyError("three")
        return number

    given: list[int] = []
    with pytest.raises(KeyError, match="three"):
        given.extend(map_in_parallel(work, broken_after(4)))
    assert given == [0, 1, 2]


def test_whoever_stops_early_leaves_no_thread() -> None:
    """The generator's end waits for what is under way."""
    before = threading.active_count()
    found = map_in_parallel(lambda number: number, iter(range(100)))
    assert next(found) == 0
    found.close()
    assert threading.active_count() == before


def test_no_more_is_drawn_than_is_worked_on() -> None:
    """Memory is bounded: the source is a few items ahead of whoever takes the results."""
    drawn: list[int] = []

    def source() -> Iterator[int]:
        for number in range(100):
            drawn.append(number)
            yield number

    found = map_in_parallel(lambda number: number, source())
    for _ in range(10):
        next(found)
    assert len(drawn) <= 10 + 2
