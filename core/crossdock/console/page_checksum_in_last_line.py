"""A page whose last line holds the SHA-256 of all lines above it, so that it can be checked without crossdock."""

from __future__ import annotations

from hashlib import sha256

from crossdock.console.page_rendering import render
from crossdock.errors import RefusedError


def append_checksum_line(page: str) -> tuple[bytes, str]:
    """Return *page* with its last line, and the hash of what is above that line."""
    above = page.encode()
    digest = sha256(above).hexdigest()
    return above + _checksum_line(digest), digest


def verified_digest(content: bytes) -> str:
    """Return the hash of *content*, or raise RefusedError if the last line does not name it."""
    above = content[: content.rfind(b"\n", 0, -1) + 1]
    digest = sha256(above).hexdigest()
    if content != above + _checksum_line(digest):
        hint = "it was changed, or cut off, or it is not a sign-off report; take a copy from the archive"
        raise RefusedError(
            f"the last line does not name the SHA-256 of the lines above it, {digest}",
            hint=hint,
            code="sign_off_invalid",
        )
    return digest


def _checksum_line(digest: str) -> bytes:
    return render("seal.html", digest=digest).encode()
