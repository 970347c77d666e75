"""django-oscar with django-oscar-api at work: an environment of its own, a database in a file, and gunicorn."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import httpx

from crossdock.testing.server_process import ServerProcess

HERE = Path(__file__).parent


def installed(folder: Path) -> Path | None:
    """The Python of an environment in *folder* with the pinned packages; None if they cannot be had."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "-r"]
    done = subprocess.run([*command, str(HERE / "requirements.txt")], check=False, env=_environment())
    return python if done.returncode == 0 else None


def _environment(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | more


class OscarServer(ServerProcess):
    """A shop that the merchant has just opened.

    Attributes:
        token: Of its staff.
    """

    name = "oscar"

    def __init__(self, python: Path) -> None:
        super().__init__()
        self._python = python
        self.token = ""

    def prepare(self) -> None:
        shutil.copytree(HERE / "shop", self.place / "shop")
        self._run("-m", "django", "migrate", "-v", "0")
        self.token = json.loads(self._run("-m", "shop.begin"))["token"]
        self.switch = {"env": self._shop_environment()}

    def command(self) -> list[str]:
        at = f"{self.host}:{self.port}"
        wsgi = "django.core.wsgi:get_wsgi_application()"
        return [str(self._python), "-m", "gunicorn", "-b", at, "-w", "2", "--threads", "2", wsgi]

    def accepts_connections(self) -> bool:
        try:
            return httpx.get(f"{self.url}/api/", trust_env=False).is_success
        except httpx.HTTPError:
            return False

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def _run(self, *arguments: str) -> str:
        command = [str(self._python), *arguments]
        environment = self._shop_environment()
        done = subprocess.run(command, cwd=self.place, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _shop_environment(self) -> Mapping[str, str]:
        return _environment(DJANGO_SETTINGS_MODULE="shop.settings", SHOP_DATA=str(self.place))
