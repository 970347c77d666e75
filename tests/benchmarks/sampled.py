"""Runs a module and writes where its CPU time went, by package of crossdock and by library, as JSON.

``python -m tests.benchmarks.sampled FILE MODULE ARGUMENT ...``. A timer of CPU time asks every 5 ms, also while imports
run. What a native call has taken, with its threads, belongs to the function that called it.
"""

from __future__ import annotations

import atexit
import json
import runpy
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

EVERY_S = 0.005
OWN = ("crossdock", "crossdock_connectors")
LIBRARIES = {
    "polars": "polars",
    "sqlalchemy": "SQLAlchemy and SQLite",
    "pydantic": "pydantic",
    "httpcore": "HTTP",
    "h11": "HTTP",
    "yaml": "YAML",
    "click": "click",
}
IMPORTS = "imports"


def place_of(frame: FrameType | None) -> tuple[str, str]:
    """Return the package that asked for the work, or `IMPORTS`, and the library that did it."""
    library = ""
    for each in _outwards(frame):
        name = each.f_globals.get("__name__", "")
        top = name.partition(".")[0]
        if each.f_code.co_name == "<module>" and _is_import(each):
            name = top if top in (*LIBRARIES, *OWN) else "other libraries"
            return f"{IMPORTS} of {name}", library if top in OWN else ""
        if top in OWN and each.f_code.co_name != "<module>":
            return ".".join(name.split(".")[1:3]) if top == "crossdock" else name, library
        library = library or LIBRARIES.get(top, "")
    return "rest of the process", library


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_import(frame: FrameType) -> bool:
    return any(each.f_code.co_filename.startswith("<frozen importlib") for each in _outwards(frame.f_back))


class Samples:
    """CPU seconds by place, since the process began."""

    def __init__(self) -> None:
        self._last = time.process_time()
        self.seconds = defaultdict[tuple[str, str], float](float, {("start of Python", ""): self._last})

    def take(self, _signal: int, frame: FrameType | None) -> None:
        now = time.process_time()
        self.seconds[place_of(frame)] += now - self._last
        self._last = now

    def write(self, path: Path) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        self.take(0, None)
        path.write_text(json.dumps([[*place, seconds] for place, seconds in self.seconds.items()]), encoding="utf-8")


def main(path: Path, module: str, arguments: list[str]) -> None:
    samples = Samples()
    atexit.register(samples.write, path)
    signal.signal(signal.SIGPROF, samples.take)
    signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
