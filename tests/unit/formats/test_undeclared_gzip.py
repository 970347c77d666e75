"""Plain and packed files in a stream, and what is refused of them."""

from __future__ import annotations

import gzip
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossdock.errors import RefusedError
from crossdock.reading.wrappers import wrapper
from crossdock.reading.wrappers.stream_compression import MAX_IDLE, GzipSettings, open_and_unpack_if_gzip

TEXT = b"".join(b"%d,%d\n" % (n, n * n) for n in range(20_000))


def read_all(path: Path, data: bytes, size: int = 4096, **limits: int) -> bytes:
    path.write_bytes(data)
    with open_and_unpack_if_gzip(path, name="out/LOT.gz", limits=GzipSettings(kind="gzip", **limits)) as stream:
        return b"".join(iter(lambda: stream.read(size), b""))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spooled"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(TEXT, id="plain"),
        pytest.param(gzip.compress(TEXT), id="gzip"),
        pytest.param(gzip.compress(TEXT[:999]) + gzip.compress(TEXT[999:]), id="two members"),
        pytest.param(gzip.compress(TEXT) + bytes(512), id="padded with zeros, as tapes do"),
    ],
)
def test_reads_plain_and_gzip(path: Path, data: bytes) -> None:
    """The bytes tell whether a file is packed, not its name."""
    assert read_all(path, data) == TEXT


@pytest.mark.parametrize("cut", [1, 8, 9, 500, 20_000])
def test_cut_gzip_is_refused(path: Path, cut: int) -> None:
    """A gzip that misses its end is refused, wherever it was cut."""
    with pytest.raises(RefusedError, match="ends before its end mark") as refusal:
        read_all(path, gzip.compress(TEXT)[:-cut])
    assert refusal.value.where == "out/LOT.gz"


def test_flipped_bits_never_change_the_text(path: Path) -> None:
    """Damage to the packed data is refused, or it hit padding and what comes out is right."""
    text, refused = TEXT[:200], 0
    packed = gzip.compress(text)
    for at in range(10, len(packed)):
        try:
            assert read_all(path, packed[:at] + bytes([packed[at] ^ 0x40]) + packed[at + 1 :]) == text
        except RefusedError:
            refused += 1
    assert refused >= len(packed) - 12


@pytest.mark.parametrize("rest", [b"x", b"A,B\n1,2\n", b"\x1f\x8b", b"\0\0x"])
def test_garbage_behind_gzip_is_refused(path: Path, rest: bytes) -> None:
    """What follows the packed data is neither dropped nor taken."""
    with pytest.raises(RefusedError):
        read_all(path, gzip.compress(TEXT) + rest)


def test_bomb_is_refused_early(path: Path) -> None:
    """A small file that unpacks to very much is stopped soon after the free bytes."""
    path.write_bytes(gzip.compress(bytes(30_000_000)))
    with open_and_unpack_if_gzip(path, name="bomb.gz") as stream:
        for _ in range(wrapper.FREE_BYTES // 1_000_000):
            assert len(stream.read(1_000_000)) == 1_000_000
        with pytest.raises(RefusedError, match="unpack to") as refusal:
            stream.read(1_000_000)
    assert refusal.value.where == "bomb.gz"


def test_small_blank_file_is_no_bomb(path: Path) -> None:
    """Below the free bytes any ratio will do."""
    assert len(read_all(path, gzip.compress(bytes(5_000_000)), size=1 << 20)) == 5_000_000


def test_total_size_is_limited(path: Path) -> None:
    """However well it is packed, a file cannot fill the disk."""
    with pytest.raises(RefusedError, match="unpack to"):
        read_all(path, gzip.compress(TEXT), max_bytes=100_000)


def member(text: bytes, *, name: bytes = b"") -> bytes:
    """A gzip member whose header holds a file name."""
    packed = gzip.compress(text, mtime=0)
    return packed[:3] + b"\x08" + packed[4:10] + name + b"\0" + packed[10:]


@given(
    cuts=st.lists(st.integers(0, 3000), max_size=8),
    zeros=st.integers(0, 700),
    name=st.integers(0, 70_000),
    size=st.sampled_from([1, 2, 3, 100, 1 << 20]),
)
@settings(max_examples=40)
def test_members_headers_and_padding_are_passed_over(cuts: list[int], zeros: int, name: int, size: int) -> None:
    """However a text is cut into members, it comes as one, and each read gives as much as was asked for."""
    text, places = TEXT[:3000], sorted([0, *cuts, 3000])
    data = b"".join(member(text[start:end], name=b"x" * name) + bytes(zeros) for start, end in pairwise(places))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        with open_and_unpack_if_gzip(path, name="f") as stream:
            parts = list(iter(lambda: stream.read(size), b""))
    assert b"".join(parts) == text
    assert {len(part) for part in parts[:-1]} <= {size}


IDLE = MAX_IDLE


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(member(TEXT, name=b"x" * (IDLE + (64 << 10))), id="header"),
        pytest.param(member(TEXT) + bytes(IDLE + 1), id="padding at the end"),
        pytest.param(member(TEXT) + bytes(IDLE + 1) + member(TEXT), id="padding between"),
        pytest.param(member(b"") * (IDLE // 20), id="empty members"),
        pytest.param(gzip.compress(b"")[:10] + b"\x00\x00\x00\xff\xff" * (IDLE // 4), id="empty blocks"),
    ],
)
def test_gzip_of_nothing_ends(path: Path, data: bytes) -> None:
    """Headers, padding, members and blocks that bring nothing are refused once they are long."""
    with pytest.raises(RefusedError, match="consecutive bytes of gzip that unpack to nothing") as refusal:
        read_all(path, data)
    assert refusal.value.where == "out/LOT.gz"


def test_padding_of_a_tape_is_taken(path: Path) -> None:
    """A file may be filled up to the block size of a tape, which is far below the limit."""
    assert read_all(path, gzip.compress(TEXT) + bytes(512 << 10)) == TEXT


def test_members_are_limited(path: Path) -> None:
    """Each member costs time, so there may not be any number of them."""
    assert read_all(path, gzip.compress(b"x") * 100, max_members=100) == b"x" * 100
    with pytest.raises(RefusedError, match="more than 100 gzip members"):
        read_all(path, gzip.compress(b"x") * 101, max_members=100)


def test_lines_are_limited(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows cost memory until their file is read, so a small file may not unpack to any number of them."""
    monkeypatch.setattr(wrapper, "FREE_LINES", 1000)
    packed = gzip.compress(b"1\n" * 100_000)
    with pytest.raises(RefusedError, match="lines and more"):
        read_all(path, packed)
    assert read_all(path, b"1\n" * 100_000) == b"1\n" * 100_000
    monkeypatch.setattr(wrapper, "FREE_LINES", 0)
    assert read_all(path, gzip.compress(TEXT, 9)) == TEXT, "lines that differ are never too many"
