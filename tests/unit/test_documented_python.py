"""The Python of a page is a module, or the files that its blocks name; their tests pass as an author runs them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.test_docs import DOCS, blocks

FOLDERS = ("tutorials", "how_to/connectors", "how_to/targets", "how_to/webhooks", "how_to/client")
PAGES = [page for folder in FOLDERS for page in sorted((DOCS / folder).glob("*.md")) if blocks(page, "python")]
PROGRAMS = {
    "how_to/webhooks/verify.md": "an application; tests/unit/test_webhooks.py tests what it calls",
    "how_to/client/python.md": "a program; tests/integration/client/test_platform_client.py runs it",
}
OF_PROCESSES = "in_every_process or acceptance"


def files(page: Path) -> dict[str, str]:
    """Return the code of each file of a page."""
    code_of: dict[str, str] = {}
    for code in blocks(page, "python"):
        named = re.match(r"# (\w+\.py)\n", code)
        name = named[1] if named else f"{page.parent.name}_{page.stem}.py"
        code_of[name] = code_of.get(name, "") + code
    return code_of


@pytest.mark.parametrize("of_processes", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_the_tests_of_the_pages_pass(tmp_path: Path, *, of_processes: bool) -> None:
    """Warnings are errors. Those tests that start processes take minutes."""
    for page in PAGES:
        if page.relative_to(DOCS).as_posix() not in PROGRAMS:
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
