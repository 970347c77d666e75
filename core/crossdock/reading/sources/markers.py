"""Done markers: files that a sender writes once another file is complete."""

from __future__ import annotations

import re
from dataclasses import dataclass
from glob import escape
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator

from crossdock.errors import CrossdockError
from crossdock.reading.transport.file_store import FileStore, RemoteFile, matches, split_pattern

_TEMPLATE = re.compile(r"(?:([^{}]*)/)?([^{}/]*)\{(name|stem)\}([^{}/]*)")


def _template(value: str) -> str:
    found = _TEMPLATE.fullmatch(value)
    if not found or (found[1] is None and not (found[2] or found[4])):
        raise ValueError('must be the marker\'s name with {name} or {stem} once, and more than that: "{name}.done"')
    try:
        split_pattern(f"{found[1] or ''}/x")
    except CrossdockError as error:
        raise ValueError(error.message) from None
    return value


MarkerTemplate = Annotated[str, AfterValidator(_template)]
"""Such as ``{name}.done``; ``{stem}`` is the name without its last extension."""


@dataclass(frozen=True, slots=True)
class Markers:
    """The markers of the files in one folder."""

    template: str
    beside: str

    @property
    def folder(self) -> str:
        return self.template.rpartition("/")[0] if "/" in self.template else self.beside

    def name(self, file: str) -> str:
        name = self.template.rpartition("/")[2]
        return name.replace("{name}", file).replace("{stem}", PurePosixPath(file).stem)

    def is_marker(self, name: str) -> bool:
        return matches(name, self._pattern)

    def marks_itself(self, pattern: str) -> bool:
        """Return whether a file that matches *pattern* is its own marker, or every file is a marker."""
        file = re.sub(r"[*?]|\[[^]]*\]", "x", pattern)
        return self.folder == self.beside and (self.name(file) == file or self._pattern == "?*")

    def listed(self, store: FileStore) -> dict[str, RemoteFile]:
        return {file.name: file for file in store.list(self.folder, self._pattern)}

    @property
    def _pattern(self) -> str:
        before, _, after = re.split(r"\{(name|stem)\}", self.template.rpartition("/")[2])
        return f"{escape(before)}?*{escape(after)}"
