"""A command of a page: ``documented_command.py FOLDER STDIN ARGUMENT...`` is ``crossdock ARGUMENT...`` in FOLDER.

It runs as a fork of a process that has imported crossdock. As no power is cut, no write waits for the disk.
"""

from __future__ import annotations

import os
import sys

from tests.quick_disk import quick_disk
from tests.quick_states import quick_states

from crossdock.cli.main import main

if __name__ == "__main__":
    folder, given, *arguments = sys.argv[1:]
    os.chdir(folder)
    os.dup2(os.open(given, os.O_RDONLY), 0)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  for as long as the process lives
    sys.argv = ["crossdock", *arguments]
    with quick_disk(), quick_states():
        main()
