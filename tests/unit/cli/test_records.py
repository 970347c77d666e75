"""``crossdock records``: what it lists, changes and refuses."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

import pytest
from tests.report_page import AT, dead_letter, waiting
from tests.unit.cli.conftest import CommandLine
from tests.unit.state.samples import intent


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


def test_the_counts_of_a_report_are_what_is_listed(filled: CommandLine) -> None:
    """For each state there are as many records in the list as a run counts as open; pending ones say what follows."""
    stream = "wms.products"
    with closing(filled.state()) as state, state.begin() as tx:
        unsent = [intent(4, stream=stream), intent(5, stream=stream, status="sending", attempts=1, first_sent_at=AT)]
        tx.intents.add(unsent, run_id=1, fence=1, at=AT)
        tx.dead_letters.put([dead_letter(6, stream=stream, key="")], run_id=1, at=AT)
        counts = tx.open_records.counts([stream])[stream]
    listed = filled.run("records", "list", "--json").json
    states = Counter(item["state"].replace("-", "_") for item in listed)
    assert counts.as_json() == states == {"rejected": 2, "waiting": 1, "in_doubt": 1, "pending": 2}
    assert [item["why"] for item in listed if item["state"] == "pending"] == [
        "create is sent by the next run",
        "create is sent or looked up again by the next run",
    ]
    assert len(filled.run("records", "list", "--state", "pending", "--json").json) == 2


def test_data_is_shown_on_request_only(filled: CommandLine) -> None:
    """`--raw` includes the record's data."""
    assert "secret-canary" not in filled.run("records", "show", "wms.products", "K1").out
    assert "secret-canary" in filled.run("records", "show", "wms.products", "K1", "--raw").out
    missing = filled.run("records", "show", "wms.products", "K9")
    assert (missing.code, missing.out) == (2, "")


def test_records_are_resolved_and_dropped(filled: CommandLine) -> None:
    """What is settled or given up is no longer listed."""
    assert filled.run("records", "resolve", "wms.products", "K3", "--not-delivered", "--json").json == {"resolved": 1}
    assert filled.run("records", "drop", "wms.products").out == "dropped 2 records\n"
    (pending,) = filled.run("records", "list", "--json").json
    assert (pending["state"], pending["key"], pending["why"]) == ("pending", "K3", "create is sent by the next run")
    with closing(filled.state()) as state, state.begin() as tx:
        (sent,) = tx.intents.unsettled()
        sent.status = "delivered"
        tx.intents.move([sent], at=AT)
    assert filled.run("records", "list").out == "no record is open\n"
    assert "'crossdock records list' shows" in filled.run("records", "drop", "wms.products", "K1").err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["resolve", "--delivered"], "name a stream", id="no stream"),
        pytest.param(["resolve", "wms.products"], "give exactly one of", id="no result"),
        pytest.param(["resolve", "wms.products", "--delivered", "--not-delivered"], "give exactly one of", id="two"),
        pytest.param(
            ["drop", "wms.products", "--reason", "bad"], "unknown reason 'bad'; known: bad_value", id="reason"
        ),
    ],
)
def test_wrong_usage(filled: CommandLine, arguments: list[str], message: str) -> None:
    """It is refused with a sentence, and nothing is changed."""
    refused = filled.run("records", *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert message in refused.err
    assert len(filled.run("records", "list", "--json").json) == 3
