"""What connector authors write against: Connector, Stream, Settings, Context."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import CodeType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import Discriminator, Field, GetPydanticSchema, Tag

from crossdock import exact_json
from crossdock.config_file import ConfigModel, Name
from crossdock.cursors import Checkpoint, Cursor
from crossdock.errors import ConnectorError, RecordError
from crossdock.mapping.ordering import OrderBy
from crossdock.mapping.repairs_and_filters import Filter, Repair
from crossdock.records import RawBatch, Record
from crossdock.resources import RESOURCES, ResourceModel, ResourceName
from crossdock.sources.source_context import SourceContext

if TYPE_CHECKING:
    from crossdock.sources.api import Api
    from crossdock.sources.api_client import ApiClient

Mode = Literal["snapshot", "incremental", "append"]
OnGone = Literal["nothing", "archive", "delete"]


class GoneLimits(ConfigModel):
    """Limits within which records that a snapshot no longer lists are removed without approval; all must hold."""

    at_most: Annotated[int, Field(ge=0)] = 100
    """Number of records of one snapshot."""
    at_most_percent: Annotated[float, Field(ge=0, le=100)] = 5.0
    """Share of the records that the stream had on the platform after the previous snapshot."""
    rows_within_percent: Annotated[float, Field(ge=0, le=100)] = 20.0
    """Where no trailer counts a snapshot's rows: how far their number may differ from each of the last three."""


class FailureLimits(ConfigModel):
    """The number of records at which the code of a mapping may fail; beyond both limits its stream stops.

    Records that an earlier run refused, and that come again unchanged, do not count.
    """

    at_most: Annotated[int, Field(ge=0)] = 20
    """Number of records of one run."""
    at_most_percent: Annotated[float, Field(ge=0, le=100)] = 5.0
    """Share of the records that are new, changed or waiting in the run."""

    def exceeded(self, failed: int, records: int) -> bool:
        return failed > self.at_most and failed * 100 > self.at_most_percent * records


class ChangeLimits(ConfigModel):
    """The number of known records that one run may update without approval; beyond both limits its stream stops."""

    at_most: Annotated[int, Field(ge=0)] = 100
    """Number of records of one run."""
    at_most_percent: Annotated[float, Field(ge=0, le=100)] = 30.0
    """Share of the records that crossdock knows of the stream."""

    def exceeded(self, updates: int, known: int) -> bool:
        return updates > self.at_most and updates * 100 > self.at_most_percent * known


def no_removal(resource: ResourceName, mode: Mode, on_gone: OnGone) -> str | None:
    """Why records of such a stream cannot be removed as *on_gone* says; None if they can."""
    kind = RESOURCES[resource]
    if on_gone == "nothing":
        return None
    if kind.write_once:
        return f"must be nothing: an {resource} is written once, and never archived or deleted"
    if mode != "snapshot":
        return "needs mode: snapshot; only a stream that lists everything shows that a record is gone"
    if on_gone == "archive" and "active" not in kind.draft.model_fields:
        return f"archive is impossible: {resource} has no member active; choose nothing or delete"
    return None


_Texts = Annotated[Sequence[str], GetPydanticSchema(lambda _, handler: handler(tuple[str, ...]))]
Columns = Annotated[_Texts, Field(min_length=1)]

_OrderColumn = Annotated[
    Annotated[str, Tag("name")] | Annotated[OrderBy, Tag("declared")],
    Discriminator(lambda item: "name" if isinstance(item, str) else "declared"),
]
_Ordering = GetPydanticSchema(lambda _, handler: handler(tuple[_OrderColumn, ...]))
OrderColumns = Annotated[Annotated[Sequence[str | OrderBy], _Ordering], Field(min_length=1)]


class StreamFacts:
    """What is declared about a stream: attributes of a class in code, keys of a section in a config file.

    The facts of `Stream`, `StreamConfig` and `DeclaredStream`, declared once.
    """

    resource: ResourceName
    """What its records become."""
    mode: Mode
    """``snapshot`` lists everything, ``incremental`` what changed since a cursor, ``append`` some records."""
    key: Columns
    """The columns that identify a record."""
    namespace: Name | None = None
    """The scope in which these keys are unique; default: the connection's. Two streams of one resource need two."""
    group_by: Columns | None = None
    """Rows of one file with the same key make one record, such as an invoice and its lines. The same columns as key."""
    order_by: OrderColumns | None = None
    """Columns that tell which row of a key is the newest; else the last one read is. Names are compared as text."""
    columns: Mapping[str, Repair] = {}
    """Repairs by column, applied before key, filters and mapping."""
    skip: Mapping[str, Filter] = {}
    """Rows to leave out, by the name under which they are counted; the first filter that matches counts."""
    fingerprint: Literal["xxh3_64", "xxh3_128"] = "xxh3_64"
    """``xxh3_64`` misses one change in about 2**64, ``xxh3_128`` practically none."""
    duplicates: Literal["refuse", "last"] = "refuse"
    """What to do with a snapshot that lists a key twice with different rows, where ``order_by`` does not decide."""
    adopt: Literal["never", "external_id"] = "never"
    """``external_id`` takes over a record that the platform has under our external id; else it is a conflict."""
    personal: _Texts = ()
    """Members of the resource whose values are personal in this stream and must not be shown."""
    on_gone: OnGone = "nothing"
    """What to do with a record that a snapshot no longer lists; ``archive`` sets active to false."""
    gone: GoneLimits = GoneLimits()
    """Limits within which that is done without approval."""
    changes: ChangeLimits = ChangeLimits()
    """The number of known records that a run may update without approval."""
    fewer_rows_percent: Annotated[float, Field(ge=0, le=100)] = 20.0
    """Warn about a snapshot that has this many percent fewer rows than each of the last three, and at least 10."""
    mapping_failed: FailureLimits = FailureLimits()
    """The number of records at which the code of the mapping may fail before the stream stops."""


class Settings(ConfigModel):
    """What one connection is configured with; a connector adds its own fields."""

    kind: str
    namespace: Name | None = None
    """The scope in which this connection's record keys are unique; default: its name. Connections may share one."""


S = TypeVar("S", bound=Settings)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Context(Generic[S]):
    """What a stream may use while it reads.

    Attributes:
        settings: The connection's settings.
        connection: The connection's name.
        run: What the run gives its sources: clock, progress, folders, intake log.
    """

    settings: S
    connection: str
    run: SourceContext
    _shared: dict[object, Any] = field(default_factory=dict)
    _declared_api: Callable[[S], Api] | None = None

    @property
    def api(self) -> ApiClient:
        """The HTTP API that the connector declares, opened once in a run and shared by all streams of the connection.

        Raises:
            ConnectorError: If it declares none.
            ConfigError: If its address or a certificate cannot be used.
        """
        return self.shared("crossdock.api", self._open_api)

    def _open_api(self) -> ApiClient:
        from crossdock.sources.api_client import ApiClient  # noqa: PLC0415  most commands read no API

        if self._declared_api is None:
            raise ConnectorError("the connector declares no API", hint="Connector(..., api=lambda settings: Api(...))")
        client = ApiClient(self._declared_api(self.settings), self.run, self.connection)
        self.run.at_end.callback(self._end_api, client)
        return client

    def _end_api(self, client: ApiClient) -> None:
        client.close()
        if client.allowance.usage.requests:
            self.run.limits[self.connection] = client.allowance.bucket_state
            self.run.api_usage[self.connection] = client.allowance.usage

    def shared(self, name: object, make: Callable[[], T]) -> T:
        """The result of *make*, called once in a run and shared by all streams of the connection."""
        if name not in self._shared:
            self._shared[name] = make()
        value: T = self._shared[name]
        return value


class Stream(StreamFacts, ABC, Generic[S]):
    """One kind of record of a connector. Facts are attributes (see `StreamFacts`); reading and mapping are methods.

    Attributes:
        name: In configs, commands and reports: 1 to 63 ASCII letters, digits, ``_`` and ``-``, no ``_`` or ``-`` first.
        cursor: The column that tells how far an incremental stream has read. Without it, `pull` yields `Checkpoint` or
            batches with a cursor, or reads everything each time.
        uses: The columns whose change makes a record changed; None for all of them. Columns of JSON records are dotted
            paths, such as ``customer.id``.
        mapping_version: Raise it with every change of `to_resource`, so that all records are mapped again.
        incomplete: Rows that lack most columns, so that `to_resource` rejects them: no filter leaves them out, and
            they count as the newest.
    """

    name: str
    mode: Mode = "incremental"
    cursor: Cursor | None = None
    uses: Sequence[str] | None = None
    mapping_version: str = "1"
    incomplete: Filter | None = None

    @abstractmethod
    def pull(self, ctx: Context[S], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        """Read the source.

        A `Checkpoint` says that everything up to its cursor has been yielded: what was read so far is delivered and
        stored before the rest is read, so that a failure costs little.

        Args:
            since: Where to continue: the cursor of the last checkpoint, or that of the last settled batch; None at
                first. See `Cursor` for what it is if the stream declares one.

        Raises:
            RemoteError: If the source fails.
            RefusedError: If its data must not be taken in.
        """

    @abstractmethod
    def to_resource(self, record: Record) -> ResourceModel | Mapping[str, Any]:
        """Map a record to a draft of the stream's resource, or to its members. No I/O, no clock, no settings.

        Raises:
            RecordError: If the record cannot be mapped; it becomes a dead letter. After any other exception it becomes
                one with the reason ``mapping_failed``; beyond the limits `mapping_failed` the stream stops.
        """

    def finished(self, ctx: Context[S]) -> None:
        """Called when every record that was read is settled or kept in the state."""

    @property
    def version(self) -> str:
        """A hash that changes whenever the same rows could give another record or draft."""
        facts = {
            "resource": self.resource,
            "key": list(self.key),
            "group_by": list(self.group_by or ()),
            "order_by": [
                item if isinstance(item, str) else item.model_dump(by_alias=True, exclude_none=True)
                for item in self.order_by or ()
            ],
            "columns": {name: repair.model_dump(exclude_none=True) for name, repair in self.columns.items()},
            "skip": {name: rule.model_dump(exclude_none=True) for name, rule in self.skip.items()},
            "uses": None if self.uses is None else sorted(self.uses),
            "fingerprint": self.fingerprint,
            "mapping": self.mapping_version,
        }
        return hashlib.sha256(exact_json.dumps(facts)).hexdigest()[:32]

    @property
    def used_columns(self) -> frozenset[str]:
        """The columns that the attributes name."""
        ordering = (item if isinstance(item, str) else item.column for item in self.order_by or ())
        conditions = (*self.skip.values(), *([] if self.incomplete is None else [self.incomplete]))
        filters = chain.from_iterable(rule.columns() for rule in conditions)
        return frozenset({*self.columns, *self.key, *ordering, *filters, *(self.uses or ())})

    def draft(self, record: Record) -> ResourceModel:
        """The draft that `to_resource` makes, checked against the resource's rules.

        Raises:
            RecordError: See `to_resource`; or if it returned anything else, or a cell of ``order_by`` does not convert.
            pydantic.ValidationError: If its members break a rule.
        """
        for item in self.order_by or ():
            if isinstance(item, OrderBy):
                _check_positions(item, record)
        copied = record.with_paths(self.used_columns)  # the mapping must not change the record that is stored
        made = self.to_resource(copied)
        kind = RESOURCES[self.resource].draft
        if not isinstance(made, kind | Mapping):
            message = f"to_resource returned {type(made).__name__} instead of {kind.__name__} or its members"
            code: CodeType | None = getattr(self.to_resource, "__code__", None)
            place = f"; see line {code.co_firstlineno} of {code.co_filename}" if code else ""
            raise RecordError("mapping_failed", message + place)
        return kind.model_validate(made)


def _check_positions(item: OrderBy, record: Record) -> None:
    for row, line in zip(record.rows, record.lines, strict=True):
        try:
            item.position(row)
        except RecordError as error:
            raise error.at(line) from None


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of ``crossdock check``: *text* says what was checked and found."""

    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class Connector(Generic[S]):
    """A kind of external system.

    Attributes:
        name: The ``kind`` in configs, and the name of the entry point.
        settings: Its settings model.
        streams: Its streams for one connection's settings.
        check: Tests whether the system can be reached and read with these settings; raises only `CrossdockError`.
        api: Declares the HTTP API that one connection reads, for ``ctx.api``.
    """

    name: str
    title: str
    settings: type[S]
    streams: Callable[[S], Sequence[Stream[S]]]
    check: Callable[[Context[S]], Iterator[Finding]] | None = None
    api: Callable[[S], Api] | None = None
    group: ClassVar[str] = "crossdock.connectors"
