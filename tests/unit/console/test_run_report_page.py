"""The page of a run: content, escaping and size limits."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.report_page import (
    AT,
    HIDDEN,
    HIDDEN_SHOWN,
    HOSTILE,
    Page,
    dead_letter,
    finish,
    multiplied,
    sqlite_state,
    start,
    waiting,
)
from tests.unit.state.samples import intent

from crossdock.console import page_rendering, run_and_fleet_report
from crossdock.state import FileFacts, RunResult, State, Transaction
from crossdock.values.raw_rows_and_records import REASONS
from crossdock.values.run_progress_and_messages import RunMessage

MORNING = AT + timedelta(hours=5)
SHOWN: dict[str, Any] = {"at": MORNING, "tenant": "acme", "config": Path("/home/someone/acme.yaml")}
TIMINGS = {
    "steps": [["reading wms.invoices", 0, 600_000], [f"fetching {HOSTILE}", 600_000, 3_000_000]],
    "samples": [[600_000, 2_000], [690_000, 0], [3_600_000, 1_999]],
}


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[State]:
    with sqlite_state(tmp_path) as state:
        yield state


def report(tx: Transaction, run_id: int, **more: Any) -> Page:
    """The page of a run; it shows no record's data."""
    run = tx.runs.get(run_id)
    assert run is not None
    text = run_and_fleet_report.render_run_report_file(tx, run, **SHOWN, **more)
    assert "secret-canary" not in text
    return Page(text)


def test_a_page_describes_a_run(kept: State) -> None:
    """Head, tally, and everything that was not delivered, each with its place."""
    unsettled = intent(7, status="in_doubt", attempts=2, first_sent_at=AT, source="g.csv", line=70)
    with kept.begin() as tx:
        run = start(tx)
        tx.dead_letters.put(
            [dead_letter(1), dead_letter(2, code="conflict", pointer=None), dead_letter(3, key="")], run_id=run, at=AT
        )
        tx.waiting_records.put([waiting(4)], run_id=run, at=AT)
        tx.intents.add([unsettled, intent(8)], run_id=run, fence=1, at=AT)
        finish(tx, run, error="f.csv: is short\n  ask for it anew", created=1200, rejected=3, carried_on=2)
        page = report(tx, run)
    for fact in (
        "Run 1, 2026-03-29 incomplete",
        "Tenant acme, config acme.yaml, started manually.",
        "2026-03-29 01:30:00Z",
        "2026-03-29 02:30:00Z",
        "1 h",
        "1,234 (5 throttled)",
        "Error: f.csv: is short",
        "The tally balances.",
        "as of 2026-03-29 06:30:00Z",
        "1 operation, sent by the next run.",
        "open3 rejected, 1 waiting",
    ):
        assert fact in page.text, fact
    assert page.under("stream", "read", "unchanged") == [["wms.invoices", "1,205", "0", "1,200", "3", "2"]]
    log = "All errors, warnings and notes (1)"
    assert page.summaries == ["bad_value 2 records", "conflict 1 record", "Longest first", "Oldest first", log]
    assert page.under("level", "stream") == [["error", "", "f.csv: is short  ask for it anew"]]
    assert page.under("stream", "key", "stage") == [
        ["wms.invoices", "K1", "mapping", "PRICE: is no number", "f.csv", "1", "1"],
        ["wms.invoices", "(none)", "mapping", "PRICE: is no number", "f.csv", "3", "1"],
        ["wms.invoices", "K2", "mapping", "is no number", "f.csv", "2", "1"],
    ]
    since = "2026-03-29 01:30:00Z"
    assert page.under("stream", "key", "waits for") == [["wms.invoices", "W4", "customer wms:C4", "f.csv", "4", since]]
    assert page.under("stream", "key", "operation") == [["wms.products", "K7", "create", "2", since, "g.csv", "70"]]


def test_a_run_that_went_well_has_nothing_to_list(kept: State) -> None:
    """Without rejected, waiting or in-doubt records the page says so and has no lists."""
    with kept.begin() as tx:
        run = start(tx)
        finish(tx, run, created=3)
        page = report(tx, run)
    assert "Nothing needs attention." in page.text
    assert "Rejected" not in page.text.removesuffix(page.text.partition("The tally balances.")[2])
    assert not page.summaries
    assert [table[0] for table in page.tables] == [
        ["stream", "read", "in records"],
        ["stream", "read", "unchanged", "created"],
        ["came in", "rows", "became", "rows"],
        ["came in", "records", "became", "records"],
    ]


def test_a_run_that_was_killed_has_a_page(kept: State) -> None:
    """A run without end and tally is described as far as it is known."""
    with kept.begin() as tx:
        page = report(tx, start(tx))
    assert "incomplete" in page.text
    assert "not yet" in page.text
    assert "This run has no tally." in page.text


def test_a_tally_that_does_not_balance_is_reported(kept: State) -> None:
    """The page says so as clearly as the terminal."""
    with kept.begin() as tx:
        run = start(tx)
        tally = finish(tx, run, created=3).tally
        assert tally is not None
        tally["wms.invoices"]["balanced"] = False
        tx.runs.finish(run, RunResult("failed", tally=tally), at=AT)
        page = report(tx, run)
    assert "THE TALLY DOES NOT BALANCE" in page.text
    assert "balances." not in page.text


def test_of_each_reason_the_first_records_are_listed(kept: State) -> None:
    """The others are counted, with the command that lists them; a long list is folded, a short one open."""
    many = [dead_letter(number) for number in range(1, run_and_fleet_report.LISTED + 12)]
    with kept.begin() as tx:
        run = start(tx)
        tx.dead_letters.put([*many, dead_letter(9_001, code="conflict")], run_id=run, at=AT)
        finish(tx, run, rejected=len(many) + 1)
        text = run_and_fleet_report.render_run_report_file(tx, finish(tx, run), **SHOWN)
    page = Page(text)
    listed = [line[1] for line in page.under("stream", "key", "stage")]
    assert listed == [*(f"K{number}" for number in range(1, run_and_fleet_report.LISTED + 1)), "K9001"]
    assert f"11 more: crossdock records list --state rejected --limit {len(many)}" in page.text
    assert re.findall("<details[^>]*>", text) == ["<details>", "<details open>"]


def test_data_is_shown_as_text(kept: State) -> None:
    """Whatever keys, messages, files, errors and reasons contain, the page has the same tags and shows the text."""
    pages: dict[str, Page] = {}
    for evil, shown in (("plain", "plain"), (HOSTILE, HOSTILE), (HIDDEN, HIDDEN_SHOWN)):
        with kept.begin() as tx:
            run = start(tx)
            changes = {"key": evil, "pointer": evil, "message": evil, "source": evil, "stream": evil, "code": evil}
            tx.dead_letters.put([dead_letter(1, **changes)], run_id=run, at=AT)
            parent = {"resource": evil, "namespace": evil, "key": evil}
            tx.waiting_records.put(
                [waiting(1, key=evil, source=evil, stream=evil, waits_for=[parent])], run_id=run, at=AT
            )
            unsettled = intent(run, key=evil, source=evil, stream=evil, status="in_doubt")
            tx.intents.add([unsettled], run_id=run, fence=1, at=AT)
            finish(tx, run, error=evil, rejected=1)
            page = pages[evil] = report(tx, run)
        assert f"Error: {shown}" in page.text
        assert f"{shown} 1 record" in page.summaries
        refused = [shown, shown, "mapping", f"{shown}: {shown}", shown]
        assert refused in [line[:5] for line in page.under("stream", "key", "stage")]
        waits = [shown, shown, f"{shown} {shown}:{shown}", shown]
        assert waits in [line[:4] for line in page.under("stream", "key", "waits for")]
        assert [shown, shown, "create"] in [line[:3] for line in page.under("stream", "key", "operation")]
    compared = {"svg", "figure", "figcaption", "rect", "desc"}  # the later ones are compared with the runs before
    for page in pages.values():
        assert page.tags - compared == pages["plain"].tags
    assert (pages[HOSTILE].tags, pages[HOSTILE].names) == (pages[HIDDEN].tags, pages[HIDDEN].names)


def test_a_page_is_self_contained(kept: State) -> None:
    """No script, no address, and a policy that forbids both at the top."""
    with kept.begin() as tx:
        run = start(tx)
        tx.dead_letters.put([dead_letter(1)], run_id=run, at=AT)
        text = run_and_fleet_report.render_run_report_file(tx, finish(tx, run, rejected=1, timings=TIMINGS), **SHOWN)
    page = Page(text)
    assert not page.tags & {"script", "img", "link", "iframe", "object", "form", "base", "a"}
    assert not page.names & {"src", "href", "style"}
    assert not any(name.startswith("on") for name in page.names)
    style = text.partition("<style>")[2].partition("</style>")[0]
    assert len(style) > 500
    assert not re.search(r"url\(|@import|//|image-set", style)
    head = text.partition("<title>")[0]
    assert "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'" in head


@pytest.mark.nightly
def test_no_page_is_larger_than_it_may_be(kept: State) -> None:
    """With the largest cells in all lists it stays below 5 MB; what is left out is counted."""
    huge = "&" * 4_000
    with kept.begin() as tx:
        run = start(tx)
        for place, code in enumerate(sorted(REASONS)):
            numbers = range(1_000 * place, 1_000 * place + run_and_fleet_report.LISTED)
            dead_letters = [dead_letter(n, code=code, key=huge, message=huge, source=huge, raw={}) for n in numbers]
            tx.dead_letters.put(dead_letters, run_id=run, at=AT)
        parents = [{"resource": "customer", "namespace": "wms", "key": huge}]
        listed = range(1, run_and_fleet_report.LISTED + 1)
        tx.waiting_records.put(
            [waiting(n, key=huge, waits_for=parents, source=huge) for n in listed], run_id=run, at=AT
        )
        unsettled = [intent(n, key=huge, source=huge, status="in_doubt") for n in listed]
        tx.intents.add(unsettled, run_id=run, fence=1, at=AT)
        finish(tx, run, error=huge * 20, rejected=1)
        text = run_and_fleet_report.render_run_report_file(tx, finish(tx, run), **SHOWN)
    assert 4_000_000 < len(text.encode()) < 5_000_000
    page = Page(text)
    hidden = [int(number) for number in re.findall(r"(\d+) more: crossdock records list", page.text)]
    lists = [table for table in page.tables if table[0][:2] == ["stream", "key"]]
    assert {line[1] for table in lists for line in table[1:]} == {"&" * page_rendering.MAX_TEXT + "…"}
    assert len(lists) == len(REASONS) + 2
    assert sum(hidden) + sum(len(table) - 1 for table in lists) == len(lists) * run_and_fleet_report.LISTED


def test_a_hundred_thousand_dead_letters_are_counted_and_not_loaded(kept: State, tmp_path: Path) -> None:
    """Memory depends on the page, not on the number of records."""
    with kept.begin() as tx:
        run = start(tx)
        tx.dead_letters.put([dead_letter(1)], run_id=run, at=AT)
        finish(tx, run, rejected=100_001)
    multiplied(tmp_path / "state.db", 100_000)
    with kept.begin() as tx:
        found = tx.runs.get(run)
        assert found is not None
        tracemalloc.start()
        try:
            text = run_and_fleet_report.render_run_report_file(tx, found, **SHOWN)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    page = Page(text)
    assert page.summaries == ["bad_value 33,334 records", "conflict 33,334 records", "rejected 33,333 records"]
    assert len(page.under("stream", "key", "stage")) == 3 * run_and_fleet_report.LISTED
    assert len(text.encode()) < 5_000_000
    assert peak < 5_000_000


# ---- timings


def test_a_page_shows_timings(kept: State) -> None:
    """The steps in their order with their share, file names as text, and the allowance in words."""
    with kept.begin() as tx:
        run = start(tx)
        finish(tx, run, created=1, timings=TIMINGS)
        page = report(tx, run)
    assert page.under("step", "duration") == [
        ["reading wms.invoices", "10 min 0 s", "17 %", "0.0 s", ""],
        [f"fetching {HOSTILE}", "50 min 0 s", "83 %", "10 min 0 s", ""],
    ]
    assert "Lowest 0 tokens, after 11 min 30 s; highest 2,000; never below a quarter of that." in page.text
    assert "2,000 tokens" in page.text
    assert all(mark in page.text for mark in ("15 min 0 s", "30 min 0 s", "45 min 0 s", "1 h"))


def test_a_page_shows_the_requests_of_each_connection(kept: State) -> None:
    """How many there were, how many were throttled, and how long the rate limit made the run wait."""
    apis = {"apis": {"shop": {"requests": 3_640, "throttled": 2, "waited_ms": 90_000}}}
    with kept.begin() as tx:
        run = start(tx)
        finish(tx, run, created=1, timings=TIMINGS | apis)
        page = report(tx, run)
    assert "APIs read" in page.text
    assert all(cell in page.text for cell in ("shop", "3,640", "1 min 30 s"))


def test_a_page_without_timings(kept: State) -> None:
    """A killed run has neither steps nor a plot; one that sent nothing has steps."""
    with kept.begin() as tx:
        run = start(tx)
        finish(tx, run, created=1)
        killed = report(tx, run)
        finish(tx, run, created=1, timings=TIMINGS | {"samples": []})
        silent = report(tx, run)
    assert "svg" not in killed.tags
    assert "polygon" not in silent.tags
    assert "Steps" not in killed.text
    assert "Steps" in silent.text


# ---- the order of the page


def test_what_needs_a_person_comes_first(kept: State) -> None:
    """Errors, then rejected, waiting, in-doubt records and notes; facts and tally follow. Folders are not named."""
    with kept.begin() as tx:
        run = start(tx)
        tx.dead_letters.put([dead_letter(1)], run_id=run, at=AT)
        tx.waiting_records.put([waiting(4)], run_id=run, at=AT)
        tx.intents.add([intent(7, status="in_doubt")], run_id=run, fence=1, at=AT)
        tally = finish(tx, run, error="f.csv: is short", created=3).tally
        assert tally is not None
        stream = tally["wms.invoices"] | {"balanced": False}
        tx.runs.finish(
            run,
            RunResult(
                "failed",
                tally={"wms.invoices": stream},
                messages=[
                    RunMessage("error", "", "E1"),
                    RunMessage("warning", "wms.invoices", "the snapshot is short"),
                ],
                duration_ms=1,
            ),
            at=AT,
        )
        shown = report(tx, run).text
    order = (
        "Tenant acme, config acme.yaml", "Error: E1", "THE TALLY DOES NOT BALANCE", "Rejected", "Waiting", "In doubt",
        "Notes", "wms.invoices: the snapshot is short", "business date", "Records",
    )  # fmt: skip
    places = [shown.index(part) for part in order]
    assert places == sorted(places)
    assert "someone" not in shown


def test_the_files_of_each_stream_are_named(kept: State) -> None:
    """With their rows and what was accepted; a stream without a new file says so."""
    read = {"input": "new", "files": [{"name": "INV_1.csv", "rows": 1200}, {"name": "INV_2.csv", "rows": 0}]}
    again = {"input": "unchanged", "files": [{"name": "ITEM_1.csv", "rows": None}], "more_files": 3}
    with kept.begin() as tx:
        run = start(tx)
        tally = finish(tx, run, created=3).tally
        assert tally is not None
        stream = tally["wms.invoices"]
        tally = {
            "wms.invoices": stream | read,
            "wms.items": stream | again,
            "wms.lots": stream | {"input": "none", "newest_file": None},
        }
        file = FileFacts("INV_1.csv", "abcdef" * 10, 90, AT - timedelta(minutes=30), "s")
        tx.intake.accept("wms.invoices", "v", [file], at=AT)
        tx.runs.finish(run, RunResult("done", tally=tally, duration_ms=1), at=AT)
        page = report(tx, run)
    accepted = ["90", "2026-03-29 01:00:00Z", "2026-03-29 01:30:00Z", "abcdefabcdefabcd"]
    assert page.under("stream", "file") == [
        ["wms.invoices", "INV_1.csv", "1,200", *accepted],
        ["wms.invoices", "INV_2.csv", "0", "", "", "", ""],
        ["wms.items", "ITEM_1.csv", "unchanged", "", "", "", ""],
        ["wms.items", "3 files more", "", "", "", "", ""],
        ["wms.lots", "no file yet", "", "", "", "", ""],
    ]
