"""SIGKILL of the real sync process in the middle of a load: nothing is lost and nothing is done twice."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest
from tests.chaos import processes
from tests.e2e import retail_truth
from tests.e2e.project_folder import Stage
from tests.e2e.socket_guard_runs import plan_silently
from tests.waiting import eventually

pytestmark = [pytest.mark.retail, pytest.mark.openssh]

WEEK = 7
REQUESTS = 3_123
KILL_AT = (300, 1_400, 2_550)  # effects: among the customers, the products and the invoices


def kill_sync(stage: Stage, effects: int) -> None:
    """Kill a sync once the platform has seen so many effects; it must not have ended by itself before."""
    log = stage.folder / "killed.log"
    with processes.running(stage.command("sync"), stage.environment(), log, log) as process:
        eventually(lambda: stage.sandbox.has_effects(effects) or process.exitcode is not None)
        process.kill()
    assert process.exitcode == -signal.SIGKILL, log.read_text()


@pytest.mark.nightly
def test_three_kills_in_one_load_lose_and_double_nothing(fresh: Stage, exports: list[Path]) -> None:
    """A load that is killed among customers, products and invoices ends as planned, and as if it had run once."""
    fresh.serve(exports[:WEEK])
    for effects in KILL_AT:
        kill_sync(fresh, effects)
    fresh.sandbox.settle()
    plan = plan_silently(fresh)
    report = fresh.sync()

    told = fresh.sandbox.effects()
    assert Counter(effect["operation"] for effect in told) == {"create": REQUESTS}
    assert len({effect["idempotencyKey"] for effect in told}) == REQUESTS
    assert fresh.sandbox.by_status().keys() == {"201"}, "something was refused"
    truth = retail_truth.of(exports[:WEEK])
    assert fresh.sandbox.holdings().differences(truth.holdings) == {}
    rows = {name: stream["rows"]["read"] for name, stream in report["streams"].items()}
    assert rows == {"shop.customers": 0, "shop.products": 0, "shop.invoices": truth.rows}, "finished ones are not read"
    invoices = report["streams"]["shop.invoices"]
    assert invoices["rows"]["filtered"] == {"cancelled": truth.cancelled, "no_customer": truth.no_customer}
    assert invoices["records"]["read"] == 678
    assert invoices["records"]["carried_over"] == plan["operations"]["resend"] > 0
    assert report["requests"] == sum(plan["operations"].values())
