"""Records are sent to a partner's API that a config alone declares; the partner's own effects are the judge."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tests.e2e.order_depot import FAILED, HEADERS, LOOK_UP, REPEATED, Depot, depot, expected, some_orders
from tests.e2e.warehouse import BREAK, FORWARD, Front
from tests.partners.partner_server import Fault, PartnerAnswer, PartnerRequest
from tests.partners.plain_3pl_habits import Habits

from crossdock.config.project import project
from crossdock.sandbox import SandboxServer
from crossdock.testing import sandbox_effects_comparison
from crossdock.testing.sandbox_syncs import write_private_file
from crossdock.values import exact_json

pytestmark = pytest.mark.usefixtures("soon_probing")

ALL_FAULTS: Mapping[Fault, float] = {
    "lost_answer": 0.15,
    "refused": 0.1,
    "throttled": 0.1,
    "unavailable": 0.1,
}
QUICK: dict[str, Any] = {"retry_after_s": Decimal("0.02"), "throttling": "429_float"}
BARE = Habits(idempotency_keys=False, **QUICK)
UNIQUE = Habits(idempotency_keys=False, repeated_reference=422, **QUICK)
AWKWARD = Habits(
    idempotency_keys=False,
    repeated_reference=422,
    errors="in_200",
    throttling="403_milliseconds",
    retry_after_s=Decimal("0.02"),
)
BLIND = Habits(idempotency_keys=False, look_up=False, **QUICK)


def test_orders_are_created_changed_and_cancelled_once(tmp_path: Path) -> None:
    """Each night sends what the plan says; the same rows in a new file send nothing; every command knows the orders."""
    orders = some_orders(7)
    with depot(tmp_path) as plain:
        plain.export(orders)
        assert plain.planned_sync()["streams"]["wms.orders"]["records"]["created"] == 7
        assert plain.held() == expected(orders)
        plain.export(dict(reversed(orders.items())))
        assert plain.planned_sync()["requests"] == 0
        orders["SO-003"] = [("0018", "3", "1.5")]
        del orders["SO-005"]
        plain.export(orders)
        records = plain.planned_sync()["streams"]["wms.orders"]["records"]
        assert (records["updated"], records["deleted"]) == (1, 1)
        assert plain.held() == expected(orders)
        assert plain.created() == Counter({f"wms:SO-{number:03}": 1 for number in range(7)})
        (patch,) = (each["body"] for each in plain.partner.effects if each["kind"] == "order_patched")
        assert set(patch) == {"lines"}
        assert " in plain, accepted " in plain.run("trace", "SO-001").stdout
        gone = plain.run("trace", "SO-005").stdout
        ran = re.search(r"run (\d+): delete orders", gone)
        assert ran is not None
        assert re.search(rf" in plain, deleted \S+ \S+ in run {ran[1]}\n", gone), "not in the run that created it"
        exported = plain.run("bindings", "export").stdout.splitlines()
        assert len(exported) == 1 + 6
        assert all(line.startswith("plain,orders,wms,SO-") for line in exported[1:])
        assert json.loads(plain.run("records", "list", "--json").stdout) == []


@pytest.mark.parametrize(("form", "name"), [("{key}", "SO-000"), ("ACME-{namespace}/{key}", "ACME-wms/SO-000")])
def test_names_have_the_form_of_the_partner(tmp_path: Path, form: str, name: str) -> None:
    """Orders are created, and looked up after lost answers, under names of the declared form, each once."""
    orders = some_orders(8)
    with depot(tmp_path, UNIQUE, REPEATED | {"name_form": form, "name_max_length": 20}, faults=ALL_FAULTS) as plain:
        plain.export(orders)
        converge(plain)
        assert plain.created() == Counter({name.replace("SO-000", key): 1 for key in orders})


@pytest.mark.nightly(but=["look-up only", "errors in 200"])
@pytest.mark.parametrize(
    ("habits", "resource", "target"),
    [
        pytest.param(Habits(**QUICK), HEADERS, {}, id="idempotency header"),
        pytest.param(UNIQUE, REPEATED, {}, id="unique names"),
        pytest.param(BARE, {"look_up": LOOK_UP}, {}, id="look-up only"),
        pytest.param(AWKWARD, REPEATED, {"failed": FAILED}, id="errors in 200"),
        pytest.param(
            Habits(conditional="required", **QUICK), HEADERS | {"conditional": True}, {}, id="conditional changes"
        ),
        pytest.param(UNIQUE, REPEATED | {"update": "PUT /v1/orders/{id}"}, {}, id="whole orders"),
    ],
)
def test_every_order_is_there_once_whatever_fails(
    tmp_path: Path, habits: Habits, resource: Mapping[str, Any], target: Mapping[str, Any]
) -> None:
    """Lost answers, refused connections, 429 and 503 lose and double nothing, in creates, changes and cancellations."""
    orders = some_orders(30)
    with depot(tmp_path, habits, resource, target=target, faults=ALL_FAULTS) as plain:
        plain.export(orders)
        converge(plain)
        assert plain.held() == expected(orders)
        for number in range(0, 30, 3):
            orders[f"SO-{number:03}"] = [("0018", f"{number + 1}", "1.5")]
        for number in range(1, 30, 6):
            del orders[f"SO-{number:03}"]
        plain.export(orders)
        converge(plain)
        assert plain.held() == expected(orders)
        assert set(plain.created().values()) == {1}
        requests = len(plain.server.requests)
        assert plain.sync()["requests"] == 0
        assert len(plain.server.requests) == requests
    assert {fault for _, fault in plain.server.requests} == {"none", *ALL_FAULTS}


def test_what_cannot_be_looked_up_is_left_to_a_person(tmp_path: Path) -> None:
    """Without keys, unique names or a look-up, an order whose answer was lost is in doubt and never sent again."""
    orders = some_orders(12)
    with depot(tmp_path, BLIND, {}, faults={"lost_answer": 0.2}) as plain:
        plain.export(orders)
        report = plain.sync(exit_code=1)
        lost = [request.json()["reference"] for request, fault in plain.server.requests if fault == "lost_answer"]
        assert lost
        assert report["open"]["in_doubt"] == len(lost)
        plain.sync(exit_code=1)
        assert plain.created() == Counter({f"wms:{key}": 1 for key in orders})
        listed = json.loads(plain.run("records", "list", "--json").stdout)
        assert sorted(f"wms:{each['key']}" for each in listed) == sorted(lost)
        ids = {each["body"]["reference"]: each["id"] for each in plain.partner.effects}
        other = ids[f"wms:{min(orders.keys() - {each['key'] for each in listed})}"]
        for name in lost:
            decide = ("records", "resolve", "wms.orders", name.removeprefix("wms:"), "--yes", "--delivered-as")
            assert plain.run(*decide, other).exit_code == 2
            assert plain.run(*decide, ids[name]).exit_code == 0
        assert plain.sync()["requests"] == 0


@pytest.mark.parametrize(
    ("look_up", "accepted", "requests"), [(True, False, 2 * 3), (True, True, 3), (False, True, 3), (False, False, 3)]
)
def test_what_is_only_accepted_is_looked_up(tmp_path: Path, *, look_up: bool, accepted: bool, requests: int) -> None:
    """202 Accepted delivers nothing: a look-up sees the order, or it is in doubt and never sent again.

    The config may say that the API refuses nothing afterwards.
    """
    orders = some_orders(3)
    habits = Habits(idempotency_keys=False, look_up=look_up, accepts=True, **QUICK)
    resource = {"look_up": LOOK_UP if look_up else False, "accepted": accepted}
    with depot(tmp_path, habits, resource) as plain:
        plain.export(orders)
        is_known = look_up or accepted
        report = plain.sync(exit_code=0 if is_known else 1)
        assert (report["open"]["in_doubt"], report["requests"]) == (0 if is_known else 3, requests)
        plain.sync(exit_code=0 if is_known else 1)
        assert plain.created() == Counter({f"wms:{key}": 1 for key in orders})


def test_an_order_that_the_3pl_has_cancelled_needs_no_other_cancellation(tmp_path: Path) -> None:
    """The 3PL refuses to cancel it once more, and shows it as cancelled: that is what was wanted."""
    orders = some_orders(3)
    with depot(tmp_path, UNIQUE, REPEATED) as plain:
        plain.export(orders)
        plain.sync()
        ids = {each["body"]["reference"]: each["id"] for each in plain.partner.effects}
        plain.partner.warehouse.cancel(ids["wms:SO-001"])
        del orders["SO-001"]
        plain.export(orders)
        assert plain.sync()["streams"]["wms.orders"]["records"]["deleted"] == 1
        assert plain.sync()["requests"] == 0
        assert "order_cancelled" not in {each["kind"] for each in plain.partner.effects}


def test_a_decision_about_a_restored_state_is_carried_out(tmp_path: Path) -> None:
    """What cannot be looked up is in doubt; once a person says that it was not delivered, the next sync sends it."""
    orders = some_orders(3)
    with depot(tmp_path, BLIND, {}) as plain:
        assert plain.run("state", "restored").exit_code == 0
        plain.export(orders)
        assert plain.sync(exit_code=1)["open"]["in_doubt"] == 3
        plain.sync(exit_code=1)
        assert plain.created() == Counter()
        decide = ("records", "resolve", "wms.orders", "--yes", "--not-delivered")
        assert plain.run(*decide).exit_code == 0
        assert plain.planned_sync()["streams"]["wms.orders"]["records"]["created"] == 3
        assert plain.held() == expected(orders)
        shown = plain.run("trace", "SO-001").stdout
        assert "resolved as not delivered" in shown, shown
        plain.export(orders | some_orders(4))
        plain.planned_sync()
        assert plain.held() == expected(some_orders(4)), "the state is trusted again"


@pytest.mark.parametrize("resource", [{"look_up": LOOK_UP}, HEADERS], ids=["with a look-up", "without"])
def test_a_gateway_that_finds_nothing_does_not_have_a_restored_state_create_all_again(
    tmp_path: Path, resource: Mapping[str, Any]
) -> None:
    """No order counts as gone that only a server before the 3PL does not find; the next sync compares again."""
    orders = some_orders(3)

    def nothing(request: PartnerRequest) -> PartnerAnswer:
        return PartnerAnswer(404, {"status": 404, "error": "Not Found", "path": request.path})

    with depot(tmp_path, BARE, resource) as plain:
        plain.export(orders)
        plain.sync()
        assert plain.run("state", "restored").exit_code == 0
        with mock.patch.object(plain.partner, "answer", nothing):
            done = plain.run("sync", "--json")
        assert (done.exit_code, "does not show that a record is gone" in done.stderr) == (3, True)
        plain.sync()
        assert plain.created() == Counter(dict.fromkeys((f"wms:{key}" for key in orders), 1))


def test_a_look_up_that_ignores_the_name_is_not_believed(tmp_path: Path) -> None:
    """An API that lists any orders in place of the named one sends no order twice, and the run names the setting."""
    orders, retry = some_orders(12), {"attempts": 2, "give_up_after_s": 0.5, "base_s": 0.01, "cap_s": 0.05}
    with depot(tmp_path, BLIND, {"look_up": LOOK_UP}, target={"retry": retry}, faults={"lost_answer": 1}) as plain:
        plain.partner.warehouse.add_order({"owner": "acme", "reference": "another", "lines": []})
        plain.export(orders)
        done = plain.run("sync", "--json")
        assert done.exit_code == 3
        assert "ignores the filter of a look-up" in done.stderr
        assert "set connections.plain.target.resources.orders.look_up: false" in done.stderr
        assert max(plain.created().values()) == 1


def test_refusals_are_dead_letters_with_the_reason_of_the_partner(tmp_path: Path) -> None:
    """An unknown product and another owner are rejected, whatever the status; the rest is delivered."""
    orders = some_orders(4) | {"SO-BAD": [("0099", "1", "1")]}
    for habits, target in ((Habits(), {}), (Habits(errors="in_200"), {"failed": FAILED})):
        folder = tmp_path / habits.errors
        folder.mkdir()
        with depot(folder, habits, target=target) as plain:
            plain.export(orders)
            assert plain.sync(exit_code=1)["open"]["rejected"] == 1
            (listed,) = json.loads(plain.run("records", "list", "--json").stdout)
            assert listed["key"] == "SO-BAD"
            assert "acme has no product '0099'" in listed["why"]
            assert plain.held() == expected(some_orders(4))


def test_an_order_that_was_shipped_meanwhile_is_not_cancelled(tmp_path: Path) -> None:
    """Its cancellation and its change are dead letters with the reason of the 3PL; an earlier cancellation is none."""
    orders = some_orders(6)
    with depot(tmp_path, UNIQUE, REPEATED) as plain:
        plain.export(orders)
        plain.sync()
        ids = {each["body"]["reference"]: each["id"] for each in plain.partner.effects}
        plain.partner.warehouse.add_location("acme", "A-01")
        plain.partner.warehouse.receive("acme", "0017", "L1", "A-01", Decimal(100))
        for key in ("SO-000", "SO-003"):
            plain.partner.warehouse.ship(ids[f"wms:{key}"], {1: Decimal(1)})
        orders["SO-003"] = [("0018", "1", "1")]
        del orders["SO-000"]
        plain.export(orders)
        plain.sync(exit_code=1)
        listed = json.loads(plain.run("records", "list", "--json").stdout)
        assert sorted(each["key"] for each in listed) == ["SO-000", "SO-003"]
        assert all("is PartDespatched" in each["why"] for each in listed)


def test_a_cancellation_that_does_not_arrive_is_a_dead_letter(tmp_path: Path) -> None:
    """The path is misspelt: the order is still there, and the dead letter can be replayed once the path is right."""
    orders = some_orders(3)
    with depot(tmp_path, BARE, {"look_up": LOOK_UP, "delete": "POST /v1/orders/{id}/cancle"}) as plain:
        plain.export(orders)
        plain.sync()
        del orders["SO-001"]
        plain.export(orders)
        assert plain.sync(exit_code=1)["open"]["rejected"] == 1
        assert plain.held() == expected(some_orders(3))
        (listed,) = json.loads(plain.run("records", "list", "--json").stdout)
        assert "although the target still has the record: check the request that deletes it" in listed["why"]
        plain.config["connections"]["plain"]["target"]["resources"]["orders"]["delete"] = "POST /v1/orders/{id}/cancel"
        plain.configure()
        assert plain.run("records", "replay", "wms.orders", "SO-001").exit_code == 0
        assert plain.held() == expected(orders)


@pytest.mark.parametrize("told", ["cancelled is false", "shows a record that is not deleted"])
def test_a_cancellation_that_only_seems_to_be_accepted_is_a_dead_letter(
    tmp_path: Path, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The 3PL answers 200 and does not cancel: the order is looked up, and counts as there."""
    orders = some_orders(3)
    with depot(tmp_path, BARE, {"look_up": LOOK_UP}) as plain:
        plain.export(orders)
        plain.sync()
        answer = plain.partner.answer

        def kept(request: PartnerRequest) -> PartnerAnswer:
            if not request.path.endswith("/cancel"):
                return answer(request)
            return answer(replace(request, method="GET", path=request.path.removesuffix("/cancel")))

        def ignored(request: PartnerRequest) -> PartnerAnswer:
            return PartnerAnswer(200, {"cancelled": False}) if request.path.endswith("/cancel") else answer(request)

        monkeypatch.setattr(plain.partner, "answer", ignored if told.startswith("cancelled") else kept)
        del orders["SO-001"]
        plain.export(orders)
        assert plain.sync(exit_code=1)["open"]["rejected"] == 1
        (listed,) = json.loads(plain.run("records", "list", "--json").stdout)
        assert f"answered success, but {told}" in listed["why"]


def test_an_order_that_gets_another_name_is_created_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The 3PL writes names in upper case, so that no look-up finds them: the create is in doubt, and not repeated."""
    orders = some_orders(2)
    with depot(tmp_path, BARE, {"look_up": LOOK_UP}) as plain:
        answer = plain.partner.answer

        def in_upper_case(request: PartnerRequest) -> PartnerAnswer:
            if request.method == "POST":
                body = {**request.json(), "reference": request.json()["reference"].upper()}
                request = replace(request, body=exact_json.dumps(body))
            return answer(request)

        monkeypatch.setattr(plain.partner, "answer", in_upper_case)
        plain.export(orders)
        for _ in range(2):
            plain.sync(exit_code=1)
        assert plain.created() == Counter({f"WMS:{key}": 1 for key in orders})
        listed = json.loads(plain.run("records", "list", "--state", "in-doubt", "--json").stdout)
        assert {each["key"] for each in listed} == {*orders}


def test_an_ignored_change_is_a_dead_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The 3PL answers 200 with the order as it was, and a look-up shows the same."""
    orders = some_orders(3)
    with depot(tmp_path, BARE, {"look_up": LOOK_UP}) as plain:
        plain.export(orders)
        plain.sync()
        answer = plain.partner.answer

        def ignored(request: PartnerRequest) -> PartnerAnswer:
            return answer(replace(request, method="GET") if request.method == "PATCH" else request)

        monkeypatch.setattr(plain.partner, "answer", ignored)
        plain.export({**orders, "SO-001": [("0018", "3", "1.5")]})
        assert plain.sync(exit_code=1)["open"]["rejected"] == 1
        (listed,) = json.loads(plain.run("records", "list", "--json").stdout)
        assert "answered success, but shows the old value of lines" in listed["why"]


def test_an_order_that_comes_back_is_created_anew_or_refused(tmp_path: Path) -> None:
    """A cancelled order is never taken for the one that comes back with the same name."""
    orders = some_orders(3)
    for habits, resource in ((BARE, {"look_up": LOOK_UP}), (UNIQUE, REPEATED)):
        folder = tmp_path / str(habits.repeated_reference)
        folder.mkdir()
        with depot(folder, habits, resource) as plain:
            for night in (orders, {"SO-000": orders["SO-000"]}, orders):
                plain.export(night)
                done = plain.run("sync", "--json")
            if habits.repeated_reference is None:
                assert done.exit_code == 0
                assert plain.held() == expected(orders)
            else:
                assert done.document["open"]["rejected"] == 2
                assert plain.held() == expected({"SO-000": orders["SO-000"]})


def test_a_change_whose_answer_was_lost_is_recognized(tmp_path: Path) -> None:
    """What the 3PL shows besides, such as line numbers, is no difference: the change is not sent again."""
    orders = some_orders(3)
    with depot(tmp_path, BARE, {"look_up": LOOK_UP}) as plain:
        plain.export(orders)
        plain.sync()
        orders["SO-001"] = [("0018", "3", "1.5"), ("0017", "1", "2")]
        plain.export(orders)
        plain.server.faults = {"lost_answer": 1}
        plain.sync()
        assert [each["kind"] for each in plain.partner.effects[3:]] == ["order_patched"]
        assert plain.held() == expected(orders)


def test_a_resource_without_update_is_written_once(tmp_path: Path) -> None:
    """A change is a dead letter, and a removal cancels the order all the same."""
    orders = some_orders(3)
    with depot(tmp_path, UNIQUE, {"update": None}) as plain:
        plain.export(orders)
        plain.planned_sync()
        before = dict(orders)
        orders["SO-001"] = [("0018", "3", "1.5")]
        del orders["SO-002"], before["SO-002"]
        plain.export(orders)
        report = plain.sync(exit_code=1)
        assert report["streams"]["wms.orders"]["records"]["deleted"] == 1
        (listed,) = json.loads(plain.run("records", "list", "--json").stdout)
        assert listed["why"].startswith("changed_after_delivery: ")
        assert plain.held() == expected(before)


def test_check_says_whether_the_target_answers(tmp_path: Path) -> None:
    """With the address and what can be written; a refused credential names the section."""
    with depot(tmp_path) as plain:
        assert f"ok    plain: {plain.server.url} answers; can be written: orders" in plain.run("check").stdout
        plain.plain["auth"]["name"] = "Another-Key"
        plain.configure()
        assert "FAIL  plain: " in (shown := plain.run("check").stdout)
        assert "connections.plain.auth" in shown
        asked = len(plain.partner.effects)
    assert asked == 0


@contextmanager
def two_targets(folder: Path, platform: SandboxServer) -> Iterator[tuple[Depot, Front, Callable[[], list[str]]]]:
    """A depot and the platform, for orders and products of one warehouse, and the products that the platform has."""
    retry = {"attempts": 3, "give_up_after_s": 0.5, "base_s": 0.01, "cap_s": 0.05}
    with Front(platform.base_url) as front, depot(folder, target={"retry": retry}, begin=False) as plain:
        tenant = folder.name
        key = platform.sandbox.new_key(tenant)
        auth = {"kind": "api_key", "token": write_private_file(folder / "key", key)}
        plain.config["platform"] = {"base_url": front.base_url, "tenant": tenant, "auth": auth, "retry": retry}
        plain.config["connections"]["wms"]["streams"]["products"] = {
            "files": "ITEMS_*.csv",
            "mode": "append",
            "key": ["SKU"],
            "format": {"kind": "delimited"},
            "resource": "product",
            "map": {"sku": "SKU", "name": "NAME"},
        }
        plain.configure()
        plain.init()

        def products() -> list[str]:
            with mock.patch.dict(os.environ, plain.environment):
                profile = project.load(folder / "c.yaml").platform
                direct = profile.model_copy(update={"base_url": platform.base_url})
                return sorted(each["body"]["sku"] for each in sandbox_effects_comparison.list_effects_of_tenant(direct))

        yield plain, front, products


def export_items(plain: Depot, *skus: str) -> None:
    path = plain.folder / "out" / f"ITEMS_{skus[0]}.csv"
    path.write_text("SKU,NAME\n" + "".join(f"{sku},Thing\n" for sku in skus))
    os.utime(path, (1_600_000_000, 1_600_000_000))


@pytest.mark.nightly(but=["platform"])
@pytest.mark.parametrize("down", ["plain", "platform", "nothing"])
def test_a_target_that_is_down_does_not_hold_up_another(tmp_path: Path, platform: SandboxServer, down: str) -> None:
    """The streams of the other are delivered in full, exit 3 names the one that is down, the next run completes."""
    orders, skus = some_orders(25), [f"{number:04}" for number in range(30)]
    with two_targets(tmp_path, platform) as (plain, front, products):
        plain.export(orders)
        export_items(plain, *skus)
        if down == "nothing":
            plain.planned_sync()
        else:
            plain.server.faults = {"unavailable": 1} if down == "plain" else {}
            front.fate = lambda _: BREAK if down == "platform" else FORWARD
            report = plain.sync(exit_code=3)
            assert list(report["errors"]) == [down]
            assert (plain.held(), products()) == ((Counter(), skus) if down == "plain" else (expected(orders), []))
            plain.server.faults, front.fate = {}, lambda _: FORWARD
            plain.sync()
        assert plain.held() == expected(orders)
        assert products() == skus
        assert set(plain.created().values()) == {1}
        assert plain.planned_sync()["requests"] == 0


def converge(plain: Depot) -> None:
    """Sync until everything is delivered."""
    for _ in range(5):
        done = plain.run("sync", "--json")
        assert done.exit_code in {0, 1, 3}, done.stderr
        if done.exit_code == 0:
            return
    raise AssertionError(done.stderr + done.stdout)
