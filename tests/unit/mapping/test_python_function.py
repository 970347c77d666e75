"""Mapping functions in a file beside the config."""

from __future__ import annotations

from pathlib import Path

import pytest

from crossdock.mapping.python_function import load
from crossdock.records import Record

RECORD = Record("1", ({"A": "x"},), "f", (2,))


def test_a_function_is_loaded_with_a_digest_of_its_file(tmp_path: Path) -> None:
    """The digest changes with the file, and the changed function is the one that is called."""
    file = tmp_path / "m.py"
    file.write_text("def one(record):\n    return record.row['A']\n")
    first = load("m.py:one", tmp_path)
    assert first.call(RECORD) == "x"
    file.write_text("def one(record):\n    return record.row['A'] * 2\n")
    second = load("m.py:one", tmp_path)
    assert second.call(RECORD) == "xx"
    assert first.digest != second.digest


def test_a_file_may_define_dataclasses(tmp_path: Path) -> None:
    """They look their module up by name."""
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n\n\n@dataclass\nclass Price:\n"
        "    text: str\n\n\ndef one(record):\n    return Price(record.row['A']).text\n"
    )
    (tmp_path / "d.py").write_text(text)
    assert load("d.py:one", tmp_path).call(RECORD) == "x"


@pytest.mark.parametrize(
    ("reference", "text", "message"),
    [
        ("m.py:two", "def one(): ...\n", "has no function 'two'"),
        ("m.py:number", "number = 1\n", "has no function 'number'"),
        ("m.py:one", "x = 1\ny = x / 0\n", r"m.py:2 raised ZeroDivisionError: division by zero"),
        ("m.py:one", "x = 1\ndef one(:\n", r"m.py:2 raised SyntaxError"),
        ("m.py:one", "import sys\nsys.exit(0)\n", r"m.py:2 raised SystemExit: 0"),
        ("m.py:one", "import nothing_of_this_name\n", r"m.py:1 raised ModuleNotFoundError"),
        ("other.py:one", "", "other.py cannot be read: No such file or directory"),
        ("m.py", "", "must be a section of members, or FILE.py:FUNCTION"),
        ("m.py:", "", "must be a section of members, or FILE.py:FUNCTION"),
        ("m.txt:one", "", "must be a section of members, or FILE.py:FUNCTION"),
        ("SKU", "", "must be a section of members, or FILE.py:FUNCTION"),
    ],
)
def test_what_cannot_be_loaded_is_explained(reference: str, text: str, message: str, tmp_path: Path) -> None:
    """With the file, and the line where the file itself fails."""
    (tmp_path / "m.py").write_text(text)
    with pytest.raises(ValueError, match=message):
        load(reference, tmp_path)
