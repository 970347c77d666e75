"""The contents of files: each kind is one module and one entry here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Discriminator, Tag

from crossdock.writing.files.content_interface import FileContent, FileOperation, FileRecord, WrittenFileFacts
from crossdock.writing.files.delimited_content import DelimitedContent
from crossdock.writing.files.edifact_content import EdifactContent
from crossdock.writing.files.fixed_width_content import FixedWidthContent
from crossdock.writing.files.json_contents import JsonContent, JsonLinesContent
from crossdock.writing.files.x12_content import X12Content
from crossdock.writing.files.xml_content import XmlContent

__all__ = ["CONTENTS", "FileContent", "FileContentConfig", "FileOperation", "FileRecord", "WrittenFileFacts"]

CONTENTS: Mapping[str, type[FileContent]] = {
    "delimited": DelimitedContent,
    "fixed_width": FixedWidthContent,
    "json_lines": JsonLinesContent,
    "json": JsonContent,
    "xml": XmlContent,
    "x12": X12Content,
    "edifact": EdifactContent,
}


def _kind_of_content(value: Any) -> Any:
    return value.get("kind") if isinstance(value, Mapping) else getattr(value, "kind", None)


if TYPE_CHECKING:
    FileContentConfig = FileContent
    """How operations become a file, by ``kind``."""
else:
    FileContentConfig = Annotated[
        Union[tuple(Annotated[content, Tag(kind)] for kind, content in CONTENTS.items())],  # noqa: UP007  it is made
        Discriminator(_kind_of_content),
    ]
