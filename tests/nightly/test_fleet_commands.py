"""The commands of a fleet, as users start them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.chaos.fleet_kills import Cluster, process, service, settled
from tests.chaos.fleet_stage import JOB, FleetStage, settings
from tests.chaos.processes import CROSSDOCK
from tests.chaos.soon_asking import SOON_ASKING
from tests.e2e.processes import SchedulerProcesses
from tests.e2e.project_folder import in_process
from tests.ended_commands import Done
from tests.waiting import WITHIN_S, eventually

from crossdock.sandbox import SandboxServer
from crossdock.state import StateUrl


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox", settings()) as served:
        yield served


def soon_looking(stage: FleetStage, executor: str, *options: str) -> tuple[Sequence[str], Mapping[str, str], Path]:
    """What `process` needs to start the service, which looks at its configs each half a second."""
    command, environment, log = service(stage, executor, "service.log", *options)
    assert tuple(command[:2]) == CROSSDOCK
    return [*SOON_ASKING, *command[2:]], environment, log


def run(stage: FleetStage, *arguments: str) -> Done:
    """Run a command on all tenants to its end, in this process."""
    return in_process(stage.base, *arguments, "--fleet", stage.pattern, environment=stage.environment)


def test_a_service_of_a_fleet(tmp_path: Path, platform: SandboxServer) -> None:
    """It runs what is due, picks up a new tenant, serves metrics of each, and ends in order."""
    stage = FleetStage(tmp_path, platform, 2)
    log = tmp_path / "service.log"
    later = FleetStage(_folder(tmp_path / "later"), platform, 0)
    later.add("t002")
    stage.environment |= later.environment
    with process(*soon_looking(stage, "threads", "--health", "127.0.0.2:0", "--log-format", "json")) as running:
        settled(stage)
        (stage.folder / "t002.db").write_bytes((later.folder / "t002.db").read_bytes())
        stage._export("t002")
        stage.config("t002").write_text(later.config("t002").read_text())
        stage.names.append("t002")
        settled(stage)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        address = next(each["message"].split()[1] for each in lines if each["message"].startswith("serving "))
        counts = [f'crossdock_nights_total{{job="{JOB}",status="done",tenant="{name}"}} 1.0' for name in stage.names]
        # A run is in its state before the scheduler, which reports it, has its result.
        eventually(lambda: all(count in urlopen(f"{address}/metrics").read().decode() for count in counts))
        running.send_signal(signal.SIGHUP)
        running.send_signal(signal.SIGTERM)
        assert running.wait(WITHIN_S) == 0, log.read_text()
    ended = [line for line in map(json.loads, log.read_text().splitlines()) if line.get("status") == "done"]
    assert {each["tenant"] for each in ended} == {"t000", "t001", "t002"}
    assert stage.delivered() == stage.expected()


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.postgres
def test_workers_of_another_version_are_refused(
    tmp_path: Path, platform: SandboxServer, new_database: Callable[[], StateUrl]
) -> None:
    """Clearly, and the runs wait for one that fits."""
    stage = FleetStage(tmp_path, platform, 1, new_database)
    other = tmp_path / "other" / "crossdock-9.9.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: crossdock\nVersion: 9.9\n")
    with Cluster(tmp_path, stage.environment) as cluster:
        stranger = cluster.add_worker(PYTHONPATH=str(other.parent))
        command, environment, log = soon_looking(stage, f"dask={cluster.address}")
        with SchedulerProcesses(command, log, environment={**os.environ, **environment}) as processes:
            processes.start()
            refused = "executor: this worker has crossdock 9.9, the scheduler has "
            processes.until(lambda: refused in processes.log)
            assert stage.effects() == []
            stranger.kill()
            cluster.add_worker()
            settled(stage)
    assert stage.delivered() == stage.expected()


def test_what_is_wrong_with_the_options_is_said(tmp_path: Path, platform: SandboxServer) -> None:
    """With exit 2."""
    stage = FleetStage(tmp_path, platform, 1)
    for options, said in (
        (["schedule", "--executor", "spark"], "no executor is called 'spark'"),
        (["schedule", "--executor", "dask=tcp://127.0.0.1:1"], "is a file of one host"),
        (["schedule", "--once", "2026-01-01"], "--once does not go with --fleet"),
        (["schedule", "--listen", "0"], "--listen does not go with --fleet"),
        (["check", "--openapi", "x.json"], "--openapi does not go with --fleet"),
    ):
        done = run(stage, *options)
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    alone = in_process(stage.base, "-C", str(stage.config("t000")), "schedule", "--executor", "threads", environment={})
    assert (alone.exit_code, "--executor applies to a fleet" in alone.stderr) == (2, True)
    many = in_process(stage.base, "-C", str(stage.config("t000")), "schedule", "--at-once", "17", environment={})
    assert (many.exit_code, "at most 16 for one config" in many.stderr) == (2, True)
    page = in_process(stage.base, "runs", "-o", str(tmp_path / "x.html"), environment={})
    assert (page.exit_code, "-o is for --fleet" in page.stderr) == (2, True)
    nowhere = in_process(stage.base, "runs", "--fleet", str(tmp_path / "nowhere"), environment={})
    assert (nowhere.exit_code, "there is no such folder or file" in nowhere.stderr) == (2, True)


def test_all_tenants_are_shown_and_those_that_cannot_be_read_do_not_hide_them(
    tmp_path: Path, platform: SandboxServer
) -> None:
    """As tables and as JSON."""
    stage = FleetStage(tmp_path, platform, 3)
    invoices = stage.folder / "out" / "t001" / "INV1.csv"
    invoices.write_text(invoices.read_text() + "9;C7;P0;1;1.5\n10;C0;P0;many;1.5\n")
    for name in stage.names[:2]:
        done = in_process(stage.base, "-C", str(stage.config(name)), "sync", environment=stage.environment)
        assert done.exit_code in {0, 1}, done.stderr
    (tmp_path / "t002.db").unlink()
    runs = run(stage, "runs", "--json")
    assert runs.exit_code == 3
    assert "crossdock: t002: " in runs.stderr
    assert [(each["tenant"], each["status"]) for each in json.loads(runs.stdout)] == [
        ("t001", "degraded"),
        ("t000", "done"),
    ]
    records = run(stage, "records", "list", "--json")
    assert {(each["tenant"], each["state"], each["key"]) for each in json.loads(records.stdout)} == {
        ("t001", "rejected", "10"),
        ("t001", "waiting", "9"),
    }
    table = run(stage, "records", "list")
    assert "tenant" in table.stdout
    assert "1 rejected, 1 waiting" in table.stdout
    shown = run(stage, "runs", "-o", str(tmp_path / "fleet.html"))
    assert "t000" in shown.stdout
    page = (tmp_path / "fleet.html").read_text()
    assert "<h1>3 tenants</h1>" in page
    assert page.index(">t002:") < page.index(">t001<") < page.index(">t000<")
    preview = run(stage, "schedule", "--preview", "2", "--json")
    assert {each["tenant"] for each in json.loads(preview.stdout)} == {"t000", "t001"}


def test_states_of_all_tenants_are_created_and_checked(tmp_path: Path, platform: SandboxServer) -> None:
    """Those that exist stay as they are."""
    stage = FleetStage(tmp_path, platform, 2)
    (tmp_path / "t001.db").unlink()
    checked = run(stage, "check")
    assert checked.exit_code == 3
    assert "FAIL  t001: state: " in checked.stdout
    made = run(stage, "init", "--json")
    assert [(each["tenant"], each["made"]) for each in json.loads(made.stdout)] == [("t000", False), ("t001", True)]
    assert run(stage, "check").exit_code == 0
    assert {each["ok"] for each in json.loads(run(stage, "check", "--json").stdout)["findings"]} == {True}
