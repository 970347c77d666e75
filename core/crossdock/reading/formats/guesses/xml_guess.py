"""Guesses the layout of XML: the path of its records, of the rows in them, and of their columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.parsers import expat

from crossdock.reading.formats.guesses.format_guess_and_file_sample import (
    COUNT_NAME_PATTERN,
    FileSample,
    FormatGuess,
    GuessedSetting,
    count_of_total_text,
)
from crossdock.reading.formats.xml_layout import NAMESPACE_SEPARATOR

_BEGIN = re.compile(rb"\s*(?:\xef\xbb\xbf)?\s*<(?:\?xml|!--|!DOCTYPE|[A-Za-z_])")
_HTML = re.compile(rb"(?i)<(?:!doctype\s+)?html")
_MOST_COLUMNS = 200

Path = tuple[str, ...]


class _XmlDocumentScan:
    """What the first part of a document holds: elements, texts and attributes by their paths."""

    def __init__(self) -> None:
        self.counts: dict[Path, int] = {}
        self.most: dict[Path, int] = {}  # of elements of one path in one element around them
        self.leaves: dict[Path, int] = {}
        self.values: dict[Path, str] = {}
        self._stack: list[tuple[Path, dict[Path, int]]] = [((), {})]
        self._text, self._has_children, self._has_attributes = "", False, False
        self.has_doctype = False

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        path = (*self._stack[-1][0], name)
        around = self._stack[-1][1]
        around[path] = around.get(path, 0) + 1
        self.most[path] = max(self.most.get(path, 0), around[path])
        self.counts[path] = self.counts.get(path, 0) + 1
        for attribute, value in attributes.items():
            self._count_leaf_value((*path, f"@{attribute}"), value)
        self._stack.append((path, {}))
        self._text, self._has_children, self._has_attributes = "", False, bool(attributes)

    def end_element(self, _name: str) -> None:
        path, _ = self._stack.pop()
        if not self._has_children:
            text = self._text.strip()
            if text or not self._has_attributes:
                self._count_leaf_value(path, text)
        self._has_children = True

    def add_text(self, data: str) -> None:
        self._text += data

    def set_has_doctype(self, *_: object) -> None:
        self.has_doctype = True

    def _count_leaf_value(self, path: Path, value: str) -> None:
        self.leaves[path] = self.leaves.get(path, 0) + 1
        self.values[path] = value


def is_xml(data: bytes) -> bool:
    return bool(_BEGIN.match(data)) and not _HTML.search(data[:1_000])


def guess_xml(sample: FileSample) -> FormatGuess | None:
    """Return the guess for XML; None for other text, and for XML without elements that repeat."""
    if not is_xml(sample.data):
        return None
    seen = _XmlDocumentScan()
    parser = expat.ParserCreate(namespace_separator=NAMESPACE_SEPARATOR)
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = seen.start_element, seen.end_element
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = seen.add_text, seen.set_has_doctype
    remarks: list[str] = []
    try:
        parser.Parse(sample.data, False)
    except expat.ExpatError as error:
        remarks.append(f"Line {error.lineno} is not well-formed: {expat.errors.messages[error.code]}.")
    if seen.has_doctype:
        remarks.append("It has a document type (<!DOCTYPE), which is refused: ask the sender for a file without it.")
    record = _record_path(seen)
    return None if record is None else _make_xml_guess(seen, record, sample, remarks)


def _record_path(seen: _XmlDocumentScan) -> Path | None:
    inside = {path[:-1] for path in [*seen.counts, *seen.leaves] if len(path) > 1}
    repeated = [path for path, most in seen.most.items() if most > 1 and path in inside and len(path) > 1]
    if not repeated:
        repeated = [path for path in seen.counts if len(path) == 2 and path in inside]
    outer = [path for path in repeated if not any(path[: len(other)] == other for other in repeated if other != path)]
    return max(outer, key=lambda path: seen.counts[path], default=None)


def _make_xml_guess(seen: _XmlDocumentScan, record: Path, sample: FileSample, remarks: list[str]) -> FormatGuess:
    spaces = _assign_namespace_prefixes([name for path in seen.counts for name in path])
    many = [path for path, most in seen.most.items() if most > 1 and path[: len(record)] == record and path != record]
    rows = min(many, key=len, default=None)
    records = seen.counts[record]
    columns, bases = dict[str, str](), dict[str, str]()
    for path, count in seen.leaves.items():
        passed = [each for each in many if each != rows and path[: len(each)] == each]
        if path[: len(record)] != record or passed or len(columns) >= _MOST_COLUMNS:
            continue
        text = "/".join(_path_step_with_prefix(name, spaces) for name in path[len(record) :]) or "."
        name = _unused_column_name(path, columns)
        columns[name], bases[name] = (
            text,
            f"{count:,} times in {count_of_total_text(records, records, 'record').partition(' of ')[2]}",
        )
    basis = f"{records:,} of them{'' if sample.is_whole else ' in the first part of the file'}"
    others = sorted("/" + "/".join(_path_step_with_prefix(n, spaces) for n in path) for path in many if path != rows)
    settings = [
        GuessedSetting("kind", "xml", "it begins as XML"),
        GuessedSetting("record", _absolute_path(record, spaces), basis),
    ]
    if rows is not None:
        text = "/".join(_path_step_with_prefix(name, spaces) for name in rows[len(record) :])
        notes = [f"{each} is repeated, too, and is not read" for each in others]
        settings.append(GuessedSetting("rows", text, f"up to {seen.most[rows]:,} in one record", notes=notes))
    if spaces:
        settings.append(
            GuessedSetting("namespaces", {prefix: uri for uri, prefix in spaces.items()}, "as the file declares them")
        )
    settings.append(GuessedSetting("columns", columns, "elements and attributes of the records", bases))
    counts = [path for path, value in seen.values.items() if value == str(records) and path[: len(record)] != record]
    counts = [path for path in counts if COUNT_NAME_PATTERN.search(path[-1])]
    if sample.is_whole and counts:
        text = _absolute_path(counts[0], spaces)
        settings.append(GuessedSetting("count", text, f"it is {records:,}, the number of records"))
    return FormatGuess(settings, remarks)


def _assign_namespace_prefixes(names: Sequence[str]) -> dict[str, str]:
    found = list(
        dict.fromkeys(name.partition(NAMESPACE_SEPARATOR)[0] if NAMESPACE_SEPARATOR in name else "" for name in names)
    )
    uris = [uri for uri in found if uri]
    if len(found) == 1 and uris:
        return {uris[0]: ""}
    return {uri: f"n{number}" for number, uri in enumerate(uris, 1)}


def _path_step_with_prefix(name: str, spaces: dict[str, str]) -> str:
    mark = "@" if name.startswith("@") else ""
    uri, between, local = name.removeprefix("@").rpartition(NAMESPACE_SEPARATOR)
    prefix = spaces.get(uri, "") if between else ""
    return f"{mark}{prefix}:{local}" if prefix else f"{mark}{local}"


def _absolute_path(path: Path, spaces: dict[str, str]) -> str:
    return "/" + "/".join(_path_step_with_prefix(name, spaces) for name in path)


def _unused_column_name(path: Path, taken: dict[str, str]) -> str:
    local = path[-1].removeprefix("@").rpartition(NAMESPACE_SEPARATOR)[2]
    if local in taken:
        local = f"{path[-2].rpartition(NAMESPACE_SEPARATOR)[2]}_{local}"
    number, found = 2, local
    while found in taken:
        found, number = f"{local}_{number}", number + 1
    return found
