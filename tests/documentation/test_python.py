"""The Python of a page is a module, or the files that its blocks name; its tests pass as an author runs them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.documentation import claims
from tests.documentation.fences import READ, fences_of, page_name

OF_PROCESSES = "in_every_process or acceptance"


PAGES = [
    page
    for page in READ
    if any(each.language == "python" and not claims.claim(claims.PYTHON, each.text) for each in fences_of(page))
]


def files(page: Path) -> dict[str, str]:
    """The code of each file of a page; blocks that other tests run are left out."""
    code_of: dict[str, str] = {}
    for fence in fences_of(page):
        if fence.language == "python" and not claims.claim(claims.PYTHON, fence.text):
            name = fence.title or f"{page_name(page).replace('.', '_')}.py"
            code_of[name] = code_of.get(name, "") + fence.text
    return code_of


@pytest.mark.nightly
@pytest.mark.parametrize("of_processes", [False, True])
def test_the_python_of_the_pages(tmp_path: Path, *, of_processes: bool) -> None:
    """It can be imported, and its tests pass; warnings are errors. Those that start processes take minutes."""
    for page in PAGES:
        for name, code in files(page).items():
            (tmp_path / name).write_text(code, encoding="utf-8")
    chosen = ["--acceptance", "-k", OF_PROCESSES] if of_processes else ["-k", f"not ({OF_PROCESSES})"]
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "-o", "python_files=*.py"]
    done = subprocess.run(
        [*command, "-p", "crossdock.testing.plugin", *chosen, "."],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) >= (3 if of_processes else 50)
