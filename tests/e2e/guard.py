"""Runs a command of crossdock that can reach one port alone, and notes every address it tries to reach.

python -P tests/e2e/guard.py PORT NOTES ARGUMENTS...

The interpreter's audit hook sees every connection, whatever library asks for it, and cannot be removed.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    port, notes = int(sys.argv.pop(1)), Path(sys.argv.pop(1))
    notes.touch()

    def watch(event: str, details: tuple[Any, ...]) -> None:
        if event not in {"socket.connect", "socket.sendto", "socket.sendmsg"}:
            return
        with notes.open("a") as out:
            out.write(f"{details[1]}\n")
        if details[1][1:2] != (port,):
            raise ConnectionRefusedError(f"{details[1]} is out of bounds")

    sys.addaudithook(watch)
    runpy.run_module("crossdock", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
