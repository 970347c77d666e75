"""Mapping functions in a file beside the config."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from crossdock.mapping import python_function
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


@pytest.mark.parametrize("changed", ["prices.py", "shared/__init__.py", "shared/rules.py"])
def test_the_digest_covers_what_the_file_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
    """Also what that imports, but nothing that is installed, and not before the process that runs is started again."""
    (tmp_path / "shared").mkdir()
    sources = {
        "m.py": "import json\nimport pytest\nfrom prices import one\n",
        "prices.py": "from shared.rules import FACTOR\n\n\ndef one(record):\n    return record.row['A'] * FACTOR\n",
        "shared/__init__.py": "",
        "shared/rules.py": "from . import __name__\n\nFACTOR = 2\n",
    }
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)

    def digest_of_a_new_process() -> str:
        python_function._loaded_source.cache_clear()
        for name in [name for name in sys.modules if re.match("crossdock_mapping_|prices|shared", name)]:
            monkeypatch.delitem(sys.modules, name)
        return load("m.py:one", tmp_path).digest

    before = digest_of_a_new_process()
    assert digest_of_a_new_process() == before
    (tmp_path / changed).write_text(sources[changed] + "# changed\n")
    assert load("m.py:one", tmp_path).digest == before
    assert digest_of_a_new_process() != before


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
