"""Lists of a shop in files of the run, read once for several streams of a connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from crossdock import Context
from crossdock.mapping.cursors import OVERLAP_S, instant_cursor
from crossdock.values import exact_json
from crossdock_connectors.shop.settings import ShopSettings

OVERLAP = timedelta(seconds=OVERLAP_S)
"""How long before its last run a list is read again: clocks differ, and shops show some changes late."""
Pages = Iterator[tuple[list[Any], str]]
S = TypeVar("S", bound=ShopSettings)


@dataclass(frozen=True, slots=True)
class Feed:
    """Records in a file of this run.

    Attributes:
        cursor: Where the next run continues.
    """

    path: Path
    cursor: str

    def pages(self) -> Pages:
        """Yield the records of each page, and where they were read."""
        with self.path.open("rb") as lines:
            for line in lines:
                page = exact_json.loads(line)
                yield page["records"], page["source"]


def read_once(ctx: Context[S], name: str, since: str | None, pages: Callable[[], Pages]) -> Feed:
    """Return the records of *pages*, which are read once in a run.

    Args:
        name: The name of the list.
        since: The cursor of an earlier run from which they were read.
    """
    return ctx.shared(("shop.feed", name, since), lambda: _read(ctx, name, since, pages))


def _read(ctx: Context[S], name: str, since: str | None, pages: Callable[[], Pages]) -> Feed:
    path = ctx.run.work / f"{ctx.connection}-{name}-{quote(since or 'all', safe='')}.jsonl"
    started = ctx.run.clock.now()
    with path.open("wb") as file:
        for records, source in pages():
            file.write(exact_json.dumps({"records": records, "source": source}) + b"\n")
    return Feed(path, instant_cursor(started))
