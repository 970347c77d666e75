"""A PostgreSQL server of one's own, thrown away afterwards."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

_START_S = 30.0
_TRIES = 3  # another process may take the free port before postgres does
_USER = "crossdock"
_LOCALES = ("--locale=C", "--encoding=UTF8")
_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off", "shared_buffers=32MB")
_LOCAL = ("listen_addresses=127.0.0.1", "unix_socket_directories=")
_OTHER_USERS = ("postgres", "nobody")


class PostgresServer:
    """PostgreSQL on a free port of the loopback interface, while the context lasts.

    It trusts everybody on this machine and survives no power cut. When root starts it, it runs as ``postgres`` or
    ``nobody``, because it refuses to run as root.
    """

    host = "127.0.0.1"

    def __init__(self) -> None:
        self.port = 0
        self._place = Path()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)

    @staticmethod
    def available() -> bool:
        """Whether this machine has PostgreSQL's server programs and a user who may run them."""
        return _programs() is not None and (os.getuid() != 0 or _other_user() is not None)

    @property
    def url(self) -> str:
        """SQLAlchemy's URL of the database that is always there."""
        return self._url("postgres")

    def start(self) -> None:
        """Return when it takes connections.

        Raises:
            RuntimeError: If it does not start; the message has what it said.
        """
        self._place = Path(tempfile.mkdtemp(prefix="crossdock-postgres-"))
        try:
            if (user := _switch().get("user")) is not None:
                shutil.chown(self._place, user)
            self._run("initdb", "-D", str(self._data), "-U", _USER, "-A", "trust", "--no-sync", *_LOCALES)
            for left in reversed(range(_TRIES)):
                if self._ready(self._launch()):
                    return
                if not left:
                    raise RuntimeError(f"postgres did not start:\n{self._log.read_text()}")
        except BaseException:
            self.close()
            raise

    def create_database(self) -> str:
        """Make an empty database of its own for the caller; returns SQLAlchemy's URL of it."""
        name = f"test_{next(self._numbers)}"
        self._run("createdb", "-h", self.host, "-p", str(self.port), "-U", _USER, "-w", name)
        return self._url(name)

    def close(self) -> None:
        """Disconnect everybody, stop, and remove all data."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # "fast": it does not wait for clients
            self._process.wait()
        shutil.rmtree(self._place, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _data(self) -> Path:
        return self._place / "data"

    @property
    def _log(self) -> Path:
        return self._place / "log"

    def _url(self, database: str) -> str:
        return f"postgresql+psycopg://{_USER}@{self.host}:{self.port}/{database}"

    def _launch(self) -> subprocess.Popen[bytes]:
        with socket.create_server((self.host, 0)) as free:
            self.port = free.getsockname()[1]
        options = [word for setting in (*_LOCAL, *_FAST) for word in ("-c", setting)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603
                [_program("postgres"), "-D", str(self._data), "-p", str(self.port), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._place,
                **_switch(),
            )
        return self._process

    def _ready(self, process: subprocess.Popen[bytes]) -> bool:
        """The server itself writes its state in the last line of its lock file, which ``pg_ctl`` reads too."""
        deadline = time.monotonic() + _START_S
        lock = self._data / "postmaster.pid"
        while process.poll() is None and time.monotonic() < deadline:
            if lock.exists() and lock.read_text().split()[-1:] == ["ready"]:
                return True
            time.sleep(0.01)
        return False

    def _run(self, program: str, *arguments: str) -> None:
        command = [_program(program), *arguments]
        done = subprocess.run(  # noqa: S603
            command, check=False, capture_output=True, text=True, cwd=self._place, **_switch()
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed:\n{done.stderr or done.stdout}")


def _programs() -> Path | None:
    """The folder of the newest server; distributions keep several beside each other, outside PATH."""
    installed = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    found = shutil.which("initdb")
    numbered = sorted(
        (path for path in installed if path.parent.name.isdigit()), key=lambda path: int(path.parent.name)
    )
    return numbered[-1] if numbered else Path(found).resolve().parent if found else None


def _program(name: str) -> str:
    folder = _programs()
    if folder is None:
        raise RuntimeError("PostgreSQL's server programs are not installed")
    return str(folder / name)


def _other_user() -> pwd.struct_passwd | None:
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return next((known[name] for name in _OTHER_USERS if name in known), None)


def _switch() -> dict[str, Any]:
    """What `subprocess` must be told to run something as a user whom PostgreSQL accepts."""
    other = _other_user() if os.getuid() == 0 else None
    return {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []} if other else {}
