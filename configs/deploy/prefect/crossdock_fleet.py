"""A flow for Prefect 3: the jobs of each tenant of a fleet as one task."""

from __future__ import annotations

import subprocess
from pathlib import Path

from prefect import flow, task
from prefect.futures import wait
from prefect.task_runners import ThreadPoolTaskRunner

BASE, TENANTS = Path("/etc/crossdock/base.yaml"), Path("/etc/crossdock/tenants")


@task(retries=2, retry_delay_seconds=300, task_run_name="{tenant.stem}")
def run_tenant(tenant: Path, day: str) -> None:
    """Run the jobs of a tenant for a business date; an exit code other than 0 fails the task, and it is tried again."""
    command = ["crossdock", "-C", str(BASE), "-C", str(tenant), "schedule", "--once", day]
    subprocess.run(command, check=True)  # noqa: S603  a list of arguments, without a shell


@flow(task_runner=ThreadPoolTaskRunner(max_workers=4))
def crossdock_fleet(day: str = "latest") -> None:
    """Run what was due last for all tenants, or what was due for a date; it fails if one of them failed."""
    futures = [run_tenant.submit(path, day) for path in sorted(TENANTS.glob("*.yaml"))]
    wait(futures)
    for future in futures:
        future.result()


if __name__ == "__main__":
    crossdock_fleet.serve(name="nightly", cron="0 4 * * *")
