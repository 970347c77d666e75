"""Airflow as users run it: an API server, a scheduler and a DAG processor, on a SQLite file."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.long.orchestrators.environments import process, variables
from tests.servers import free_port
from tests.waiting import WITHIN_S, eventually

_SETTINGS = {
    "API__HOST": "127.0.0.1",
    "API__WORKERS": "1",
    "API_AUTH__JWT_SECRET": secrets.token_hex(32),
    "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
    "CORE__LOAD_EXAMPLES": "False",
    "CORE__PARALLELISM": "2",
    "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
    "SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_SEC": "1",
    "USAGE_DATA_COLLECTION__ENABLED": "False",
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """The task ``sync`` of one DAG run, by the address of the run in the API."""

    client: httpx.Client
    run: str

    @property
    def address(self) -> str:
        return f"{self.run}/taskInstances/sync"

    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(self.address).raise_for_status().json()
        return found

    def ended(self) -> dict[str, Any]:
        self.run_state()
        return self.facts()

    def run_state(self) -> str:
        """Wait for the end of the DAG run. Return its state."""
        answer = self.client.get(f"{self.run}/wait", params={"interval": 1}, timeout=WITHIN_S).raise_for_status()
        return str(json.loads(answer.text.splitlines()[-1])["state"])

    def report(self) -> dict[str, Any]:
        answer = self.client.get(f"{self.address}/xcomEntries/report").raise_for_status()
        value: dict[str, Any] = answer.json()["value"]
        return value

    def log(self, number: int = 1) -> str:
        lines = self.client.get(f"{self.address}/logs/{number}").raise_for_status().json()["content"]
        return "\n".join(str(line.get("event", line)) + str(line.get("error_detail", "")) for line in lines)

    def mark_as_failed(self) -> None:
        self.client.patch(self.address, json={"new_state": "failed"}).raise_for_status()


class Airflow:
    """A running Airflow, seen through its API."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def has_api(self) -> bool:
        try:
            token = self.client.get("/auth/token").json()["access_token"]
        except (httpx.HTTPError, ValueError):
            return False
        self.client.headers["authorization"] = f"Bearer {token}"
        return True

    def has(self, dag: str) -> bool:
        return self.client.get(f"/api/v2/dags/{dag}").is_success

    def trigger(self, dag: str, **conf: str) -> Attempt:
        """Start a DAG run by hand, as the UI does. Return its task ``sync``."""
        body = {"logical_date": None, "conf": conf}
        answer = self.client.post(f"/api/v2/dags/{dag}/dagRuns", json=body).raise_for_status()
        return self._task(dag, answer.json()["dag_run_id"])

    def scheduled(self, dag: str) -> Attempt:
        """Wait for the first run of the schedule. Return its task ``sync``."""
        eventually(lambda: bool(self._runs(dag)))
        return self._task(dag, self._runs(dag)[0]["dag_run_id"])

    def _runs(self, dag: str) -> list[dict[str, Any]]:
        runs: list[dict[str, Any]] = self.client.get(f"/api/v2/dags/{dag}/dagRuns").json()["dag_runs"]
        return runs

    def _task(self, dag: str, run: str) -> Attempt:
        return Attempt(self.client, f"/api/v2/dags/{dag}/dagRuns/{run}")

    def asset_events(self, source: str) -> list[dict[str, Any]]:
        query = {"source_dag_id": source, "order_by": "timestamp"}
        events: list[dict[str, Any]] = self.client.get("/api/v2/assets/events", params=query).json()["asset_events"]
        return events


@contextmanager
def airflow(programs: Path, home: Path, own: Path, settings: Mapping[str, str]) -> Iterator[Airflow]:
    """Run Airflow on the ``dags`` and ``plugins`` of *home*. *own* has the program ``crossdock``."""
    program, port = str(programs / "airflow"), free_port()
    url = f"http://127.0.0.1:{port}"
    own_settings = _SETTINGS | {"API__PORT": str(port), "CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/"}
    environment = variables(
        AIRFLOW_HOME=str(home),
        PATH=os.pathsep.join([str(programs), str(own), os.environ["PATH"]]),
        **{f"AIRFLOW__{name}": text for name, text in own_settings.items()},
        **settings,
    )
    subprocess.run([program, "db", "migrate"], check=True, env=environment, capture_output=True)
    with ExitStack() as opened:
        running = Airflow(opened.enter_context(httpx.Client(base_url=url, trust_env=False, timeout=60)))
        opened.enter_context(process([program, "api-server"], environment, home))
        eventually(running.has_api)  # a task that begins before waits for its retry
        opened.enter_context(process([program, "scheduler", "--skip-serve-logs"], environment, home))
        opened.enter_context(process([program, "dag-processor"], environment, home))
        yield running
