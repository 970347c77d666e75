"""Texts of others in a form that every terminal, log and database takes.

Characters that print nothing, or change how what follows is shown, are written as escapes: a terminal would obey them,
a line break would forge a line of a log, and PostgreSQL takes no text with NUL.
"""

from __future__ import annotations

import re

# C0, DEL and C1, bidirectional marks and overrides, zero-width and tag characters, line separators, half characters
_BUT_LINE_BREAKS = (
    "\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
_UNSEEN = re.compile(f"[\n{_BUT_LINE_BREAKS}]")
_UNSEEN_IN_JSON = re.compile(f"[{_BUT_LINE_BREAKS}]")  # a line break stands in no JSON string, only between values


def printable(text: str) -> str:
    r"""*text* on one line, with escapes such as ``\n``, ``\x1b`` and ``\u202e`` for what could not be seen.

    Nothing else is changed, so the result of a result is the same.
    """
    return text if text.isprintable() else _UNSEEN.sub(_escape, text)


def printable_lines(text: str) -> str:
    """*text* with its line breaks, each line `printable`."""
    return "\n".join(map(printable, text.split("\n")))


def printable_json(text: str) -> str:
    """JSON text of the same value (RFC 8259, section 7), with escapes for what could not be seen."""
    return text if text.isprintable() else _UNSEEN_IN_JSON.sub(_json_escape, text)


def is_storable(text: str) -> bool:
    """Whether both databases keep *text* as it is: it has no NUL (PostgreSQL), and no half characters (UTF-8)."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
