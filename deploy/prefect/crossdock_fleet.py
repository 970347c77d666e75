"""A flow for Prefect 3: the jobs of each tenant of a fleet as one task."""

from __future__ import annotations

import subprocess
from datetime import UTC, date, datetime
from pathlib import Path

from prefect import flow, task
from prefect.futures import wait
from prefect.task_runners import ThreadPoolTaskRunner

BASE, TENANTS = Path("/etc/crossdock/base.yaml"), Path("/etc/crossdock/tenants")


@task(retries=2, retry_delay_seconds=300, task_run_name="{tenant.stem}")
def run_tenant(tenant: Path, day: date) -> None:
    """Run the jobs of a tenant for a business date; an exit code other than 0 fails the task."""
    command = ["crossdock", "-C", str(BASE), "-C", str(tenant), "schedule", "--once", day.isoformat()]
    subprocess.run(command, check=True)  # noqa: S603  a list of arguments, without a shell


@flow(task_runner=ThreadPoolTaskRunner(max_workers=4))
def crossdock_fleet(day: date | None = None) -> None:
    """Run the jobs of all tenants for a business date, by default today's; it fails if one of them failed."""
    day = day or datetime.now(UTC).date()
    futures = [run_tenant.submit(path, day) for path in sorted(TENANTS.glob("*.yaml"))]
    wait(futures)
    for future in futures:
        future.result()


if __name__ == "__main__":
    crossdock_fleet.serve(name="nightly", cron="0 4 * * *")
