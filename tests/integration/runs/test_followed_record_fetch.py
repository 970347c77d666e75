"""Records that are fetched until they are final."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chaos.mappings import Bench, open_bench
from tests.integration.runs.silent_shop import Following, held, night

from crossdock import Filter
from crossdock.mapping.stream_declaration import OpenUntil
from crossdock.state import parse_database_url


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder: Path = tmp_path_factory.mktemp("phases")
    with open_bench(folder, parse_database_url("sqlite:///state.db", folder)) as opened:
        yield opened


def test_a_record_is_fetched_until_it_is_final(bench: Bench) -> None:
    """An order that is not paid is read in each run, whatever the cursor says; one that is paid is not."""
    shop = Following()
    bench.begin([shop])
    shop.put("a", name="a", state="open")
    shop.put("b", name="b", state="paid")
    shop.put("c", name="c")
    night(bench)
    assert shop.fetched == []
    shop.put("a", name="A", state="paid", silently=True)
    assert night(bench).tallies["b.customers"].records["updated"] == 1
    assert held(bench)["a"] == "A"
    shop.fetched.clear()
    night(bench)
    assert shop.fetched == []  # c is among what changed last, which the cursor asks for again
    shop.put("d", name="d", state="paid")
    night(bench)
    night(bench)
    assert shop.fetched[-1] == ["c"]


def test_a_record_that_a_filter_leaves_out_is_followed_too(bench: Bench) -> None:
    """An order that is skipped until it is paid arrives when it is."""
    shop = Following()
    shop.skip = {"unpaid": Filter.model_validate({"field": "state", "equals": "open"})}
    bench.begin([shop])
    shop.put("a", name="a", state="open")
    shop.put("b", name="b", state="paid")
    assert night(bench).tallies["b.customers"].records["created"] == 1
    shop.put("a", state="paid", silently=True)
    assert night(bench).tallies["b.customers"].records["created"] == 1


def test_a_record_that_the_source_does_not_have_any_more_is_not_asked_for_for_ever(bench: Bench) -> None:
    """After three runs in succession it is left, and the report names it."""
    shop = Following()
    bench.begin([shop])
    shop.put("a", name="a", state="open")
    shop.put("b", name="b", state="paid")
    night(bench)
    del shop.items["a"]
    notes = [night(bench).notes.get("b.customers", []) for _ in range(4)]
    assert [len(each) for each in notes] == [0, 0, 1, 0]
    assert "did not have 1 record, which will not be fetched again: a" in notes[2][0]


def test_one_record_that_cannot_be_fetched_does_not_keep_the_others_from_it(bench: Bench) -> None:
    """The others are delivered, the failure is an error of the stream, and the next run asks again."""
    shop = Following()
    bench.begin([shop])
    for key in "abcde":
        shop.put(key, name=key, state="open")
    shop.put("z", name="z", state="paid")
    night(bench)
    for key in "abcde":
        shop.put(key, name=key.upper(), state="paid", silently=True)
    shop.broken = {"a"}
    report = night(bench)
    assert (report.exit_code, report.tallies["b.customers"].records["updated"]) == (3, 4)
    shop.broken = set()
    report = night(bench)
    assert (report.exit_code, report.tallies["b.customers"].records["updated"]) == (0, 1)


def test_a_run_fetches_a_bounded_number_in_turn(bench: Bench) -> None:
    """With more open records than ``at_most``, those come first that were read longest ago."""
    shop = Following()
    shop.open_until = OpenUntil(field="state", in_=["paid"], at_most=2)
    bench.begin([shop])
    for key in "abcde":
        shop.put(key, name=key, state="open")
    shop.put("z", name="z", state="paid")
    night(bench)
    shop.fetched.clear()
    reports = [night(bench) for _ in range(3)]
    fetched = shop.fetched[1::2]  # a plan fetches them, too
    assert [len(each) for each in fetched] == [2, 2, 2]
    assert {key for each in fetched for key in each} == set("abcde")
    assert "5 records are not final, and 2 of them are fetched" in reports[0].notes["b.customers"][0]
