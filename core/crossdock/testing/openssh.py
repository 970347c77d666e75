"""The machine's own OpenSSH server, serving one folder by SFTP."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

_START_S = 10.0
_TRIES = 3  # another process may take the free port before sshd does
_RUN = Path("/run/sshd")

_CONFIG = """\
ListenAddress {host}:{port}
HostKey {place}/host_ed25519
HostKey {place}/host_rsa
AuthorizedKeysFile {place}/authorized
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
MaxStartups 100
Subsystem sftp internal-sftp
ForceCommand internal-sftp -d {place}/folder
{extra}
"""


class OpenSshServer:
    """``sshd`` on a free port of the loopback interface, while the context lasts.

    Logs in the user who runs it, by `client_key`; a password login would need a user whose password is known. Its
    login folder is *folder*, but it is not locked in there.

    Args:
        folder: What a client finds in its login folder.
        extra: More lines for ``sshd_config``.
    """

    host = "127.0.0.1"

    def __init__(self, folder: Path, *, extra: str = "") -> None:
        self.folder = folder.resolve()
        self.user = pwd.getpwuid(os.getuid()).pw_name
        self.port = 0
        self.client_key = ""
        self.fingerprint = ""
        self.rsa_fingerprint = ""
        self._extra = extra
        self._place = Path()
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def available() -> bool:
        """Whether this machine has an OpenSSH server and its key generator."""
        return _program("sshd") is not None and _program("ssh-keygen") is not None

    def start(self) -> None:
        """Return when it answers.

        Raises:
            RuntimeError: If it does not start; the message has what it said.
        """
        self._place = Path(tempfile.mkdtemp(prefix="crossdock-sshd-"))
        try:
            self._make_keys()
            (self._place / "folder").symlink_to(self.folder)  # sshd would take a path with blanks apart
            if os.getuid() == 0:
                _RUN.mkdir(mode=0o755, exist_ok=True)  # sshd insists; a booted machine has it
            for left in reversed(range(_TRIES)):
                if self._answers(self._launch()):
                    return
                if not left:
                    raise RuntimeError(f"sshd did not start:\n{(self._place / 'log').read_text()}")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop listening; sessions end when their clients hang up."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
        shutil.rmtree(self._place, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make_keys(self) -> None:
        for name, kind in (("host_ed25519", "ed25519"), ("host_rsa", "rsa"), ("client", "ed25519")):
            _keygen(
                "-q", "-t", kind, *(("-b", "2048") if kind == "rsa" else ()), "-N", "", "-f", str(self._place / name)
            )
        (self._place / "client.pub").rename(self._place / "authorized")
        self.client_key = (self._place / "client").read_text()
        self.fingerprint = self._fingerprint("host_ed25519.pub")
        self.rsa_fingerprint = self._fingerprint("host_rsa.pub")

    def _fingerprint(self, name: str) -> str:
        return _keygen("-l", "-E", "sha256", "-f", str(self._place / name)).split()[1]

    def _launch(self) -> subprocess.Popen[bytes]:
        with socket.create_server((self.host, 0)) as free:
            self.port = free.getsockname()[1]
        config = self._place / "config"
        config.write_text(_CONFIG.format(host=self.host, port=self.port, place=self._place, extra=self._extra))
        with (self._place / "log").open("wb") as log:
            command = [str(_program("sshd")), "-D", "-e", "-f", str(config)]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)  # noqa: S603
        return self._process

    def _answers(self, process: subprocess.Popen[bytes]) -> bool:
        deadline = time.monotonic() + _START_S
        while process.poll() is None and time.monotonic() < deadline:
            try:
                with socket.create_connection((self.host, self.port), timeout=_START_S) as sock:
                    return sock.recv(4) == b"SSH-"
            except OSError:
                time.sleep(0.01)
        return False


def _program(name: str) -> str | None:
    """``sshd`` stands where only root looks."""
    return shutil.which(
        name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
    )


def _keygen(*arguments: str) -> str:
    command = [str(_program("ssh-keygen")), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
