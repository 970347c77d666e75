"""A nightly sync in Airflow, Dagster and Prefect: ``pytest tests/long/test_orchestrators.py -n 0 -rP``, ten minutes.

The packages are installed from PyPI into environments of the test's own; without PyPI the tests are skipped. The files
are those of the pages in ``docs/how_to/deploy``, unchanged. What was delivered is judged by the sandbox's effects log:
it must be what an undisturbed sync delivers.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.long.orchestrators.airflow_server import Airflow, airflow
from tests.long.orchestrators.dagster_instance import Dagster
from tests.long.orchestrators.environments import PAGES, ROOT, installed, own_program, page_files, write_page_files
from tests.long.orchestrators.nights import STREAMS, Night, night
from tests.long.orchestrators.prefect_server import Prefect, prefect
from tests.waiting import eventually

TRIALS = """
from datetime import timedelta
import pendulum
from airflow.sdk import DAG
from crossdock_airflow import CrossdockOperator

CONFIG = "{{ dag_run.conf['config'] }}"
AGAIN = {"retries": 60, "retry_delay": timedelta(seconds=1)}

with DAG("again"):
    CrossdockOperator(task_id="sync", config=CONFIG, **AGAIN)
with DAG("strict"):
    CrossdockOperator(task_id="sync", config=CONFIG, fail_on_open=True, **AGAIN)
with DAG("short"):
    CrossdockOperator(task_id="sync", config=[CONFIG], execution_timeout=timedelta(seconds=10))
with DAG("dated", start_date=pendulum.datetime(2026, 11, 1, tz="Europe/Berlin")):
    CrossdockOperator(task_id="sync", config=CONFIG, COMMAND)
with DAG("early"):
    CrossdockOperator(task_id="sync", config=CONFIG, command=["schedule", "--once", "2999-01-01"])
with DAG("fleet"):
    MAPPED
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Counter[str]:
    """What one sync delivers."""
    with night(tmp_path_factory.mktemp("undisturbed")) as each:
        assert each.run("sync") == 1
        return each.delivered()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Night]:
    with night(tmp_path / "night") as each:
        yield each


def replaced(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


@pytest.fixture(scope="class")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return own_program(tmp_path_factory.mktemp("program") / "bin")


@pytest.fixture(scope="class")
def nightly(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    """The night of the DAG of the page, whose config reads the key that a connection has."""
    with night(tmp_path_factory.mktemp("nightly")) as each:
        text = each.config.read_text("utf-8")
        each.config.write_text(text.replace("file:secrets/platform.key", "env:ACME_API_KEY"), "utf-8")
        yield each


@pytest.fixture(scope="class")
def running(tmp_path_factory: pytest.TempPathFactory, own: Path, nightly: Night) -> Iterator[Airflow]:
    folder = tmp_path_factory.mktemp("airflow")
    programs = installed(folder / "environment", "apache-airflow>=3.2,<4")
    home = folder / "home"
    (home / "dags").mkdir(parents=True)
    (home / "plugins").mkdir()
    write_page_files("airflow.md", home / "dags")
    (home / "dags" / "crossdock_airflow.py").rename(home / "plugins" / "crossdock_airflow.py")
    page = (PAGES / "airflow.md").read_text("utf-8")
    (command,), (mapped,) = (
        re.findall(rf"`({code}.*?)`", page) for code in (r"command=\[", r"CrossdockOperator\.partial")
    )
    mapped = replaced(mapped, '["base.yaml", "acme.yaml"]', "[CONFIG, CONFIG]")
    (home / "dags" / "trials.py").write_text(TRIALS.replace("COMMAND", command).replace("MAPPED", mapped))
    settings = {
        "AIRFLOW_VAR_CROSSDOCK_CONFIG": str(nightly.config),
        "AIRFLOW_CONN_ACME": json.dumps({"conn_type": "http", "password": nightly.api_key}),
    }
    with airflow(programs, home, own, settings) as server:
        eventually(lambda: server.has("nightly_sync") and server.has("fleet"))
        yield server
    shutil.rmtree(folder)


class TestAirflow:
    def test_the_second_night_sends_nothing(self, running: Airflow, nightly: Night, undisturbed: Counter[str]) -> None:
        """The DAG of the page runs twice; each tally is in XCom and at the asset, and the key is nowhere."""
        scheduled = running.scheduled("nightly_sync")
        first = scheduled.ended()
        assert first["state"] == "success", scheduled.log()
        assert nightly.delivered() == undisturbed
        second = running.trigger("nightly_sync")
        assert second.ended()["state"] == "success"
        assert nightly.delivered() == undisturbed

        reports = [scheduled.report(), second.report()]
        delivered = [sum(each["records"]["delivered"] for each in one["streams"].values()) for one in reports]
        assert delivered == [undisturbed.total(), 0]
        assert [list(report["streams"]) for report in reports] == [list(STREAMS)] * 2
        assert [event["extra"]["run"] for event in running.asset_events("nightly_sync")] == [1, 2]
        assert "wms.items: 59 rows read, 59 records delivered" in scheduled.log()
        assert first["rendered_fields"]["env"] == {"ACME_API_KEY": "***"}
        assert nightly.api_key not in scheduled.log()

    def test_a_killed_worker_doubles_nothing(
        self, running: Airflow, own: Path, world: Night, undisturbed: Counter[str]
    ) -> None:
        """The run of the killed task goes on; retries are told that the state is busy until it has ended."""
        world.answer_late(ms=6_000)
        task = running.trigger("again", config=str(world.config))
        world.wait_until_sending()
        (call,) = (each for each in (own / "calls").read_text().splitlines() if str(world.config) in each)
        os.kill(int(call.split()[0]), signal.SIGKILL)
        ended = task.ended()
        assert ended["state"] == "success"
        assert ended["try_number"] > 2
        assert "another run is using this state" in task.log(2)
        assert world.delivered() == undisturbed

    def test_a_task_that_is_marked_as_failed_ends_in_order(
        self, running: Airflow, world: Night, undisturbed: Counter[str]
    ) -> None:
        """Answers that were to come are stored, and the next run delivers the rest."""
        world.answer_late(ms=3_000)
        task = running.trigger("again", config=str(world.config))
        world.wait_until_sending()
        task.mark_as_failed()
        eventually(lambda: "SIGTERM: finishing requests in flight" in task.log())
        eventually(lambda: running.trigger("again", config=str(world.config)).ended()["state"] == "success")
        assert world.delivered() == undisturbed

    def test_a_timeout_ends_in_order(self, running: Airflow, world: Night, undisturbed: Counter[str]) -> None:
        """The task fails when the requests in flight are settled; nothing is in doubt, and the next run goes on."""
        world.answer_late(ms=6_000)
        task = running.trigger("short", config=str(world.config))
        assert task.ended()["state"] == "failed"
        assert "SIGTERM: finishing requests in flight" in task.log()
        assert running.trigger("again", config=str(world.config)).ended()["state"] == "success"
        assert world.delivered() == undisturbed

    def test_a_refused_input_is_not_retried(self, running: Airflow, world: Night) -> None:
        """The task fails at once, with the report of the other streams and the reason in its log."""
        world.damage()
        task = running.trigger("again", config=str(world.config))
        ended = task.ended()
        assert (ended["state"], ended["try_number"]) == ("failed", 1)
        assert task.report()["streams"]["wms.bins"]["records"]["delivered"] == 30
        assert "crossdock ended with exit code 4: " in task.log()
        assert "ITEMS_20261101.txt" in task.log()

    def test_rejected_records_fail_a_strict_task(
        self, running: Airflow, world: Night, undisturbed: Counter[str]
    ) -> None:
        """With ``fail_on_open`` the task fails without a retry, when all else is delivered."""
        task = running.trigger("strict", config=str(world.config))
        ended = task.ended()
        assert (ended["state"], ended["try_number"]) == ("failed", 1)
        assert task.report()["open"]["rejected"] == 1
        assert world.delivered() == undisturbed

    def test_a_job_runs_for_a_date(self, running: Airflow, world: Night) -> None:
        """A run that was started by hand has a date in the time zone of the DAG; what is not due is skipped."""
        task = running.trigger("dated", config=str(world.config))
        assert task.ended()["state"] == "success", task.log()
        assert task.facts()["rendered_fields"]["command"][2] == task.report()["business_date"]
        assert running.trigger("early", config=str(world.config)).ended()["state"] == "skipped"

    def test_a_fleet_is_a_mapped_task(self, running: Airflow, world: Night, undisturbed: Counter[str]) -> None:
        """Its task instances have several config files each."""
        tenants = running.trigger("fleet", config=str(world.config))
        assert tenants.run_state() == "success"
        assert world.delivered() == undisturbed


@pytest.fixture(scope="class")
def dagster_programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("dagster")
    yield installed(folder / "environment", "dagster>=1.12,<2", str(ROOT))
    shutil.rmtree(folder)


@pytest.fixture
def dagster(dagster_programs: Path, world: Night, tmp_path: Path) -> Iterator[Dagster]:
    """An instance with the files of the page; ``trials.py`` are its definitions with retries after a second."""
    home = tmp_path / "dagster"
    home.mkdir()
    write_page_files("dagster.md", home)
    definitions = page_files("dagster.md")["definitions.py"]
    (home / "trials.py").write_text(replaced(definitions, "max_retries=3, delay=300", "max_retries=60, delay=1"))
    with Dagster(dagster_programs, home, world.config) as instance:
        yield instance


class TestDagster:
    def test_the_second_night_sends_nothing(self, dagster: Dagster, world: Night, undisturbed: Counter[str]) -> None:
        """The job of the page runs twice; each stream's asset has the tally of both runs and a check."""
        for _ in range(2):
            assert dagster.start("definitions.py").wait() == 0
            assert world.delivered() == undisturbed
        stored = dagster.stored()
        assert stored["assets"].keys() == {f"acme/{stream.replace('.', '/')}" for stream in STREAMS}
        counted = [each["materializations"] for each in stored["assets"].values()]
        assert [sum(each[run]["delivered"] for each in counted) for run in (0, 1)] == [undisturbed.total(), 0]
        assert stored["assets"]["acme/wms/items"]["materializations"][0]["rows"] == 59
        assert stored["assets"]["acme/wms/items"]["checks"] == ["SUCCEEDED", "SUCCEEDED"]
        assert stored["assets"]["acme/wms/invoices"]["checks"] == ["FAILED", "FAILED"]  # a rejected record
        assert stored["assets"]["acme/wms/invoices"]["materializations"][1]["rejected"] == 1
        lines = [line for run in stored["runs"] for line in run["log"]]
        assert any("run 1: degraded" in line for line in lines)  # of the logger of crossdock
        assert not any(world.api_key in line for line in lines)

    def test_a_busy_state_is_retried(self, dagster: Dagster, world: Night, undisturbed: Counter[str]) -> None:
        """A run that meets another one is told, and repeated until that one has ended."""
        with world.in_use():
            job = dagster.start("trials.py")
            eventually(lambda: any(run["retries"] for run in dagster.stored()["runs"]))
        assert job.wait() == 0
        (run,) = dagster.stored()["runs"]
        assert any("another run is using this state" in line for line in run["log"])
        assert world.delivered() == undisturbed

    def test_a_terminated_run_ends_in_order(self, dagster: Dagster, world: Night, undisturbed: Counter[str]) -> None:
        """It settles the requests in flight, and the next run delivers the rest."""
        world.answer_late(ms=3_000)
        job = dagster.start("definitions.py")
        world.wait_until_sending()
        job.terminate()
        assert job.wait() != 0
        assert world.ended_in_order()
        assert dagster.start("definitions.py").wait() == 0
        assert world.delivered() == undisturbed

    def test_a_refused_input_is_not_retried(self, dagster: Dagster, world: Night) -> None:
        """The step fails at once, after the other streams are materialized."""
        world.damage()
        assert dagster.start("trials.py").wait() != 0
        stored = dagster.stored()
        (run,) = stored["runs"]
        assert (run["status"], run["retries"]) == ("FAILURE", 0)
        assert any("ITEMS_20261101.txt" in line for line in run["log"])
        assert stored["assets"]["acme/wms/bins"]["materializations"][0]["delivered"] == 30
        assert stored["assets"]["acme/wms/items"]["materializations"] == []

    def test_loading_the_definitions_imports_no_engine(self, dagster: Dagster) -> None:
        """Of crossdock only its first module is imported before a run, and polars is not."""
        code = "import sys, definitions; print(*sys.modules)"
        imported = dagster.python("-c", code).split()
        assert [each for each in imported if each.startswith(("crossdock.", "polars"))] == []


@pytest.fixture(scope="class")
def prefect_running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prefect]:
    folder = tmp_path_factory.mktemp("prefect")
    programs = installed(folder / "environment", "prefect>=3.4,<4", str(ROOT))
    home = folder / "home"
    home.mkdir()
    write_page_files("prefect.md", home)
    flow = page_files("prefect.md")["crossdock_prefect.py"]
    flow = replaced(flow, "retries=3, retry_delay_seconds=300", "retries=60, retry_delay_seconds=1")
    flow = replaced(flow, '.serve("nightly"', '.serve("quick"')
    (home / "quick.py").write_text(flow)
    with prefect(programs, home) as server:
        yield server
    shutil.rmtree(folder)


class TestPrefect:
    def test_the_second_night_sends_nothing(
        self, prefect_running: Prefect, world: Night, undisturbed: Counter[str]
    ) -> None:
        """The served flow of the page runs twice; an artifact of each run has the tally of each stream."""
        runs = []
        for _ in range(2):
            runs.append(prefect_running.start("nightly", world.config))
            assert prefect_running.ended(runs[-1]) == "COMPLETED", prefect_running.log(runs[-1])
            assert world.delivered() == undisturbed
        tables = [json.loads(prefect_running.artifact(run)["data"]) for run in runs]
        assert [sum(row["delivered"] for row in table) for table in tables] == [undisturbed.total(), 0]
        assert [[row["stream"] for row in table] for table in tables] == [list(STREAMS)] * 2
        assert prefect_running.artifact(runs[0])["key"] == "crossdock-crossdock"  # after the file
        assert "open: 1 rejected" in prefect_running.log(runs[0])
        assert "run 1: degraded" in prefect_running.log(runs[0])  # of the logger of crossdock
        assert not any(world.api_key in prefect_running.log(run) for run in runs)

    def test_a_busy_state_is_retried(self, prefect_running: Prefect, world: Night, undisturbed: Counter[str]) -> None:
        """A run that meets another one is told, and repeated until that one has ended."""
        with world.in_use():
            run = prefect_running.start("quick", world.config)
            eventually(lambda: "another run is using this state" in prefect_running.log(run))
        assert prefect_running.ended(run) == "COMPLETED", prefect_running.log(run)
        assert prefect_running.task(run)["run_count"] > 1
        assert world.delivered() == undisturbed

    def test_a_cancelled_run_ends_in_order(
        self, prefect_running: Prefect, world: Night, undisturbed: Counter[str]
    ) -> None:
        """It settles the requests in flight, and the next run delivers the rest."""
        world.answer_late(ms=3_000)
        run = prefect_running.start("nightly", world.config)
        world.wait_until_sending()
        prefect_running.cancel(run)
        assert prefect_running.ended(run) == "CANCELLED"
        assert world.ended_in_order()
        run = prefect_running.start("nightly", world.config)
        assert prefect_running.ended(run) == "COMPLETED", prefect_running.log(run)
        assert world.delivered() == undisturbed

    def test_a_refused_input_is_not_retried(self, prefect_running: Prefect, world: Night) -> None:
        """The task fails at once; its artifact has the tally of the other streams."""
        world.damage()
        run = prefect_running.start("quick", world.config)
        assert prefect_running.ended(run) == "FAILED"
        assert prefect_running.task(run)["run_count"] == 1
        eventually(lambda: "ITEMS_20261101.txt" in prefect_running.log(run))  # logs are sent in the background
        rows = {row["stream"]: row["delivered"] for row in json.loads(prefect_running.artifact(run)["data"])}
        assert rows["wms.bins"] == 30
