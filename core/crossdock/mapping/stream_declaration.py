"""What a stream declares in code or in a config file: keys, order, repairs, filters and limits.

Keys, filters and fingerprints see the repaired text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self
from urllib.parse import unquote

import polars as pl
from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, GetPydanticSchema, Tag, model_validator
from pydantic_core import PydanticCustomError

from crossdock.mapping.convert import Row
from crossdock.mapping.external_ids import Ours
from crossdock.mapping.resource_types import WRITABLE_RESOURCE_TYPES, ResourceType, text_members
from crossdock.mapping.row_order_and_cursors import OrderBy
from crossdock.printable import BLANKS
from crossdock.reading.sources.expected_and_late_files import Interval
from crossdock.resources import ActionName, ResourceName
from crossdock.values.config_base_types import (
    ConfigModel,
    GivenText,
    Name,
    make_pydantic_error_at_key,
    text_type_matching_pattern,
)
from crossdock.values.config_file import unknown_key_message
from crossdock.values.json_paths import json_value_as_column_text, value_at_path_or_missing
from crossdock.values.raw_rows_and_records import Empty, column_expression_by_exact_name

MAX_ZFILL = 100
_LINE_BREAKS = "[\r\n\u0085\u2028\u2029]+"
MAX_DEPTH = 5
"""The nesting depth of conditions."""
_COMPARISONS = ("equals", "one_of", "starts_with", "ends_with", "empty")
_KEYS = [*(("field", name) for name in _COMPARISONS), ("not",), ("any",), ("all",)]


def _percent_decoded(text: str) -> str:
    """Decode percent-encoding, but return *text* if it is not UTF-8: replacement characters could merge two ids."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


class Repair(ConfigModel):
    """Changes to the text of one column, in the order of these fields."""

    decode: Literal["percent"] | None = None
    """``percent`` decodes the percent-encoding of URLs, as some ids have it: ``a%2Fb`` is ``a/b``."""
    strip: Literal["both", "left", "right"] | None = None
    """Remove white space of any kind, and characters without a width."""
    line_breaks: GivenText = None
    """The text that takes the place of the line breaks inside of a cell, such as a space; several count as one."""
    strip_prefix: GivenText = None
    """Text that is removed once from the beginning."""
    strip_suffix: GivenText = None
    """Text that is removed once from the end."""
    null: GivenText = None
    """A text that means empty, such as NULL; the cell becomes empty."""
    zfill: Annotated[int, Field(ge=1, le=MAX_ZFILL)] | None = None
    """How many digits a cell of digits alone has, with zeros before it."""
    table: Mapping[str, str] | None = None
    """The text that takes the place of each of these texts; any other stays. An empty text stands for null as well."""

    def expression(self, column: str) -> pl.Expr:
        text = column_expression_by_exact_name(column)
        if self.decode:
            text = text.map_elements(_percent_decoded, return_dtype=pl.String)
        if self.strip:
            ways = {"both": text.str.strip_chars, "left": text.str.strip_chars_start, "right": text.str.strip_chars_end}
            text = ways[self.strip](BLANKS)
        if self.line_breaks is not None:
            text = text.str.replace_all(_LINE_BREAKS, self.line_breaks.replace("$", "$$"))
        if self.strip_prefix:
            text = text.str.strip_prefix(self.strip_prefix)
        if self.strip_suffix:
            text = text.str.strip_suffix(self.strip_suffix)
        if self.null is not None:
            text = pl.when(text == self.null).then(pl.lit("")).otherwise(text)
        if self.zfill is not None:
            text = pl.when(text.str.contains("^[0-9]+$")).then(text.str.pad_start(self.zfill, "0")).otherwise(text)
        if self.table is not None:
            text = (text.fill_null("") if "" in self.table else text).replace(self.table)
        return text.alias(column)


class Filter(ConfigModel):
    """A condition on a row: one comparison of *field*, or one combination of other conditions.

    An empty cell and a null are the same text, the empty one.
    """

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": list(keys)} for keys in _KEYS]})

    field: str | None = None
    """The column that the condition tests, with exactly one of the comparisons ``equals``, ``one_of``, ``starts_with``,
    ``ends_with`` and ``empty``."""
    equals: GivenText = None
    """Rows whose field is this text."""
    one_of: tuple[str, ...] | None = None
    """Rows whose field is one of these texts."""
    starts_with: GivenText = None
    """Rows whose field begins with this text."""
    ends_with: GivenText = None
    """Rows whose field ends with this text."""
    empty: bool | None = None
    """``true``: rows whose field is empty; ``false``: rows whose field is not empty. Blanks alone are empty, too."""
    not_: Annotated[Filter | None, Field(alias="not")] = None
    """Rows that do not meet this condition."""
    any: Annotated[tuple[Filter, ...], Field(min_length=1)] | None = None
    """Rows that meet at least one of these conditions."""
    all: Annotated[tuple[Filter, ...], Field(min_length=1)] | None = None
    """Rows that meet all of these conditions."""

    @model_validator(mode="after")
    def _check_one_condition(self) -> Self:
        given = [name for name in _COMPARISONS if getattr(self, name) is not None]
        combined = [value for value in (self.not_, self.any, self.all) if value is not None]
        if (self.field is None) is bool(given) or len(given) + len(combined) != 1:
            raise ValueError(f"give field and one of {', '.join(_COMPARISONS)}; or one of not, any, all")
        if self._depth() > MAX_DEPTH:
            raise ValueError(f"conditions are nested more than {MAX_DEPTH} levels deep")
        return self

    def _depth(self) -> int:
        return 1 + max((inner._depth() for inner in self._inner_conditions()), default=0)  # noqa: SLF001  of the same class

    def _inner_conditions(self) -> tuple[Filter, ...]:
        return (self.not_,) if self.not_ is not None else (self.any or self.all or ())

    def columns(self) -> Iterator[str]:
        if self.field is not None:
            yield self.field
        for inner in self._inner_conditions():
            yield from inner.columns()

    def if_all_is_read(self, unread: Callable[[str], Filter | None]) -> Filter:
        """Return this condition for rows of which each column that it tests was read.

        *unread* returns the condition for rows that lack a column only because it could not be read; None for others.
        """
        lacking = [Filter(not_=each) for column in self.columns() if (each := unread(column)) is not None]
        return Filter.model_construct(all=(self, *lacking)) if lacking else self  # deeper than a config may nest them

    def json_predicate(self) -> Callable[[Any], bool]:
        """Return a function that says whether a JSON value meets the condition. Fields are dotted paths."""
        meets, columns = self.predicate(), tuple(self.columns())
        return lambda value: meets(
            {column: json_value_as_column_text(value_at_path_or_missing(value, column)) for column in columns}
        )

    def expression(self) -> pl.Expr:
        """Return an expression that is true for rows that meet the condition, and never null."""
        if inner := [each.expression() for each in self._inner_conditions()]:
            if self.not_ is not None:
                return ~inner[0]
            return pl.any_horizontal(inner) if self.any else pl.all_horizontal(inner)
        return self._comparison_expression(column_expression_by_exact_name(self.field or "").fill_null(""))

    def _comparison_expression(self, text: pl.Expr) -> pl.Expr:
        if self.equals is not None:
            return text == self.equals
        if self.one_of is not None:
            return text.is_in(list(self.one_of))
        if self.starts_with is not None:
            return text.str.starts_with(self.starts_with)
        if self.ends_with is not None:
            return text.str.ends_with(self.ends_with)
        return (text.str.strip_chars(BLANKS) == "") == self.empty

    def predicate(self) -> Callable[[Row], bool]:
        """Return the condition on one row, equivalent to `expression`."""
        if inner := [each.predicate() for each in self._inner_conditions()]:
            if self.not_ is not None:
                return lambda row: not inner[0](row)
            combined = any if self.any else all
            return lambda row: combined(condition(row) for condition in inner)
        compare, field = self._comparison_predicate(), self.field or ""
        return lambda row: compare(row[field] or "")

    def _comparison_predicate(self) -> Callable[[str], bool]:
        for wanted, compare in (
            (self.equals, str.__eq__),
            (self.starts_with, str.startswith),
            (self.ends_with, str.endswith),
        ):
            if wanted is not None:
                return lambda text: compare(text, wanted)
        if self.one_of is not None:
            return frozenset(self.one_of).__contains__
        return lambda text: (text.strip(BLANKS) == "") is self.empty


def name_of_first_matching_filter(filters: Mapping[str, Filter]) -> pl.Expr:
    """Return the name of the first filter that matches a row; null for rows that stay."""
    chain: pl.Expr = pl.lit(None, dtype=pl.String)
    for name, condition in reversed(list(filters.items())):
        chain = pl.when(condition.expression()).then(pl.lit(name)).otherwise(chain)
    return chain


Mode = Literal["snapshot", "incremental", "append"]
OnGone = Literal["nothing", "archive", "delete"]
Percent = Annotated[float, Field(ge=0, le=100)]
_AsTuple = GetPydanticSchema(lambda _, handler: handler(tuple[str, ...]))


class GoneLimits(ConfigModel):
    """Limits within which records that are gone are removed without approval; all must hold."""

    at_most: Annotated[int, Field(ge=0)] = 100
    """The most records that are removed in one run. ``at_most_percent`` applies as well."""
    at_most_percent: Percent = 5.0
    """Percent of the records that the stream has on the platform."""
    rows_within_percent: Percent = 20.0
    """Where nothing states a snapshot's number of rows: by how many percent it may differ from each of the last
    three."""
    every: Interval | None = None
    """How often a list of existing records is read; by default in each run."""
    referenced: Literal["keep", "delete"] = "keep"
    """Whether records are deleted that others refer to; ``keep`` holds the delete back until nothing refers to them."""


class Reread(ConfigModel):
    """A full list of an incremental stream, read after the changes and compared with what is known."""

    every: Interval
    """How often it is read, such as ``7d``; the first time in the next run."""
    finds_gone: bool = False
    """Whether it lists every record that exists, so that ``on_gone`` applies to a known record that it lacks."""


class OpenUntil(ConfigModel):
    """When a record is final; until then each run fetches it by its key, whatever the cursor says."""

    field: Annotated[str, Field(min_length=1)]
    """The column that says it, such as ``state``."""
    in_: Annotated[Sequence[str], _AsTuple, Field(alias="in", min_length=1)]
    """Its values in a final record."""
    at_most: Annotated[int, Field(ge=1, le=100_000)] = 500
    """The most records that one run fetches; those that were read longest ago come first."""


class FailureLimits(ConfigModel):
    """The number of records at which the code of a mapping may fail; beyond both limits its stream stops.

    Records that an earlier run refused, and that come again unchanged, do not count.
    """

    at_most: Annotated[int, Field(ge=0)] = 20
    """Failures in one run. The stream stops if this and ``at_most_percent`` are both exceeded."""
    at_most_percent: Percent = 5.0
    """Percent of the records that are new, changed or waiting in the run."""

    def exceeded(self, failed: int, records: int) -> bool:
        return failed > self.at_most and failed * 100 > self.at_most_percent * records


class ChangeLimits(ConfigModel):
    """The number of known records that one run may update without approval; beyond both limits its stream stops."""

    at_most: Annotated[int, Field(ge=0)] = 100
    """Updates of known records in one run. The stream stops if this and ``at_most_percent`` are both exceeded."""
    at_most_percent: Percent = 30.0
    """Percent of the records that crossdock knows of the stream."""

    def exceeded(self, updates: int, known: int) -> bool:
        return updates > self.at_most and updates * 100 > self.at_most_percent * known


class SuspiciousLimit(ConfigModel):
    """The number of cells of one run that may look damaged by a program before us; beyond it nothing is imported."""

    at_most: Annotated[int, Field(ge=0)] = 0
    """Cells of one run; beyond it nothing of the stream is imported."""


EVERY_WITHOUT_LIST = "needs existing: nothing else is read for it"
MARKS_IN_SNAPSHOT = "is for other modes; a snapshot lists every record that exists"


def reread_and_open_until_problem(
    mode: Mode, reread: Reread | None, open_until: OpenUntil | None, *, fetches: bool, other_deletion_setting: str
) -> tuple[tuple[str, ...], str] | None:
    """Return the key to correct and the reason, or None. *other_deletion_setting* also finds deletions."""
    for name, wanted in (("reread", reread), ("open_until", open_until)):
        if wanted is not None and mode != "incremental":
            return (name,), "needs mode: incremental; other modes read everything"
    if open_until is not None and not fetches:
        return ("open_until",), "needs a way to read one record by its key: fetch"
    if reread is not None and reread.finds_gone and other_deletion_setting:
        return (
            "reread",
            "finds_gone",
        ), f"cannot be used with {other_deletion_setting}: choose one way to find deleted records"
    return None


def removal_problem(kind: ResourceType, mode: Mode, on_gone: OnGone, *, finds_deleted: bool) -> str | None:
    """Return why records cannot be removed as *on_gone* says, or None."""
    if on_gone == "nothing":
        return None
    if kind.write_once and not kind.deletes:
        return f"must be nothing: an {kind.name} is written once, and never archived or deleted"
    if mode != "snapshot" and not finds_deleted:
        return (
            "needs mode: snapshot, or deleted, or reread with finds_gone:"
            " only a list of everything or a mark shows that a record is gone"
        )
    return _reason_not_deletable(kind) if on_gone == "delete" else _reason_not_archivable(kind)


def _reason_not_deletable(kind: ResourceType) -> str | None:
    return None if kind.deletes else f"delete is impossible: {kind.name} has no delete; choose nothing or archive"


def _reason_not_archivable(kind: ResourceType) -> str | None:
    if kind.write_once:
        return f"archive is impossible: {kind.name} is written once, and never changed; choose nothing or delete"
    if "active" in {field.alias or name for name, field in kind.draft.model_fields.items()}:
        return None
    return f"archive is impossible: {kind.name} has no member active; choose nothing or delete"


_Texts = Annotated[Sequence[str], _AsTuple]
Columns = Annotated[_Texts, Field(min_length=1)]

_OrderColumn = Annotated[
    Annotated[str, Tag("name")] | Annotated[OrderBy, Tag("declared")],
    Discriminator(lambda item: "name" if isinstance(item, str) else "declared"),
]
_Ordering = GetPydanticSchema(lambda _, handler: handler(tuple[_OrderColumn, ...]))
OrderColumns = Annotated[Annotated[Sequence[str | OrderBy], _Ordering], Field(min_length=1)]


PLATFORM = "platform"
_RESOURCE = r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}\.[A-Za-z0-9_]{1,32}"
Destination = Annotated[
    str,
    text_type_matching_pattern(
        rf"^(platform|{_RESOURCE})$", "platform, or CONNECTION.RESOURCE of a target, such as shipbob.orders"
    ),
]
Read = Annotated[
    str, text_type_matching_pattern(rf"^{_RESOURCE}$", "CONNECTION.RESOURCE of a target, such as shipbob.orders")
]
Destinations = Mapping[str, Mapping[str, ResourceType]]
"""The resources of each target, by the name of its connection."""


def destination_resource_type(resource: str | None, to: str, targets: Destinations) -> ResourceType:
    """Return the type that the records of a stream become. Raises an error that names the key to correct."""
    connection, _, name = to.partition(".")
    if to == PLATFORM:
        if resource is None:
            raise make_pydantic_error_at_key(("resource",), f"is missing; known: {', '.join(WRITABLE_RESOURCE_TYPES)}")
        return WRITABLE_RESOURCE_TYPES[resource]
    if resource is not None:
        raise make_pydantic_error_at_key(("resource",), f"cannot be set: to names the resource, {to}")
    if connection not in targets:
        known = ", ".join(sorted(targets)) or "none"
        raise make_pydantic_error_at_key(("to",), f"no connection {connection!r} is a target; targets: {known}")
    if name not in targets[connection]:
        raise make_pydantic_error_at_key(
            ("to",), unknown_key_message(name, list(targets[connection])).replace("key", "resource", 1)
        )
    return targets[connection][name]


Members = Annotated[Sequence[str], _AsTuple]


def reads_problem(declared: StreamDeclaration, reads: str | None, targets: Destinations) -> str | None:
    """Return what is wrong with *reads*, or with ``matches``, which may need it, or None."""
    if reads is None:
        return (
            "matches: origin needs reads: the resource that the records are" if declared.matches == "origin" else None
        )
    system, _, resource = reads.partition(".")
    known = WRITABLE_RESOURCE_TYPES if system == PLATFORM else targets.get(system)
    if known is None:
        return f"reads: no connection {system!r} is a target"
    if resource not in known:
        return f"reads: {unknown_key_message(resource, list(known)).replace('key', 'resource', 1)}"
    return None if len(declared.key) == 1 else "reads needs a key of one column, which has the target's id"


def empty_export_option_problem(mode: Mode, empty: Empty) -> str | None:
    """Return why an empty export cannot be treated as *empty* says, or None."""
    if empty == "all_gone" and mode != "snapshot":
        return "all_gone needs mode: snapshot, which lists everything"
    if empty == "no_change" and mode == "snapshot":
        return "no_change is for other modes: a snapshot lists everything, and one without a byte is not whole"
    return None


def contribution_problem(kind: ResourceType, contributes: Sequence[str], matches: str, on_gone: OnGone) -> str | None:
    """Return why a stream cannot contribute these members, or None."""
    if not contributes and not kind.creates:
        return f"is missing: the target has no request that creates {kind.name}"
    if not contributes:
        return None if matches == "key" else "matches needs contributes: a whole record is found by its key"
    if kind.write_once:
        return f"contributes is impossible: an {kind.name} is written once"
    if on_gone != "nothing":
        return "contributes needs on_gone: nothing; the stream that creates the record removes it"
    fields = [field.alias or name for name, field in kind.draft.model_fields.items()]
    if missing := next((name for name in contributes if name not in fields), None):
        return f"contributes: {unknown_key_message(missing, fields).replace('key', 'member', 1)}"
    return None


class AdoptBy(ConfigModel):
    """Records that the platform has under other names are taken over, if exactly one has the same value."""

    by: Annotated[str, Field(min_length=1)]
    """The member that is compared: one of the resource that holds text, such as ``sku``."""


def _check_adopt_form(value: Any) -> Any:
    if value in {"never", "external_id"} if isinstance(value, str) else isinstance(value, Mapping | AdoptBy):
        return value
    raise PydanticCustomError("adopt", "must be never, external_id, or a section such as {by: sku}")


Adopt = Annotated[
    Annotated[Literal["never", "external_id"], Tag("word")] | Annotated[AdoptBy, Tag("member")],
    Discriminator(lambda value: "word" if isinstance(value, str) else "member"),
    BeforeValidator(_check_adopt_form),
]


def adopt_option_problem(
    kind: ResourceType, adopt: Adopt, to: str, contributes: Sequence[str], mapped: Collection[str] | None = None
) -> str | None:
    """Return why records cannot be matched by ``adopt: {by: MEMBER}``, or None. *mapped* is None if unknown."""
    if not isinstance(adopt, AdoptBy):
        return None
    if to != PLATFORM:
        return "is for records that go to the platform; 'crossdock bindings import' binds those of other targets"
    if contributes:
        return "is for streams that write whole records; matches says how a contribution finds its record"
    if kind.write_once:
        return f"is impossible: an {kind.name} is written once, and never changed"
    return _reason_member_cannot_match(adopt.by, kind, mapped)


def _reason_member_cannot_match(member: str, kind: ResourceType, mapped: Collection[str] | None) -> str | None:
    fields = [field.alias or name for name, field in kind.draft.model_fields.items()]
    texts = text_members(kind.draft)
    if member not in fields:
        return f"{unknown_key_message(member, list(texts)).replace('key', 'member', 1)}"
    if member not in texts:
        return f"{member} is not a text; members that are: {', '.join(texts)}"
    return None if mapped is None or member in mapped else f"map does not make {member}"


class StreamDeclaration:
    """What a `Stream` declares as attributes of a class, and a config file as keys of a section."""

    resource: ResourceName | ActionName | None = None
    """What its records become on the platform: a resource, or an action that each of them stands for. Required unless
    ``to`` names a resource."""
    to: Destination = PLATFORM
    """Where its records go: ``platform``, or a resource of a connection that is a target, such as ``shipbob.orders``;
    ``resource`` is left out then."""
    mode: Mode
    """``snapshot`` lists everything, ``incremental`` what changed since a cursor, ``append`` some records."""
    enabled: bool = True
    """Whether the stream is read. One that is switched off keeps what it has delivered."""
    key: Columns
    """The columns that identify a record."""
    trim_keys: bool = True
    """Whether white space around the key, and characters without a width, are removed, here and in references to it."""
    namespace: Name | None = None
    """The scope in which these keys are unique; default: the connection's. Two streams of one resource need two."""
    group_by: Columns | None = None
    """Rows of one file with the same key make one record, such as an invoice and its lines. It repeats the columns of
    ``key``."""
    order_by: OrderColumns | None = None
    """Columns that tell which row of a key is the newest; else the last one read is. Each is a name, whose cells are
    compared as text, or ``{column, as}``."""
    columns: Mapping[str, Repair] = {}
    """Repairs by column, applied before key, filters and mapping."""
    skip: Mapping[str, Filter] = {}
    """Rows to leave out, by the name under which they are counted; the first filter that matches counts."""
    ours: Ours | None = None
    """The records of a partner that crossdock has sent there, told from those of others by their external ids."""
    deleted: Filter | None = None
    """Rows which say that their record was deleted; ``on_gone`` says what to do with it."""
    fingerprint: Literal["xxh3_64", "xxh3_128"] = "xxh3_64"
    """``xxh3_64`` misses one change in about 2**64, ``xxh3_128`` practically none."""
    empty: Empty = "refuse"
    """What an empty export is: refused; of a snapshot ``all_gone``, within the limits ``gone``; of other files, if they
    have no byte, ``no_change``."""
    suspicious: SuspiciousLimit | None = None
    """How many cells may look damaged: UTF-8 that was read in another encoding, or what spreadsheets make of text."""
    duplicates: Literal["refuse", "last"] = "refuse"
    """What to do with a snapshot that lists a key twice with different rows, where ``order_by`` does not decide:
    ``refuse`` it, or take the ``last`` row."""
    contributes: Members = ()
    """The members that it writes of records which another stream creates, or which are there already; it writes no
    others, and waits until the record exists. By default it creates whole records."""
    matches: Literal["key", "id", "origin"] = "key"
    """How a contribution finds its record: by its key in the ``namespace``, by the target's id, or as the record from
    which crossdock created the one that is read; others are ignored then."""
    reads: Read | None = None
    """The resource of a target that its records are, such as ``plain.orders``, by which crossdock recognizes what it
    wrote there itself; their key is the target's id then. Streams of kind ``platform`` have it."""
    conflicts: Literal["overwrite", "reject"] = "overwrite"
    """What to do with an update of a member that others have changed at the target since: ``overwrite`` it, or
    ``reject`` the record, with both values in the reason. Other members of the record are kept in any case."""
    adopt: Adopt = "never"
    """``external_id`` takes over a record that the platform has under our external id; else it is a conflict. ``{by:
    MEMBER}`` takes over the one that has the same value of a member under any other name."""
    personal: _Texts = ()
    """Members of the resource whose values are personal in this stream and must not be shown."""
    on_gone: OnGone = "nothing"
    """What to do with a record that is deleted, or missing in a snapshot; ``archive`` sets active to false."""
    gone: GoneLimits = GoneLimits()
    """Limits within which that is done without approval."""
    reread: Reread | None = None
    """A full list beside the changes, for an API whose cursor misses some: ``{every: 7d}``."""
    open_until: OpenUntil | None = None
    """Records that are fetched in each run until they are final, such as orders until they are paid."""
    changes: ChangeLimits = ChangeLimits()
    """The number of known records that a run may update without approval."""
    waits_at_most: Interval | None = None
    """How long a record may wait for one that it refers to, such as ``14d``; then it is a dead letter. Default: as long
    as it takes."""
    fewer_rows_percent: Percent = 20.0
    """Warn about a snapshot that has this many percent fewer rows than each of the last three, and at least 10."""
    mapping_failed: FailureLimits = FailureLimits()
    """The number of records at which the code of the mapping may fail before the stream stops."""
