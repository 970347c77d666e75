"""Records that change, are changed by others, are mended, replayed and given up; judged by the platform's witness."""

from __future__ import annotations

import json
import os
import signal
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.e2e.warehouse import CUSTOMERS, FORWARD, LOSE, PRODUCTS, Fate, Front, Reply, Seen, Site, ask

from crossdock.config.project import project

PRODUCT_PATH = "/api/v1/catalog/products"
HEADER = "SKU;NAME;PRICE\n"
COMMA = ("unitPrice: {from: PRICE, as: decimal}", 'unitPrice: {from: PRICE, as: decimal, decimal_mark: ","}')


class Person:
    """Somebody who works on the platform by hand, with a key of their own."""

    def __init__(self, site: Site) -> None:
        self._site, self._key = site, site.platform.sandbox.new_key(site.tenant)

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        headers = {"authorization": f"Bearer {self._key}", "x-tenant-slug": self._site.tenant}
        headers |= {"content-type": "application/json"} if body is not None else {}
        netloc = urlsplit(self._site.platform.base_url).netloc
        reply = ask(netloc, method, path, json.dumps(body).encode() if body is not None else b"", headers)
        assert reply.status in {200, 201, 204}, reply
        return json.loads(reply.body) if reply.body else None

    def product(self, sku: str) -> dict[str, Any]:
        """The product as the platform shows it."""
        found: dict[str, Any] = self.ask("GET", f"{PRODUCT_PATH}?externalId=wms%3A{sku}")["data"][0]
        return found

    def change(self, sku: str, **members: Any) -> None:
        self.ask("PATCH", f"{PRODUCT_PATH}/{self.product(sku)['id']}", members)


def writes(front: Front) -> list[Seen]:
    return [seen for seen in front.seen if seen.method != "GET"]


def test_a_to_b_to_a_is_three_writes(site: Site, front: Front) -> None:
    """A value that goes and comes back is written each time, in this order, each under a key of its own."""
    site.init()
    for number, price in enumerate(("1.50", "2.75", "1.50")):
        site.export(f"PROD_{number}.csv", f"SKU;NAME;PRICE;EXPORT\nP1;Bolt;{price};{number}\n")
        result = site.sync("wms.products")
        assert result.code == 0
        done = "created" if number == 0 else "updated"
        assert result.records("products") == {"read": 1, done: 1}
    assert [seen.method for seen in writes(front)] == ["POST", "PATCH", "PATCH"]
    assert len({seen.key for seen in writes(front)}) == 3
    assert [seen.body for seen in writes(front)][1:] == [b'{"unitPrice":2.75}', b'{"unitPrice":1.5}']
    assert [effect["operation"] for effect in site.effects("product")] == ["create", "update", "update"]
    assert site.sync("wms.products").records("products") == {}


def test_members_that_are_taken_away_are_counted(site: Site) -> None:
    """A source that has lost a member for all of its records empties it: the report says so, however few they are."""
    site.init()
    site.export("PROD_1.csv", HEADER + "P1;Bolt;1.50\n")
    assert site.sync("wms.products").code == 0
    site.export("PROD_2.csv", HEADER + "P1;Bolt;\n")
    result = site.sync("wms.products")
    assert result.records("products") == {"read": 1, "updated": 1}
    assert result.json["streams"]["wms.products"]["parts"] == {"unitPrice taken away": 1}


def test_a_stale_snapshot_changes_nothing(site: Site) -> None:
    """A snapshot older than the newest accepted one is passed over once by name, and left alone without that one."""
    site.edit("mode: append", "mode: snapshot", within="products:")
    site.init()
    newest = site.export("PROD_1.csv", PRODUCTS)
    assert site.sync("wms.products").code == 0
    stale = site.export("PROD_0.csv", f"{HEADER}P1;Bolt;9.99\nP3;New;1\n")
    os.utime(stale, (1_000_000_000, 1_000_000_000))
    before = site.effects()
    for said in (True, False):
        result = site.sync("wms.products")
        assert (result.code, result.records("products")) == (0, {})
        assert ("passed over PROD_0.csv: older than 'PROD_1.csv'" in result.err) is said
        assert (site.effects(), site.listed()) == (before, [])
        newest.unlink(missing_ok=True)


def test_what_a_person_changed_stands_beside_our_change(site: Site, front: Front) -> None:
    """Our next change meets another version, is decided again, and takes nothing of the other change away."""
    site.init()
    site.export("PROD_1.csv", PRODUCTS)
    assert site.sync("wms.products").code == 0
    person = Person(site)
    person.change("P1", description="by hand", barcode="4006381333931")
    already = len(front.seen)
    site.export("PROD_2.csv", f"{HEADER}P1;Bolt;1.75\n")
    result = site.sync("wms.products")
    assert result.code == 0
    assert result.records("products") == {"read": 1, "updated": 1}
    assert [seen.method for seen in front.seen[already:]] == ["PATCH", "GET", "PATCH"]
    first, _, second = front.seen[already:]
    assert first.key != second.key
    assert second.body == b'{"unitPrice":1.75}'
    now = person.product("P1")
    assert (now["description"], now["barcode"], now["unitPrice"]) == ("by hand", "4006381333931", 1.75)
    already = len(front.seen)
    site.export("PROD_3.csv", f"{HEADER}P1;Bolt;1.80\n")
    assert site.sync("wms.products").code == 0
    assert [seen.method for seen in front.seen[already:]] == ["PATCH"], "the new version is known"


def test_a_change_that_a_person_made_already_is_not_written(site: Site, front: Front) -> None:
    """What somebody has put right by hand is not written again when its source puts it right."""
    site.init()
    site.export("PROD_1.csv", PRODUCTS)
    assert site.sync("wms.products").code == 0
    Person(site).change("P1", unitPrice=1.75)
    already = len(front.seen)
    site.export("PROD_2.csv", f"{HEADER}P1;Bolt;1.75\n")
    result = site.sync("wms.products")
    assert (result.code, result.records("products")) == (0, {"read": 1, "suppressed": 1})
    assert [seen.method for seen in front.seen[already:]] == ["PATCH", "GET"]
    assert len(site.effects("product")) == 3


def test_a_changed_record_that_is_gone_from_the_platform(site: Site) -> None:
    """A change of what somebody has deleted is a dead letter, and the record is not made a second time."""
    site.init()
    site.export("PROD_1.csv", PRODUCTS)
    assert site.sync("wms.products").code == 0
    person = Person(site)
    person.ask("DELETE", f"{PRODUCT_PATH}/{person.product('P1')['id']}")
    site.export("PROD_2.csv", f"{HEADER}P1;Bolt;1.75\nP2;Nut;0.30\n")
    result = site.sync("wms.products")
    assert (result.code, result.records("products")) == (1, {"read": 2, "updated": 1, "rejected": 1})
    assert [each["key"] for each in site.listed()] == ["P1"]
    assert site.names("product") == ["wms:P1", "wms:P2"]


# ---- replay


def refused(site: Site) -> None:
    """Let a product be refused for its price, and another one get through."""
    site.init()
    site.export("PROD_1.csv", f"{HEADER}P1;Bolt;1,50\nP2;Nut;7\n")
    result = site.sync("wms.products")
    assert (result.code, result.records("products")) == (1, {"read": 2, "created": 1, "rejected": 1})
    assert [each["key"] for each in site.listed("--state", "rejected")] == ["P1"]


def replayed(site: Site, *choice: str) -> Any:
    result = site.run("records", "replay", "--json", *choice)
    assert result.json["balanced"]
    return result


def test_a_replay_delivers_once(site: Site) -> None:
    """After the mapping is mended a replay delivers the record and forgets the letter; a second one does nothing."""
    refused(site)
    assert replayed(site).code == 1, "the mapping is as it was"
    assert len(site.listed()) == 1
    site.edit(*COMMA)
    result = replayed(site)
    assert (result.code, result.records("products")) == (0, {"carried_over": 1, "created": 1})
    assert site.listed() == []
    assert site.names("product") == ["wms:P1", "wms:P2"]
    assert Person(site).product("P1")["unitPrice"] == 1.5
    before = site.effects()
    assert replayed(site).code == 0
    assert site.effects() == before
    assert site.run("records", "replay", "wms.products", "P1").code == 2, "no such letter"


def test_a_replay_of_a_connection_is_one_of_its_streams(site: Site) -> None:
    """Its rejected records are delivered; a choice that no rejected record matches is told, in text and JSON."""
    refused(site)
    site.edit(*COMMA)
    result = replayed(site, "wms", "--since", "2999-01-01")
    assert result.json["messages"][-1]["message"].startswith(
        "nothing to replay: no record with a key that 'wms --since 2999-01-01' selects is rejected"
    )
    assert len(site.listed()) == 1
    assert replayed(site, "wms").records("products") == {"carried_over": 1, "created": 1}
    again = site.run("records", "replay")
    assert (again.code, "nothing to replay: no record with a key is rejected" in again.out) == (0, True)


def test_a_sync_after_a_replay_sends_nothing(site: Site) -> None:
    """Files that are read anew under the mended mapping find the replayed record delivered."""
    refused(site)
    site.edit(*COMMA)
    assert replayed(site).code == 0
    before = site.effects()
    result = site.sync("wms.products")
    assert result.code == 0, result.err
    assert site.effects() == before


@pytest.mark.nightly(but=["wms.customers"])
@pytest.mark.parametrize(
    "choice",
    [("wms.customers",), ("--reason", "conflict"), ("--since", "2999-01-01")],
    ids=" ".join,
)
def test_a_replay_takes_only_what_was_chosen(site: Site, choice: tuple[str, ...]) -> None:
    """What another stream, reason or time chooses leaves the letter where it is."""
    refused(site)
    site.edit(*COMMA)
    before = site.effects()
    assert replayed(site, *choice).code == (0 if choice == ("wms.customers",) else 1), "streams with a letter are open"
    assert (site.effects(), len(site.listed())) == (before, 1)


@pytest.mark.nightly
def test_a_corrected_record_clears_its_letter(site: Site) -> None:
    """A record whose source corrects it is delivered from the next export, and no replay brings back the old one."""
    refused(site)
    site.export("PROD_2.csv", f"{HEADER}P1;Bolt;1.60\n")
    result = site.sync("wms.products")
    assert (result.code, result.records("products")) == (0, {"read": 1, "created": 1})
    assert site.listed() == []
    site.edit(*COMMA)
    before = site.effects()
    assert replayed(site).code == 0
    assert site.effects() == before
    assert Person(site).product("P1")["unitPrice"] == 1.6


def test_a_replay_through_a_lost_answer_makes_nothing_twice(site: Site, front: Front) -> None:
    """A replayed record whose answer is lost is sent again under its key."""
    refused(site)
    site.edit(*COMMA)
    already = len(front.seen)
    front.fate = lambda seen: LOSE if seen.number == already + 1 else FORWARD
    assert replayed(site).code == 0
    first, second = front.seen[already:]
    assert (first.key, first.body) == (second.key, second.body)
    assert site.names("product") == ["wms:P1", "wms:P2"]


# ---- drop


def test_a_dropped_record_stays_away_until_it_changes(site: Site) -> None:
    """Coming again as it was given up it is counted and not sent; changed it is looked at anew."""
    refused(site)
    assert site.run("records", "drop", "wms.products", "P1").code == 0
    assert replayed(site).code == 0
    site.export("PROD_2.csv", f"{HEADER}P1;Bolt;1,50\nP2;Nut;8\n")
    result = site.sync("wms.products")
    assert (result.code, result.records("products")) == (0, {"read": 2, "updated": 1, "dropped": 1})
    assert site.names("product") == ["wms:P2"]
    site.export("PROD_3.csv", f"{HEADER}P1;Bolt;1.50\n")
    result = site.sync("wms.products")
    assert (result.code, result.records("products")) == (0, {"read": 1, "created": 1})
    assert site.names("product") == ["wms:P1", "wms:P2"]
    assert site.listed() == []


def test_a_dropped_record_stays_away_when_the_mapping_changes(site: Site) -> None:
    """Its source is the same, and so it stays in the next night; the others are mapped again."""
    refused(site)
    assert site.run("records", "drop", "wms.products", "P1").code == 0
    assert replayed(site).code == 0
    site.edit("name: NAME", "name: NAME\n          description: NAME", within="products:")
    assert site.sync("wms.products").records("products").get("dropped") == 1
    site.export("PROD_2.csv", f"{HEADER}P1;Bolt;1,50\nP2;Nut;8\n")
    assert site.sync("wms.products").records("products").get("dropped") == 1
    assert site.names("product") == ["wms:P2"]


def test_a_waiting_record_can_be_given_up(site: Site) -> None:
    """An invoice that waits for its customer is given up, and does not come to life when the customer comes."""
    site.init()
    site.export("PROD_1.csv", PRODUCTS)
    text = "INVNO;CUSTNO;SKU;QTY;PRICE;CURRENCY\n9;C1;P1;1;1.50;EUR\n"
    site.export("INV_1.csv", text)
    assert site.sync().code == 1
    assert site.run("records", "drop", "wms.invoices", "9").code == 0
    site.export("CUST_1.csv", CUSTOMERS)
    result = site.sync()
    assert (result.code, result.records("invoices")) == (0, {})
    site.export("INV_2.csv", "INVNO;CUSTNO;SKU;QTY;PRICE;CURRENCY\n9;C1;P1;1;1.5;EUR\n9;C1;P2;1;2;EUR\n")
    assert site.sync().records("invoices") == {"read": 1, "created": 1}
    assert len(site.effects("invoice")) == 1


@pytest.mark.parametrize(
    "command",
    [
        ("drop", "wms.products"),
        ("drop", "wms.products", "P1"),
        ("resolve", "wms.products", "P1", "--delivered-as", "prd_1"),
        ("resolve", "wms.products", "--not-delivered"),
        ("resolve", "wms.products", "--delivered"),
    ],
    ids=" ".join,
)
def test_there_is_nothing_to_mend_in_a_new_state(site: Site, command: tuple[str, ...]) -> None:
    """Before the first run every mending says that there is no such record."""
    site.init()
    result = site.run("records", *command)
    assert result.code == 2, result.err
    assert "no such record" in result.err


# ---- one at a time


@pytest.mark.nightly(but=["replay"])
@pytest.mark.parametrize(
    "command",
    [
        ("records", "replay"),
        ("records", "resolve", "wms.products", "--not-delivered"),
        ("records", "drop", "wms.products"),
    ],
    ids=lambda command: command[1],
)
def test_nothing_is_mended_while_a_sync_runs(site: Site, front: Front, command: tuple[str, ...]) -> None:
    """Replays, resolutions and drops are refused while a run is at work, and change nothing."""
    refused(site)
    site.export("PROD_2.csv", f"{HEADER}P3;Screw;3\n")
    told: list[tuple[int, str]] = []

    def meanwhile(seen: Seen) -> Fate:
        if seen.method == "POST" and not told:
            result = site.process(*command)
            told.append((result.code, result.err))
        return FORWARD

    front.fate = meanwhile
    assert site.sync("wms.products").code == 1, "the letter is still there"
    ((code, err),) = told
    assert code == 3
    assert "another run is using" in err
    assert [each["key"] for each in site.listed()] == ["P1"]
    assert site.names("product") == ["wms:P2", "wms:P3"]
    assert site.run(*command).code in {0, 1, 2}, "the lock is free again"


def test_a_poisonous_record_stops_no_other(site: Site, front: Front) -> None:
    """A record for which the platform always fails is left in doubt, and delivered once it does not."""
    site.edit("give_up_after_s: 0.1", "give_up_after_s: 60")
    site.init()
    lines = "".join(f"P{number};Bolt;{number}\n" for number in range(30))
    site.export("PROD_1.csv", HEADER + lines)
    front.fate = lambda seen: Reply(500) if b'"wms:P3"' in seen.body else FORWARD
    result = site.sync("wms.products")
    assert (result.code, result.records("products")) == (1, {"read": 30, "created": 29, "carried_on": 1})
    assert [each["key"] for each in site.listed("--state", "in-doubt")] == ["P3"]
    front.fate = lambda _: FORWARD
    result = site.sync("wms.products")
    assert (result.code, result.records("products")) == (0, {"carried_over": 1, "created": 1})
    assert len({seen.key for seen in front.seen if b'"wms:P3"' in seen.body}) == 1
    assert len(site.names("product")) == 30


def test_a_stop_between_two_streams_is_told(site: Site, front: Front) -> None:
    """A run that is interrupted with the last answer of a stream is no whole run: exit 130; the next one goes on."""
    site.init()
    site.fill()

    def interrupt(seen: Seen) -> Fate:
        if b'"wms:C2"' in seen.body:
            os.kill(os.getpid(), signal.SIGINT)
        return FORWARD

    site.edit("in_flight: 4", "in_flight: 1")
    front.fate = interrupt
    result = site.sync()
    assert (result.code, result.json["status"]) == (130, "incomplete")
    assert site.names("product") == []
    front.fate = lambda _: FORWARD
    assert site.sync().code == 0
    site.assert_everything_once()


def declare_restored(site: Site) -> None:
    loaded = project.load(site.config)
    with loaded.open_state_exclusively(restored=True) as state:
        state.run_transaction(lambda tx: tx.runs.declare_state_restored(at=datetime.now(UTC)))


def restored(site: Site) -> bool:
    with project.load(site.config).read_state() as tx:
        return tx.runs.is_state_restored()


def test_a_replay_does_not_make_a_restored_state_trusted(site: Site) -> None:
    """Only a whole sync without errors has looked at everything; a replay, and a sync of one stream, have not."""
    refused(site)
    declare_restored(site)
    assert replayed(site, "--reason", "conflict").code == 1
    site.edit(*COMMA)
    assert replayed(site).code == 0
    assert restored(site)
    assert site.sync("wms.products").code == 0
    assert restored(site)
    site.export("CUST_1.csv", CUSTOMERS)
    site.sync()
    assert not restored(site)


def test_a_restored_backup_makes_nothing_twice(site: Site) -> None:
    """A state of before the first night, restored after it, finds what that night made; invoices wait for a person."""
    site.init()
    backup = (site.folder / "state.db").read_bytes()
    site.fill()
    assert site.sync().code == 0
    before = len(site.effects())
    for leftover in site.folder.glob("state.db-*"):
        leftover.unlink()
    (site.folder / "state.db").write_bytes(backup)
    declare_restored(site)
    site.out.joinpath("PROD_1.csv").write_text(PRODUCTS.replace("1.50", "1.60"))
    result = site.sync()
    assert result.records("customers") == {"read": 2, "suppressed": 2}
    assert result.records("products") == {"read": 2, "suppressed": 1, "updated": 1}
    assert result.records("invoices") == {"read": 3, "carried_on": 3}
    assert result.code == 1
    assert [e["operation"] for e in site.effects()[before:]] == ["update"]
    assert Person(site).product("P1")["unitPrice"] == 1.6


@pytest.mark.nightly(but=["key"])
@pytest.mark.parametrize("choice", [["--reason", "missing"], ["wms.products", "P1"]], ids=["reason", "key"])
def test_a_record_that_a_person_has_deleted_is_created_again_by_a_replay(site: Site, choice: list[str]) -> None:
    """Of this record, as the explanation of `missing` says. One of everything that was rejected does not do that."""
    site.init()
    site.export("PROD_1.csv", PRODUCTS)
    assert site.sync("wms.products").code == 0
    person = Person(site)
    person.ask("DELETE", f"{PRODUCT_PATH}/{person.product('P1')['id']}")
    site.export("PROD_2.csv", HEADER + "P1;Bolt;2.75\n")
    assert site.sync("wms.products").code == 1
    for _ in range(2):
        assert site.run("records", "replay").code == 1
        assert [item["why"].partition(":")[0] for item in site.listed()] == ["missing"]
    assert site.names("product") == ["wms:P1", "wms:P2"]
    assert site.run("records", "replay", *choice).code == 0
    assert (site.names("product"), person.product("P1")["unitPrice"]) == (["wms:P1", "wms:P1", "wms:P2"], 2.75)
    site.export("PROD_3.csv", HEADER + "P1;Bolt;3.00\n")
    assert site.sync("wms.products").records("products") == {"read": 1, "updated": 1}


def test_a_replay_creates_nothing_that_has_come_back(site: Site, front: Front) -> None:
    """The platform had lost it for a while: the replay asks again, and changes the record."""
    site.init()
    site.export("PROD_1.csv", PRODUCTS)
    assert site.sync("wms.products").code == 0
    product = Person(site).product("P1")
    front.fate = lambda seen: Reply(404, b"{}") if product["id"] in seen.path else FORWARD
    site.export("PROD_2.csv", HEADER + "P1;Bolt;2.75\n")
    assert site.sync("wms.products").code == 1
    front.fate = lambda _: FORWARD
    assert site.run("records", "replay", "--reason", "missing").code == 0
    assert [effect["operation"] for effect in site.effects("product")] == ["create", "create", "update"]
