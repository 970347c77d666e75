"""Streams over the lists of the platform."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from crossdock.config.stream_configuration import DeclaredStream
from crossdock.connector import Context, Finding
from crossdock.errors import CrossdockError, UnavailableError
from crossdock.mapping.declarative import RecordMap
from crossdock.mapping.python_function import PythonFunction
from crossdock.mapping.resource_types import CHANGED
from crossdock.mapping.row_order_and_cursors import Cursor, OrderBy, format_iso_instant_cursor
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer
from crossdock.reading.sources.pagination import CursorInBody
from crossdock.reading.sources.retried_requests import NotFoundError
from crossdock.resources import ResourceName
from crossdock.runs.platform_source.referenced_record_expansion import (
    Expansion,
    cached_record_reader,
    fetch_answer_with_record,
    naming_missing_access_scope,
    refuse_if_none_is_found,
)
from crossdock.runs.platform_source.settings import (
    PlatformSourceSettings,
    PlatformStreamConfig,
    personal_members_with_expanded_records,
)
from crossdock.values.field_types import is_valid_target_id
from crossdock.values.raw_rows_and_records import RawBatch

_RECORDS = "/data"
_IGNORED = (
    "the platform ignores updatedSince: each run lists all {resource} records, and leaves out those that are older"
)


class PlatformStream(DeclaredStream[PlatformSourceSettings]):
    """The current records of one resource of the platform, in the order of their last change."""

    def __init__(self, name: str, config: PlatformStreamConfig, settings: PlatformSourceSettings) -> None:
        super().__init__(name, config, config.model_dump(include={"read", "expand"}))
        self._config, self._expansion = config, Expansion(config.read, config.expand)
        self.platform_reads = tuple(dict.fromkeys((config.read, *self._expansion.expanded_resources)))
        self.personal = tuple(dict.fromkeys((*config.personal, *_members_from_personal_columns(config))))
        self.order_by = config.order_by or (OrderBy(column=CHANGED, as_="instant"),)
        if config.mode == "incremental":
            options = {"as": "instant", "sorted": settings.sorted, "overlap_s": config.overlap_s}
            self.cursor = Cursor.model_validate({"column": CHANGED, **options})

    def pull(self, ctx: Context[PlatformSourceSettings], since: str | None) -> Iterator[RawBatch]:
        if since is None and self._config.first is not None:
            since = format_iso_instant_cursor(self._config.first)
        read, says_so = cached_record_reader(ctx), False
        for page in self._pages(ctx, {} if since is None else {"updatedSince": since}):
            items = page.items(_RECORDS)
            wanted = items if since is None else [item for item in items if not _is_changed_before(item, since)]
            if len(wanted) < len(items) and not says_so:
                ctx.run.note(f"{ctx.connection}.{self.name}", _IGNORED.format(resource=self._config.read))
                says_so = True
            yield self._items_as_batch((self._expansion.expand(item, read) for item in wanted), page)

    def _pages(self, ctx: Context[PlatformSourceSettings], params: Mapping[str, str]) -> Iterator[ApiAnswer]:
        settings, resource = ctx.settings, self._config.read
        paginator = CursorInBody("/nextCursor", size=settings.page_size)
        with naming_missing_access_scope(settings.profile, resource):
            path = settings.profile.resource_path(resource)
            yield from ctx.api.pages(path, params, paginator=paginator, records=_RECORDS, key="id")

    def _items_as_batch(self, items: Iterable[Any], page: ApiAnswer) -> RawBatch:
        return RawBatch.json(items, source=page.address, key=self.key)

    @property
    def lists_existing(self) -> bool:
        return self._config.lists_existing

    def existing(self, ctx: Context[PlatformSourceSettings]) -> Iterator[RawBatch]:
        for page in self._pages(ctx, {}):
            yield self._items_as_batch(page.items(_RECORDS), page)

    @property
    def fetches(self) -> bool:
        return tuple(self.key) == ("id",)

    def fetch(self, ctx: Context[PlatformSourceSettings], keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        read, why = cached_record_reader(ctx), None
        for (record_id,) in keys:
            if not is_valid_target_id(record_id):
                continue
            found = fetch_answer_with_record(ctx, self._config.read, record_id)
            if isinstance(found, NotFoundError):
                why = found
            else:
                yield self._items_as_batch([self._expansion.expand(found.body, read)], found)
        if why is not None:
            refuse_if_none_is_found(ctx, self._config.read, why)


def _members_from_personal_columns(config: PlatformStreamConfig) -> Iterator[str]:
    """Yield the members that come from personal members of the record. The results of functions are not known."""
    if isinstance(config.map, PythonFunction):
        return
    personal = list(personal_members_with_expanded_records(config.read, config.expand))
    for name, form in config.map.items():
        columns = RecordMap({name: form}).columns
        if any(_paths_overlap(column, path) for column in columns for path in personal):
            yield name


def _paths_overlap(one: str, other: str) -> bool:
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def _is_changed_before(item: Any, since: str) -> bool:
    changed = item.get(CHANGED) if isinstance(item, dict) else None
    try:
        return isinstance(changed, str) and datetime.fromisoformat(changed) < datetime.fromisoformat(since)
    except (ValueError, TypeError):  # TypeError: without an offset
        return False


def streams(settings: PlatformSourceSettings) -> Sequence[PlatformStream]:
    return [PlatformStream(name, config, settings) for name, config in settings.streams.items()]


def check(ctx: Context[PlatformSourceSettings]) -> Iterator[Finding]:
    resources = dict.fromkeys(each for stream in streams(ctx.settings) for each in stream.platform_reads)
    for resource in resources:
        try:
            yield Finding(ok=True, text=f"{resource}: {_request_one_record_and_describe(ctx, resource)}")
        except CrossdockError as error:
            yield Finding(ok=False, text=f"{resource}: {error}", code=error.code, category=error.category)
            if isinstance(error, UnavailableError):
                return


def _request_one_record_and_describe(ctx: Context[PlatformSourceSettings], resource: ResourceName) -> str:
    with naming_missing_access_scope(ctx.settings.profile, resource):
        page = ctx.api.get(ctx.settings.profile.resource_path(resource), {"limit": 1})
    found = "at least one record" if page.items(_RECORDS) else "no records"
    return f"{page.address} lists {found}"
