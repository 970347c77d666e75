"""A temporary PostgreSQL server."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
from pathlib import Path

from crossdock.testing.server_process import ServerProcess

_USER = "crossdock"
_SETTINGS = (
    *("listen_addresses=127.0.0.1", "unix_socket_directories=", "shared_buffers=32MB"),
    *("fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off"),
)
_OTHER_USERS = ("postgres", "nobody")


class PostgresServer(ServerProcess):
    """PostgreSQL on a free port of the loopback interface while the context is open.

    It trusts every local user and does not sync to disk. Started by root it runs as ``postgres`` or ``nobody``, because
    it refuses to run as root.
    """

    name = "postgres"
    end_signal = signal.SIGINT  # "fast" shutdown, which does not wait for clients

    def __init__(self) -> None:
        super().__init__()
        self._numbers = itertools.count(1)

    @staticmethod
    def available() -> bool:
        """Return whether PostgreSQL's server programs and a user who may run them exist."""
        return _program_folder() is not None and (os.getuid() != 0 or _unprivileged_user() is not None)

    def prepare(self) -> None:
        if os.getuid() == 0 and (other := _unprivileged_user()):
            self.switch = {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []}
            shutil.chown(self.place, other.pw_uid)
        locale = ("--locale=C", "--encoding=UTF8")
        self._run_program("initdb", "-D", str(self.place / "data"), "-U", _USER, "-A", "trust", "--no-sync", *locale)

    def command(self) -> list[str]:
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        return [_program("postgres"), "-D", str(self.place / "data"), "-p", str(self.port), *settings]

    def accepts_connections(self) -> bool:
        """Return whether the last line of the server's lock file, which ``pg_ctl`` also reads, says that it is
        ready.
        """
        lock = self.place / "data" / "postmaster.pid"
        return lock.exists() and lock.read_text().split()[-1:] == ["ready"]

    def create_database(self) -> str:
        """Create an empty database and return its SQLAlchemy URL."""
        name = f"test_{next(self._numbers)}"
        self._run_program("createdb", "-h", self.host, "-p", str(self.port), "-U", _USER, "-w", name)
        return f"postgresql+psycopg://{_USER}@{self.host}:{self.port}/{name}"

    def _run_program(self, program: str, *arguments: str) -> None:
        command = [_program(program), *arguments]
        done = subprocess.run(  # noqa: S603
            command, check=False, capture_output=True, text=True, cwd=self.place, **self.switch
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed:\n{done.stderr or done.stdout}")


def _program_folder() -> Path | None:
    """Return the folder of the newest version. Distributions install several in parallel, outside PATH."""
    installed = [path.parent for path in Path("/usr/lib/postgresql").glob("[0-9]*/bin/initdb")]
    if installed:
        return max(installed, key=lambda folder: float(folder.parent.name))
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def _program(name: str) -> str:
    return str((_program_folder() or Path()) / name)


def _unprivileged_user() -> pwd.struct_passwd | None:
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return next((known[name] for name in _OTHER_USERS if name in known), None)
