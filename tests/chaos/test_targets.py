"""SIGKILL of real processes that send orders to a partner: nothing is lost, and nothing is there twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.chaos import processes
from tests.chaos.failing import NOTE_VARIABLE
from tests.e2e.order_depot import HEADERS, LOOK_UP, REPEATED, depot, expected, some_orders
from tests.partners.plain_3pl_habits import Habits

FAILING = str(Path(__file__).with_name("failing.py"))
STRIKES = ("sent:5:after", "settle_written:2:before")
UNIQUE = Habits(idempotency_keys=False, repeated_reference=422)


@pytest.mark.nightly(but=["look-up only"])
@pytest.mark.parametrize(
    ("habits", "resource"),
    [
        pytest.param(Habits(), HEADERS, id="idempotency header"),
        pytest.param(UNIQUE, REPEATED, id="unique names"),
        pytest.param(Habits(idempotency_keys=False), {"look_up": LOOK_UP}, id="look-up only"),
        pytest.param(Habits(idempotency_keys=False, look_up=False), {}, id="neither"),
    ],
)
def test_a_killed_sync_loses_and_doubles_nothing(tmp_path: Path, habits: Habits, resource: Mapping[str, Any]) -> None:
    """The next run delivers what was not, once; what cannot be looked up is in doubt, and never sent again."""
    orders, note = some_orders(40), tmp_path / "note"
    with depot(tmp_path, habits, resource, target={"in_flight": 2, "settle_s": 1}) as plain:
        plain.export(orders)
        for strike in STRIKES:
            command = ("-P", FAILING, strike, "-C", str(tmp_path / "c.yaml"), "sync")
            ended = processes.finish(command, {**plain.environment, NOTE_VARIABLE: str(note)})
            assert ended.exit_code == -9, ended.stderr
        assert note.read_text().splitlines() == list(STRIKES)
        done = plain.run("sync", "--json")
        doubtful = done.document["open"]["in_doubt"]
        assert (done.exit_code, bool(doubtful)) == ((1, True) if not resource else (0, False)), done.stderr
        assert max(plain.created().values()) == 1
        missing = expected(orders) - plain.held()
        assert missing.total() <= doubtful
        assert plain.held() - expected(orders) == Counter()
        if not doubtful:
            assert plain.run("sync", "--json").document["requests"] == 0
