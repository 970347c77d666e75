"""Runs a command of a crossdock whose waiting requests leave within `LEAVE_WITHIN_S`, however slow the machine is.

python -P tests/chaos/soon_leaving.py ARGUMENTS...

So a test knows how long is long enough for them to be given back.
"""

from __future__ import annotations

import runpy

from crossdock.delivery import turn_writer


def main() -> None:
    turn_writer.LEAVE_AT_MOST_S = turn_writer.LEAVE_WITHIN_S
    runpy.run_module("crossdock", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
