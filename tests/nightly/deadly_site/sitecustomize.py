"""Kills each process that parses a file with one of some names, where this folder is on the path of modules."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

NAMES = tuple(os.environ["DEADLY_FILES"].split())


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and str(arguments[0]).endswith(NAMES) and _is_parsing():
        os.kill(os.getpid(), signal.SIGKILL)


def _is_parsing() -> bool:
    frame = sys._getframe()  # copying the file must not kill
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == "open_and_unpack_if_gzip":
            return True
    return False


sys.addaudithook(_hook)
