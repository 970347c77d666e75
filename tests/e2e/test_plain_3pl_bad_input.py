"""Bad input of a 3PL with a plain API, and its ways to refuse: each has a reason that an operator is told."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from tests.e2e.order_depot import HEADERS, LOOK_UP, REPEATED, Depot, depot, expected, some_orders
from tests.integration.notifications.receivers import Receiver
from tests.integration.partners.test_plain_3pl_by_config import CONFIG
from tests.integration.scheduler.scheduled_runs_race import Inline
from tests.partners.plain_3pl import API_KEY
from tests.partners.plain_3pl_habits import Habits
from tests.servers import served

from crossdock.config.notify_config import NotifyConfig
from crossdock.config.project import project
from crossdock.runs import sync_and_replay
from crossdock.sandbox import SandboxServer
from crossdock.services.notifications.mail_and_webhook_notifier import Notifier
from crossdock.services.observability.health_and_metrics import Metrics
from crossdock.services.scheduler.monitored_scheduler import MonitoredScheduler
from crossdock.services.scheduler.scheduler import WorkerPool
from crossdock.testing import sandbox_effects_comparison
from crossdock.testing.manual_clock import ManualClock
from crossdock.testing.sandbox_syncs import write_private_file
from crossdock.values.run_progress_and_messages import SilentProgress

pytestmark = pytest.mark.nightly

DAY_S = 86_400
BEGIN = datetime(2030, 1, 1, 1, tzinfo=UTC)  # a Tuesday, an hour before the first run
JOBS = {"stock": {"schedule": {"time_zone": "UTC", "at": "02:00", "days": ["tue", "wed"]}}}
LOOK_UP_ONLY = Habits(idempotency_keys=False)
UNIQUE = Habits(idempotency_keys=False, repeated_reference=422)


@contextmanager
def reading_depot(folder: Path, platform: SandboxServer, habits: Habits | None = None) -> Iterator[Depot]:
    """A 3PL whose products, bins and stock come to the platform."""
    with depot(folder, habits, begin=False) as plain:
        tenant = folder.name
        auth = {"kind": "api_key", "token": write_private_file(folder / "key", platform.sandbox.new_key(tenant))}
        own = {"base_url": platform.base_url, "tenant": tenant, "auth": auth, "max_clock_skew_s": None}
        del plain.config["connections"]["wms"]
        plain.config |= {"platform": own, "jobs": JOBS}
        known = yaml.safe_load(CONFIG.replace("ZONE", "UTC"))["connections"]["depot"]
        plain.plain["pagination"] = known["pagination"]
        plain.plain["streams"] = {name: known["streams"][name] for name in ("products", "locations", "stock")}
        plain.configure()
        plain.init()
        plain.partner.warehouse.add_location("acme", "A-01")
        yield plain


def listed(plain: Depot) -> dict[str, tuple[str, str]]:
    """State and reason of each open record, by its key."""
    found = json.loads(plain.run("records", "list", "--json").stdout)
    return {each["key"]: (each["state"], each["why"]) for each in found}


class Nights:
    """A scheduler with a clock of its own, and the messages that people get."""

    def __init__(self, plain: Depot, receiver: Receiver) -> None:
        self._receiver = receiver
        self.clock = ManualClock(BEGIN)
        self.project = project.load(plain.folder / "c.yaml")
        notifier = Notifier(NotifyConfig.model_validate({"webhook": {"url": receiver.url}}), self.clock)
        metrics, stop = Metrics(self.clock), threading.Event()
        more: Any = {"notifier": notifier, "trace": lambda _: None, "workers": WorkerPool(Inline())}
        self.service = MonitoredScheduler(self.project, self.clock, stop, metrics, **more)
        self.service.report_ended_and_start_due()  # the job counts from now

    def after(self, days: int) -> list[str]:
        """The messages about the next run, so many days later."""
        sent = len(self._receiver.posts)
        self.clock.advance(days * DAY_S)
        self.service.report_ended_and_start_due()
        return [json.loads(post.body)["text"] for post in self._receiver.posts[sent:]]

    def lots(self) -> dict[str, Decimal]:
        """The quantities that the platform has, by external id."""
        effects = sandbox_effects_comparison.list_effects_of_tenant(self.project.platform)
        lots = [each["body"] for each in effects if each["resource"] == "inventory_lot"]
        return {each["externalId"]: Decimal(each["quantity"]) for each in lots}


def test_a_lot_says_what_it_waits_for_and_people_are_reminded(
    tmp_path: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lot without its product or bin is listed and traced with that name, told at once and again after a week, and
    delivered when they come; a negative quantity arrives as it is."""
    monkeypatch.setenv("DEPOT_KEY", API_KEY)
    with reading_depot(tmp_path, platform, Habits(negative_stock=True)) as plain, served(Receiver()) as receiver:
        warehouse = plain.partner.warehouse
        warehouse.receive("acme", "0017", "L1", "A-01", 5)
        warehouse.adjust(next(iter(warehouse.tables["stock"])), -7)
        warehouse.receive("acme", "0018", "L1", "Z-99", 5)
        unknown = {"owner": "acme", "sku": "0099", "lot": "L1", "location": "A-01", "state": "available"}
        warehouse.add("stock", {**unknown, "quantity": 3, "unit": "each"})
        nights = Nights(plain, receiver)
        with closing(nights.service):
            (first,) = nights.after(1)
            since = nights.clock.now()
            assert "completed with open records" in first
            assert "Open records: 2 waiting" in first
            waits = {
                "0099|L1|A-01|available": "product plain:0099",
                "0018|L1|Z-99|available": "warehouse_bin plain:Z-99",
            }
            assert listed(plain) == {key: ("waiting", f"waits for {name}") for key, name in waits.items()}
            assert nights.after(1) == []
            (reminder,) = nights.after(6)
            assert "Open records: 2 waiting" in reminder
            for key, name in waits.items():
                traced = plain.run("trace", key).stdout
                assert f"waiting since {since:%Y-%m-%d %H:%M:%S}Z for {name}" in traced
            assert nights.lots() == {"plain:0017|L1|A-01|available": -2}
            plain.partner.clock.advance(60)
            warehouse.add_product("acme", "0099")
            warehouse.add_location("acme", "Z-99")
            (end,) = nights.after(1)
            assert "recovered" in end
            assert nights.lots() == {
                "plain:0017|L1|A-01|available": -2,
                "plain:0018|L1|Z-99|available": 5,
                "plain:0099|L1|A-01|available": 3,
            }
    assert listed(plain) == {}


def test_a_refusal_in_200_is_no_empty_list(tmp_path: Path, platform: SandboxServer) -> None:
    """A reader whose request is refused with 200 ends with exit 4 and what the answer says; no lot is removed."""
    with reading_depot(tmp_path, platform, Habits(errors="in_200")) as plain:
        plain.partner.warehouse.receive("acme", "0017", "L1", "A-01", 5)
        plain.sync()
        plain.plain["streams"]["stock"]["params"]["limit"] = 0
        plain.configure()
        done = plain.run("sync", "--json")
        assert done.exit_code == 4
        assert "/v1/stock: the list ended here, although /Errors reports an error" in done.stderr
        assert done.document["requests"] == 0


def test_a_limit_that_is_not_declared_says_what_the_3pl_said(tmp_path: Path, platform: SandboxServer) -> None:
    """403 for too many requests, without `throttled` in the config: exit 3 with the text of the answer."""
    with reading_depot(tmp_path, platform, Habits(throttling="403_milliseconds")) as plain:
        del plain.plain["throttled"]
        plain.configure()
        plain.server.faults, plain.server.chosen = {"throttled": 1}, lambda _: True
        done = plain.run("sync")
        assert done.exit_code == 3
        assert "/v1/stock: refused the credentials (HTTP 403): Too many requests, retry after 1500 milli" in done.stderr


@pytest.mark.parametrize(
    ("habits", "resource", "found"),
    [
        pytest.param(Habits(), HEADERS, None, id="idempotency header: the first answer is repeated"),
        pytest.param(
            UNIQUE, REPEATED, ("rejected", "conflict: acme has an order with the reference"), id="unique names"
        ),
        pytest.param(
            LOOK_UP_ONLY, {"look_up": LOOK_UP}, ("in-doubt", "a removed record of this name"), id="look-up only"
        ),
    ],
)
def test_an_order_that_is_cancelled_while_it_is_sent_is_not_sent_again(
    tmp_path: Path, habits: Habits, resource: Mapping[str, Any], found: tuple[str, str] | None
) -> None:
    """The answer is lost, and the 3PL cancels the order before crossdock asks again: there is one order."""
    with depot(tmp_path, habits, resource) as plain:
        warehouse = plain.partner.warehouse

        def cancel() -> None:
            plain.server.faults = {}
            warehouse.cancel(next(iter(warehouse.tables["orders"])))

        plain.server.faults = {"lost_answer": 1}
        plain.partner.meanwhile(lambda _: bool(plain.partner.effects), cancel)
        plain.export(some_orders(1))
        for _ in range(2):
            assert plain.run("sync").exit_code == (0 if found is None else 1)
        assert plain.created() == Counter({"wms:SO-000": 1})
        state, why = listed(plain).get("SO-000", ("", ""))
        assert found is None or (state == found[0] and found[1] in why)
        if state == "in-doubt":
            (order_id,) = warehouse.tables["orders"]
            resolve = ("records", "resolve", "wms.orders", "SO-000")
            assert f"{order_id}  same content" in plain.run(*resolve).stdout
            assert plain.run(*resolve, "--delivered-as", order_id, "--yes").exit_code == 0
            assert plain.sync()["requests"] == 0
            assert plain.created().total() == 1


def test_another_owner_is_kept_apart(tmp_path: Path) -> None:
    """Another merchant's order of the same name is not taken for ours; an unknown owner is refused."""
    orders = some_orders(2)
    with depot(tmp_path, LOOK_UP_ONLY, {"look_up": LOOK_UP}) as plain:
        warehouse = plain.partner.warehouse
        warehouse.add_product("globex", "0017")
        theirs = warehouse.add_order(
            {"owner": "globex", "reference": "wms:SO-000", "lines": [{"sku": "0017", "quantity": 1}]}
        )
        plain.server.faults = {"refused": 1}
        plain.partner.meanwhile(lambda _: True, lambda: setattr(plain.server, "faults", {}))
        plain.export(orders)
        plain.sync()
        assert plain.held() == expected(orders)
        assert warehouse.tables["orders"][theirs].members["status"] == "new"
        for sku in ("0017", "0018"):
            warehouse.add_product("initech", sku)
        orders_of = plain.config["connections"]["wms"]["streams"]["orders"]
        orders_of["map"]["owner"] = {"const": "initech"}
        plain.configure()
        plain.export(orders | {"SO-NEW": [("0017", "1", "1")]})
        plain.sync(exit_code=1)
        assert listed(plain)["SO-NEW"] == ("rejected", "rejected: there is no owner 'initech'")


@pytest.mark.parametrize("throttling", ["429_date", "403_milliseconds"])
def test_a_sender_waits_as_long_as_the_3pl_says(
    tmp_path: Path, throttling: Literal["429_date", "403_milliseconds"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait until a date, or in milliseconds in the text of a 403, is obeyed, and every order is there once."""
    monkeypatch.setenv("DEPOT_KEY", API_KEY)
    orders = some_orders(12)
    habits = Habits(throttling=throttling, retry_after_s=Decimal(90))
    with depot(tmp_path, habits, target={"in_flight": 1}, faults={"throttled": 0.3}) as plain:
        plain.export(orders)
        clock = plain.partner.clock
        began, loaded = clock.now(), project.load(tmp_path / "c.yaml")
        report = sync_and_replay.sync(loaded, [], clock=clock, progress=SilentProgress(), interrupt=threading.Event())
        assert (report.exit_code, report.balanced) == (0, True), report.errors
        assert plain.held() == expected(orders)
        refused = sum(fault == "throttled" for _, fault in plain.server.requests)
        assert refused == report.counters.throttled > 0
        assert clock.now() - began >= refused * timedelta(seconds=90)
