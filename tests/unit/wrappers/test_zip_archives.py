"""zip archives as other programs write them, and what is refused of them."""

from __future__ import annotations

import io
import shutil
import subprocess
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.servers import require
from tests.unit.wrappers.unwrapping import contents, refusal

from crossdock.reading.wrappers.wrapper import UnreadArchiveMembers

STOCK, PRICES = b"SKU,QTY\n0017,5\n", b"SKU,PRICE\n0017,9.50\n"
BOTH = {"STOCK.csv": STOCK, "PRICES.csv": PRICES}
SECRET = "Winter 7"
ENCRYPTED = {"kind": "zip", "password": "env:ZIP_PASSWORD"}
CENTRAL, CRC, SIZE = b"PK\1\2", 16, 24  # of the list of members, and where its facts are


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZIP_PASSWORD", SECRET)


def zipped(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def made(folder: Path, *command: str, files: Mapping[str, bytes] = BOTH, stdin: bytes = b"") -> bytes:
    """What a program makes of *files*; the archive is ``a.zip``."""
    require(shutil.which(command[0]) is not None, command[0])
    for name, data in files.items():
        (folder / name).write_bytes(data)
    done = subprocess.run(command, cwd=folder, input=stdin, capture_output=True, check=True)
    archive = folder / "a.zip"
    return archive.read_bytes() if archive.exists() else done.stdout


def changed(data: bytes, at: int, member: int = 0, local: int | None = None) -> bytes:
    """An archive of which a byte in the list of members, and one in the header of the first, is another."""
    found, place = bytearray(data), -1
    for _ in range(member + 1):
        place = data.index(CENTRAL, place + 1)
    found[place + at] ^= 1
    if local is not None:
        found[local] ^= 1
    return bytes(found)


def test_what_other_programs_write_is_read(tmp_path: Path) -> None:
    """Members by their names, also with sizes behind the data, of zip64, and with names in code page 437."""
    named = {f"out/F/{name}": data for name, data in sorted(BOTH.items())}
    assert contents(made(tmp_path, "zip", "-q", "a.zip", *BOTH), "zip") == named
    assert list(contents(zipped(BOTH, zipfile.ZIP_STORED), "zip").items()) == list(named.items())
    (tmp_path / "a.zip").unlink()
    assert contents(made(tmp_path, "zip", "-q", "-", "-", stdin=STOCK), "zip") == {"out/F/-": STOCK}
    assert contents(made(tmp_path, "zip", "-q", "-fz", "a.zip", *BOTH), "zip") == named
    (tmp_path / "a.zip").unlink()
    unseekable = made(tmp_path, "zip", "-q", "-fz", "-", "-", stdin=STOCK)
    assert "list of members of the zip archive is damaged" in refusal(unseekable, "zip"), "unzip refuses it, too"
    old = zipped({"_.csv": STOCK}).replace(b"_.csv", b"\x81.csv")
    assert contents(old, "zip") == {"out/F/ü.csv": STOCK}
    assert contents(zipped({"a.zip": zipped(BOTH)}), "zip", "zip").keys() == {f"out/F/a.zip/{name}" for name in BOTH}


@pytest.mark.parametrize("strength", ["AES128", "AES192", "AES256"])
def test_encrypted_archives_are_read(tmp_path: Path, strength: str) -> None:
    """With the right password and not with another; the key and the content are verified."""
    data = made(tmp_path, "7z", "a", "-bso0", f"-p{SECRET}", f"-mem={strength}", "a.zip", *BOTH)
    assert contents(data, ENCRYPTED) == {f"out/F/{name}": text for name, text in BOTH.items()}
    assert "no password is declared" in refusal(data, "zip")
    large = STOCK * 30_000
    (tmp_path / "a.zip").unlink()
    data = made(tmp_path, "7z", "a", "-bso0", f"-p{SECRET}", f"-mem={strength}", "a.zip", "L", files={"L": large})
    assert contents(data, ENCRYPTED) == {"out/F/L": large}, "in several blocks"


def test_wrong_passwords_and_changes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the old encryption of zip, which is no protection, and an archive that is not encrypted as declared."""
    data = made(tmp_path, "7z", "a", "-bso0", f"-p{SECRET}", "-mem=AES256", "-mx=0", "a.zip", "STOCK.csv")
    flipped = bytearray(data)
    flipped[data.index(b"STOCK.csv") + len(b"STOCK.csv") + 11 + 16 + 2 + 3] ^= 1
    assert refusal(bytes(flipped), ENCRYPTED).startswith("out/F/STOCK.csv: the member was changed after it was encr")
    assert "a password is declared" in refusal(zipped(BOTH), ENCRYPTED)
    (tmp_path / "a.zip").unlink()
    old = made(tmp_path, "zip", "-q", "-P", SECRET, "a.zip", "STOCK.csv")
    assert "is encrypted, but not with AES" in refusal(old, ENCRYPTED)
    monkeypatch.setenv("ZIP_PASSWORD", "another")
    assert "the password is wrong" in refusal(data, ENCRYPTED)


def test_members_are_chosen_by_a_pattern(tmp_path: Path) -> None:
    """Only those are read, also in folders; without a pattern a folder is refused."""
    data = zipped({"README.txt": b"", "out/": b"", "out/STOCK.csv": STOCK, "out/old/STOCK.csv": b""})
    assert contents(data, {"kind": "zip", "members": "out/*.csv"}) == {"out/F/out/STOCK.csv": STOCK}
    assert "no member of the zip archive matches 'S*'" in refusal(data, {"kind": "zip", "members": "S*"})
    assert "member 'out/' is a folder" in refusal(data, "zip")
    assert "'out/STOCK.csv' is in a folder" in refusal(zipped({"out/STOCK.csv": STOCK}), "zip")


@pytest.mark.parametrize(
    ("pattern", "others", "alike"),
    [
        ("*.csv", ["BRE.CSV", "bre.csV"], ["BRE.CSV", "bre.csV"]),
        ("*.csv", ["README.txt", "__MACOSX/._STOCK_1.csv", "old/STOCK_1.csv", "STOCK_1.csv.bak"], []),
        ("STOCK_[0-9].csv", ["STOCK_10.csv", "stock.csv", "PRICES_1.csv"], ["STOCK_10.csv"]),
        ("STOCK_?.csv", ["stock_7.csv", "STOCK_2026.CSV"], ["STOCK_2026.CSV", "stock_7.csv"]),
    ],
)
def test_members_that_are_passed_over_are_told(pattern: str, others: list[str], alike: list[str]) -> None:
    """Among them those that may belong to the chosen ones: their names differ from them in case and digits at most."""
    found = UnreadArchiveMembers()
    data = zipped({"folder/": b"", "STOCK_1.csv": STOCK, **dict.fromkeys(others, STOCK)})
    read = contents(zipped({"a.zip": data}), "zip", {"kind": "zip", "members": pattern}, passed_over=found)
    assert read.keys() == {"out/F/a.zip/STOCK_1.csv"}
    assert sorted(found.names) == sorted(f"out/F/a.zip/{name}" for name in others)
    assert sorted(found.lookalikes) == [f"out/F/a.zip/{name}" for name in alike]


def test_damaged_archives_are_refused_with_member_and_reason() -> None:
    """What the list of members, a header and the data say must be the same, and nothing may follow."""
    good = zipped(BOTH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("STOCK.csv", b"1")
            archive.writestr("STOCK.csv", b"2")
        twice = file.getvalue()
    overlapping = zipped({"a": STOCK, "b": STOCK})
    second = overlapping.index(CENTRAL, overlapping.index(CENTRAL) + 1)
    overlapping = overlapping[: second + 42] + bytes(4) + overlapping[second + 46 :]
    packed = bytearray(zipped({"STOCK.csv": STOCK * 9}))
    packed[45] ^= 0xFF
    for data, told in (
        (good[:-1], "out/F: the zip archive has no list of members"),
        (good[: len(good) // 2], "out/F: the zip archive has no list of members"),
        (good + b"\n", "out/F: the zip archive is followed by other data"),
        (zipped({}), "out/F: the zip archive is empty"),
        (zipped({"../STOCK.csv": STOCK}), "out/F: member '../STOCK.csv' has an unsafe name"),
        (zipped({"/STOCK.csv": STOCK}), "out/F: member '/STOCK.csv' has an unsafe name"),
        (zipped({"C:STOCK.csv": STOCK}), "out/F: member 'C:STOCK.csv' has an unsafe name"),
        (twice, "out/F: there are 2 members 'STOCK.csv'"),
        (overlapping, "out/F: member 'b' overlaps another one"),
        (changed(good, CRC), "out/F/STOCK.csv: the member has another name, size or checksum in its header"),
        (changed(good, CRC, local=14), "out/F/STOCK.csv: the member has another checksum"),
        (changed(good, SIZE, local=22), "out/F/STOCK.csv: the member is not 14 bytes long"),
        (changed(good, CRC, member=1), "out/F/PRICES.csv: the member has another name, size or checksum"),
        (bytes(packed), "out/F/STOCK.csv: the "),
        (zipped(BOTH, zipfile.ZIP_BZIP2), "out/F/PRICES.csv: the member is packed with method 12"),
        (changed(good, 28), "out/F: "),
        (STOCK, "out/F: the file must be a zip archive, and does not begin so"),
    ):
        assert refusal(data, "zip").startswith(told), (told, refusal(data, "zip"))


def test_archives_that_grow_are_refused() -> None:
    """By their ratio over all members, the number of members, and the length of their list, before they are read."""
    bombs = zipped({f"{n}.csv": bytes(8_000_000) for n in range(2)})
    assert "unpack to" in refusal(bombs, "zip")
    many: dict[str, Any] = {"kind": "zip", "max_members": 10}
    assert contents(zipped({f"{n}": b"" for n in range(10)}), many)
    assert "has 11 members" in refusal(zipped({f"{n}": b"" for n in range(11)}), many)
    assert "whose list is too long" in refusal(zipped({f"{n:0200}": b"" for n in range(18_000)}), "zip")
