"""Commands of crossdock in processes of their own that begin at once.

Importing crossdock costs more than a second of CPU time. A server process imports it once, and each command is a
process that is forked from it before anything has run, with a memory, threads, files and a pid of its own.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import resource
import runpy
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.ended_commands import Done
from tests.waiting import WITHIN_S

CROSSDOCK = ("-m", "crossdock")
NOWHERE = Path(os.devnull)
_IMPORTED = (
    *("crossdock.cli.main", "crossdock.cli.init_and_check", "crossdock.cli.sync", "crossdock.runs.sync_and_replay"),
    *("crossdock_connectors.folder_warehouse", "crossdock_connectors.http_json", "crossdock_connectors.sftp_warehouse"),
    *(
        "crossdock.cli.scheduler_and_webhook_service",
        "crossdock.services.inbox.webhook_receiver_and_writer",
        "crossdock.services.scheduler.apscheduler_daemon",
        "crossdock.sandbox.server",
    ),
    *("crossdock.runs.platform_source", "crossdock_connectors.shop.shopify", "psycopg", "pytest", __name__),
)
_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload(list(_IMPORTED))


def start(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    out: Path = NOWHERE,
    err: Path = NOWHERE,
    limits: Mapping[int, int] | None = None,
    *,
    anew: bool = False,
) -> ForkServerProcess:
    """Start what ``python`` would be with these *arguments*, ``-m MODULE ...`` or ``-P SCRIPT ...``.

    Args:
        out: File of its standard output.
        err: File of its standard error; it may be the same.
        limits: Of resources, such as ``RLIMIT_NOFILE``.
        anew: It executes Python, as users do.
    """
    facts = (list(arguments), dict(environment), str(out), str(err), dict(limits or {}), anew)
    process = _FORKED.Process(target=_run, args=facts)
    process.start()
    return process


@contextmanager
def running(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    out: Path = NOWHERE,
    err: Path = NOWHERE,
    *,
    within_s: float = WITHIN_S,
) -> Iterator[ForkServerProcess]:
    """The same while the block lasts, and until it has ended; one that does not end in time is killed."""
    process = start(arguments, environment, out, err)
    try:
        yield process
        process.join(within_s)
        assert process.exitcode is not None, f"{' '.join(arguments)} did not end within {within_s:.0f} s"
    finally:
        process.kill()
        process.join()


def finish(arguments: Sequence[str], environment: Mapping[str, str], within_s: float = WITHIN_S) -> Done:
    """The same, and what it wrote."""
    with TemporaryDirectory() as place:
        out, err = Path(place, "out"), Path(place, "err")
        with running(arguments, environment, out, err, within_s=within_s) as process:
            pass
        assert process.exitcode is not None
        return Done(process.exitcode, out.read_text(), err.read_text())


def _run(
    arguments: list[str], environment: dict[str, str], out: str, err: str, limits: dict[int, int], anew: bool
) -> None:
    for kind, limit in limits.items():
        resource.setrlimit(kind, (limit, limit))
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
    if anew:
        os.execve(sys.executable, [sys.executable, *arguments], environment)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    if environment.get("PYTHONFAULTHANDLER"):
        faulthandler.enable()
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    how, program, *rest = arguments
    sys.argv = [program, *rest]
    if how == "-m":
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(program, run_name="__main__")
