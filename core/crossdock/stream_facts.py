"""What is declared about a stream, in code or in a config file: keys, order, filters, and limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Discriminator, Field, GetPydanticSchema, Tag

from crossdock.config_file import ConfigModel, Name
from crossdock.mapping.ordering import OrderBy
from crossdock.mapping.repairs_and_filters import Filter, Repair
from crossdock.resources import RESOURCES, ResourceName
from crossdock.sources.expected_files import Interval

Mode = Literal["snapshot", "incremental", "append"]
OnGone = Literal["nothing", "archive", "delete"]
Percent = Annotated[float, Field(ge=0, le=100)]


class GoneLimits(ConfigModel):
    """Limits within which records that are gone are removed without approval; all must hold."""

    at_most: Annotated[int, Field(ge=0)] = 100
    """Number of records of one run."""
    at_most_percent: Percent = 5.0
    """Share of the records that the stream has on the platform."""
    rows_within_percent: Percent = 20.0
    """Where nothing states a snapshot's number of rows: how far it may differ from each of the last three."""
    every: Interval | None = None
    """How often a list of existing records is read; by default in each run."""


class FailureLimits(ConfigModel):
    """The number of records at which the code of a mapping may fail; beyond both limits its stream stops.

    Records that an earlier run refused, and that come again unchanged, do not count.
    """

    at_most: Annotated[int, Field(ge=0)] = 20
    """Number of records of one run."""
    at_most_percent: Percent = 5.0
    """Share of the records that are new, changed or waiting in the run."""

    def exceeded(self, failed: int, records: int) -> bool:
        return failed > self.at_most and failed * 100 > self.at_most_percent * records


class ChangeLimits(ConfigModel):
    """The number of known records that one run may update without approval; beyond both limits its stream stops."""

    at_most: Annotated[int, Field(ge=0)] = 100
    """Number of records of one run."""
    at_most_percent: Percent = 30.0
    """Share of the records that crossdock knows of the stream."""

    def exceeded(self, updates: int, known: int) -> bool:
        return updates > self.at_most and updates * 100 > self.at_most_percent * known


EVERY_WITHOUT_LIST = "needs existing: nothing else is read for it"
MARKS_IN_SNAPSHOT = "is for other modes; a snapshot lists every record that exists"


def no_removal(resource: ResourceName, mode: Mode, on_gone: OnGone, *, finds_deleted: bool) -> str | None:
    """Why records of such a stream cannot be removed as *on_gone* says; None if they can.

    Args:
        finds_deleted: `Stream.finds_deleted`.
    """
    kind = RESOURCES[resource]
    if on_gone == "nothing":
        return None
    if kind.write_once:
        return f"must be nothing: an {resource} is written once, and never archived or deleted"
    if mode != "snapshot" and not finds_deleted:
        return "needs mode: snapshot, or deleted: only a list of everything or a mark shows that a record is gone"
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
    deleted: Filter | None = None
    """Rows which say that their record was deleted; ``on_gone`` says what to do with it."""
    fingerprint: Literal["xxh3_64", "xxh3_128"] = "xxh3_64"
    """``xxh3_64`` misses one change in about 2**64, ``xxh3_128`` practically none."""
    duplicates: Literal["refuse", "last"] = "refuse"
    """What to do with a snapshot that lists a key twice with different rows, where ``order_by`` does not decide."""
    adopt: Literal["never", "external_id"] = "never"
    """``external_id`` takes over a record that the platform has under our external id; else it is a conflict."""
    personal: _Texts = ()
    """Members of the resource whose values are personal in this stream and must not be shown."""
    on_gone: OnGone = "nothing"
    """What to do with a record that is deleted, or missing in a snapshot; ``archive`` sets active to false."""
    gone: GoneLimits = GoneLimits()
    """Limits within which that is done without approval."""
    changes: ChangeLimits = ChangeLimits()
    """The number of known records that a run may update without approval."""
    fewer_rows_percent: Percent = 20.0
    """Warn about a snapshot that has this many percent fewer rows than each of the last three, and at least 10."""
    mapping_failed: FailureLimits = FailureLimits()
    """The number of records at which the code of the mapping may fail before the stream stops."""
