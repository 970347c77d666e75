"""Where benchmarks write their figures: a dated section each, with the command that made it; the latest of each."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.md")


def write(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], notes: str = "") -> None:
    """Print a table and add it to RESULTS.md, in place of what the same command said under the same title before."""
    command = f"python -m tests.benchmarks.{Path(sys.argv[0]).stem} {' '.join(sys.argv[1:])}".strip()
    lines = [
        f"## {title}, {datetime.now(UTC):%Y-%m-%d}",
        "",
        f"`{command}`",
        "",
        f"| {' | '.join(columns)} |",
        f"|{'---|' * len(columns)}",
        *(f"| {' | '.join(map(str, row))} |" for row in rows),
        *(["", notes] if notes else []),
        "",
    ]
    text = "\n".join(lines)
    sys.stdout.write(text + "\n")
    before, *sections = re.split(r"^(?=## )", RESULTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    others = [each for each in sections if not (each.startswith(f"## {title}, ") and f"\n`{command}`\n" in each)]
    RESULTS.write_text("\n\n".join(part.strip() for part in (before, *others, text)) + "\n", encoding="utf-8")
