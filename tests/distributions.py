"""The project as users install it: built, in environments of their own, with the interpreters of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = ROOT / ".ci" / "requirements.lock"
VERSIONS = "3.11", "3.12", "3.13", "3.14"  # the classifiers in pyproject.toml


@dataclass(frozen=True)
class Distributions:
    """What is uploaded to a package index."""

    sdist: Path
    wheel: Path


def built(source: Path, folder: Path) -> Distributions:
    """Build the project that is in *source*; the files are written to *folder*."""
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=source, check=True)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return Distributions(sdist, wheel)


def interpreter(version: str) -> str | None:
    """The path of a Python such as 3.12 that works; of those on PATH and of pyenv. None if there is none."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(name), *map(str, sorted(pyenv.glob(f"{version}.*/bin/{name}")))]
    return next(
        (each for each in found if each and subprocess.run([each, "-c", ""], check=False).returncode == 0), None
    )


def own_environment(**more: str) -> dict[str, str]:
    """The variables of this process without those that lead to the source tree or to other packages."""
    others = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "VIRTUAL_ENV", "CROSSDOCK_CONFIG"}
    return {name: value for name, value in os.environ.items() if name not in others} | more


class EmptyEnvironment:
    """A virtual environment in *folder*, with nothing in it.

    What is installed has the versions of the lock file, and one of its hashes; what the lock file does not have is
    the newest from the package index. Bytecode is compiled, as pip does.
    """

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self.folder, self.python = folder, folder / "bin" / "python"
        self._uv("venv", "--quiet", "--no-project", "--python", python, str(folder)).check_returncode()

    def has(self, *requirements: str) -> bool:
        """Install *requirements*; False if they cannot be had."""
        options = ("--quiet", "--python", str(self.python), "--compile-bytecode", "--constraint", str(LOCK))
        return self._uv("pip", "install", *options, *requirements).returncode == 0

    def run(self, program: str, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment in *folder*, which is also its home; its exit code must be 0."""
        place = folder or self.folder
        environment = own_environment(HOME=str(place), PATH=f"{self.folder / 'bin'}:{os.environ['PATH']}")
        return done([str(self.folder / "bin" / program), *arguments], place, environment)

    @property
    def packages(self) -> Path:
        """The folder of what is installed."""
        (found,) = (self.folder / "lib").glob("python3.*/site-packages")
        return found

    def _uv(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = own_environment(UV_PYTHON_DOWNLOADS="never", UV_LINK_MODE="copy", UV_NO_CONFIG="1")
        return subprocess.run(
            [find_uv_bin(), *arguments], check=False, text=True, env=environment, cwd=self.folder.parent
        )


def done(command: Sequence[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run *command* to its end, with exit code 0."""
    ended = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended
