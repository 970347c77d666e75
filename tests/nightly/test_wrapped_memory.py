"""Large and hostile wrapped files in bounded memory, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.memory import measured
from tests.pgp_senders import PASSPHRASE, senders
from tests.unit.wrappers.test_zip_archives import ENCRYPTED, SECRET

LIMIT_MB = 250
ROWS = 5_000_000


def write_rows(path: Path) -> int:
    with path.open("w") as file:
        for start in range(0, ROWS, 100_000):
            file.write("".join(f"{n:08},{n * 7919 % 1_000_003}\n" for n in range(start, start + 100_000)))
    return path.stat().st_size


def test_large_files_take_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """80 MB in each wrapper, with the largest usual dictionaries, and gpg beside it, take at most 250 MB each."""
    monkeypatch.setenv("ZIP_PASSWORD", SECRET)
    monkeypatch.setenv("PASSPHRASE", PASSPHRASE)
    rows, files = tmp_path / "rows.csv", list[tuple[str, Any]]()
    size = write_rows(rows)
    for name, command, layer in (
        ("gz", ("gzip", "-c", "rows.csv"), "gzip"),
        ("bz2", ("bzip2", "-c", "rows.csv"), "bz2"),
        ("xz", ("xz", "--lzma2=preset=0,dict=64MiB", "-c", "rows.csv"), "xz"),
        ("zst", ("zstd", "-qc", "--long=27", "rows.csv"), "zstd"),
        ("zip", ("zip", "-q", "-", "rows.csv"), "zip"),
        ("aes.zip", ("7z", "a", "-so", "-tzip", "-bd", f"-p{SECRET}", "-mem=AES256", "x", "rows.csv"), ENCRYPTED),
    ):
        with (tmp_path / f"rows.{name}").open("wb") as out:
            subprocess.run(command, cwd=tmp_path, stdout=out, check=True)
        files.append((str(tmp_path / f"rows.{name}"), [layer]))
    with senders() as people:
        key = {"key": f"file:{people.secret('bob')}", "passphrase": "env:PASSPHRASE"}
        pgp = {"kind": "pgp", "decrypt": key, "signed_by": [str(people.public("alice"))]}
        for name, option in (("pgp", "--no-armor"), ("asc", "--armor")):
            made = people.message(rows.read_bytes(), option, to="bob", by="alice")
            (tmp_path / f"rows.{name}").write_bytes(made)
            files.append((str(tmp_path / f"rows.{name}"), [pgp]))
        for file in files:
            done = measured("tests.unit.wrappers.unwrapping", [json.dumps([file])], cwd=str(Path.cwd()))
            told, gpg_mb = done.out.splitlines()
            assert told == f"{Path(file[0]).name}: {size}"
            assert (done.peak_mb <= LIMIT_MB, int(gpg_mb) <= LIMIT_MB) == (True, True), (told, done.peak_mb, gpg_mb)


def test_hostile_files_take_little_memory(tmp_path: Path) -> None:
    """Bombs, endless lists of members and large dictionaries are refused before they take memory."""
    files = []
    for name, command, layer in (
        ("bomb.gz", ("gzip", "-6"), "gzip"),
        ("bomb.bz2", ("bzip2", "-9"), "bz2"),
        ("bomb.xz", ("xz", "-0"), "xz"),
        ("bomb.zst", ("zstd", "-3"), "zstd"),
    ):
        packed = subprocess.run(command, input=bytes(300_000_000), capture_output=True, check=True).stdout
        (tmp_path / name).write_bytes(packed)
        files.append((str(tmp_path / name), [layer]))
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(50):
            archive.writestr(f"{number}.csv", bytes(10_000_000))
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(300_000):
            archive.writestr(f"{number:030}", "")
    files += [(str(tmp_path / name), ["zip"]) for name in ("bomb.zip", "many.zip")]
    done = measured("tests.unit.wrappers.unwrapping", [json.dumps(files)], cwd=str(Path.cwd()))
    *told, _ = done.out.splitlines()
    refused = [line for line in told if "unpack to" in line or "whose list is too long" in line]
    assert len(refused) == len(files), done.out
    assert done.peak_mb <= LIMIT_MB, done.out
