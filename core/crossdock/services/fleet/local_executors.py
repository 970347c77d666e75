"""Executors on this machine: threads of this process, and separate processes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, TypeVar

from crossdock.services.fleet import worker
from crossdock.services.fleet.executor_kinds_by_entry_point import ExecutorKind

T = TypeVar("T")


@contextmanager
def _thread_executor(_address: str, at_once: int) -> Iterator[Executor]:
    with worker.clear_interrupt_at_end(), ThreadPoolExecutor(at_once, "run") as pool:
        try:
            yield pool
        finally:
            worker.ask_runs_to_stop()
            pool.shutdown(cancel_futures=True)


@contextmanager
def _process_executor(_address: str, at_once: int) -> Iterator[Executor]:
    pool = _ReplaceableProcessPool(at_once)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


class _ReplaceableProcessPool(Executor):
    """A pool of processes. It is replaced after one of its processes was killed, which ends the whole pool."""

    def __init__(self, at_once: int) -> None:
        self._at_once, self._context = at_once, get_context("spawn")
        # The processes notice that the other end of a pipe is closed, also when this process is killed. An event of
        # multiprocessing would wait for processes that were killed while they waited for it.
        self._followed, self._open_end = self._context.Pipe(duplex=False)
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self._at_once, self._context, _prepare_process, (self._followed,))

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        try:
            return self._pool.submit(fn, *args, **kwargs)
        except BrokenExecutor:
            self._pool.shutdown(wait=False)
            self._pool = self._new_pool()
            return self._pool.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._open_end.close()
        self._pool.shutdown(wait, cancel_futures=cancel_futures)
        self._followed.close()


def _prepare_process(followed: Connection) -> None:
    """Prepare a process: its runs stop with the pool, and on SIGTERM."""

    def end(_number: int, _frame: FrameType | None) -> None:
        worker.ask_runs_to_stop()

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of the terminal; the first one decides
    signal.signal(signal.SIGTERM, end)
    threading.Thread(target=_stop_when_pipe_closes, args=(followed,), name="stop", daemon=True).start()
    threading.Thread(target=_exit_when_parent_ends, name="parent", daemon=True).start()


def _stop_when_pipe_closes(followed: Connection) -> None:
    followed.poll(None)
    worker.ask_runs_to_stop()


def _exit_when_parent_ends() -> None:
    """End this process after the one that started the pool, which would otherwise leave it waiting for calls."""
    parent = parent_process()
    if parent is not None:
        parent.join()
    worker.ask_runs_to_stop()
    worker.wait_until_idle()
    os._exit(1)


THREADS = ExecutorKind(_thread_executor)
PROCESSES = ExecutorKind(_process_executor)
