"""A source whose file is late, on a manual clock: when it is looked for, when it is taken, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from crossdock.errors import CrossdockError, RefusedError, UnauthorizedError, UnavailableError
from crossdock.reading.sources.expected_and_late_files import LateFileError
from crossdock.reading.sources.run_context import SourceContext, WaitingRun
from crossdock.reading.transport.file_store import RemoteFile, Sink, sorted_matching_files_or_raise_if_unsafe
from crossdock.sources import DelimitedFormat, FileSource, StreamId, Wait
from crossdock.state import FileDescription, FileFacts, PackedDigests
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import RunMessages, SilentProgress, warning_and_note_texts_by_stream

DUE = datetime(2026, 1, 2, 2, tzinfo=UTC)
LOTS, BINS = StreamId("wms.lots", "1"), StreamId("wms.bins", "1")
UNTIL = "2026-01-02 05:00:00Z"
ROWS = b"SKU\nP1\n"


class Depot:
    """A store on a clock.

    Attributes:
        files: Content and time of modification by name; a file that grows is longer at every look.
        failure: Raised by who opens it.
        opened: How often that was tried, and `in_use` how many sessions are open now.
    """

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.files: dict[str, tuple[bytes, int]] = {}
        self.growing: set[str] = set()
        self.failure: CrossdockError | None = None
        self.opened = self.in_use = 0
        self.fetched: list[str] = []

    def put(self, name: str, content: bytes = ROWS, *, age_s: int = 600) -> None:
        self.files[name] = content, int(self._clock.now().timestamp()) - age_s

    def open(self) -> Self:
        self.opened += 1
        if self.failure is not None:
            raise self.failure
        return self

    def __enter__(self) -> Self:
        self.in_use += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.in_use -= 1

    def list(self, folder: str, pattern: str) -> list[RemoteFile]:
        for name in self.growing:
            self.put(name, self.files[name][0] + b"P2\n", age_s=0)
        found = (RemoteFile(name, len(content), mtime, folder) for name, (content, mtime) in self.files.items())
        return sorted_matching_files_or_raise_if_unsafe(found, pattern, "depot")

    def folders(self, folder: str, pattern: str) -> Sequence[str]:
        raise NotImplementedError

    def fetch(self, file: RemoteFile, sink: Sink, progress: Callable[[int], None] | None = None) -> None:
        content, _ = self.files[file.name]
        sink.write(content)
        self.fetched.append(file.name)


@dataclass
class Memory:
    """An intake log without a database."""

    clock: ManualClock
    rows: dict[tuple[str, str], tuple[str, FileFacts]] = field(default_factory=dict)

    def _of(self, stream: str, status: str) -> dict[str, FileFacts]:
        return {key: facts for (name, key), (now, facts) in self.rows.items() if (name, now) == (stream, status)}

    def finished_files(self, stream: str, version: str) -> dict[str, FileFacts]:
        return self._of(stream, "done")

    def unfinished_files(self, stream: str) -> dict[str, FileFacts]:
        return self._of(stream, "accepted")

    def digests_removed_by_retention(self, stream: str, version: str) -> PackedDigests:
        return PackedDigests()

    def mark_still_listed(self, stream: str, version: str, content_hashes: list[str]) -> None:
        """They are on record anyway."""

    def known_files(self, stream: str) -> list[FileFacts]:
        return [facts for (name, _), (_, facts) in self.rows.items() if name == stream]

    def passed_over_files(self, stream: str) -> set[FileDescription]:
        return set()

    def record_passed_over_files(self, stream: str, files: set[FileDescription]) -> None:
        """No test passes over a file twice."""

    def record_accepted_files(self, stream: str, version: str, files: Sequence[FileFacts]) -> None:
        for facts in files:
            accepted = structs.replace(facts, accepted_at=self.clock.now())
            self.rows[stream, facts.content_hash] = "accepted", accepted

    def mark_accepted_finished(self, stream: str, version: str) -> None:
        for key, facts in self.unfinished_files(stream).items():
            self.rows[stream, key] = "done", facts


class Warnings(SilentProgress):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def warn(self, text: str) -> None:
        self.texts.append(text)


class Bench:
    """A source over a depot. Its clock starts a day before `DUE` and only moves when it is moved."""

    def __init__(self, folder: Path, **wait: Any) -> None:
        self.clock = ManualClock(DUE - timedelta(days=1))
        self.depot, self.intake, self.warnings = Depot(self.clock), Memory(self.clock), Warnings()
        self.wait = Wait.model_validate({"until": "05:00", "poll": "10m"} | wait)
        self.events: dict[timedelta, Callable[[], None]] = {}
        self._folder = folder
        self.messages = RunMessages()

    def source(
        self,
        *,
        snapshot: bool = False,
        stream_ids: Sequence[StreamId] = (LOTS,),
        patience: WaitingRun | None = None,
        **more: Any,
    ) -> FileSource:
        spool, work = self._folder / "spool", self._folder / "work"
        work.mkdir(exist_ok=True)
        self.messages = RunMessages()
        self.run = SourceContext(self.clock, self.warnings, self.intake, spool, work, spool, patience, self.messages)
        return FileSource(
            "out/LOT_*", DelimitedFormat(), self.depot.open, self.run,
            settle_s=0, snapshot=snapshot, stream_ids=stream_ids, wait=self.wait, **more,
        )  # fmt: skip

    def patient(self, **more: Any) -> FileSource:
        """The source in tonight's run."""
        self.later()
        return self.source(patience=WaitingRun(DUE, UTC), **more)

    def last_night(self, name: str, **more: Any) -> None:
        """Put a file there, and have it worked through."""
        self.depot.put(name)
        assert self.read(self.source(**more)) == [name]
        self.later()

    def later(self, **after: float) -> None:
        """Let it be so long after `DUE`, at least."""
        self.clock.advance(max(0.0, (DUE + timedelta(**after) - self.clock.now()).total_seconds()))

    def at(self, event: Callable[[], None], **after: float) -> None:
        """Let *event* happen so long after `DUE`, while somebody waits."""
        self.events[timedelta(**after)] = event

    def read(self, source: FileSource, stream_id: StreamId = LOTS, *, finish: bool = True) -> list[str]:
        """The names of the files that *source* reads, however long that takes."""
        with self.run.at_end:
            while True:
                try:
                    names = [batch.source for batch in source.read(stream_id)]
                    self.run.intakes.accept(stream_id.stream)
                except LateFileError as late:
                    self._pass(late.pause)
                else:
                    if finish:
                        source.finished(stream_id)
                    return names

    def _pass(self, pause: timedelta) -> None:
        assert self.depot.in_use == 0, "a session stays open between two attempts"
        kept = set(self.spooled()) - self.intake.unfinished_files("wms.lots").keys()
        assert not kept, "something is kept of what was not taken in"
        end = self.clock.now() + pause
        for after in sorted(after for after in self.events if DUE + after <= end):
            self.later(seconds=after.total_seconds())
            self.events.pop(after)()
        self.later(seconds=(end - DUE).total_seconds())

    def spooled(self) -> list[str]:
        return [path.name for path in (self._folder / "spool").glob("*")]

    @property
    def waited(self) -> timedelta:
        return self.clock.now() - DUE


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_file_that_is_there_is_read_at_once(bench: Bench) -> None:
    """Nobody waits for what has come in time."""
    bench.depot.put("LOT_1")
    assert bench.read(bench.patient()) == ["LOT_1"]
    assert (bench.waited, bench.depot.opened, bench.warnings.texts) == (timedelta(), 1, [])


def test_a_late_file_is_read_when_it_is_there(bench: Bench) -> None:
    """The first look after its arrival finds it; the run reports once that it waits."""
    bench.at(lambda: bench.depot.put("LOT_1"), minutes=25)
    assert bench.read(bench.patient()) == ["LOT_1"]
    assert (bench.waited, bench.depot.opened) == (timedelta(minutes=30), 4)
    assert bench.warnings.texts == [f"out/LOT_*: no new file; waiting until {UNTIL}"]
    assert warning_and_note_texts_by_stream(bench.messages) == {}


def test_a_file_of_another_night_is_not_waited_for(bench: Bench) -> None:
    """What was worked through before does not end the wait, and is not fetched again."""
    bench.last_night("LOT_1")
    bench.at(lambda: bench.depot.put("LOT_2", b"SKU\nP2\n"), hours=1)
    assert bench.read(bench.patient()) == ["LOT_2"]
    assert bench.depot.fetched == ["LOT_1", "LOT_2"]


def test_without_a_file_it_goes_on(tmp_path: Path) -> None:
    """The last look is at the deadline; then the stream runs without a file, and the report says so."""
    bench = Bench(tmp_path, poll="7m", then="without")
    assert bench.read(bench.patient()) == []
    assert bench.waited == timedelta(hours=3)
    note = f"no new file out/LOT_* until {UNTIL}; continued without it"
    assert warning_and_note_texts_by_stream(bench.messages) == {"wms.lots": [note]}
    assert bench.warnings.texts[1:] == [f"wms.lots: {note}"]


def test_without_a_file_it_fails(bench: Bench) -> None:
    """With ``fail`` the stream ends with exit 3 at the deadline; who asks again hears the same without a look."""
    source = bench.patient()
    with pytest.raises(UnavailableError, match=f"no new file arrived by {UNTIL}") as failed:
        bench.read(source)
    assert (failed.value.exit_code, bench.waited, warning_and_note_texts_by_stream(bench.messages)) == (
        3,
        timedelta(hours=3),
        {},
    )
    opened = bench.depot.opened
    with pytest.raises(UnavailableError) as again:
        bench.read(source)
    assert again.value is failed.value
    assert bench.depot.opened == opened


def test_a_run_that_comes_too_late_looks_once(bench: Bench) -> None:
    """A run that is made up for after its deadline does not wait."""
    bench.later(hours=5)
    with pytest.raises(UnavailableError, match="no new file"):
        bench.read(bench.patient())
    assert bench.depot.opened == 1
    bench.depot.put("LOT_1")
    assert bench.read(bench.patient()) == ["LOT_1"]


def test_nobody_waits_in_a_run_without_patience(bench: Bench) -> None:
    """A plan, and a sync by hand, take what is there, though the config would fail."""
    bench.later()
    assert bench.read(bench.source()) == []
    assert (bench.waited, bench.depot.opened) == (timedelta(), 1)
    assert bench.warnings.texts == ["wms.lots: no file matches out/LOT_*"]


def test_a_growing_file_is_waited_for(bench: Bench) -> None:
    """While a file is being written the wait goes on; it is read once it keeps still."""

    def start() -> None:
        bench.depot.put("LOT_1", age_s=0)
        bench.depot.growing.add("LOT_1")

    bench.at(start, minutes=5)
    bench.at(bench.depot.growing.clear, minutes=45)
    assert bench.read(bench.patient()) == ["LOT_1"]
    assert timedelta(minutes=45) < bench.waited < timedelta(minutes=56)
    assert bench.depot.fetched == ["LOT_1"]


@pytest.mark.parametrize("then", ["without", "fail"])
def test_a_file_that_grows_at_the_deadline_is_refused(tmp_path: Path, then: str) -> None:
    """A half file never enters, and is never passed over in silence."""
    bench = Bench(tmp_path, then=then)
    bench.depot.put("LOT_1", age_s=0)
    bench.depot.growing.add("LOT_1")
    with pytest.raises(RefusedError, match="still being written"):
        bench.read(bench.patient())
    assert timedelta(hours=3) <= bench.waited < timedelta(hours=3, minutes=1)
    assert bench.warnings.texts == [f"out/LOT_1: is still being written; waiting until {UNTIL}"]
    assert (bench.depot.fetched, bench.spooled()) == ([], [])


def test_a_repeated_file_is_not_what_is_waited_for(bench: Bench) -> None:
    """Yesterday's file sent again brings nothing; it is fetched twice at most, and the wait goes on."""
    bench.last_night("LOT_1")
    bench.at(lambda: bench.depot.put("LOT_1"), minutes=15)
    with pytest.raises(UnavailableError, match="no new file"):
        bench.read(bench.patient())
    assert bench.waited == timedelta(hours=3)
    assert bench.depot.fetched == ["LOT_1"] * 3  # yesterday, when it came again, and at the deadline
    assert bench.spooled() == []


def test_a_stale_snapshot_is_not_what_is_waited_for(bench: Bench) -> None:
    """An older snapshot does not end the wait for tonight's; alone it is refused at the deadline."""
    bench.last_night("LOT_20260101", snapshot=True)
    del bench.depot.files["LOT_20260101"]
    bench.depot.put("LOT_20251224", b"SKU\nP9\n")
    with pytest.raises(RefusedError, match="older than the snapshot"):
        bench.read(bench.patient(snapshot=True))
    assert bench.waited == timedelta(hours=3)
    bench.depot.put("LOT_20260102", b"SKU\nP2\n")
    assert bench.read(bench.patient(snapshot=True)) == ["LOT_20260102"]


def test_a_snapshot_that_is_read_again_is_not_what_is_waited_for(bench: Bench) -> None:
    """One that an earlier run has read, and that did not prove what is gone, does not end the wait."""
    bench.depot.put("LOT_20260101")
    assert bench.read(bench.source(snapshot=True), finish=False) == ["LOT_20260101"]
    with pytest.raises(UnavailableError, match="no new file"):
        bench.read(bench.patient(snapshot=True))


def test_what_an_earlier_run_left_is_not_waited_for(bench: Bench) -> None:
    """A file that was taken in and not worked through is there, though its sender has removed it."""
    bench.depot.put("LOT_1")
    bench.read(bench.source(), finish=False)
    del bench.depot.files["LOT_1"]
    assert bench.read(bench.patient()) == ["LOT_1"]
    assert bench.waited == timedelta()


def test_a_run_that_is_done_again_does_not_wait_again(bench: Bench) -> None:
    """What was taken in since the run was due was what it waited for."""
    bench.later(minutes=1)
    bench.depot.put("LOT_1")
    assert bench.read(bench.patient()) == ["LOT_1"]
    assert bench.read(bench.patient()) == []
    assert (bench.waited, warning_and_note_texts_by_stream(bench.messages)) == (timedelta(minutes=1), {})


def test_a_server_that_is_away_is_waited_for(bench: Bench) -> None:
    """A server that does not answer for a while does not end the run; at the deadline it is a failure."""
    bench.depot.failure = UnavailableError("cannot connect", where="depot", hint="call them")
    bench.at(lambda: setattr(bench.depot, "failure", None), hours=1)
    bench.at(lambda: bench.depot.put("LOT_1"), hours=2)
    assert bench.read(bench.patient()) == ["LOT_1"]
    assert bench.warnings.texts == [f"depot: cannot connect; waiting until {UNTIL}"]
    bench.later(hours=4)
    bench.depot.failure = UnavailableError("cannot connect")
    with pytest.raises(UnavailableError, match="cannot connect"):
        bench.read(bench.patient())


def test_a_refused_login_is_not_tried_again(bench: Bench) -> None:
    """Who is not let in does not knock until the account is locked."""
    bench.depot.failure = UnauthorizedError("wrong password")
    with pytest.raises(UnauthorizedError):
        bench.read(bench.patient())
    assert (bench.waited, bench.depot.opened) == (timedelta(), 1)


def test_streams_of_one_source_share_the_looks(tmp_path: Path) -> None:
    """Each look serves all of them, and each says in the report that it went on without a file."""
    bench = Bench(tmp_path, then="without")
    source = bench.patient(stream_ids=(LOTS, BINS))
    for stream_id in (LOTS, BINS, LOTS):
        with pytest.raises(LateFileError):
            list(source.read(stream_id))
    assert bench.depot.opened == 1
    assert bench.read(source) == bench.read(source, BINS) == []
    assert warning_and_note_texts_by_stream(bench.messages).keys() == {"wms.lots", "wms.bins"}
    assert bench.depot.opened == 3 * 6 + 1


def test_a_reader_that_lags_behind_does_not_end_the_wait(bench: Bench) -> None:
    """An old file that one stream has worked through and another has not is not tonight's, and is fetched once more."""
    bench.last_night("LOT_1")
    bench.at(lambda: bench.depot.put("LOT_2", b"SKU\nP2\n"), minutes=95)
    source = bench.patient(stream_ids=(LOTS, BINS))
    with pytest.raises(LateFileError):
        list(source.read(LOTS))
    (bench._folder / "spool" / bench.spooled()[0]).unlink()  # the copy that waits for the other reader
    assert bench.read(source) == ["LOT_2"]
    assert bench.read(source, BINS) == ["LOT_1", "LOT_2"]
    assert bench.depot.fetched == ["LOT_1"] * 3 + ["LOT_2"]


@given(arrival=st.integers(0, 400), last=st.integers(1, 300), poll=st.integers(1, 120))
def test_what_comes_in_time_is_read_soon(arrival: int, last: int, poll: int) -> None:
    """A file that is there by the deadline is read at most one pause later; the last look is at the deadline."""
    with TemporaryDirectory() as folder:
        bench = Bench(Path(folder), until=None, poll=f"{poll}m", then="without", **{"for": f"{last}m"})
        bench.at(lambda: bench.depot.put("LOT_1"), minutes=arrival)
        read = bench.read(bench.patient())
        waited = bench.waited // timedelta(minutes=1)
        assert read == (["LOT_1"] if arrival <= last else [])
        assert waited <= min(last, arrival + poll)
        assert waited == last or waited >= arrival
        assert bench.depot.opened == -(-waited // poll) + 1
