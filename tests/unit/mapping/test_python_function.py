"""Mapping functions in a file beside the config."""

from __future__ import annotations

import os
import py_compile
import re
import sys
from pathlib import Path

import pytest

from crossdock.mapping import python_function
from crossdock.mapping.python_function import PythonFunction, load_python_function
from crossdock.values.raw_rows_and_records import Record

RECORD = Record("1", ({"A": "x"},), "f", (2,))


def test_a_function_is_loaded_with_a_digest_of_its_file(tmp_path: Path) -> None:
    """The digest changes with the file, and the changed function is the one that is called."""
    file = tmp_path / "m.py"
    file.write_text("def one(record):\n    return record.row['A']\n")
    first = load_python_function("m.py:one", tmp_path)
    assert first.call(RECORD) == "x"
    file.write_text("def one(record):\n    return record.row['A'] * 2\n")
    second = load_python_function("m.py:one", tmp_path)
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
        python_function._SOURCES.clear()
        for name in [name for name in sys.modules if re.match("crossdock_mapping_|prices|shared", name)]:
            monkeypatch.delitem(sys.modules, name)
        return load_python_function("m.py:one", tmp_path).digest

    before = digest_of_a_new_process()
    assert digest_of_a_new_process() == before
    (tmp_path / changed).write_text(sources[changed] + "# changed\n")
    assert load_python_function("m.py:one", tmp_path).digest == before
    assert digest_of_a_new_process() != before


@pytest.mark.parametrize("changed", ["m.py", "prices.py"])
def test_a_file_of_the_same_size_and_time_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """Stored bytecode counts as current then, also of a module that is imported; what runs is what the digest says."""
    mapping = "from prices import RATE\nONE = 1\ndef one(record):\n    return ONE * RATE\n"
    sources = {"m.py": mapping, "prices.py": "RATE = 1\n"}
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    def write(name: str, text: str) -> None:
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, (1_700_000_000, 1_700_000_000))

    def loaded_in_a_new_process() -> PythonFunction:
        python_function._SOURCES.clear()
        for name in [name for name in sys.modules if re.match("crossdock_mapping_|prices", name)]:
            monkeypatch.delitem(sys.modules, name)
        return load_python_function("m.py:one", tmp_path)

    for name, text in sources.items():
        write(name, text)
        py_compile.compile(str(tmp_path / name))
    before = loaded_in_a_new_process()
    assert before.call(RECORD) == 1
    write(changed, sources[changed].replace("= 1", "= 2"))
    after = loaded_in_a_new_process()
    assert (after.call(RECORD), after.digest != before.digest) == (2, True)


def test_an_import_from_above_the_topmost_package_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that tries one, and goes on without, can be imported by a mapping."""
    (tmp_path / "upwards").mkdir()
    text = "try:\n    from .. import compat\nexcept ImportError:\n    compat = 'none'\n"
    (tmp_path / "upwards" / "__init__.py").write_text(text)
    (tmp_path / "m.py").write_text("from upwards import compat\ndef one(record):\n    return compat\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert load_python_function("m.py:one", tmp_path).call(RECORD) == "none"


def test_a_file_may_define_dataclasses(tmp_path: Path) -> None:
    """They look their module up by name."""
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n\n\n@dataclass\nclass Price:\n"
        "    text: str\n\n\ndef one(record):\n    return Price(record.row['A']).text\n"
    )
    (tmp_path / "d.py").write_text(text)
    assert load_python_function("d.py:one", tmp_path).call(RECORD) == "x"


@pytest.mark.parametrize(
    ("reference", "text", "message"),
    [
        ("m.py:two", "def one(): ...\n", "has no function 'two'"),
        ("m.py:number", "number = 1\n", "has no function 'number'"),
        ("m.py:one", "x = 1\ny = x / 0\n", r"m.py:2 raised ZeroDivisionError: division by zero"),
        ("m.py:one", "x = 1\ndef one(:\n", r"m.py:2 raised SyntaxError"),
        ("m.py:one", "import sys\nsys.exit(0)\n", r"m.py:2 raised SystemExit: 0"),
        ("m.py:one", "import sys\ndel sys.modules[__name__]\n1 / 0\n", r"m.py:3 raised ZeroDivisionError"),
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
        load_python_function(reference, tmp_path)


def test_copies_in_two_folders_are_two_modules(tmp_path: Path) -> None:
    """Each reads the files beside it: one process may run the configs of several tenants."""
    text = (
        "import pathlib\nNAME = pathlib.Path(__file__).with_name('name').read_text()\ndef name(_):\n    return NAME\n"
    )
    loaded = {}
    for tenant in ("a", "b"):
        folder = tmp_path / tenant
        folder.mkdir()
        (folder / "name").write_text(tenant, encoding="utf-8")
        (folder / "map.py").write_text(text, encoding="utf-8")
        loaded[tenant] = load_python_function("map.py:name", folder)
    assert {tenant: each.call(RECORD) for tenant, each in loaded.items()} == {"a": "a", "b": "b"}
    assert loaded["a"].digest == loaded["b"].digest
