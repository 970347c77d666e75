"""``crossdock records``: what it lists, changes and refuses."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

import pytest
from tests.report_page import AT, dead_letter, waiting
from tests.unit.cli.conftest import CommandLine
from tests.unit.state.samples import SCOPE, binding, intent

from crossdock.delta.fingerprint import key_hashes
from crossdock.state import Scope

INVOICE = """\
        key: [NUMBER]
        group_by: [NUMBER]
        resource: invoice
        personal: [currency]
        map:
          customerId: CUSTNO
          currency: {const: EUR}
          items: {each: {productId: SKU, quantity: {from: QTY, as: decimal}, unitPrice: {from: PRICE, as: decimal}}}
"""


@pytest.fixture
def filled(command_line: CommandLine) -> CommandLine:
    """One record of each state, of the stream ``wms.products``."""
    stream = "wms.products"
    with closing(command_line.state()) as state, state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        tx.dead_letters.put([dead_letter(1, stream=stream)], run_id=run, at=AT)
        tx.waiting_records.put([waiting(2, stream=stream)], run_id=run, at=AT)
        doubtful = intent(3, stream=stream, status="in_doubt", attempts=2, first_sent_at=AT)
        tx.intents.add([doubtful], run_id=run, fence=1, at=AT)
    return command_line


def test_records_are_listed_with_reason_and_place(filled: CommandLine) -> None:
    """One row for each state, without data; a state can be selected, and an empty list is a sentence."""
    listed = filled.run("records", "list", "--json").json
    assert [(item["state"], item["key"]) for item in listed] == [
        ("rejected", "K1"),
        ("waiting", "W2"),
        ("in-doubt", "K3"),
    ]
    assert listed[1]["why"] == "waits for customer wms:C2"
    assert listed[2]["why"] == "create was sent 2 times without a clear answer"
    assert "secret-canary" not in filled.run("records", "list").out
    assert filled.run("records", "list", "--state", "dropped").out == "no record is dropped\n"


def test_a_list_that_is_cut_names_the_reasons(filled: CommandLine) -> None:
    """How many records of each state there are and how to see all; of the rejected ones how many for each reason."""
    stream = "wms.products"
    with closing(filled.state()) as state, state.begin() as tx:
        tx.dead_letters.put([dead_letter(number, stream=stream) for number in range(10, 14)], run_id=1, at=AT)
        tx.waiting_records.put([waiting(number, stream=stream) for number in (5, 6)], run_id=1, at=AT)
    whole = filled.run("records", "list")
    cut = filled.run("records", "list", "--limit", "2")
    assert "are shown" not in whole.out
    rejected = (
        "2 of 5 rejected records are shown: --limit 5 shows all\n"
        "  5 bad_value: crossdock records list --stream wms.products --reason bad_value\n"
    )
    assert rejected in cut.out
    every = filled.run("records", "list", "--limit", "2", "--all", "--json")
    assert every.err == f"{rejected}2 of 3 waiting records are shown: --limit 3 shows all\n"


def test_the_counts_of_a_report_are_what_is_listed(filled: CommandLine) -> None:
    """For each state there are as many records in the list as a run counts as open; pending ones say what follows."""
    stream = "wms.products"
    with closing(filled.state()) as state, state.begin() as tx:
        unsent = [intent(4, stream=stream), intent(5, stream=stream, status="sending", attempts=1, first_sent_at=AT)]
        tx.intents.add(unsent, run_id=1, fence=1, at=AT)
        tx.dead_letters.put([dead_letter(6, stream=stream, key="")], run_id=1, at=AT)
        bound = binding(7)
        tx.bindings.put(SCOPE, [bound], run_id=1, at=AT)
        tx.unverified.mark_bindings_and_resource(SCOPE, [bound])
        counts = tx.open_record_counts.by_stream([stream], {SCOPE: stream})[stream]
    listed = filled.run("records", "list", "--json").json
    states = Counter(item["state"].replace("-", "_") for item in listed)
    expected = {"rejected": 2, "waiting": 1, "in_doubt": 1, "pending": 2, "unverified": 1}
    assert {name: number for name, number in counts.as_json().items() if number} == states == expected
    assert [item["why"] for item in listed if item["state"] == "pending"] == [
        "the next sync sends the create",
        "the next sync sends the create again, or looks it up",
    ]
    assert len(filled.run("records", "list", "--state", "pending", "--json").json) == 2


def test_data_is_shown_on_request_only(filled: CommandLine) -> None:
    """`--raw` includes the record's data."""
    assert "secret-canary" not in filled.run("records", "show", "wms.products", "K1").out
    assert "secret-canary" in filled.run("records", "show", "wms.products", "K1", "--raw").out
    missing = filled.run("records", "show", "wms.products", "K9")
    assert (missing.code, missing.out) == (2, "")


def test_a_record_whose_answer_is_not_known_is_not_dropped(command_line: CommandLine) -> None:
    """A run was killed before the answer: it is listed as pending, and the next sync finds out what became of it."""
    with closing(command_line.state()) as state, state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        sent = intent(3, stream="wms.products", status="sending", attempts=1, first_sent_at=AT)
        tx.intents.add([sent], run_id=run, fence=1, at=AT)
    assert [each["key"] for each in command_line.run("records", "list", "--state", "pending", "--json").json] == ["K3"]
    dropped = command_line.run("records", "drop", "wms.products", "K3")
    assert dropped.code == 2
    assert "the create of wms.products K3 was sent, and its answer is not known" in dropped.err
    assert "run a sync" in dropped.err


def test_records_are_resolved_and_dropped(filled: CommandLine) -> None:
    """What is settled or given up is no longer listed; what is dropped is mentioned, and listed on request."""
    assert filled.run("records", "resolve", "wms.products", "K3", "--not-delivered", "--json").json == {"resolved": 1}
    assert filled.run("records", "drop", "wms.products", "--yes").out == "dropped 2 records\n"
    listed = filled.run("records", "list", "--state", "waiting").out
    assert listed == "no record is waiting\n2 records dropped: crossdock records list --state dropped\n"
    dropped = filled.run("records", "list", "--state", "dropped", "--json").json
    assert sorted((item["state"], item["key"]) for item in dropped) == [("dropped", "K1"), ("dropped", "W2")]
    assert "'crossdock records list' shows" in filled.run("records", "drop", "wms.products", "K1").err


def test_a_whole_stream_is_dropped_only_after_a_confirmation(filled: CommandLine) -> None:
    """Without a terminal the number is shown and nothing is changed; one record is dropped without a question."""
    refused = filled.run("records", "drop", "wms.products")
    assert (refused.code, refused.out) == (2, "")
    assert "would drop 2 records of wms.products (1 rejected, 1 waiting)" in refused.err
    assert "--yes" in refused.err
    narrowed = filled.run("records", "drop", "wms.products", "--state", "rejected")
    assert "would drop 1 record of wms.products (1 rejected)" in narrowed.err
    assert len(filled.run("records", "list", "--json").json) == 3
    assert filled.run("records", "drop", "wms.products", "K1").code == 0


@pytest.mark.parametrize("options", [("K3",), ("K3", "--yes"), ("--state", "in-doubt", "--yes")])
def test_what_is_in_doubt_is_not_dropped(filled: CommandLine, options: tuple[str, ...]) -> None:
    """It may have been delivered: its next version would be delivered beside it. The message says how to settle it."""
    refused = filled.run("records", "drop", "wms.products", *options)
    assert (refused.code, refused.out) == (2, "")
    assert "K3 is in doubt: dropped now, a later version could be delivered beside it" in refused.err
    assert "settle it first: crossdock records resolve wms.products K3" in refused.err
    assert filled.run("records", "drop", "wms.products", "--yes").out == (
        "dropped 2 records; 1 in doubt not dropped: crossdock records resolve wms.products\n"
    )
    assert [each["state"] for each in filled.run("records", "list", "--json").json] == ["in-doubt"]


@pytest.fixture
def two_streams(filled: CommandLine) -> CommandLine:
    """A rejected record K1 also of ``wms.bins``, and one of another connection whose name begins alike."""
    facts = "{mode: append, files: B, key: [C], resource: warehouse_bin, map: {code: C, warehouse: {const: W}}}"
    bins = f"      bins: {facts}\n"
    filled.config.write_text(filled.config.read_text() + bins)
    with closing(filled.state()) as state, state.begin() as tx:
        for stream in ("wms.bins", "wms2.bins", "WMS.bins"):
            tx.dead_letters.put([dead_letter(1, stream=stream)], run_id=1, at=AT)
    return filled


def test_a_connection_stands_for_its_streams(two_streams: CommandLine) -> None:
    """List, show and drop mean the records of all its streams, and no other connection that is called alike."""
    run = two_streams.run
    listed = run("records", "list", "--stream", "wms", "--json").json
    assert [(item["state"], item["stream"]) for item in listed] == [
        ("rejected", "wms.bins"), ("rejected", "wms.products"),
        ("waiting", "wms.products"), ("in-doubt", "wms.products"),
    ]  # fmt: skip
    shown = run("records", "show", "wms", "K1", "--json").json
    assert [item["stream"] for item in shown] == ["wms.bins", "wms.products"]
    assert run("records", "drop", "wms", "--yes").out.startswith("dropped 3 records; 1 in doubt not dropped")
    assert run("records", "resolve", "wms", "--not-delivered", "--yes", "--json").json == {"resolved": 1}
    left = run("records", "list", "--state", "rejected", "--json").json
    assert [item["stream"] for item in left] == ["WMS.bins", "wms2.bins"]


@pytest.mark.parametrize("decision", [["drop"], ["resolve", "--not-delivered"], ["reopen"]])
def test_a_decision_about_one_record_names_its_stream(two_streams: CommandLine, decision: list[str]) -> None:
    """Records of several streams may have the key, so that a connection with several streams is refused with them."""
    refused = two_streams.run("records", decision[0], "wms", "K1", *decision[1:])
    assert (refused.code, refused.out) == (2, "")
    assert "'wms' is a connection: name one of its streams" in refused.err
    assert "wms.bins, wms.products" in refused.err


def test_a_connection_stands_for_its_only_stream_in_a_decision(filled: CommandLine) -> None:
    """With one stream there is nothing to choose."""
    assert filled.run("records", "resolve", "wms", "K3", "--not-delivered", "--json").json == {"resolved": 1}
    assert "the last operation on this record cannot be reopened" in filled.run("records", "reopen", "wms", "K1").err
    assert filled.run("records", "drop", "wms", "K1").code == 0


def test_a_pending_record_is_listed(filled: CommandLine) -> None:
    """An operation that the next sync sends is not settled: it is listed, and not said to be in doubt."""
    filled.run("records", "resolve", "wms.products", "K3", "--not-delivered")
    (item,) = filled.run("records", "list", "--state", "pending", "--json").json
    assert (item["key"], item["why"]) == ("K3", "the next sync sends the create")
    assert filled.run("records", "list").out.endswith("\n1 rejected, 1 waiting, 1 pending\n")


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        pytest.param(["--stream", "wms.products"], ["K1", "W2", "K3"], id="stream"),
        pytest.param(["--stream", "wms.people"], ["K9"], id="another stream"),
        pytest.param(["--key", "K9"], ["K9"], id="key"),
        pytest.param(["--reason", "bad_value"], ["K9", "K1"], id="reason"),
        pytest.param(["--reason", "bad_value", "--stream", "wms.people"], ["K9"], id="both"),
        pytest.param(["--reason", "conflict"], [], id="no such"),
    ],
)
def test_records_are_selected(filled: CommandLine, options: list[str], keys: list[str]) -> None:
    """By stream, key and reason, all of which must match; only rejected and dropped records have a reason."""
    with closing(filled.state()) as state, state.begin() as tx:
        tx.dead_letters.put([dead_letter(9, stream="wms.people")], run_id=1, at=AT)
    assert [item["key"] for item in filled.run("records", "list", *options, "--json").json] == keys
    shown = filled.run("records", "list", *options).out
    assert all(key in shown for key in keys)
    assert keys or shown == "no such record is rejected, waiting, in doubt, overdue, pending or unverified\n"


def test_records_that_wait_for_the_same_record_are_one_line(filled: CommandLine) -> None:
    """Also those that wait for it through others; the line says that it is rejected, and `--all` lists each."""
    parents = {20: "K1", **{number: f"K{number - 1}" for number in range(21, 65)}}
    records = [
        waiting(
            number,
            stream="wms.products",
            key=f"K{number}",
            key_hash=key_hashes([f"K{number}"])[f"K{number}"],
            waits_for=[{"resource": "product", "namespace": "wms", "key": parent}],
        )
        for number, parent in parents.items()
    ]
    root = dead_letter(1, stream="wms.products", key_hash=key_hashes(["K1"])["K1"])
    with closing(filled.state()) as state, state.begin() as tx:
        tx.waiting_records.put(records, run_id=1, at=AT)
        tx.dead_letters.put([root], run_id=1, at=AT)
    shown = " ".join(filled.run("records", "list", "--state", "waiting").out.split())
    assert "K20 and 44 more waits for product" in shown
    assert "wms:K1, which is" in shown
    assert shown.endswith("46 waiting")
    assert len(filled.run("records", "list", "--state", "waiting", "--all").out.splitlines()) > 46
    assert len(filled.run("records", "list", "--state", "waiting", "--json").json) == 46


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["resolve", "--delivered"], "name a stream", id="no stream"),
        pytest.param(["resolve", "wms.products"], "give exactly one of", id="no result"),
        pytest.param(["resolve", "wms.products", "K9", "--delivered"], "no such record is in doubt", id="none"),
        pytest.param(["resolve", "wms.products", "--delivered"], "give the record's id", id="no id"),
        pytest.param(["resolve", "wms.products", "--not-delivered"], "would record 1 operation", id="all"),
        pytest.param(["resolve", "wms.products", "K3", "--delivered-as", "."], "an id must have", id="form"),
        pytest.param(["reopen", "wms.products", "K1"], "cannot be reopened", id="reopen"),
        pytest.param(["reopen", "wms.things", "K1"], "no stream or connection is called", id="unknown stream"),
        pytest.param(["list", "--stream", "wms.product"], "'wms.product'; did you mean 'wms.products'?", id="spelling"),
        pytest.param(["resolve", "wms.products", "--delivered", "--not-delivered"], "give exactly one of", id="two"),
        pytest.param(
            ["drop", "wms.products", "--reason", "bad"], "unknown reason 'bad'; known: ambiguous_match, ", id="reason"
        ),
    ],
)
def test_wrong_usage(filled: CommandLine, arguments: list[str], message: str) -> None:
    """It is refused with a sentence, and nothing is changed."""
    refused = filled.run("records", *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert message in refused.err
    assert len(filled.run("records", "list", "--json").json) == 3


def test_an_id_is_looked_up(filled: CommandLine) -> None:
    """If the platform cannot be reached nothing is recorded, and the message says how to do without."""
    failed = filled.run("records", "resolve", "wms.products", "K3", "--delivered-as", "prd_7", "--yes")
    assert (failed.code, failed.out) == (3, "")
    assert "add --no-lookup" in failed.err
    asked = filled.run("records", "resolve", "wms.products", "K3", "--delivered-as", "prd_7", "--no-lookup")
    assert (asked.code, asked.out) == (2, "")
    assert "would record that the create of wms.products K3 was delivered as prd_7" in asked.err
    assert len(filled.run("records", "list", "--json").json) == 3


def test_a_decision_can_be_reversed(filled: CommandLine) -> None:
    """The record is in doubt again, without an id, and can be decided about again."""
    record = ("wms.products", "K3")
    key_hash = key_hashes(["K3"])["K3"]
    with closing(filled.state()) as state, state.begin() as tx:
        (doubtful,) = tx.intents.unsettled()
        doubtful.status = "dropped"
        tx.intents.write_outcomes([doubtful], at=AT)
        again = intent(3, key_hash=key_hash, idempotency_key="again", status="in_doubt", attempts=2, first_sent_at=AT)
        tx.intents.add([again], run_id=1, fence=1, at=AT)
    for decision in (["--delivered-as", "prd_7", "--no-lookup", "--yes"], ["--not-delivered"]):
        assert filled.run("records", "resolve", *record, *decision).code == 0
        assert filled.run("records", "list", "--state", "in-doubt", "--json").json == []
        assert (
            filled.run("records", "reopen", *record).out
            == "reopened: the create of wms.products K3 is in doubt again\n"
        )
        (item,) = filled.run("records", "list", "--state", "in-doubt", "--json").json
        assert item["key"] == "K3"
    with closing(filled.state()) as state, state.begin_read_only() as tx:
        assert tx.bindings.counts_by_resource() == {}
        (left,) = tx.intents.unsettled()
    assert (left.target_id, left.first_sent_at) == (None, left.first_sent_at)
    assert left.first_sent_at is not None
    assert filled.run("records", "reopen", *record).code == 2


def test_the_difference_of_a_changed_invoice_is_shown(command_line: CommandLine) -> None:
    """Member by member and item by item; personal members only with --raw."""
    config = command_line.config.read_text().partition("        key:")[0]
    command_line.config.write_text(config + INVOICE, encoding="utf-8")
    before = {"customerId": "c1", "currency": "EUR", "items": [{"productId": "p1", "quantity": 3}]}
    after = {"customerId": "c1", "currency": "USD", "items": [{"productId": "p1", "quantity": 5}, {"productId": "p2"}]}
    changed = dead_letter(1, stream="wms.products", code="changed_after_delivery", mapped=after)
    scope = Scope("platform", "invoice", "wms")
    with closing(command_line.state()) as state, state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        tx.bindings.put(scope, [binding(1, payload=before)], run_id=run, at=AT)
        tx.dead_letters.put([changed], run_id=run, at=AT)
    shown = command_line.run("records", "show", "wms.products", "K1").out
    assert shown.endswith(
        "difference   delivered -> now\n"
        "  /currency: (personal) -> (personal)\n"
        "  /items/0/quantity: 3 -> 5\n"
        "  /items/1: (none) -> productId=p2\n"
    )
    assert "/currency: EUR -> USD\n" in command_line.run("records", "show", "wms.products", "K1", "--raw").out


def test_a_pending_record_of_a_migration_is_sent_by_its_next_load(filled: CommandLine) -> None:
    """A sync of it is not what an operator would run."""
    filled.run("records", "resolve", "wms.products", "K3", "--not-delivered")
    with closing(filled.state()) as state, state.begin() as tx:
        tx.migrations.add_run(tx.migrations.begin("acme", at=AT, by="ann"), 1, "load", "products")
    (item,) = filled.run("records", "list", "--state", "pending", "--json").json
    assert item["why"] == "the next load sends the create"


def test_times_are_shown_as_everywhere(filled: CommandLine) -> None:
    """As `2026-03-29 01:30:00Z`, and none where there is none; JSON has its own form."""
    shown = filled.run("records", "show", "wms.products", "K1").out
    assert "since        2026-03-29 01:30:00Z\n" in shown
    assert filled.run("records", "show", "wms.products", "K1", "--json").json[0]["since"] == "2026-03-29T01:30:00Z"
    filled.run("records", "resolve", "wms.products", "K3", "--not-delivered")
    assert "null" not in filled.run("records", "show", "wms.products", "K3").out
