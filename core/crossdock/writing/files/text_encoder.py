"""Characters of a text file: what its encoding has, what no cell may hold, and the bytes of the whole."""

from __future__ import annotations

import codecs
import re

from msgspec import Struct

from crossdock.writing.files.cell_declarations import invalid_value_error

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff\ud800-\udfff]|\r(?!\n)")


class TextEncoder(Struct, frozen=True):
    """An encoding by one of Python's names, and whether a byte order mark precedes the text.

    UTF-16 and UTF-32 without a byte order in their names are written in little-endian order with the mark.
    """

    encoding: str
    bom: bool = False

    def encode(self, text: str) -> bytes:
        name = codecs.lookup(self.encoding).name
        mark = self.bom or name in {"utf-16", "utf-32", "utf-8-sig"}
        return (("\ufeff" + text) if mark else text).encode(self._name_without_mark)

    def encode_with_references(self, text: str) -> bytes:
        """Encode XML, in which references stand for characters that the encoding lacks."""
        lacking = {character for character in set(text) if self.first_lacking_character(character)}
        return self.encode(text.translate({ord(character): f"&#{ord(character)};" for character in lacking}))

    @property
    def _name_without_mark(self) -> str:
        name = codecs.lookup(self.encoding).name
        return f"{name}-le" if name in {"utf-16", "utf-32"} else name.removesuffix("-sig")

    def byte_width(self, text: str) -> int:
        """Return how many bytes *text* takes within a file."""
        return len(text.encode(self._name_without_mark))

    def text_or_raise_if_unfit(self, text: str, place: str, *, line_breaks: bool = False) -> str:
        """Return *text*. Raises RecordError at *place* for a control character, or one that the encoding lacks.

        With *line_breaks*, tabs, LF and CRLF are text.
        """
        if (found := (_NO_TEXT if line_breaks else _CONTROLS).search(text)) is not None:
            raise invalid_value_error(
                f"has the character U+{ord(found[0]):04X}, a control character or line break", place
            )
        if character := self.first_lacking_character(text):
            number = f"U+{ord(character):04X}"
            raise invalid_value_error(f"has the character {number}, which {self.encoding} has not", place)
        return text

    def first_lacking_character(self, text: str) -> str | None:
        """Return the first character that the encoding has not, or whose bytes stand for another one."""
        if self._is_exact(text):
            return None
        return next((character for character in text if not self._is_exact(character)), text[0])

    def _is_exact(self, text: str) -> bool:
        try:
            return text.encode(self.encoding).decode(self.encoding) == text
        except UnicodeError:
            return False


def line_end_text(kind: str) -> str:
    return {"lf": "\n", "crlf": "\r\n", "nel": "\x85", "none": ""}[kind]
