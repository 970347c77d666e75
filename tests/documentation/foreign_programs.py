"""Programs of pages that cannot be run here, each with the reason, and what of their use is checked instead."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.documentation.fences import ROOT
from tests.documentation.options import check_options

Check = Callable[[list[str], Path], None]


def _extras(arguments: list[str], folder: Path) -> None:
    """The extras of ``crossdock[...]`` and ``.[...]`` exist."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    known = tomllib.loads(text)["project"]["optional-dependencies"].keys()
    for word in arguments:
        for named in re.findall(r"^(?:crossdock|\.)\[([\w,-]+)\]", word):
            assert set(named.split(",")) <= known | {"dev"}, f"no such extra: {word}"


def _files(arguments: list[str], folder: Path) -> None:
    """Files of the project that are named exist."""
    for word in arguments:
        if re.match(r"(configs|docs|tests|\.ci)/", word):
            assert (ROOT / word).exists(), f"no such file: {word}"


def _nothing(arguments: list[str], folder: Path) -> None:
    """Nothing of it is crossdock's."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that is not run."""

    reason: str
    check: Check


PROGRAMS = {
    "pip": Program("it would change the environment of the tests", _extras),
    "uv": Program("it would change the environment of the tests", _extras),
    "pipx": Program("it would change the environment of the tests", _extras),
    "pytest": Program(
        "tests/nightly/test_new_project.py runs the tests of new projects; the suite is this one", _files
    ),
    "just": Program("its recipes are the daily commands of CONTRIBUTING.md, which run for minutes", _nothing),
    "pre-commit": Program("it installs hooks into a repository, and downloads", _nothing),
    "podman": Program("it builds an image from a registry", _files),
    "docker": Program("it builds an image from a registry", _files),
    "kubectl": Program("it needs a cluster; tests/unit/test_deploy_examples.py checks the manifests", _files),
    "sudo": Program("it needs the rights of the administrator", _nothing),
    "journalctl": Program("it reads the log of the machine", _nothing),
    "sqlite3": Program("it is not on every machine; the backup is SQLite's own", _nothing),
    "pg_dump": Program("it needs a server; tests/unit/state has states on PostgreSQL", _nothing),
    "systemctl": Program("it needs the rights of the administrator", _nothing),
    "apt-get": Program("it needs the rights of the administrator", _nothing),
    "dask": Program("tests/nightly/test_dask_executor.py runs a cluster", _nothing),
    "bash": Program("'.ci/run' runs all of CI", _files),
    "gpg": Program("it needs a key ring of a person; tests/unit/wrappers makes keys with it", _nothing),
    "openapi-generator-cli": Program("tests/nightly/test_sandbox_consumers.py makes the clients", _nothing),
}


def is_foreign(name: str, arguments: list[str]) -> bool:
    """Whether a command is not run: one of another program, or one that needs a cluster."""
    return name != "crossdock" or any(word.startswith("dask=tcp://") for word in arguments)


def check(name: str, arguments: list[str], folder: Path) -> None:
    """Check what can be checked of a command that is not run.

    Raises:
        AssertionError: If it names what does not exist.
    """
    if name == "crossdock":
        check_options(arguments)
    else:
        PROGRAMS[name].check(arguments, folder)
