"""Reads a stream in another process, to find out whether reading it kills the process."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from crossdock.config.project.project import Project

_FATAL = {
    -each for each in (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGKILL, signal.SIGSEGV)
}


def kills_process(project: Project, stream: str) -> bool:
    """Return whether a process that plans *stream*, and so reads all that a sync would read, is killed by a signal.

    That process does not change the state. The run reports any other failure.
    """
    files = [part for file in (project.path, *project.overrides) for part in ("-C", str(file))]
    command = [sys.executable, "-m", "crossdock", "plan", stream, "--limit", "0", *files]
    process = subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        with suppress(OSError):  # where the kernel has it: without memory, it kills this process and not the run's
            Path(f"/proc/{process.pid}/oom_score_adj").write_text("1000", encoding="ascii")
        return process.wait() in _FATAL
    finally:
        process.kill()
        process.wait()
