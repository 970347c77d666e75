"""``crossdock schedule`` with an invalid config, an unusable state or a full disk: it reports it and continues."""

from __future__ import annotations

import re
import resource
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import httpx
import pytest
from tests.chaos.processes import CROSSDOCK
from tests.chaos.soon_asking import SOON_ASKING
from tests.e2e.processes import SchedulerProcesses
from tests.e2e.warehouse import CUSTOMERS, INVOICES, PRODUCTS, Site, expected
from tests.integration.scheduler.scheduled_runs_race import Inline
from tests.servers import require
from tests.waiting import WITHIN_S

from crossdock.config.project import project
from crossdock.services.scheduler.scheduler import Scheduler, WorkerPool
from crossdock.state import DueRun
from crossdock.testing.postgres_server import PostgresServer
from crossdock.values.clock import SystemClock

EVERY_SECOND = "{time_zone: UTC, every: 1s}"
NIGHTLY = "{time_zone: Europe/Berlin, at: '02:30'}"
DONE = ": done after"
UNWELL = re.compile("nightly for [0-9-]+: (failed|incomplete) after")
MANY = INVOICES + "".join(f"{number};C1;P1;{number};1.50;EUR\n" for number in range(4, 304))
LARGEST = 6 << 20  # bytes; the state's log must fit


# ---- invalid configs


@pytest.mark.parametrize(
    ("jobs", "place", "said"),
    [
        pytest.param(
            "  a: {schedule: {time_zone: Europe/Berln, at: '02:30'}}",
            "time_zone: Europe",
            "jobs.a.schedule.time_zone: 'Europe/Berln' is not an IANA time zone known to this machine; "
            "did you mean Europe/Berlin or Europe/Belfast or Europe/Helsinki?",
            id="unknown zone",
        ),
        pytest.param(
            "  a: {schedule: {time_zone: Europe/Berlin, at: '02:30', holidays: ['2026-02-30']}}",
            "holidays",
            "jobs.a.schedule.holidays: '2026-02-30' is not a date such as 2026-12-25",
            id="impossible date",
        ),
        pytest.param(
            "  a: {schedule: {time_zone: Europe/Berlin, at: '02:30', holidays: [2026-02-30]}}",
            "2026-02-30",
            "looks like a date or a number, but is not one: quote it",
            id="impossible date without quotes",
        ),
        pytest.param(
            "  a: {schedule: {time_zone: Europe/Berlin, at: '25:30'}}",
            "at: '25",
            'jobs.a.schedule.at: \'25:30\' is not a time from "00:00" to "23:59" '
            "(in quotes, or YAML makes the number 870 of 14:30)",
            id="impossible time",
        ),
        pytest.param(
            f"  a: {{schedule: {NIGHTLY}, after: [b]}}\n  b: {{schedule: {NIGHTLY}, after: [a]}}",
            "",
            "jobs wait for each other: a -> b -> a",
            id="two jobs wait for each other",
        ),
        pytest.param(
            f"  a: {{schedule: {NIGHTLY}, after: [a]}}",
            "",
            "jobs wait for each other: a -> a",
            id="a job waits for itself",
        ),
        pytest.param(
            f"  a: {{schedule: {NIGHTLY}, after: [nightli]}}\n  nightly: {{schedule: {NIGHTLY}}}",
            "",
            "job 'a' is set to run after 'nightli': unknown key; did you mean 'nightly'?",
            id="after a job that is not there",
        ),
        pytest.param(
            f"  a:\n    schedule: {NIGHTLY}\n    schedule: {EVERY_SECOND}",
            f"schedule: {EVERY_SECOND}",
            "the key 'schedule' is repeated",
            id="two schedules",
        ),
        pytest.param(
            f"  a: {{schedule: {NIGHTLY}}}\n  a: {{schedule: {EVERY_SECOND}}}",
            f"a: {{schedule: {EVERY_SECOND}",
            "the key 'a' is repeated",
            id="two jobs of one name",
        ),
        pytest.param(
            f"  a:\n    schedule: [{NIGHTLY}, {EVERY_SECOND}]",
            "schedule: [",
            "jobs.a.schedule: must be a section of keys",
            id="a list of schedules",
        ),
        pytest.param(
            "  a:\n    schedule: {time_zone: Europe/Berlin, at: '02:30', every: 1h}",
            "schedule: {",
            "jobs.a.schedule: needs exactly one of at, every and cron",
            id="at and every",
        ),
        pytest.param(
            f"  a: {{streams: [wms.custmers], schedule: {NIGHTLY}}}",
            "streams: [wms.",
            "no stream or connection is called 'wms.custmers'; did you mean 'wms.customers'?",
            id="unknown stream",
        ),
    ],
)
def test_what_cannot_be_scheduled_is_refused_at_start(site: Site, jobs: str, place: str, said: str) -> None:
    """Exit 2 and one error with its position, before the state is opened or made."""
    site.config.write_text(f"{site.config.read_text()}jobs:\n{jobs}\n")
    result = site.run("schedule")
    assert (result.code, result.out) == (2, "")
    where = site.place(place, within="\njobs:") if place else f"{site.config}:1:1"
    assert re.fullmatch(rf"{re.escape(f'crossdock: {where}: {said}')} \[(config_\w+|stream_unknown)\]\n", result.err)
    assert not (site.folder / "state.db").exists()


@pytest.mark.parametrize("day", ["2026-02-30", "2026-13-01", "tomorrow", "30.02.2026", ""])
def test_an_impossible_date_is_refused(site: Site, day: str) -> None:
    """Exit 2, and what a date looks like."""
    site.config.write_text(f"{site.config.read_text()}jobs:\n  a: {{schedule: {NIGHTLY}}}\n")
    site.init()
    result = site.run("schedule", "--once", day)
    assert result.code == 2
    first = f"crossdock: --once {day!r} is not a date [option_value_invalid]"
    assert result.err == f"{first}\n  For example: --once 2026-11-20, or --once latest\n"


def test_a_missing_state_is_reported_at_once(site: Site) -> None:
    """``--once`` and ``--preview`` end with exit 3 and say how it is made."""
    site.config.write_text(f"{site.config.read_text()}jobs:\n  a: {{schedule: {NIGHTLY}}}\n")
    for option in (("--once", "2026-11-20"), ("--preview", "1")):
        result = site.run("schedule", *option)
        assert result.code == 3
        assert result.err.startswith(
            f"crossdock: sqlite:///{site.folder}/state.db: there is no state here [state_missing]\n"
        )
        assert "create it with 'crossdock init'" in result.err


def test_a_job_that_another_config_has_run_is_not_done(site: Site) -> None:
    """A config was copied with its state and its job: the second one has never read its own sources, and says so."""
    site.config.write_text(f"{site.config.read_text()}jobs:\n  a: {{schedule: {NIGHTLY}}}\n")
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    copied = site.folder / "copied.yaml"
    copied.write_text(site.config.read_text().replace("\n  wms:\n", "\n  other:\n"))
    assert site.run("schedule", "--once", "latest").code == 0
    result = site.run("schedule", "-C", str(copied), "--once", "latest")
    assert result.code == 2
    assert "was of another config: its streams were wms." in result.err
    assert "[fleet_state_shared]" in result.err
    assert site.run("schedule", "--once", "latest").err.endswith(": has already been run\n")


# ---- a service that is stopped


def test_a_run_that_was_stopped_is_started_again(site: Site) -> None:
    """After SIGTERM in the middle of a load, as at an update, the next process starts the same run again."""
    due = datetime.now(UTC) - timedelta(hours=1)
    schedule = f"{{time_zone: UTC, at: '{due:%H:%M}', catch_up: all}}"
    site.config.write_text(f"{site.config.read_text()}jobs:\n  nightly: {{schedule: {schedule}}}\n")
    site.init()
    with closing(project.load(site.config).open_state()) as state, state.begin() as tx:
        tx.scheduled_runs.get_or_register_first_seen("nightly", due - timedelta(hours=1))
    site.export("CUST_1.csv", CUSTOMERS)
    site.export("PROD_1.csv", PRODUCTS)
    site.export("INV_1.csv", MANY)
    command = [*CROSSDOCK, "-C", str(site.config), "schedule"]
    with SchedulerProcesses(command, site.folder / "schedule.log") as processes:
        processes.start()
        processes.until(lambda: len(site.effects()) >= 50)
        assert processes.stop() == [0]
    assert len(site.effects()) < 4 + expected(MANY).total(), "it had ended before it was stopped"
    asked: list[DueRun] = []
    loaded = project.load(site.config)
    workers = WorkerPool(Inline())
    scheduler = Scheduler(loaded, SystemClock(), lambda _, due_run: asked.append(due_run), lambda _: None, workers)
    scheduler.report_ended_or_start_due()
    scheduler.close()
    assert [due_run.business_date for due_run in asked] == [due.date()]


# ---- a service in trouble


class Watched(SchedulerProcesses):
    """A scheduler process whose job is due every second, with its health page."""

    def __init__(self, site: Site, *options: str, **facts: object) -> None:
        command = [*SOON_ASKING, "-C", str(site.config), "schedule", "--health", "0", *options]
        super().__init__(command, site.folder / "schedule.log", **facts)  # type: ignore[arg-type]  # passed on as they are

    def __enter__(self) -> Self:
        self.start()
        self.until(lambda: self.said(DONE) > 0)
        return self

    @property
    def base_url(self) -> str:
        return self.log.partition("serving ")[2].split()[0]

    def ready(self) -> tuple[int, str]:
        """What ``/readyz`` says."""
        answer = self.get()
        return answer.status_code, answer.text.strip()

    def get(self, **headers: str) -> httpx.Response:
        return httpx.get(f"{self.base_url}/readyz", headers=headers, trust_env=False)


def every_second(site: Site, **edits: str) -> None:
    """A job that is due every second; *edits* are top-level keys of the config."""
    for key, value in edits.items():
        if key == "state":
            site.edit("sqlite:///state.db", value)
        else:
            site.config.write_text(f"{site.config.read_text()}{key}: {value}\n")
    site.config.write_text(f"{site.config.read_text()}jobs:\n  nightly: {{schedule: {EVERY_SECOND}}}\n")
    site.init()


def assert_well(site: Site, processes: Watched, invoices: str = INVOICES) -> None:
    """The next run starts, delivers everything, and the service ends normally."""
    until_well(site, processes, invoices)
    assert_ends_well(site, processes, invoices)


def until_well(site: Site, processes: Watched, invoices: str = INVOICES) -> None:
    """Wait until everything is delivered, another run is done and the service is ready."""
    everything = 4 + expected(invoices).total()
    processes.until(lambda: len(site.effects()) >= everything)
    processes.says(DONE)
    processes.until(lambda: processes.ready() == (200, "ready"))


def assert_ends_well(site: Site, processes: Watched, invoices: str = INVOICES) -> None:
    """The service ends normally, everything was delivered once, and nothing is left to do."""
    assert processes.stop() == [0]
    site.assert_everything_once(invoices)
    assert site.sync().json["requests"] == 0


@pytest.mark.nightly
def test_the_health_page_answers_to_the_names_that_are_allowed(site: Site) -> None:
    """To this machine's, and to those of --allow-host; to no other."""
    every_second(site)
    with Watched(site, "--allow-host", "metrics.example", "--allow-host", "localhost:19464") as processes:
        for host, status in {"metrics.example": 200, "localhost:19464": 200, "rebound.example": 403}.items():
            assert processes.get(host=host).status_code == status
        assert processes.stop() == [0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--allow-host", "metrics.example"),
            """\
--allow-host applies to the health endpoints and the console, which are not served [options_conflict]
  Add --health PORT or --console PORT.""",
        ),
        (
            ("--health", "0", "--allow-host", "http://metrics.example"),
            """\
--allow-host: 'http://metrics.example' is not a valid host [option_value_invalid]
  Use HOST or HOST:PORT, for example metrics.example.com:9464.""",
        ),
    ],
)
def test_an_invalid_allowed_host_is_refused(site: Site, options: tuple[str, ...], said: str) -> None:
    """Exit 2 before anything runs, with what is expected."""
    every_second(site)
    result = site.run("schedule", *options)
    assert (result.code, result.err.partition("crossdock: ")[2]) == (2, f"{said}\n")


@pytest.mark.nightly
def test_half_open_connections_to_the_health_page_do_not_starve_a_run(site: Site) -> None:
    """With 300 of them and a limit of 256 files, the next runs start and the page still answers."""
    every_second(site)
    with Watched(site, limits={resource.RLIMIT_NOFILE: 256}) as processes, ExitStack() as stack:
        address = urlsplit(processes.base_url)
        for half in [b"", b"GET /readyz HTTP/1.1\r\nHost: "] * 150:
            wire = socket.create_connection((str(address.hostname), address.port or 0), timeout=WITHIN_S)
            stack.callback(wire.close)
            wire.sendall(half)
        processes.until(lambda: processes.ready() == (200, "ready"))
        site.fill()
        until_well(site, processes)
        # A run that is stopped with the service is incomplete too, so the log is searched before.
        assert not UNWELL.search(processes.log)
        assert_ends_well(site, processes)
        assert "Too many open files" not in processes.log


def test_a_sqlite_state_that_goes_away_comes_back(site: Site) -> None:
    """It is logged and shown by health; when the state is back the next run starts, and nothing is done twice."""
    every_second(site, state="sqlite:///kept/state.db")
    state, away = site.folder / "kept", site.folder / "away"
    with Watched(site) as processes:
        state.rename(away)
        site.fill()
        processes.until(lambda: "there is no state here" in processes.log)
        processes.until(lambda: processes.ready()[0] == 503)
        assert "state: sqlite:///" in processes.ready()[1]
        assert site.effects() == []
        away.rename(state)
        assert_well(site, processes)


class StoppablePostgres(PostgresServer):
    """A server that can be stopped and started again on its port, with what it holds."""

    def stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(self.end_signal)
        self._process.wait()

    def restart(self) -> None:
        with (self.place / "log").open("ab") as log:
            self._process = subprocess.Popen(self.command(), stdout=log, stderr=log, cwd=self.place, **self.switch)


@pytest.mark.nightly
@pytest.mark.postgres
def test_a_postgresql_that_is_stopped_comes_back(site: Site) -> None:
    """It is logged and shown by health; when the server is back the next run starts, and nothing is done twice."""
    require(PostgresServer.available(), "PostgreSQL")
    with StoppablePostgres() as server:
        every_second(site, state=server.create_database())
        with Watched(site) as processes:
            server.stop()
            site.fill()
            processes.until(lambda: "the state cannot be used" in processes.log)
            processes.until(lambda: "Connection refused" in processes.ready()[1])
            assert processes.ready()[0] == 503
            server.restart()
            assert_well(site, processes)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A disk mounted at *folder*; skips the test if this machine does not allow it."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill_up(disk: Path) -> Path:
    """Take all that is free; the file that holds it."""
    filler, size = disk / "filler", 1 << 20
    with filler.open("wb", buffering=0) as file:
        while size:
            try:
                file.write(b"x" * size)
            except OSError:
                size //= 2
    return filler


@pytest.mark.nightly
def test_a_full_disk_under_the_state_fails_the_run(site: Site, tmp_path: Path) -> None:
    """In the middle of a load: it is logged, and when there is room again a run delivers the rest, once."""
    with small_disk(tmp_path / "disk", 24) as disk:
        every_second(site, state="sqlite:///disk/state.db", spool="spool")
        with Watched(site) as processes:
            site.export("INV_1.csv", MANY)
            site.export("PROD_1.csv", PRODUCTS)
            site.export("CUST_1.csv", CUSTOMERS)
            processes.until(lambda: len(site.effects()) >= 50)
            filler = fill_up(disk)
            full = f"sqlite:///{disk}/state.db: the state cannot be used: database or disk is full"
            processes.until(lambda: processes.said(full) > 0)
            assert UNWELL.search(processes.log)
            filler.unlink()
            assert_well(site, processes, MANY)


@pytest.mark.nightly
def test_a_full_disk_under_the_spool_fails_the_run(site: Site, tmp_path: Path) -> None:
    """It is logged; when there is room again the next run starts, and nothing is done twice."""
    with small_disk(tmp_path / "disk", 4) as disk:
        every_second(site, spool="disk/spool")
        with Watched(site) as processes:
            filler = fill_up(disk)
            site.fill()
            processes.until(lambda: "No space left on device" in processes.log)
            assert UNWELL.search(processes.log)
            filler.unlink()
            assert_well(site, processes)


@pytest.mark.nightly
def test_a_file_beyond_the_size_limit_fails_the_run(site: Site) -> None:
    """An export larger than the largest file that may be written: it is logged, and the next run reads what fits."""
    every_second(site)
    with Watched(site, limits={resource.RLIMIT_FSIZE: LARGEST}) as processes:
        site.export("INV_1.csv", INVOICES + "#" * LARGEST)
        processes.until(lambda: "File too large" in processes.log)
        assert UNWELL.search(processes.log)
        site.fill()
        assert_well(site, processes)
