"""The wheel in empty environments, with each Python of this machine: ``pytest tests/long/test_install.py -rsP``.

Packages come from PyPI, with the versions and hashes of the lock file; without PyPI, or without an interpreter, tests
are skipped. Interpreters are those on PATH, named ``python3.12`` and so on, and those of pyenv. Ten minutes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.distributions import (
    LOCK,
    PROJECT,
    ROOT,
    VERSIONS,
    Distributions,
    EmptyEnvironment,
    built,
    done,
    interpreter,
    own_environment,
)
from tests.servers import require

EXTRAS = "console", "dask", "otel", "postgres", "sheets", "zstd"
MOST_MB = 350  # of a base install; polars has 190
NEEDED = "jsonschema-rs", "openpyxl", "pytest-xdist", "trustme", "xxhash"  # by the tests in these folders
FAST = "tests/unit/mapping", "tests/unit/delta", "tests/unit/formats", "tests/unit/project"


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    return built(ROOT, tmp_path_factory.mktemp("dist"))


def environment_with(folder: Path, *requirements: str, version: str = VERSIONS[0]) -> EmptyEnvironment:
    python = interpreter(version)
    if not python:
        pytest.skip(f"Python {version} is missing on this machine")
    environment = EmptyEnvironment(folder, python)
    require(environment.has(*requirements), "PyPI", optional_by="CROSSDOCK_PYPI_OPTIONAL")
    return environment


@pytest.mark.parametrize("version", VERSIONS)
def test_the_wheel_alone_passes_the_demo(distributions: Distributions, tmp_path: Path, version: str) -> None:
    """Also the import of every public module, with warnings as errors."""
    environment = environment_with(tmp_path / "env", str(distributions.wheel), version=version)
    assert environment.run("crossdock", "--version").stdout == f"crossdock, version {PROJECT['version']}\n"
    assert "crossdock demo" in environment.run("crossdock", "--help").stdout
    modules = ", ".join(f"crossdock{each}" for each in ("", ".sources", ".targets", ".testing", ".resources"))
    environment.run("python", "-W", "error", "-c", f"import {modules}\nfrom crossdock import *")
    assert "file_growing" in environment.run("crossdock", "explain").stdout
    told = environment.run("crossdock", "demo", folder=tmp_path).stdout
    assert "exactly one for each delivered" in " ".join(told.split())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_part_of_the_suite_passes(distributions: Distributions, tmp_path: Path, version: str) -> None:
    """That without servers, on the installed package."""
    wheel = f"{distributions.wheel}[{','.join(EXTRAS)},testing]"
    environment = environment_with(tmp_path / "env", wheel, *NEEDED, version=version)
    command = [str(environment.python), "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider", *FAST]
    told = done(command, ROOT, own_environment(PYTHONPYCACHEPREFIX=str(tmp_path / "compiled"))).stdout
    print(version, told.splitlines()[-1])


def test_an_index_accepts_the_distributions(distributions: Distributions, tmp_path: Path) -> None:
    """``twine check --strict`` has no complaint."""
    environment = environment_with(tmp_path / "env", "twine")
    told = environment.run("twine", "check", "--strict", str(distributions.sdist), str(distributions.wheel)).stdout
    assert told.count("PASSED") == 2


def test_a_host_without_a_network_installs_from_a_folder(distributions: Distributions, tmp_path: Path) -> None:
    """As the page on installing says: downloads have the hashes of the lock file, and pip looks nowhere else."""
    environment = environment_with(tmp_path / "env", "pip")
    wheels = tmp_path / "wheels"
    pip = ("-m", "pip", "--disable-pip-version-check")
    download = "download", "--quiet", "--require-hashes", "--no-deps", "--only-binary", ":all:", "--dest", str(wheels)
    environment.run("python", *pip, *download, "--requirement", str(LOCK))
    install = "install", "--quiet", "--no-index", "--find-links", str(wheels), f"{distributions.wheel}[postgres]"
    environment.run("python", *pip, *install)
    environment.run("crossdock", "demo", folder=tmp_path)


def test_sizes(distributions: Distributions, tmp_path: Path) -> None:
    """A base install is smaller than its limit. Printed are the sizes of packages, and what each extra adds."""
    environment = environment_with(tmp_path / "env", str(distributions.wheel))
    base = before = sizes(environment.packages)
    for built_file in (distributions.wheel, distributions.sdist):
        print(f"{built_file.name}: {megabytes(built_file.stat().st_size)}")
    print(f"base install: {megabytes(base.total())}")
    print(*(f"  {name}: {megabytes(size)}" for name, size in base.most_common(25)), sep="\n")
    for extra in EXTRAS:
        assert environment.has(f"{distributions.wheel}[{extra}]")
        after = sizes(environment.packages)
        print(f"extra {extra}: {megabytes(after.total() - before.total())}")
        before = after
    assert base.total() < MOST_MB * 1e6


def sizes(packages: Path) -> Counter[str]:
    """Bytes of each file and folder in *packages*, with bytecode."""
    found = Counter[str]()
    for path in packages.rglob("*"):
        if path.is_file():
            found[path.relative_to(packages).parts[0]] += path.stat().st_size
    return found


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
