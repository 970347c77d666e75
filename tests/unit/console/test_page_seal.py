"""Every byte of a sealed page is covered by its hash."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.console.page_rendering import append_checksum_line, verified_digest
from crossdock.errors import RefusedError

CONTENT, DIGEST = append_checksum_line("<body>\n<h1>Größe</h1>\n<p>31.50 EUR</p>\n")


def test_the_hash_is_of_all_lines_but_the_last() -> None:
    """As ``sed '$d' FILE | sha256sum`` computes it, and the last line shows it."""
    *above, last = CONTENT.splitlines(keepends=True)
    assert sha256(b"".join(above)).hexdigest() == DIGEST == verified_digest(CONTENT)
    assert DIGEST in last.decode()
    assert last.endswith(b"</body></html>\n")


@given(st.integers(0, len(CONTENT) - 1), st.integers(1, 255))
def test_a_changed_byte_is_found(place: int, change: int) -> None:
    """Wherever it is, in the last line too."""
    changed = CONTENT[:place] + bytes([CONTENT[place] ^ change]) + CONTENT[place + 1 :]
    with pytest.raises(RefusedError, match="SHA-256"):
        verified_digest(changed)


@given(st.integers(0, len(CONTENT) - 1))
def test_a_file_that_was_cut_off_is_found(length: int) -> None:
    """However much of it is left."""
    with pytest.raises(RefusedError) as refused:
        verified_digest(CONTENT[:length])
    assert "cut off" in (refused.value.hint or "")


@pytest.mark.parametrize("more", [b"\n", b"x", b"<p>and more</p>\n"])
def test_what_is_appended_is_found(more: bytes) -> None:
    """The last line is another one then."""
    with pytest.raises(RefusedError):
        verified_digest(CONTENT + more)
