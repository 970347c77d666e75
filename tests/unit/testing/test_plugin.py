"""The fixtures of the pytest plugin, used as authors use them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.nightly
def test_the_fixtures_work_in_the_tests_of_an_author(tmp_path: Path) -> None:
    """The context has the test's clock and folder, and the sandbox answers."""
    (tmp_path / "test_it.py").write_text(TESTS, encoding="utf-8")
    root = Path(__file__).parents[3]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", "."]
    ours = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "true"}  # authors have none of those of our tests
    environment = os.environ | {"PYTHONPATH": str(root), "SHOP_TOKEN": "a-secret-token"} | ours
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert ended.returncode == 0, ended.stdout
    assert "2 passed" in ended.stdout
