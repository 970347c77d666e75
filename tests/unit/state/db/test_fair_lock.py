"""Threads get the lock in the order in which they asked, and none waits longer than it wants to."""

from __future__ import annotations

import threading

from tests.waiting import eventually

from crossdock.state.open_state import FairLock


def test_threads_go_in_the_order_in_which_they_asked() -> None:
    """A thread that releases the lock and asks again comes after those that waited."""
    lock, order, asked = FairLock(), list[int](), list[threading.Thread]()
    assert lock.acquire(0)

    def work(number: int) -> None:
        assert lock.acquire(60)
        order.append(number)
        lock.release()

    for number in range(5):
        thread = threading.Thread(target=work, args=(number,))
        thread.start()
        eventually(lambda: len(lock._waiting) == number + 1)  # noqa: B023  called in the loop only
        asked.append(thread)
    lock.release()
    assert lock.acquire(60)
    assert order == [0, 1, 2, 3, 4]
    for thread in asked:
        thread.join()


def test_a_thread_that_waits_too_long_leaves_the_queue() -> None:
    """It does not get the lock later, when nobody would release it."""
    lock = FairLock()
    assert lock.acquire(0)
    assert not lock.acquire(0)
    lock.release()
    assert lock.acquire(0)
    lock.release()
