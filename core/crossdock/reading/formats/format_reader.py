"""What a format of files is: the model of its layout, and a reader for files of that layout."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, TypeVar

import polars as pl

from crossdock.reading.formats.compression import Openable
from crossdock.reading.formats.leniencies import Leniencies
from crossdock.records import LINE
from crossdock.values.config_file import ConfigModel


class FileLayout(ConfigModel):
    """How the bytes of a file are rows; a subclass has a `kind`."""

    @property
    def states_rows(self) -> bool:
        """Whether the file states how many rows it has."""
        return False

    @property
    def has_paths(self) -> bool:
        """Whether rows are JSON objects, whose members are named by dotted paths."""
        return False


L = TypeVar("L", bound=FileLayout)


class FormatReader(ABC, Generic[L]):
    """Reads files of one kind; `crossdock.reading.formats.file_formats` lists them.

    Attributes:
        layout: The model of their layouts.
    """

    layout: type[L]

    @abstractmethod
    def rows(
        self, path: Openable, layout: L, *, name: str, batch_rows: int, leniencies: Leniencies | None
    ) -> Iterator[pl.DataFrame]:
        """The rows of a file in its order, at least one frame.

        Args:
            name: The file's name in errors.
            batch_rows: The most rows in one frame.
            leniencies: Counts what is read only because *layout* declares it.

        Returns:
            Frames of text columns, and ``_line: UInt64``, the place of each row, ascending from 1.

        Raises:
            RefusedError: While iterating, at the first deviation from *layout*.
        """

    def rows_at(self, path: Openable, layout: L, lines: Sequence[int], *, name: str) -> Iterator[pl.DataFrame]:
        """The rows that begin at *lines* (ascending) of a file that `rows` has read to its end."""
        wanted = pl.Series(lines, dtype=pl.UInt64)
        if not len(wanted):
            return
        for frame in self.rows(path, layout, name=name, batch_rows=100_000, leniencies=None):
            if (found := frame.filter(pl.col(LINE).is_in(wanted.implode()))).height:
                yield found
            if frame.height and frame[LINE][-1] >= wanted[-1]:
                return

    def looks_cut(self, path: Openable, layout: L) -> bool:  # noqa: ARG002  for subclasses
        """Whether a file may have been cut without a trace: it marks no end, and its last row lacks its own."""
        return False

    @abstractmethod
    def places(self, layout: L, names: Sequence[str], line: int) -> Mapping[str, str]:
        """Where the cells *names* of a record that begins in *line* are, for people."""
