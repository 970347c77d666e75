"""What the streams of a run found at their sources as sentences, the same on the terminal and in a report."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from crossdock.cli.shared_options import counted
from crossdock.times_in_text import instant_text

_NAMED = 3  # most files in a sentence


def sentence(stream: Mapping[str, Any]) -> str | None:
    """What one of the streams in `Report.as_json` found; None if it read no files."""
    found, files = stream.get("input"), stream.get("files", [])
    if found == "none":
        newest = stream["newest_file"]
        return f"no new file (newest: {newest['name']} of {_time(newest['modified_at'])})" if newest else "no file yet"
    if found == "unchanged":
        return f"file unchanged: {', '.join(file['name'] for file in files)} has the content that was read before"
    if found != "new":
        return None
    number = len(files) + stream["more_files"]
    if number > _NAMED:
        return f"read {counted(number, 'file')}: {files[0]['name']} to {files[-1]['name']}"
    return f"read {', '.join(map(_with_rows, files))}"


def _with_rows(file: Mapping[str, Any]) -> str:
    return file["name"] if file["rows"] is None else f"{file['name']} ({counted(file['rows'], 'row')})"


def _time(text: str) -> str:
    return instant_text(datetime.fromisoformat(text))
