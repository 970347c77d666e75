"""Where benchmarks write their figures: a dated section each, with the command that made it; the latest of each."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.md")


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """The lines of a table in Markdown."""
    return [
        f"| {' | '.join(columns)} |",
        f"|{'---|' * len(columns)}",
        *(f"| {' | '.join(map(str, row))} |" for row in rows),
    ]


def write(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], notes: str = "") -> None:
    """Print a table and write it to RESULTS.md, in place of what was said under the same title before."""
    command = f"python -m tests.benchmarks.{Path(sys.argv[0]).stem} {' '.join(sys.argv[1:])}".strip()
    lines = [
        f"## {title}, {datetime.now(UTC):%Y-%m-%d}",
        "",
        f"`{command}`",
        "",
        *table(columns, rows),
        *(["", notes] if notes else []),
        "",
    ]
    text = "\n".join(lines)
    sys.stdout.write(text + "\n")
    before, *sections = re.split(r"^(?=## )", RESULTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    places = [number for number, each in enumerate(sections) if each.startswith(f"## {title}, ")]
    others = [each for number, each in enumerate(sections) if number not in places]
    others.insert(places[0] if places else len(others), text)
    RESULTS.write_text("\n\n".join(part.strip() for part in (before, *others)) + "\n", encoding="utf-8")
