"""Idempotency keys: what was answered under a key is answered again, byte for byte, for 24 hours."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from crossdock.sandbox.answers import Answer, ProblemError
from crossdock.sandbox.auth import Caller

KEPT_S = 24 * 3600
MAX_LENGTH = 255


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request under an idempotency key."""

    caller: Caller
    key: str
    fingerprint: bytes
    now: float


def key_of(header: str | None) -> str | None:
    """The key, quoted as a structured field string or not.

    Raises:
        ProblemError: With 400 for an empty or overlong key and for anything but printable ASCII.
    """
    if header is None:
        return None
    quoted = len(header) > 1 and header.startswith('"') and header.endswith('"')
    key = header[1:-1] if quoted else header
    if not (0 < len(key) <= MAX_LENGTH and key.isascii() and key.isprintable()):
        raise ProblemError(400, f"Idempotency-Key must be 1 to {MAX_LENGTH} printable ASCII characters.")
    return key


def fingerprint(method: str, path: str, body: bytes) -> bytes:
    return hashlib.sha256(f"{method} {path}\n".encode() + body).digest()


def execute(
    connection: sqlite3.Connection, attempt: Attempt | None, work: Callable[[sqlite3.Connection], Answer]
) -> Answer:
    """Run *work* unless it was answered under this key before; its refusals are answers too, and are kept.

    Raises:
        ProblemError: With 422 when the key stands for another request; with *work*'s own without a key.
    """
    if attempt is None:
        return work(connection)
    connection.execute("DELETE FROM answers WHERE at < ?", (attempt.now - KEPT_S,))
    scope = (attempt.caller.tenant, attempt.caller.credential, attempt.key)
    row = connection.execute(
        "SELECT fingerprint, status, headers, body FROM answers WHERE tenant = ? AND credential = ? AND key = ?", scope
    ).fetchone()
    if row is not None:
        if row[0] != attempt.fingerprint:
            raise ProblemError(422, "This Idempotency-Key was used for another request.")
        return Answer(row[1], row[3], {**json.loads(row[2]), "idempotent-replayed": "true"})
    try:
        answer = work(connection)
    except ProblemError as problem:  # raised before anything is written
        answer = problem.answer()
    connection.execute(
        "INSERT INTO answers (tenant, credential, key, at, fingerprint, status, headers, body)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*scope, attempt.now, attempt.fingerprint, answer.status, json.dumps(dict(answer.headers)), answer.body),
    )
    return answer
