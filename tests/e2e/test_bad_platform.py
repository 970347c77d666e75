"""A platform that refuses, throttles, loses answers or goes away: what is told, and that each record is made once."""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.e2e.warehouse import (
    BREAK,
    CUSTOMERS,
    FORWARD,
    INVOICES,
    LEAVE,
    LOSE,
    PERSON,
    Fate,
    Front,
    Reply,
    Seen,
    Site,
    ask,
    expected,
    once,
    open_site,
)

from crossdock.sandbox import SandboxServer, SandboxSettings

pytestmark = pytest.mark.usefixtures("soon_probing")

HEADER = "INVNO;CUSTNO;SKU;QTY;PRICE;CURRENCY\n"
INVOICE_PATH = "/api/v1/finance/invoices"
CUSTOMER_PATH = "/api/v1/sales/customers"
MANY = "CUSTNO;NAME\n" + "".join(f"C{number};{PERSON} {number}\n" for number in range(40))
NO_KEYS = ("  in_flight: 4", "  in_flight: 4\n  idempotency: {enabled: false}")


Platforms = Callable[..., Site]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Platforms]:
    """Makes a site with a platform of its own, of the given settings."""
    with ExitStack() as opened:

        def make(**settings: float | str) -> Site:
            served = SandboxServer(tmp_path / "platform", SandboxSettings(**settings))  # type: ignore[arg-type]  # ints
            return opened.enter_context(open_site(tmp_path / "site", opened.enter_context(served), monkeypatch))

        yield make


def is_invoice(seen: Seen) -> bool:
    return seen.path == INVOICE_PATH


# ---- credentials


def test_wrong_api_key(site: Site) -> None:
    """A key that the platform does not know ends with exit 3 and the place in the config; nothing is lost by it."""
    site.init()
    site.fill()
    wrong = site.api_key[:-8] + "deadbeef"
    site.secrets.append(wrong)
    site.setenv("CROSSDOCK_API_KEY", wrong)
    for _ in range(2):
        result = site.sync()
        assert result.code == 3
        assert f"{site.base_url}: does not accept the credentials: " in result.err
        assert "HTTP 401" in result.err
        assert "platform.auth" in result.err
        assert result.json["balanced"]
        assert not site.effects()
        assert {each["state"] for each in site.listed()} == {"pending"}
    site.setenv("CROSSDOCK_API_KEY", site.api_key)
    assert site.sync().code == 0
    site.assert_everything_once()


def test_wrong_tenant(site: Site) -> None:
    """A tenant that the key is not of ends with exit 3; no record becomes a dead letter for it."""
    site.setenv("CROSSDOCK_API_KEY", site.platform.sandbox.new_key("somebody-else"))
    site.init()
    site.fill()
    result = site.sync()
    assert result.code == 3
    assert "HTTP 403" in result.err
    assert "platform.tenant" in result.err
    assert {each["state"] for each in site.listed()} == {"pending"}
    site.setenv("CROSSDOCK_API_KEY", site.api_key)
    assert site.sync().code == 0
    site.assert_everything_once()


@pytest.mark.nightly
def test_a_key_that_expires_on_the_way(site: Site, front: Front) -> None:
    """A key that is refused in the middle of a run ends it with exit 3; the next run makes the rest, once."""
    site.init()
    site.fill()
    front.fate = lambda seen: Reply(401) if is_invoice(seen) else FORWARD
    assert site.sync().code == 3
    assert site.names("product") == ["wms:P1", "wms:P2"]
    front.fate = lambda _: FORWARD
    assert site.sync().code == 0
    site.assert_everything_once()


def test_a_scope_that_is_missing(site: Site, front: Front) -> None:
    """A resource that our credential may not write at all stops the run with exit 3 and its name."""
    site.init()
    site.fill()
    front.fate = lambda seen: Reply(403, b'{"detail": "scope invoices:write"}') if is_invoice(seen) else FORWARD
    result = site.sync()
    assert result.code == 3
    assert "does not permit writing invoice: scope invoices:write (HTTP 403)" in result.err
    front.fate = lambda _: FORWARD
    assert site.sync().code == 0
    site.assert_everything_once()


def test_one_record_that_is_forbidden(site: Site, front: Front) -> None:
    """Where others of the kind get through, a 403 is a dead letter forbidden of that record alone."""
    site.edit("in_flight: 4", "in_flight: 1")
    site.init()
    site.fill()
    chosen = b'"quantity":100'
    front.fate = lambda seen: Reply(403, b'{"detail": "ledger:4000"}') if chosen in seen.body else FORWARD
    result = site.sync()
    assert result.code == 1
    assert [(item["key"], item["why"]) for item in site.listed()] == [("3", "forbidden: ledger:4000")]


@pytest.mark.nightly(but=["the mapping", "nothing"])
@pytest.mark.parametrize("corrected", ["the mapping", "a repair", "a filter", "nothing"])
def test_an_invoice_that_was_never_sent_is_mapped_as_the_config_says_now(
    site: Site, front: Front, corrected: str
) -> None:
    """A run was stopped, and its mapping corrected: an invoice that is wrong could not be changed any more."""
    site.init()
    site.fill()
    front.fate = lambda seen: Reply(503, headers={"retry-after": "0"}) if is_invoice(seen) else FORWARD
    assert site.sync().code == 3
    assert Counter(each["state"] for each in site.listed("--state", "pending")) == {"pending": 3}
    front.fate = lambda _: FORWARD
    match corrected:
        case "the mapping":
            site.edit("currency: CURRENCY", "currency: {const: USD}", within="invoices:")
        case "a repair":
            site.edit(
                "key: [INVNO]", "key: [INVNO]\n        columns: {CURRENCY: {table: {EUR: USD}}}", within="invoices:"
            )
        case "a filter":
            site.edit(
                "key: [INVNO]", "key: [INVNO]\n        skip: {all: {field: CURRENCY, equals: EUR}}", within="invoices:"
            )
    result = site.sync()
    sent = [effect["body"]["currency"] for effect in site.effects("invoice")]
    expected = {"a filter": [], "nothing": ["EUR"] * 3}.get(corrected, ["USD"] * 3)
    assert (sent, result.code) == (expected, 1 if corrected == "a filter" else 0)
    assert ("mapped again, which an earlier run" in result.err + result.out) is (corrected != "nothing")
    again = site.sync()
    assert (again.records("invoices"), len(site.effects("invoice"))) == (
        {} if sent else again.records("invoices"),
        len(sent),
    )


def test_what_is_forbidden_in_every_run_holds_nothing_else_back(site: Site, front: Front) -> None:
    """The first invoice of all is one that the key may not post. It ends the first run, and no later one."""
    site.edit("in_flight: 4", "in_flight: 1")
    site.init()
    site.fill()
    chosen = b'"quantity":2'
    front.fate = lambda seen: Reply(403, b'{"detail": "ledger:4000"}') if chosen in seen.body else FORWARD
    assert site.sync().code == 3
    site.export("INV_2.csv", INVOICES.splitlines()[0] + "\n4;C1;P1;7;1.50;EUR\n")
    for _ in range(2):
        result = site.sync()
        assert (result.code, "does not permit writing invoice: ledger:4000 (HTTP 403)" in result.err) == (3, True)
        assert [(item["key"], item["state"]) for item in site.listed()] == [("1", "pending")]
    assert len(site.effects("invoice")) == 3
    front.fate = lambda _: FORWARD
    assert site.sync().code == 0
    assert len(site.effects("invoice")) == 4


# ---- refusals


def test_what_the_platform_refuses_is_a_dead_letter(site: Site) -> None:
    """A record that only the platform can judge is a dead letter with its pointer; mended in the mapping it goes."""
    site.edit("customerId: {ref: customer, key: CUSTNO}", "customerId: {const: cus_0}")
    site.init()
    site.fill()
    result = site.sync()
    assert result.code == 1
    assert result.records("invoices") == {"read": 3, "rejected": 3}
    found = site.listed()
    assert {(item["stage"], item["why"], item["pointer"]) for item in found} == {
        ("delivery", "rejected: names no customer", "/customerId")
    }
    assert [item["at"] for item in sorted(found, key=lambda item: str(item["key"]))] == [
        "INV_1.csv:2",
        "INV_1.csv:4",
        "INV_1.csv:5",
    ]
    site.edit("customerId: {const: cus_0}", "customerId: {ref: customer, key: CUSTNO}")
    assert site.sync().code == 0
    assert site.listed() == []
    site.assert_everything_once()


def test_a_name_for_us_that_is_too_long(site: Site) -> None:
    """A key whose name on the wire the platform does not take is one dead letter; the others go through."""
    site.init()
    site.export("CUST_1.csv", CUSTOMERS + f"{'Ä' * 90};{PERSON}\n")
    result = site.sync("wms.customers")
    assert result.code == 1
    assert result.records("customers") == {"read": 3, "created": 2, "rejected": 1}
    (found,) = site.listed()
    assert found["why"].startswith("invalid_draft: ")
    assert found["pointer"] == "/externalId"


def test_a_refused_record_is_sent_again_only_when_it_changes(site: Site, front: Front) -> None:
    """A dead letter of the platform that comes again unchanged costs no request; corrected it goes under a new key."""
    site.init()
    refusal = json.dumps({"errors": [{"pointer": "/name", "detail": "is taken"}]}).encode()
    front.fate = lambda seen: Reply(422, refusal) if b"Amsel" in seen.body else FORWARD
    site.export("CUST_1.csv", CUSTOMERS)
    assert site.sync("wms.customers").code == 1
    site.export("CUST_2.csv", CUSTOMERS + f"C3;{PERSON}\n")
    result = site.sync("wms.customers")
    assert result.code == 1
    assert result.json["requests"] == 1
    assert result.records("customers") == {"read": 3, "unchanged": 1, "created": 1, "rejected": 1}
    site.export("CUST_3.csv", CUSTOMERS.replace("Amsel", "Meise"))
    assert site.sync("wms.customers").code == 0
    assert site.listed() == []
    assert site.names("customer") == ["wms:C1", "wms:C2", "wms:C3"]
    keys = [seen.key for seen in front.seen if b"wms:C2" in seen.body]
    assert len(keys) == len(set(keys)) == 2


def test_a_name_that_is_taken(site: Site) -> None:
    """A new record whose external id another one has is a dead letter; what was there stays, and the others go on."""
    site.init()
    headers = {"authorization": f"Bearer {site.api_key}", "x-tenant-slug": site.tenant}
    body = {"externalId": "wms:C2", "name": "there before"}
    address = urlsplit(site.base_url).netloc
    made = ask(
        address, "POST", CUSTOMER_PATH, json.dumps(body).encode(), {**headers, "content-type": "application/json"}
    )
    assert made.status == 201
    site.fill()
    result = site.sync()
    assert result.code == 1
    assert result.records("customers") == {"read": 2, "created": 1, "rejected": 1}
    (rejected,) = site.listed("--state", "rejected")
    assert rejected["key"] == "C2"
    assert rejected["why"].startswith("conflict: the platform has another record under this name")
    assert {effect["operation"] for effect in site.effects()} == {"create"}


def test_a_path_that_is_not_there(site: Site) -> None:
    """A platform without the assumed path is a wrong config, exit 3, and does not make every record a dead letter."""
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    site.edit("in_flight: 4", "in_flight: 4\n  paths: {customer: /api/v1/crm/customers}")
    result = site.sync("wms.customers")
    assert result.code == 3
    assert "/api/v1/crm/customers" in result.err
    assert {each["state"] for each in site.listed()} == {"pending"}
    site.configure()
    assert site.sync("wms.customers").code == 0
    assert site.names("customer") == ["wms:C1", "wms:C2"]


def test_a_platform_that_repeats_what_it_was_sent(site: Site, front: Front) -> None:
    """What a platform quotes of a record in its refusal is shown with --raw alone."""
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    front.fate = lambda seen: Reply(422, json.dumps({"detail": f"bad name {json.loads(seen.body)['name']}"}).encode())
    assert site.sync("wms.customers").code == 1
    site.run("records", "list")
    site.run("records", "show", "wms.customers", "C1")
    assert PERSON in site.run("records", "show", "wms.customers", "C1", "--raw", raw=True).out


# ---- away


def test_platform_down_at_the_start(own: Platforms, tmp_path: Path) -> None:
    """A platform that cannot be connected to ends with exit 3 and its address; later everything is made once."""
    site = own()
    site.init()
    site.fill()
    site.platform.__exit__()
    for _ in range(2):
        result = site.sync()
        assert result.code == 3
        assert f"{site.base_url}: " in result.err
        assert "run again" in result.err
        assert result.json["balanced"]
        assert result.json["streams"]["wms.customers"]["records"]["carried_on"] == 2
    with SandboxServer(tmp_path / "platform") as site.platform:
        assert site.platform.base_url == site.base_url
        assert site.sync().code == 0
        site.assert_everything_once()


@pytest.mark.nightly
def test_the_error_names_the_platform_once(site: Site) -> None:
    """A message tells the address once, and what failed in words."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        site.base_url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    site.configure()
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    result = site.run("sync", "wms.customers")
    assert result.code == 3
    assert result.err.count(site.base_url) == 1


@pytest.mark.nightly(but=["after 3 requests"])
@pytest.mark.parametrize("after", [1, 3, 7], ids=lambda number: f"after {number} requests")
def test_platform_that_stops_on_the_way(own: Platforms, tmp_path: Path, after: int) -> None:
    """A platform that goes away in the middle ends with exit 3; when it is back the run goes on, each record once."""
    site = own()
    site.fill()
    site.export("CUST_2.csv", MANY.replace("\nC", "\nD"))
    with Front(site.platform.base_url) as front:

        def stop(seen: Seen) -> Fate:
            if seen.number == after:
                site.platform.__exit__()
            return FORWARD

        front.fate, site.base_url = stop, front.base_url
        site.configure()
        site.init()
        result = site.sync()
        assert result.code == 3
        assert result.json["balanced"]
        assert "run again" in result.err
        front.fate = lambda _: FORWARD
        with SandboxServer(tmp_path / "platform") as site.platform:
            assert site.sync().code == 0
            assert site.names("customer") == sorted(["wms:C1", "wms:C2", *(f"wms:D{n}" for n in range(40))])
            assert site.invoices() == expected(INVOICES)
            assert site.sync().json["requests"] == 0


def test_a_gateway_that_answers_for_the_platform(site: Site, front: Front) -> None:
    """Pages of a gateway (502 with HTML, before and after the work) are no fate: everything is made once."""
    site.init()
    site.fill()
    page = Reply(502, b"<html>Bad Gateway</html>", {"content-type": "text/html"})
    front.fate = once(lambda _: True, page)
    assert site.sync().code == 0
    site.assert_everything_once()


@pytest.mark.nightly(but=["cut body"])
@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(201, b"", {}), id="no body"),
        pytest.param(Reply(201, b'{"id": '), id="cut body"),
        pytest.param(Reply(200, b"<html>login</html>"), id="a login page"),
        pytest.param(Reply(302, b"", {"location": "https://login.example.com/"}), id="a redirect"),
        pytest.param(Reply(500, b"{}"), id="an error"),
    ],
)
def test_an_answer_that_proves_nothing(site: Site, front: Front, reply: Reply) -> None:
    """An answer without an id does not count as delivered; the same request is sent again under the same key."""
    site.init()
    site.fill()
    front.fate = once(is_invoice, reply)
    assert site.sync().code == 0
    site.assert_everything_once()
    tries = Counter(seen.key for seen in front.seen if is_invoice(seen))
    assert sorted(tries.values()) == [2, 2, 2]


# ---- throttled


def test_a_bucket_of_which_nothing_is_told(own: Platforms) -> None:
    """Storms of 429 lose nothing and make nothing twice; they are counted."""
    site = own(rate_per_min=6000, burst=1, rate_headers="none")
    site.init()
    site.export("CUST_1.csv", MANY)
    result = site.sync("wms.customers")
    assert result.code == 0
    assert result.json["throttled"] > 0
    assert result.json["requests"] == 40 + result.json["throttled"]
    assert site.names("customer") == sorted(f"wms:C{n}" for n in range(40))


@pytest.mark.nightly(but=["nonsense"])
@pytest.mark.parametrize("headers", [{}, {"retry-after": "soon"}], ids=["no header", "nonsense"])
def test_429_without_a_useful_header(site: Site, front: Front, headers: dict[str, str]) -> None:
    """A 429 that does not say when to come back is a pause and no more."""
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    front.fate = once(lambda _: True, Reply(429, b"slow down", headers))
    result = site.sync("wms.customers")
    assert result.code == 0
    assert result.json["throttled"] == 2
    assert site.names("customer") == ["wms:C1", "wms:C2"]


# ---- lost answers


@pytest.mark.nightly(but=["the platform does it, its answer is lost"])
@pytest.mark.parametrize("fate", [LOSE, BREAK])
def test_a_lost_answer_is_asked_for_again(site: Site, front: Front, fate: Fate) -> None:
    """When the answer does not come the same bytes go again under the same key, and there is one effect each."""
    site.edit("give_up_after_s: 0.1", "give_up_after_s: 30")  # also on a slow machine
    site.init()
    site.fill()
    front.fate = once(lambda _: True, fate)
    assert site.sync().code == 0
    site.assert_everything_once()
    attempts = Counter((seen.key, seen.path, seen.body) for seen in front.seen)
    assert set(attempts.values()) == {2}
    assert len({key for key, _, _ in attempts}) == len(attempts)


def test_answers_that_stay_lost(site: Site, front: Front) -> None:
    """Where the platform answers and yet no invoice does, they are left in doubt; the next run uses the same keys."""
    site.edit("give_up_after_s: 0.1", "give_up_after_s: 60")
    site.init()
    site.fill()
    front.fate = lambda seen: LOSE if is_invoice(seen) else FORWARD
    result = site.sync()
    assert result.code == 1
    assert result.records("invoices") == {"read": 3, "carried_on": 3}
    front.fate = lambda _: FORWARD
    assert site.sync().code == 0
    site.assert_everything_once()
    assert len({seen.key for seen in front.seen if is_invoice(seen)}) == 3


def test_a_second_attempt_that_overtakes_the_first(own: Platforms) -> None:
    """A resend that comes while the platform works on the first attempt is no refusal: one record, no dead letter."""
    site = own(delay_s=0.3)
    with Front(site.platform.base_url) as front:
        site.base_url = front.base_url
        site.configure()
        site.edit("{attempts: 2, base_s: 0.01, ", "{attempts: 20, base_s: 0.05, cap_s: 0.2, ")
        site.init()
        site.export("CUST_1.csv", CUSTOMERS)
        front.landed = lambda seen: seen.key in {effect["idempotencyKey"] for effect in site.effects()}
        front.fate = once(lambda _: True, LEAVE)
        result = site.sync("wms.customers")
    assert site.names("customer") == ["wms:C1", "wms:C2"]
    assert site.listed() == []
    assert result.code == 0


# ---- without idempotency keys


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["customer", "invoice"])
def test_without_keys_a_lost_answer_is_parked(site: Site, front: Front, kind: str) -> None:
    """Without idempotency keys what may have happened is never sent again: it is in doubt until a person decides."""
    site.edit(*NO_KEYS)
    if kind == "customer":
        site.edit("  lookup: {settle_s: 0.05}", "  lookup: {enabled: false}")
    site.init()
    site.fill()
    chosen = {"customer": b"wms:C2", "invoice": b'"quantity":100'}[kind]
    front.fate = lambda seen: LOSE if chosen in seen.body and kind in seen.path else FORWARD
    key = {"customer": "C2", "invoice": "3"}[kind]
    requests = 0
    for run in range(3):
        if run == 2:
            site.export("INV_2.csv", INVOICES)
        result = site.sync()
        assert result.code == 1, result
        assert result.json["balanced"]
        (doubt,) = site.listed("--state", "in-doubt")
        assert (doubt["stream"], doubt["key"]) == (f"wms.{kind}s", key)
        assert doubt["why"].startswith("create was sent once without a clear answer: request failed")
        requests = requests or len(front.seen)
        assert len(front.seen) == requests
    assert Counter(seen.body for seen in front.seen).most_common(1)[0][1] == 1
    assert not any(seen.key for seen in front.seen)
    assert len(site.effects(kind)) == {"customer": 2, "invoice": 3}[kind]
    if kind == "invoice":
        site.assert_everything_once()


@pytest.mark.nightly
@pytest.mark.parametrize("landed", [True, False])
def test_without_keys_a_record_with_a_name_is_looked_up(site: Site, front: Front, *, landed: bool) -> None:
    """What may have happened is asked for by its external id: it is sent again only when it is not there."""
    site.edit(*NO_KEYS)
    site.init()
    site.fill()
    front.fate = once(lambda seen: b"wms:C2" in seen.body, LOSE if landed else BREAK)
    result = site.sync()
    assert result.code == 0
    assert site.names("customer") == ["wms:C1", "wms:C2"]
    site.assert_everything_once()
    asked = [seen for seen in front.seen if seen.method == "GET"]
    probe, *looked_up = [seen.path for seen in asked]
    assert probe.startswith("/api/v1/sales/customers?externalId=crossdock%3A"), "a name that does not exist"
    assert looked_up == ["/api/v1/sales/customers?externalId=wms%3AC2"]
    assert sum(b"wms:C2" in seen.body for seen in front.seen) == (1 if landed else 2)


@pytest.mark.nightly
def test_a_person_says_what_became_of_an_invoice_in_doubt(site: Site, front: Front) -> None:
    """An invoice cannot be looked up: told what happened, crossdock binds it, or sends it, once."""
    site.edit(*NO_KEYS)
    site.init()
    site.fill()
    front.fate = lambda seen: (
        LOSE if b'"quantity":100' in seen.body else BREAK if b'"quantity":4' in seen.body else FORWARD
    )
    assert site.sync().code == 1
    assert {each["key"] for each in site.listed("--state", "in-doubt")} == {"1", "3"}
    front.fate = lambda _: FORWARD

    refused = site.run("records", "resolve", "wms.invoices", "--delivered")
    assert (refused.code, "give the record's id" in refused.err) == (2, True)
    (made,) = [e["id"] for e in site.effects("invoice") if any(i["quantity"] == 100 for i in e["body"]["items"])]
    assert site.run("records", "resolve", "wms.invoices", "3", "--delivered-as", made, "--yes").code == 0
    assert site.run("records", "resolve", "wms.invoices", "1", "--not-delivered").code == 0
    assert site.sync().code == 0
    site.assert_everything_once()
    assert site.sync().json["requests"] == 0
    assert site.run("records", "resolve", "wms.invoices", "1", "--not-delivered").code == 2


def test_without_keys_a_change_of_what_is_in_doubt_waits(site: Site, front: Front) -> None:
    """A correction of a record in doubt is held back, since nobody knows whether it would be a second one."""
    site.edit(*NO_KEYS)
    site.init()
    site.fill()
    front.fate = lambda seen: LOSE if b'"quantity":100' in seen.body else FORWARD
    assert site.sync().code == 1
    site.export("INV_2.csv", INVOICES.replace(";100;", ";99;"))
    for _ in range(2):
        result = site.sync()
        assert result.code == 1
        assert result.json["requests"] == 0
        assert result.json["balanced"]
    site.assert_everything_once()


def test_without_keys_what_was_surely_not_sent_goes_again(site: Site, front: Front) -> None:
    """Without idempotency keys a refused connection is still no doubt: it is sent when the platform is back."""
    site.edit(*NO_KEYS)
    site.init()
    site.fill()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
    site.edit(site.base_url, nobody)
    (site.folder / "state.db").unlink()
    site.init()
    assert site.sync().code == 3
    assert site.listed("--state", "in-doubt") == []
    assert site.sync().code == 3
    assert site.listed("--state", "in-doubt") == []


@pytest.mark.nightly
def test_without_keys_a_429_is_no_doubt(site: Site, front: Front) -> None:
    """What was answered 429 was not done: when the run stops then, it is sent by the next one and not parked."""
    site.edit(*NO_KEYS)
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    front.fate = lambda seen: Reply(429, b"", {"retry-after": "1"}) if b"wms:C1" in seen.body else Reply(401)
    assert site.sync("wms.customers").code == 3
    front.fate = lambda _: FORWARD
    result = site.sync("wms.customers")
    assert site.listed("--state", "in-doubt") == []
    assert result.code == 0
    assert site.names("customer") == ["wms:C1", "wms:C2"]


@pytest.mark.nightly
def test_without_keys_a_doubt_survives_a_platform_that_is_away(site: Site) -> None:
    """A run that finds a record in doubt and then no platform ends with exit 3 and balances."""
    with Front(site.platform.base_url) as front:
        site.base_url = front.base_url
        site.configure()
        site.edit(*NO_KEYS)
        site.init()
        site.export("CUST_1.csv", CUSTOMERS)
        front.fate = lambda seen: LOSE if b"wms:C1" in seen.body else Reply(401)
        assert site.sync("wms.customers").code == 3
    result = site.sync("wms.customers")
    assert result.code == 3, result.err
    assert result.json["balanced"]


@pytest.mark.nightly
def test_without_keys_two_syncs_at_once_make_nothing_twice(site: Site, front: Front) -> None:
    """A second sync on the same state does not send what the first one is about to send."""
    site.edit(*NO_KEYS)
    site.edit("in_flight: 4", "in_flight: 1")
    site.init()
    site.fill()
    codes: list[int] = []

    def judge(seen: Seen) -> Fate:
        if is_invoice(seen) and not codes:
            codes.append(0)
            codes[0] = site.process("sync", "wms.invoices").code
        return FORWARD

    front.fate = judge
    site.sync()
    assert site.invoices() == expected(INVOICES)
    assert codes == [3]
