"""The file of one connection's OAuth tokens: private, replaced atomically, renewed by one process at a time."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from crossdock.errors import StateError, UnauthorizedError, UnavailableError
from crossdock.state.sidecar_files import folder_owner_and_fence
from crossdock.values import exact_json
from crossdock.values.safe_local_files import (
    create_private_folder,
    open_or_create_private_file,
    open_regular_file,
    raise_if_file_not_replaceable,
    read_regular_file_within_limit,
    read_rest_within_limit,
    replace_file_atomically,
)

LOCKED_AT_MOST_S = 120.0  # a renewal is one request, whose time is limited to less
_MAX_BYTES = 1 << 20
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class StoredTokens:
    """What the vendor granted last.

    Attributes:
        renew_at: When the access token is renewed, in Unix seconds.
        connected_at: When a person gave access.
        renewing_since: When a renewal was begun whose result is not stored: it is in progress, or was interrupted.
        replaced: How many refresh tokens the vendor has replaced since a person gave access.
    """

    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    renew_at: int
    connected_at: str
    renewing_since: str | None = None
    replaced: int = 0

    @property
    def generation(self) -> tuple[str, int]:
        """What is less for tokens that the vendor granted before others of the same account."""
        return self.connected_at, self.replaced


class TokenFile:
    """The tokens at *path*. A lock beside it is held while they are renewed.

    The age of the newest tokens is also in a file beside it and, since a backup of the whole folder restores that one
    as well, in the user's folder. So an older file that was put back is recognized. To lose these files is harmless.

    The methods raise UnauthorizedError if the file cannot be used: a request without tokens was not sent.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        kept = folder_owner_and_fence.fence_file_in_user_folder(f"tokens {path.resolve()}")
        self._newest = [path.with_name(f"{path.name}.newest"), *kept]

    def read(self) -> StoredTokens | None:
        """Return the stored tokens, or None if there is no file."""
        try:
            with open_regular_file(self.path) as file:
                if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                    raise self._unusable_file_error("others may read the file of tokens", f"chmod 600 {self.path}")
                document = exact_json.loads(read_rest_within_limit(file, _MAX_BYTES))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable_file_error(f"the file of tokens cannot be read: {error.strerror}") from error
        except ValueError:
            document = None
        if not isinstance(document, dict) or not _is_token_document(document):
            raise self._unusable_file_error(
                "this is not a file of tokens that crossdock has written", "name another file, or remove it"
            )
        return StoredTokens(**document)

    def write(self, tokens: StoredTokens) -> None:
        """Replace the stored tokens. They are on disk when this returns."""
        try:
            replace_file_atomically(self.path, exact_json.dumps(asdict(tokens)))
            _flush_folder(self.path.parent)
        except OSError as error:
            raise self._unusable_file_error(f"the tokens cannot be stored: {error.strerror}") from error
        for path in self._newest:
            if _generation_in(path) != tokens.generation:
                with suppress(OSError):  # it is an extra check
                    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                    replace_file_atomically(path, exact_json.dumps(list(tokens.generation)))

    def is_restored_earlier_copy(self, tokens: StoredTokens) -> bool:
        """Return whether newer ones than *tokens* were stored here: the file was replaced by an earlier copy."""
        return any(tokens.generation < (_generation_in(path) or tokens.generation) for path in self._newest)

    def check_writable(self) -> None:
        """Test whether tokens can be stored."""
        with self.locked():
            try:
                raise_if_file_not_replaceable(self.path)
            except OSError as error:
                raise self._unusable_file_error(f"no tokens could be stored: {error.strerror}") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock. Raises UnavailableError if others hold it for too long."""
        try:
            create_private_folder(self.path.parent, "tokens are kept in it", "name another file as `tokens`")
            lock = open_or_create_private_file(self.path.with_name(f"{self.path.name}.lock"))
        except OSError as error:
            raise self._unusable_file_error(f"the tokens cannot be locked: {error.strerror}") from error
        except StateError as error:
            raise self._unusable_file_error(error.message, error.hint) from error
        with lock:
            self._wait_for_lock(lock.fileno())
            yield

    def _wait_for_lock(self, descriptor: int) -> None:
        until = time.monotonic() + LOCKED_AT_MOST_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    message = f"another process has been renewing these tokens for {LOCKED_AT_MOST_S:.0f} s"
                    raise UnavailableError(message, where=str(self.path), code="tokens_locked") from None
                time.sleep(_POLL_S)
            else:
                return

    def _unusable_file_error(self, message: str, hint: str | None = None) -> UnauthorizedError:
        return UnauthorizedError(message, where=str(self.path), hint=hint, code="file_unwritable")


def _is_token_document(document: dict[str, object]) -> bool:
    texts, since = ("access_token", "refresh_token", "connected_at"), document.get("renewing_since")
    return (
        document.keys() | {"replaced"} == StoredTokens.__dataclass_fields__.keys()  # earlier versions did not count
        and all(isinstance(document[each], str) for each in texts)
        and isinstance(document["renew_at"], int)
        and isinstance(document.get("replaced", 0), int)
        and (since is None or isinstance(since, str))
    )


def _generation_in(path: Path) -> tuple[str, int] | None:
    """Return the age that *path* has of the newest tokens; None if it is missing or damaged."""
    try:
        match exact_json.loads(read_regular_file_within_limit(path, _MAX_BYTES)):
            case [str() as connected_at, int() as replaced]:
                return connected_at, replaced
    except (OSError, ValueError):
        pass
    return None


def _flush_folder(folder: Path) -> None:
    """Make the new name durable: without this, a power failure may bring back the file before, whose token is used."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
