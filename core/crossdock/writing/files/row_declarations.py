"""Rows of a declaration: one each time, one for every element of a list, and those that have a condition."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

from pydantic import Field, model_validator

from crossdock.errors import RecordError, RefusedError
from crossdock.mapping.stream_declaration import Filter
from crossdock.values.config_base_types import (
    NOT_NULL,
    ConfigModel,
    Name,
    differs_from_default,
    make_pydantic_error_at_key,
)
from crossdock.values.json_paths import json_value_as_column_text
from crossdock.writing.files.cell_declarations import (
    OWN_NAMES,
    TOTALS,
    Cell,
    NamedValues,
    Path,
    file_facts_by_name,
    invalid_value_error,
    values_of_record,
)
from crossdock.writing.files.content_interface import (
    OPERATIONS,
    FileContent,
    FileOperation,
    FileRecord,
    WrittenFileFacts,
)

_SOME_FACTS = WrittenFileFacts(1, datetime(2026, 1, 1, tzinfo=UTC), "file")


class RowPart(ConfigModel):
    """A row, or a group of `rows`."""

    OWN: ClassVar[tuple[str, ...]]
    """The keys of which a row has one, in place of `rows`."""

    each: Annotated[Path | None, NOT_NULL] = None
    """The list of the payload, or of an element, for each of whose elements this is written. It has at least one."""
    named: Name = "line"
    """The name by which cells refer to the element: ``{line.sku}``, and ``{line_number}`` for its number from 1."""
    when: Filter | None = None
    """The condition on which this is written, for each element; its fields are members, as in cells."""

    rows: Annotated[tuple[Self, ...], Field(min_length=1)] | None = None
    """In place of a row: several that are written one after the other, such as those of each element."""

    @property
    def inner_rows(self) -> Sequence[Self]:
        """The rows of a group; empty for a row."""
        return self.rows or ()

    @abstractmethod
    def cells_and_parts(self) -> Iterator[Cell | RowPart]:
        """Yield the cells of a row, and the parts inside of it."""

    @model_validator(mode="after")
    def _raise_if_not_one_kind(self) -> Self:
        if sum(getattr(self, key) is not None for key in (*self.OWN, "rows")) != 1:
            raise ValueError(f"give one of {', '.join((*self.OWN, 'rows'))}")
        if differs_from_default(self, "named") and self.each is None:
            raise make_pydantic_error_at_key(("named",), "needs each")
        if self.named in OWN_NAMES or f"{self.named}_number" in OWN_NAMES:
            raise make_pydantic_error_at_key(("named",), "is a name that crossdock gives to something else")
        return self

    def cells(self) -> Iterator[Cell]:
        for value in (*self.cells_and_parts(), *self.inner_rows):
            if isinstance(value, RowPart):
                yield from value.cells()
            else:
                yield value

    def names_lacking_in_scope(self, scope: NamedValues, *, required: bool) -> Iterator[str]:
        """Yield the names that *scope*, with every member and one element in each list, has not."""
        if self.each is not None and not isinstance(scope.value_and_place(self.each)[0], list):
            yield self.each
            return
        for each in scope.scopes_of_elements(self.each, self.named):
            if required and self._is_never_written_in(each):
                continue  # a row for members that a record need not have
            if not required:
                yield from (name for name in self._condition_names() if not each.has_value(name))
            for value in (*self.cells_and_parts(), *self.inner_rows):
                yield from value.names_lacking_in_scope(each, required=required)

    def _condition_names(self) -> Sequence[str]:
        return list(self.when.columns()) if self.when else []

    def _is_never_written_in(self, scope: NamedValues) -> bool:
        """Return whether *scope* has no member of the condition, which a record without them does not meet."""
        if self.when is None or any(scope.has_value(name) for name in self._condition_names()):
            return False
        return not self.when.predicate()(_MemberTexts(scope))

    def expanded_rows(self, scope: NamedValues) -> Iterator[tuple[Self, NamedValues]]:
        """Yield each row that is written, with its scope."""
        is_wanted = None if self.when is None else self.when.predicate()
        for each in scope.scopes_of_elements(self.each, self.named):
            if is_wanted is not None and not is_wanted(_MemberTexts(each)):
                continue
            if not self.inner_rows:
                yield self, each
            for row in self.inner_rows:
                yield from row.expanded_rows(each)


class _MemberTexts(Mapping[str, str | None]):
    """Members as the texts that conditions compare."""

    def __init__(self, scope: NamedValues) -> None:
        self._scope = scope

    def __getitem__(self, path: str) -> str | None:
        value = self._scope.value_and_place(path)[0]
        return None if value in ([], {}) else json_value_as_column_text(value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._scope.own)

    def __len__(self) -> int:
        return len(self._scope.own)


_PARTS = frozenset({"columns", "object", "value", "rows"})


def tag_as_part_or_cell(value: Any) -> str:
    """Return which of the two a value in a row is, for unions of them with the tags ``part`` and ``cell``."""
    is_part = isinstance(value, RowPart) or (isinstance(value, Mapping) and bool(_PARTS & value.keys()))
    return "part" if is_part else "cell"


R = TypeVar("R", bound=RowPart)


class RowsContent(FileContent, Generic[R]):
    """A file with rows for each record."""

    rows: Annotated[tuple[R, ...], Field(min_length=1)]
    """The rows of each record, in their order."""
    update: Annotated[tuple[R, ...], Field(min_length=1)] | None = None
    """The rows of an update in place of `rows`, which otherwise express one only if a cell shows ``operation``."""
    delete: Annotated[tuple[R, ...], Field(min_length=1)] | None = None
    """The rows of a delete, likewise."""

    def declared_rows_for_operation(self, operation: FileOperation) -> Sequence[R]:
        return self._rows_declared_only_for_operation(operation) or self.rows

    def _rows_declared_only_for_operation(self, operation: FileOperation) -> Sequence[R] | None:
        return {"create": self.rows, "update": self.update, "delete": self.delete}[operation]

    @cached_property
    def expressible_operations(self) -> frozenset[FileOperation]:
        return frozenset(each for each in OPERATIONS if self._is_operation_expressible(each))

    def _is_operation_expressible(self, operation: FileOperation) -> bool:
        cells = [cell for row in self.declared_rows_for_operation(operation) for cell in row.cells()]
        shown = [told for cell in cells if (told := cell.distinguished_operations())]
        return all(operation in each for each in shown) and bool(
            shown or self._rows_declared_only_for_operation(operation)
        )

    def cells_outside_records(self) -> Iterator[Cell]:
        """Yield the cells outside of the rows of records."""
        return iter(())

    def names_lacking_in_record(self, record: FileRecord) -> Sequence[str]:
        scope, required = values_of_record(record, 1, _SOME_FACTS).with_row_numbers(1, 1), self.is_from_ready_layout
        rows = [row for operation in OPERATIONS for row in self.declared_rows_for_operation(operation)]
        found = [name for row in rows for name in row.names_lacking_in_scope(scope, required=required)]
        whole = values_of_all_records([record], _SOME_FACTS, rows=1, lines=1)
        found += [
            name
            for cell in self.cells_outside_records()
            for name in cell.names_lacking_in_scope(whole, required=required)
        ]
        return list(dict.fromkeys(found))

    @property
    def is_from_ready_layout(self) -> bool:
        """Whether it is a ready declaration."""
        return False

    def check_record(self, record: FileRecord) -> None:
        if record.operation not in self.expressible_operations:
            code = "invalid_draft" if record.operation == "create" else "changed_after_delivery"
            message = f"the file cannot express a {record.operation}: see rows, update and delete of its content"
            raise RecordError(code, message)
        self.encode_file([record], _SOME_FACTS)

    def file_bytes(self, records: Sequence[FileRecord], facts: WrittenFileFacts) -> bytes:
        try:
            return self.encode_file(records, facts)
        except RecordError as error:
            place = f"{facts.name}: {error.where}" if error.where else facts.name
            hint = "Declare a larger column, or send fewer records in one file."
            raise RefusedError(error.message, where=place, hint=hint, code="file_content_invalid") from None

    @abstractmethod
    def encode_file(self, records: Sequence[FileRecord], facts: WrittenFileFacts) -> bytes:
        """Return the bytes of the file. Raises RecordError at the first value that does not fit."""

    def expanded_rows_by_record(
        self, records: Sequence[FileRecord], facts: WrittenFileFacts
    ) -> Iterator[list[tuple[R, NamedValues]]]:
        """Yield the rows of each record, at least one, with their scopes."""
        before = 0
        for number, record in enumerate(records, 1):
            scope = values_of_record(record, number, facts)
            rows = [
                found
                for row in self.declared_rows_for_operation(record.operation)
                for found in row.expanded_rows(scope)
            ]
            if not rows:
                raise invalid_value_error("no row is written of this record, so the file would not name it", "")
            yield [(row, each.with_row_numbers(before + place, place)) for place, (row, each) in enumerate(rows, 1)]
            before += len(rows)


class FramedContent(RowsContent[R], Generic[R]):
    """A file with rows before and after those of its records."""

    header: tuple[R, ...] = ()
    """The rows before those of the records. Their cells show facts of the file, counts and sums."""
    trailer: tuple[R, ...] = ()
    """The rows after those of the records, likewise."""

    def cells_outside_records(self) -> Iterator[Cell]:
        return (cell for row in (*self.header, *self.trailer) for cell in row.cells())

    @model_validator(mode="after")
    def _raise_if_header_or_trailer_repeats(self) -> Self:
        for key, rows in (("header", self.header), ("trailer", self.trailer)):
            raise_if_cells_show_record_values(key, (cell for row in rows for cell in row.cells()))
            if any(row.each is not None or row.when is not None or row.inner_rows for row in rows):
                raise make_pydantic_error_at_key((key,), "has single rows: each and when are for the rows of records")
        return self

    def header_record_and_trailer_rows(
        self, records: Sequence[FileRecord], facts: WrittenFileFacts
    ) -> tuple[list[tuple[R, NamedValues]], ...]:
        """Return the rows of the header, of the records and of the trailer."""
        rows = [found for each in self.expanded_rows_by_record(records, facts) for found in each]
        lines = len(rows) + len(self.header) + len(self.trailer)
        around = values_of_all_records(records, facts, rows=len(rows), lines=lines)
        return [(row, around) for row in self.header], rows, [(row, around) for row in self.trailer]


def raise_if_cells_show_record_values(key: str, cells: Iterator[Cell]) -> None:
    """Check that *cells* outside of records name no record."""
    for name in (name for cell in cells for name in cell.shown_member_names()):
        if name not in TOTALS:
            known = ", ".join(sorted(TOTALS))
            raise make_pydantic_error_at_key((key,), f"{name} is of one record: here are {known}, sums and counts")


def values_of_all_records(
    records: Sequence[FileRecord], facts: WrittenFileFacts, *, rows: int, lines: int
) -> NamedValues:
    own = {**file_facts_by_name(facts), "records": len(records), "rows": rows, "lines": lines}
    return NamedValues([each.payload for each in records], own)
