"""What is wrapped comes out again, in any order of two wrappers, and other programs can read it."""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.examples import examples
from tests.pgp_senders import PASSPHRASE, Senders
from tests.unit.wrappers.test_zip_archives import SECRET
from tests.unit.wrappers.unwrapping import contents, reading, refusal, writing

from crossdock.errors import RefusedError
from crossdock.reading.wrappers.wrapping_and_unwrapping import wrap_file

ENCRYPTED = {"kind": "zip", "password": "env:ZIP_PASSWORD"}
LAYERS: dict[str, Any] = {**{kind: kind for kind in ("gzip", "bz2", "xz", "zstd", "zip")}, "aes": ENCRYPTED}
PAIRS = [*((kind,) for kind in LAYERS), *product(LAYERS, repeat=2)]
DATA = st.binary(max_size=3000) | st.binary(max_size=40).map(lambda piece: piece * 5_000)
DAMAGE = st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7), st.binary(max_size=4))
OPENED_BY = {
    "gzip": ("gzip", "-dc"), "bz2": ("bzip2", "-dc"), "xz": ("xz", "-dc"), "zstd": ("zstd", "-dqc"),
    "zip": ("unzip", "-p"), "aes": ("7z", "x", "-so", "-bd", f"-p{SECRET}"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZIP_PASSWORD", SECRET)
    monkeypatch.setenv("PASSPHRASE", PASSPHRASE)


def put_into(data: bytes, *layers: Any) -> tuple[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = wrap_file(data, writing(*layers), name="stock.csv", folder=Path(folder))
        assert [each.name for each in Path(folder).iterdir()] == [path.name], "nothing else is left"
        return path.name, path.read_bytes()


@given(DATA, st.sampled_from(PAIRS))
@settings(max_examples=examples(600), deadline=None)
def test_what_is_wrapped_comes_out_again(data: bytes, kinds: tuple[str, ...]) -> None:
    """Byte by byte, through each wrapper and each pair; cut by one byte it is refused."""
    assume(not data.startswith(b"\x1f\x8b"))  # which is refused, as it would be unpacked unasked
    layers = [LAYERS[kind] for kind in kinds]
    _, made = put_into(data, *layers)
    limits = [{"max_ratio": 10_000_000, **({"kind": each} if isinstance(each, str) else each)} for each in layers]
    assert list(contents(made, *limits).values()) == [data]
    assert refusal(made[:-1], *limits)


@given(
    st.sampled_from([*LAYERS]),
    st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7), st.binary(max_size=4)), min_size=1, max_size=3
    ),
)
@settings(max_examples=examples(1000), deadline=None)
def test_damage_never_changes_what_is_read(kind: str, damage: list[tuple[float, int, bytes]]) -> None:
    """Whatever bytes are changed, left out or put in, a file is refused as a whole or is read as it was."""
    data = b"".join(b"%d;%d\n" % (number, number**3) for number in range(60))
    made = bytearray(put_into(data, LAYERS[kind])[1])
    for place, removed, put_in in damage:
        at = int(place * len(made))
        made[at : at + removed] = put_in
    with suppress(RefusedError):
        assert list(contents(bytes(made), LAYERS[kind]).values()) == [data]


@pytest.mark.nightly
def test_messages_in_and_around_each_wrapper_come_out_again(people: Senders) -> None:
    """A PGP message of each wrapped file, each wrapper around a PGP message, and a message in a message."""
    data = b"SKU,QTY\n0017,5\n" * 100
    out = {"kind": "pgp", "encrypt_to": [str(people.public("mallory"))]}
    key = {"key": f"file:{people.secret('mallory')}"}
    into = {"kind": "pgp", "decrypt": key}
    for kind, layer in {**LAYERS, "pgp": None}.items():
        written, read = (out, into) if kind == "pgp" else (layer, layer)
        for outer, inner in ((True, False), (False, True)) if kind != "pgp" else ((True, True),):
            made = put_into(data, out if outer else written, out if inner else written)[1]
            found = contents(made, into if outer else read, into if inner else read)
            assert list(found.values()) == [data], (kind, outer)


def test_other_programs_read_what_is_wrapped(tmp_path: Path) -> None:
    """The programs of their formats, and the name says in what a file is wrapped."""
    data = b"SKU,QTY\n" + b"0017,5\n" * 20_000
    for kind, program in OPENED_BY.items():
        name, made = put_into(data, LAYERS[kind])
        (tmp_path / name).write_bytes(made)
        read = subprocess.run((*program, name), cwd=tmp_path, capture_output=True, check=True).stdout
        assert read == data, kind
    assert put_into(data, "bz2", "gzip")[0] == "stock.csv.gz.bz2", "the outermost first"
    assert put_into(data, "zip") == put_into(data, "zip"), "the same bytes each time"


def test_a_file_is_wrapped_from_its_path(tmp_path: Path) -> None:
    """It stays as it is, and the zip archive keeps the given name."""
    file = tmp_path / "spooled"
    file.write_bytes(b"0017")
    path = wrap_file(file, writing("zip"), name="stock.csv", folder=tmp_path)
    assert contents(path.read_bytes(), "zip", name="a.zip") == {"a.zip/stock.csv": b"0017"}
    assert file.read_bytes() == b"0017"


def test_what_cannot_be_declared() -> None:
    """Three layers, none, and a kind that there is not."""
    for layers in ((), ("gzip",) * 3, ("lzip",), ({"kind": "gzip", "password": "env:X"},)):
        with pytest.raises(ValidationError):
            reading(*layers)
