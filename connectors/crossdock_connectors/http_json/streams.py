"""Streams over the lists of an API. The config declares their requests and their mapping."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from crossdock import Context, CrossdockError, DeclaredStream, Finding, RawBatch, RecordError, RefusedError
from crossdock.mapping.row_order_and_cursors import (
    ANY_TIME_ZONE,
    LateRecordTracker,
    format_iso_instant_cursor,
    format_stored_instant,
    latest_time_of_change,
)
from crossdock.reading.sources import path_filling_and_answered_records
from crossdock.reading.sources.compact_id_set import IdSet
from crossdock.reading.sources.list_completeness_evidence import (
    USUAL_PAGE_LIMITS,
    IncompleteListError,
    list_changed_error,
)
from crossdock.reading.sources.pagination import SizedPages
from crossdock.reading.sources.retried_requests import ForbiddenError, RequestRefusedError
from crossdock.reading.sources.signs_of_unread_records import sign_of_incomplete_record
from crossdock.resources import ResourceModel
from crossdock.sources import (
    ApiAnswer,
    Checkpoint,
    Cursor,
    CursorInBody,
    NextUrl,
    NotFoundError,
    UnavailableError,
    Window,
    windows,
)
from crossdock.values import exact_json
from crossdock.values.config_base_types import parse_duration
from crossdock.values.json_paths import (
    MISSING,
    json_value_as_column_text,
    list_at_pointer_with_asterisk,
    names_in_path,
    unescaped_pointer_part,
    value_at_path_or_missing,
    value_at_path_refusing_wrong_containers,
    value_at_pointer_or_missing,
)
from crossdock.values.raw_rows_and_records import (
    ELEMENT,
    JSON,
    Record,
    column_expression_by_exact_name,
    with_path_columns,
)
from crossdock_connectors import request_time_formats
from crossdock_connectors.http_json import further_requests_per_record, request_templates
from crossdock_connectors.http_json.further_requests_per_record import FailingRecords
from crossdock_connectors.http_json.graphql_lists_in_records import (
    count_lists_as_long_as_asked,
    request_rest_of_connections,
    sizes_of_uncounted_lists,
    with_connections_marked_as_failed,
)
from crossdock_connectors.http_json.pagination_settings import Pagination
from crossdock_connectors.http_json.settings import FetchedRecord, HttpJsonSettings, HttpJsonStreamConfig

_TIME_IN_JSON = r'"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"'


class WindowCheckpoints:
    """Makes the checkpoints of the windows of one run.

    An API that reads the times of a request as local ones, and writes such, goes on to add records to a window that has
    ended by its clock. The config names no member with a time, so any member shows how far the times may be behind.

    Args:
        timezone: That of times without an offset; None for UTC.
    """

    def __init__(self, timezone: str | None) -> None:
        self._zone = ZoneInfo(timezone) if timezone else UTC
        self._late = LateRecordTracker(timedelta())

    def add_rows(self, rows: pl.DataFrame, window: Window, asked_at: datetime) -> None:
        """Take the times of *rows* into account, which a request for *window* listed, *asked_at* by the API's clock."""
        if window.end < asked_at - ANY_TIME_ZONE:
            return  # it is whole, and its times need not be read
        for text in rows[JSON].str.extract_all(_TIME_IN_JSON).explode().drop_nulls().unique():
            with suppress(ValueError):  # not a day of the calendar
                moment = datetime.fromisoformat(text.strip('"'))
                moment = moment if moment.tzinfo else moment.replace(tzinfo=self._zone)
                if moment <= latest_time_of_change(asked_at):
                    self._late.add_request(moment, asked_at)

    def checkpoint(self, window: Window, asked_at: datetime) -> Checkpoint:
        """Return the end of *window*, or an earlier time if records may be added to it after *asked_at*."""
        whole_until = max(self._late.missing_from(asked_at), asked_at - ANY_TIME_ZONE)
        return Window(window.start, min(window.end, whole_until)).checkpoint


COARSE_S = 1.0  # an API may drop the fraction of a second


class MovedRowDetector:
    def __init__(self, key: Sequence[str], cursor: Cursor) -> None:
        self._key, self._cursor = tuple(key), cursor
        self._seen, self._latest = IdSet(), ""

    def add_page(self, page: RawBatch, until: str) -> None:
        """Add a page. A time later than *until*, in a cursor's form, is that of no change in any time zone."""
        columns = [*dict.fromkeys((*self._key, self._cursor.column))]
        frame = with_path_columns(page.load(), columns)
        if not set(columns) <= set(frame.columns):
            return  # the run refuses the page
        rows = list(frame[columns].iter_rows(named=True))
        keys = ["\0".join(row[name] or "" for name in self._key) for row in rows]
        again = self._seen.known_ids_among(keys)
        for key, row in zip(keys, rows, strict=True):
            if key in again and (value := self._cursor_value(row)) <= until:
                self._latest = max(self._latest, value)
        self._seen.add(keys)

    def _cursor_value(self, row: dict[str, str | None]) -> str:
        try:
            return self._cursor.value(row)
        except RecordError:  # the run rejects the record
            return ""

    def any_moved_since(self, began: str) -> bool:
        """Return whether a row of an earlier page came again with a change since *began*, which has a cursor's form."""
        return self._latest >= began


_REQUEST = {
    "path", "params", "headers", "body", "graphql", "variables", "records", "rest", "expand", "explode", "windows",
    "first",
}  # fmt: skip
_MEMBER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,39}")  # a name and no data, such as the keys of a look-up table
_CONDITIONS = re.compile(r"\b(and|or)\b|&&|;", re.IGNORECASE)
_OPERATOR = r"(?:[:=<>!~]|\b(?:eq|ne|gte?|ge|lte?|le|like)\b)"
_COMPARISON = re.compile(rf"{_OPERATOR}(?:\s*{_OPERATOR})*", re.IGNORECASE)  # one operator, such as :>=
_TIME = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d"
_NUMBER = r"^\d+$"
_SINCE_1970 = {"unix": r"^1\d{9}(\.\d+)?$", "unix_ms": r"^1\d{12}$"}  # from 2001 to 2033
_AT_EDGE = timedelta(seconds=1)  # between two windows, in case the API leaves out records at the start and the end
_LISTED = 20
_NOT_DELETED = (
    "the record does not count as deleted; if this is not an error, list the member under ignore in the pagination"
)

_NOT_THERE = "nothing counts as deleted; check the request in fetch, and whether the API is in order"
_COMPARED = 3  # records, since one may have been deleted meanwhile
_ENCODED = re.compile(r"[^A-Za-z0-9._~-]")  # RFC 3986, section 2.3
_OTHERS = "check the request in fetch: an API that does not know a parameter ignores it"

_Asked = tuple[Mapping[str, str | None], Window | None]  # the values of a request, and its window


class HttpJsonStream(DeclaredStream[HttpJsonSettings]):
    def __init__(self, name: str, config: HttpJsonStreamConfig, pagination: Pagination) -> None:
        layout = config.model_dump(include=_REQUEST, exclude_defaults=True)
        if config.cursor is not None:
            facts = {"column", "as_", "format", "timezone"}
            layout["cursor"] = config.cursor.model_dump(include=facts, exclude_none=True)
        super().__init__(name, config, layout)
        self.cursor, self._config, self._pagination = config.cursor, config, pagination
        self.yields_deleted = config.fetch is not None and config.deleted is not None
        self.whole_groups = config.whole_groups
        ignored = pagination.members_and_headers_to_ignore
        sizes = sizes_of_uncounted_lists(config.graphql or "", config.variables)
        self._uncounted_lists = {name: size for name, size in sizes.items() if name not in ignored}
        self._left_out = _filters_before_member_requests(config) if config.expand else ()
        paths = self._requested_paths
        self._let_filters_test_only_columns_that_were_read(
            lambda column: further_requests_per_record.condition_of_failed_member(column, paths)
        )
        if self.uses is not None:  # a record of which a member could not be read is not unchanged
            self.uses = (*self.uses, *map(further_requests_per_record.column_of_member_failure, paths))

    def pull(self, ctx: Context[HttpJsonSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        empty = list[_Asked]()  # since the last list with records
        checkpoints = WindowCheckpoints(self._config.windows.timezone if self._config.windows else None)
        if since is None and self._unsent_conditions:
            ctx.shared(f"{ctx.connection}.{self.name} conditions", lambda: self._warn_of_unsent_conditions(ctx))
        for asked in self._request_values_by_window(ctx, since):
            has_rows, (_, window), begun = False, asked, ctx.run.clock.now()
            for batch in self._read_pages_refusing_changed_list(ctx, asked):
                if window is not None:
                    checkpoints.add_rows(batch.load(), window, ctx.run.by_clock_of(ctx.connection, begun))
                if not has_rows and batch.load().height > 0:
                    has_rows = True
                    for earlier in empty:  # the API may have been out of order, and responds again
                        yield from self._read_pages_refusing_changed_list(ctx, earlier)
                    empty.clear()
                yield batch
            if not has_rows:
                empty.append(asked)
            if window is not None:
                yield checkpoints.checkpoint(window, ctx.run.by_clock_of(ctx.connection, begun))

    def _read_pages_refusing_changed_list(self, ctx: Context[HttpJsonSettings], asked: _Asked) -> Iterator[RawBatch]:
        values, window = asked
        until = f" until {window.checkpoint.cursor}" if window else ""
        pages = (
            self.batch_of_page(ctx, page, f"{page.address}{until}", expanded_count=None)
            for page in self.pages(ctx, values)
        )
        began = ctx.run.clock.now()
        moved = MovedRowDetector(self.key, self.cursor) if self.cursor and self._may_rows_share_key else None
        for batch in pages:
            if moved:
                moved.add_page(batch, self._cursor_text_by_api_clock(ctx, ctx.run.clock.now() + ANY_TIME_ZONE))
            yield batch
        if (
            moved
            and ctx.run.open_lists.needs_second_reading
            and moved.any_moved_since(self._cursor_text_by_api_clock(ctx, began))
        ):
            raise list_changed_error("a record on two pages was changed meanwhile", batch.source)

    @property
    def _may_rows_share_key(self) -> bool:
        """Whether a list may have several rows of one key, so that only times show that it changed meanwhile."""
        return self.cursor is not None and self.cursor.as_ == "instant" and not self._unique_key_columns

    def _cursor_text_by_api_clock(self, ctx: Context[HttpJsonSettings], at: datetime) -> str:
        """Return *at* by the clock of the API, in the cursor's stored form."""
        return format_stored_instant(ctx.run.by_clock_of(ctx.connection, at) - timedelta(seconds=COARSE_S))

    def _request_values_by_window(self, ctx: Context[HttpJsonSettings], since: str | None) -> Iterator[_Asked]:
        config = self._config
        if config.windows is None:
            yield {"since": self._time_in_request(since or config.first)}, None
            return
        size, overlap = parse_duration(config.windows.size), parse_duration(config.windows.overlap)
        first = datetime.fromisoformat(config.first or "")
        before = _AT_EDGE if request_time_formats.has_seconds(config.request_time_format) else timedelta()
        for number, window in enumerate(windows(since, ctx.run.clock.now(), size=size, first=first, overlap=overlap)):
            start = self._time_in_request(format_iso_instant_cursor(window.start - before if number else window.start))
            end = self._time_in_request(format_iso_instant_cursor(window.end), excluded=True)
            yield {"start": start, "end": end}, window

    def _time_in_request(self, value: str | None, *, excluded: bool = False) -> str | None:
        layout, continues = self._config.request_time_format, self.cursor or self._config.windows
        if value is None or layout is None:
            return value
        timezone = continues.timezone if continues else None
        return request_time_formats.format_range_bound(
            datetime.fromisoformat(value), layout, timezone, excluded=excluded
        )

    def pages(self, ctx: Context[HttpJsonSettings], values: Mapping[str, str | None]) -> Iterator[ApiAnswer]:
        config = self._config
        body, variables = (
            request_templates.fill_or_remove_placeholders(part, values, config.numbers)
            for part in (config.body, config.variables)
        )
        return ctx.api.pages(
            config.path,
            request_templates.fill_or_remove_placeholders(config.params, values),
            paginator=self._pagination.paginator(config.records),
            json=None if config.body is None else body or {},
            graphql=config.graphql,
            variables=variables,
            headers=request_templates.fill_or_remove_placeholders(config.headers, values),
            records=config.records,
            key=self._unique_key_columns,
            shared_key=self.key,
            ignore=self._pagination.members_and_headers_to_ignore,
        )

    @property
    def _unique_key_columns(self) -> Sequence[str]:
        """The columns by which an element of the list is recognized; empty if several may have the same key."""
        return () if self._config.explode or self.group_by or self.order_by else self.key

    def batch_of_page(
        self, ctx: Context[HttpJsonSettings], page: ApiAnswer, source: str, *, expanded_count: int | None = 0
    ) -> RawBatch:
        """Return the rows of a page. Of its records, the first *expanded_count* are expanded; None: all of them."""
        items = list_at_pointer_with_asterisk(page.body, self._config.records)
        if not isinstance(items, list):
            key = f"connections.{ctx.connection}.streams.{self.name}.records"
            message = f"has no list at {self._config.records or 'the top'}, as {key} says"
            raise RefusedError(
                message,
                where=page.address,
                hint=_members_at_path_text(page, self._config.records),
                code="answer_misplaced",
            )
        self._warn_of_lists_cut_by_query(ctx, items)
        number = len(items) if expanded_count is None else expanded_count
        items = [*self._request_connections_and_members(ctx, items[:number]), *items[number:]]
        explode, is_proof = self._config.explode, self.on_gone != "nothing" and self.mode == "snapshot"
        if explode and is_proof and (number := sum(value_at_path_or_missing(item, explode) is None for item in items)):
            text = f"{explode} is null in {number:,} records, which does not show that their elements are gone"
            ctx.api.doubt(page, text)
        for error in filter(
            None,
            (
                further_requests_per_record.error_of_first_failed_member(item, self._requested_paths)
                for item in items
                if explode
            ),
        ):
            ctx.api.doubt(page, f"{error.pointer} {error.message}")  # its row has no key, so no dead letter says it
        return self._items_as_batch(items, source)

    def _warn_of_lists_cut_by_query(self, ctx: Context[HttpJsonSettings], items: Sequence[Any]) -> None:
        """Warn of lists in *items* that are as long as the query asks for, if nothing shows whether more follow."""
        found = count_lists_as_long_as_asked(items, self._uncounted_lists) if self._uncounted_lists else {}
        for name, number in found.items():
            size = self._uncounted_lists[name]
            lists = f"{number:,} lists {name} of a page have" if number > 1 else f"a list {name} has"
            text = (
                f"{lists} exactly the {size:,} elements that the query asks for, so that there may be more:"
                " add pageInfo { hasNextPage }, or name the list in ignore of the pagination"
            )
            warned = ctx.shared(f"{ctx.connection}.{self.name} cut lists", set[str])
            if name not in warned:
                warned.add(name)
                ctx.run.warn(f"{ctx.connection}.{self.name}", text, code="list_doubtful")

    def _items_as_batch(self, items: Sequence[Any], source: str) -> RawBatch:
        is_group = self.group_by is not None  # which has a key of its own, by which its dead letter is known
        return RawBatch.json(items, source=source, key=self.key, explode=self._config.explode, keeps_empty=is_group)

    def _request_connections_and_members(self, ctx: Context[HttpJsonSettings], items: Sequence[Any]) -> Sequence[Any]:
        """Return *items* with what further requests for each read."""
        if not self._requested_paths:
            return items
        key = f"connections.{ctx.connection}.streams.{self.name}.expand"
        members = self._config.expand

        def asked(item: Any) -> tuple[Any, bool]:
            for columns, is_left_out in self._left_out:
                if is_left_out(
                    {column: json_value_as_column_text(value_at_path_or_missing(item, column)) for column in columns}
                ):
                    return item, False
            whole = request_rest_of_connections(ctx, item, self._config.rest)
            made = further_requests_per_record.request_and_add_members(
                ctx, whole, members, self._pagination, key, answers
            )
            return made, whole is not item or any(value_at_path_or_missing(made, name) is not None for name in members)

        def failed(item: Any, error: CrossdockError) -> Any:
            marked = further_requests_per_record.with_members_marked_as_failed(item, members, error)
            return with_connections_marked_as_failed(marked, self._config.rest, error)

        answers = ctx.shared(
            f"{key} answers", lambda: {name: further_requests_per_record.LatestAnswerForMember() for name in members}
        )
        failing = ctx.shared(key, lambda: FailingRecords(ctx.api.allowance))
        return failing.request_each_or_set_aside(items, asked, failed)

    @property
    def _requested_paths(self) -> Sequence[str]:
        """The paths of what further requests read for each record."""
        return [*self._config.rest, *self._config.expand]

    def to_resource(self, record: Record) -> ResourceModel | Mapping[str, Any]:
        paths = self._requested_paths
        for row, line in zip(record.each_row() if paths else (), record.lines, strict=False):
            if error := further_requests_per_record.error_of_first_failed_member(row.value, paths):
                raise error.at(line)
        explode, is_element = self._config.explode, record.row.get(ELEMENT) is not None
        if (
            explode
            and self.group_by
            and not is_element
            and value_at_path_refusing_wrong_containers(record.json(), explode) in (None, MISSING)
        ):
            hint = f"skip: {{none: {{field: {explode}, empty: true}}}} leaves out such records"
            raise RecordError("bad_value", f"has no elements, of which the record is made; {hint}", pointer=explode)
        return super().to_resource(record)

    @property
    def lists_existing(self) -> bool:
        return self._config.existing is not None

    def existing(self, ctx: Context[HttpJsonSettings]) -> Iterator[RawBatch]:
        existing = self._config.existing
        assert existing is not None
        paging = existing.pagination or self._pagination
        paginator = paging.paginator(existing.records)
        sent: Any = {"json": existing.body, "graphql": existing.graphql, "variables": existing.variables}
        listed: Any = {
            "records": existing.records,
            "key": self._unique_key_columns,
            "ignore": paging.members_and_headers_to_ignore,
        }
        for page in ctx.api.pages(existing.path, existing.params, paginator=paginator, **sent, **listed):
            items = [self._wrap_listed_key_in_object(item, page) for item in page.items(existing.records)]
            yield RawBatch.json(items, source=page.address, key=self.key)

    def _wrap_listed_key_in_object(self, item: Any, page: ApiAnswer) -> Any:
        """Return an element of the list of existing records as an object. A text or a number is the key itself."""
        if not isinstance(item, str | int | Decimal) or isinstance(item, bool):
            return item
        if len(self.key) > 1:
            message = f"lists texts or numbers, but the key of {self.name} has {len(self.key)} columns"
            raise RefusedError(
                message,
                where=page.address,
                hint=f"it needs objects with {', '.join(self.key)}",
                code="answer_misplaced",
            )
        return {self.key[0]: item}

    @property
    def fetches(self) -> bool:
        return self._config.fetch is not None

    @property
    def reads_changes(self) -> bool:
        return self.cursor is not None or self._config.windows is not None

    def fetch(self, ctx: Context[HttpJsonSettings], keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        fetch, named = self._config.fetch, dict[str, list[tuple[str, ...]]]()
        other: ApiAnswer | None = None  # the latest with a record
        is_any_shown = False
        found, missing = list[tuple[str, ...]](), dict[str, list[tuple[str, ...]]]()  # by the path that was asked for
        why: NotFoundError | None = None
        assert fetch is not None
        for key in keys:
            named.setdefault(exact_json.dumps(self._fetch_request_of_key(fetch, key)).decode(), []).append(key)
        for request, own in named.items():
            sent = exact_json.loads(request)
            if sent is None:
                continue
            answer = self._answer_with_record(ctx, fetch, sent, other)
            if isinstance(answer, ForbiddenError):
                if self.open_until is None:  # a person or a webhook has named it, and the error is shown
                    raise answer
                listed = [] if other is not None or is_any_shown else self._listed_keys(ctx)[:_COMPARED]
                is_any_shown = is_any_shown or other is not None or bool(self._first_found_key(ctx, fetch, listed))
                if not is_any_shown:
                    raise answer
                yield RawBatch.json([], source=sent["path"], key=self.key)  # it is not shown, which deletes nothing
                continue
            if isinstance(answer, NotFoundError):
                why = answer
                missing.setdefault(sent["path"], []).extend(own)
                continue
            other = answer if answer.at(fetch.record) else other
            rows = self._rows_of_fetch_answer(ctx, answer, sent)
            self._raise_if_other_records(rows, fetch, own[0], answer)
            found += own
            yield rows
        is_deleted: Callable[[tuple[str, ...]], bool] = _never
        if why is not None and (self.yields_deleted or self.open_until is not None):
            is_deleted = self._test_of_deleted_keys(ctx, fetch, [] if other is None else found, why)
        for path, own in missing.items():
            yield RawBatch.json(
                [],
                source=path,
                key=self.key,
                deleted=[each for each in own if self.yields_deleted and is_deleted(each)],
            )

    def _answer_with_record(
        self, ctx: Context[HttpJsonSettings], fetch: FetchedRecord, sent: Mapping[str, Any], other: ApiAnswer | None
    ) -> ApiAnswer | NotFoundError | ForbiddenError:
        """Return the answer with a record, or that none is shown. *other* is an answer with another one."""
        try:
            answer = ctx.api.request("POST" if fetch.is_post else "GET", **sent)
        except (NotFoundError, ForbiddenError) as error:
            return error
        if sign := sign_of_incomplete_record(
            answer, fetch.record, self._pagination.members_and_headers_to_ignore, other
        ):
            message = f"has no complete record at {fetch.record or 'the top'}: {sign}"
            raise RefusedError(message, where=answer.address, hint=_NOT_DELETED, code="answer_misplaced")
        if fetch.is_post and value_at_pointer_or_missing(answer.body, fetch.record) in (
            None,
            [],
        ):  # the member is there
            return NotFoundError(f"has no record at {fetch.record or 'the top'}", where=answer.address)
        return answer

    def _test_of_deleted_keys(
        self, ctx: Context[HttpJsonSettings], fetch: FetchedRecord, found: Sequence[tuple[str, ...]], why: NotFoundError
    ) -> Callable[[tuple[str, ...]], bool]:
        """Return the test of whether a record that was not found is deleted: the request must find others like it.
        So must one for a record that is asked for until it is final, which is otherwise given up.

        A key that was repaired or trimmed may be another text than that of the API, and not every server takes a path
        with each character, such as an encoded slash.
        """
        columns, listed = fetch.key_columns_in_request(self.key), self._listed_keys(ctx)
        if not found:
            found = self._first_found_key(ctx, fetch, listed[:_COMPARED], why)
        if self.own_keys is None and columns & self.columns.keys():
            return _never
        own = [number for number, name in enumerate(self.key) if name in columns]
        if any(key[number] != key[number].strip() for key in listed for number in own):
            return _never
        proved = [_encoded_characters(fetch, self.key, key) for key in found]

        def is_deleted(key: tuple[str, ...]) -> bool:
            needed = _encoded_characters(fetch, self.key, key)
            if needed and not any(needed <= each for each in proved):
                alike = [each for each in listed if needed <= _encoded_characters(fetch, self.key, each)]
                proved.extend(needed for _ in self._first_found_key(ctx, fetch, alike[:_COMPARED]))
            return not needed or any(needed <= each for each in proved)

        return is_deleted

    def _first_found_key(
        self,
        ctx: Context[HttpJsonSettings],
        fetch: FetchedRecord,
        keys: Sequence[tuple[str, ...]],
        why: NotFoundError | None = None,
    ) -> Sequence[tuple[str, ...]]:
        """Return one of the listed *keys* whose record is found, or none. Refuses *why* if none of several is."""
        for key in keys:
            sent = self._fetch_request_of_key(fetch, key)
            if sent is None or isinstance(self._answer_with_record(ctx, fetch, sent, None), ApiAnswer):
                return [key]
        if keys and why is not None:
            message = f"{why.message}, and so it is for records that the list has"
            raise RefusedError(message, where=why.where, hint=_NOT_THERE, code="answer_misplaced")
        return []

    def _listed_keys(self, ctx: Context[HttpJsonSettings]) -> Sequence[tuple[str, ...]]:
        """Return the keys of records of a first page that are not marked as deleted, as the API has them."""
        if self.own_keys is not None:
            return ()
        windows_of_list = [*self._request_values_by_window(ctx, None)]
        for values, _ in windows_of_list[: -_COMPARED - 1 : -1]:  # the first ones may be long before any record
            page = next(self.pages(ctx, values), None)
            if page is None:
                continue
            rows = with_path_columns(self.batch_of_page(ctx, page, page.address).load(), self.used_columns)
            kept = rows if self.deleted is None else rows.filter(~self.deleted.expression())
            if kept.height:
                return kept.select(self.key).drop_nulls().unique(maintain_order=True).rows()
        return ()

    def _raise_if_other_records(
        self, batch: RawBatch, fetch: FetchedRecord, key: tuple[str, ...], answer: ApiAnswer
    ) -> None:
        """Refuse rows of other records than *key* names: of one that rows make together, they may be a part."""
        asked = (
            fetch.key_columns_in_request(self.key) - self.columns.keys()
        )  # a repair may make a column of another one
        if self.own_keys is not None or not asked:
            return
        rows, wanted = with_path_columns(batch.load(), asked), dict(zip(self.key, key, strict=True))
        same = (
            column_expression_by_exact_name(name).str.strip_chars() == wanted[name].strip() for name in sorted(asked)
        )
        number = rows.filter(pl.all_horizontal(same).fill_null(value=True)).height
        if number < rows.height and (self.group_by or not number):
            message = f"has other records than the one that was asked for, by {', '.join(sorted(asked))}"
            raise RefusedError(message, where=answer.address, hint=_OTHERS, code="answer_misplaced")

    def _fetch_request_of_key(self, fetch: FetchedRecord, texts: tuple[str, ...]) -> Mapping[str, Any] | None:
        key = dict(zip(self.key, texts, strict=True))
        path = path_filling_and_answered_records.fill_path(fetch.path, key)
        try:
            sent = request_templates.fill_braced_names_in_template(
                [fetch.params, fetch.body, fetch.variables], key, fetch.numbers
            )
        except ValueError:
            return None
        params, body, variables = sent
        found = {"path": path, "params": params, "json": body, "graphql": fetch.graphql, "variables": variables}
        return None if path is None else found

    def _rows_of_fetch_answer(
        self, ctx: Context[HttpJsonSettings], answer: ApiAnswer, sent: Mapping[str, Any]
    ) -> RawBatch:
        assert self._config.fetch is not None
        place = self._config.fetch.record
        found = answer.at(place)
        if not isinstance(found, dict | list):
            key = f"connections.{ctx.connection}.streams.{self.name}.fetch.record"
            message = f"has no record at {place or 'the top'}, as {key} says"
            raise RefusedError(
                message, where=answer.address, hint=_members_at_path_text(answer, place), code="answer_misplaced"
            )
        found = self._all_rows_if_page_may_be_cut(ctx, found, place, sent) if isinstance(found, list) else [found]
        return self._items_as_batch(self._request_connections_and_members(ctx, found), answer.address)

    def _all_rows_if_page_may_be_cut(
        self, ctx: Context[HttpJsonSettings], found: Sequence[Any], place: str, sent: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Return the rows of one record, of which *found* may be a first page: as many as APIs give without a word.

        An API that refuses the parameters of pages, or ignores them, has given all.
        """
        if len(found) not in USUAL_PAGE_LIMITS or not self.group_by or sent["json"] is not None or sent["graphql"]:
            return found
        paginator = self._pagination.paginator(place)
        listed = {
            "path": sent["path"],
            "params": sent["params"],
            "ignore": self._pagination.members_and_headers_to_ignore,
        }
        try:
            return path_filling_and_answered_records.read_whole_list(
                lambda: ctx.api.pages(paginator=paginator, records=place, **listed),
                place,
                sent["path"],
                by_record=paginator.by_record,
            )
        except RequestRefusedError:
            return found
        except IncompleteListError as error:
            if error.code == "list_without_end":
                return found
            raise

    def check(self, ctx: Context[HttpJsonSettings]) -> Finding:
        """Request the first two pages as the first run does, describe them, and request from a record's time on."""
        request = next(self._request_values_by_window(ctx, None), None)
        if request is None:
            return Finding(ok=True, text=f"{self.name}: nothing to read before {self._config.first}")
        pages = self.pages(ctx, request[0])
        page = next(pages, None)
        if page is None:
            return Finding(ok=True, text=f"{self.name}: {self._config.path} responds that there are no records")
        rows = self.batch_of_page(ctx, page, page.address, expanded_count=1).load()
        if rows.height and (
            error := further_requests_per_record.error_of_first_failed_member(
                exact_json.loads(rows[JSON][0]), self._requested_paths
            )
        ):
            place = f"{'expand' if error.pointer in self._config.expand else 'rest'}.{error.pointer}"
            text = f"{self.name}: {place} of the first record {error.message}"
            return Finding(ok=False, text=text, code="answer_misplaced")
        columns = [("key", name) for name in self.key] + ([("cursor", self.cursor.column)] if self.cursor else [])
        cells = with_path_columns(rows, [column for _, column in columns])
        for fact, column in columns:
            if rows.height and cells[column].null_count() == rows.height:
                text = f"{self.name}: no record of {page.address} has the {fact} {column!r}"
                text = f"{text}; the first has {_names_text(_member_names_of_first_row(rows))}"
                return Finding(ok=False, text=text, code="answer_misplaced")
        second = next(pages, None)
        if self.cursor and (problem := self._since_filter_problem(ctx, rows, self.cursor)):
            return Finding(ok=False, text=f"{self.name}: {problem}", code="filter_ignored")
        following = self._describe_second_page(page, second)
        text = f"{self.name}: {page.address} responds, with {rows.height:,} records and {following}"
        remarks = f"{self._unsent_conditions_text}{self._warning_of_unsuitable_cursor(cells)}"
        return Finding(ok=True, text=f"{text}{self._ignored_page_size_text(page, is_last=second is None)}{remarks}")

    def _warning_of_unsuitable_cursor(self, cells: pl.DataFrame) -> str:
        """Warn of a cursor whose values are times or numbers, so that no run reads before it for late changes."""
        if self.cursor is None or self.cursor.as_ == "instant" or not cells.height:
            return ""
        values = cells[self.cursor.column].drop_nulls()
        if layout := next((name for name, form in _SINCE_1970.items() if values.str.contains(form).all()), None):
            hint = f"with as: instant and format: {layout}, changes that the API shows late are read as well"
            return f"; the cursor has times as numbers: {hint}"
        if self.cursor.as_ != "text":
            return ""
        if values.str.contains(_TIME).any():
            return "; the cursor has times: with as: instant, changes that the API shows late are read as well"
        if values.str.contains(_NUMBER).any():
            return "; the cursor has numbers, which do not sort as text: declare as: integer"
        return "" if self.reread else "; no run reads changes that the API shows later than others: see reread"

    @property
    def _unsent_conditions_text(self) -> str:
        """A warning about a parameter with other conditions, which the first run does not send either."""
        if not (names := ", ".join(self._unsent_conditions)):
            return ""
        return f"; the first run leaves {names} out, with the other conditions in it: declare first"

    def _warn_of_unsent_conditions(self, ctx: Context[HttpJsonSettings]) -> None:
        text = f"everything is read, and {', '.join(self._unsent_conditions)} left out, with the other conditions in it"
        ctx.run.warn(f"{ctx.connection}.{self.name}", f"{text}: declare first", code="filter_ignored")

    @property
    def _unsent_conditions(self) -> Sequence[str]:
        """The places of texts that are left out without a value of ``{since}``, and have other conditions as well."""
        if self._config.first is not None:
            return ()
        parts = {"params": self._config.params, "body": self._config.body, "variables": self._config.variables}
        members = {
            f"{part}.{name}": inner
            for part, value in parts.items()
            for name, inner in (value.items() if isinstance(value, Mapping) else ())
        }
        return [
            place
            for place, inner in members.items()
            if any(
                "{since}" in text and _has_other_conditions(text)
                for text in request_templates.texts_within_value(inner)
            )
        ]

    def _since_filter_problem(self, ctx: Context[HttpJsonSettings], rows: pl.DataFrame, cursor: Cursor) -> str:
        """Return evidence that ``{since}`` has another meaning: the list from a row's cursor on lacks that row."""
        columns = [*dict.fromkeys((*self.key, cursor.column))]
        known = with_path_columns(rows, columns)[columns].drop_nulls()
        if not known.height:
            return ""
        last = known.row(-1, named=True)
        try:
            since = cursor.model_copy(update={"overlap": 0}).pull_since(cursor.value(last))
        except RecordError:  # the run refuses it, with its line
            return ""
        if not cursor.sorted or self._pagination.kind in {"page_number", "offset"}:
            if cursor.as_ != "instant":
                return ""
            since = format_iso_instant_cursor(datetime.fromisoformat(since or "") - timedelta(seconds=1))
        pages = self.pages(ctx, {"since": self._time_in_request(since)})
        for page in itertools.islice(pages, 2):
            listed = with_path_columns(self.batch_of_page(ctx, page, page.address).load(), self.key)
            if listed.filter(column_expression_by_exact_name(name) == last[name] for name in self.key).height:
                return ""
        if next(pages, None) is not None and not cursor.sorted:
            return ""  # it may be on any page
        return (
            f"the list since {since} lacks the record whose {cursor.column!r} is {last[cursor.column]}: the API leaves"
            " out the value itself, or reads it in another time zone (see cursor.timezone and time_format), or the"
            " record does not meet other conditions of the request, which are left out without a value (see first)"
        )

    def _describe_second_page(self, page: ApiAnswer, second: ApiAnswer | None) -> str:
        """Describe the *second* page, or why there is none: a wrong pagination reads only the first one."""
        if second is not None:
            number = len(second.items(self._config.records))
            return f"a second page with {number:,}" if number else "an empty second page"
        paginator = self._pagination.paginator(self._config.records)
        reason = _members_at_path_text(page, paginator.path) if isinstance(paginator, CursorInBody | NextUrl) else ""
        return f"no next page{reason and f': {reason}'}"

    def _ignored_page_size_text(self, page: ApiAnswer, *, is_last: bool) -> str:
        paginator = self._pagination.paginator(self._config.records)
        if not isinstance(paginator, SizedPages) or paginator.size is None:
            return ""
        number = len(page.items(self._config.records))
        asked = f"{paginator.size_param}: {paginator.size}"
        if number > paginator.size:
            return f"; the API ignores {asked}"
        return "" if is_last or number == paginator.size else f"; the API gives fewer than {asked}, or ignores it"


def streams(settings: HttpJsonSettings) -> Sequence[HttpJsonStream]:
    return [HttpJsonStream(name, config, settings.pagination_of(config)) for name, config in settings.streams.items()]


def check(ctx: Context[HttpJsonSettings]) -> Iterator[Finding]:
    """Request one page of each stream. An API that does not respond is not tried again."""
    for stream in streams(ctx.settings):
        if not stream.enabled:
            continue
        try:
            yield stream.check(ctx)
        except CrossdockError as error:
            yield Finding(ok=False, text=f"{stream.name}: {error}", code=error.code, category=error.category)
            if isinstance(error, UnavailableError):
                return


def _filters_before_member_requests(
    config: HttpJsonStreamConfig,
) -> Sequence[tuple[Sequence[str], Callable[[dict[str, str | None]], bool]]]:
    """Return the columns and conditions of filters that leave a record out before it is expanded, as they do later.

    None of them has a column that a repair, an expanded member or an element of a list may change.
    """
    if config.explode is not None or config.open_until is not None:
        return ()
    conditions = [(tuple(each.columns()), each.predicate()) for each in config.skip.values()]
    return [
        (columns, condition)
        for columns, condition in conditions
        if not any(column in config.columns or names_in_path(column)[0] in config.expand for column in columns)
    ]


def _has_other_conditions(text: str) -> bool:
    """Return whether a text with ``{since}`` has another condition besides the one with it."""
    rest = re.sub(r"\{since\}\S*", "", text)
    is_json = rest.lstrip().startswith(("{", "["))
    is_joined = _CONDITIONS.search(rest) is not None
    return is_joined or ("," in text if is_json else len(_COMPARISON.findall(rest)) > 1)


def _never(_: object) -> bool:
    return False


def _encoded_characters(fetch: FetchedRecord, key: Sequence[str], texts: tuple[str, ...]) -> frozenset[str]:
    """Return the characters of the columns of a key in the path that are percent-encoded there."""
    named = {*path_filling_and_answered_records.columns_in_braces(fetch.path)}
    return frozenset(_ENCODED.findall("".join(text for name, text in zip(key, texts, strict=True) if name in named)))


def _members_at_path_text(page: ApiAnswer, pointer: str) -> str:
    """Describe where the path of *pointer* ends, and the members there, without their values."""
    place = pointer
    while place and not isinstance(page.at(place), dict | list):
        place = place.rpartition("/")[0]
    found, missing = page.at(place), pointer[len(place) + 1 :].partition("/")[0]
    shown = place or "the answer"
    if not isinstance(found, dict):
        return f"{shown} is {'a list' if isinstance(found, list) else 'no object'}"
    if unescaped_pointer_part(missing) not in found:
        return f"{shown} has {_names_text(found)}"
    return f"{place}/{missing} is {'null' if page.at(f'{place}/{missing}') is None else 'no object'}"


def _member_names_of_first_row(rows: pl.DataFrame) -> Sequence[str]:
    found = exact_json.loads(rows[JSON][0])
    return list(found) if isinstance(found, dict) else ()


def _names_text(names: Collection[str]) -> str:
    shown = [name for name in names if _MEMBER.fullmatch(name)][:_LISTED]
    if hidden := len(names) - len(shown):
        shown.append(f"{hidden:,} whose names may be data")
    return ", ".join(shown) or "no members"
