"""A page whose last line holds the SHA-256 of all lines above it, so that it can be checked without crossdock."""

from __future__ import annotations

from hashlib import sha256

from crossdock.errors import RefusedError

_END = "</body>\n</html>\n"
_SEAL = '<p class="soft end">SHA-256 of all lines above this one: <code>{digest}</code></p></body></html>\n'


def sealed(page: str) -> tuple[bytes, str]:
    above = page.removesuffix(_END).encode()
    digest = sha256(above).hexdigest()
    return above + _last_line(digest), digest


def digest_of(content: bytes) -> str:
    """Return the hash of *content*, or raise RefusedError if its last line has another one, or none."""
    above = content[: content.rfind(b"\n", 0, -1) + 1]
    digest = sha256(above).hexdigest()
    if content != above + _last_line(digest):
        hint = "it was changed, or cut off, or it is no sign-off report; take a copy from the archive"
        raise RefusedError(f"the last line does not name the SHA-256 of the lines above it, {digest}", hint=hint)
    return digest


def _last_line(digest: str) -> bytes:
    return _SEAL.format(digest=digest).encode()
