"""Runs a command of a crossdock that does not wait long.

It asks a failing source again after 20 ms, where users' waits a second and longer each time, and looks each second for
what is due, where users' does so each 30. A fleet's looks each second at its configs and at who leads,
where users' does so each 5.

python -P tests/chaos/soon_asking.py ARGUMENTS...
"""

from __future__ import annotations

import runpy

from crossdock.fleet import fleet_service
from crossdock.scheduler import daemon
from crossdock.sources import retried_requests


def main() -> None:
    retried_requests.BASE_PAUSE_S = 0.02
    daemon.LOOK_S = 1.0
    fleet_service.LOOK_S = 1.0
    runpy.run_module("crossdock", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
