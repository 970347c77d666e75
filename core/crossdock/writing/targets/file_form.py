"""How the operations of a resource become the named bytes of a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from crossdock.errors import RecordError
from crossdock.reading.wrappers.wrapper import WrapperSettings
from crossdock.reading.wrappers.wrapping import ending_of, wrapped
from crossdock.values import exact_json
from crossdock.writing.files.content_interface import FileContent, FileOperation, FileRecord, WrittenFileFacts
from crossdock.writing.targets.target import STAGE, BatchItem, Request, TargetResource

_SOME_FACTS = WrittenFileFacts(1, datetime(2026, 1, 1, tzinfo=UTC), "file")
_PLACE = re.compile(r"\{(number|at)(?::([^{}]*))?\}")


@dataclass(frozen=True, slots=True)
class FileForm:
    """A resource whose records are sent in files.

    Attributes:
        name: The name of a file, with ``{number}``, ``{number:6}`` with at least six digits, and ``{at:%Y%m%d}``.
        wrapped: What it is wrapped in, the outermost first; the name gets the endings of these.
    """

    kind: TargetResource
    name: str
    content: FileContent
    wrapped: Sequence[WrapperSettings] = ()

    def request(self, operation: FileOperation, name: str, payload: Mapping[str, Any]) -> Request:
        """Return the request of one operation. Raises RecordError if the content cannot express it, or for its size."""
        self.content.check(FileRecord(operation, name, payload))
        most = self.kind.batch.most_bytes if self.kind.batch is not None else None
        if most is not None and (size := self.size_of(BatchItem(operation, name, payload))) > most:
            message = f"takes {size:,} bytes alone in a file, and bytes_per_file is {most:,}"
            raise RecordError("invalid_draft", message, pointer="")
        return Request("PUT", f"/{self.kind.name}", exact_json.dumps(payload), holds_payload=True)

    def file_name(self, number: int, at: datetime) -> str:
        """Return the name of file *number*, made *at* a time in the partner's zone, without endings of wrappers."""

        def filled(place: re.Match[str]) -> str:
            form = place[2] or ""
            return f"{number:0{form or 1}d}" if place[1] == "number" else at.strftime(form)

        return _PLACE.sub(filled, self.name)

    def wrapped_name(self, number: int, at: datetime) -> str:
        return self.file_name(number, at) + ending_of(self.wrapped)

    def batch(self, items: Sequence[BatchItem], number: int, at: datetime) -> Request:
        """Return the request with the bytes of file *number*. Raises RefusedError as `FileContent.content`."""
        name = self.file_name(number, at)
        records = [FileRecord(item.operation, item.name, item.payload) for item in items]
        content = self.content.content(records, WrittenFileFacts(number, at, name))
        return Request(STAGE, f"/{self.wrapped_name(number, at)}", self._wrapped(content, name))

    def size_of(self, item: BatchItem) -> int:
        """Return the bytes of a file with *item* alone, before it is wrapped. It takes no more in one with others."""
        return len(self.content.content([FileRecord(item.operation, item.name, item.payload)], _SOME_FACTS))

    def _wrapped(self, content: bytes, name: str) -> bytes:
        if not self.wrapped:
            return content
        with TemporaryDirectory(prefix="wrapped-") as folder:
            return wrapped(content, self.wrapped, name=name, folder=Path(folder)).read_bytes()
