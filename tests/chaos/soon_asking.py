"""Runs a command of a crossdock that does not wait long.

It asks a failing source again after 20 ms, and for a record that failed after a quarter of a second, where users' waits
a second and longer each time, and it pauses a twentieth as long before it tries a failing state again. It looks five
times a second for what is due, where users' does so each 30 s; it handles signals, tells of refused webhooks and of
slow partners, ends an idle run and looks at the configs of a fleet sooner.

python -P tests/chaos/soon_asking.py ARGUMENTS...
"""

from __future__ import annotations

import runpy
import sys
import time
from datetime import timedelta
from types import SimpleNamespace
from unittest import mock

from crossdock.reading.sources import retried_requests
from crossdock.services.inbox import webhook_record_delivery
from crossdock.services.scheduler import apscheduler_daemon, monitored_scheduler
from crossdock.state import open_state

SOON_ASKING = ("-P", __file__)
"""The arguments of Python that run a command so."""


def main() -> None:
    retried_requests.BASE_PAUSE_S = 0.02
    apscheduler_daemon.POLL_S, apscheduler_daemon.SIGNAL_S = 0.2, 0.05
    monitored_scheduler.REPORT_S = 0.1
    webhook_record_delivery.IDLE_S, webhook_record_delivery.FIRST_PAUSE = 0.1, timedelta(seconds=0.25)
    webhook_record_delivery.SLOW_S = 0.5
    if "--fleet" in sys.argv:
        from crossdock.services.fleet import fleet_service

        fleet_service.CONFIG_CHECK_S = 0.5
    with mock.patch.object(open_state, "time", SimpleNamespace(sleep=lambda pause_s: time.sleep(pause_s / 20))):
        runpy.run_module("crossdock", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
