"""Works on hints between different partners: what they leave to each other, and when they end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from tests.chaos.listen_stage import ListenStage, listen_stage
from tests.hints import work_on_hints
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.versioned_shop import VersionedShop, connection
from tests.waiting import eventually

from crossdock.config.project import project
from crossdock.runs.named_record_delivery import named_records
from crossdock.runs.session_shared_by_runs import open_session
from crossdock.services.inbox import webhook_record_delivery
from crossdock.services.inbox.webhook_record_delivery import ConnectionAndTarget, InboxWorker
from crossdock.state import Scope
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.clock import SystemClock
from crossdock.values.run_progress_and_messages import SilentProgress
from crossdock.writing.delivery.delivery_context import RecordsOfConcurrentRuns


class TwoShops:
    """Orders of a shop whose customers are those of an ERP system."""

    def __init__(self, stage: ListenStage, erp: VersionedShop, erp_url: str) -> None:
        self.stage, self.erp, self.interrupt = stage, erp, threading.Event()
        document = yaml.safe_load(stage.config.read_text())
        settings: dict[str, Any] = connection(erp_url, [f"file:{stage.folder / 'secret-0'}"])
        document["connections"]["erp"] = settings
        orders = document["connections"]["shop"]["streams"]["orders"]["map"]
        orders["customerId"]["namespace"] = "erp"
        stage.config.write_text(yaml.safe_dump(document))
        self.project = project.load(stage.config)

    def work(self, stream: str, key: str, busy: str = "") -> None:
        """A webhook tells of a record, and all works on hints that follow are done, one after the other.

        Args:
            busy: A target where another run sends what was left.
        """
        clock = SystemClock()
        worker = InboxWorker(clock, SilentProgress, self.interrupt, lambda *_: None)
        with (
            mock.patch.object(webhook_record_delivery, "IDLE_S", 0.0),
            open_session(self.project, clock) as session,
            session.resuming_lock(busy),
        ):
            session.state.run_transaction(
                lambda tx: tx.inbox.schedule_fetch_of_records(named_records(stream, [key]), at=clock.now())
            )
            work_on_hints(worker, session)

    def created(self) -> list[str]:
        return [each["body"]["externalId"] for each in self.stage.effects()]


@pytest.fixture
def shops(tmp_path: Path) -> Iterator[TwoShops]:
    erp = VersionedShop()
    with listen_stage(tmp_path) as stage, serving(PartnerServer(erp)) as server:
        stage.shop.put_product("P1")
        stage.shop.put_order("O1", "C1", "P1")
        yield TwoShops(stage, erp, server.url)


def test_a_record_comes_with_what_another_system_has(shops: TwoShops) -> None:
    """An order whose customer another work has to fetch is delivered after it."""
    shops.erp.put_customer("C1")
    shops.work("shop.orders", "O1")
    assert shops.created() == ["shop:P1", "erp:C1", "shop:O1"]
    assert shops.stage.hints() == {}


@pytest.mark.parametrize("customer", ["missing", "unreadable"])
def test_what_another_system_cannot_give_is_not_asked_for_again_and_again(shops: TwoShops, customer: str) -> None:
    """An order waits for a customer that is not there, or is a dead letter, and comes once it can be delivered."""
    if customer == "unreadable":
        shops.erp.put("customers", "C1", name="")
    shops.work("shop.orders", "O1")
    assert (shops.created(), shops.stage.hints()) == (["shop:P1"], {})
    assert shops.erp.fetched == {"/customers/C1": 1}
    shops.erp.put_customer("C1")
    shops.work("erp.customers", "C1")
    assert shops.created() == ["shop:P1", "erp:C1", "shop:O1"]
    assert shops.stage.hints() == {}


def test_what_was_left_for_one_target_delays_no_other(shops: TwoShops) -> None:
    """A work goes on while another run waits for the answers of a target that this one does not use."""
    shops.erp.put_customer("C1")
    with ThreadPoolExecutor(1) as pool, ExitStack() as ends:
        ends.callback(shops.interrupt.set)
        pool.submit(shops.work, "erp.customers", "C1", busy="depot").result(60)
    assert shops.created() == ["erp:C1"]


def test_works_end_together_now_and_then_and_wait_for_none_that_is_stuck() -> None:
    """So that retention has a chance. One that comes late asks for it again."""
    clock = ManualClock()
    worker = InboxWorker(clock, SilentProgress, threading.Event(), lambda *_: None)
    with ExitStack() as stack, ThreadPoolExecutor(1) as pool:
        one, other = (
            stack.enter_context(worker._registering_work(ConnectionAndTarget(name, "platform"), []))
            for name in ("a", "b")
        )
        assert not worker._wait_for_common_end_if_due(one)
        clock.advance(webhook_record_delivery.WORKS_S)
        with mock.patch.object(webhook_record_delivery, "BREAK_S", 0.0):
            assert not worker._wait_for_common_end_if_due(one), "the other one is stuck"
        clock.advance(1)
        assert not worker._wait_for_common_end_if_due(one)
        with mock.patch.object(webhook_record_delivery, "BREAK_S", 60.0):
            late = pool.submit(worker._wait_for_common_end_if_due, other)
            eventually(lambda: worker._ready == 1)
            assert worker._wait_for_common_end_if_due(one)
            assert late.result(60)


def test_planning_for_one_target_waits_for_no_other() -> None:
    """A run that plans may read its target meanwhile, which may take long."""
    records = RecordsOfConcurrentRuns()
    one, other = records.begin_run(), records.begin_run()
    one.begin_exclusive_planning_and_find_busy(Scope("platform", "order", "shop"), [1])
    with ThreadPoolExecutor(1) as pool:
        assert (
            pool.submit(other.begin_exclusive_planning_and_find_busy, Scope("depot", "labels", "shop"), [1]).result(60)
            == set()
        )
