"""Foreign texts in a form that is safe for terminals, logs and databases, without the secrets that they repeat.

Characters that are invisible, or change how the following text is shown, are written as escapes: a terminal would obey
them, a line break would forge a line of a log, and PostgreSQL accepts no text with NUL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# C0, DEL and C1, bidirectional marks and overrides, zero-width and tag characters, line separators, surrogates
_BUT_LINE_BREAKS = (
    "\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
BLANKS = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062"
    "\u2063\u2064\u2066\u2067\u2068\u2069\ufeff"
)
"""White space of Unicode, and characters without a width: at the ends of a text they mean nothing."""
_WITHOUT_WIDTH = re.compile(  # but joiners, which scripts and emoji need inside of a word, and white space
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
_INVISIBLE = re.compile(f"[\n{_BUT_LINE_BREAKS}]")
_INVISIBLE_IN_JSON = re.compile(f"[{_BUT_LINE_BREAKS}]")  # JSON has line breaks only between values


def printable(text: str) -> str:
    r"""Return *text* on one line, with escapes such as ``\n``, ``\x1b`` and ``\u202e``. Idempotent."""
    return text if text.isprintable() else _INVISIBLE.sub(_escape, text)


def without_invisible_characters(text: str) -> str:
    """Return *text* without characters that nobody sees, and without blanks at its ends."""
    return text if text.isprintable() else _WITHOUT_WIDTH.sub("", text).strip(BLANKS)


def printable_lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def printable_json(text: str) -> str:
    """Return JSON text of the same value (RFC 8259, section 7), with escapes for invisible characters."""
    return text if text.isprintable() else _INVISIBLE_IN_JSON.sub(_json_escape, text)


def is_storable(text: str) -> bool:
    """Return whether both databases store *text* unchanged: without NUL (PostgreSQL) and lone surrogates (UTF-8)."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


MASK = "(secret)"
SHORTEST = 8  # a shorter one is a test's secret, and part of many words


def mask_secrets(text: str, secrets: Iterable[str]) -> str:
    """Replace each of *secrets* that has at least `SHORTEST` characters by `MASK`."""
    for secret in secrets:
        if len(secret) >= SHORTEST:
            text = text.replace(secret, MASK)
    return text
