"""``crossdock stop``: a run of another process settles what it has sent, and the next run continues."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from tests.chaos import processes
from tests.chaos.processes import CROSSDOCK
from tests.e2e.warehouse import FORWARD, Fate, Front, Seen, Site
from tests.waiting import eventually


def test_a_run_of_another_process_is_stopped_in_order(site: Site, front: Front, tmp_path: Path) -> None:
    """It settles what is in flight, exits as interrupted, and the next run delivers the others, each once."""
    site.init()
    site.export("CUST_1.csv", "CUSTNO;NAME\n" + "".join(f"C{number};Name\n" for number in range(40)))
    released = threading.Event()

    def held(seen: Seen) -> Fate:
        if seen.method == "POST":
            released.wait()
        return FORWARD

    front.fate = held
    out, err = tmp_path / "out", tmp_path / "err"
    running = processes.start((*CROSSDOCK, "-C", str(site.config), "sync"), os.environ, out, err)
    try:
        eventually(lambda: any(seen.method == "POST" for seen in front.seen))
        assert "was asked to stop" in site.run("stop").out
        eventually(lambda: "it was asked to stop" in err.read_text())
    finally:
        released.set()
    running.join()

    assert running.exitcode == 130
    (run,) = site.run("runs", "--json").json
    assert run["status"] == "incomplete"
    assert 0 < len(site.names("customer")) < 40
    assert site.sync().code == 0
    assert sorted(site.names("customer")) == sorted(f"wms:C{number}" for number in range(40))


def test_what_is_not_in_progress_cannot_be_stopped(site: Site) -> None:
    """An ended run, or none, is an error that says so."""
    site.init()
    assert "no run in progress" in site.run("stop").err
    assert site.sync().code == 0
    ended = site.run("stop", "1")
    assert (ended.code, "run 1 is not in progress" in ended.err) == (2, True)
