"""A year of real exports through the documented limit: how much of the allowance does a load of 26,540 requests waste?

Needs the retail exports (see tests/e2e/conftest.py) and an OpenSSH server. The sandbox and the sync are processes of
their own; what arrived is compared with the files before any figure is written down.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.benchmarks import results
from tests.e2e import retail_truth
from tests.e2e.project_folder import Limits, SandboxProcess, Stage, balance, exports
from tests.e2e.retail_truth import Truth

from crossdock.testing.openssh_server import OpenSshServer

DAYS = 305
LIMITS = Limits(10_000, 2_000)
GOAL = 1.15


@dataclass(frozen=True)
class Load:
    """What one sync took.

    Attributes:
        sending_s: From the first request to the last answer.
        refused: How often the sandbox answered 429.
    """

    report: dict[str, Any]
    sending_s: float
    refused: int
    cpu_s: float
    peak_mib: int


def load(stage: Stage) -> Load:
    """Sync once, as a process on its own; its report must be clean and balanced."""
    told = stage.folder / "report.json"
    with (
        told.open("w") as out,
        subprocess.Popen(
            [sys.executable, *stage.command("sync", "--json")], env=stage.environment(), stdout=out
        ) as process,
    ):
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    report: dict[str, Any] = json.loads(told.read_text())
    assert process.returncode == 0, report
    balance(report)
    refused = stage.sandbox.by_status().get("429", 0)
    cpu_s = usage.ru_utime + usage.ru_stime
    return Load(report, sending_s(stage.state), refused, cpu_s, usage.ru_maxrss // 1024)


def sending_s(state: Path) -> float:
    """Seconds between the first request and the last answer, as the client noted them."""
    with closing(sqlite3.connect(state)) as database:
        first, last = database.execute("SELECT min(first_sent_at), max(settled_at) FROM intents").fetchone()
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def verify(stage: Stage, done: Load, truth: Truth) -> None:
    """Compare what arrived, and what the report says, with the files."""
    held = stage.sandbox.holdings()
    assert held.differences(truth.holdings) == {}
    assert len(stage.sandbox.effects()) == truth.requests
    filtered = {"cancelled": truth.cancelled, "no_customer": truth.no_customer}
    for stream in done.report["streams"].values():
        assert (stream["rows"]["read"], stream["rows"]["filtered"]) == (truth.rows, filtered)


def run(files: Sequence[Path], folder: Path) -> tuple[Load, Truth]:
    """Load *files* into an empty platform, and verify what arrived."""
    served = folder / "served"
    served.mkdir()
    with OpenSshServer(served) as ssh, SandboxProcess(folder / "sandbox", LIMITS) as sandbox:
        stage = Stage("drop", ssh, sandbox, folder, LIMITS)
        stage.serve(files)
        stage.init()
        done, truth = load(stage), retail_truth.of(files)
        verify(stage, done, truth)
        return done, truth


def figures(done: Load, truth: Truth) -> list[tuple[str, str]]:
    bound = max(0.0, (truth.requests - LIMITS.burst) / (LIMITS.per_minute / 60))
    shared, groups = truth.look_alikes
    return [
        ("rows read, of them cancelled / no_customer", f"{truth.rows:,}, {truth.cancelled:,} / {truth.no_customer:,}"),
        ("invoices, customers, products", ", ".join(f"{n:,}" for n in counts(truth))),
        ("sum of quantity x unit price, read back", f"{truth.holdings.total:,}"),
        ("invoices that share their body, groups of them", f"{shared}, {groups}"),
        ("requests, of them answered 429", f"{done.report['requests']:,}, {done.refused:,}"),
        ("first request to last answer", f"{done.sending_s:.2f} s"),
        ("bound (requests - burst) / rate", f"{bound:.2f} s"),
        (f"ratio (goal: at most {GOAL})", f"{done.sending_s / bound:.4f}" if bound else "none: all in one burst"),
        ("whole run, as it reports", f"{done.report['seconds']:.2f} s"),
        ("CPU of the client", f"{done.cpu_s:.2f} s"),
        ("peak memory of the client", f"{done.peak_mib} MiB"),
    ]


def counts(truth: Truth) -> tuple[int, int, int]:
    held = truth.holdings
    return held.invoices.total(), held.customers.total(), held.products.total()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=DAYS, help="a smaller number shows that it works, and is not kept")
    days = parser.parse_args().days
    files = exports()[:days]
    if len(files) < days:
        parser.exit(3, f"there are {len(files)} exports, not {days}; see tests/e2e/conftest.py\n")
    with tempfile.TemporaryDirectory() as folder:
        rows = figures(*run(files, Path(folder)))
    if days == DAYS:
        title = f"{DAYS} days of retail exports, {LIMITS.per_minute:,} requests a minute, burst {LIMITS.burst:,}"
        results.write(title, ("what", "figure"), rows, "Everything that arrived equals the files, as a multiset.")
    else:
        print(*(f"{name}: {figure}" for name, figure in rows), sep="\n")


if __name__ == "__main__":
    main()
