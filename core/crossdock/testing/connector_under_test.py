"""The description of a connector for its tests, of one of its streams, and of syncs as processes that are disturbed."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import SkipTest

from crossdock.connector import Connector, Context, Stream
from crossdock.mapping.row_order_and_cursors import format_iso_instant_cursor
from crossdock.testing.connector_context_and_reading import context, read
from crossdock.testing.crossdock_process import EndedCommand
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.raw_rows_and_records import Record
from crossdock.values.record_keys import key_parts_of, key_text

if TYPE_CHECKING:
    import httpx

    from crossdock.runs.stream_trial import Trial


@contextmanager
def captured_output() -> Iterator[io.StringIO]:
    """Capture everything that is printed, or logged at any level to the root logger, in the block."""
    output, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(output), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with redirect_stdout(output), redirect_stderr(output):
            yield output
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


_DAY = timedelta(days=1)


_LINE = "\n"
_HINDERED: dict[type, str] = {}
"""Why nothing can be tested of a class of tests; empty if all can be."""


def shown_method_name(own: object, name: str) -> str:
    """Return how messages name a method of an author's stream or target, or `map` in place of `to_resource`."""
    is_map = name == "to_resource" and isinstance(own, Stream) and not own.maps_in_code
    return f"{type(own).__name__}.{'map' if is_map else name}"


def shown_key(text: str) -> str:
    """Return a key, given in its text form, as `expects` has it: the one part, or a tuple of parts."""
    parts = key_parts_of(text)
    return repr(parts[0] if len(parts) == 1 else parts)


def normalized_key_text(key: Any, known: Container[str]) -> str:
    """Return the text form of a key that an author states: one part, a tuple of parts, or the text form itself."""
    text = key_text(tuple(map(str, key if isinstance(key, tuple) else (key,))))
    return key if isinstance(key, str) and text not in known else text


def shown_record_place(record: Record) -> str:
    """Return how messages name a record."""
    return f"record {shown_key(record.key)} of {record.source}, line {record.lines[0]}"


class ConnectorUnderTest:
    """A connector with example data.

    Attributes:
        connector: The connector under test.
        settings: Keys of a connection, as in a config file; relative paths start in a temporary folder.
        environment: Variables that *settings* refer to as ``env:NAME``. Their values must never be shown.
    """

    connector: Connector[Any]
    settings: Mapping[str, Any]
    environment: Mapping[str, str] = {}

    def prepare(self, folder: Path) -> None:
        """Create what *settings* refer to in *folder*, such as files to read; nothing by default."""

    def network(self) -> httpx.BaseTransport | None:
        """Return the replacement of the network; None if the connector reads files."""
        return None

    first_test = ""
    """The test that fails if nothing can be tested."""

    def check_example(self) -> None:
        """Fail if nothing can be tested with the example."""

    def setup_method(self, method: Callable[..., Any]) -> None:
        """Let one test fail, and skip the others, if nothing can be tested. pytest calls it before each test."""
        case = type(self)
        if case in _HINDERED:
            if hindered := _HINDERED[case]:
                raise SkipTest(hindered)
            return
        _HINDERED[case] = ""
        try:
            self.check_example()
        except SkipTest:
            return
        except Exception as error:
            _HINDERED[case] = f"{method.__name__} has failed: {str(error).partition(_LINE)[0]}"
            if method.__name__ != self.first_test:  # which fails itself
                raise

    @contextmanager
    def in_environment(self) -> Iterator[None]:
        """Set `environment` as variables of this process."""
        before = {name: os.environ.get(name) for name in self.environment}  # a copy of all would cost more than a read
        os.environ.update(self.environment)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                os.environ.update({} if value is None else {name: value})

    def no_secret_in(self, what: str, text: str) -> None:
        """Fail if *text* contains a value of `environment`."""
        for name, value in self.environment.items():
            if value in text:  # an assertion would show the value
                raise AssertionError(f"{what} contains the secret {name}")

    def no_secret_in_files(self, folder: Path) -> None:
        """Fail if a file that crossdock wrote in *folder* contains a value of `environment`."""
        for path in (path for path in folder.rglob("*") if path.is_file()):
            self.no_secret_in(f"the file {path.name}", path.read_bytes().decode("utf-8", "replace"))


class StreamUnderTest(ConnectorUnderTest):
    """One stream of a connector with example data.

    Attributes:
        stream: The stream's name.
        now: When runs begin, with a time zone. By default a day after the latest time that `network` answers, but not
            later than tomorrow; tomorrow for files, which are as old as the test.
    """

    stream: str
    now: datetime | None = None

    @cached_property
    def run_start(self) -> datetime:
        """When runs begin; see `now`."""
        tomorrow = datetime.now(UTC) + _DAY
        if self.now is not None or (network := self.network()) is None:
            return self.now or tomorrow
        from crossdock.testing.httpx_test_transports import LatestTimeRecorder  # noqa: PLC0415  it imports httpx

        observed = LatestTimeRecorder(network)
        self.read_in(self.context_over(observed, tomorrow))
        return min(observed.latest + _DAY, tomorrow) if observed.latest else tomorrow

    first_test = "test_the_example_is_read_and_mapped"

    def check_example(self) -> None:
        self.example()

    def test_the_example_is_read_and_mapped(self) -> None:
        """Reading ends without an error, and every record has a draft."""
        trial = self.example()
        for tried in trial.records:
            to_resource = shown_method_name(trial.bound.stream, "to_resource")
            assert tried.problem is None, f"{to_resource}, {shown_record_place(tried.record)}: {tried.problem}"

    def context_over(self, network: httpx.BaseTransport | None, run_start: datetime | None = None) -> Context[Any]:
        """Make a context as in a new run over *network*."""
        clock = ManualClock(run_start or self.run_start)
        with self.in_environment():
            ctx = context(self.connector, self.settings, transport=network, clock=clock)
        self.prepare(ctx.run.work.parent)
        return ctx

    def new_context(self) -> Context[Any]:
        """Make a context as in a new run."""
        return self.context_over(self.network())

    def example(self) -> Trial:
        """Read and map the whole example. Fails if it has an error or no record."""
        trial = self.read()
        pull = shown_method_name(trial.bound.stream, "pull")
        assert trial.error is None, f"{pull}: reading failed: {trial.error}"
        left_out = f"; filters leave out {trial.filtered.total()} rows" if trial.filtered else ""
        assert trial.records, (
            f"{pull} yields no record in a run at {format_iso_instant_cursor(self.run_start)}"
            f"{left_out}: give records in pages, network or prepare, or set now to a time after them"
        )
        return trial

    def read(self, since: str | None = None) -> Trial:
        """Read and map the stream in a new run."""
        return self.read_in(self.new_context(), since)

    def read_in(self, ctx: Context[Any], since: str | None = None) -> Trial:
        """Read and map the stream with *ctx*. Fails if a value of `environment` is printed or logged."""
        with self.in_environment(), captured_output() as output:
            trial = read(self.connector, ctx, self.stream, since=since)
        self.no_secret_in("what the stream printed or logged", output.getvalue())
        self.no_secret_in("the error", str(trial.error or ""))
        for tried in trial.records:
            self.no_secret_in("the place of a record", tried.record.source)
            self.no_secret_in("the problem of a record", str(tried.problem or ""))
        return trial


MOST_RUNS = 8  # the number of disturbed syncs within which everything must be delivered


class DisturbedCommands(ConnectorUnderTest):
    """A connector whose syncs run as processes.

    Attributes:
        seed: Decides when processes are killed.
    """

    seed: int = 0

    def ends_well(self, what: str, ended: EndedCommand, state_folder: Path, *, exit_code: int = 0) -> None:
        """Fail unless a command ended with *exit_code* and has shown no secret, not even in its state."""
        self.no_secret_shown(what, ended)
        self.no_secret_in_files(state_folder)
        is_expected = ended.exit_code == exit_code
        if not is_expected:  # pytest would indent the lines of an assert
            raise AssertionError(f"{what} ends with exit code {ended.exit_code}:\n{ended.errors}{ended.output}")

    def was_killed(self, moment: str, ended: EndedCommand) -> None:
        """Fail unless a sync was killed."""
        self.no_secret_shown("crossdock sync", ended)
        what = f"a sync that was to be killed at {moment} ended before, with exit code {ended.exit_code}"
        assert ended.exit_code == -9, f"{what}:\n{ended.errors}{ended.output}"

    def no_secret_shown(self, what: str, ended: EndedCommand) -> None:
        """Fail if a command has shown a value of `environment`."""
        self.no_secret_in(f"the output of {what}", ended.output)
        self.no_secret_in(f"the errors of {what}", ended.errors)
