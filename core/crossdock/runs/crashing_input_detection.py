"""Recognizes inputs that kill the process: marks what is read, and tries suspected inputs in another process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct, structs

from crossdock.config.project.project import Project
from crossdock.errors import RefusedError
from crossdock.reading.sources.run_context import CrashMarker
from crossdock.state import State
from crossdock.state.tables.inputs_of_streams import CrashMark, CrashMarks
from crossdock.values import yaml_reader
from crossdock.values.clock import Clock
from crossdock.values.yaml_reader import escape_dollars


class _ReadingSlot(Struct):
    number: int
    mark: CrashMark
    suspected: bool = False


class SessionCrashMarker(CrashMarker):
    """Marks what the runs of one session read. *kills* returns whether reading a stream kills another process."""

    def __init__(self, state: State, marks: CrashMarks, clock: Clock, kills: Callable[[str], bool]) -> None:
        self._state, self._marks, self._clock, self._kills = state, marks, clock, kills
        with state.begin_read_only() as tx:
            self._suspects = tx.crashing_inputs.has_any()
        self._own = threading.local()
        self._numbers, self._taken = threading.Lock(), set[int]()

    @contextmanager
    def mark_stream_being_read(self, stream: str) -> Iterator[None]:
        number = self._take_free_number()
        self._own.slot = _ReadingSlot(number, CrashMark(stream))
        try:
            self._put_mark(CrashMark(stream))
            yield
        finally:
            self._remove_mark()
            self._own.slot = None
            self._taken.discard(number)

    def mark_file_being_read(self, name: str, content: str) -> None:
        slot: _ReadingSlot | None = getattr(self._own, "slot", None)
        if slot is not None:
            self._remove_mark()
            self._put_mark(structs.replace(slot.mark, name=name, content=content, batches=0))

    def count_batch(self) -> None:
        slot: _ReadingSlot | None = getattr(self._own, "slot", None)
        if slot is not None:
            slot.mark = structs.replace(slot.mark, batches=slot.mark.batches + 1)
            self._marks.write_mark(slot.number, slot.mark)

    def _put_mark(self, mark: CrashMark) -> None:
        slot: _ReadingSlot = self._own.slot
        slot.mark = mark
        self._marks.write_mark(slot.number, mark)
        if self._suspects:
            slot.suspected = self._is_suspected_or_raise(mark)

    def _is_suspected_or_raise(self, mark: CrashMark) -> bool:
        """Return whether *mark* is suspected. Only another process shows that it kills: people kill processes, too."""
        with self._state.begin_read_only() as tx:
            found = tx.crashing_inputs.get(mark)
        if found is None:
            return False
        if found.set_aside_at is not None:
            raise _set_aside_error(mark, found.killed)
        if not (found.needs_trial_process and self._kills(mark.stream)):
            return True
        with self._state.begin() as tx:
            killed = tx.crashing_inputs.set_aside(mark, at=self._clock.now())
        raise _set_aside_error(mark, killed)

    def _remove_mark(self) -> None:
        slot: _ReadingSlot = self._own.slot
        self._marks.write_mark(slot.number, None)
        if slot.suspected:
            slot.suspected = False
            with self._state.begin() as tx:
                tx.crashing_inputs.forget(slot.mark)

    def _take_free_number(self) -> int:
        with self._numbers:
            number = next(number for number in range(1, len(self._taken) + 2) if number not in self._taken)
            self._taken.add(number)
        return number


@contextmanager
def open_crash_marker(state: State, clock: Clock, kills: Callable[[str], bool]) -> Iterator[CrashMarker]:
    """Take over the marks of a killed process, and mark what is read in the block. The lease must be held."""
    marks = state.crash_marks()
    if marks is None:
        yield CrashMarker()
        return
    if left := marks.marks_of_killed_process():
        with state.begin() as tx:
            for mark in left:
                tx.crashing_inputs.record_kill(mark, at=clock.now())
    marks.open()
    try:
        yield SessionCrashMarker(state, marks, clock, kills)
    finally:
        marks.close_and_remove()


def _set_aside_error(mark: CrashMark, killed: int) -> RefusedError:
    again = f"to read it once more, for example with more memory: crossdock state readmit {mark.stream}"
    if mark.name:
        message = f"is set aside, because reading it has killed the process {killed} times"
        hint = f"ask the sender for another file, which is read at once, or remove it; {again}"
        return RefusedError(message, where=mark.name, hint=hint, code="input_kills_process")
    message = f"the stream is set aside, because reading it has killed the process {killed} times"
    return RefusedError(
        message, where=mark.stream, hint=f"see what its source answers; {again}", code="input_kills_process"
    )


_FATAL = {
    -each for each in (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGKILL, signal.SIGSEGV)
}


def planning_kills_trial_process(project: Project, stream: str) -> bool:
    """Return whether a process that plans *stream*, and so reads all that a sync would read, is killed by a signal."""
    files = [part for file in (project.path, *project.overrides) for part in ("-C", str(file))]
    command, folder, given = ["-m", "crossdock", "plan", stream, "--limit", "0", *files], None, ""
    if project.values is not None:
        command = ["-c", "import sys, yaml, crossdock; crossdock.plan(yaml.safe_load(sys.stdin), sys.argv[1:])", stream]
        folder, given = project.folder, escape_dollars(yaml_reader.dump_config_as_yaml(project.values))
    modules = {"PYTHONPATH": os.pathsep.join(sys.path)}  # the same, and with -P no others of the working directory
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-P", *command],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | modules,
    )
    try:
        with suppress(OSError):  # where the kernel has it: without memory, it kills this process and not the run's
            Path(f"/proc/{process.pid}/oom_score_adj").write_text("1000", encoding="ascii")
        process.communicate(given.encode())
        return process.returncode in _FATAL
    finally:
        process.kill()
        process.wait()
