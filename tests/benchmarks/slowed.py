"""Makes a command slower where it calls one function, to show that `tests.benchmarks.watch` notices.

``python -m tests.benchmarks.slowed MODULE:FUNCTION PERCENT -- MODULE ARGUMENT ...`` runs the second module. After each
call of the function it uses up CPU time, until it has used PERCENT of what everything else has taken so far. What the
command takes after the last call is made up for at its end, so that the whole becomes slower by PERCENT, however early
that call is. A command that never calls the function is as fast as before.
"""

from __future__ import annotations

import functools
import importlib
import runpy
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any


def slowed(command: Sequence[str], function: str, percent: int) -> list[str]:
    """*command*, which is ``PYTHON -m MODULE ...``, made slower."""
    interpreter, how, *rest = command
    assert how == "-m"
    return [interpreter, how, "tests.benchmarks.slowed", function, str(percent), "--", *rest]


class Burden:
    """CPU time that is used up in proportion to what the process takes otherwise."""

    def __init__(self, percent: int) -> None:
        self.is_called = False
        self._share, self._used_s, self._lock = percent / 100, 0.0, threading.Lock()

    def use_up(self) -> None:
        """Use up what is missing."""
        with self._lock:
            missing_s = self._share * (time.process_time() - self._used_s) - self._used_s
            began = time.thread_time()
            while time.thread_time() - began < missing_s:
                pass
            self._used_s += max(0.0, missing_s)

    def put_on(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """*function*, and after each call what is missing."""

        @functools.wraps(function)
        def loaded(*arguments: Any, **more: Any) -> Any:
            self.is_called = True
            try:
                return function(*arguments, **more)
            finally:
                self.use_up()

        return loaded


def main(where: str, percent: int, module: str, arguments: Sequence[str]) -> None:
    burden = Burden(percent)
    home, _, path = where.partition(":")
    *owners, name = path.split(".")
    owner = functools.reduce(getattr, owners, importlib.import_module(home))
    function: Callable[..., Any] = getattr(owner, name)
    for each in [owner, *sys.modules.values()]:  # modules that import it by its name have it already
        if getattr(each, "__dict__", {}).get(name) is function:
            setattr(each, name, burden.put_on(function))
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        if burden.is_called:
            burden.use_up()


if __name__ == "__main__":
    _, where, percent, _, module, *arguments = sys.argv
    main(where, int(percent), module, arguments)
