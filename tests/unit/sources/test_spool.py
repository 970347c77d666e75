"""What a plan reads of files that lie where they can be read in place, and which of them it takes for known."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crossdock.errors import RefusedError, RemoteError
from crossdock.reading.sources.file_spool import Spool
from crossdock.reading.sources.run_context import SourceContext
from crossdock.reading.transport.file_store import RemoteFile, Sink
from crossdock.reading.transport.folder_store import FolderStore
from crossdock.reading.wrappers.wrapper import MAX_BYTES
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.sources import DelimitedFormat, FileSource, StreamId
from crossdock.state import FileFacts
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.author_code_errors import AuthorCodeError
from crossdock.values.run_progress_and_messages import SilentProgress

KNOWN = b"SKU\nP1\n"
LOTS = StreamId("wms.lots", "1")
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


class Noting(FolderStore):
    """Notes which files are read from their beginning to their end before they are parsed."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.fetched: list[str] = []

    def fetch(self, file: RemoteFile, sink: Sink, progress: Callable[[int], None] | None = None) -> None:
        self.fetched.append(file.path)
        super().fetch(file, sink, progress)


class Intake(EmptyIntakeLog):
    """Knows one file, by its content."""

    def finished_files(self, stream: str, version: str) -> dict[str, FileFacts]:
        content_hash = hashlib.sha256(KNOWN).hexdigest()
        return {content_hash: FileFacts("LOT_0.csv", content_hash, len(KNOWN), LONG_AGO, "2026-01-01", LONG_AGO)}


@pytest.fixture
def store(tmp_path: Path) -> Noting:
    (tmp_path / "exports").mkdir()
    return Noting(tmp_path / "exports")


@pytest.fixture
def run(tmp_path: Path) -> SourceContext:
    """That of a plan."""
    (tmp_path / "work").mkdir()
    clock = ManualClock(datetime(2030, 1, 1, tzinfo=UTC))
    return SourceContext(
        clock, SilentProgress(), Intake(), tmp_path / "work" / "spool", tmp_path / "work", tmp_path / "kept"
    )


def source_of(
    files: str, store: Noting, run: SourceContext, *stream_ids: StreamId, layout: DelimitedFormat | None = None
) -> FileSource:
    layout = layout or DelimitedFormat()
    return FileSource(files, layout, lambda: store, run, settle_s=0, snapshot=False, stream_ids=stream_ids)


@pytest.fixture
def source(store: Noting, run: SourceContext) -> FileSource:
    return source_of("LOT_*.csv", store, run, LOTS)


def put(tmp_path: Path, **contents: bytes) -> None:
    for name, content in contents.items():
        (tmp_path / "exports" / f"{name}.csv").write_bytes(content)


def test_a_file_of_another_size_is_read_once(source: FileSource, store: Noting, tmp_path: Path) -> None:
    """It cannot have the content of a known one, so it is not summed up; who asks gets its hash all the same."""
    put(tmp_path, LOT_1=b"SKU\nP22\n", LOT_2=b"SKU\nP333\n")
    batches = list(source.read(LOTS))
    assert [batch.load()["SKU"].to_list() for batch in batches] == [["P22"], ["P333"]]
    assert store.fetched == []
    assert [batch.proof and batch.proof.content() for batch in batches] == [
        hashlib.sha256(content).hexdigest() for content in (b"SKU\nP22\n", b"SKU\nP333\n")
    ]


def test_known_content_under_another_name_is_not_read_again(source: FileSource, store: Noting, tmp_path: Path) -> None:
    """One of the size of a known file is compared by its content."""
    put(tmp_path, LOT_1=KNOWN, LOT_2=KNOWN.replace(b"1", b"2"))
    assert [batch.source for batch in source.read(LOTS)] == ["LOT_2.csv"]
    assert store.fetched == ["LOT_1.csv", "LOT_2.csv"]


def test_the_same_content_twice_is_read_once(source: FileSource, tmp_path: Path) -> None:
    """Two new files of one size are compared with each other."""
    put(tmp_path, LOT_1=b"SKU\nP22\n", LOT_2=b"SKU\nP22\n", LOT_3=b"SKU\nP33\n")
    assert [batch.load()["SKU"].item() for batch in source.read(LOTS)] == ["P22", "P33"]


def test_sources_that_are_read_in_turn_keep_apart(store: Noting, run: SourceContext, tmp_path: Path) -> None:
    """Each stream gets the rows of its own source, where two are shared by two streams each."""
    put(tmp_path, LOT_1=b"SKU\nP22\n", BIN_1=b"SKU\nB333\n")
    stream_ids = [StreamId("wms.one", "1"), StreamId("wms.other", "1")]
    sources = [source_of(files, store, run, *stream_ids) for files in ("LOT_*.csv", "BIN_*.csv")]
    read = [
        [batch.load()["SKU"].item() for batch in source.read(stream_id)]
        for stream_id in stream_ids
        for source in sources
    ]
    assert read == [["P22"], ["B333"]] * 2


def test_sources_of_one_file_keep_apart(store: Noting, run: SourceContext, tmp_path: Path) -> None:
    """Each reads it as its own layout says, also where two streams share what was read."""
    put(tmp_path, LOT_1=KNOWN, LOT_2=KNOWN)  # so that they are named by their content
    stream_ids = [StreamId("wms.one", "1"), StreamId("wms.other", "1")]
    layouts = [DelimitedFormat(header=False, names=(name,)) for name in "AB"]
    run = replace(run, intake=EmptyIntakeLog())
    sources = [source_of("LOT_*.csv", store, run, *stream_ids, layout=layout) for layout in layouts]
    read = [
        {batch.load().columns[0] for batch in source.read(stream_id)} for stream_id in stream_ids for source in sources
    ]
    assert read == [{"A"}, {"B"}] * 2


def test_copies_are_for_their_owner(store: Noting, run: SourceContext, tmp_path: Path) -> None:
    """Whatever the umask, the copies of a sync, and what several streams share of them, are for nobody else."""
    put(tmp_path, LOT_1=b"SKU\nP22\n")
    stream_ids = [StreamId("wms.one", "1"), StreamId("wms.other", "1")]
    source = source_of("LOT_*.csv", store, replace(run, kept=run.spool, intake=EmptyIntakeLog()), *stream_ids)
    before = os.umask(0)
    try:
        batches = source.read(stream_ids[0])
        next(batches)
        made = [path for path in (tmp_path / "work").rglob("*") if path.is_file()]
    finally:
        os.umask(before)
    assert len(made) == 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o600}
    assert stat.S_IMODE(run.spool.stat().st_mode) == 0o700


def test_a_file_that_cannot_be_fetched_leaves_nothing(store: Noting, run: SourceContext, tmp_path: Path) -> None:
    """However often a file is refused while it is fetched, no half of it stays."""
    put(tmp_path, LOT_1=b"SKU\nP22\n")
    spool = Spool(replace(run, kept=run.spool))
    run.spool.mkdir(mode=0o700)
    (file,) = store.list("", "LOT_*")
    (tmp_path / "exports" / "LOT_1.csv").unlink()
    for _ in range(3):
        with pytest.raises(RemoteError):
            spool.fetch_or_use_in_place(store, [file], lambda: ())
    assert [path for path in (tmp_path / "work").rglob("*") if path.is_file()] == []


def test_a_file_that_is_written_again_after_it_was_listed_is_refused(
    store: Noting, run: SourceContext, tmp_path: Path
) -> None:
    """It may be half of a file of the same size, whatever it was when it had kept still."""
    put(tmp_path, LOT_1=b"SKU\nP22\n")
    run.spool.mkdir(mode=0o700)
    (file,) = store.list("", "LOT_*")
    put(tmp_path, LOT_1=b"SKU\nP23\n")
    os.utime(tmp_path / "exports" / "LOT_1.csv", (1, 1))
    with pytest.raises(RefusedError, match="was written or replaced after it was listed"):
        Spool(replace(run, kept=run.spool)).fetch_or_use_in_place(store, [file], lambda: ())


def test_a_file_that_would_fill_the_disk_is_refused(source: FileSource, store: Noting, tmp_path: Path) -> None:
    """The size that its server tells of is enough; nothing of it is read."""
    with (tmp_path / "exports" / "LOT_1.csv").open("wb") as file:
        file.truncate(MAX_BYTES + 1)  # of holes
    with pytest.raises(
        RefusedError, match=r"LOT_1.csv: has 20,000,000,001 bytes, more than the limit of 20,000,000,000"
    ):
        list(source.read(LOTS))
    assert store.fetched == []


class Careless(Noting):
    """A store of an author, which writes what it has, or fails in a way of its own."""

    def __init__(self, root: Path, content: bytes, error: Exception | None = None) -> None:
        super().__init__(root)
        self.content, self.error = content, error

    def fetch(self, file: RemoteFile, sink: Sink, progress: Callable[[int], None] | None = None) -> None:
        sink.write(self.content)
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize(
    ("content", "error", "told"),
    [
        (b"SKU\n", None, "ended after 4 of 8 bytes"),
        (b"SKU\nP22\nP23\n", None, "grew past its 8 bytes"),
        (bytes(32 << 20), None, "longer than it was listed"),
        (b"SKU\n", ConnectionResetError("reset"), "fetch raised ConnectionResetError in line .*: reset"),
    ],
)
def test_an_own_store_gives_whole_files_or_none(
    store: Noting, run: SourceContext, tmp_path: Path, content: bytes, error: Exception | None, told: str
) -> None:
    """It may not notice that a file ended early, and its connection is not the disk of the spool."""
    put(tmp_path, LOT_1=b"SKU\nP22\n")
    run.spool.mkdir(mode=0o700)
    own = Careless(tmp_path / "exports", content, error)
    with pytest.raises((RefusedError, AuthorCodeError), match=told):
        Spool(replace(run, kept=run.spool)).fetch_or_use_in_place(own, store.list("", "LOT_*"), lambda: ())
    assert [path for path in (tmp_path / "work").rglob("*") if path.is_file()] == []
