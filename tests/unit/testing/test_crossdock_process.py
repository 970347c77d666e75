"""Commands as processes, and connectors that are not installed."""

from __future__ import annotations

import signal
import subprocess
import sys
from importlib.metadata import Distribution
from pathlib import Path
from subprocess import PIPE

import pytest
from tests.partners.shopify import reading
from tests.unit.testing import reference_connector
from tests.unit.testing.reference_connector import Orders, OrdersContract, connector

from crossdock.testing import crossdock_process
from crossdock.testing.crossdock_process import (
    CrossdockCommands,
    find_connector_module_and_constant,
    write_connector_entry_point,
)
from crossdock_connectors.shop.shopify import CONNECTOR


def test_a_connector_is_found_in_the_module_that_has_it(tmp_path: Path) -> None:
    """The module of the test that imports it is the last choice."""
    reference_connector.CONNECTOR = OrdersContract.connector  # type: ignore[attr-defined]  # as an author's module has it
    try:
        write_connector_entry_point(OrdersContract.connector, tmp_path, apart_from="tests")
    finally:
        del reference_connector.CONNECTOR  # type: ignore[attr-defined]  # see above
    (facts,) = tmp_path.iterdir()
    (point,) = Distribution.at(facts).entry_points
    assert (point.group, point.name) == ("crossdock.connectors", "shop")
    assert point.value == "tests.unit.testing.reference_connector:CONNECTOR"


def test_a_connector_without_a_constant_is_refused(tmp_path: Path) -> None:
    """A process could not import it."""
    with pytest.raises(LookupError, match="no module has the connector 'shop' as a constant"):
        write_connector_entry_point(connector(Orders), tmp_path, apart_from="tests")


@pytest.mark.nightly
def test_a_command_runs_to_its_end_or_is_killed(tmp_path: Path) -> None:
    """The exit code is the command's, or that of SIGKILL."""
    commands = CrossdockCommands(tmp_path / "crossdock.yaml", {"COLUMNS": "80"}, tmp_path)
    ended = commands.run("sync")
    assert ended.exit_code == 2
    assert "crossdock.yaml" in ended.errors
    assert commands.run_and_kill(lambda: True, "sandbox").exit_code == -signal.SIGKILL
    assert commands.run_and_kill(lambda: False, "sync").exit_code == 2, "it ended before"


def test_a_command_without_an_end_is_killed_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what it said last, which shows where the connector waits."""
    commands = CrossdockCommands(tmp_path / "crossdock.yaml", {}, tmp_path)
    endless = "import sys, time; print('reads page 7', file=sys.stderr, flush=True); time.sleep(600)"
    process = subprocess.Popen([sys.executable, "-c", endless], stdout=PIPE, stderr=PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.readline()
    monkeypatch.setattr(CrossdockCommands, "start", lambda *_: process)
    monkeypatch.setattr(crossdock_process, "_WITHIN_S", 0.0)
    with pytest.raises(TimeoutError, match="'crossdock sync' did not end within two minutes and was killed; look for"):
        commands.run("sync")
    assert (said, process.returncode) == ("reads page 7\n", -signal.SIGKILL)


def test_the_home_of_a_connector_is_in_its_own_package() -> None:
    """Modules of tests that import the connector are none, however short their names are."""
    assert sys.modules[reading.__name__].CONNECTOR is CONNECTOR
    assert len(reading.__name__) < len("crossdock_connectors.shop.shopify")
    assert find_connector_module_and_constant(CONNECTOR, least_preferred_module="tests") == (
        "crossdock_connectors.shop.shopify",
        "CONNECTOR",
    )
