"""Senders and receivers of PGP messages, which use GnuPG's program with keys of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers import require

MADE = "20240101T000000"  # when the keys were made; those with a year have expired
PASSPHRASE = "correct horse"
_OPTIONS = ("--batch", "--yes", "--quiet", "--pinentry-mode", "loopback", "--trust-model", "always")


class Senders:
    """Keys of people, in one folder. `public` and `secret` are the files with the keys of one."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def add(self, name: str, *, passphrase: str = "", years: str = "never") -> None:
        made = ("--faked-system-time", MADE, "--passphrase", passphrase)
        self.gpg(*made, "--quick-gen-key", f"{name}@example.com", "future-default", "default", years)
        self.public(name).write_bytes(self.gpg("--armor", "--export", f"{name}@example.com"))
        exported = self.gpg("--passphrase", passphrase, "--armor", "--export-secret-keys", f"{name}@example.com")
        self.secret(name).touch(0o600)
        self.secret(name).write_bytes(exported)

    def public(self, name: str) -> Path:
        return self._home / f"{name}.asc"

    def secret(self, name: str) -> Path:
        return self._home / f"{name}.secret.asc"

    def fingerprint(self, name: str) -> str:
        listed = self.gpg("--with-colons", "--fingerprint", f"{name}@example.com").decode()
        return next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr"))

    def message(self, content: bytes, *options: str, to: str = "", by: str = "") -> bytes:
        """Encrypt *content* to one and sign it by another, or do one of these."""
        encrypt = ("--encrypt", "--recipient", f"{to}@example.com") if to else ()
        sign = ("--sign", "--local-user", f"{by}@example.com") if by else ()
        return self.gpg(*options, *encrypt, *sign, content=content)

    def gpg(self, *options: str, content: bytes = b"") -> bytes:
        environment = {**os.environ, "GNUPGHOME": str(self._home)}
        command = ("gpg", *_OPTIONS, *options)
        done = subprocess.run(command, input=content, capture_output=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout


@contextmanager
def senders() -> Iterator[Senders]:
    """Alice, who sends, Bob, who reads and has a passphrase, Mallory, and Eve, whose key has expired."""
    require(shutil.which("gpg") is not None, "GnuPG")
    home = Path(tempfile.mkdtemp(prefix="senders-"))  # the path of a socket is short
    try:
        people = Senders(home)
        people.add("alice")
        people.add("bob", passphrase=PASSPHRASE)
        people.add("mallory")
        people.add("eve", years="1y")
        yield people
    finally:
        subprocess.run(("gpgconf", "--homedir", str(home), "--kill", "all"), check=False)
        shutil.rmtree(home, ignore_errors=True)  # the agent removes its sockets at the same time
