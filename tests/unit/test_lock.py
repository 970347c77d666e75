"""What development and CI install: pinned, by hash, and what the project asks for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = (ROOT / ".ci" / "requirements.lock").read_text()
ENTRY = re.compile(
    r"([a-z0-9-]+)==([^ ;]+)( ; [^\\]+)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)(?:    # .*\n)*"
)
# Data whose version is a date, of which every later one is wanted.
UNBOUNDED = {"distributed", "tzdata"}


def requirements(project: dict[str, Any]) -> Iterator[Requirement]:
    """Of the project, all of its extras and its build; not the project itself, which extras name."""
    facts = project["project"]
    asked = [*project["build-system"]["requires"], *facts["dependencies"]]
    for extra in facts["optional-dependencies"].values():
        asked += extra
    return (each for each in map(Requirement, asked) if each.name != facts["name"])


def unsatisfied(project: dict[str, Any], lock: str) -> list[str]:
    """The requirements for which *lock* has no version that fits."""
    pinned = {entry[1]: entry[2] for entry in ENTRY.finditer(lock)}
    asked = ((each, pinned.get(canonicalize_name(each.name))) for each in requirements(project))
    return [str(each) for each, version in asked if version is None or version not in each.specifier]


def test_the_lock_file_is_nothing_but_pinned_hashes() -> None:
    """Each line belongs to an entry with a version and a SHA-256; no index, no address, no option stands in it."""
    assert ENTRY.sub("", LOCK) == ""
    assert len(ENTRY.findall(LOCK)) > 100


def test_the_lock_file_has_what_the_project_asks_for() -> None:
    """Of every requirement, also of what builds the project, a version that fits; CONTRIBUTING says how to renew it."""
    assert unsatisfied(PROJECT, LOCK) == []


@pytest.mark.parametrize("change", [("click==", "klick=="), ("\nclick==8", "\nclick==7")])
def test_a_lock_file_that_does_not_fit_is_found(change: tuple[str, str]) -> None:
    """A requirement that is missing and one whose version is too old are named."""
    assert LOCK.count(change[0]) == 1
    assert unsatisfied(PROJECT, LOCK.replace(*change)) == ["click<9,>=8.4"]


def test_the_next_major_version_is_not_taken_unseen() -> None:
    """Every requirement has an upper bound, but those whose versions are dates."""
    unbounded = {each.name for each in requirements(PROJECT) if not any(s.operator == "<" for s in each.specifier)}
    assert unbounded == UNBOUNDED
