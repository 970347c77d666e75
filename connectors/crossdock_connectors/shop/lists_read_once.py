"""Lists of a shop in files of the run, read once for several streams of a connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from msgspec import Struct

from crossdock import Context
from crossdock.mapping.row_order_and_cursors import OVERLAP_S, LateRecordTracker, format_iso_instant_cursor
from crossdock.reading.sources.list_completeness_evidence import DoubtfulListError
from crossdock.sources import Checkpoint
from crossdock.values import exact_json
from crossdock.values.json_paths import value_at_path_or_missing
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


def yield_checkpoint_if_cursor_given(cursor: str | None) -> Iterator[Checkpoint]:
    if cursor is not None:
        yield Checkpoint(cursor)


def read_list_once_per_run(
    ctx: Context[S],
    name: str,
    since: str | None,
    pages: Callable[[], Pages],
    more: Callable[[], Pages] = lambda: iter(()),
    *,
    change_time_member: str = "",
    made_at: Callable[[], datetime | None] = lambda: None,
) -> StoredList:
    """Return the records of *pages* and *more*, read once in a run. *more* do not show that the list was read.

    The next run continues when the reading began, by the clock of the shop's answers, less what the times in the member
    *change_time_member* may be behind it: answers may have the clock of a proxy, and changes that of a shop behind it.
    It continues earlier if the shop made the list before that, which *made_at* tells after the reading.
    """

    def store() -> StoredList:
        return _store_list(ctx, name, since, pages, more, change_time_member, made_at)

    return ctx.shared(("shop.feed", name, since), store)


def _store_list(
    ctx: Context[S],
    name: str,
    since: str | None,
    pages: Callable[[], Pages],
    more: Callable[[], Pages],
    changed: str,
    made_at: Callable[[], datetime | None],
) -> StoredList:
    path = ctx.run.work / f"{ctx.connection}-{name}-{quote(since or 'all', safe='')}.jsonl"
    started, has_records, doubt, late = ctx.run.clock.now(), False, None, LateRecordTracker(timedelta())
    with path.open("wb") as file:
        for read in (pages, more):
            asked_at = ctx.run.clock.now()
            try:
                for records, source in read():
                    has_records = has_records or (read is pages and bool(records))
                    for moment in _instants_in_member(records, changed):
                        late.add_request(moment, ctx.run.by_clock_of(ctx.connection, asked_at))
                    file.write(exact_json.dumps({"records": records, "source": source}) + b"\n")
                    asked_at = ctx.run.clock.now()
            except DoubtfulListError as error:
                doubt = doubt or error
    reached = late.missing_from(ctx.run.by_clock_of(ctx.connection, started))
    made = made_at()
    reached = reached if made is None else min(reached, made)
    return StoredList(path, format_iso_instant_cursor(reached) if has_records else since, doubt)


def _instants_in_member(records: list[Any], member: str) -> Iterator[datetime]:
    """Yield the instants in *member*; without an offset they are in UTC. Others are refused where they are mapped."""
    for record in records:
        text = value_at_path_or_missing(record, member) if member else None
        with suppress(ValueError):
            found = datetime.fromisoformat(text) if isinstance(text, str) else None
            if found is not None:
                yield found.replace(tzinfo=found.tzinfo or UTC)
