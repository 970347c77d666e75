"""Plain and packed files in a stream, and what is refused of them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from crossdock.errors import RefusedError
from crossdock.formats import compression
from crossdock.formats.compression import open_stream

TEXT = b"".join(b"%d,%d\n" % (n, n * n) for n in range(20_000))


def read_all(path: Path, data: bytes, size: int = 4096) -> bytes:
    path.write_bytes(data)
    with open_stream(path, name="out/LOT.gz") as stream:
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
    with open_stream(path, name="bomb.gz") as stream:
        for _ in range(compression.FREE_BYTES // 1_000_000):
            assert len(stream.read(1_000_000)) == 1_000_000
        with pytest.raises(RefusedError, match="unpack to") as refusal:
            stream.read(1_000_000)
    assert refusal.value.where == "bomb.gz"


def test_small_blank_file_is_no_bomb(path: Path) -> None:
    """Below the free bytes any ratio will do."""
    assert len(read_all(path, gzip.compress(bytes(5_000_000)), size=1 << 20)) == 5_000_000


def test_total_size_is_limited(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However well it is packed, a file cannot fill the disk."""
    monkeypatch.setattr(compression, "MAX_BYTES", 100_000)
    with pytest.raises(RefusedError, match="unpack to"):
        read_all(path, gzip.compress(TEXT))
