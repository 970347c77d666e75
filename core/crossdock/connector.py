"""The interface for authors of connectors: Connector, Stream, Settings, Context."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from crossdock.errors import RecordError
from crossdock.mapping.declarative import MemberOverrides
from crossdock.mapping.external_ids import Ours
from crossdock.mapping.resource_types import WRITABLE_RESOURCE_TYPES, ResourceType, subset_model_with_optional_members
from crossdock.mapping.row_order_and_cursors import Checkpoint, Cursor, OrderBy, as_order_by_objects
from crossdock.mapping.stream_declaration import PLATFORM, Filter, Mode, StreamDeclaration
from crossdock.reading.sources.stream_context import Context, Settings
from crossdock.resources import ResourceModel, ResourceName
from crossdock.values import exact_json
from crossdock.values.author_code_errors import type_name_of_wrong_value
from crossdock.values.raw_rows_and_records import JSON, RawBatch, Record

if TYPE_CHECKING:
    from crossdock.reading.sources.api_declaration import Api
    from crossdock.webhooks import Webhooks
    from crossdock.writing.targets.target import ConnectorTarget


__all__ = ["Connector", "Context", "Finding", "Settings", "Stream"]

S = TypeVar("S", bound=Settings)


class Stream(StreamDeclaration, ABC, Generic[S]):
    """One kind of record of a connector. Facts are attributes; reading and mapping are methods.

    Most attributes are keys of a config file as well; `StreamDeclaration` and ``docs/how_to/configure`` say more about
    those.

    Attributes:
        name: The name in configs, commands and reports: 1 to 63 ASCII letters, digits, ``_`` and ``-``, no ``_`` or
            ``-`` first.
        resource: What its records become on the platform: a resource, or an action.
        to: Where its records go: ``platform``, or a resource of a target, such as ``shipbob.orders``.
        mode: ``snapshot`` lists everything, ``incremental`` what changed since a cursor, ``append`` some records.
        enabled: False if it is switched off: it is not read.
        key: The columns that identify a record.
        trim_keys: Whether white space around the key, and characters without a width, are removed.
        namespace: The scope in which these keys are unique; None for the connection's.
        group_by: Rows of one file or page with the same values in these columns make one record. So do JSON rows of all
            pages of a snapshot or with `whole_groups`, and of one list that `fetch` reads.
        whole_groups: Whether a list of changes has all rows of each record of which it has any, as a snapshot does, so
            that they may be on several pages: of all that `pull` yields up to a checkpoint. The cursor, if one is
            declared, has ``sorted=False``.
        order_by: Columns that tell which row of a key is the newest; else the last one read is.
        columns: Repairs by column, applied before key, filters and mapping.
        skip: Rows to leave out, by the name under which they are counted.
        ours: The records of a partner that crossdock has sent there.
        deleted: Rows which say that their record was deleted.
        on_gone: What to do with a record that is deleted, or missing in a snapshot.
        gone: Limits within which that is done without approval.
        cursor: The column that shows how far an incremental stream has read. Without it, `pull` yields `Checkpoint` or
            batches with a cursor, or reads everything each time.
        reread: A full list beside the changes, for an API whose cursor misses some.
        open_until: Records that are fetched in each run until they are final.
        uses: The columns whose change makes a record changed; None for all of them. Columns of JSON records are dotted
            paths, such as ``customer.id``.
        fingerprint: The hash by which changes are found.
        empty: What an empty export is: ``refuse``, ``all_gone`` or ``no_change``.
        suspicious: How many cells may look damaged; None for the default.
        duplicates: What to do with a snapshot that lists a key twice with different rows.
        changes: The number of known records that a run may update without approval.
        waits_at_most: How long a record may wait for one that it refers to, such as ``14d``; None for any time.
        fewer_rows_percent: Warn about a snapshot that has this many percent fewer rows than the last three.
        contributes: The members that it writes of records which another stream creates.
        matches: How a contribution finds its record: ``key``, ``id`` or ``origin``.
        reads: The resource of a target that its records are, such as ``plain.orders``.
        conflicts: What to do with an update of a member that others have changed at the target.
        adopt: Which records that exist already are taken over.
        personal: Members of the resource whose values are personal and must not be shown.
        map: How members of its resource are made, as under ``map`` in a config, such as ``{"sku": "variant.sku"}``.
            `to_resource` makes the others, or is left out.
        mapping_failed: The number of records at which `to_resource` may fail before the stream stops.
        mapping_version: Increase it with every change of `to_resource`, so that all records that the source still has
            are mapped again. A change of `map` is noticed without it.
        yields_deleted: Whether batches of `pull` may name records that were deleted, in `RawBatch.deleted`.
        fetch_size: The most keys that `fetch` gets at a time.
        fetches_unlisted: Whether known records that `existing` lacks are fetched before they count as gone, for a
            source whose list hides some that exist. Those that `fetch` reads are not gone.
        incomplete: Rows that lack most columns, so that `to_resource` rejects them: no filter leaves them out, none of
            them says that its record was deleted, and they count as the newest.
        platform_reads: Resources of the platform that `pull` reads; ``crossdock check`` names their scopes.
        reads_files: Whether the source of each batch is the name of a file, which reports without data may show. The
            address of a page may contain a key.
        is_declared_in_config: Set by the engine: whether a config declares all of its keys, such as `duplicates`.
        member_overrides: Set by the engine: what `map` and a config make of a record.
        earlier_keys: Set by the engine: what records were named before keys were trimmed.
        target_resource: Set by the engine: the type of its records at a target other than the platform.
    """

    name: str
    mode: Mode = "incremental"
    cursor: Cursor | None = None
    uses: Sequence[str] | None = None
    map: Mapping[str, Any] = {}
    mapping_version: str = "1"
    yields_deleted: bool = False
    fetch_size: int = 50
    fetches_unlisted: bool = False
    whole_groups: bool = False
    incomplete: Filter | None = None
    platform_reads: Sequence[ResourceName] = ()
    reads_files: bool = False
    is_declared_in_config: bool = False
    member_overrides: MemberOverrides | None = None
    earlier_keys: Mapping[str, str] = {}
    target_resource: ResourceType | None = None

    @property
    def _draft_model(self) -> type[ResourceModel]:
        """The model of what the mapping makes: a draft, or its contributed members."""
        draft = self.resource_type.draft
        return subset_model_with_optional_members(draft, tuple(self.contributes)) if self.contributes else draft

    @property
    def resource_type(self) -> ResourceType:
        """The type that its records become."""
        if self.target_resource is not None:
            return self.target_resource
        assert self.resource is not None  # checked when the config is loaded
        return WRITABLE_RESOURCE_TYPES[self.resource]

    @abstractmethod
    def pull(self, ctx: Context[S], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        """Read the source.

        A `Checkpoint` means that everything up to its cursor has been yielded. These records are delivered and stored
        before the rest is read, so that a failure costs little.

        Args:
            since: Where to continue: the cursor of the last checkpoint or of the last settled batch; None at first. See
                `Cursor` for its form if the stream declares one.

        Raises:
            RemoteError: If the source fails.
            RefusedError: If its data must not be taken in.
        """

    def to_resource(self, record: Record) -> ResourceModel | Mapping[str, Any]:  # noqa: ARG002
        """Map a record to a draft of the stream's resource, or to its members. No I/O, no clock, no settings.

        Beside `map`, it returns the members that `map` does not make; a stream whose `map` makes all does not need it.

        Raises:
            RecordError: If the record cannot be mapped; it becomes a dead letter. After any other exception it becomes
                one with the reason ``mapping_failed``; beyond the limits `mapping_failed` the stream stops.
        """
        return {}

    @property
    def maps_in_code(self) -> bool:
        """Whether `to_resource` is implemented."""
        return type(self).to_resource is not Stream.to_resource

    def existing(self, ctx: Context[S]) -> Iterator[RawBatch]:
        """List the keys of all records that exist, for a source that lists changes and does not name what it deleted.

        Read after `pull`, in each run of a stream with `on_gone`. A known record that is missing is gone, if the list
        is complete; the same evidence is needed as of a snapshot. Rows need the key columns only.

        Raises:
            RemoteError: If the source fails.
        """
        raise NotImplementedError(f"{type(self).__name__} lists no existing records: {ctx.connection}.{self.name}")

    @property
    def lists_existing(self) -> bool:
        """Whether `existing` is implemented."""
        return type(self).existing is not Stream.existing

    def fetch(self, ctx: Context[S], keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        """Read the records that *keys* name, such as those of webhooks.

        The rows are as those of `pull`. Rows of other records are also accepted. If the stream declares
        ``yields_deleted``, a record that the source no longer has is named in `RawBatch.deleted`. A record that is
        neither read nor named is not changed.

        Args:
            keys: Each as the texts of the key columns; at most `fetch_size` of them, each once.

        Raises:
            RemoteError: If the source fails.
            RefusedError: If its data must not be taken in.
        """
        raise NotImplementedError(f"{type(self).__name__} fetches no named records: {ctx.connection}.{self.name}")

    @property
    def fetches(self) -> bool:
        """Whether `fetch` is implemented."""
        return type(self).fetch is not Stream.fetch

    @property
    def finds_deleted(self) -> bool:
        """Whether the stream shows which records were deleted, in addition to those that a snapshot does not list."""
        return self.deleted is not None or self.yields_deleted or self.lists_existing or self.rereads_gone

    @property
    def rereads_gone(self) -> bool:
        """Whether its full list, read besides the changes, shows which records are gone."""
        return self.reread is not None and self.reread.finds_gone

    @property
    def reads_changes(self) -> bool:
        return self.mode == "incremental"

    def finished(self, ctx: Context[S]) -> None:
        """Called when every record that was read is settled or kept in the state."""

    @property
    def version(self) -> str:
        """A hash that changes whenever the same rows could give another record or draft."""
        facts = {
            "resource": self.resource if self.to == PLATFORM else self.to,
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
        } | ({} if self.deleted is None else {"deleted": self.deleted.model_dump(exclude_none=True)})
        facts |= {} if self.trim_keys else {"trim_keys": False}
        facts |= {} if self.namespace is None else {"namespace": self.namespace}
        facts |= {} if self.ours is None else {"ours": self.ours.model_dump()}
        facts |= {"map": self.member_overrides.digest} if self.member_overrides is not None else {}
        facts |= {"contributes": [*self.contributes], "matches": self.matches} if self.contributes else {}
        return hashlib.sha256(exact_json.dumps(facts)).hexdigest()[:32]

    @property
    def cursor_version(self) -> str:
        """`version`, and the meaning of the values of `cursor`: a cursor that is stored under another one is not
        used.
        """
        if self.cursor is None:
            return self.version
        facts = self.cursor.model_dump(
            by_alias=True, exclude_none=True, include={"column", "as_", "format", "timezone"}
        )
        return f"{self.version}:{hashlib.sha256(exact_json.dumps(facts)).hexdigest()[:16]}"

    @property
    def own_keys(self) -> Ours | None:
        """`ours` if external ids are its keys."""
        return self.ours if self.ours is not None and self.ours.is_key(self.key) else None

    @property
    def used_columns(self) -> frozenset[str]:
        """The columns that the attributes name."""
        return columns_in_stream_attributes(self)

    def draft(self, record: Record) -> ResourceModel:
        """Return the draft of `to_resource`, `map` and a config's overrides, checked against the resource's rules.

        Raises:
            RecordError: See `to_resource`; or if it returned anything else, or a cell of ``order_by`` does not convert.
            pydantic.ValidationError: If its members break a rule.
        """
        for item in self.order_by or ():
            if isinstance(item, OrderBy):
                _check_order_cells(item, record)
        copied = self._copy_record_for_mapping(record)  # the mapping must not change the record that is stored
        made = self.to_resource(copied)
        kind = self._draft_model
        if not isinstance(made, kind | Mapping):
            message = f"to_resource returned {type_name_of_wrong_value(made)} instead of {kind.__name__} or its members"
            code: CodeType | None = getattr(self.to_resource, "__code__", None)
            place = f"; see line {code.co_firstlineno} of {code.co_filename}" if code else ""
            raise RecordError("mapping_failed", message + place)
        if self.member_overrides is not None:
            made = self.member_overrides.applied_to(made, self._copy_record_for_mapping(record))
        draft = kind.model_validate(made)
        record.parts.clear()  # it may be mapped several times
        record.parts.update(copied.parts)
        if len(record.rows) > 1:
            self._count_doubtful_rows(record)
        return draft

    def _count_doubtful_rows(self, record: Record) -> None:
        """Count what rows of one record have if the source lists the record twice: all of them are mapped."""
        if repeated := len(record.rows) - len({tuple(row.values()) for row in record.rows}):
            record.parts["row equal to another one of its record"] = repeated
        order_by = as_order_by_objects(self.order_by)
        if order_by and len({tuple(item.position(row) for item in order_by) for row in record.rows}) > 1:
            record.parts["record of rows with different order_by"] = 1

    def _copy_record_for_mapping(self, record: Record) -> Record:
        is_json = any(JSON in row for row in record.rows)  # otherwise no path is missing
        return record.with_paths(self.used_columns) if is_json else record.copy()


def columns_in_stream_attributes(stream: Stream[Any]) -> frozenset[str]:
    """Return the columns that the attributes of *stream* name, whatever its class computes."""
    ordering = (item if isinstance(item, str) else item.column for item in stream.order_by or ())
    conditions = (*stream.skip.values(), *(each for each in (stream.incomplete, stream.deleted) if each is not None))
    filters = chain.from_iterable(rule.columns() for rule in conditions)
    more = stream.member_overrides.columns if stream.member_overrides else ()
    state = (stream.open_until.field,) if stream.open_until else ()
    own = (stream.ours.member,) if stream.ours else ()
    return frozenset({*stream.columns, *stream.key, *ordering, *filters, *(stream.uses or ()), *more, *state, *own})


def _check_order_cells(item: OrderBy, record: Record) -> None:
    for row, line in zip(record.rows, record.lines, strict=True):
        try:
            item.position(row)
        except RecordError as error:
            raise error.at(line) from None


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of ``crossdock check``.

    Attributes:
        text: What was checked and found.
        code: Of a failure or a warning: its code for ``crossdock explain``, if it has one.
        category: Of a failure: the kind of the error, if it has one.
    """

    ok: bool
    text: str
    code: str | None = None
    category: str | None = None


_EXAMPLES = {
    "streams": "lambda settings: (Products(),)",
    "check": "lambda ctx: [Finding(ok=True, text=...)]",
    "api": "lambda settings: settings.api(...)",
    "target": "lambda settings: Target()",
    "webhooks": "lambda settings: Webhooks(...)",
}


@dataclass(frozen=True)  # without slots: ``Connector[...](...)`` would fail
class Connector(Generic[S]):
    """A kind of external system.

    Attributes:
        name: The ``kind`` in configs, and the name of the entry point.
        settings: Its settings model.
        streams: Its streams for one connection's settings.
        check: Tests whether the system can be reached and read with these settings; raises only `CrossdockError`. By
            default the first page of each stream of an API is read.
        api: Declares the HTTP API that one connection reads, for ``ctx.api``, and that its target writes to.
        target: Makes the target that one connection is, for streams with ``to: CONNECTION.RESOURCE``; None if these
            settings declare none.
        webhooks: Declares the webhooks that one connection receives; None if these settings declare none.
    """

    name: str
    title: str
    settings: type[S]
    streams: Callable[[S], Sequence[Stream[S]]]
    check: Callable[[Context[S]], Iterator[Finding]] | None = None
    api: Callable[[S], Api] | None = None
    target: Callable[[S], ConnectorTarget | None] | None = None
    webhooks: Callable[[S], Webhooks[S] | None] | None = None
    group: ClassVar[str] = "crossdock.connectors"

    def __post_init__(self) -> None:
        settings: object = self.settings
        if not (isinstance(settings, type) and issubclass(settings, Settings)):
            raise TypeError("settings of a Connector must be a class that extends Settings")
        for name in ("streams", "check", "api", "target", "webhooks"):
            given = getattr(self, name)
            if not callable(given) and (given is not None or name == "streams"):
                raise TypeError(f"{name} of a Connector must be a function, such as {_EXAMPLES[name]}")
