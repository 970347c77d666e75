"""Blocks that are no code, or that another test executes: each with that test, or with what it is."""

from __future__ import annotations

TEXTS = {  # how a block begins -> the test that executes it, or what it is
    "files, pages ─►": "a drawing",
    '"PH","ord_': "tests/nightly/test_documented_exchange.py::test_the_exchange_in_csv",
    "/etc/crossdock/base.yaml\n": "the names of the files that the page shows",
    "receiving webhooks at": "tests/unit/scheduler/test_stderr_log.py",
}
PYTHON = {  # a part of a block that is not a module of its own -> the test that runs it
    "BackgroundScheduler": "tests/unit/test_docs.py::test_the_trigger_of_the_guide_fires_when_the_schedule_is_due",
    "# quiet_executor.py": "tests/unit/test_deploy_examples.py::test_the_executor_of_the_guide_carries_out_runs",
    "# items.py": "tests/documentation/test_blocks.py::test_yaml",
    'os.environ["API_KEY"]': "tests/integration/client/test_platform_client.py",
    'os.environ["WEBHOOK_SECRET"]': "tests/unit/test_webhooks.py",
    "report = crossdock.run(": "tests/integration/test_library_use.py",
    "airflow": "tests/long/test_orchestrators.py",
    "dagster": "tests/long/test_orchestrators.py",
    "prefect": "tests/long/test_orchestrators.py",
}
SHELL = {  # a part of a block of commands that is not run by a shell -> the test that does what it says
    "python -m hatchling build": "tests/nightly/test_distributions.py",
    "python shop_api.py": "tests/e2e/test_tutorials.py",
    "crossdock -C shop.yaml": "tests/e2e/test_tutorials.py",
    "http://127.0.0.1:8765/": "tests/e2e/test_tutorials.py",
}


def claim(claims: dict[str, str], text: str) -> str | None:
    """The claim that fits a block."""
    return next((by for part, by in claims.items() if part in text), None)
