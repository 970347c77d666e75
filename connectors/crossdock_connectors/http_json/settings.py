"""Settings of a paged JSON API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock import ConfigModel, Filter, StreamConfig
from crossdock.mapping.stream_declaration import MARKS_IN_SNAPSHOT
from crossdock.reading.sources import path_filling_and_answered_records
from crossdock.sources import Api, ApiAnswer, Cursor, HttpSettings, Name, RateLimit
from crossdock.values.config_base_types import duration_schema, is_duration, make_pydantic_error_at_key
from crossdock.values.time_formats_and_zones import check_zone_name
from crossdock_connectors.http_json import request_templates
from crossdock_connectors.http_json.credential_settings import (
    Credential,
    HeaderName,
    TextOrSecret,
    raise_if_literal_secret,
)
from crossdock_connectors.http_json.further_requests_per_record import ExpandedMember
from crossdock_connectors.http_json.graphql_lists_in_records import RestOfConnection
from crossdock_connectors.http_json.pagination_settings import (
    Pagination,
    Place,
    has_page_parameters_in_body,
    raise_if_parameter_place_is_unusable,
)
from crossdock_connectors.http_json.recognized_answers import REFUSED, FailedAnswer, ThrottledAnswer
from crossdock_connectors.http_json.request_declarations import DeclaredRequest, raise_if_graphql_parts_conflict
from crossdock_connectors.http_json.request_templates import Param, Path
from crossdock_connectors.http_json.target_settings import TargetConfig
from crossdock_connectors.http_json.webhooks import HttpJsonWebhooks, raise_if_hint_rule_is_unusable
from crossdock_connectors.request_time_formats import UNIX, UNIX_MS, TimeLayout

_UNITS = "smhd"
_NOT_SPLIT = "{kind: single_page} for an API that does not"


def _checked_duration(value: str) -> str:
    if not is_duration(value, _UNITS):
        raise ValueError("must be a duration such as 10m, 12h or 7d")
    return value


Duration = Annotated[str, AfterValidator(_checked_duration), duration_schema(_UNITS)]


def _is_instant(text: str) -> bool:
    try:
        moment = datetime.fromisoformat(text)
        moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return False
    return moment.tzinfo is not None


class Windows(ConfigModel):
    """Windows of time in which a stream is read, one after the other. Each begins a second before the end of the one
    before, since some APIs leave out records at both edges.
    """

    size: Duration
    """The length of each window, such as ``12h`` or ``7d``."""
    overlap: Duration = "10m"
    """How long before the end of the last run the first window begins: more than the difference of the clocks and the
    delay with which the API shows changes."""
    timezone: Annotated[str, AfterValidator(check_zone_name)] | None = None
    """IANA time zone of ``{start}`` and ``{end}`` where ``time_format`` has no offset; default: UTC."""


class ListedKeys(DeclaredRequest):
    """A list of all records that exist, by their keys; a known record that it lacks is gone."""

    records: Place
    """Where the list is in an answer: of objects with the members of the key, or of the keys themselves."""
    pagination: Pagination | None = None
    """How the API splits the list into pages; default: that of the stream."""


class FetchedRecord(DeclaredRequest):
    """A request for one record, such as one that a webhook names. Columns of the key are in braces in the path, in
    ``params``, in ``body`` or in ``variables``: ``/orders/{id}``.
    """

    numbers: tuple[str, ...] = ()
    """Columns of the key that ``body`` and ``variables`` have as numbers."""
    record: Place = ""
    """Where the record is in an answer; a list has the rows of one record. Default: the answer is the record."""

    def key_columns_in_request(self, key: Sequence[str]) -> set[str]:
        """Return the columns of *key* that the request has."""
        texts = request_templates.texts_within_value([self.path, self.params, self.body, self.variables])
        return {name for text in texts for name in path_filling_and_answered_records.columns_in_braces(text)} & {*key}


class HttpJsonStreamConfig(StreamConfig):
    """A list of an API, and what its records become."""

    path: Path
    """The path of the list below the base URL, without a query."""
    params: Annotated[Mapping[str, Param], AfterValidator(raise_if_literal_secret)] = {}
    """The query; a list is a repeated parameter. See ``first`` for ``{since}``."""
    headers: Annotated[Mapping[HeaderName, str], AfterValidator(raise_if_literal_secret)] = {}
    """Headers of the request besides those of the connection, such as ``If-Modified-Since: "{since}"``."""
    body: Any = None
    """A JSON body; the request is then a POST, which must only read."""
    graphql: str | None = None
    """A GraphQL query, posted with ``variables``."""
    variables: Mapping[str, Any] = {}
    """The variables of the GraphQL query; see ``first`` for ``{since}``."""
    records: Place
    """Where the list of records is in an answer, a dotted path or JSON pointer; an empty text if the answer is the
    list; ``data.orders.edges.*.node`` for the nodes of a GraphQL connection."""
    pagination: Pagination | None = None
    """How the API splits the list into pages; required here or in the connection."""
    expand: Mapping[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], ExpandedMember] = {}
    """Members of each record that further requests read, by their names: lists below it, such as the lines of an order,
    and other records that it names."""
    explode: Annotated[str, Field(min_length=1)] | None = None
    """The dotted path of a list in each record: each of its elements becomes a row, with the element in place of the
    list."""
    whole_groups: bool = False
    """Whether a list of changes has all rows of each record of which it has any, as a query has that joins changed
    orders with their lines: ``group_by`` can then be used with ``mode: incremental`` and a cursor with ``sorted:
    false``."""
    cursor: Cursor | None = None
    """The member that tells how far the stream has read: ``{since}`` in the request is its value."""
    windows: Windows | None = None
    """Windows of time that are read one after another: ``{start}`` and ``{end}`` in the request."""
    first: str | None = None
    """``{since}`` or the first ``{start}`` of the first run. Without it, what needs ``{since}`` is left out."""
    time_format: TimeLayout | None = None
    """How ``{since}``, ``{start}`` and ``{end}`` are written where they are times: a strftime format, or ``unix`` or
    ``unix_ms`` for whole seconds or milliseconds since 1970. Default: ISO 8601 in UTC, or the ``format`` of ``cursor``
    if that is one of these two. Without an offset, it is in the time zone of ``cursor`` or ``windows``."""
    numbers: tuple[Literal["since", "start", "end"], ...] = ()
    """Those of ``{since}``, ``{start}`` and ``{end}`` that ``body`` and ``variables`` have as numbers."""

    existing: ListedKeys | None = None
    """A list of all records that exist, read after the changes in each run with ``on_gone``."""
    rest: Mapping[str, RestOfConnection] = {}
    """How the rest of a GraphQL connection in a record is requested, by the path of the connection: ``pageInfo`` in it
    tells whether there is more. Without it, such a record is a dead letter."""
    fetch: FetchedRecord | None = None
    """How one record is requested, such as one that a webhook names. An answer of 404 or 410 means with ``deleted``
    that it was deleted."""

    @property
    def request_time_format(self) -> str | None:
        """How times are written in requests: by default as in records, if those are numbers; None for ISO 8601."""
        if self.time_format is None and self.cursor is not None and self.cursor.format in {UNIX, UNIX_MS}:
            return self.cursor.format
        return self.time_format

    @property
    def lists_existing(self) -> bool:
        return self.existing is not None

    @property
    def fetches(self) -> bool:
        return self.fetch is not None

    def further_list_requests_with_places(self) -> Iterator[tuple[tuple[str, ...], ListedKeys | ExpandedMember]]:
        """Yield the lists besides the stream's own, each with its place in the config."""
        if self.existing is not None:
            yield ("existing",), self.existing
        yield from ((("expand", name), member) for name, member in self.expand.items() if member.records is not None)

    @model_validator(mode="after")
    def _check_reread(self) -> Self:
        if self.reread is None or self.mode != "incremental":
            return self
        if self.cursor is None and self.windows is None:
            raise make_pydantic_error_at_key(
                ("reread",), "needs cursor or windows: without them each run reads everything"
            )
        if self.reread.finds_gone and self.first is not None:
            instead = "; name a list of all records in existing" if self.windows else ""
            raise make_pydantic_error_at_key(
                ("reread", "finds_gone"), f"cannot be used with first: the list begins there{instead}"
            )
        return self

    @model_validator(mode="after")
    def _check_list_of_existing(self) -> Self:
        if self.existing is None:
            return self
        if self.mode == "snapshot":
            raise make_pydantic_error_at_key(("existing",), MARKS_IN_SNAPSHOT)
        if self.deleted is not None:
            raise make_pydantic_error_at_key(
                ("existing",), "cannot be used with deleted: choose one way to find deleted records"
            )
        if self.on_gone == "nothing":
            raise make_pydantic_error_at_key(
                ("existing",), "needs on_gone: archive or delete; the list is not read without it"
            )
        return self

    @model_validator(mode="after")
    def _check_fetch(self) -> Self:
        if self.fetch is None:
            return self
        fetch = self.fetch
        columns = path_filling_and_answered_records.columns_in_braces(fetch.path)
        texts = request_templates.texts_within_value([fetch.params, fetch.body, fetch.variables])
        if not columns and not any(f"{{{column}}}" in text for text in texts for column in self.key):
            raise make_pydantic_error_at_key(
                ("fetch", "path"), f"names no column of the key, such as {{{self.key[0]}}}"
            )
        for place, names in (("path", columns), ("numbers", fetch.numbers)):
            for column in names:
                if column not in self.key:
                    raise make_pydantic_error_at_key(
                        ("fetch", place), f"{{{column}}} is no column of the key: {', '.join(self.key)}"
                    )
        return self

    @model_validator(mode="after")
    def _check_row_groups(self) -> Self:
        if self.whole_groups and (self.cursor is None or self.cursor.sorted or self.group_by is None):
            raise make_pydantic_error_at_key(("whole_groups",), "needs group_by, and a cursor with sorted: false")
        if self.group_by is not None and self.mode == "incremental" and not (self.explode or self.whole_groups):
            message = (
                "cannot be used with mode: incremental, whose changes may have only some of the rows of a record; use"
                " mode: snapshot, or a list in each record: explode, or each with of"
            )
            raise make_pydantic_error_at_key(("group_by",), message)
        return self

    @model_validator(mode="after")
    def _check_body_or_graphql(self) -> Self:
        raise_if_graphql_parts_conflict(self.graphql, self.variables, self.body)
        return self

    @model_validator(mode="after")
    def _check_cursor_and_windows(self) -> Self:
        if self.mode != "incremental":
            for key in ("cursor", "windows"):
                if getattr(self, key) is not None:
                    raise make_pydantic_error_at_key((key,), "needs mode: incremental")
        if self.cursor is not None and self.windows is not None:
            raise make_pydantic_error_at_key(
                ("cursor",), "cannot be used with windows: the stream continues at the end of the last one"
            )
        used = set(
            request_templates.since_start_end_placeholders_in([self.params, self.headers, self.body, self.variables])
        )
        wanted = {"since"} if self.cursor else {"start", "end"} if self.windows else set()
        key = "cursor" if self.cursor else "windows"
        if missing := sorted(wanted - used):
            hint = "everything would be read in each run" if self.cursor else "each window would be read as a whole"
            raise make_pydantic_error_at_key((key,), f"the request does not use {{{missing[0]}}}: {hint}")
        if unknown := sorted(used - wanted):
            owner = "cursor" if unknown[0] == "since" else "windows"
            raise make_pydantic_error_at_key(("params",), f"{{{unknown[0]}}} needs {owner}")
        if self.numbers:
            self._check_placeholders_sent_as_numbers()
        if self.time_format is not None and not (self.windows or (self.cursor and self.cursor.as_ == "instant")):
            raise make_pydantic_error_at_key(("time_format",), "needs windows, or a cursor with as: instant")
        return self._check_start_of_first_run()

    def _check_placeholders_sent_as_numbers(self) -> None:
        is_time = self.windows is not None or (self.cursor is not None and self.cursor.as_ == "instant")
        if is_time and self.request_time_format not in {UNIX, UNIX_MS}:
            raise make_pydantic_error_at_key(("numbers",), "needs time_format: unix or unix_ms for times")
        texts = set(request_templates.texts_within_value([self.body, self.variables]))
        for name in self.numbers:
            if f"{{{name}}}" not in texts:
                raise make_pydantic_error_at_key(("numbers",), f'body and variables have no member "{{{name}}}"')

    def _check_start_of_first_run(self) -> Self:
        if self.first is not None and not (self.cursor or self.windows):
            raise make_pydantic_error_at_key(("first",), "needs cursor or windows")
        if self.windows and self.first is None:
            raise make_pydantic_error_at_key(
                ("windows",), 'needs first: the time at which the first window begins, such as "2024-01-01T00:00:00Z"'
            )
        is_time = self.windows is not None or (self.cursor is not None and self.cursor.as_ == "instant")
        if self.first is not None and is_time and not _is_instant(self.first):
            raise make_pydantic_error_at_key(("first",), "must be a time with an offset, such as 2024-01-01T00:00:00Z")
        return self


class HttpJsonSettings(HttpSettings):
    """An API that lists records as JSON, accepts them, or both."""

    kind: Literal["http_json"]
    auth: Credential | None = None
    """The credentials; default: none."""
    headers: Annotated[Mapping[HeaderName, TextOrSecret], AfterValidator(raise_if_literal_secret)] = {}
    """Headers of every request; a credential is a reference to a secret."""
    params: Annotated[Mapping[str, str], AfterValidator(raise_if_literal_secret)] = {}
    """Query parameters of every request, also of the target, unless it has one of this name. A credential cannot be
    one, because servers log addresses."""
    rate: RateLimit = RateLimit()
    """The rate limit, as far as it is known."""
    throttled: tuple[ThrottledAnswer, ...] = ()
    """Answers by which the API limits the rate other than by 429."""
    ok: Filter | None = None
    """What the body of an answer has if the request of reading succeeded; others failed. Fields are dotted paths."""
    failed: FailedAnswer | None = None
    """How an answer of success says that a request of reading failed: it is treated as one with the status for which it
    stands, such as 503, with which the request is sent again. That of the target is ``target.failed``."""
    max_answer_bytes: Annotated[int, Field(gt=0)] = 8 * 1024 * 1024
    """Largest accepted answer, decompressed. Default: 8 MiB."""
    pagination: Pagination | None = None
    """How the API splits its lists into pages, for all streams."""
    streams: Mapping[Name, HttpJsonStreamConfig] = {}
    """The streams by name."""
    target: TargetConfig | None = None
    """What streams with ``to`` may write to this API; none by default."""
    webhooks: HttpJsonWebhooks | None = None
    """The webhooks that the API sends; by default none are accepted."""

    @model_validator(mode="after")
    def _raise_if_no_streams_and_target(self) -> Self:
        if not self.streams and self.target is None:
            raise make_pydantic_error_at_key(("streams",), "is missing: a connection has streams, a target, or both")
        return self

    @model_validator(mode="after")
    def _check_every_pagination(self) -> Self:
        for name, stream in self.streams.items():
            paging = stream.pagination or self.pagination
            place = ("streams", name, "pagination")
            if paging is None:
                message = "says how the API splits the list into pages: set it here or in the connection; " + _NOT_SPLIT
                raise make_pydantic_error_at_key(place, message)
            self._raise_if_pagination_does_not_fit(stream, stream.pagination, place, name)
            for around, other in stream.further_list_requests_with_places():
                if other.pagination is None and has_page_parameters_in_body(paging) and not other.is_post:
                    message = "needs a pagination of its own: this list is requested with GET"
                    raise make_pydantic_error_at_key(("streams", name, *around), message)
                inside = around if other.pagination else ()
                own = other.pagination or stream.pagination
                self._raise_if_pagination_does_not_fit(other, own, ("streams", name, *inside, "pagination"), name)
        return self

    def _raise_if_pagination_does_not_fit(
        self,
        request: HttpJsonStreamConfig | DeclaredRequest,
        own: Pagination | None,
        place: tuple[str, ...],
        stream: str,
    ) -> None:
        paging = own or self.pagination
        assert paging is not None
        sent: Any = {each: getattr(request, each) for each in ("graphql", "variables", "body", "params")}
        if own is None:
            raise_if_parameter_place_is_unusable(paging, ("pagination",), stream=stream, **sent)
        else:
            raise_if_parameter_place_is_unusable(paging, place, **sent)

    @model_validator(mode="after")
    def _check_hints(self) -> Self:
        if self.webhooks is not None:
            fetching = {name for name, stream in self.streams.items() if stream.fetch is not None}
            raise_if_hint_rule_is_unusable(
                self.webhooks, {name: stream.key for name, stream in self.streams.items()}, fetching
            )
        return self

    def pagination_of(self, stream: HttpJsonStreamConfig) -> Pagination:
        found = stream.pagination or self.pagination
        assert found is not None
        return found

    def declared_api(self) -> Api:
        return self.api(
            auth=self.auth.auth() if self.auth else None,
            headers={name: _revealed(value) for name, value in self.headers.items()},
            params=self.params,
            rate=self.rate,
            throttled=self._throttled_or_stated_wait,
            failed=self._make_failure_status_rule(),
            max_answer_bytes=self.max_answer_bytes,
        )

    def _make_failure_status_rule(self) -> Callable[[ApiAnswer], int | None]:
        failed, is_failed = self.failed, self.failed.when.json_predicate() if self.failed else lambda _: False
        is_ok = self.ok.json_predicate() if self.ok else lambda _: True

        def status_of(answer: ApiAnswer) -> int | None:
            if failed is not None and is_failed(answer.body):
                return failed.status_of_failed_body(answer.body)
            return None if is_ok(answer.body) else REFUSED

        return status_of

    def _throttled_or_stated_wait(self, answer: ApiAnswer) -> bool | float:
        found = (rule.match_or_stated_wait(answer.status, answer.body) for rule in self.throttled)
        return next((each for each in found if each is not False), False)


def _revealed(value: TextOrSecret) -> str:
    return value if isinstance(value, str) else value.reveal_for_header()
