"""Whether the lines that a page quotes are messages of the code."""

from __future__ import annotations

import re
from functools import cache
from itertools import chain

from tests.documentation.fences import ROOT

_LEAST = 8  # characters that a constant part of a message must have
_HOLE = "\0"


@cache
def _code() -> str:
    """The source with its texts in one piece, and with NUL for what is filled in."""
    paths = chain((ROOT / "core").rglob("*.py"), (ROOT / "connectors").rglob("*.py"))
    source = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    joined = re.sub(r"""["']\s*\n\s*f?["']""", "", source)
    return re.sub(r"\{[^{}\n]*\}", _HOLE, joined)


def unknown_words(line: str) -> str:
    """The words of a quoted *line* that no text of the code has; empty if they are the code's.

    What is filled in, such as names, numbers and quoted values, is left out.
    """
    constant = re.sub(r"'[^']*'|\$\{\S*|\S*[\d./_:]\S*|\S*\.\.\.", _HOLE, line)
    parts = [part.strip(" ;,:") for part in constant.split(_HOLE)]
    return next((part for part in parts if len(part) >= _LEAST and not _is_in_code(part)), "")


def _is_in_code(part: str) -> bool:
    """Whether half of its runs of three words stand in the code: a word that was filled in breaks a run."""
    words = part.split()
    runs = [" ".join(words[place : place + 3]) for place in range(max(1, len(words) - 2))]
    known = sum(run in _code() for run in runs)
    return known * 2 >= len(runs) and known > 0
