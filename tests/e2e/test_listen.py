"""``crossdock listen`` as a user has it: a process, a shop that sends webhooks, and the platform's witness."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.chaos.listen_stage import (
    ListenStage,
    body_of,
    hang_up,
    listen_stage,
    new_secret,
    signed,
    slow_body,
)
from tests.chaos.listen_traffic import BAD, planned
from tests.chaos.processes import CROSSDOCK
from tests.chaos.soon_asking import SOON_ASKING
from tests.e2e.processes import SchedulerProcesses
from tests.e2e.test_schedule_in_trouble import StoppablePostgres
from tests.servers import free_port, require
from tests.waiting import eventually

from crossdock.testing.postgres_server import PostgresServer

ORDER = {"orders": {"O1"}}
BOTH = {"orders": {"O1"}, "invoices": {"I1"}}
SMALL = 8_192  # bytes of the largest file: less than any state


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[ListenStage]:
    with listen_stage(tmp_path) as opened:
        fill(opened)
        opened.program = SOON_ASKING
        yield opened


@pytest.fixture
def server() -> Iterator[StoppablePostgres]:
    require(PostgresServer.available(), "PostgreSQL")
    with StoppablePostgres() as running:
        yield running


@pytest.fixture
def on_postgres(tmp_path: Path, server: StoppablePostgres) -> Iterator[ListenStage]:
    with listen_stage(tmp_path, server.create_database()) as opened:
        fill(opened)
        opened.program = SOON_ASKING
        yield opened


def fill(stage: ListenStage) -> None:
    """A customer, a product, an order and an invoice, of which no webhook has told."""
    stage.shop.put_customer("C1")
    stage.shop.put_product("P1")
    stage.shop.put_order("O1", "C1", "P1")
    stage.shop.put_invoice("I1", "C1", "P1", "7.25")


def ends_well(stage: ListenStage, processes: SchedulerProcesses, keys: dict[str, set[str]]) -> None:
    """Everything is delivered, SIGTERM ends the processes, and nothing was done twice."""
    stage.until_delivered(keys)
    eventually(lambda: not stage.hints())
    assert set(processes.stop()) == {0}
    stage.judge(keys)


def without_orders(shop: dict[str, Any]) -> None:
    """Remove a stream, and what webhooks tell of it."""
    del shop["streams"]["orders"]
    rules = shop["webhooks"]["hints"]
    rules[:] = [each for each in rules if each["stream"] != "orders"]


# ---- delivery


@pytest.mark.nightly(but=["listen"])
@pytest.mark.parametrize("command", ["listen", "schedule"])
def test_records_are_delivered_while_it_receives(stage: ListenStage, command: str) -> None:
    """An order comes with what it refers to, a change follows, a copy changes nothing."""
    options = ("schedule", "--listen", str(stage.port)) if command == "schedule" else ()
    if anew := command == "listen":
        stage.program = CROSSDOCK
    with stage.receiving(*options, anew=anew) as processes:
        body = body_of("orders", "O1")
        assert stage.post(body, signed(stage.secret, body, name="m1")).status_code == 200
        stage.until_delivered(ORDER)
        eventually(lambda: not stage.hints())
        asked = dict(stage.shop.fetched)
        stage.shop.put_order("O1", "C1", "P1")
        assert stage.post(body, signed(stage.secret, body, name="m1")).status_code == 200
        assert stage.tell("invoices", "I1").status_code == 200
        stage.until_delivered({"invoices": {"I1"}})
        assert stage.shop.fetched["/orders/O1"] == asked["/orders/O1"], "a copy is no reason to fetch"
        assert stage.tell("orders", "O1").status_code == 200
        ends_well(stage, processes, BOTH)


@pytest.mark.nightly
def test_a_secret_is_replaced_without_a_pause(stage: ListenStage) -> None:
    """After SIGHUP webhooks with the new secret are accepted, at first beside the old one, then alone."""
    old, new = stage.secret, new_secret()
    body = body_of("orders", "O1")
    with stage.receiving() as processes:
        assert stage.post(body, signed(new, body, name="early")).status_code == 401
        stage.configure(new, old)
        hang_up(processes)
        for number, each in enumerate((old, new)):
            assert stage.post(body, signed(each, body, name=f"both-{number}")).status_code == 200
        stage.configure(new)
        hang_up(processes)
        assert stage.post(body, signed(old, body, name="late")).status_code == 401
        assert stage.post(body, signed(new, body, name="new")).status_code == 200
        ends_well(stage, processes, ORDER)


@pytest.mark.nightly
def test_a_config_that_became_invalid_changes_nothing(stage: ListenStage) -> None:
    """After SIGHUP with a config that cannot be used, the one before is in effect."""
    with stage.receiving() as processes:
        stage.configure("no secret at all")
        (pid,) = processes.pids
        os.kill(pid, signal.SIGHUP)
        processes.until(lambda: processes.said("the config was not reloaded") > 0)
        assert "no secret at all" not in processes.log
        assert stage.tell("orders", "O1").status_code == 200
        ends_well(stage, processes, ORDER)


# ---- bad input


def test_what_nobody_may_process_is_refused(stage: ListenStage) -> None:
    """Forged, stale and malformed webhooks get a status below 500, and none of their records reaches the platform."""
    traffic = planned(stage, Random(1), webhooks=8, copies=2, bad=1, large=1)
    with stage.receiving() as processes, slow_body(stage.port) as wire:
        with traffic.sending():
            traffic.release(1)
        assert traffic.wrong == []
        assert {status for _, status in traffic.answers} == {200, 400, 401, 413}
        assert sum(traffic.answers.values()) == 8 * 2 + len(BAD) + 2
        wire.sendall(b"}")
        assert wire.recv(100).split()[1] == b"401", "a slow body is read to its end"
        assert stage.post(b"{}", {}, to="shops").status_code == 404
        processes.until(lambda: processes.said("webhooks: 1 not processed (unknown_connection)") == 1)
        ends_well(stage, processes, traffic.keys)


def test_a_hint_for_a_stream_that_cannot_fetch_is_an_error_of_the_config(stage: ListenStage) -> None:
    """Exit 2 with its place, and what the stream needs."""
    stage.edit(lambda shop: shop["streams"]["orders"].pop("fetch"))
    with stage.listening() as processes:
        processes.start()
        with pytest.raises(AssertionError, match="the stream orders needs fetch"):
            processes.until(lambda: False)


@pytest.mark.nightly
def test_a_record_whose_stream_cannot_fetch_any_more_stays_visible(stage: ListenStage) -> None:
    """A webhook that was accepted before the config changed is not forgotten, and keeps no other from delivery."""
    stage.shop.failing.add("/orders/O1")
    with stage.receiving() as processes:
        assert stage.tell("orders", "O1").status_code == 200
        eventually(lambda: stage.hints().get("shop.orders O1") is not None)
        assert "503" in (stage.hints()["shop.orders O1"] or "")
        assert processes.stop() == [0]
    stage.edit(without_orders)
    with stage.receiving() as processes:
        assert stage.tell("customers", "C1").status_code == 200
        stage.until_delivered({"customers": {"C1"}})
        told = "the config has no stream shop.orders that can fetch named records"
        eventually(lambda: stage.hints() == {"shop.orders O1": told})
        assert processes.stop() == [0]


def test_a_record_that_cannot_be_fetched_comes_when_it_can(stage: ListenStage) -> None:
    """The others are delivered meanwhile; the failed one is tried again by itself."""
    stage.shop.failing.add("/orders/O1")
    with stage.receiving() as processes:
        assert stage.tell("orders", "O1").status_code == 200
        assert stage.tell("invoices", "I1").status_code == 200
        stage.until_delivered({"invoices": {"I1"}})
        processes.until(lambda: "failed: see 'crossdock records list --state inbox'" in processes.log)
        stage.shop.failing.clear()
        ends_well(stage, processes, BOTH)


# ---- a state in trouble


@pytest.mark.nightly
def test_a_full_disk_is_told_so_that_the_vendor_tries_again(stage: ListenStage) -> None:
    """503 while the state cannot grow; with room again the same process accepts and delivers."""
    with stage.receiving() as processes:
        (pid,) = processes.pids
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (SMALL, before[1]))
        answer = stage.tell("orders", "O1")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        assert stage.effects() == []
        assert stage.tell("orders", "O1").status_code == 200
        assert "Traceback" not in processes.log
        ends_well(stage, processes, ORDER)


def test_a_state_that_goes_away_comes_back(tmp_path: Path) -> None:
    """503 while the file of the state is not there; the same process goes on when it is."""
    with listen_stage(tmp_path, "sqlite:///kept/state.db") as stage:
        fill(stage)
        stage.program = SOON_ASKING
        with stage.receiving() as processes:
            (tmp_path / "kept").rename(tmp_path / "away")
            assert stage.tell("orders", "O1").status_code == 503
            (tmp_path / "away").rename(tmp_path / "kept")
            assert stage.tell("orders", "O1").status_code == 200
            ends_well(stage, processes, ORDER)


@pytest.mark.nightly
@pytest.mark.postgres
def test_a_postgresql_that_is_stopped_comes_back(on_postgres: ListenStage, server: StoppablePostgres) -> None:
    """503 while the server does not answer; what was accepted before and after is delivered."""
    stage = on_postgres
    with stage.receiving() as processes:
        assert stage.tell("orders", "O1").status_code == 200
        server.stop()
        assert stage.tell("invoices", "I1").status_code == 503
        server.restart()
        eventually(lambda: stage.tell("invoices", "I1").status_code == 200)
        assert "Traceback" not in processes.log
        ends_well(stage, processes, BOTH)


@pytest.mark.nightly
@pytest.mark.postgres
def test_of_two_processes_one_is_killed_and_the_other_delivers(on_postgres: ListenStage) -> None:
    """What the killed one had accepted is delivered by the other, once."""
    stage, other = on_postgres, free_port()
    stage.shop.failing.update({"/orders/O1", "/invoices/I1"})
    with stage.receiving() as first, stage.listening(port=other) as second:
        second.start()
        second.until(lambda: second.said("receiving webhooks at") > 0)
        assert stage.tell("orders", "O1").status_code == 200
        body = body_of("invoices", "I1")
        assert stage.post(body, signed(stage.secret, body, name="m2"), port=other).status_code == 200
        (pid,) = first.pids
        first.kill(pid)
        stage.shop.failing.clear()
        ends_well(stage, second, BOTH)
