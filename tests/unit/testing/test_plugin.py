"""The fixtures and the option of the pytest plugin, used as authors use them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

NIGHTLY = pytest.mark.nightly
TESTS = """
import httpx
from tests.unit.testing.reference_connector import PAGES, Orders, OrdersContract, connector
from crossdock.testing import read

pytest_plugins = ["crossdock.testing.plugin"]
SETTINGS = {"base_url": "https://shop.example", "token": "env:SHOP_TOKEN"}


def test_context_and_clock(context, clock, tmp_path):
    before = clock.now()
    ctx = context(connector(Orders), SETTINGS, transport=httpx.MockTransport(lambda _: httpx.Response(503)))
    assert read(connector(Orders), ctx, "orders").error is not None
    assert clock.now() > before
    assert ctx.run.work.is_relative_to(tmp_path)


def test_sandbox(sandbox):
    answer = httpx.get(f"{sandbox.base_url}/_sandbox/effects", trust_env=False)
    assert answer.status_code in (200, 401)
    assert sandbox.api_key
"""


ACCEPTANCE = """
import pathlib
from crossdock.testing.acceptance import SyncAcceptance


class TestAcceptance(SyncAcceptance):
    def test_each_record_is_delivered_once_in_spite_of_faults_and_kills(self):
        pathlib.Path("has run").touch()

    def test_of_the_author(self):
        pass
"""


def author(folder: Path, content: str, *arguments: str, secret: str = "a-secret-token", exit_code: int = 0) -> str:
    """Run the tests of an author; what pytest prints."""
    (folder / "test_it.py").write_text(content, encoding="utf-8")
    root = Path(__file__).parents[3]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", "."]
    ours = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "true"}  # authors have none of those of our tests
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), *sys.path]), "SHOP_TOKEN": secret} | ours
    ended = subprocess.run(
        [*command, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert ended.returncode == exit_code, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.nightly
def test_the_fixtures_work_in_the_tests_of_an_author(tmp_path: Path) -> None:
    """The context has the test's clock and folder, and the sandbox answers."""
    assert "2 passed" in author(tmp_path, TESTS)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "chosen", [(), pytest.param(("--acceptance",), marks=NIGHTLY), pytest.param(("-m", "acceptance"), marks=NIGHTLY)]
)
def test_an_acceptance_runs_when_it_is_asked_for(tmp_path: Path, chosen: tuple[str, ...]) -> None:
    """Otherwise the summary says that it has not run, and other tests of its class have."""
    said = author(tmp_path, ACCEPTANCE, "-p", "crossdock.testing.plugin", *chosen)
    assert (tmp_path / "has run").exists() == bool(chosen)
    is_told = "1 acceptance NOT RUN: syncs with faults and kills. Run all: pytest --acceptance" in said
    assert is_told == (not chosen)
    assert chosen or "1 passed, 1 skipped" in said


HINDERED = """
from tests.unit.testing.reference_connector import OrdersContract


class TestOrders(OrdersContract):
    environment = {}
"""


@pytest.mark.nightly
def test_one_cause_fails_one_test(tmp_path: Path) -> None:
    """The others are skipped, and name it; the first one fails if that test is not chosen."""
    shown = author(tmp_path, HINDERED, "-rsf", secret="", exit_code=1)
    assert "1 failed" in shown
    assert "FAILED test_it.py::TestOrders::test_the_example_is_read_and_mapped" in shown
    assert "reading failed: the environment variable SHOP_TOKEN is not set" in shown
    assert re.search(r"SKIPPED \[\d\d\] .*test_the_example_is_read_and_mapped has failed: Orders.pull: reading", shown)
    chosen = author(tmp_path, HINDERED, "-k", "numbers or second", secret="", exit_code=1)
    assert "1 error" in chosen
    assert "passed" not in chosen
