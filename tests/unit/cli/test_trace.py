"""``crossdock trace``: a record is found by any of its names."""

from __future__ import annotations

from contextlib import closing

import pytest
from msgspec import structs
from tests.report_page import AT, dead_letter
from tests.unit.cli.conftest import CommandLine

from crossdock.delta.fingerprint import key_hashes
from crossdock.state import DeadLetter


def letter(number: int = 7, *, stream: str = "wms.products") -> DeadLetter:
    key = f"K{number}"
    return dead_letter(number, stream=stream, key_hash=key_hashes([key])[key])


@pytest.mark.parametrize("name", ["K7", "wms:K7", "f.csv:7", "exports/f.csv:7"])
def test_a_record_is_found_by_key_and_place(command_line: CommandLine, name: str) -> None:
    """Its history is shown, without its data."""
    with closing(command_line.state()) as state, state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        tx.dead_letters.put([letter()], run_id=run, at=AT)
    shown = command_line.run("trace", name).out
    assert shown.startswith("record K7 of wms.products, product\n  rejected 2026-03-29 01:30:00Z")
    assert "bad_value at f.csv:7 PRICE: is no number\n" in shown
    assert "secret-canary" not in shown
    assert len(command_line.run("trace", name, "--json").json[0]["rejected"]) == 1


def test_an_unknown_name(command_line: CommandLine) -> None:
    """The message says what to give."""
    missing = command_line.run("trace", "K8")
    assert (missing.code, missing.out) == (2, "")
    assert "the state has no record 'K8'" in missing.err


def test_a_record_without_fingerprint(command_line: CommandLine) -> None:
    """Where no row was read, as for a removal, JSON has a null."""
    rejected = letter()
    removal = structs.replace(rejected, identity=rejected.identity._replace(fingerprint=None), step="remove")
    with closing(command_line.state()) as state, state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        tx.dead_letters.put([removal], run_id=run, at=AT)
    (row,) = command_line.run("trace", "K7", "--json").json[0]["rejected"]
    assert row["record_fp"] is None
    assert row["key_hash"] == f"{rejected.identity.key_hash:032x}"


def test_records_with_one_key_are_shown_apart(command_line: CommandLine) -> None:
    """Each names its stream, and one can be selected; for another stream the error names those that have the key."""
    with closing(command_line.state()) as state, state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        tx.dead_letters.put([letter(), letter(stream="old.people")], run_id=run, at=AT)
    shown = command_line.run("trace", "K7").out.splitlines()
    assert [line for line in shown if line.startswith("record")] == [
        "record K7 of old.people",
        "record K7 of wms.products, product",
    ]
    (history,) = command_line.run("trace", "K7", "--stream", "wms.products", "--json").json
    facts = {name: history[name] for name in ("streams", "resource", "namespace", "key")}
    assert facts == {"streams": ["wms.products"], "resource": "product", "namespace": "wms", "key": "K7"}
    wrong = command_line.run("trace", "K7", "--stream", "wms.product")
    assert (wrong.code, wrong.out) == (2, "")
    assert "no record 'K7' of wms.product [record_unknown]\n  it has one of old.people, wms.products" in wrong.err
