"""A warehouse that exchanges files, by the standard library alone, with its own book.

It takes what is in ``in`` and not hidden, keeps every line of it, and acknowledges each file in ``out``. The book is
what tests judge by. ``python file_depot.py FOLDER [how]`` polls once.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

How = Literal["moves", "deletes"]


class FileDepot:
    """The warehouse of *folder*. It moves what it has taken to ``in/done``, or deletes it."""

    def __init__(self, folder: Path, how: How = "moves") -> None:
        self.folder, self.how, self._book = folder, how, folder / "book.jsonl"
        self._acknowledged = 0
        for name in ("in/done", "out"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def poll(self) -> list[str]:
        """Take all files, by name, and return their names."""
        names = sorted(each.name for each in (self.folder / "in").iterdir() if each.is_file() and each.name[0] != ".")
        for name in names:
            path = self.folder / "in" / name
            with path.open(newline="", encoding="utf-8") as stream:
                rows = list(csv.DictReader(stream))
            with self._book.open("a") as book:
                book.write(json.dumps({"file": name, "rows": rows}) + "\n")
            path.rename(self.folder / "in/done" / name) if self.how == "moves" else path.unlink()
        return names

    def files(self) -> list[str]:
        """The names of the files that were taken, in their order, as often as they were taken."""
        return [name for name, _ in self._pages()]

    def orders(self) -> dict[str, list[tuple[str, dict[str, int]]]]:
        """What was taken of each order: the code of each version, and its quantities by article."""
        found: dict[str, list[tuple[str, dict[str, int]]]] = {}
        for _, rows in self._pages():
            versions: dict[str, tuple[str, dict[str, int]]] = {}
            for row in rows:
                lines = versions.setdefault(row["order_no"], (row["code"], {}))[1]
                lines[row["sku"]] = lines.get(row["sku"], 0) + int(row["qty"])
            for number, version in versions.items():
                found.setdefault(number, []).append(version)
        return found

    def acknowledge(self) -> None:
        """Acknowledge all that was taken since the last time."""
        pages = list(self._pages())
        said, self._acknowledged = pages[self._acknowledged :], len(pages)
        if not said:
            return
        path = self.folder / "out" / f".ack_{len(pages):04}.csv"
        with path.open("w", newline="", encoding="utf-8") as stream:
            out = csv.writer(stream)
            out.writerow(["file", "order_no", "status", "text"])
            for name, rows in said:
                out.writerows([name, order, "OK", ""] for order in dict.fromkeys(row["order_no"] for row in rows))
        path.rename(path.with_name(path.name[1:]))

    def _pages(self) -> Iterator[tuple[str, list[dict[str, str]]]]:
        if self._book.exists():
            for line in self._book.read_text().splitlines():
                page = json.loads(line)
                yield page["file"], page["rows"]


if __name__ == "__main__":
    os.umask(0o022)
    FileDepot(Path(sys.argv[1]), "deletes" if sys.argv[2:] == ["deletes"] else "moves").poll()
