"""Which record of the platform is ours: no answer makes crossdock bind or write a record of somebody else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.integration.delivery.harness import PRODUCTS, Answer, Bench, Platform, Seen, Shelf, created, updating

from crossdock.errors import UnavailableError
from crossdock.state import StateUrl, parse_database_url
from crossdock.testing.manual_clock import ManualClock

STREAM = "wms.products"
FOREIGN = {"externalId": "erp:17", "sku": "THEIRS", "name": "not ours"}


@pytest.fixture
def state_url(tmp_path: Path) -> StateUrl:
    """One database is enough: that both answer alike is tested with the state."""
    return parse_database_url("sqlite:///state.db", tmp_path)


def ignoring_the_filter(shelf: Shelf) -> Answer:
    """The first records of the list, whatever name was asked for."""
    return 200, {}, json.dumps({"data": list(shelf.held.values())[:1]}).encode()


@pytest.mark.parametrize("adopting", [False, True])
def test_a_platform_that_does_not_filter_loses_no_record(bench: Bench, platform: Platform, *, adopting: bool) -> None:
    """Where every look-up answers with a foreign record, it is neither bound nor written, and the message says why."""
    shelf, bench.clock = Shelf(), ManualClock()
    foreign = shelf.put(FOREIGN)

    def script(seen: Seen) -> Answer:
        if seen.method == "GET":
            return ignoring_the_filter(shelf)
        return (409, {}, b'{"detail":"externalId is taken"}') if adopting else (504, {}, b"")

    platform.script = script
    bench.settings = {"idempotency": {"enabled": False}, "retry": {"attempts": 3, "base_s": 0.001, "cap_s": 0.001}}
    bench.adopting = frozenset({STREAM}) if adopting else frozenset()
    with pytest.raises(
        UnavailableError, match="ignores the filter externalId; if it has none, set platform.lookup.enabled"
    ):
        bench.deliver(30)
    assert (bench.bound(), shelf.held) == (0, {foreign: {"id": foreign, **FOREIGN}})
    assert {seen.method for seen in platform.seen} <= {"POST", "GET"}
    assert platform.probes, "a name that does not exist was asked for"


def test_the_filter_is_tried_once_in_a_run(bench: Bench, platform: Platform) -> None:
    """Before the first look-up by name a name that does not exist is asked for, and never again in that run."""
    platform.script = shelf = Shelf()
    bench.state_restored = True
    bench.deliver(20)
    assert (len(platform.probes), len(shelf.held), bench.bound()) == (1, 20, 20)


def test_two_records_never_share_an_id(bench: Bench, platform: Platform) -> None:
    """Of two records that the platform gives one id, in one turn or in two, the second is in doubt."""
    platform.script = lambda _seen: (201, {}, b'{"id":"prd_1"}')
    bench.deliver(3)
    assert (bench.bound(), bench.statuses()) == (1, {"delivered": 1, "in_doubt": 2})
    bench.deliver(5)
    assert (bench.bound(), set(bench.unsettled().values())) == (1, {"in_doubt"})
    with bench.state.begin_read_only() as tx:
        unsettled = tx.intents.page_with_statuses(("in_doubt",), limit=10)
        messages = tx.intents.latest_attempt_messages(unsettled)
    assert all("belongs to another record, wms:" in messages[intent.id] for intent in unsettled)


def test_an_update_that_meets_a_foreign_record_stops_there(bench: Bench, platform: Platform) -> None:
    """Where our id suddenly shows a foreign record, a conflict does not lead to a write over it."""
    platform.script, bench.clock = created, ManualClock()
    bench.deliver(1)
    binding = bench.binding(0)
    shown = {"id": binding.target_id, **FOREIGN}

    def script(seen: Seen) -> Answer:
        if seen.method == "PATCH":
            return 412, {}, b"{}"
        return 200, {"etag": '"other"'}, json.dumps(shown).encode()

    platform.script = script
    bench.settings = {"retry": {"attempts": 2, "base_s": 0.001, "cap_s": 0.001}}
    with pytest.raises(UnavailableError, match="a different record"):
        bench.carry_out([updating(binding, binding.payload | {"name": "y"})])
    assert len(platform.of("PATCH")) == 1
    assert platform.of("GET")[0].path == f"{PRODUCTS}/{binding.target_id}"
