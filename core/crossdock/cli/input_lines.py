"""The input of a run's streams as sentences, in the same form on the terminal and in a report."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from crossdock.cli.shared_options import counted
from crossdock.values.times_as_text import instant_text

_NAMED = 3  # most files in a sentence


def sentence(stream: Mapping[str, Any]) -> str | None:
    """Describe what one of the streams in `Report.as_json` found; None if it read no files."""
    found, files = stream.get("input"), stream.get("files", [])
    if found == "none":
        newest = stream["newest_file"]
        return f"no new file (newest: {newest['name']} of {_time(newest['modified_at'])})" if newest else "no file yet"
    number = len(files) + stream.get("more_files", 0)
    many = f"{counted(number, 'file')}: {files[0]['name']} to {files[-1]['name']}" if number > _NAMED else None
    if found == "unchanged":
        if number == 1:
            return f"file unchanged: {files[0]['name']} has the content that was read before"
        names = many or ", ".join(file["name"] for file in files)
        return f"files unchanged: {names} have the content that was read before"
    if found != "new":
        return None
    is_read = any(file["rows"] is not None for file in files)
    return f"{'read' if is_read else 'not imported:'} {many or ', '.join(map(_with_rows, files))}"


def _with_rows(file: Mapping[str, Any]) -> str:
    return file["name"] if file["rows"] is None else f"{file['name']} ({counted(file['rows'], 'row')})"


def _time(text: str) -> str:
    return instant_text(datetime.fromisoformat(text))
