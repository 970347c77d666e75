"""The queue: order, delays, held tasks and the retry budget."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.state.samples import intent

from crossdock.testing.manual_clock import ManualClock
from crossdock.writing.delivery.send_queue_and_threads import DELAYED, RetryBudget, SendQueue, SendTask

LIMIT = 5


def queue(clock: ManualClock) -> SendQueue:
    return SendQueue(clock, LIMIT, random.Random(1))


def numbers(tasks: list[SendTask]) -> list[int]:
    return [task.intent.identity.key_hash for task in tasks]


def taken(box: SendQueue, count: int) -> list[int]:
    return [number for batch in box.take_batches(count) for number in numbers(batch)]


def test_tasks_leave_in_the_order_in_which_they_came() -> None:
    """A task that is put first precedes all others."""
    box = queue(ManualClock())
    for number in (1, 2, 3):
        box.put(SendTask(intent(number)))
    box.put(SendTask(intent(4)), first=True)
    assert box.move_due_and_count_ready() == 4
    assert taken(box, 3) == [4, 1, 2]
    assert numbers(box.remove_tasks()) == [3]
    assert not box


@given(delays=st.lists(st.floats(0.001, 100.0), min_size=1, max_size=8))
def test_a_delayed_task_is_ready_after_its_delay(delays: list[float]) -> None:
    """Each delayed task becomes ready exactly when its delay is over, if it needs no budget."""
    clock = ManualClock()
    box, began = queue(clock), clock.monotonic()
    for number, delay in enumerate(delays):
        box.delay(SendTask(intent(number)), delay, free=True)
    for delay in sorted(delays):
        clock.advance(max(0.0, began + delay - clock.monotonic()) + 1e-6)
        assert box.move_due_and_count_ready() == sum(each <= clock.monotonic() - began for each in delays)


def test_what_one_answer_delays_is_ready_together() -> None:
    """Each operation of a request is delayed a moment after the one before; they share the next request."""
    clock = ManualClock()
    box = queue(clock)
    for number in range(3):
        box.delay(SendTask(intent(number)), 1.0, free=True)
        clock.advance(0.001)
    box.delay(SendTask(intent(3)), 2.0, free=True)
    clock.advance(box.seconds_to_next_task(clock.monotonic()) + 1e-6)
    assert box.move_due_and_count_ready() == 3


def test_retries_wait_for_the_budget() -> None:
    """Retries beyond the budget stay delayed, and free ones do not use it."""
    clock = ManualClock()
    box = queue(clock)
    for number in range(RetryBudget.FLOOR + 3):
        box.delay(SendTask(intent(number)), 0.0)
    assert box.move_due_and_count_ready() == RetryBudget.FLOOR
    assert box.seconds_to_next_task(clock.monotonic()) == 1.0
    clock.advance(1.0)
    assert box.move_due_and_count_ready() == RetryBudget.FLOOR + 3


def test_first_attempts_earn_retries() -> None:
    """Look-ups and second attempts earn none."""
    box = queue(ManualClock())
    for number in range(30):
        box.put(SendTask(intent(number), "send" if number < 20 else "look_up"))
    box.put(SendTask(intent(30, attempts=1)))
    box.count_sent_requests(box.take_batches(box.move_due_and_count_ready()))
    for number in range(30):
        box.delay(SendTask(intent(number)), 0.0)
    assert box.move_due_and_count_ready() == RetryBudget.FLOOR + 2


def test_held_tasks_leave_when_they_are_released() -> None:
    """A release may leave out the tasks of some streams."""
    box = queue(ManualClock())
    box.hold_back_until_released(SendTask(intent(1, stream="wms.a")))
    box.hold_back_until_released(SendTask(intent(2, stream="wms.b")))
    assert box.move_due_and_count_ready() == 0
    box.release_held_back(but={"wms.b"})
    assert taken(box, box.move_due_and_count_ready()) == [1]
    box.release_held_back()
    assert taken(box, box.move_due_and_count_ready()) == [2]


def test_operations_of_one_kind_are_taken_together() -> None:
    """Those between them keep their places, and two on one record are never in one request."""
    box = SendQueue(ManualClock(), LIMIT, random.Random(1), {("product", "create"): 3})
    for number in (1, 2, 2, 3, 4, 5):
        box.put(SendTask(intent(number)))
    box.put(SendTask(intent(6), "look_up"), first=True)
    assert [numbers(batch) for batch in box.take_batches(9, only_full=True)] == [[6], [1, 2, 3], [2, 4, 5]]
    for number in (7, 8):
        box.put(SendTask(intent(number)))
    assert box.take_batches(9, only_full=True) == []
    (batch,) = box.take_batches(9)
    box.put_back_batches([batch])
    assert [numbers(batch) for batch in box.take_batches(9)] == [[7, 8]]


def test_a_request_costs_the_budget_once() -> None:
    """A retry of three operations in one request spends as much as a retry of one."""
    box = SendQueue(ManualClock(), LIMIT, random.Random(1), {("product", "create"): 3})
    for number in range(4 * RetryBudget.FLOOR):
        box.delay(SendTask(intent(number)), 0.0)
    assert 2 * RetryBudget.FLOOR < box.move_due_and_count_ready() <= 3 * RetryBudget.FLOOR


def test_more_is_wanted_while_little_is_ready() -> None:
    """Many ready tasks, or very many delayed ones, are enough; so is one while the circuit breaker is open."""
    clock = ManualClock()
    ready, delayed, broken = queue(clock), queue(clock), queue(clock)
    for number in range(LIMIT):
        assert ready.has_few_ready_operations_and_no_outage
        ready.put(SendTask(intent(number)))
    assert not ready.has_few_ready_operations_and_no_outage
    for number in range(DELAYED * LIMIT):
        assert delayed.has_few_ready_operations_and_no_outage
        delayed.delay(SendTask(intent(number)), 9.0)
    assert not delayed.has_few_ready_operations_and_no_outage
    for _ in range(20):
        broken.circuit_breaker.record_failure(clock.monotonic(), None, probe=False)
    assert broken.has_few_ready_operations_and_no_outage
    broken.put(SendTask(intent(1)))
    assert not broken.has_few_ready_operations_and_no_outage
