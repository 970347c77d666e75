"""Fixtures for pytest, and acceptances that run when they are asked for: ``-p crossdock.testing.plugin``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crossdock.connector import Context
from crossdock.sandbox import SandboxServer
from crossdock.testing import connector_context_and_reading
from crossdock.testing.manual_clock import ManualClock

__all__ = ["clock", "context", "sandbox"]


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still until it is advanced."""
    return ManualClock()


@pytest.fixture
def context(tmp_path: Path, clock: ManualClock) -> Callable[..., Context[Any]]:
    """`crossdock.testing.context` in the test's temporary folder, on its `clock`."""
    return partial(connector_context_and_reading.context, folder=tmp_path, clock=clock)


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxServer]:
    """A running sandbox of the platform: ``base_url``, ``tenant``, ``api_key`` and its effects log."""
    with SandboxServer(tmp_path / "sandbox") as server:
        yield server


# ---- acceptances

_MARK = "acceptance"
_OPTION = f"--{_MARK}"
_HOMES = ("crossdock.testing.acceptance", "crossdock.testing.target_acceptance")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(_OPTION, action="store_true", help="also run crossdock's acceptances: processes, faults and kills")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{_MARK}: syncs as processes, with faults and kills; run with {_OPTION}")
    for name in ("httpcore", "httpx"):  # pytest would show a line for each step of each request beside a failure
        logging.getLogger(name).setLevel(logging.WARNING)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests of `SyncAcceptance` and `TargetAcceptance`, and skip them unless they are asked for."""
    if not isinstance(item, pytest.Function) or item.cls is None:
        return
    if any(item.originalname in vars(each) for each in item.cls.__mro__ if each.__module__ in _HOMES):
        item.add_marker(_MARK)
        if not _runs_acceptances(item.config):
            item.add_marker(pytest.mark.skip(reason=f"acceptances run with {_OPTION}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many acceptances have not run, also if skips are not listed."""
    skipped = [each for each in terminalreporter.getreports("skipped") if _MARK in each.keywords]
    if skipped and not _runs_acceptances(config):
        number = "1 acceptance" if len(skipped) == 1 else f"{len(skipped)} acceptances"
        terminalreporter.section("crossdock", yellow=True, bold=True)
        terminalreporter.write_line(f"{number} NOT RUN: syncs with faults and kills. Run all: pytest {_OPTION}")


def _runs_acceptances(config: pytest.Config) -> bool:
    """Return whether acceptances run, as they do with ``-m acceptance``, and if the plugin came after the options."""
    return bool(config.getoption(_OPTION, default=True)) or _MARK in str(config.getoption("markexpr", default=""))
