"""Which encodings a layout may name, and that each is decoded exactly."""

from __future__ import annotations

import encodings
import pkgutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crossdock.errors import RefusedError
from crossdock.reading.formats.delimited_files import read_delimited_rows
from crossdock.reading.formats.delimited_layout import DelimitedFormat
from crossdock.reading.formats.text_decoding import validate_encoding_name


def _is_known(name: str) -> bool:
    try:
        return validate_encoding_name(name) == name
    except ValueError:
        return False


KNOWN = sorted(found.name for found in pkgutil.iter_modules(encodings.__path__) if _is_known(found.name))


def test_every_character_encoding_of_python_is_known() -> None:
    """All of them, and nothing that is not one, whatever Python's version brings."""
    assert {"utf_8", "utf_8_sig", "utf_16", "utf_32_be", "cp1252", "cp037", "cp1140", "gb18030", "koi8_r"} <= set(KNOWN)
    assert len(KNOWN) >= 100
    for name in ("base64", "rot13", "idna", "punycode", "unicode_escape", "undefined", "utf-7", "mbcs", "", "\0"):
        assert not _is_known(name)


@pytest.mark.parametrize(
    ("name", "near"), [("cp-1252", "cp1252"), ("win1252", "cp1252"), ("ebcdic", "cp037"), ("utf16le", "utf-16-le")]
)
def test_a_wrong_name_gets_the_nearest(name: str, near: str) -> None:
    """The error names an encoding that is written alike."""
    if not _is_known(name):
        with pytest.raises(ValueError, match=f"did you mean '{near}'"):
            validate_encoding_name(name)


@pytest.mark.nightly(
    but=[
        "ascii",
        "big5hkscs",
        "cp037",
        "cp1252",
        "cp437",
        "cp932",
        "euc_jp",
        "gb18030",
        "gbk",
        "hz",
        "iso2022_jp",
        "iso2022_kr",
        "iso8859_15",
        "koi8_r",
        "latin_1",
        "mac_roman",
        "shift_jis",
        "shift_jis_2004",
        "utf_16",
        "utf_16_le",
        "utf_32",
        "utf_8",
        "utf_8_sig",
    ]
)
@pytest.mark.parametrize("name", KNOWN)
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.sampled_from("abcXYZ 019äöüßéñłжЯ漢字かなกอ한글€£"), max_size=12), chunk=st.integers(1, 9))
def test_each_encoding_is_decoded_exactly(name: str, text: str, chunk: int, tmp_path: Path) -> None:
    """However it is cut into blocks, a file comes back as it was encoded."""
    cell = "x" + text.encode(name, "ignore").decode(name, "ignore")
    path = tmp_path / "file"
    path.write_bytes(f"A;B\n1;{cell}\n2;y\n".encode(name))
    frames = list(
        read_delimited_rows(path, DelimitedFormat(delimiter=";", encoding=name, quote=None), name="f", _chunk=chunk)
    )
    assert [row for frame in frames for row in frame.rows()] == [("1", cell, 2), ("2", "y", 3)]


@pytest.mark.parametrize("name", ["shift_jis", "gb18030", "iso2022_jp", "euc_kr", "utf-32-be", "utf-16-be", "ascii"])
@pytest.mark.parametrize("chunk", [1, 2, 3, 1000])
def test_bytes_that_are_not_of_the_encoding_are_refused(name: str, chunk: int, tmp_path: Path) -> None:
    """The file is refused with the line, after all lines before it."""
    path = tmp_path / "file"
    bad = b"\xff\xff" if "utf" not in name else b"\xd8\x00\xd8\x00"
    path.write_bytes("A;B\n1;x\n".encode(name) + bad + "2;y\n".encode(name))
    with pytest.raises(RefusedError, match="of the file \\(from 0\\) is not") as refused:
        list(read_delimited_rows(path, DelimitedFormat(delimiter=";", encoding=name), name="f", _chunk=chunk))
    assert refused.value.where == "f:3"


@pytest.mark.parametrize("name", ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_byte_order_mark_is_optional(name: str, mark: str, tmp_path: Path) -> None:
    """With or without it, the first column has the same name."""
    path = tmp_path / "file"
    path.write_bytes(f"{mark}A,B\n1,2\n".encode(name.removesuffix("-sig")))
    (frame,) = read_delimited_rows(path, DelimitedFormat(encoding=name), name="f")
    assert frame.rows() == [("1", "2", 2)]
    assert frame.columns[0] == "A"


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "cp850", "iso8859-15"])
@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_utf_8_under_another_name_is_refused(encoding: str, chunk: int, tmp_path: Path) -> None:
    """All bytes are characters of cp1252, so that a sender who changes to UTF-8 would rename each Müller."""
    path, layout = tmp_path / "a.csv", DelimitedFormat(encoding=encoding)
    names = ["Müller", "Bolt", "Grün", "Zoë"]
    path.write_text("NAME\n" + "".join(f"{name}\n" for name in names), encoding="utf-8")
    with pytest.raises(RefusedError, match="the file is in UTF-8, and .* is declared") as refused:
        list(read_delimited_rows(path, layout, name="a.csv", _chunk=chunk))
    assert "encoding: utf-8" in str(refused.value.hint)
    path.write_text("NAME\n" + "".join(f"{name}\n" for name in names), encoding=encoding)
    assert [
        name for frame in read_delimited_rows(path, layout, name="a.csv", _chunk=chunk) for name in frame["NAME"]
    ] == names


@pytest.mark.parametrize(
    "names",
    [
        ["NESCAFÉ®"] * 9,  # which is UTF-8, too, but of no word
        ["MÃ¼ller", "Bolt"],  # one that was damaged before
        ["MÃ¼ller"] * 9 + ["Müller"],
    ],
)
def test_what_may_be_the_declared_encoding_is_read(names: list[str], tmp_path: Path) -> None:
    """A few wrong texts are those of the sender's own data."""
    path = tmp_path / "a.csv"
    path.write_text("NAME\n" + "".join(f"{name}\n" for name in names), encoding="cp1252")
    found = read_delimited_rows(path, DelimitedFormat(encoding="cp1252"), name="a.csv")
    assert [name for frame in found for name in frame["NAME"]] == names
