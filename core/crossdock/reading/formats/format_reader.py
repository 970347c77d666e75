"""The interface of a format: the model of its layout, and a reader of files with that layout."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Generic, Self, TypeVar

import polars as pl
from pydantic import PrivateAttr

from crossdock.reading.formats.leniency_counts import Leniencies
from crossdock.reading.wrappers.wrapper import Openable
from crossdock.values.config_base_types import ConfigModel
from crossdock.values.raw_rows_and_records import LINE


class FileLayout(ConfigModel):
    """How the bytes of a file become rows. A subclass has a `kind`."""

    _groups: Collection[tuple[str, ...]] = PrivateAttr(())
    _keeps_empty_groups: bool = PrivateAttr(default=False)

    @property
    def groups(self) -> Collection[tuple[str, ...]]:
        """The keys of records made of several rows, which have their `record_number_column` if the format knows it."""
        return self._groups

    @property
    def keeps_empty_groups(self) -> bool:
        """Whether such a record without a row is one row all the same: no stream reads single rows."""
        return self._keeps_empty_groups

    def with_groups(self, groups: Collection[tuple[str, ...]], *, keeps_empty: bool = False) -> Self:
        copied = self.model_copy()
        copied._groups, copied._keeps_empty_groups = groups, keeps_empty  # noqa: SLF001  of the same class
        return copied

    @property
    def states_rows(self) -> bool:
        """Whether a file states how many rows it has, so that it is noticed if some are missing."""
        return False

    @property
    def reads_names(self) -> bool:
        """Whether the name of a file is a part of what it says, so that files of the same bytes differ."""
        return False

    @property
    def has_paths(self) -> bool:
        """Whether rows are JSON objects, whose members are named by dotted paths."""
        return False


L = TypeVar("L", bound=FileLayout)


class FormatReader(ABC, Generic[L]):
    """Reads files of one kind. `crossdock.reading.formats.file_formats` lists the readers."""

    layout: type[L]

    @abstractmethod
    def rows(
        self, path: Openable, layout: L, *, name: str, batch_rows: int, leniencies: Leniencies | None
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows of a file in their order, in at least one frame and in bounded memory.

        Nothing may act on a row before the iterator has ended: a wrong count, for example, is found at the end.

        Args:
            name: The file's name in errors.
            batch_rows: The most rows in one frame.
            leniencies: Counts what is read only because *layout* declares it.

        Returns:
            Frames of text columns, with empty cells as ``""`` and never null, and ``_line: UInt64``, the place of each
            row, ascending from 1.

        Raises:
            RefusedError: While iterating, at the first deviation from *layout*, with file and line.
        """

    def rows_at_lines(self, path: Openable, layout: L, lines: Sequence[int], *, name: str) -> Iterator[pl.DataFrame]:
        """Yield the rows that begin at *lines* (ascending) of a file that `rows` has read to its end."""
        wanted = pl.Series(lines, dtype=pl.UInt64)
        if not len(wanted):
            return
        for frame in self.rows(path, layout, name=name, batch_rows=100_000, leniencies=None):
            if (found := frame.filter(pl.col(LINE).is_in(wanted.implode()))).height:
                yield found
            if frame.height and frame[LINE][-1] >= wanted[-1]:
                return

    def looks_cut(self, path: Openable, layout: L) -> bool:  # noqa: ARG002  for subclasses
        """Return whether a file may have been cut unnoticed: its format marks no end, and the last row has none."""
        return False

    def hex_cells_at_lines(
        self,
        path: Openable,  # noqa: ARG002  for subclasses
        layout: L,  # noqa: ARG002
        lines: Sequence[int],  # noqa: ARG002
        *,
        name: str,  # noqa: ARG002
    ) -> Mapping[int, Mapping[str, str]]:
        """Return the bytes of cells in hexadecimal, by line and column, for binary rows at *lines* that were read."""
        return {}

    def record_bytes_at_lines(
        self,
        path: Openable,  # noqa: ARG002  for subclasses
        layout: L,  # noqa: ARG002
        lines: Sequence[int],  # noqa: ARG002
        *,
        name: str,  # noqa: ARG002
    ) -> Mapping[int, bytes]:
        """Return the bytes of records at *lines* (ascending) as they are in the file; none of formats without lines."""
        return {}

    @abstractmethod
    def describe_cell_places(self, layout: L, names: Sequence[str], line: int) -> Mapping[str, str]:
        """Describe for people where the cells *names* of the record on *line* are."""
