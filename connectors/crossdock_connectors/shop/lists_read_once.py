"""Lists of a shop in files of the run, read once for several streams of a connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from msgspec import Struct

from crossdock import Context
from crossdock.mapping.incremental_cursors import OVERLAP_S, format_iso_instant_cursor
from crossdock.reading.sources.list_completeness_evidence import DoubtfulListError
from crossdock.sources import Checkpoint
from crossdock.values import exact_json
from crossdock_connectors.shop.settings import ShopSettings

OVERLAP = timedelta(seconds=OVERLAP_S)
"""How long before its last run a list is read again: clocks differ, and shops show some changes late."""
Pages = Iterator[tuple[list[Any], str]]
S = TypeVar("S", bound=ShopSettings)


class StoredList(Struct, frozen=True):
    """Records in a file of this run. Without records, *cursor* stays as it was: the shop may be out of order.

    Attributes:
        doubt: Why records may be missing: raised after the last page, so that those that were read are delivered.
    """

    path: Path
    cursor: str | None
    doubt: DoubtfulListError | None = None

    def pages(self) -> Pages:
        with self.path.open("rb") as lines:
            for line in lines:
                page = exact_json.loads(line)
                yield page["records"], page["source"]
        if self.doubt is not None:
            raise self.doubt


def checkpoint_if_cursor_given(cursor: str | None) -> Iterator[Checkpoint]:
    if cursor is not None:
        yield Checkpoint(cursor)


def read_list_once_per_run(
    ctx: Context[S],
    name: str,
    since: str | None,
    pages: Callable[[], Pages],
    more: Callable[[], Pages] = lambda: iter(()),
) -> StoredList:
    """Return the records of *pages* and *more*, read once in a run. *more* do not show that the list was read."""
    return ctx.shared(("shop.feed", name, since), lambda: _store_list(ctx, name, since, pages, more))


def _store_list(
    ctx: Context[S], name: str, since: str | None, pages: Callable[[], Pages], more: Callable[[], Pages]
) -> StoredList:
    path = ctx.run.work / f"{ctx.connection}-{name}-{quote(since or 'all', safe='')}.jsonl"
    started, has_records, doubt = ctx.run.clock.now(), False, None
    with path.open("wb") as file:
        for read in (pages, more):
            try:
                for records, source in read():
                    has_records = has_records or (read is pages and bool(records))
                    file.write(exact_json.dumps({"records": records, "source": source}) + b"\n")
            except DoubtfulListError as error:
                doubt = doubt or error
    began = format_iso_instant_cursor(ctx.run.by_clock_of(ctx.connection, started))
    return StoredList(path, began if has_records else since, doubt)
