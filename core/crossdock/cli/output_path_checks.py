"""Paths of files that a command writes at its end: checked at its beginning."""

from __future__ import annotations

from pathlib import Path

from crossdock.errors import ConfigError
from crossdock.values.safe_local_files import check_replaceable


def absolute_path(path: Path | None) -> Path | None:
    """Return the absolute path, for a file that is written later: an author's code may change the working folder."""
    return None if path is None else path.absolute()


def check_writable(*paths: Path | None) -> None:
    for path in paths:
        if path is None:
            continue
        try:
            check_replaceable(path)
        except OSError as error:
            hint = "nothing was done; name a file in a folder that exists and can be written"
            raise ConfigError(
                f"cannot be written: {error.strerror}", where=str(path), hint=hint, code="file_unwritable"
            ) from error
