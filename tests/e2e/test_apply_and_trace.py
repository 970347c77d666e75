"""An approved plan and nothing else; a record's whole story; records that the platform had before us."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from tests.e2e.test_reconcile import call
from tests.e2e.warehouse import BREAK, FORWARD, INVOICES, LOSE, PRODUCTS, Front, Site, once


@pytest.fixture
def planned(site: Site) -> Path:
    """A plan of a first night."""
    site.init()
    site.fill()
    plan = site.folder / "tonight.plan"
    assert site.run("plan", "-o", str(plan)).code == 0
    return plan


def test_an_approved_plan_is_done(site: Site, planned: Path) -> None:
    """`apply` does what was planned, and a second `apply` of the same plan is refused: it is done."""
    result = site.run("apply", str(planned), "--json")
    assert (result.code, result.json["requests"]) == (0, 7)
    site.assert_everything_once()
    again = site.run("apply", str(planned))
    assert (again.code, "the plan is out of date" in again.err) == (4, True)
    assert len(site.effects()) == 7


@pytest.mark.nightly(but=["a changed row", "the state", "a rule of the delivery"])
@pytest.mark.parametrize(
    "change", ["a changed row", "another file", "another mapping", "a rule of the delivery", "the state"]
)
def test_a_plan_of_yesterday_is_refused(site: Site, planned: Path, change: str) -> None:
    """When source, config or state have changed since it was approved, nothing at all is done."""
    match change:
        case "a changed row":
            site.export("PROD_1.csv", PRODUCTS.replace("Bolt", "Screw"))
        case "another file":
            site.export("PROD_2.csv", "SKU;NAME;PRICE\nP9;Washer;0.05\n")
        case "another mapping":
            site.edit("currency: CURRENCY", "currency: {const: USD}")
        case "a rule of the delivery":
            site.edit("resource: product", "resource: product\n        adopt: external_id")
        case _:
            assert site.sync("wms.customers").code == 0
    before = len(site.effects())
    result = site.run("apply", str(planned))
    assert (result.code, len(site.effects())) == (4, before)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"base_url":1}'])
def test_what_is_no_plan_is_refused(site: Site, content: bytes) -> None:
    """A file that is no plan is named, with how one is made."""
    site.init()
    (site.folder / "x").write_bytes(content)
    result = site.run("apply", str(site.folder / "x"))
    assert (result.code, "plan -o" in result.err) == (2, True)


def test_a_plan_shows_no_data(site: Site, planned: Path) -> None:
    """The file that is handed to whoever approves holds hashes and counts."""
    told = json.loads(planned.read_bytes())
    assert told["operations"] == {"create": 7}
    assert b"Kanari" not in planned.read_bytes()
    assert b"Bolt" not in planned.read_bytes()


def test_every_name_of_a_record_tells_its_story(site: Site, front: Front) -> None:
    """By key, platform id, idempotency key and place in the source: each attempt with its outcome, and no data."""
    site.init()
    site.fill()
    front.fate = once(lambda seen: b'"quantity":100' in seen.body, LOSE)
    assert site.sync().code == 0
    (made,) = [each for each in site.effects("invoice") if each["body"]["items"][0]["quantity"] == 100]
    names = ["3", made["id"], made["idempotencyKey"], "out/INV_1.csv:5"]
    traced = [site.run("trace", name, "--json") for name in names]
    assert [result.code for result in traced] == [0, 0, 0, 0]
    stories = [result.json for result in traced]
    assert all(story == stories[0] for story in stories)
    (operation,) = stories[0][0]["operations"]
    assert (operation["status"], operation["attempts"], operation["http_status"]) == ("delivered", 2, 201)
    assert [(sent["number"], sent["outcome"]) for sent in operation["sendings"]] == [(1, "in_doubt"), (2, "delivered")]
    shown = site.run("trace", "3").out
    assert made["id"] in shown
    assert "attempt 1: in_doubt" in shown
    assert site.run("trace", "nobody").code == 2


def test_a_waiting_record_says_what_it_waits_for(site: Site) -> None:
    """The story of a record that never left is told too."""
    site.init()
    site.export("INV_1.csv", INVOICES)
    assert site.sync().code == 1
    assert "waiting since" in site.run("trace", "2").out


def begin_new_state(site: Site) -> None:
    for file in site.folder.glob("state.db*"):
        if file.is_file():
            file.unlink()
    site.init()


def test_bindings_go_out_and_in_again(site: Site) -> None:
    """A state that knows nothing learns from a file what the platform has: nothing is made twice, no invoice sent."""
    site.init()
    site.fill()
    assert site.sync().code == 0
    kept = site.folder / "bindings.csv"
    kept.write_text(site.run("bindings", "export").out)
    begin_new_state(site)
    assert site.run("bindings", "import", str(kept), "--json").json == {"bound": 7}
    assert site.run("bindings", "import", str(kept), "--json").json == {"bound": 0}
    before = len(site.effects())
    result = site.sync()
    assert result.code == 0
    told = site.effects()[before:]
    assert {effect["operation"] for effect in told} <= {"update"}, "nothing is created"
    assert {effect["resource"] for effect in told} == {"customer", "product"}
    assert result.records("invoices") == {"read": 3, "suppressed": 3}
    assert site.sync().json["requests"] == 0


def test_an_imported_id_that_the_platform_does_not_have_is_open_until_it_is_corrected(site: Site) -> None:
    """Nothing is created beside the record that was meant, the sync exits 1, and another import corrects the id."""
    site.init()
    site.fill()
    assert site.sync().code == 0
    kept = site.folder / "bindings.csv"
    kept.write_text(site.run("bindings", "export").out)
    ids = {each["key"]: each["target_id"] for each in csv.DictReader(kept.read_text().splitlines())}
    call(site, "PATCH", f"catalog/products/{ids['P1']}", {"externalId": "erp-1"})
    wrong = kept.read_text().replace(ids["P1"], "prd_mistyped").replace(ids["2"], "inv_mistyped")
    (site.folder / "wrong.csv").write_text(wrong)
    begin_new_state(site)
    assert site.run("bindings", "import", str(site.folder / "wrong.csv")).code == 0
    for _ in range(2):
        assert site.sync().code == 1
        left = {each["key"]: each["why"] for each in site.listed("--state", "unverified")}
        assert {key: "import the right one" in why for key, why in left.items()} == {"2": True, "P1": True}
    assert [each["operation"] for each in site.effects()].count("create") == 7
    assert site.run("bindings", "import", str(kept), "--json").json == {"bound": 2}
    site.sync()
    assert site.run("records", "replay").code == 0
    assert (site.sync().code, site.listed()) == (0, [])
    assert [each["operation"] for each in site.effects()].count("create") == 7


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("key,target_id\n", 1, id="other columns"),
        pytest.param("target,resource,namespace,key,target_id\nplatform,product,wms,P1\n", 2, id="a short row"),
        pytest.param("target,resource,namespace,key,target_id\nplatform,product,wms,P1,a\0b\n", 2, id="an id with NUL"),
        pytest.param("target,resource,namespace,key,target_id\nplatform,shoe,wms,P1,x\n", 2, id="no resource"),
        pytest.param(
            "target,resource,namespace,key,target_id\nplatform,product,wms,P1,x\nplatform,product,wms,P1,y\n",
            3,
            id="twice",
        ),
        pytest.param("target,resource,namespace,key,target_id\nplatform,product,wms,P1,\n", 2, id="no id"),
    ],
)
def test_a_bad_file_of_bindings_binds_nothing(site: Site, text: str, line: int) -> None:
    """It is a wrong usage, named with its line, and nothing of it is bound."""
    site.init()
    (site.folder / "b.csv").write_text(text)
    result = site.run("bindings", "import", str(site.folder / "b.csv"))
    assert (result.code, f"b.csv:{line}:" in result.err) == (2, True)
    assert site.run("bindings", "export").out == "target,resource,namespace,key,target_id\n"


def test_what_the_platform_has_is_adopted(site: Site) -> None:
    """With `adopt: external_id` a record that is there under its external id is bound and brought up to date."""
    site.init()
    site.fill()
    assert site.sync().code == 0
    begin_new_state(site)
    site.export("PROD_2.csv", PRODUCTS.replace("Bolt", "Screw"))
    (site.out / "INV_1.csv").unlink()
    (site.out / "CUST_1.csv").unlink()
    assert site.sync("wms.products").code == 4, "without it what is there looks as if the state had forgotten it"
    site.edit("        key: [SKU]\n", "        key: [SKU]\n        adopt: external_id\n")
    before = len(site.effects())
    result = site.sync("wms.products")
    assert result.code == 0, result.err
    assert result.records("products") == {
        "carried_over": 2, "read": 2, "unchanged": 2, "suppressed": 1, "updated": 1,
    }  # fmt: skip
    (told,) = site.effects()[before:]
    assert (told["operation"], told["body"]["name"]) == ("update", "Screw")
    assert site.listed() == []


def test_another_name_of_a_connection_doubles_nothing(site: Site, front: Front) -> None:
    """Doubt belongs to what is written: a connection that is renamed and keeps its namespace sends none of it again."""
    site.edit("  in_flight: 4", "  in_flight: 4\n  after_ambiguous: park")
    site.init()
    site.fill()
    front.fate = lambda seen: LOSE if b'"quantity":100' in seen.body else FORWARD
    assert site.sync().code == 1
    before = len(site.effects())
    front.fate = lambda _: FORWARD
    site.edit("  wms:\n    kind: sftp_warehouse", "  depot:\n    namespace: wms\n    kind: sftp_warehouse")
    assert site.sync().code == 1
    assert len(site.effects()) == before


def test_a_record_on_its_way_is_not_taken_over(site: Site, front: Front) -> None:
    """A file of bindings that names a record with an unsettled operation is refused, with its line."""
    site.init()
    site.fill()
    front.fate = lambda seen: BREAK if seen.path.endswith("products") else FORWARD
    assert site.sync().code in {1, 3}  # 3 if products were refused before anything else was answered
    (site.folder / "b.csv").write_text("target,resource,namespace,key,target_id\nplatform,product,wms,P1,prd_1\n")
    result = site.run("bindings", "import", str(site.folder / "b.csv"))
    assert (result.code, "b.csv:2: an operation on P1 is not settled" in result.err) == (4, True)


def test_leftovers_are_sent_before_a_plan_is_applied(site: Site, front: Front) -> None:
    """A plan beside what an earlier run left would be half of what is done: it is refused."""
    site.init()
    site.fill()
    front.fate = lambda seen: BREAK if seen.path.endswith("products") else FORWARD
    assert site.sync().code in {1, 3}  # 3 if products were refused before anything else was answered
    front.fate = lambda _: FORWARD
    plan = site.folder / "p.plan"
    assert site.run("plan", "-o", str(plan)).code == 0
    result = site.run("apply", str(plan))
    assert (result.code, "crossdock apply --resume" in result.err) == (4, True)
