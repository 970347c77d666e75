"""The benchmarks run, at a hundredth of their size: for correctness, not for speed.

`tests.long.test_benchmarks` has the rest of their cases.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.benchmarks import (
    bench_console,
    bench_copybook,
    bench_delivery,
    bench_edi,
    bench_fixed_width,
    bench_fleet,
    bench_formats,
    bench_hints,
    bench_listen,
    bench_migration,
    bench_profile,
    bench_sandbox,
    bench_shop,
    bench_sources,
    bench_webhooks,
    console_states,
    results,
    slow_server,
    watch_cases,
)
from tests.benchmarks.console_states import Sizes
from tests.benchmarks.forked import forked_benchmarks

from crossdock.state import parse_database_url


@pytest.mark.parametrize("delay_ms", [0, 50])
def test_delivery_settles_every_operation(tmp_path: Path, delay_ms: int) -> None:
    """Every operation of a small load is delivered, through the benchmark's own server."""
    with slow_server.running(delay_ms) as port:
        _, _, delivered = bench_delivery.deliver(port, tmp_path, 40)
    assert delivered == 40


@pytest.mark.parametrize("layout", bench_fixed_width.LAYOUTS)
def test_fixed_width_files_are_read_whole(tmp_path: Path, layout: str) -> None:
    """A small file of each layout has as many rows as were written, and its count and sum are right."""
    path = tmp_path / "file.txt"
    bench_fixed_width.write(path, 10_000, typed=layout != "one type")
    assert bench_fixed_width.measure(path, 10_000, bench_fixed_width.LAYOUTS[layout]) > 0


@pytest.mark.parametrize("name", bench_formats.CASES)
def test_files_of_xml_and_json_are_read_whole(tmp_path: Path, name: str) -> None:
    """A small file of each has as many rows as were written, and so has the plain parser's."""
    path, case = tmp_path / "file", bench_formats.CASES[name]
    case.write(path, 1_000)
    assert bench_formats.read(path, name) == case.plain(path) == 1_000


@pytest.mark.parametrize("line_end", bench_copybook.LINE_ENDS.values())
def test_files_by_a_copybook_are_read_whole(tmp_path: Path, line_end: str) -> None:
    """A small file has as many rows as were written."""
    path = tmp_path / "file.dat"
    bench_copybook.write(path, 10_000, line_end)
    assert bench_copybook.measure(path, 10_000, bench_copybook.layout(tmp_path, line_end)) > 0


@pytest.mark.parametrize("kind", bench_edi.KINDS)
def test_edi_files_are_read_whole(tmp_path: Path, kind: str) -> None:
    """A small file of each kind has as many rows as items were written."""
    path = tmp_path / "file.edi"
    assert bench_edi.measure(path, bench_edi.write(path, 1_000, kind=kind), kind) > 0


def test_the_time_of_a_plan_is_told_by_package(tmp_path: Path) -> None:
    """The shares of a small plan add up, and the imports that each start needs are among the largest."""
    (case,) = (each for each in watch_cases.CASES if each.name == "plan")
    with watch_cases.Place(tmp_path) as place:
        found = bench_profile.profile(case.contestants(place)[0], 1)
    *rows, (rest, *_) = bench_profile.rows(found)
    assert rest == "each below 2 %"
    assert {"imports of crossdock", "imports of sqlalchemy", "imports of polars"} <= {asked for asked, *_ in rows[:6]}


def test_sandbox_creates_every_invoice(tmp_path: Path) -> None:
    """Every creation of a small load is answered 201 and witnessed under its own key."""
    seconds, cpu_s = bench_sandbox.measure(tmp_path, 100)
    assert seconds > 0
    assert cpu_s >= 0


@pytest.mark.parametrize("kind", ["rest", "graphql"])
def test_sources_read_every_page(tmp_path: Path, kind: str) -> None:
    """Both runs of a small read end, and the vendor has accepted one request for each page."""
    case = bench_sources.Case(kind, kind, rate=400, burst=40, pages=5)
    rows = list(bench_sources.measure(case, tmp_path, None))
    assert [row[1:3] for row in rows] == [("crossdock, run 1", "5"), ("crossdock, run 2", "5")]
    assert [row[5] for row in rows] == [0, 0]


def test_a_shop_is_read_in_pages_without_being_throttled(tmp_path: Path) -> None:
    """All orders of a small shop are read within the allowance, and no request is refused."""
    paged = bench_shop.paged(tmp_path, 30)
    assert (paged.orders, paged.throttled) == (30, 0)
    assert 0 < paged.used <= 1


def test_a_shop_is_loaded_by_a_bulk_file(tmp_path: Path) -> None:
    """All orders of a small file are read, with their refunds."""
    loaded = bench_shop.loaded(tmp_path, 200)
    assert loaded.orders == 200
    assert loaded.refund_requests > 0


def test_webhooks_reach_a_healthy_receiver_beside_a_dead_and_a_slow_one(tmp_path: Path) -> None:
    """Every event of a small load arrives once at the healthy receiver."""
    assert len(bench_webhooks.measure(tmp_path, 30)) == 30


@pytest.mark.parametrize("case", bench_listen.CASES[1:3])
def test_every_webhook_is_answered(tmp_path: Path, case: bench_listen.Case) -> None:
    """All of a small load are accepted or refused as they should be, and the records are at the platform."""
    assert len(bench_listen.measure(tmp_path, case, 60)) == 60


def test_hints_are_delivered_beside_a_load_and_by_a_sync_for_each(tmp_path: Path) -> None:
    """Every change of a small load reaches the platform, whichever way."""
    with forked_benchmarks():
        found = bench_hints.measure(tmp_path, records=100, webhooks=4, syncs=1, others=100)
    assert (len(found.hints), len(found.syncs)) == (4, 1)
    assert min(found.hints + found.syncs) > 0


def test_each_page_of_the_console_is_measured(tmp_path: Path) -> None:
    """Each address of the benchmark leads to a page, also those that it takes from links of others."""
    sizes = Sizes().divided(50)
    config = console_states.make(tmp_path / "big", "big", sizes)
    figures = bench_console.measured_pages(config, sizes, repeats=1)
    assert len(figures) == len(bench_console.PAGES) + 1


def test_results_hold_the_latest_of_each_title(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was told under the same title before is replaced where it stands, whatever its size; all else stays."""
    path = tmp_path / "RESULTS.md"
    path.write_text("# Results\n\nTrust ratios.\n")
    monkeypatch.setattr(results, "RESULTS", path)
    for arguments, title, figure in (
        ("--rows 1", "A", 1),
        ("--rows 10", "A", 2),
        ("--rows 1", "B", 3),
        ("--rows 1", "A", 4),
    ):
        monkeypatch.setattr("sys.argv", ["bench_x.py", *arguments.split()])
        results.write(title, ("what", "how much"), [("x", figure)])
    text = path.read_text()
    assert text.startswith("# Results\n\nTrust ratios.\n\n## A, ")
    assert [line for line in text.splitlines() if line.startswith("| x")] == ["| x | 4 |", "| x | 3 |"]


def test_a_migration_is_reconciled_with_one_request_for_each_page(tmp_path: Path) -> None:
    """A small migration is loaded, compared without differences, and all of it can be undone."""
    with forked_benchmarks():
        steps = bench_migration.migration(tmp_path / "sent", 300)
        answered = bench_migration.migration(tmp_path / "answered", 2_200, answered=True)
    assert [(each.requests, each.pages) for each in steps] == [(300, 0), (0, 0), (3, 3), (5, 5)]
    assert [(each.requests, each.pages) for each in answered[2:]] == [(4, 4), (6, 6)]


def test_the_sync_beside_a_migration_sends_each_record_once(tmp_path: Path) -> None:
    """A plain sync of as many records."""
    with forked_benchmarks():
        assert bench_migration.plain_sync(tmp_path / "sync", 300).requests == 300


@pytest.mark.parametrize("equal", [True, False])
def test_what_is_due_in_a_fleet_is_computed(tmp_path: Path, equal: bool) -> None:
    """A scheduler that takes over decides about every second tenant, over two connections."""
    url = parse_database_url("sqlite:///fleet.db", tmp_path)
    measured = bench_fleet.measure(url, 100, equal=equal)
    assert (measured.due, measured.tenants) == (50, 100)
    assert measured.connections <= 3
