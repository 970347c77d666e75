"""Guesses the layout of JSON: an object in each line, or a document and the path of its list of records."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from crossdock.reading.formats.guesses.format_guess_and_file_sample import (
    COUNT_NAME_PATTERN,
    FormatGuess,
    GuessedSetting,
    TextSample,
    count_of_total_text,
)

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_OPENING, _CLOSING = ("{", "["), ("}", "]")
Path = tuple[str, ...]
"""Names of members, from that of the document."""


def guess_json(sample: TextSample) -> FormatGuess | None:
    """Return the guess for JSON; None for other text."""
    begin = sample.text.lstrip()[:1]
    if begin not in {"{", "["}:
        return None
    lines = [line for line in sample.lines if line.strip()]
    objects = sum(_is_object(line) for line in lines)
    is_lines = begin == "{" and objects == len(lines)
    lists, members = ({}, {}) if is_lines and len(lines) > 1 else _list_sizes_and_number_values(sample.text)
    if is_lines and not lists:
        return FormatGuess(
            (
                GuessedSetting(
                    "kind", "json_lines", f"{count_of_total_text(objects, len(lines), 'line')} are one JSON object each"
                ),
            )
        )
    if not lists:
        return None
    path = max(lists, key=lambda each: (lists[each], -len(each)))
    others = sorted(_path_text(each) for each in lists if each != path)
    basis = f"the list has {lists[path]:,} objects{'' if sample.is_whole else ' in the first part of the file'}"
    notes = [f"unsure: another list of objects is {each}" for each in others]
    settings = [GuessedSetting("kind", "json", "the file is one JSON document")]
    if path:
        settings.append(GuessedSetting("records", _path_text(path), basis, notes=notes))
    counts = [each for each, value in members.items() if value == lists[path] and COUNT_NAME_PATTERN.search(each[-1])]
    if sample.is_whole and counts:
        settings.append(GuessedSetting("count", _path_text(counts[0]), f"it is {lists[path]:,}, the number of records"))
    return FormatGuess(settings, () if path else (f"The document is a list: {basis}.",))


def is_json_document(sample: TextSample) -> bool:
    """Return whether it is one JSON document, of whatever it consists."""
    try:
        json.loads(sample.text)
    except ValueError:
        return False
    return sample.text.lstrip()[:1] in {"{", "["}


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _path_text(path: Path) -> str:
    if any(not name or "." in name or "/" in name for name in path):
        return "".join(f"/{name.replace('~', '~0').replace('/', '~1')}" for name in path)
    return ".".join(path)


def _list_sizes_and_number_values(text: str) -> tuple[Mapping[Path, int], Mapping[Path, int]]:
    """Return how many objects each list outside of lists has, and whole numbers outside of lists, by their paths.

    The text may end anywhere.
    """
    seen = _JsonDocumentScan()
    for found in _TOKENS.finditer(text):
        seen.add_token(found[0])
    return seen.lists, seen.numbers


class _JsonDocumentScan:
    def __init__(self) -> None:
        self.lists: dict[Path, int] = {}
        self.numbers: dict[Path, int] = {}
        self._open: list[str] = []  # brackets
        self._path: list[str] = []  # of what is open, outside of lists
        self._name, self._is_name = "", False

    def add_token(self, part: str) -> None:
        if part in _OPENING:
            self._begin_container(part)
        elif part in _CLOSING:
            self._end_container()
        elif part in ",:":
            self._is_name = part == "," and self._open[-1:] == ["{"]
        elif self._is_name:
            self._name = _unquoted_token_text(part)
        elif self._open and "[" not in self._open and part.isdigit():
            self.numbers[*self._path, self._name] = int(part)

    def _begin_container(self, part: str) -> None:
        if part == "{" and self._open[-1:] == ["["] and self._open.count("[") == 1:
            path = tuple(self._path)
            self.lists[path] = self.lists.get(path, 0) + 1
        if self._open and "[" not in self._open:
            self._path.append(self._name)
        self._open.append(part)
        self._is_name = part == "{"

    def _end_container(self) -> None:
        if self._open:
            self._open.pop()
        if self._open and "[" not in self._open and self._path:
            self._path.pop()


def _unquoted_token_text(token: str) -> str:
    try:
        found: Any = json.loads(token)
    except ValueError:
        return ""
    return str(found)
