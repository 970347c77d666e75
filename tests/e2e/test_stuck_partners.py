"""``crossdock listen`` while a partner is stuck: those of others go on, and its own records come later."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from tests.chaos.listen_stage import ListenStage, body_of, hang_up, listen_stage, signed
from tests.chaos.soon_asking import SOON_ASKING
from tests.partners.partner_server import PartnerAnswer, PartnerRequest, PartnerServer, serving
from tests.partners.versioned_shop import VersionedShop, connection
from tests.waiting import eventually

LABELS = {
    "path": "/products",
    "records": "items",
    "mode": "incremental",
    "key": ["id"],
    "to": "depot.labels",
    "fetch": {"path": "/products/{id}"},
    "map": {"text": "name"},
}
DEPOT = {
    "kind": "http_json",
    "target": {
        "settle_s": 0,
        "resources": {
            "labels": {
                "members": {"text": {"type": "text", "required": True}},
                "name": "reference",
                "create": "POST /labels",
                "update": "PATCH /labels/{id}",
                "read": "GET /labels/{id}",
            }
        },
    },
}


class StuckShop(VersionedShop):
    """A system whose answers wait until it is free, or which asks for a long pause until then.

    Attributes:
        asked: Set by the first request.
    """

    def __init__(self, *, throttles: bool = False) -> None:
        super().__init__()
        self.free, self.asked, self._throttles = threading.Event(), threading.Event(), throttles

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        self.asked.set()
        if self._throttles and not self.free.is_set():
            return PartnerAnswer(429, headers={"retry-after": "900"})
        self.free.wait()
        return super().answer(request)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[ListenStage]:
    with listen_stage(tmp_path) as opened:
        opened.shop.put_customer("C1")
        opened.shop.put_product("P1")
        opened.shop.put_order("O1", "C1", "P1")
        opened.program = SOON_ASKING
        yield opened


@contextmanager
def _stuck(stage: ListenStage, name: str, shop: StuckShop, settings: Mapping[str, Any]) -> Iterator[None]:
    """*shop* is the system of a connection called *name*."""
    with serving(PartnerServer(shop)) as server:
        document = yaml.safe_load(stage.config.read_text())
        document["connections"][name] = {**settings, "base_url": server.url}
        if name == "depot":
            document["connections"]["shop"]["streams"]["labels"] = LABELS
            document["connections"]["shop"]["webhooks"]["hints"].append(
                {"stream": "labels", "key": "/data/id", "topics": ["labels.changed"]}
            )
        stage.config.write_text(yaml.safe_dump(document))
        try:
            yield
        finally:
            shop.free.set()


def _tell(stage: ListenStage, connection_name: str, stream: str, key: str) -> None:
    body = body_of(stream, key)
    answer = stage.post(body, signed(stage.secret, body, name=uuid4().hex), to=connection_name)
    assert answer.status_code == 200


def _working(stage: ListenStage) -> list[str | None]:
    """The jobs of the runs that have not ended."""
    with stage.project.read_state() as tx:
        return [run.job for run in tx.runs.listed(limit=10) if run.status == "running"]


def _created(stage: ListenStage) -> Counter[str]:
    """How often each record was created on the platform, by its external id."""
    return Counter(each["body"]["externalId"] for each in stage.effects() if each["operation"] == "create")


@pytest.mark.nightly(but=["goes_on"])
@pytest.mark.parametrize("killed", [False, True], ids=["goes_on", "killed"])
def test_a_shop_that_does_not_answer_delays_no_other(stage: ListenStage, killed: bool) -> None:
    """The log tells of it. Its own records are fetched once it answers, also by a process after one that was killed."""
    mute = StuckShop()
    mute.put_customer("C9")
    settings = connection("", [f"file:{stage.folder / 'secret-0'}"])
    with _stuck(stage, "mute", mute, settings), stage.receiving() as processes:
        _tell(stage, "mute", "customers", "C9")
        processes.until(mute.asked.is_set)
        _tell(stage, "shop", "orders", "O1")
        stage.until_delivered({"orders": {"O1"}})
        assert "mute.customers C9" in stage.hints()
        processes.until(lambda: processes.said("webhooks of mute: the same records have taken") == 1)
        if killed:
            processes.kill(*processes.pids)
            processes.start()
        mute.free.set()
        eventually(lambda: not stage.hints())
        assert set(processes.stop()) == {0}
    assert _created(stage) == dict.fromkeys(["shop:C1", "shop:P1", "shop:O1", "mute:C9"], 1)


@pytest.mark.parametrize("stuck", ["source", "target"])
def test_a_long_pause_delays_neither_others_nor_the_end(stage: ListenStage, stuck: str) -> None:
    """The records of others are delivered while a system asks for 15 minutes; SIGTERM and SIGHUP end its pause."""
    if stuck == "source":
        name, told, shop = "mute", ("mute", "customers", "C9"), StuckShop(throttles=True)
        settings = connection("", [f"file:{stage.folder / 'secret-0'}"])
    else:
        name, told, shop, settings = "depot", ("shop", "labels", "P1"), StuckShop(throttles=True), DEPOT
    with _stuck(stage, name, shop, settings), stage.receiving() as processes:
        _tell(stage, *told)
        processes.until(shop.asked.is_set)
        _tell(stage, "shop", "orders", "O1")
        stage.until_delivered({"orders": {"O1"}})
        eventually(lambda: len(_working(stage)) == 1)
        hang_up(processes)
        stage.shop.put_order("O1", "C1", "P1")
        _tell(stage, "shop", "orders", "O1")
        stage.until_delivered({"orders": {"O1"}})
        eventually(lambda: len(stage.hints()) == 1)
        assert set(processes.stop()) == {0}
    connection_name, stream, key = told
    assert list(stage.hints()) == [f"{connection_name}.{stream} {key}"]
