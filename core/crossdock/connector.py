"""What connector authors write against: Connector, Stream, Settings, Context."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import Field

from crossdock import exact_json
from crossdock.config_file import ConfigModel, Name
from crossdock.mapping.repairs_and_filters import Filter, Repair
from crossdock.records import RawBatch, Record
from crossdock.resources import RESOURCES, ResourceModel, ResourceName
from crossdock.sources.source_context import SourceContext

Mode = Literal["snapshot", "incremental", "append"]
OnGone = Literal["nothing", "archive", "delete"]


class GoneLimits(ConfigModel):
    """When records that a snapshot no longer lists are removed without a person's approval."""

    at_most: Annotated[int, Field(ge=0)] = 100
    """So many records of one snapshot."""
    at_most_percent: Annotated[float, Field(ge=0, le=100)] = 5.0
    """Such a share of the records that the stream had on the platform after the snapshot before; both limits hold."""
    rows_within_percent: Annotated[float, Field(ge=0, le=100)] = 20.0
    """Where no trailer counts a snapshot's rows: how far their number may be from that of each of the last three."""


class FailureLimits(ConfigModel):
    """At how many records the code of a mapping may fail before its stream stops: it stops beyond both limits.

    Records that were refused by an earlier run, and come again as they were, do not count.
    """

    at_most: Annotated[int, Field(ge=0)] = 20
    """So many records of one run."""
    at_most_percent: Annotated[float, Field(ge=0, le=100)] = 5.0
    """Such a share of the records that are new, changed or waiting in it."""

    def exceeded(self, failed: int, records: int) -> bool:
        return failed > self.at_most and failed * 100 > self.at_most_percent * records


def no_removal(resource: ResourceName, mode: Mode, on_gone: OnGone) -> str | None:
    """Why records of such a stream cannot be removed as *on_gone* says; None if they can."""
    kind = RESOURCES[resource]
    if on_gone == "nothing":
        return None
    if kind.write_once:
        return f"has no place here: an {resource} is written once, and never archived or deleted"
    if mode != "snapshot":
        return "needs mode: snapshot; only what always lists everything shows that a record is gone"
    if on_gone == "archive" and "active" not in kind.draft.model_fields:
        return f"archive is impossible: {resource} has no member active; choose nothing or delete"
    return None


class Settings(ConfigModel):
    """What one connection is configured with; a connector adds its own fields."""

    kind: str
    namespace: Name | None = None
    """Where this connection's record keys are unique; its name without it. Connections that share keys share one."""


S = TypeVar("S", bound=Settings)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Context(Generic[S]):
    """What a stream is given when it reads.

    Attributes:
        settings: Of the connection.
        connection: Its name.
        run: What the run gives its sources: clock, progress, folders, intake log.
    """

    settings: S
    connection: str
    run: SourceContext
    _shared: dict[object, Any] = field(default_factory=dict)

    def shared(self, name: object, make: Callable[[], T]) -> T:
        """What *make* gives, made once in a run and shared by the streams of the connection."""
        if name not in self._shared:
            self._shared[name] = make()
        value: T = self._shared[name]
        return value


class Stream(ABC, Generic[S]):
    """One kind of record of a connector. Facts are attributes; only reading and mapping are methods.

    Attributes:
        name: In configs, commands and reports: 1 to 63 ASCII letters, digits, ``_`` and ``-``, no ``_`` or ``-`` first.
        resource: What its records become.
        mode: ``snapshot`` always lists everything, ``incremental`` what changed since a cursor, ``append`` brings some
            records, new or changed, and absence means nothing.
        key: The columns that name a record.
        group_by: The key columns again, where several rows of one file or page make one record; else empty.
        order_by: Columns that say which of several rows (or groups) of one key is the newest, compared as text;
            without them the last one read is.
        columns: Repairs by column, before anything else looks at it.
        skip: Filters by name; a row counts under the first that matches.
        uses: The columns whose change makes a record changed; None for all of them.
        fingerprint: ``xxh3_64`` misses a change once in about 2**64 changes; ``xxh3_128`` never in practice.
        duplicates: What becomes of a snapshot in which two rows of one key differ and ``order_by`` does not decide:
            ``refuse`` it, or let the ``last`` row count.
        adopt: ``external_id`` takes over a record that the platform already has under our name for it; by ``never`` it
            is refused as a conflict.
        personal: Members of the resource, by their wire names, that are personal here though they are not in general;
            their values are not shown.
        on_gone: What becomes of a record that a snapshot no longer lists; ``archive`` makes it inactive, where its
            resource has ``active``.
        gone: When that may be done without a person.
        mapping_failed: At how many records `to_resource` may fail before the stream stops.
        mapping_version: To be raised with every change of `to_resource`, so that records are looked at again.
    """

    name: str
    resource: ResourceName
    key: Sequence[str]
    mode: Mode = "incremental"
    group_by: Sequence[str] = ()
    order_by: Sequence[str] = ()
    columns: Mapping[str, Repair] = {}
    skip: Mapping[str, Filter] = {}
    uses: Sequence[str] | None = None
    fingerprint: Literal["xxh3_64", "xxh3_128"] = "xxh3_64"
    duplicates: Literal["refuse", "last"] = "refuse"
    adopt: Literal["never", "external_id"] = "never"
    personal: Sequence[str] = ()
    on_gone: OnGone = "nothing"
    gone: GoneLimits = GoneLimits()
    mapping_failed: FailureLimits = FailureLimits()
    mapping_version: str = "1"

    @abstractmethod
    def pull(self, ctx: Context[S], since: str | None) -> Iterator[RawBatch]:
        """Read. *since* is the cursor of the last batch that was settled, None at first.

        Raises:
            RemoteError: If the source fails.
            RefusedError: If what it gives must not be taken.
        """

    @abstractmethod
    def to_resource(self, record: Record) -> ResourceModel | Mapping[str, Any]:
        """Map: a draft of the stream's resource, or its members. No I/O, no clock, no settings.

        Raises:
            RecordError: If the record cannot be mapped; it becomes a dead letter. So it does with the reason
                ``mapping_failed`` after any other exception, and beyond `mapping_failed` of them the stream stops.
        """

    def finished(self, ctx: Context[S]) -> None:
        """Called once every record that was read is settled, or kept in the state."""

    @property
    def version(self) -> str:
        """Changes whenever the same rows could give another record or another draft."""
        facts = {
            "resource": self.resource,
            "key": list(self.key),
            "group_by": list(self.group_by),
            "order_by": list(self.order_by),
            "columns": {name: repair.model_dump(exclude_none=True) for name, repair in self.columns.items()},
            "skip": {name: rule.model_dump(exclude_none=True) for name, rule in self.skip.items()},
            "uses": None if self.uses is None else sorted(self.uses),
            "fingerprint": self.fingerprint,
            "mapping": self.mapping_version,
        }
        return hashlib.sha256(exact_json.dumps(facts)).hexdigest()[:32]

    def draft(self, record: Record) -> ResourceModel:
        """The draft that `to_resource` makes, checked against the resource's rules.

        Raises:
            RecordError: See `to_resource`.
            pydantic.ValidationError: If its members break a rule.
        """
        made = self.to_resource(record.copy())  # what is stored of the record stays as it was read
        return RESOURCES[self.resource].draft.model_validate(made)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of ``crossdock check``: *text* says what was looked at and found."""

    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class Connector(Generic[S]):
    """A kind of external system.

    Attributes:
        name: The ``kind`` in configs, and the name of the entry point.
        settings: Its settings model.
        streams: Its streams for one connection's settings.
        check: Looks whether the system can be reached and read with these settings; yields findings, raises nothing
            but `CrossdockError`.
    """

    name: str
    title: str
    settings: type[S]
    streams: Callable[[S], Sequence[Stream[S]]]
    check: Callable[[Context[S]], Iterator[Finding]] | None = None
    group: ClassVar[str] = "crossdock.connectors"
