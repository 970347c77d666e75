"""Streams of gzip, bzip2, xz and zstd as their programs write them, and what is refused of them."""

from __future__ import annotations

import shutil
import subprocess
from itertools import count

import pytest
from tests.servers import require
from tests.unit.wrappers.unwrapping import contents, refusal

from crossdock.errors import ConfigError, RefusedError
from crossdock.reading.wrappers import stream_compression

TEXT = b"".join(b"%d,%d\n" % (n, n * n) for n in range(20_000))
PROGRAMS = {"gzip": ("gzip", "-c"), "bz2": ("bzip2", "-c"), "xz": ("xz", "-c"), "zstd": ("zstd", "-qc")}
KINDS = pytest.mark.parametrize("kind", PROGRAMS)
SKIPPED_FRAME = b"\x53\x2a\x4d\x18\x03\0\0\0abc"


def packed(kind: str, data: bytes, *options: str) -> bytes:
    program, *usual = PROGRAMS[kind]
    require(shutil.which(program) is not None, program)
    return subprocess.run((program, *usual, *options), input=data, capture_output=True, check=True).stdout


@KINDS
def test_what_the_programs_write_is_read(kind: str) -> None:
    """In one or several members, which are one file, also with what their formats allow around members."""
    two = packed(kind, TEXT[:999]) + packed(kind, TEXT[999:])
    variants = {"one": packed(kind, TEXT), "two": two, "nothing": packed(kind, b"") + two}
    variants |= {"padded": two + bytes(512)} if kind in {"gzip", "xz"} else {}
    variants |= {"skipped": SKIPPED_FRAME + two + SKIPPED_FRAME} if kind == "zstd" else {}
    for name, data in variants.items():
        assert contents(data, kind) == {"out/F": TEXT}, name


@KINDS
def test_damage_is_refused_with_file_and_reason(kind: str) -> None:
    """Cut, changed, with a wrong checksum, or with bytes behind the end."""
    whole = packed(kind, TEXT)
    assert "ends before its end marker" in refusal(whole[:-1], kind)
    assert "ends before its end marker" in refusal(whole[: len(whole) // 2], kind)
    changed = bytearray(whole)
    changed[-3] ^= 0x10
    for data in (bytes(changed), whole + b"x", whole + b"A,B\n1,2\n"):
        assert refusal(data, kind).startswith("out/F: the "), "corrupt or followed by other data"
    assert "does not begin so" in refusal(TEXT, kind)
    assert "is empty" in refusal(b"", kind)


@KINDS
def test_what_grows_is_refused(kind: str) -> None:
    """By its ratio, its size, its members and its time, each with a limit that the config may set."""
    bomb, layer = packed(kind, bytes(30_000_000)), {"kind": kind}
    assert "unpack to" in refusal(bomb, kind)
    assert contents(bomb, layer | {"max_ratio": 10_000_000}) == {"out/F": bytes(30_000_000)}
    assert "unpack to" in refusal(packed(kind, TEXT), layer | {"max_bytes": len(TEXT) - 1})
    members = packed(kind, b"x") * 11
    assert contents(members, layer | {"max_members": 11}) == {"out/F": b"x" * 11}
    assert "more than 10" in refusal(members, layer | {"max_members": 10})
    passing = count()
    assert "takes too long" in refusal(packed(kind, TEXT), layer | {"max_s": 1}, clock=lambda: float(next(passing)))


def test_large_dictionaries_are_refused() -> None:
    """A file that asks for more memory to be unpacked than it may take."""
    from backports import zstd

    compressor = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 28})
    assert "takes too much memory" in refusal(compressor.compress(TEXT) + compressor.flush(), "zstd")
    assert "takes too much memory" in refusal(packed("xz", TEXT, "--lzma2=dict=256MiB"), "xz")


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install; the other kinds need none."""
    data = packed("zstd", TEXT)
    monkeypatch.setattr(stream_compression, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="zstd needs backports.zstd") as missing:
        contents(data, "zstd")
    assert missing.value.hint == "pip install 'crossdock[zstd]'"


def test_one_more_gzip_is_not_unpacked_unasked() -> None:
    """A file is unwrapped as often as declared, and no more: two layers need two declarations."""
    twice = packed("gzip", packed("gzip", TEXT))
    with pytest.raises(RefusedError, match="the file in it is packed with gzip") as refused:
        contents(twice, "gzip")
    assert refused.value.hint == "Declare wrapped: [gzip, gzip], or ask the sender."
    assert contents(twice, "gzip", "gzip") == {"out/F": TEXT}
    assert "must be packed with xz, and is packed with gzip" in refusal(twice, "xz")
