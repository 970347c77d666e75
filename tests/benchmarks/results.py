"""Where benchmarks write their figures: a dated section each, with the command that made it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.md")


def write(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], notes: str = "") -> None:
    """Print a table and append it to RESULTS.md."""
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
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write("\n" + text)
