"""mypy and pyright, both strict, accept what authors write against the installed package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.documentation.test_python import PAGES, files

import crossdock
from crossdock import sources, testing
from crossdock.cli.main import cli

ROOT = Path(__file__).parents[2]
KINDS = ("http", "files", "declarative", "declarative-files")
WRONG = "wrong.py"
PYRIGHT = {
    "typeCheckingMode": "strict",
    "reportDuplicateImport": "none",  # the blocks of a page are one module here
    "include": ["."],
    "executionEnvironments": [{"root": f"acme-{kind}"} for kind in KINDS] + [{"root": "."}],
}


def examples(page: Path) -> str:
    """The Python of a page of the documentation."""
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))


def documented() -> list[tuple[str, str]]:
    """The files of the pages that show Python, by name."""
    return [file for page in PAGES for file in files(page).items()]


def every_name() -> str:
    """A module that uses every public name."""
    modules = (crossdock, sources, testing)
    lines = [f"from {module.__name__} import {', '.join(module.__all__)}" for module in modules]
    return "\n".join([*lines, f"print({', '.join(name for module in modules for name in module.__all__)})", ""])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """New projects of every kind, the examples of the documentation, and a use of every public name."""
    made = tmp_path_factory.mktemp("author")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        for kind in KINDS:
            cli.main(["new", f"acme-{kind}", "--kind", kind], standalone_mode=False)
    (made / "readme.py").write_text(examples(ROOT / "README.md"), encoding="utf-8")
    for name, code in documented():
        (made / name).write_text(code, encoding="utf-8")
    (made / "every_name.py").write_text(every_name(), encoding="utf-8")
    (made / "pyrightconfig.json").write_text(json.dumps(PYRIGHT), encoding="utf-8")
    return made


def failures(folder: Path, *command: str) -> str:
    """What a type checker reports, or an empty text."""
    ended = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False, timeout=600
    )
    return ended.stdout if ended.returncode else ""


@pytest.fixture(scope="module")
def diagnosed(folder: Path) -> list[dict[str, str]]:
    """What pyright finds in all of *folder* and in one wrong module."""
    wrong = folder / "acme-http" / WRONG
    wrong.write_text("from crossdock import Nonsense, ProductDraft\nprint(Nonsense, ProductDraft(sku=7, name='x'))\n")
    try:
        found = failures(folder, "basedpyright", "--pythonpath", sys.executable, "--outputjson")
    finally:
        wrong.unlink()
    diagnostics: list[dict[str, str]] = json.loads(found)["generalDiagnostics"]
    return diagnostics


def test_pyright_strict_accepts_them(diagnosed: list[dict[str, str]]) -> None:
    """Nothing is of unknown type, and no attribute of a subclass contradicts its base."""
    assert [each for each in diagnosed if Path(each["file"]).name != WRONG] == []


def test_pyright_checks_what_it_is_given(diagnosed: list[dict[str, str]]) -> None:
    """A name that does not exist and a draft of a wrong type are found, so the test above does not pass by accident."""
    assert {"reportAttributeAccessIssue", "reportArgumentType"} <= {each["rule"] for each in diagnosed}


@pytest.mark.parametrize("part", ["acme-http", "acme-files", "acme-declarative", "."])
def test_mypy_strict_accepts_them(folder: Path, part: str) -> None:
    """Without the mypy plugin of pydantic, which authors need not have."""
    settings = [
        "--strict",
        "--config-file",
        os.devnull,
        "--cache-dir",
        str(folder / "cache"),
        "--follow-imports",
        "silent",
    ]
    modules = ["."] if part != "." else ["readme.py", "every_name.py", *(name for name, _ in documented())]
    assert failures(folder / part, "mypy", *settings, *modules) == ""
