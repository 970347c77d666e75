"""While an undo has begun and not ended, nothing else works on its streams, and it does only what was approved."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.test_reconcile import call, held
from tests.e2e.test_undo import run_of
from tests.e2e.warehouse import CUSTOMERS, FORWARD, PRODUCTS, Fate, Front, Reply, Seen, Site

MORE = "SKU;NAME;PRICE\nP2;Hex nut;0.30\nP3;Washer;0.05\nP4;Rivet;0.02\nP5;Pin;0.01\nP7;Bad;dear\n"


@pytest.fixture
def interrupted(site: Site, front: Front, soon_probing: None) -> Site:
    """An undo of four products of which one is deleted; then the platform was away, and a new export arrived."""
    site.edit("in_flight: 4", "in_flight: 1")
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    site.export("PROD_1.csv", PRODUCTS)
    assert site.sync("wms.customers", "wms.products").code == 0
    site.export("PROD_2.csv", MORE)
    run = run_of(site.sync("wms.products"))
    assert site.run("undo", run, "-o", str(plan_of(site))).code == 0
    written = list[Seen]()

    def away(seen: Seen) -> Fate:
        is_away = bool(written)
        if seen.method == "DELETE":
            written.append(seen)
        return Reply(503) if is_away else FORWARD

    front.fate = away
    stopped = site.run("apply", str(plan_of(site)))
    assert (stopped.code, "crossdock apply --resume" in stopped.err) == (3, True)
    front.fate = lambda _: FORWARD
    site.export("PROD_3.csv", "SKU;NAME;PRICE\nP3;Washer;0.06\nP6;Bracket;4.00\n")
    return site


def plan_of(site: Site) -> Path:
    return site.folder / "undo.plan"


def creates(site: Site) -> int:
    return len(site.names("product"))


def test_nothing_else_works_on_its_streams(interrupted: Site) -> None:
    """Each command that would is refused with exit 4 and says what completes the undo; other streams are synced."""
    before = creates(interrupted)
    interrupted.export("CUST_2.csv", "CUSTNO;NAME\nC3;Kanari Star\n")
    (interrupted.folder / "b.csv").write_text("target,resource,namespace,key,target_id\nplatform,product,wms,P8,x8\n")
    commands = (
        ("sync", "wms.products"),
        ("plan", "wms.products"),
        ("records", "replay", "wms.products"),
        ("approve", "wms.products", "1"),
        ("bindings", "import", str(interrupted.folder / "b.csv")),
        ("undo", "1"),
    )
    for command in commands:
        result = interrupted.run(*command)
        assert (result.code, "crossdock apply --resume" in result.err) == (4, True), (command, result.err)
    night = interrupted.sync()
    assert (night.code, night.records("customers")) == (4, {"read": 1, "created": 1})
    assert creates(interrupted) == before


def test_the_same_plan_completes_it(interrupted: Site) -> None:
    """What others have changed since is left alone, and so is what was left alone when the undo was approved."""
    ids = {name: each["id"] for name, each in held(interrupted, "product").items()}
    left = sorted(name for name in ("wms:P3", "wms:P4", "wms:P5") if name in ids)
    call(interrupted, "PATCH", f"catalog/products/{ids[left[0]]}", {"barcode": "4006381333931"})
    resumed = interrupted.run("apply", str(plan_of(interrupted)), "--json")
    assert resumed.code in {0, 1}, resumed.err
    assert sorted(held(interrupted, "product")) == sorted({"wms:P1", "wms:P2", left[0]})
    assert interrupted.sync().code in {0, 1}
    assert "wms:P6" in held(interrupted, "product")


def test_an_undo_ends_with_its_last_operation(interrupted: Site, front: Front) -> None:
    """While the platform fails for one of them, the undo goes on each time, and its stream is not synced."""
    last = held(interrupted, "product")["wms:P5"]["id"]
    front.fate = lambda seen: Reply(500) if seen.method == "DELETE" and last in seen.path else FORWARD
    resumed = interrupted.run("apply", "--resume")
    assert "the undo has not ended, and its streams are not synced" in resumed.err
    assert interrupted.sync("wms.products").code == 4
    front.fate = lambda _: FORWARD
    assert interrupted.run("apply", "--resume").code == 1, "a row of the export is rejected"
    assert interrupted.sync("wms.products").code == 1
    assert sorted(held(interrupted, "product")) == ["wms:P1", "wms:P2", "wms:P3", "wms:P6"]


def test_an_undo_is_given_up(interrupted: Site) -> None:
    """What it has done stays, what was sent is settled, and the next sync delivers what the sources name."""
    deleted = len([each for each in interrupted.effects("product") if each["operation"] == "delete"])
    given_up = interrupted.run("apply", "--give-up", "--json")
    assert (given_up.code, given_up.json["streams"]) == (0, ["wms.products"])
    assert given_up.json["unsent"] + given_up.json["unanswered"] == 3
    assert interrupted.run("apply", "--give-up").code == 2
    night = interrupted.sync()
    assert night.code == 1, "a row of the export is rejected"
    assert (
        len([each for each in interrupted.effects("product") if each["operation"] == "delete"])
        <= deleted + given_up.json["unanswered"]
    )
    assert "wms:P6" in held(interrupted, "product")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("      goods:\n", "the config has no stream wms.products"),
        ("      products:\n        namespace: other\n", "writes product to platform in namespace other, but"),
    ],
)
def test_a_config_in_which_its_stream_is_another_is_named(interrupted: Site, name: str, says: str) -> None:
    """Under another name it is not synced either. The undo goes on once the stream is there again."""
    text, before = interrupted.config.read_text(), creates(interrupted)
    interrupted.edit("      products:\n", name)
    night = interrupted.run("sync", "--json")
    assert (night.code, "crossdock apply --resume" in night.err) == (4, True), night.err
    result = interrupted.run("apply", "--resume")
    assert (result.code, says in result.err) == (2, True), result.err
    assert creates(interrupted) == before
    interrupted.config.write_text(text)
    assert interrupted.run("apply", "--resume").code == 1, "a row of the export is rejected"
    assert sorted(held(interrupted, "product")) == ["wms:P1", "wms:P2"]


@pytest.mark.parametrize("arguments", [(), ("--resume", "--give-up"), ("some.plan", "--resume")])
def test_one_way_is_chosen(site: Site, arguments: tuple[str, ...]) -> None:
    """A plan, --resume or --give-up."""
    assert site.run("apply", *arguments).code == 2
