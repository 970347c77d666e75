"""Records that go from their source: removed once and only where that is safe, judged by the platform's witness."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.chaos import processes
from tests.chaos.failing import NOTE_VARIABLE
from tests.e2e.warehouse import BREAK, FORWARD, LOSE, Front, Reply, Result, Site, ask, once

HEADER = "SKU;NAME;PRICE\n"
FAILING = Path(__file__).parents[1] / "chaos" / "failing.py"
ALL = range(40)  # products: five of a hundred are two of them
TRAILER = 'trailer: {prefix: "TRL;", count: 1}'


def lines(numbers: Iterable[int], price: str = "1.50") -> list[str]:
    return [f"P{number};Thing {number};{price}\n" for number in numbers]


def counted(rows: list[str]) -> str:
    """A snapshot with a trailer that tells its rows."""
    return f"{HEADER}{''.join(rows)}TRL;{len(rows)}\n"


def snapshots(
    site: Site, on_gone: str = "delete", limits: str = "", *, trailer: bool = True, price: str = "1.50"
) -> None:
    """Make the products a snapshot stream, and deliver forty of them."""
    layout = f'delimiter: ";", {TRAILER}' if trailer else 'delimiter: ";"'
    site.edit('delimiter: ";"', layout, within="products:")
    site.edit(
        "mode: append", f"mode: snapshot\n        on_gone: {on_gone}\n        gone: {{{limits}}}", within="products:"
    )
    site.init()
    text = counted(lines(ALL, price)) if trailer else HEADER + "".join(lines(ALL, price))
    site.export("PROD_0.csv", text)
    assert site.sync("wms.products").records("products") == {"read": 40, "created": 40}


def night(site: Site, name: str, rows: list[str]) -> Result:
    site.export(f"PROD_{name}.csv", counted(rows))
    return site.sync("wms.products")


def removed(site: Site) -> list[str]:
    """The keys of what was deleted, in no order."""
    made = {effect["id"]: effect["body"]["externalId"] for effect in site.effects("product")}
    deleted = [made[effect["id"]] for effect in site.effects("product") if effect["operation"] == "delete"]
    return sorted(name.removeprefix("wms:") for name in deleted)


def changed(site: Site) -> list[dict[str, Any]]:
    return [effect for effect in site.effects("product") if effect["operation"] != "create"]


# ---- good nights


def test_what_is_gone_is_deleted_once(site: Site) -> None:
    """Exactly the records that the snapshot no longer lists are deleted; the same rows in a new file delete no more."""
    snapshots(site)
    result = night(site, "1", lines(ALL[2:]))
    assert result.code == 0, result.err
    assert result.records("products") == {"read": 38, "unchanged": 38, "gone": 2, "deleted": 2}
    assert removed(site) == ["P0", "P1"]
    again = night(site, "2", lines(reversed(ALL[2:])))
    assert (again.code, again.json["requests"]) == (0, 0)
    assert again.records("products") == {"read": 38, "unchanged": 38}
    assert removed(site) == ["P0", "P1"]


def test_a_deleted_record_that_comes_back_is_made_anew(site: Site) -> None:
    """Gone, back and gone again: each is done, under a key of its own."""
    snapshots(site)
    assert night(site, "1", lines(ALL[1:])).code == 0
    assert night(site, "2", lines(reversed(ALL))).records("products") == {"read": 40, "unchanged": 39, "created": 1}
    assert night(site, "3", [*lines(ALL[20:]), *lines(ALL[1:20])]).code == 0
    told = [effect for effect in site.effects("product") if effect["body"]["externalId"] == "wms:P0"]
    assert [effect["operation"] for effect in told] == ["create", "delete", "create", "delete"]
    assert len({effect["idempotencyKey"] for effect in told}) == 4
    assert len({effect["id"] for effect in told}) == 2


def test_an_archived_record_is_archived_once_and_comes_back(site: Site) -> None:
    """Gone, it is made inactive and left alone each night; back, it is as it is mapped."""
    snapshots(site, "archive")
    result = night(site, "1", lines(ALL[1:]))
    assert (result.code, result.records("products")) == (0, {"read": 39, "unchanged": 39, "gone": 1, "updated": 1})
    (told,) = changed(site)
    assert (told["operation"], told["body"]["externalId"], told["body"]["active"]) == ("update", "wms:P0", False)
    for number in "23":
        result = night(site, number, lines(reversed(ALL[1:]), "1.50" if number == "2" else "1.500"))
        assert result.records("products").keys() <= {"read", "unchanged", "suppressed"}, "it is gone no more"
    assert len(changed(site)) == 1
    assert night(site, "4", lines(ALL)).records("products")["updated"] == 1
    assert changed(site)[1]["body"]["active"] is True
    assert night(site, "5", lines([*ALL[9:], *ALL[1:9]])).records("products")["updated"] == 1
    assert [effect["body"]["active"] for effect in changed(site)] == [False, True, False]
    assert len({effect["idempotencyKey"] for effect in changed(site)}) == 3


def test_what_is_inactive_already_is_archived_without_a_call(site: Site) -> None:
    """A record that its source made inactive before it went needs no second word."""
    site.edit(
        "          unitPrice: {from: PRICE, as: decimal}\n",
        '          active: {from: PRICE, as: boolean, true_text: "1.50", false_text: "0"}\n',
        within="products:",
    )
    snapshots(site, "archive")
    assert night(site, "1", [*lines([0], "0"), *lines(ALL[1:])]).records("products")["updated"] == 1
    result = night(site, "2", lines(ALL[1:]))
    assert result.records("products") == {"read": 39, "unchanged": 39, "gone": 1, "suppressed": 1}
    assert result.json["requests"] == 0
    assert night(site, "3", lines(reversed(ALL[1:]))).records("products") == {"read": 39, "unchanged": 39}
    assert night(site, "4", lines(ALL)).records("products")["updated"] == 1


def test_without_a_word_nothing_is_removed(site: Site) -> None:
    """By default what is gone is counted and left alone."""
    snapshots(site, "nothing")
    result = night(site, "1", lines(ALL[2:]))
    assert (result.code, result.records("products")) == (0, {"read": 38, "unchanged": 38, "gone": 2, "ignored": 2})
    assert changed(site) == []


# ---- limits and approval


def beyond(site: Site, number: int = 3) -> Result:
    """A night in which too many are gone, one has changed and one is new."""
    return night(site, "1", [*lines([number], "9.99"), *lines(ALL[number + 1 :]), *lines([99])])


@pytest.mark.nightly(but=["-3 of 40 records are gone, more than gone.at_most_percent (5)"])
@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ("", "3 of 40 records are gone, more than gone.at_most_percent (5)"),
        ("at_most: 2, at_most_percent: 100", "3 records are gone, more than gone.at_most (2)"),
    ],
)
def test_too_many_are_not_removed(site: Site, limits: str, says: str) -> None:
    """Beyond a limit none of them goes, all else is done, and the message names the limit, keys and what approves."""
    snapshots(site, limits=limits)
    result = beyond(site)
    assert result.code == 4
    assert result.records("products") == {
        "read": 38,
        "unchanged": 36,
        "created": 1,
        "updated": 1,
        "gone": 3,
        "ignored": 3,
    }
    assert f"wms.products: PROD_1.csv: {says}; none of them is removed: P" in result.err
    assert "crossdock approve wms.products 3" in result.err
    assert "crossdock plan wms.products --limit 3" in result.err
    assert [effect["operation"] for effect in changed(site)] == ["update"]
    assert "of them is removed" in site.run("runs", "--json").out or "incomplete" in site.run("runs").out
    assert site.sync("wms.products").code == 4, "the same night again is no more allowed"
    assert removed(site) == []


@pytest.mark.nightly
def test_new_records_do_not_widen_a_limit(site: Site) -> None:
    """The share is of what was there before the night, also where the night is read again with its new ones there."""
    snapshots(site)
    rows = [*lines(ALL[3:]), *lines(range(100, 160))]
    for _ in range(2):
        assert night(site, "1", rows).code == 4, "three of 40 are too many, and of 100 they were not"
    assert removed(site) == []


def test_as_many_as_the_limits_are_removed(site: Site) -> None:
    """A limit is the most that may go, and not one less."""
    snapshots(site, limits="at_most: 2, at_most_percent: 5")
    assert night(site, "1", lines(ALL[2:])).code == 0
    assert removed(site) == ["P0", "P1"]


def test_an_approval_removes_exactly_these_once(site: Site) -> None:
    """The approved are removed by the next sync, and the approval is used up; only streams in use are listed."""
    snapshots(site)
    assert beyond(site).code == 4
    listed = site.run("approve", "--json").json
    assert [(each["stream"], each["number"], each["approved_at"]) for each in listed] == [("wms.products", 3, None)]
    wrong = site.run("approve", "wms.products", "4")
    assert (wrong.code, "delete product of wms on the platform: 3 records, not 4" in wrong.err) == (2, True)
    assert site.run("approve", "wms.lots", "3").code == 2
    assert site.run("approve", "wms.products").code == 2
    whole = site.config.read_text()
    site.edit("mode:", "enabled: false\n        mode:", within="      products:")
    assert site.run("approve").out.startswith(
        "nothing needs approval\nnot listed, because the config does not have or use"
    )
    assert "is switched off" in site.run("approve", "wms.products", "3").err
    site.config.write_text(whole)
    assert site.sync("wms.products").code == 4, "nothing is approved yet"
    assert site.run("approve", "wms.products", "3").code == 0
    result = site.sync("wms.products")
    assert result.code == 0, result.err
    assert result.records("products") == {"read": 38, "unchanged": 38, "gone": 3, "deleted": 3}
    assert removed(site) == ["P0", "P1", "P2"]
    assert "nothing needs approval" in site.run("approve").out
    assert site.sync("wms.products").json["requests"] == 0


@pytest.mark.nightly(but=["more", "others"])
@pytest.mark.parametrize("gone", [[0, 1, 2, 4], [0, 1], [0, 1, 4], [0, 1, 2]], ids=["more", "fewer", "others", "same"])
def test_an_approval_holds_for_no_others(site: Site, gone: list[int]) -> None:
    """When other records are gone the next night, it stops again; only the very same are removed without a word."""
    snapshots(site, limits="at_most: 1")
    assert beyond(site).code == 4
    assert site.run("approve", "wms.products", "3").code == 0
    result = night(site, "2", lines(number for number in [*ALL, 99] if number not in gone))
    if gone == [0, 1, 2]:
        assert (result.code, removed(site)) == (0, ["P0", "P1", "P2"])
        return
    assert (result.code, removed(site)) == (4, [])
    (waits,) = site.run("approve", "--json").json
    assert (waits["number"], waits["approved_at"]) == (len(gone), None)


@pytest.mark.nightly
def test_a_list_that_returns_takes_back_a_night_that_was_held(site: Site) -> None:
    """After a night of which only the removals were held, the list of the night before is read, though it is known."""
    snapshots(site)
    assert beyond(site).code == 4
    result = night(site, "2", lines(ALL))
    assert result.records("products") == {"read": 40, "unchanged": 39, "updated": 1, "gone": 1, "ignored": 1}
    assert [effect["body"]["unitPrice"] for effect in changed(site)] == [Decimal("9.99"), Decimal("1.50")]
    assert (result.code, "identical to one that an earlier run processed" in result.err) == (4, True)
    assert [each["number"] for each in site.run("approve", "--json").json] == [1]
    assert night(site, "3", lines(ALL)).code == 4, "it is not silent as long as nobody has decided"
    assert site.run("approve", "wms.products", "1").code == 0
    assert site.sync("wms.products").records("products") == {"read": 40, "unchanged": 40, "gone": 1, "deleted": 1}
    assert removed(site) == ["P99"]
    assert night(site, "4", lines(ALL)).json["streams"]["wms.products"]["input"] == "unchanged"


def test_an_approval_to_archive_deletes_nothing(site: Site) -> None:
    """What was approved is what would have been done: under another setting it stops again."""
    snapshots(site, "archive")
    assert beyond(site).code == 4
    assert site.run("approve", "wms.products", "3").code == 0
    site.edit("on_gone: archive", "on_gone: delete")
    assert site.sync("wms.products").code == 4
    assert removed(site) == []


@pytest.mark.usefixtures("soon_probing")
def test_an_approved_removal_that_was_stopped_goes_on(site: Site, front: Front) -> None:
    """A platform that goes away in the middle needs no second approval, and nothing is removed twice."""
    snapshots(site, limits="at_most: 1, at_most_percent: 1")
    assert beyond(site, 20).code == 4
    assert site.run("approve", "wms.products", "20").code == 0
    already = len(front.seen)
    front.fate = lambda seen: BREAK if seen.number > already + 7 else FORWARD
    assert site.sync("wms.products").code == 3
    assert 0 < len(removed(site)) < 20
    front.fate = lambda _: FORWARD
    result = site.sync("wms.products")
    assert result.code == 0, result.err
    assert removed(site) == sorted(f"P{number}" for number in ALL[:20])
    assert site.run("approve", "--json").json == []


@pytest.mark.nightly(but=["delete-sent:6:before", "archive-sent:3:after"])
@pytest.mark.parametrize(
    ("on_gone", "point"),
    [
        ("delete", "sent:6:before"),
        ("delete", "settle_written:1:after"),
        ("delete", "stream_finished:1:before"),
        ("archive", "sent:3:after"),
    ],
)
def test_a_kill_among_removals(site: Site, on_gone: str, point: str) -> None:
    """Killed between removals, the next run ends what was approved: each once, and no other."""
    snapshots(site, on_gone, "at_most: 1, at_most_percent: 1")
    assert night(site, "1", lines(ALL[8:])).code == 4
    assert site.run("approve", "wms.products", "8").code == 0
    note = site.folder / "struck"
    command = ["-P", str(FAILING), point, "-C", str(site.config), "sync", "wms.products"]
    ended = processes.finish(command, {**os.environ, NOTE_VARIABLE: str(note)})
    struck = note.read_text() if note.exists() else "never"
    assert (ended.exit_code, struck) == (-signal.SIGKILL, f"{point}\n"), ended.stderr
    result = site.sync("wms.products")
    assert result.code == 0, result.err
    told = changed(site)
    assert sorted(effect["body"]["externalId"] for effect in told) == [f"wms:P{number}" for number in range(8)]
    assert {effect["operation"] for effect in told} == {"delete" if on_gone == "delete" else "update"}
    assert site.sync("wms.products").json["requests"] == 0


# ---- plans


def test_a_plan_shows_removals_and_writes_nothing(site: Site) -> None:
    """Deletions are operations of a plan; and the state stays as it is."""
    snapshots(site)
    site.export("PROD_1.csv", counted(lines(ALL[2:])))
    before = (site.folder / "state.db").read_bytes()
    result = site.run("plan", "wms.products", "--json", "--detailed-exitcode")
    assert (result.code, result.json["operations"]) == (10, {"delete": 2})
    assert sorted(each["key"] for each in result.json["shown"]) == ["P0", "P1"]
    assert result.json["streams"]["wms.products"]["records"]["deleted"] == 2
    assert result.json["streams"]["wms.products"]["balanced"]
    assert (site.folder / "state.db").read_bytes() == before
    assert removed(site) == []
    assert "2 delete wms.products" in site.run("plan", "wms.products").out


@pytest.mark.nightly
def test_a_plan_shows_what_is_held(site: Site) -> None:
    """Beyond a limit a plan ends with 4, tells all else as it would be done, and lists what waits for approval."""
    snapshots(site, "archive")
    site.export("PROD_1.csv", counted([*lines(ALL[3:]), *lines([99])]))
    result = site.run("plan", "wms.products", "--json")
    assert (result.code, result.json["operations"]) == (4, {"create": 1})
    held = [(each["key"], each["removal"]) for each in result.json["shown"] if each["do"] == "hold"]
    assert sorted(held) == [("P0", "archive"), ("P1", "archive"), ("P2", "archive")]
    assert site.run("approve", "--json").json == [], "a plan writes nothing"
    assert result.json["on_hold"] == {"wms.products": 3}
    summary = site.run("plan", "wms.products").out
    assert summary.count("hold   ") == 1, "one line for all of them"
    assert "hold   wms.products: 3 removals to approve; --limit 3 lists them\n" in summary
    shown = site.run("plan", "wms.products", "--limit", "3")
    assert "3 hold wms.products" in shown.out
    assert all(f"hold   wms.products P{number}\n" in shown.out for number in range(3)), "the limit is theirs alone"
    assert "incomplete" not in shown.out
    kept = site.folder / "x.plan"
    assert site.run("plan", "-o", str(kept), "wms.products").code == 4
    assert not kept.exists()
    assert site.sync("wms.products").code == 4
    assert site.run("approve", "wms.products", "3").code == 0
    assert site.run("plan", "wms.products", "--json").json["operations"] == {"archive": 3}


def test_an_approved_plan_removes(site: Site) -> None:
    """`apply` does the removals of a plan, and refuses when another record is gone since."""
    snapshots(site)
    site.export("PROD_1.csv", counted(lines(ALL[1:])))
    plan = site.folder / "tonight.plan"
    assert site.run("plan", "-o", str(plan), "wms.products").code == 0
    site.export("PROD_2.csv", counted(lines(ALL[2:])))
    assert site.run("apply", str(plan)).code == 4
    assert removed(site) == []
    assert site.run("plan", "-o", str(plan), "wms.products").code == 0
    result = site.run("apply", str(plan), "--json")
    assert (result.code, result.records("products")["deleted"]) == (0, 2)
    assert removed(site) == ["P0", "P1"]


# ---- what is never removed


def test_only_what_we_delivered_is_removed(site: Site) -> None:
    """A record that was bound by a file, and never listed by the source, is counted as ignored and left alone.

    So is one that the platform does not have: its id may be mistyped, so it stays open.
    """
    snapshots(site)
    headers = {
        "authorization": f"Bearer {site.api_key}", "x-tenant-slug": site.tenant, "content-type": "application/json",
    }  # fmt: skip
    made = ask(
        urlsplit(site.platform.base_url).netloc, "POST", "/api/v1/catalog/products",
        b'{"externalId":"others:OLD","sku":"OLD","name":"Old","active":true}', headers,
    )  # fmt: skip
    rows = f"platform,product,wms,OLD,{json.loads(made.body)['id']}\nplatform,product,wms,LOST,prd_lost\n"
    (site.folder / "b.csv").write_text(f"target,resource,namespace,key,target_id\n{rows}")
    assert site.run("bindings", "import", str(site.folder / "b.csv")).code == 0
    result = night(site, "1", lines(ALL[1:]))
    assert (result.code, removed(site)) == (1, ["P0"])
    assert result.records("products") == {"read": 39, "unchanged": 39, "gone": 3, "deleted": 1, "ignored": 2}
    assert [each["key"] for each in site.listed()] == ["LOST"]


def test_a_refused_removal_is_a_dead_letter(site: Site, front: Front) -> None:
    """What the platform will not part with is rejected, counted each night and not sent again, until a replay."""
    snapshots(site)
    front.fate = lambda seen: Reply(422, b'{"title":"an order refers to it"}') if seen.method == "DELETE" else FORWARD
    result = night(site, "1", lines(ALL[1:]))
    assert (result.code, result.records("products")) == (1, {"read": 39, "unchanged": 39, "gone": 1, "rejected": 1})
    (dead_letter,) = site.listed()
    assert (dead_letter["key"], dead_letter["why"].partition(":")[0]) == ("P0", "rejected")
    assert site.run("records", "show", "wms.products", "P0", "--raw").code == 0
    already = sum(seen.method == "DELETE" for seen in front.seen)
    result = night(site, "2", lines(reversed(ALL[1:])))
    assert (result.code, result.records("products")["rejected"]) == (1, 1)
    replay = site.run("records", "replay", "--json")
    assert (replay.code, replay.records("products")) == (1, {"carried_over": 1, "rejected": 1})
    assert sum(seen.method == "DELETE" for seen in front.seen) == already + 1, "only the replay sent it"
    front.fate = lambda _: FORWARD
    replay = site.run("records", "replay", "--json")
    assert (replay.code, replay.records("products")) == (0, {"carried_over": 1, "deleted": 1})
    assert (removed(site), site.listed()) == (["P0"], [])


@pytest.mark.nightly
def test_a_refused_removal_of_what_came_back_is_forgotten(site: Site, front: Front) -> None:
    """A record that is listed again needs no removal: its letter goes, and a replay deletes nothing."""
    snapshots(site)
    front.fate = lambda seen: Reply(422) if seen.method == "DELETE" else FORWARD
    assert night(site, "1", lines(ALL[1:])).code == 1
    front.fate = lambda _: FORWARD
    result = night(site, "2", lines(reversed(ALL)))
    assert (result.code, site.listed()) == (0, [])
    assert site.run("records", "replay").code == 0
    assert removed(site) == []


def test_a_removal_that_is_refused_because_of_references_is_tried_again(site: Site, front: Front) -> None:
    """The platform knows references that we do not know: a 409 holds the delete back until the next snapshot."""
    snapshots(site)
    front.fate = lambda seen: Reply(409, b'{"title":"an order refers to it"}') if seen.method == "DELETE" else FORWARD
    assert night(site, "1", lines(ALL[1:])).code == 1
    assert site.listed()[0]["why"] == "referenced_by: an order refers to it"
    front.fate = lambda _: FORWARD
    assert night(site, "2", lines(reversed(ALL[1:]))).code == 0
    assert (removed(site), site.listed()) == (["P0"], [])


@pytest.mark.nightly
def test_a_removal_that_was_given_up_stays_so(site: Site, front: Front) -> None:
    """A dropped removal is counted and not sent."""
    snapshots(site)
    front.fate = lambda seen: Reply(422) if seen.method == "DELETE" else FORWARD
    assert night(site, "1", lines(ALL[1:])).code == 1
    assert site.run("records", "drop", "wms.products", "P0").code == 0
    front.fate = lambda _: FORWARD
    result = night(site, "2", lines(reversed(ALL[1:])))
    assert (result.code, result.records("products")) == (0, {"read": 39, "unchanged": 39, "gone": 1, "dropped": 1})
    assert removed(site) == []


def test_a_removal_in_doubt_is_not_repeated(site: Site, front: Front) -> None:
    """A delete whose answer is lost, where doubt is parked, waits for a person and is sent no second time."""
    site.edit("  in_flight: 4", "  in_flight: 4\n  after_ambiguous: park")
    snapshots(site)
    front.fate = lambda seen: LOSE if seen.method == "DELETE" else FORWARD
    result = night(site, "1", lines(ALL[1:]))
    assert (result.code, result.records("products")) == (1, {"read": 39, "unchanged": 39, "gone": 1, "carried_on": 1})
    front.fate = lambda _: FORWARD
    already = len(front.seen)
    result = night(site, "2", lines(reversed(ALL[1:])))
    assert result.records("products")["ignored"] == 1
    assert len(front.seen) == already
    assert site.run("records", "resolve", "wms.products", "P0", "--delivered").code == 0
    result = night(site, "3", lines([*ALL[20:], *ALL[1:20]]))
    assert (result.code, result.records("products")) == (0, {"read": 39, "unchanged": 39})
    assert removed(site) == ["P0"]


@pytest.mark.nightly(but=["resend"])
@pytest.mark.parametrize("idempotency", ["", "\n  idempotency: {enabled: false}"], ids=["resend", "verify"])
def test_a_lost_answer_deletes_once(site: Site, front: Front, idempotency: str) -> None:
    """Sent again under its key, or looked up, a delete that had happened is done, and done once."""
    site.edit("  in_flight: 4", f"  in_flight: 4{idempotency}")
    snapshots(site)
    front.fate = once(lambda seen: seen.method == "DELETE", LOSE)
    result = night(site, "1", lines(ALL[2:]))
    assert (result.code, result.records("products")["deleted"]) == (0, 2), result.err
    assert removed(site) == ["P0", "P1"]


def test_a_record_with_an_open_doubt_is_not_removed(site: Site, front: Front) -> None:
    """While an update may or may not have happened, its record stays; settled, it goes."""
    site.edit("  in_flight: 4", "  in_flight: 4\n  after_ambiguous: park")
    snapshots(site)
    front.fate = lambda seen: LOSE if seen.method == "PATCH" else FORWARD
    assert night(site, "1", [*lines([0], "9"), *lines(ALL[1:])]).code == 1
    front.fate = lambda _: FORWARD
    assert night(site, "2", lines(ALL[1:])).records("products")["ignored"] == 1
    assert removed(site) == []
    assert site.run("records", "resolve", "wms.products", "P0", "--delivered").code == 0
    assert night(site, "3", lines(reversed(ALL[1:]))).code == 0
    assert removed(site) == ["P0"]


ACCOUNTS = """          code: SKU
          name: NAME
          type: {const: asset}
          parentId: {ref: ledger_account, key: PRICE}
"""


def test_a_record_that_waits_is_not_removed(site: Site) -> None:
    """While a change of it waits for another record, a record stays; the change given up, it goes at once."""
    site.edit("resource: product", "resource: ledger_account")
    start = "          sku: SKU\n          name: NAME\n          unitPrice: {from: PRICE, as: decimal}\n"
    site.edit(start, ACCOUNTS)
    snapshots(site, price="")
    assert night(site, "1", [*lines([0], "P77"), *lines(ALL[1:], "")]).records("products")["carried_on"] == 1
    result = night(site, "2", lines(ALL[1:], ""))
    assert result.records("products") == {
        "carried_over": 1, "read": 39, "unchanged": 39, "gone": 1, "ignored": 1, "carried_on": 1,
    }  # fmt: skip
    assert not [effect for effect in site.effects() if effect["operation"] == "delete"]
    assert site.run("records", "drop", "wms.products", "P0").code == 0
    assert site.sync("wms.products").records("products")["deleted"] == 1


@pytest.mark.parametrize("is_proved", [True, False])
def test_a_record_that_waits_and_is_gone_is_not_sent(site: Site, is_proved: bool) -> None:
    """It was never sent: a complete snapshot that lacks it ends the wait, and one that proves nothing does not."""
    site.edit("resource: product", "resource: ledger_account")
    start = "          sku: SKU\n          name: NAME\n          unitPrice: {from: PRICE, as: decimal}\n"
    site.edit(start, ACCOUNTS)
    snapshots(site, price="", trailer=is_proved)

    def read_night(name: str, rows: list[str]) -> Result:
        text = counted(rows) if is_proved else HEADER + "".join(rows)
        site.export(f"PROD_{name}.csv", text)
        return site.sync("wms.products")

    assert read_night("1", [*lines(ALL, ""), *lines([50], "P60")]).records("products")["carried_on"] == 1
    records = read_night("2", lines([*ALL, 61], "")).records("products")
    assert records.get("carried_on", 0) == (0 if is_proved else 1)
    read_night("3", lines([*ALL, 60, 61], ""))
    created = {effect["body"]["externalId"] for effect in site.effects() if effect["operation"] == "create"}
    assert "wms:P50" not in created


@pytest.mark.parametrize("is_proved", [True, False])
def test_a_record_that_was_rejected_and_is_gone_is_open_no_longer(site: Site, is_proved: bool) -> None:
    """It was never sent, and a replay would create what the source has deleted. What proves nothing keeps it."""
    snapshots(site, trailer=is_proved)
    bad = lines([50], "cheap")
    for name, rows in (("1", lines(ALL) + bad), ("2", lines([*ALL, 40]))):
        site.export(f"PROD_{name}.csv", counted(rows) if is_proved else HEADER + "".join(rows))
        result = site.sync("wms.products")
        assert [each["key"] for each in site.listed()] == ([] if name == "2" and is_proved else ["P50"])
    assert result.code == (0 if is_proved else 1)
    assert ("1 record that was rejected is not listed any more" in result.err + result.out) is is_proved


def test_a_filtered_row_is_still_there(site: Site) -> None:
    """A record whose rows a filter leaves out is in the source, and not gone."""
    site.edit("key: [SKU]", "skip: {old: {field: NAME, starts_with: OLD}}\n        key: [SKU]", within="products:")
    snapshots(site)
    result = night(site, "1", [*(row.replace("Thing", "OLD") for row in lines([0])), *lines(ALL[2:])])
    assert (result.code, removed(site)) == (0, ["P1"])
    assert result.records("products") == {"read": 38, "unchanged": 38, "gone": 2, "deleted": 1, "ignored": 1}


@pytest.mark.nightly(but=["True"])
@pytest.mark.parametrize("filtered", [True, False])
def test_a_row_without_key_may_be_anyones(site: Site, filtered: bool) -> None:
    """A row that names no record hides a key, also where a filter leaves it out: nothing is removed beside it."""
    if filtered:
        site.edit("key: [SKU]", "skip: {none: {field: SKU, empty: true}}\n        key: [SKU]", within="products:")
    snapshots(site)
    result = night(site, "1", [";Thing 0;1.50\n", *lines(ALL[1:])])
    assert result.code == 4
    assert "PROD_1.csv: 1 record is gone and not removed: 1 row has no key" in result.err
    assert removed(site) == []
    assert night(site, "2", lines(ALL[1:])).code == 0
    assert removed(site) == ["P0"]


@pytest.mark.nightly
def test_a_snapshot_of_an_earlier_day_removes_nothing(site: Site) -> None:
    """The bytes of an older night under a new name are read, and show nothing about what is gone."""
    snapshots(site)
    assert night(site, "1", lines([*ALL, 99])).code == 0
    result = night(site, "2", lines(ALL))
    assert result.code == 4
    assert "the snapshot is identical to one that an earlier run processed" in result.err
    assert removed(site) == []
    assert night(site, "3", lines(reversed(ALL))).code == 0
    assert removed(site) == ["P99"]


def test_the_first_snapshot_removes_nothing(site: Site) -> None:
    """A stream that begins to remove has nothing to compare its first night with, and says so; the second one does."""
    snapshots(site, "nothing")
    site.edit("on_gone: nothing", "on_gone: delete")
    result = night(site, "1", lines(ALL[1:]))
    assert (result.code, result.records("products")["ignored"]) == (0, 1)
    assert "1 record is gone and not removed: this is the first snapshot that on_gone applies to" in result.err
    assert night(site, "2", lines(reversed(ALL[1:]))).code == 0
    assert removed(site) == ["P0"]


# ---- without a trailer


def plain(site: Site, name: str, rows: list[str]) -> Result:
    site.export(f"PROD_{name}.csv", HEADER + "".join(rows))
    return site.sync("wms.products")


def test_without_a_trailer_three_nights_are_needed(site: Site) -> None:
    """Nothing is removed before three snapshots are known, and a warning says so; then what is gone goes."""
    snapshots(site, trailer=False)
    for number in (1, 2):
        result = plain(site, str(number), lines(ALL[number:]))
        assert result.code == 0
        assert (
            f"without a stated number of rows, 3 earlier ones are needed to compare with (known: {number};"
            in result.err
        )
        assert result.records("products")["ignored"] == number
    assert removed(site) == []
    result = plain(site, "3", lines(reversed(ALL[2:])))
    assert (result.code, removed(site)) == (0, ["P0", "P1"])


@pytest.mark.nightly
def test_without_a_trailer_the_number_of_rows_must_be_the_usual_one(site: Site) -> None:
    """A snapshot with a fifth fewer rows than one of the last three removes nothing, and says so with exit 4."""
    snapshots(site, limits="at_most_percent: 100", trailer=False)
    for number in (1, 2):
        assert plain(site, str(number), lines(ALL, f"1.{number}")).code == 0
    result = plain(site, "3", lines(ALL[9:]))
    assert result.code == 4
    assert (
        "9 records are gone and not removed: the snapshot has 31 rows; the previous ones had 40, 40, 40" in result.err
    )
    assert removed(site) == []
    for number in (4, 5):
        assert plain(site, str(number), lines(ALL[10:], str(number))).code == 4, "30 is no usual number yet"
    assert removed(site) == []
    assert plain(site, "6", lines(ALL[10:], "6")).code == 0
    assert removed(site) == sorted(f"P{number}" for number in range(10))


@pytest.mark.nightly
def test_without_a_trailer_the_last_line_must_end(site: Site) -> None:
    """A file that ends in the middle of a line may be cut, even where the line can be read."""
    snapshots(site, trailer=False)
    for number in (1, 2):
        assert plain(site, str(number), lines(ALL, f"1.{number}")).code == 0
    result = plain(site, "3", [*lines(ALL[1:-1], "1.2"), "P39;Thing 39;1.2"])
    assert result.code == 4
    assert "the last line has no line break, so the file may be truncated" in result.err
    assert removed(site) == []


@pytest.mark.nightly
def test_equal_exports_count_as_often_as_they_come(site: Site) -> None:
    """A warehouse without changes sends the same bytes each night: three nights without a record are three nights."""
    snapshots(site, trailer=False)
    for number in (1, 2, 3):
        assert plain(site, str(number), lines(ALL)).records("products") == {}
    for known, number in enumerate((4, 5), 1):
        result = plain(site, str(number), lines(ALL[1:]))
        assert f"3 earlier ones are needed to compare with (known: {known}; identical ones in which" in result.err
        again = site.sync("wms.products")
        assert f"(known: {known};" in again.err, "the same file proves nothing more"
    assert removed(site) == []
    assert plain(site, "6", lines(ALL[1:])).records("products") == {
        "read": 39, "unchanged": 39, "gone": 1, "deleted": 1,
    }  # fmt: skip
    assert plain(site, "7", lines(ALL[1:])).records("products") == {}


def test_the_first_list_is_confirmed_by_an_equal_one(site: Site) -> None:
    """With a stated number of rows, the next export settles what the first one could not prove."""
    snapshots(site, "nothing")
    site.edit("on_gone: nothing", "on_gone: delete")
    for result in (night(site, "1", lines(ALL[1:])), site.sync("wms.products")):
        assert (result.code, "this is the first snapshot that on_gone applies to" in result.err) == (0, True)
    assert night(site, "2", lines(ALL[1:])).code == 0
    assert removed(site) == ["P0"]


@pytest.mark.nightly(but=["short"])
@pytest.mark.parametrize("doubt", ["short", "cut", "without a key"])
def test_what_is_not_proved_is_told_each_night_until_it_is_approved(site: Site, doubt: str) -> None:
    """Also if the warehouse sends the same bytes, or nothing; an approval then decides, and nothing is left behind."""
    snapshots(site, limits="at_most_percent: 100", trailer=False)
    for number in (1, 2):
        assert plain(site, str(number), lines(ALL, f"1.{number}")).code == 0
    gone = 10 if doubt == "short" else 1
    rows = lines(ALL[gone:], "1.2")
    if doubt == "without a key":
        rows.append(";Nobody;1\n")
    if doubt == "cut":
        rows[-1] = rows[-1].removesuffix("\n")
    assert plain(site, "3", rows).code == 4
    for name in ("4", ""):
        result = plain(site, name, rows) if name else site.sync("wms.products")
        assert (result.code, removed(site)) == (4, [])
        assert f"crossdock approve wms.products {gone}" in result.err
    assert site.run("approve", "wms.products", str(gone)).code == 0
    assert site.sync("wms.products").records("products")["deleted"] == gone
    assert len(removed(site)) == gone
    assert site.sync("wms.products").records("products") == {}
    assert not [path for path in (site.folder / "state.db.spool").rglob("*") if path.is_file()]


def test_a_list_that_shows_no_record_is_told_each_night(site: Site) -> None:
    """A snapshot whose rows are all without a key removes nothing, and no approval changes that."""
    snapshots(site)
    for _ in range(2):
        result = night(site, "1", [";Thing;1\n"])
        assert (result.code, "the snapshot lists no records" in result.err) == (4, True)
    assert site.run("approve", "--json").json == []


# ---- configs


@pytest.mark.parametrize(
    ("stream", "old", "new", "says"),
    [
        ("products", "mode: append", "mode: append\n        on_gone: delete", "on_gone: needs mode: snapshot"),
        ("customers", "mode: append", "mode: snapshot\n        on_gone: archive", "customer has no member active"),
        ("invoices", "mode: append", "mode: snapshot\n        on_gone: delete", "an invoice is written once"),
        ("invoices", "mode: append", "mode: snapshot\n        on_gone: archive", "an invoice is written once"),
        ("products", "mode: append", "mode: snapshot\n        on_gone: remove", "on_gone"),
        ("products", "mode: append", "mode: snapshot\n        gone: {at_most: -1}", "gone.at_most"),
        ("products", "mode: append", "mode: snapshot\n        gone: {at_mots: 1}", "did you mean 'at_most'?"),
    ],
)
def test_what_cannot_be_removed_is_refused_at_load(site: Site, stream: str, old: str, new: str, says: str) -> None:
    """A setting that a stream cannot keep ends with exit 2, its place and what would be right."""
    site.edit(old, new, within=f"{stream}:")
    result = site.run("plan")
    assert (result.code, f"connections.wms.streams.{stream}" in result.err) == (2, True), result.err
    assert says in result.err


# ---- empty exports


@pytest.mark.nightly(but=["True"])
@pytest.mark.parametrize("trailer", [True, False])
def test_an_empty_snapshot_removes_all_only_where_that_is_declared_and_approved(site: Site, trailer: bool) -> None:
    """It is refused by default; declared as all_gone, the limits of removals hold it back until they are approved."""
    snapshots(site, trailer=trailer)
    empty = counted([]) if trailer else HEADER
    site.export("PROD_1.csv", empty)
    result = site.sync("wms.products")
    assert (result.code, removed(site)) == (4, [])
    assert "is a snapshot without rows" in result.err
    site.edit("on_gone: delete", "on_gone: delete\n        empty: all_gone", within="products:")
    site.export("PROD_2.csv", empty)
    held = site.sync("wms.products")
    assert (held.code, removed(site)) == (4, [])
    assert site.run("approve", "wms.products", "40").code == 0
    site.export("PROD_3.csv", empty)
    assert site.sync("wms.products").records("products") == {"gone": 40, "deleted": 40}
    assert len(removed(site)) == 40


def test_a_file_without_a_byte_is_no_change_only_where_that_is_declared(site: Site) -> None:
    """The report names it; a snapshot can never declare it."""
    site.init()
    site.export("PROD_1.csv", "")
    refused = site.sync("wms.products")
    assert refused.code == 4
    assert "the file is empty" in refused.err
    site.edit("mode: append", "mode: append\n        empty: no_change", within="products:")
    site.export("PROD_2.csv", HEADER + "".join(lines(range(2))))
    result = site.sync("wms.products")
    assert result.code == 0, result.err
    assert result.records("products") == {"read": 2, "created": 2}
    assert "PROD_1.csv: has no byte, which means no change" in str(result.json)
    site.edit("mode: append", "mode: snapshot", within="products:")
    wrong = site.sync("wms.products")
    assert wrong.code == 2
    assert "no_change is for other modes" in wrong.err
