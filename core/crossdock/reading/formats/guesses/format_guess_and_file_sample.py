"""The guessed settings of a format, each with what it rests on, and the sample that they are guessed from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

COUNT_NAME_PATTERN = re.compile(r"(?i)count|total|number|size|records|rows")
"""Names of members and elements that may hold the number of records."""


class GuessedSetting(Struct, frozen=True):
    """One key of a format.

    Attributes:
        basis: What it rests on, such as "1,204 of 1,204 lines have 5 fields".
        members: What each member of a value that is a mapping rests on, by its name.
        notes: What else it may be, as sentences or lines of YAML.
    """

    key: str
    value: Any
    basis: str = ""
    members: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()


class FormatGuess(Struct, frozen=True):
    """The format of a file, and what was seen. `remarks` are sentences for the person who looks."""

    settings: Sequence[GuessedSetting]
    remarks: Sequence[str] = ()

    @property
    def format(self) -> dict[str, Any]:
        return {each.key: each.value for each in self.settings}


class FileSample(Struct, frozen=True):
    """The first bytes of a file, unpacked. `is_whole` says whether these are all."""

    data: bytes
    is_whole: bool


class TextSample(Struct, frozen=True):
    """The whole lines of a sample as text, and the setting of its encoding, which may be the default."""

    text: str
    encoding: GuessedSetting
    is_whole: bool

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n") if not self.text.endswith("\n") else self.text[:-1].split("\n")


def count_of_total_text(count: int, of: int, what: str) -> str:
    """Return "3 of 4 lines"."""
    return f"{count:,} of {of:,} {what}{'s' * (of != 1)}"
