"""Hashes of passwords (argon2id, RFC 9106). Only this module imports argon2, which the extra ``console`` installs."""

from __future__ import annotations

import threading
import unicodedata
from functools import cache
from secrets import token_hex

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from crossdock.console.sign_in.attempt_limiter import TooManyPasswordChecksError

AT_ONCE = 2  # each takes 64 MiB, and anybody can ask for one
WAITS_S = 2.0
_HASHER = PasswordHasher()
_RUNNING = threading.BoundedSemaphore(AT_ONCE)


def hash_password(password: str) -> str:
    return _HASHER.hash(_normalized_bytes(password))


def verify_password(password: str, known: str | None) -> bool:
    """Return whether *known* is the hash of *password*. For None, an unknown account, it takes as long.

    Raises BusyError.
    """
    if not _RUNNING.acquire(timeout=WAITS_S):
        raise TooManyPasswordChecksError
    try:
        _HASHER.verify(known or _hash_of_random_password(), _normalized_bytes(password))
    except (Argon2Error, InvalidHashError):
        return False
    else:
        return known is not None
    finally:
        _RUNNING.release()


@cache
def _hash_of_random_password() -> str:
    return _HASHER.hash(token_hex())


def _normalized_bytes(password: str) -> bytes:
    """Encode it alike however a keyboard composes letters (RFC 8265 section 4.2)."""
    return unicodedata.normalize("NFC", password).encode(errors="surrogatepass")
