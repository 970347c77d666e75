"""Which finished files a source keeps copies of, and which of them it fetches again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from crossdock.reading.sources.file_order import FileOrder
from crossdock.reading.sources.listed_and_known_files import KnownFiles, StreamId
from crossdock.reading.transport.file_store import RemoteFile
from crossdock.state import FileFacts

NOW = datetime(2026, 3, 1, tzinfo=UTC)
OWN = StreamId("w.orders", "1")
ages = st.lists(st.integers(0, 20), max_size=6, unique=True).map(lambda days: sorted(days, reverse=True))


def known_files(days: list[int], kept: timedelta | None, *, snapshot: bool = False) -> KnownFiles:
    """A source that has finished one file on each of these days before now, the oldest first."""
    done = {
        f"hash{day}": FileFacts(
            f"f{day}", f"hash{day}", 1, NOW - timedelta(days=day + 1), "", accepted_at=NOW - timedelta(days=day)
        )
        for day in days
    }
    intake = SimpleNamespace(
        finished_files=lambda _stream_template_values, _version: done,
        known_files=lambda _stream_template_values: list(done.values()),
        unfinished_files=lambda _stream_template_values: {},
        passed_over_files=lambda _stream_template_values: set(),
        digests_removed_by_retention=lambda _stream_template_values, _version: set(),
    )
    run: Any = SimpleNamespace(intake=intake, clock=SimpleNamespace(now=lambda: NOW))
    return KnownFiles(run, [OWN], FileOrder(snapshot=snapshot), kept=kept)


def listed(day: int) -> RemoteFile:
    return RemoteFile(f"f{day}", 1, int((NOW - timedelta(days=day + 1)).timestamp()))


@given(days=ages, within=st.integers(0, 20))
def test_files_of_some_time_are_kept(days: list[int], within: int) -> None:
    """The others are outdated, whether this run has taken them or not."""
    files = known_files(days, timedelta(days=within))
    kept = {f"hash{day}" for day in days if day <= within}
    assert files.kept_copies().keys() == kept
    assert set(files.hashes_of_unneeded_copies([])) == {f"hash{day}" for day in days} - kept


@given(days=ages)
def test_the_last_snapshot_is_kept(days: list[int]) -> None:
    """However old it is."""
    files = known_files(days, timedelta(0), snapshot=True)
    assert list(files.kept_copies()) == [f"hash{day}" for day in days[-1:]]


@given(days=ages, lost=st.sets(st.integers(0, 20)))
def test_a_kept_file_without_a_copy_is_fetched_again(days: list[int], lost: set[int]) -> None:
    """A finished file that need not be kept is never new."""
    files = known_files(days, timedelta(days=7))
    new = files.files_to_fetch(
        [listed(day) for day in days], lambda content: int(content.removeprefix("hash")) not in lost
    )
    assert {file.name for file in new} == {f"f{day}" for day in days if day <= 7 and day in lost}


def test_without_joins_nothing_is_kept() -> None:
    """A copy is removed as soon as its file is finished."""
    files = known_files([3, 1], None)
    assert files.kept_copies() == {}
    (known,) = (each for each in files.files_to_skip(OWN).values() if each.content_hash == "hash1")
    assert files.hashes_of_unneeded_copies([known, structs.replace(known, content_hash="other")]) == ["hash1"]
    assert files.files_to_fetch([listed(1)], lambda _: False) == []
    assert cast("Any", files).files_to_skip(OWN).keys() == {"hash3", "hash1"}
