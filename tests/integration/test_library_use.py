"""Another program uses crossdock as a library: a config in memory, results as objects, its own logs and threads."""

from __future__ import annotations

import asyncio
import logging
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.project_folder import UNPACED

import crossdock
from crossdock.config.project import project
from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing import sandbox_effects_comparison
from crossdock.testing.sandbox_syncs import write_private_file
from crossdock.values.run_progress_and_messages import SilentProgress, Unit

Config = dict[str, Any]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SandboxServer]:
    limits = SandboxSettings(rate_per_min=UNPACED.per_minute, burst=UNPACED.burst)
    with SandboxServer(tmp_path / "sandbox", limits) as server:
        yield server


def made(folder: Path, server: SandboxServer, rows: int) -> Config:
    """A config in memory, of a folder with one export."""
    (folder / "out").mkdir(parents=True)
    lines = "".join(f"{folder.name}{number:04};Bolt {number}\n" for number in range(rows))
    (folder / "out" / "items.csv").write_text(f"SKU;NAME\n{lines}", encoding="utf-8")
    fixed = {"unitPrice": {"const": 9.5}, "currency": {"const": "EUR"}}
    stream = {
        "mode": "snapshot", "files": "*.csv", "format": {"kind": "delimited", "delimiter": ";"}, "key": ["SKU"],
        "resource": "product", "map": {"sku": "SKU", "name": "NAME", **fixed},
    }  # fmt: skip
    token = write_private_file(folder / "key", server.sandbox.new_key())
    return {
        "platform": {
            "base_url": server.base_url,
            "tenant": server.tenant,
            "auth": {"kind": "api_key", "token": token},
            "rate": {"per_minute": UNPACED.per_minute, "burst": UNPACED.burst},
        },
        "state": f"sqlite:///{folder / 'state.db'}",
        "connections": {
            "wms": {
                "kind": "folder_warehouse",
                "path": folder / "out",
                "settle_s": 0,
                "streams": {"products": stream},
            }
        },
    }


def skus(config: Config) -> list[str]:
    """Of each effect at the platform."""
    return [
        each["body"]["sku"] for each in sandbox_effects_comparison.list_effects_of_tenant(project.load(config).platform)
    ]


def test_a_config_in_memory_is_checked_planned_and_run(tmp_path: Path, server: SandboxServer) -> None:
    """Each result is an object, the plan says what the run does, and a second run sends nothing."""
    config = made(tmp_path / "a", server, 3)
    assert crossdock.init(config)
    assert not crossdock.init(config)
    checked = crossdock.check(config)
    assert checked.ok, checked.findings
    assert {subject for subject, _ in checked.findings} >= {"state", "platform", "wms"}
    operations: list[str] = []
    listener = crossdock.PlanListener.ignoring(operation=lambda each: operations.append(each.identity.key))
    planned = crossdock.plan(config, listener=listener)
    assert planned.operations == {"create": 3}
    assert operations == ["a0000", "a0001", "a0002"]
    report = crossdock.run(config)
    assert isinstance(report, crossdock.Report)
    assert (report.status, report.exit_code, report.errors) == ("done", 0, {})
    assert report.tallies["wms.products"].delivered == planned.tallies["wms.products"].delivered == 3
    assert sorted(skus(config)) == operations
    again = crossdock.run(config, ["wms"])
    assert (again.counters.requests, len(skus(config))) == (0, 3)


def test_a_mapping_overrides_a_file(tmp_path: Path, server: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths of a file begin beside it, whatever the working folder is."""
    config = made(tmp_path / "a", server, 2)
    config["connections"]["wms"]["path"] = "out"
    file = tmp_path / "a" / "crossdock.yaml"
    file.write_bytes(crossdock_yaml(config))
    monkeypatch.chdir(tmp_path)
    without = {"connections": {"wms": {"streams": {"products": {"enabled": False}}}}}
    crossdock.init(file)
    with pytest.raises(crossdock.CrossdockError, match="switched off"):
        crossdock.run([file, without], ["wms.products"])
    assert crossdock.run([file, {"state": f"sqlite:///{tmp_path / 'a' / 'state.db'}"}]).status == "done"


def crossdock_yaml(config: Config) -> bytes:
    wms = config["connections"]["wms"]
    return yaml.safe_dump({**config, "connections": {"wms": {**wms, "path": str(wms["path"])}}}).encode()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"conections": {}}, "config: conections: unknown key; did you mean 'connections'?"),
        ({"state": object()}, "config: state: has a value of type object"),
        (
            {"connections": {"wms": {"kind": "folder_warehouse", "path": ".", "streams": {"x": {"mode": 1}}}}},
            "config: ",
        ),
    ],
)
def test_a_mistake_in_a_mapping_names_its_place(changed: Config, message: str) -> None:
    """As one in a file, with the path of the key in place of file and line."""
    auth = {"kind": "api_key", "token": "env:X"}
    config = {"platform": {"base_url": "http://127.0.0.1:9", "tenant": "a", "auth": auth}, "connections": {}, **changed}
    with pytest.raises(crossdock.CrossdockError) as raised:
        crossdock.run(config)
    assert str(raised.value).startswith(message)
    assert raised.value.code == "config_invalid"


def test_a_run_logs_to_its_own_logger(
    tmp_path: Path, server: SandboxServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Stages, counts, warnings and errors, without a secret; nothing is printed where nobody listens."""
    config = made(tmp_path / "a", server, 2)
    (tmp_path / "a" / "out" / "items.csv").write_text("SKU;NAME\na1;Bolt\na1;Nut\n", encoding="utf-8")
    crossdock.init(config)
    crossdock.run(config)
    assert capfd.readouterr() == ("", "")
    with caplog.at_level(logging.INFO, "crossdock"):
        report = crossdock.run(config)
    said = [(each.levelname, each.getMessage()) for each in caplog.records if each.name == "crossdock.run"]
    assert ("INFO", "reading wms.products") in said
    assert any(level == "ERROR" and text.startswith("wms.products: ") for level, text in said)
    assert said[-1] == ("INFO", str(report).splitlines()[-1])
    key = (tmp_path / "a" / "key").read_text(encoding="ascii")
    assert key not in caplog.text


def test_what_a_server_logs_about_a_defect_is_shown_where_nothing_is_configured() -> None:
    """Only the messages of a run, which its report has too, are left to the program."""
    code = (
        "import logging, crossdock, crossdock.runs.init_plan_run_for_programs\n"
        "logging.getLogger('crossdock.serving').error('a defect')\n"
        "logging.getLogger('crossdock.run').error('in the report')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "a defect\n"


class Steps(SilentProgress):
    """Counts records, and stops the run as it begins to read."""

    def __init__(self, interrupt: threading.Event) -> None:
        self.stages: list[str] = []
        self.interrupt = interrupt

    def begin(self, stage: str, total: int | None, unit: Unit = "records") -> None:
        self.stages.append(stage)
        self.interrupt.set()


def test_progress_is_reported_and_a_run_can_be_cancelled(tmp_path: Path, server: SandboxServer) -> None:
    """What was not sent is delivered by the next run, once."""
    config = made(tmp_path / "a", server, 4)
    crossdock.init(config)
    stop = threading.Event()
    steps = Steps(stop)
    report = crossdock.run(config, progress=steps, interrupt=stop)
    assert steps.stages
    assert report.exit_code == 130
    assert crossdock.run(config).exit_code == 0
    assert sorted(skus(config)) == [f"a{number:04}" for number in range(4)]


class Broken(SilentProgress):
    """A display with a defect."""

    def __init__(self) -> None:
        self.calls = 0

    def advance(self, steps: int = 1) -> None:
        self.calls += 1
        raise ValueError(f"cannot draw {steps}")


def test_a_listener_that_fails_neither_ends_a_run_nor_is_called_again(
    tmp_path: Path, server: SandboxServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Its exception is logged, and not taken for one of the connector."""
    config, broken = made(tmp_path / "a", server, 4), Broken()
    crossdock.init(config)
    report = crossdock.run(config, progress=broken)
    assert (report.status, report.tallies["wms.products"].delivered) == ("done", 4)
    assert broken.calls == 1
    assert "the listener of the progress has failed" in caplog.text


def test_threads_run_configs_with_different_states(tmp_path: Path, server: SandboxServer) -> None:
    """At the same time, each record once; a second run of one state is told that another one uses it."""
    configs = [made(tmp_path / name, server, 20) for name in "abcd"]
    for config in configs:
        crossdock.init(config)
    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(crossdock.run, configs))
    assert [each.status for each in reports] == ["done"] * 4
    assert sorted(skus(configs[0])) == [f"{name}{number:04}" for name in "abcd" for number in range(20)]


GUIDE = Path(__file__).parents[2] / "docs" / "how_to" / "library"


def documented(page: str) -> dict[str, Any]:
    """What the Python of a page of the guide defines."""
    names: dict[str, Any] = {}
    for code in re.findall(
        r"^```python\n(.*?)^```", (GUIDE / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    ):
        exec(code, names)
    return names


def test_the_guide_checks_plans_runs_and_tells_errors_apart(
    tmp_path: Path, server: SandboxServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """As its page on running from Python says."""
    guide, config = documented("run_from_python.md"), made(tmp_path / "a", server, 3)
    crossdock.init(config)
    assert guide["nightly"](config).status == "done"
    assert "wms.products: rows: 3 read, 3 in records; records: 3 read, 3 created" in capsys.readouterr().out
    file = tmp_path / "b" / "base.yaml"
    other = made(tmp_path / "b", server, 2)
    file.write_bytes(crossdock_yaml(other))
    assert guide["sync_tenant"](file, server.tenant, tmp_path).status == "done"
    with project.load(config).open_state_exclusively():
        assert guide["run_unless_busy"](config) is None
    away = {"base_url": "http://127.0.0.1:9", "retry": {"attempts": 1, "base_s": 0.01, "give_up_after_s": 0.1}}
    gone = {**config, "platform": config["platform"] | away, "state": f"sqlite:///{tmp_path / 'gone.db'}"}
    crossdock.init(gone)
    assert guide["may_pass_by_itself"](crossdock.run(gone))


def test_the_guide_shows_progress_and_cancels(
    tmp_path: Path, server: SandboxServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run is awaited beside other work of the loop, and a cancelled task stops it in order."""
    guide, config = documented("progress_and_cancelling.md"), made(tmp_path / "a", server, 3)
    crossdock.init(config)

    async def cancelled() -> None:
        task = asyncio.create_task(guide["deliver"](config))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert guide["run_with_stages"](config).completed
    assert "reading wms.products" in capsys.readouterr().out
    assert asyncio.run(guide["deliver"](config)).status == "done"
    assert guide["run_at_most"](config, 60).status == "done"
    assert sorted(skus(config)) == [f"a{number:04}" for number in range(3)]


def test_a_notebook_runs_it_in_its_own_event_loop(tmp_path: Path, server: SandboxServer) -> None:
    """Called directly where a loop runs, as in a cell of a notebook."""
    config = made(tmp_path / "a", server, 3)

    async def cell() -> crossdock.Report:
        crossdock.init(config)
        return crossdock.run(config)

    assert asyncio.run(cell()).status == "done"
