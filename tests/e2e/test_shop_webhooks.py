"""What shops tell by webhooks is at the platform before the next run, which finds only what no webhook told."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.chaos.shop_dump import dump
from tests.chaos.shop_judge import faults
from tests.chaos.shop_trip_people import ShopPeople
from tests.partners.shop_stage import ShopifyStage, WooCommerceStage, shopify_stage, woocommerce_stage
from tests.partners.shopify.site import Site
from tests.partners.stage import Project
from tests.partners.webhook_sender import WebhookSender
from tests.partners.woocommerce.shop import FakeShop
from tests.partners.woocommerce.shop_orders import Order

from crossdock.runs.run_report import Report
from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.services.inbox import webhook_receiver_and_writer
from crossdock.services.inbox.webhook_receiver_and_writer import RefusedWebhookCounts, WebhookReceiver, WebhookWriter
from crossdock.state import State
from crossdock.testing import ManualClock
from crossdock.testing.sandbox_syncs import write_private_file

pytestmark = pytest.mark.nightly

UNPACED = SandboxSettings(rate_per_min=600_000, burst=100_000)
CLIENT_SECRET = "shpss_of_this_test"
RESOURCES = ("customer", "product", "inventory_lot", "order", "invoice")


@dataclass
class Receiving:
    """A receiver without endpoints yet."""

    base_url: str
    receiver: WebhookReceiver
    refused: RefusedWebhookCounts


@pytest.fixture
def receiving() -> Iterator[Receiving]:
    def no_state() -> State:
        raise AssertionError("the project names its state")

    refused = RefusedWebhookCounts()
    writer = WebhookWriter(no_state, ManualClock(), lambda _: None)
    made = WebhookReceiver({}, writer, refused)
    with webhook_receiver_and_writer.serve_webhook_receiver_in_thread(made, "127.0.0.1", 0) as base_url:
        yield Receiving(base_url, made, refused)
    writer.store_queued_and_close()


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox", UNPACED) as sandbox:
        yield sandbox


def ok(report: Report) -> Report:
    assert (report.exit_code, report.balanced) == (0, True), report.errors
    return report


def delivered(report: Report) -> dict[str, int]:
    return {name: tally.delivered for name, tally in report.tallies.items() if tally.delivered}


@contextmanager
def shopify(tmp_path: Path, sandbox: SandboxServer, receiving: Receiving) -> Iterator[ShopifyStage]:
    site, listen = Site(client_secret=CLIENT_SECRET), {"public_url": receiving.base_url}
    secret = write_private_file(tmp_path / "client-secret", CLIENT_SECRET)
    settings = {"bulk": False, "webhooks": {"secrets": [secret]}}
    with shopify_stage(tmp_path, sandbox, site, listen, **settings) as stage:
        yield stage


@contextmanager
def woocommerce(
    tmp_path: Path, sandbox: SandboxServer, receiving: Receiving, shop: FakeShop, clock: ManualClock
) -> Iterator[WooCommerceStage]:
    listen = {"public_url": receiving.base_url}
    secret = write_private_file(tmp_path / "webhook-secret", "a secret of our own")
    settings = {"webhooks": {"secrets": [secret]}}
    with woocommerce_stage(tmp_path, sandbox, shop, clock, listen, **settings) as stage:
        yield stage


def told(
    stage: Project,
    receiving: Receiving,
    sender: WebhookSender,
    change: Callable[[], None],
    rng: random.Random,
    changes: int,
) -> None:
    """Register, load the shop, and deliver the webhooks of so many changes as they come."""
    ok(stage.sync())
    with stage.delivering(receiving.receiver) as deliver:
        registered = stage.subscribe("shop")
        assert all(subscription.address.startswith(receiving.base_url) for subscription in registered)
        assert stage.subscribe("shop") == registered, "a second registration changes nothing"
        for _ in range(changes):
            change()
            sender.send_all(rng)
            deliver()
        sender.send_until_empty(rng)
        deliver()
    assert [hint for hint in stage.hints() if hint.error] == []


def shopify_tells(tmp_path: Path, sandbox: SandboxServer, receiving: Receiving, seed: int, changes: int) -> None:
    """Fails unless so many changes of a shop arrive by webhooks alone."""
    rng, happened = random.Random(seed), Counter[str]()
    with shopify(tmp_path, sandbox, receiving) as stage:
        people, site = ShopPeople(stage.site.shop, rng, happened), stage.site
        for _ in range(5):
            people.order()

        def change() -> None:
            site.clock.advance(30)
            (people.order if rng.random() < 0.5 else people.change)()

        site.shop.sender.faults = {"doubled": 0.2, "delayed": 0.2, "reordered": 0.2, "replayed": 0.1, "forged": 0.1}
        told(stage, receiving, site.shop.sender, change, rng, changes)
        assert set(receiving.refused.pop_counts()) <= {("shop", "wrong_signature")}
        site.clock.advance(3_600)
        assert delivered(ok(stage.sync())) == {}
        effects = [effect for resource in RESOURCES for effect in stage.effects(resource)]
        assert faults(dump(site.shop), effects, 0) == []
    assert happened["orders"] > changes // 2
    assert happened.total() > happened["orders"]


def test_a_shopify_shop_tells_of_its_changes(tmp_path: Path, sandbox: SandboxServer, receiving: Receiving) -> None:
    """Orders, edits, refunds and cancellations arrive by webhooks to the cent; a run afterwards has nothing to send."""
    shopify_tells(tmp_path, sandbox, receiving, seed=0, changes=8)


@pytest.mark.nightly
def test_a_run_finds_what_no_webhook_of_shopify_told(
    tmp_path: Path, sandbox: SandboxServer, receiving: Receiving
) -> None:
    """Of webhooks that are lost, the next run brings the records, and says how many."""
    lost_are_found(tmp_path, sandbox, receiving, changes=8)


def lost_are_found(tmp_path: Path, sandbox: SandboxServer, receiving: Receiving, changes: int) -> None:
    """Fails unless a run brings those of so many new orders whose webhooks were lost."""
    rng = random.Random(7)
    with shopify(tmp_path, sandbox, receiving) as stage:
        people, site = ShopPeople(stage.site.shop, rng, Counter()), stage.site

        def change() -> None:
            site.clock.advance(30)
            people.order()

        site.shop.sender.faults = {"lost": 0.6}
        told(stage, receiving, site.shop.sender, change, rng, changes)
        site.clock.advance(3_600)
        report = ok(stage.sync())
        assert delivered(report)["shop.orders"] > 0
        assert any("no webhook has told of" in note for note in report.notes["shop.orders"])
        effects = [effect for resource in RESOURCES for effect in stage.effects(resource)]
        assert faults(dump(site.shop), effects, 0) == []


@pytest.mark.nightly
def test_a_woocommerce_shop_tells_of_its_changes(tmp_path: Path, sandbox: SandboxServer, receiving: Receiving) -> None:
    """Orders of guests and their changes arrive by webhooks; a run afterwards has nothing to send."""
    woocommerce_tells(tmp_path, sandbox, receiving, changes=8)


def woocommerce_tells(tmp_path: Path, sandbox: SandboxServer, receiving: Receiving, changes: int) -> None:
    """Fails unless so many changes of a shop arrive by webhooks alone."""
    rng, clock = random.Random(1), ManualClock(datetime(2026, 3, 2, 12, tzinfo=UTC))
    shop, orders = FakeShop(clock=clock), list[Order]()
    lamp = shop.catalog.add("Lamp", "49.90", sku="LAMP")
    with woocommerce(tmp_path, sandbox, receiving, shop, clock) as stage:

        def change() -> None:
            clock.advance(60)
            if not orders or rng.random() < 0.5:
                billing = {"email": f"{len(orders)}@example.com"}
                orders.append(shop.orders.place((lamp, rng.randint(1, 3)), billing=billing))
            else:
                shop.orders.edit(rng.choice(orders), {"customer_note": "changed"})

        shop.sender.faults = {"doubled": 0.2, "delayed": 0.2, "reordered": 0.2}
        told(stage, receiving, shop.sender, change, rng, changes)
        assert receiving.refused.pop_counts() == {}
        clock.advance(3_600)
        assert delivered(ok(stage.sync())) == {}
        assert len(stage.stored("order")) == len(orders)
