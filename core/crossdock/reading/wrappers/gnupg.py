"""Runs the program ``gpg`` of GnuPG (2.2 or later), with keys of its own for each use.

Its keys are in a private folder that is removed again. It looks up none, and it trusts those that it is given.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Self

from crossdock.errors import ConfigError
from crossdock.reading.wrappers.wrapper import BLOCK
from crossdock.values.config_base_types import Secret
from crossdock.values.safe_local_files import read_regular

_MAX_KEY_FILE = 1 << 20
_MAX_PASSPHRASE = 4096  # fits into a pipe
_MAX_MEMORY = 250 << 20
_MAX_FOLDER = 70  # characters: the path of a socket below it has at most 107
_KEY_S = 60  # for what only concerns keys
_SECRET = 16  # flag of IMPORT_OK (GnuPG's doc/DETAILS)
_NO_KEY = "9"  # why a signature was not checked
_WEAK = {"1": "MD5", "2": "SHA-1", "3": "RIPEMD-160"}
_EXPIRED = {
    "EXPKEYSIG": "is signed with a key that has expired",
    "REVKEYSIG": "is signed with a key that was revoked",
    "EXPSIG": "has a signature that has expired",
}
_AGENT = "disable-scdaemon\ns2k-count 65536\n"
"""No smart cards, and no time spent on protecting the copy of a key, which is removed again."""
_INSTALL = "install GnuPG, such as with: apt install gnupg"
_AGAIN = "Fetch the file again in binary mode; if the error remains, ask the sender to write it again."
_KEY_HINT = "Compare the keys with the sender's, over another way than that of the files; correct the config."
_OPTIONS = (
    "--no-options", "--batch", "--no-tty", "--quiet", "--disable-dirmngr", "--no-auto-key-retrieve",
    "--no-auto-check-trustdb", "--trust-model", "always", "--pinentry-mode", "loopback",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Failure:
    message: str
    hint: str = _AGAIN


@dataclass(frozen=True)
class GpgResult:
    """What ``gpg`` says about one message (GnuPG's doc/DETAILS), as lines of words."""

    lines: Sequence[Sequence[str]]
    exit_code: int
    pinned: Collection[str]

    @cached_property
    def _status_keywords(self) -> set[str]:
        return {line[0] for line in self.lines}

    @cached_property
    def decryption_failure(self) -> Failure | None:
        if "DECRYPTION_OKAY" in self._status_keywords:
            return None
        if "DECRYPTION_KEY" not in self._status_keywords:
            if "KEY_CONSIDERED" in self._status_keywords:  # it is there, and could not be used
                return Failure("cannot be decrypted: the passphrase of the key is wrong or missing", _KEY_HINT)
            return Failure("is encrypted to another key than the declared one", _KEY_HINT)
        return Failure("was cut or changed after it was encrypted")

    @cached_property
    def signature_failure(self) -> Failure | None:
        failures = [self._failure_of_signature(signature) for signature in self._signatures()]
        if not failures:
            return Failure("is not signed", "Ask the sender to sign it; nothing shows who wrote it.")
        if "BADSIG" in self._status_keywords:
            return Failure("was changed after it was signed")
        return None if None in failures else failures[0]

    @cached_property
    def damage_failure(self) -> Failure | None:
        unknown = [line for line in self.lines if line[0] == "ERRSIG"]
        is_other_signer = self.exit_code == 2 and unknown and all(line[6:7] == [_NO_KEY] for line in unknown)
        bad = self._status_keywords & {"NODATA", "UNEXPECTED", "FAILURE", "ERROR", "BADMDC", "DECRYPTION_FAILED"}
        texts = [line for line in self.lines if line[0] == "PLAINTEXT"]
        if (self.exit_code and not is_other_signer) or bad or len(texts) != 1:
            return Failure("is damaged or followed by other data")
        return None

    def _signatures(self) -> list[dict[str, Sequence[str]]]:
        found = list[dict[str, Sequence[str]]]()
        for line in self.lines:
            if line[0] == "NEWSIG":
                found.append({})
            elif found:
                found[-1].setdefault(line[0], line)
        return [each for each in found if each.keys() & {"VALIDSIG", "ERRSIG", "BADSIG"}]

    def _failure_of_signature(self, signature: dict[str, Sequence[str]]) -> Failure | None:
        if (error := signature.get("ERRSIG")) is not None and error[6:7] == [_NO_KEY]:
            return Failure(f"is signed by another key than the declared ones, {error[-1]}", _KEY_HINT)
        valid = signature.get("VALIDSIG", ())
        if len(valid) < 11 or error is not None:
            return Failure("has a signature that cannot be verified", "Ask the sender to sign with SHA-256.")
        if valid[10] not in self.pinned:
            return Failure(f"is signed by another key than the declared ones, {valid[10]}", _KEY_HINT)
        if word := next((word for word in _EXPIRED if word in signature), None):
            return Failure(_EXPIRED[word], "Ask the sender for the key as it is now, or to sign with another.")
        if valid[8] in _WEAK:
            return Failure(f"is signed with {_WEAK[valid[8]]}, which can be forged", "Ask the sender for SHA-256.")
        return None if "GOODSIG" in signature else Failure("has a signature that cannot be verified")


@dataclass(slots=True)
class Keyring:
    """Keys in a folder of their own, as long as the context is open.

    Args:
        folder: Where that folder is, if its path is short enough for sockets. It is then swept with *folder* after a
            kill.
    """

    folder: Path
    result: GpgResult = field(default_factory=lambda: GpgResult((), 1, ()))
    _home: Path = field(default_factory=Path)
    _program: str = ""
    _passphrase: str = ""
    _pinned: set[str] = field(default_factory=set)

    def __enter__(self) -> Self:
        program = shutil.which("gpg")
        if program is None:
            raise ConfigError("PGP needs the program gpg", hint=_INSTALL, code="program_missing")
        place = self.folder if len(str(self.folder)) <= _MAX_FOLDER else None
        self._program, self._home = program, Path(tempfile.mkdtemp(prefix="pgp-", dir=place))
        (self._home / "gpg-agent.conf").write_text(_AGENT)
        return self

    def __exit__(self, *_: object) -> None:
        kill = [shutil.which("gpgconf") or "gpgconf", "--homedir", str(self._home), "--kill", "all"]
        with suppress(OSError, subprocess.SubprocessError):  # the agent ends without its folder, too
            subprocess.run(kill, check=False, capture_output=True, timeout=_KEY_S, env=self._environment)  # noqa: S603
        shutil.rmtree(self._home, ignore_errors=True)

    def add_secret_key(self, key: Secret, passphrase: Secret | None) -> str:
        """Add a secret key, and return its fingerprint. Raises ConfigError if it is none."""
        self._passphrase = passphrase.reveal() if passphrase else ""
        if len(self._passphrase) > _MAX_PASSPHRASE:
            raise ConfigError(f"the passphrase of the secret {key.reference} is too long", code="pgp_key_unusable")
        found = [line for line in self._import_keys(key.reveal().encode()) if int(line[1]) & _SECRET]
        if not found:
            hint = "export it with: gpg --armor --export-secret-keys KEY"
            raise ConfigError(
                f"the secret {key.reference} is no secret key of PGP in ASCII armor", hint=hint, code="pgp_key_unusable"
            )
        return found[0][2]

    def add_trusted_keys(self, path: Path) -> None:
        """Add the public keys in a file, whose signatures count. Raises ConfigError if it has none."""
        try:
            content = read_regular(path, _MAX_KEY_FILE)
        except OSError as error:
            raise ConfigError(
                f"the public key cannot be read: {error.strerror}", where=str(path), code="pgp_key_unusable"
            ) from error
        found = self._import_keys(content)
        if not found or any(int(line[1]) & _SECRET for line in found):
            what = "holds a secret key" if found else "holds no public key of PGP"
            raise ConfigError(
                what, where=str(path), hint="export it with: gpg --armor --export KEY", code="pgp_key_unusable"
            )
        self._pinned.update(line[2] for line in found)

    def trust_only(self, fingerprints: Collection[str]) -> None:
        """Let only *fingerprints* count, if there are some. Raises ConfigError if one is in no file."""
        if missing := sorted(set(fingerprints) - self._pinned):
            raise ConfigError(
                f"no file of signed_by holds the key {missing[0]}", hint=_KEY_HINT, code="pgp_key_unusable"
            )
        if fingerprints:
            self._pinned.intersection_update(fingerprints)

    def decrypted_blocks(self, message: BinaryIO, *, most_s: float) -> Iterator[bytes]:
        """Yield what is in *message*, from its beginning. It may not be used before `result` is asked."""
        with self._running_gpg("--decrypt", stdin=message, most_s=most_s) as (process, status):
            yield from _read_stdout_in_blocks(process)
            exit_code = process.wait()
        self.result = GpgResult(_status_lines(status), exit_code, frozenset(self._pinned))

    def encrypt_and_sign(
        self, content: BinaryIO, *, encrypt_to: Sequence[Path], signer: str | None, armor: bool, most_s: float
    ) -> Iterator[bytes]:
        """Yield a message with *content*, from its beginning.

        Raises:
            ConfigError: If a key cannot be used.
        """
        command = ["--armor"] if armor else []
        for path in encrypt_to:
            command += ["--recipient-file", str(path)]
        command += ["--encrypt"] if encrypt_to else []
        command += ["--local-user", signer, "--sign"] if signer else []
        with self._running_gpg(*command, stdin=content, most_s=most_s) as (process, status):
            yield from _read_stdout_in_blocks(process)
            exit_code = process.wait()
        if exit_code:
            is_recipient = any(line[0] == "INV_RECP" for line in _status_lines(status))
            hint = "It may be missing, have expired, or be made for another use, or its passphrase may be wrong."
            raise ConfigError(
                f"gpg cannot use the key of {'encrypt_to' if is_recipient else 'sign_with'}",
                hint=hint,
                code="pgp_key_unusable",
            )

    def _import_keys(self, keys: bytes) -> list[Sequence[str]]:
        with tempfile.TemporaryFile(dir=self._home) as file:
            file.write(keys)
            file.flush()
            with self._running_gpg("--import", stdin=file, most_s=_KEY_S) as (process, status):
                process.communicate()
            return [line for line in _status_lines(status) if line[0] == "IMPORT_OK" and len(line) == 3]

    @property
    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "GNUPGHOME": str(self._home)}

    @contextmanager
    def _running_gpg(
        self, *command: str, stdin: BinaryIO, most_s: float
    ) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        status = self._home / "status"
        status.unlink(missing_ok=True)
        os.lseek(stdin.fileno(), 0, os.SEEK_SET)  # the buffer of Python has read on
        read_end, write_end = os.pipe()
        os.write(write_end, self._passphrase.encode() + b"\n")
        os.close(write_end)
        options = [*_OPTIONS, "--status-file", str(status), "--passphrase-fd", str(read_end)]
        try:
            process = subprocess.Popen(  # noqa: S603
                [self._program, *options, *command],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # it quotes names of people
                pass_fds=(read_end,),
                env=self._environment,
            )
        finally:
            os.close(read_end)
        if hasattr(resource, "prlimit"):
            with suppress(OSError, ValueError):  # it has ended, or a lower limit is already set
                resource.prlimit(process.pid, resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))
        watchdog = threading.Timer(most_s, process.kill)
        watchdog.start()
        try:
            yield process, status
        finally:
            watchdog.cancel()
            process.kill()
            assert process.stdout is not None
            process.stdout.close()
            process.wait()


def _read_stdout_in_blocks(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    assert process.stdout is not None
    while block := process.stdout.read(BLOCK):
        yield block


def _status_lines(path: Path) -> list[Sequence[str]]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith("[GNUPG:] ")]
    return [line for line in lines if line]
