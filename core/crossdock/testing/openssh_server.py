"""An OpenSSH server that serves one folder over SFTP."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from pathlib import Path

from crossdock.testing.server_process import ServerProcess

_SEARCHED = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
_CONFIG = """\
ListenAddress {host}:{port}
HostKey {place}/host_ed25519
HostKey {place}/host_rsa
AuthorizedKeysFile {place}/client.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
MaxStartups 100
Subsystem sftp internal-sftp
ForceCommand {command}
{extra}
"""


class OpenSshServer(ServerProcess):
    """``sshd`` on a free port of the loopback interface while the context is open.

    The current user logs in with `client_key`, to *folder*; other folders are accessible too. Sessions end when their
    clients disconnect. *extra* is appended to ``sshd_config``. *command* serves a session in place of sshd itself.
    """

    name = "sshd"

    def __init__(self, folder: Path, *, extra: str = "", command: str | None = None) -> None:
        super().__init__()
        self.folder = folder.resolve()
        self.user = pwd.getpwuid(os.getuid()).pw_name
        self.client_key = self.fingerprint = self.rsa_fingerprint = ""
        self._extra, self._command = extra, command

    @staticmethod
    def available() -> bool:
        """Return whether ``sshd`` and ``ssh-keygen`` are installed."""
        return None not in {_program("sshd"), _program("ssh-keygen")}

    def prepare(self) -> None:
        self.fingerprint = self._generate_key_and_return_fingerprint("host_ed25519", "-t", "ed25519")
        self.rsa_fingerprint = self._generate_key_and_return_fingerprint("host_rsa", "-t", "rsa", "-b", "2048")
        self._generate_key_and_return_fingerprint("client", "-t", "ed25519")
        self.client_key = (self.place / "client").read_text()
        (self.place / "folder").symlink_to(self.folder)  # sshd splits a path at blanks
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # required by sshd; a booted machine has it

    def command(self) -> list[str]:
        config = self.place / "config"
        serving = self._command or f"internal-sftp -d {self.place}/folder"
        facts = {"host": self.host, "port": self.port, "place": self.place, "command": serving}
        config.write_text(_CONFIG.format(**facts, extra=self._extra))
        return [str(_program("sshd")), "-D", "-e", "-f", str(config)]

    def accepts_connections(self) -> bool:
        try:
            with socket.create_connection((self.host, self.port), timeout=1) as sock:
                return sock.recv(4) == b"SSH-"
        except OSError:
            return False

    def _generate_key_and_return_fingerprint(self, name: str, *kind: str) -> str:
        """Generate a key pair and return its fingerprint."""
        path = str(self.place / name)
        _keygen("-q", *kind, "-N", "", "-f", path)
        return _keygen("-l", "-E", "sha256", "-f", path).split()[1]


def _program(name: str) -> str | None:
    return shutil.which(name, path=_SEARCHED)  # sshd is in a folder that is not in a user's PATH


def _keygen(*arguments: str) -> str:
    command = [str(_program("ssh-keygen")), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
