"""`check` looks at the newest file of a pattern."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crossdock.reading.formats.delimited_layout import DelimitedFormat
from crossdock.reading.sources import file_source
from crossdock.reading.sources.file_source import warnings_about_newest
from crossdock.reading.transport.folder_store import FolderStore


def test_what_looks_damaged_in_the_newest_file_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older files, large ones, and those that a run will refuse are not judged."""
    for number, text in enumerate(("A;B\n#REF!;x\n", "A;B\nM\u00c3\u00bcller;4.00638E+12\n"), 1):
        path = tmp_path / f"ITEM_{number}.csv"
        path.write_text(text, encoding="utf-8")
        os.utime(path, (number, number))
    with FolderStore(tmp_path) as store:
        files = store.list("", "ITEM_*")
        found = list(warnings_about_newest(store, files, DelimitedFormat(delimiter=";")))
        assert [each.partition(" with ")[0] for each in found] == [
            "ITEM_2.csv: column 'A': 1 cell",
            "ITEM_2.csv: column 'B': 1 cell",
        ]
        assert list(warnings_about_newest(store, files, DelimitedFormat(header=False, names=("A",)))) != []
        assert list(warnings_about_newest(store, files, DelimitedFormat(encoding="utf-16"))) == []
        monkeypatch.setattr(file_source, "MOST_BYTES", 10)
        assert list(warnings_about_newest(store, files, DelimitedFormat(delimiter=";"))) == []
        assert list(warnings_about_newest(store, [], DelimitedFormat())) == []
