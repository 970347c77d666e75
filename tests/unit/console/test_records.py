"""The pages of open records and of one record: the numbers of the commands, and personal data only on request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from msgspec import structs
from tests.plain_browser import Page
from tests.report_page import HIDDEN, HOSTILE, dead_letter, waiting
from tests.unit.cli.conftest import CommandLine
from tests.unit.console.visitor import Visitor, visiting
from tests.unit.state.samples import AT, SCOPE, binding, intent

from crossdock.console.visitors_and_roles import Role
from crossdock.delta.fingerprint import key_hashes
from crossdock.state import FileFacts, NamedRecord, PendingApproval
from crossdock.state.tables.pending_approvals_and_begun_undos import packed_key_hashes
from crossdock.values.record_keys import key_text
from crossdock.values.run_states_and_tally import RecordState

STREAM = "wms.products"
RAW = {"columns": ["SKU", "NAME", "PRICE"], "rows": [["K", "secret-canary", "1.50"]], "lines": [2]}


def record(key: str, **more: Any) -> dict[str, Any]:
    return {"stream": STREAM, "key": key, "key_hash": key_hashes([key])[key], "raw": RAW, **more}


@pytest.fixture
def visitor(command_line: CommandLine) -> Iterator[Visitor]:
    with visiting(command_line.config, role=Role.OPERATOR) as visitor:
        yield visitor


def opened(visitor: Visitor, address: str) -> Page:
    """The page of the tenant at *address*, which may begin after the name of the tenant."""
    path = address if address.startswith("/t/") else f"/t/acme/{address}"
    return Page(200, path, {}, visitor.html(path))


def fill(command_line: CommandLine) -> None:
    """At least one record in each state, two rejected ones with one reason, and one that waits for the other."""
    with closing(command_line.state()) as state, state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        letters = [dead_letter(1, **record("R1")), dead_letter(2, **record("R2")), dead_letter(3, **record("D3"))]
        tx.dead_letters.put(letters, run_id=run, at=AT)
        tx.dead_letters.mark_dropped(STREAM, [letters[2].identity.key_hash])
        parents = [{"resource": "product", "namespace": "wms", "key": "R1"}]
        tx.waiting_records.put([waiting(4, waits_for=parents, **record("W4"))], run_id=run, at=AT)
        statuses = ("pending", "in_doubt", "handed_over", "overdue")
        made = [intent(n, status=status, **record(f"I{n}")) for n, status in enumerate(statuses)]
        tx.intents.add(made, run_id=run, fence=1, at=AT)
        tx.inbox.schedule_fetch_of_records([NamedRecord(STREAM, "H5", key_hashes(["H5"])["H5"])], at=AT)
        known = [binding(n, key=f"U{n}", key_hash=key_hashes([f"U{n}"])[f"U{n}"]) for n in range(3)]
        tx.bindings.put(SCOPE, known, run_id=run, at=AT)
        tx.unverified.mark_bindings_and_resource(SCOPE, known)


def test_numbers_are_those_of_the_command(command_line: CommandLine, visitor: Visitor) -> None:
    """Each leads to a list of as many records, with the same words."""
    fill(command_line)
    overview = opened(visitor, "records")
    for state in RecordState:
        listed = command_line.run("records", "list", "--state", state.option_value, "--all", "--json").json
        numbers = [link for link in overview.links if link.address == f"/t/acme/records/{state.option_value}"]
        assert [each.text for each in numbers] == [state.display_text, str(len(listed))]
        page = opened(visitor, numbers[1].address)
        assert f"{len(listed)} in all" in page.text
        for item in listed:
            assert item["why"] in page.text
            assert item["key"] in [link.text for link in page.links]


def test_a_group_leads_to_its_records(command_line: CommandLine, visitor: Visitor) -> None:
    """And those that wait lead to what they wait for, whose page says why it is not there."""
    fill(command_line)
    rejected = opened(visitor, "records/rejected")
    group = opened(visitor, next(each.address for each in rejected.links if each.text == "2"))
    assert {each.text for each in group.links if "record?" in each.address} == {"R1", "R2"}
    missing = opened(visitor, opened(visitor, "records/waiting").link("product wms:R1"))
    assert "bad_value: is no number" in missing.text


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("R1", "key=R1"), ("wms:R1", "key=R1"), ("prd_2", "key=U2"), ("key-1", "key=I1"), ("f.csv:1", "key=R1")],
    ids=["key", "external id", "target id", "idempotency key", "line"],
)  # fmt: skip
def test_a_search_leads_to_the_record(command_line: CommandLine, visitor: Visitor, wanted: str, found: str) -> None:
    """By any of its names."""
    fill(command_line)
    assert visitor.redirected(f"/t/acme/records?q={quote(wanted)}").endswith(found)


def test_a_search_finds_texts_and_files(command_line: CommandLine, visitor: Visitor) -> None:
    """It leads to the lists that are narrowed to them."""
    fill(command_line)
    by_text = opened(visitor, opened(visitor, "records?q=NO+number").link("2"))
    assert {each.text for each in by_text.links if "record?" in each.address} == {"R1", "R2"}
    by_file = opened(visitor, "records?q=f.csv")
    assert by_file.link("rejected") == "/t/acme/records/rejected?file=f.csv"
    assert "The state has no such record" in opened(visitor, "records?q=nothing").text


def test_data_is_shown_to_operators_on_request_and_noted(command_line: CommandLine, visitor: Visitor) -> None:
    """With what the mapping makes of it now. Viewers see neither the data nor a link to it."""
    fill(command_line)
    address = f"record?stream={STREAM}&key=R1"
    page = opened(visitor, address)
    assert "secret-canary" not in page.html
    shown = opened(visitor, page.link("Show personal data")).text
    assert "NAME secret-canary" in shown
    assert "/name secret-canary" in shown
    assert "/unitPrice 1.5" in shown
    (entry, *_) = command_line.run("audit", "--json").json
    assert (entry["person"], entry["subject"]) == ("ann", f"record {STREAM} R1")
    with visiting(command_line.config, role=Role.VIEWER) as viewer:
        page = opened(viewer, address)
        assert "secret-canary" not in page.html
        assert not [each for each in page.links if "show=data" in each.address]
        assert "secret-canary" not in viewer.html(f"/t/acme/{address}&show=data", 403)


def test_a_page_tells_what_a_record_looked_like_on_a_day(command_line: CommandLine, visitor: Visitor) -> None:
    """As its target had accepted it by the end of the day, until it was deleted."""
    facts = record("P1", status="delivered")
    operations = [
        intent(1, **facts, body=b'{"sku":"first"}', idempotency_key="a"),
        intent(1, **facts, operation="update", before={"sku": "first"}, after={"sku": "second"}, idempotency_key="b"),
        intent(1, **facts, operation="delete", before={"sku": "second"}, body=None, idempotency_key="c"),
    ]
    with closing(command_line.state()) as state, state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        tx.intents.add([structs.replace(each, status="sending") for each in operations], run_id=run, fence=1, at=AT)
        for days, each in enumerate(operations):
            (stored,) = [known for known in tx.intents.unsettled() if known.idempotency_key == each.idempotency_key]
            stored.status = "delivered"
            tx.intents.write_outcomes([stored], at=AT + timedelta(days=days))

    def on(day: str) -> str:
        text = opened(visitor, f"record?stream={STREAM}&key=P1&day={day}").text
        return text[text.index("What it looked like") : text.index("Data")]

    assert "Nothing of it was delivered by then" in on("2026-03-28")
    assert "/sku first" in on("2026-03-29")
    assert "/sku second" in on("2026-03-30")
    assert "It was deleted" in on("2026-04-30")
    assert "/sku: first -> second" in opened(visitor, f"record?stream={STREAM}&key=P1").text
    with visiting(command_line.config, role=Role.VIEWER) as viewer:
        assert "/sku first" not in opened(viewer, f"record?stream={STREAM}&key=P1&day=2026-03-29").text


def test_a_file_that_was_imported_twice_is_found(command_line: CommandLine, visitor: Visitor) -> None:
    """By its name, whatever the case, and by its content, also under another name."""
    with closing(command_line.state()) as state, state.begin() as tx:
        for number, (name, content) in enumerate([("A.csv", "aa"), ("A.csv", "bb"), ("B.csv", "bb"), ("C.csv", "cc")]):
            facts = FileFacts(name, content * 32, 10, AT, "2026")
            tx.intake.accept(f"wms.s{number}", "v1", [facts], at=AT + timedelta(days=number))
            tx.intake.finish_accepted_files(f"wms.s{number}", "v1")
    assert "A.csv was imported 2 times, with 2 different contents." in opened(visitor, "files?name=A.csv").text
    assert (
        "This content was imported 2 times, with the same content each time." in opened(visitor, "files?name=BBB").text
    )
    assert "C.csv was imported once." in opened(visitor, "files?name=C.csv").text
    assert "B.csv" in opened(visitor, opened(visitor, "files?name=a.csv").link("1 other import")).text
    assert "No stream has imported such a file" in opened(visitor, "files?name=D.csv").text


def test_what_waits_for_approval_names_its_records(command_line: CommandLine, visitor: Visitor) -> None:
    """As far as they are known: those that would be updated are known only by their content."""
    fill(command_line)
    hashes = [key_hashes([key])[key] for key in ("U0", "U1")]
    with closing(command_line.state()) as state, state.begin() as tx:
        tx.pending_approvals.request_approval(
            PendingApproval(STREAM, "delete product of wms on the platform", packed_key_hashes([*hashes, 7]), AT)
        )
        tx.pending_approvals.request_approval(
            PendingApproval("old.products", "delete product in old", packed_key_hashes([7]), AT)
        )
    page = opened(visitor, "approvals")
    assert "delete product of wms on the platform, 3 records" in page.text
    assert "U0 , U1 and 1 more" in page.text
    assert "Not listed, because the config does not have or use the stream: old.products" in page.text


def test_texts_of_others_are_shown_and_not_executed(command_line: CommandLine, visitor: Visitor) -> None:
    """In keys, names of files, messages, pointers and data, on each page, with signs for what is invisible."""
    key = key_text([HOSTILE + HIDDEN[1:]])
    facts = record(key, source=HOSTILE, message=HOSTILE + HIDDEN[1:], pointer=HOSTILE)
    raw = {"columns": ["SKU", HOSTILE], "rows": [["1", HOSTILE]], "lines": [2]}
    with closing(command_line.state()) as state, state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        tx.dead_letters.put([dead_letter(1, **(facts | {"raw": raw}))], run_id=run, at=AT)
        tx.waiting_records.put([waiting(1, waits_for=[], **record("2", source=HOSTILE))], run_id=run, at=AT)
        tx.intake.accept(STREAM, "v1", [FileFacts(HOSTILE, "aa", 1, AT, "2026")], at=AT)
        tx.pending_approvals.request_approval(
            PendingApproval(STREAM, HOSTILE, packed_key_hashes([facts["key_hash"]]), AT)
        )
    addresses = [
        *("records", "records/rejected", "records/waiting", "files", "approvals"),
        f"records/rejected?stream={STREAM}&reason=bad_value&by=file",
        *(f"{page}={quote(HOSTILE)}" for page in ("records?q", "records/rejected?text", "files?name")),
        f"record?stream={STREAM}&key={quote(key)}&show=data",
    ]
    for address in addresses:
        html = opened(visitor, address).html
        assert "<script>alert" not in html
        assert "<img" not in html
        assert "\u202e" not in html
    assert r"\u202e" in opened(visitor, "records/rejected").html


def test_addresses_of_nothing_are_refused(command_line: CommandLine, visitor: Visitor) -> None:
    """With a page that says why."""
    fill(command_line)
    wrong = [
        *("record", "record?key=%00", "files?before=x", "records?q=%00", "records/rejected?text=%00"),
        *(f"record?stream={STREAM}&key=R1&day={day}" for day in ("x", "9999-12-31")),
        *("records/rejected?reason=nope", "records/rejected?after=x", "records/rejected?since=x"),
    ]
    for address in wrong:
        assert "Bad Request" in visitor.html(f"/t/acme/{address}", 400)
    for address in ("record?key=nope", "records/nope", "records/waiting?group=1"):
        assert "Not Found" in visitor.html(f"/t/acme/{address}", 404)


def test_what_was_rejected_since_a_day_is_listed(command_line: CommandLine, visitor: Visitor) -> None:
    """That day included. Actions are about all records, so that none is offered for these."""
    fill(command_line)
    assert "2 chosen by the fields" in opened(visitor, f"records/rejected?since={AT:%Y-%m-%d}").text
    page = opened(visitor, f"records/rejected?since={AT + timedelta(days=1):%Y-%m-%d}")
    assert "There is no such record." in page.text
    assert not any("/do/" in each.address for each in page.links)


@pytest.mark.parametrize("key", ["50% of", "a/b c", "a%2Fb"])
def test_a_list_is_narrowed_to_a_key_as_in_the_source(command_line: CommandLine, visitor: Visitor, key: str) -> None:
    """Or as it is listed."""
    with closing(command_line.state()) as state, state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        known = "a%2Fb" if key == "a%2Fb" else key_text([key])
        tx.dead_letters.put([dead_letter(1, **record(known))], run_id=run, at=AT)
    assert "1 chosen by the fields" in opened(visitor, f"records/rejected?key={quote(key)}").text


def test_pages_are_there_although_the_config_is_wrong(command_line: CommandLine, visitor: Visitor) -> None:
    """They show what the state has, but no values: which of them are personal is not known."""
    fill(command_line)
    command_line.config.write_text(command_line.config.read_text().replace("settle_s: 0", "settle: 0"))
    assert "unknown key" in opened(visitor, "records").text
    assert "R1" in opened(visitor, "records/rejected").text
    page = opened(visitor, f"record?stream={STREAM}&key=R1&show=data")
    assert "bad_value: is no number" in page.text
    assert "secret-canary" not in page.html


@pytest.mark.parametrize("stream", ["products", "renamed"])
def test_each_listed_record_has_a_page(command_line: CommandLine, visitor: Visitor, stream: str) -> None:
    """Also while its stream is not in the config any more."""
    fill(command_line)
    config = command_line.config.read_text(encoding="utf-8")
    command_line.config.write_text(config.replace("      products:", f"      {stream}:"), encoding="utf-8")
    for state in RecordState:
        for link in opened(visitor, f"records/{state.option_value}").links:
            if "/record?" in link.address:
                assert f"Record {link.text.rpartition(':')[2]}" in opened(visitor, link.address).text


def test_a_record_that_is_not_known_yet_says_who_waits_for_it(command_line: CommandLine, visitor: Visitor) -> None:
    """The list of waiting records leads there, and its page leads to them."""
    parents = [{"resource": "product", "namespace": "wms", "key": "P9"}]
    with closing(command_line.state()) as state, state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        made = [waiting(n, waits_for=parents, **record(f"W{n:02}")) for n in range(60)]
        tx.waiting_records.put(made, run_id=run, at=AT)
    listed = opened(visitor, "records/waiting")
    page = opened(visitor, listed.link("product wms:P9"))
    assert "The state has no record P9 of product wms." in page.text
    named = {each.text for each in page.links if "/record?" in each.address}
    assert len(named) == 50
    assert named < {f"W{n:02}" for n in range(60)}
    assert page.link("All waiting records") == "/t/acme/records/waiting"
    assert "Not Found" in visitor.html("/t/acme/record?resource=product&namespace=wms&key=P8", 404)


@pytest.mark.parametrize("decision", ["delivered", "pending"])
def test_a_decision_of_a_person_can_be_reversed(command_line: CommandLine, visitor: Visitor, decision: str) -> None:
    """Its record leads to the action; one that the target itself has confirmed does not."""
    with closing(command_line.state()) as state, state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        made = [
            intent(1, status=decision, resolved_at=AT, **record("D1")),
            intent(2, status=decision, **record("D2")),
        ]
        tx.intents.add(made, run_id=run, fence=1, at=AT)
        tx.intents.write_outcomes(made, at=AT)
    assert "Reverse a decision" in opened(visitor, f"record?stream={STREAM}&key=D1").text
    assert "Reverse a decision" not in opened(visitor, f"record?stream={STREAM}&key=D2").text
