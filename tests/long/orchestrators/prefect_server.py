"""Prefect as users run it: a server, and the served flow of the page in a process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.long.orchestrators.environments import process, variables
from tests.servers import free_port
from tests.waiting import eventually

_TRIES = 10  # a server whose SQLite database is locked for too long answers 503
_ENDED = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


class Prefect:
    """A running Prefect, seen through its API."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def found(self, what: str, **filters: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._post(f"{what}/filter", filters)
        return found

    def start(self, deployment: str, config: Path) -> str:
        """Start a run of the flow by hand, as the UI does. Return its id."""
        chosen = {"name": {"any_": [deployment]}}
        eventually(lambda: bool(self.found("deployments", deployments=chosen)))
        (one,) = self.found("deployments", deployments=chosen)
        body = {"parameters": {"config": str(config)}, "state": {"type": "SCHEDULED", "name": "Scheduled"}}
        return str(self._post(f"deployments/{one['id']}/create_flow_run", body)["id"])

    def cancel(self, run: str) -> None:
        self._post(f"flow_runs/{run}/set_state", {"state": {"type": "CANCELLING", "name": "Cancelling"}})

    def ended(self, run: str) -> str:
        """Wait for the end of a flow run. Return its state."""
        eventually(lambda: self._state(run) in _ENDED)
        return self._state(run)

    def task(self, run: str) -> dict[str, Any]:
        (task,) = self.found("task_runs", flow_runs={"id": {"any_": [run]}})
        return task

    def artifact(self, run: str) -> dict[str, Any]:
        (artifact,) = self.found(
            "artifacts", flow_runs={"id": {"any_": [run]}}, artifacts={"type": {"any_": ["table"]}}
        )
        return artifact

    def log(self, run: str) -> str:
        lines = self.found("logs", logs={"flow_run_id": {"any_": [run]}})
        return "\n".join(line["message"] for line in lines)

    def _state(self, run: str) -> str:
        return str(self._client.get(f"/api/flow_runs/{run}").raise_for_status().json()["state"]["type"])

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        for _ in range(_TRIES):
            answer = self._client.post(f"/api/{path}", json=body)
            if answer.status_code != 503:
                break
        return answer.raise_for_status().json()


@contextmanager
def prefect(programs: Path, home: Path) -> Iterator[Prefect]:
    """Run a server, and serve the flows of ``crossdock_prefect.py`` and ``quick.py`` in *home*."""
    port = str(free_port())
    url = f"http://127.0.0.1:{port}"
    environment = variables(
        PREFECT_HOME=str(home / "prefect"),
        PREFECT_API_URL=f"{url}/api",
        PREFECT_RUNNER_POLL_FREQUENCY="1",
        PREFECT_SERVER_ANALYTICS_ENABLED="false",
        PREFECT_LOGGING_EXTRA_LOGGERS="crossdock",
    )
    serve = [str(programs / "prefect"), "server", "start", "--host", "127.0.0.1", "--port", port]
    fresh = httpx.Limits(max_keepalive_connections=0)  # a slow server closes idle ones while they are used again
    with (
        httpx.Client(base_url=url, trust_env=False, timeout=60, limits=fresh) as client,
        process(serve, environment, home),
    ):
        eventually(lambda: _answers(client))
        python = str(programs / "python")
        with (
            process([python, "crossdock_prefect.py"], environment, home),
            process([python, "quick.py"], environment, home),
        ):
            yield Prefect(client)


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/api/health").is_success
    except httpx.HTTPError:
        return False
