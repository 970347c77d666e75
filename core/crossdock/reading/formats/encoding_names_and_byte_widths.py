"""Character encodings by name: the encodings of Python that turn bytes into text and can be decoded in parts."""

from __future__ import annotations

import codecs
import encodings
import pkgutil
from difflib import get_close_matches
from encodings.aliases import aliases
from functools import cache

_NO_CHARACTER_ENCODINGS = {
    *("aliases", "base64_codec", "bz2_codec", "hex_codec", "quopri_codec", "rot_13", "uu_codec", "zlib_codec"),
    *("idna", "punycode", "raw_unicode_escape", "unicode_escape", "undefined"),  # notations of text
    *("mbcs", "oem"),  # differ from machine to machine
    "utf_7",  # keeps any number of bytes before it decodes them
}
_SWITCHING = ("hz", "iso2022", "cp930", "cp939", "cp1364")  # the same bytes are other characters after a shift
_EXAMPLES = "utf-8, utf-16, cp1252 (Windows), cp850 (DOS), cp037 (mainframe)"
FILLER = "\ufdd0"
"""Replaces each byte of a character after its first one. Unicode has no character with this number."""


def check_encoding_name(name: str) -> str:
    """Return *name* if Python knows it as a character encoding. Otherwise raise ValueError with the nearest name."""
    try:
        module = encodings.normalize_encoding(codecs.lookup(name).name).lower()
    except (LookupError, ValueError):
        module = ""
    supported = {found.name for found in pkgutil.iter_modules(encodings.__path__)} - _NO_CHARACTER_ENCODINGS
    if module in supported:
        return name
    spellings = {spelling: target for spelling, target in aliases.items() if target in supported}
    spellings |= {target: target for target in supported}
    near = get_close_matches(name.lower().replace("-", "_").replace(" ", "_"), spellings, n=1)
    advice = f"did you mean {spellings[near[0]].replace('_', '-')!r}?" if near else f"examples: {_EXAMPLES}"
    raise ValueError(f"is not a character encoding that Python knows; {advice}")


def is_encoding_without_shift_codes(name: str) -> bool:
    return not codecs.lookup(name).name.replace("_", "").replace("-", "").startswith(_SWITCHING)


@cache
def is_single_byte(name: str) -> bool:
    """Return whether every byte is a character of its own."""
    return all(
        len(bytes((first, second)).decode(name, "replace")) == 2
        for first in range(256)
        for second in (0x41, 0x81, 0xA9)
    )


class ByteWidthTable(dict[int, str]):
    """A table for `str.translate` that adds a `FILLER` for each byte of a character after its first one."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        name = codecs.lookup(encoding).name.removesuffix("-sig")
        self._encoding = f"{name}-le" if name in {"utf-16", "utf-32"} else name

    def __missing__(self, code: int) -> str:
        character = chr(code)
        try:
            width = len(character.encode(self._encoding))
        except UnicodeEncodeError:
            width = 1
        if character in "\r\n" or code == ord(FILLER):
            width = 1
        self[code] = character + FILLER * (width - 1)
        return self[code]
