"""The demo with a shop, judged by what its three systems have in the end."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

from crossdock.cli.main import main

CONFIGS = Path(__file__).parents[2] / "configs"
VARIABLES = (
    "PLATFORM_URL", "CROSSDOCK_API_KEY", "SHOP_URL", "SHOP_TOKEN", "SHOP_KEY", "SHOP_SECRET", "THREEPL_URL",
    "THREEPL_KEY",
)  # fmt: skip
DEADLINE_S = 60
SUMS = {1: "129.33", 2: "159.84", 3: "63.13", 4: "319.80"}
"""Of the orders, by hand: 2 x 49.90 + 3 x 8.35 - 10.00 + 4.90 = 119.75, and 8 percent tax; and so on."""


def variables_of(folder: Path) -> dict[str, str]:
    """What ``environment.sh`` exports."""
    lines = (folder / "environment.sh").read_text().splitlines()
    pairs = (line.removeprefix("export ").split("=") for line in lines)
    return {name: value.strip("'") for name, value in pairs}


@dataclass(frozen=True, slots=True)
class Shown:
    """A demo that has ended: its folder, exit code, output and errors."""

    folder: Path
    code: int
    output: str
    errors: str


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Shown]:
    """The demo with these options; it runs once, in this process."""

    @cache
    def run(*options: str) -> Shown:
        folder = tmp_path_factory.mktemp("demo") / "demo"
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setenv("COLUMNS", "80")
            for name in VARIABLES:
                patch.setenv(name, "")  # the demo sets them for its process
            with pytest.raises(SystemExit) as ended:
                main(["demo", "--shop", *options, "--folder", str(folder)])
        return Shown(folder, int(ended.value.code or 0), out.getvalue(), err.getvalue())

    return run


@pytest.mark.parametrize("kind", ["shopify", "woocommerce"])
def test_orders_become_invoices_and_come_back_shipped(demo: Callable[..., Shown], kind: str) -> None:
    """Sums agree to the cent, each order has all its parcels, and the refund is a credit note."""
    shown = demo(kind, "--json")
    assert (shown.code, shown.errors) == (0, "")
    found = json.loads(shown.output)
    for each in found["runs"]:
        assert (each["status"], each["balanced"], sum(each["open"].values())) == ("done", True, 0)
    for number, order in enumerate(found["orders"], 1):
        total, back = Decimal(SUMS[number]), Decimal("18.04") if number == 3 else Decimal(0)
        assert Decimal(order["shop"]) == Decimal(order["platform"]) == total - back
        assert sum(map(Decimal, order["invoices"])) == total - back
        assert order["status"] == "shipped"
    assert [len(order["parcels"]) for order in found["orders"]] == [2, 1, 1, 2]


def test_the_texts_fit_a_terminal(demo: Callable[..., Shown]) -> None:
    """No line of the demo's own has more than 80 characters, and each step is shown with its command."""
    shown = demo()
    assert (shown.code, shown.errors) == (0, "")
    for command in ("crossdock plan --limit 2", "crossdock sync shop", "crossdock sync erp", "crossdock sync depot"):
        assert command in shown.output
    said = [line for line in shown.output.splitlines() if not line.startswith(("folder", "  cd", "plan"))]
    assert max(map(len, said)) <= 81
    assert "#1012        45.09            45.09  63.13 -18.04  shipped" in shown.output


@pytest.mark.parametrize(
    ("kind", "secrets"), [("shopify", ["SHOP_TOKEN"]), ("woocommerce", ["SHOP_KEY", "SHOP_SECRET"])]
)
def test_the_config_is_the_one_to_copy(demo: Callable[..., Shown], kind: str, secrets: list[str]) -> None:
    """What the demo runs is the file in configs, byte for byte; its variables are in a private file."""
    folder = demo(kind, "--json").folder
    config = (folder / "crossdock.yaml").read_bytes()
    assert config == (CONFIGS / f"{kind}.yaml").read_bytes()
    assert config == files("crossdock.testing.demo.shop").joinpath(f"{kind}.yaml").read_bytes()
    variables = folder / "environment.sh"
    assert variables.stat().st_mode & 0o077 == 0
    names = [line.removeprefix("export ").split("=")[0] for line in variables.read_text().splitlines()]
    assert names == ["PLATFORM_URL", "CROSSDOCK_API_KEY", "SHOP_URL", *secrets, "THREEPL_URL", "THREEPL_KEY"]


def test_the_next_steps_work(demo: Callable[..., Shown], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the servers, with the variables of environment.sh, in the demo's folder."""
    shown = demo()
    monkeypatch.chdir(shown.folder)
    for step in ("runs", "trace 1008", "records list"):
        assert f"  crossdock {step}" in shown.output
        assert code_of(step, variables_of(shown.folder)) == 0


def code_of(command: str, variables: Mapping[str, str]) -> object:
    """The exit code of a command with these variables, in this process."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        for name, value in variables.items():
            patch.setenv(name, value)
        main(command.split())
    return ended.value.code or 0


def test_the_servers_can_be_used_from_another_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the variables of environment.sh each command of the page works, and Ctrl-C ends the servers."""
    folder, pipe = tmp_path / "demo", subprocess.PIPE
    crossdock = [sys.executable, "-m", "crossdock"]
    arguments = ["demo", "--shop", "--serve", "--json", "--folder", str(folder)]
    with subprocess.Popen([*crossdock, *arguments], stdout=pipe, stderr=pipe, text=True) as servers:
        try:
            assert servers.stdout is not None
            shown = "".join(iter(servers.stdout.readline, "}\n"))
            assert json.loads(shown + "}")["folder"] == str(folder)
            variables = variables_of(folder)
            monkeypatch.chdir(folder)
            for command in ("init", "check", "sync shop", "sync erp", "sync depot", "sync shop"):
                assert code_of(command, variables) == 0, capsys.readouterr()
            done = subprocess.run(
                [*crossdock, "runs"],
                cwd=folder,
                env={**os.environ, **variables},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        finally:
            servers.send_signal(signal.SIGINT)
        assert servers.wait(DEADLINE_S) in {0, 130}
