"""What one turn decided."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.unit.state.samples import intent

from crossdock.state import Attempt
from crossdock.writing.delivery.send_queue_and_threads import SendTask
from crossdock.writing.delivery.state_writer import TurnDecisions
from crossdock.writing.targets.answer_outcomes import Outcome

AT = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


def test_settling_sets_the_status() -> None:
    """A settled intent has its new status, and the turn has something to write."""
    decisions, one = TurnDecisions(), intent(1)
    assert not decisions
    decisions.settle("rejected", one, Outcome("rejected", "no"))
    assert decisions
    assert [(item.intent.status, item.outcome.message) for item in decisions.settled] == [("rejected", "no")]


@pytest.mark.parametrize(
    ("purpose", "kind", "attempts", "noted"),
    [
        pytest.param("send", "delivered", 1, False, id="delivered at once"),
        pytest.param("send", "delivered", 2, True, id="delivered at the second attempt"),
        pytest.param("send", "unavailable", 1, True, id="failed"),
        pytest.param("look_up", "unavailable", 1, False, id="a look-up"),
    ],
)
def test_attempts_are_noted(purpose: str, kind: str, attempts: int, *, noted: bool) -> None:
    """An attempt is noted unless it delivered the intent at once."""
    decisions = TurnDecisions()
    one = intent(1, attempts=attempts, id=7)
    decisions.add_attempt_result(SendTask(one, purpose), Outcome(kind, "m", 503), at=AT)  # type: ignore[arg-type]  # parametrised literals
    assert decisions.attempts == ([Attempt(7, attempts, AT, kind, 503, "m")] if noted else [])
