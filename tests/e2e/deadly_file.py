"""``crossdock`` in a process that is killed as soon as it opens a file with a certain content in its spool.

Run as ``python -m tests.e2e.deadly_file SHA256 ARGUMENTS``.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from crossdock.cli.main import main


def _watch(name: str) -> None:
    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and str(arguments[0]).endswith(name):
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


if __name__ == "__main__":
    _watch(sys.argv[1])
    main(sys.argv[2:])
