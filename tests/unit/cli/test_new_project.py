"""What ``crossdock new`` writes, and what the documentation shows, has the form that linters expect."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.unit.cli.conftest import CommandLine

DOCS = Path(__file__).parents[3] / "docs"


def linted(project: Path) -> str:
    """What ruff finds with its defaults and in imports, and what it would format otherwise."""
    commands = ("check", "check --select E,F,I --ignore E501", "format --diff")
    ended = [
        subprocess.run(
            ["ruff", *command.split(), "--isolated", "--no-cache", "."],
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
        )
        for command in commands
    ]
    return "".join(each.stdout + each.stderr for each in ended if each.returncode)


@pytest.mark.parametrize(
    "options",
    [
        "--kind http",
        "--kind files",
        "--kind declarative",
        "--kind declarative-files",
        "--target",
        "--webhooks",
        "--graphql",
        "--target --graphql",
        "--target --webhooks --graphql",
    ],
)
def test_ruff_has_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str) -> None:
    """With its defaults, ruff neither complains of a new project nor would format it otherwise."""
    monkeypatch.chdir(tmp_path)
    assert CommandLine(tmp_path).run("new", "acme-shop", *options.split()).code == 0
    assert linted(tmp_path / "acme-shop") == ""


@pytest.mark.parametrize("option", ["--target", "--webhooks", "--graphql"])
def test_what_only_an_api_has_is_refused_for_other_kinds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    """Nothing is written."""
    monkeypatch.chdir(tmp_path)
    refused = CommandLine(tmp_path).run("new", "acme-shop", "--kind", "files", option)
    assert refused.code == 2
    assert f"{option} is for connectors of --kind http" in refused.err
    assert list(tmp_path.iterdir()) == []


def test_the_target_of_a_graphql_api_sends_mutations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says which answers of success are refusals; without --graphql it has none of that."""
    monkeypatch.chdir(tmp_path)
    line = CommandLine(tmp_path)
    assert line.run("new", "acme-shop", "--target", "--graphql").code == 0
    assert line.run("new", "rest-shop", "--target").code == 0
    made = [(tmp_path / name / name.replace("-", "_") / "target.py").read_text() for name in ("acme-shop", "rest-shop")]
    assert ["mutation" in text for text in made] == ["AnswerErrors(" in text for text in made] == [True, False]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            "--openapi acme.yaml --graphql",
            "--graphql cannot be combined with --openapi: an OpenAPI document describes no",
        ),
        ("--openapi acme.yaml --webhooks", "--webhooks cannot be combined with --openapi: streams that are proposed"),
        ("--openapi acme.yaml --target --webhooks", "write a second project with --webhooks"),
        ("--kind declarative --target", "a config declares it in a section of the connection"),
    ],
)
def test_what_cannot_be_combined_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, says: str
) -> None:
    """Nothing is written."""
    monkeypatch.chdir(tmp_path)
    refused = CommandLine(tmp_path).run("new", "acme-shop", *options.split())
    assert (refused.code, says in refused.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_ruff_has_no_finding_in_the_documentation(tmp_path: Path) -> None:
    """But for the names of other examples on the same page. Lines may be as long as this project's."""
    for page in (*DOCS.rglob("*.md"), DOCS.parent / "README.md"):
        examples = re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for number, example in enumerate(examples):
            (tmp_path / f"{page.parent.name}_{page.stem}_{number}.py").write_text(example)
    for module in ("shop", "products"):  # the reader's own, from which other examples import
        (tmp_path / f"{module}.py").touch()
    for rules in ((), ("--select", "E,F,I", "--line-length", "120")):
        command = ["ruff", "check", "--isolated", "--no-cache", *rules, "--ignore", "F401,F821", "."]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
