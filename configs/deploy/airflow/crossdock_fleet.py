"""A DAG for Airflow 3: the jobs of each tenant of a fleet as one mapped task."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

BASE, TENANTS = Path("/etc/crossdock/base.yaml"), Path("/etc/crossdock/tenants")

with DAG(
    "crossdock_fleet",
    schedule="0 4 * * *",  # after the jobs are due
    start_date=datetime(2026, 11, 20, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
):
    BashOperator.partial(
        task_id="tenant",
        bash_command=f'exec crossdock -C {BASE} -C "$TENANT" schedule --once latest --log-format json',
        append_env=True,  # the secrets to which the configs refer
        retries=2,
        retry_delay=timedelta(minutes=5),
        max_active_tis_per_dagrun=4,
    ).expand(env=[{"TENANT": str(path)} for path in sorted(TENANTS.glob("*.yaml"))])
