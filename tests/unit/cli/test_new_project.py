"""What ``crossdock new`` writes, and what the documentation shows, has the form that linters expect."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.unit.cli.conftest import CommandLine

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("kind", ["http", "files", "declarative", "declarative-files"])
def test_ruff_has_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """With its defaults, ruff neither complains of a new project nor would format it otherwise."""
    monkeypatch.chdir(tmp_path)
    assert CommandLine(tmp_path).run("new", "acme-shop", "--kind", kind).code == 0
    for command in ("check", "format --check"):
        done = subprocess.run(
            ["ruff", *command.split(), "--isolated", "--no-cache", "."],
            cwd=tmp_path / "acme-shop",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


def test_ruff_has_no_finding_in_the_documentation(tmp_path: Path) -> None:
    """But for the names of other examples on the same page."""
    for page in DOCS.glob("*.md"):
        examples = re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for number, example in enumerate(examples):
            (tmp_path / f"{page.stem}_{number}.py").write_text(example)
    command = ["ruff", "check", "--isolated", "--no-cache", "--ignore", "F401,F821", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
