"""Text as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def escaped(text: str) -> str:
    """Return *text* as one paragraph that shows every character, with code in double backticks as code."""
    parts = re.split(r"(``.+?``|`[^`]+`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else _escaped(part) for part in parts)


def _escaped(text: str) -> str:
    return re.sub(r"\*(\w+)\*|([\\*_<\[\]|#])", lambda found: f"`{found[1]}`" if found[1] else f"\\{found[2]}", text)


def code(text: str) -> str:
    """Return *text* as inline code, which may have backticks."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, style: str = "") -> str:
    """Return a table that shows one cell a line on narrow screens; empty without rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    head = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([f'<div class="stacked {style}" markdown>', "", *head, *lines, "", "</div>", ""]) if lines else ""


def fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```\n"


def paragraphs(text: str) -> str:
    """Return *text* with each of its paragraphs escaped."""
    return "\n\n".join(escaped(each) for each in text.split("\n\n")) + "\n" if text else ""
