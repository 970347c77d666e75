"""Benchmarks that the suite runs with forks, or with fewer cases: ``pytest tests/long/test_benchmarks.py``."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.benchmarks import (
    bench_hints,
    bench_listen,
    bench_migration,
    bench_read_only_commands,
    bench_startup,
    bench_waiting_records,
)
from tests.nightly import test_benchmarks as short
from tests.nightly.test_bench_delta import finds_what_changed
from tests.servers import require

from crossdock.testing.openssh_server import OpenSshServer


def test_sources_read_every_page(tmp_path: Path) -> None:
    """The same for a vendor that does not state its limit."""
    short.test_sources_read_every_page(tmp_path, "silent")


@pytest.mark.parametrize("case", bench_listen.CASES)
def test_every_webhook_is_answered(tmp_path: Path, case: bench_listen.Case) -> None:
    """All of a load are accepted or refused as they should be, and the records are at the platform."""
    assert len(bench_listen.measure(tmp_path, case, 150)) == 150


def test_hints_are_delivered_beside_a_load_and_by_a_sync_for_each(tmp_path: Path) -> None:
    """By commands that start as users' do."""
    found = bench_hints.measure(tmp_path, records=100, webhooks=4, syncs=1, others=100)
    assert (len(found.hints), len(found.syncs)) == (4, 1)


def test_a_migration_is_measured(tmp_path: Path) -> None:
    """Each command has taken memory; the numbers of requests are those of the suite."""
    steps = bench_migration.migration(tmp_path / "sent", 300)
    answered = bench_migration.migration(tmp_path / "answered", 2_200, answered=True)
    assert [each.requests for each in steps + answered[2:]] == [300, 0, 3, 5, 4, 6]
    assert bench_migration.plain_sync(tmp_path / "sync", 300).requests == 300
    assert min(each.peak_mb for each in steps + answered) > 0


def test_commands_that_only_read_are_measured() -> None:
    """Each ends with exit 0 after a small load, and has taken time."""
    assert min(bench_read_only_commands.measure(30)) > 0


def test_an_import_of_the_installed_wheel_is_quick(tmp_path: Path) -> None:
    """A quarter of that of polars and sqlalchemy at most, which it does not need; so the goal holds on any machine."""
    found = bench_startup.measure(tmp_path, repeats=5)
    print({name: round(cpu_s / found[bench_startup.NOTHING], 1) for name, cpu_s in found.items()})
    assert found[bench_startup.IMPORT] < (found["import polars"] + found["import sqlalchemy"]) / 4


@pytest.mark.parametrize("kind", bench_waiting_records.KINDS)
def test_records_that_nothing_happens_to_are_measured(kind: bench_waiting_records.Kind) -> None:
    """A sync that finds them as they were ends with exit 1, and has taken time."""
    assert bench_waiting_records.idle_cpu_s(kind, 30) > 0


@pytest.mark.openssh
def test_delta_finds_what_changed(tmp_path: Path) -> None:
    """By processes that start as users' do, each of which is measured."""
    require(OpenSshServer.available(), "OpenSSH")
    with OpenSshServer(tmp_path) as ssh:
        finds_what_changed(ssh)
