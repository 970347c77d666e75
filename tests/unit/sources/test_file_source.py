"""What a source of files refuses when an author makes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crossdock.errors import ConfigError
from crossdock.reading.sources.run_context import SourceContext
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.sources import DelimitedFormat, FileSource, FolderStore, Manifest, StreamId
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import SilentProgress

DATED = "2026/*/INV*.txt"


@pytest.mark.parametrize(
    ("files", "options", "told"),
    [
        (DATED, {"archive_to": "done"}, "archive cannot be used with files in several folders"),
        (DATED, {"ready": "{name}.ok"}, "ready cannot be used with files in several folders"),
        (DATED, {"manifest": Manifest(files="M.csv", name="N", rows="R")}, "manifest cannot be used with files in sev"),
        ("out/INV*.txt", {"archive_to": "out/"}, "archive must be another folder than that of files"),
        ("out/INV*.txt", {"ready": "{stem}.txt"}, "ready must not be the name of the file itself"),
    ],
)
def test_what_does_not_fit_the_files_is_refused(tmp_path: Path, files: str, options: dict[str, Any], told: str) -> None:
    """As in the settings of a warehouse, and before a file is read."""
    run = SourceContext(ManualClock(), SilentProgress(), EmptyIntakeLog(), tmp_path, tmp_path, tmp_path)
    layout, streams = DelimitedFormat(), [StreamId("wms.invoices", "1")]
    with pytest.raises(ConfigError, match=told):
        FileSource(
            files, layout, lambda: FolderStore(tmp_path), run, settle_s=0, snapshot=False, stream_ids=streams, **options
        )
