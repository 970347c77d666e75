"""Files in UTF-8 that another encoding is declared for, which reads them without an error, as MÃ¼ller."""

from __future__ import annotations

import codecs

import polars as pl

from crossdock.reading.formats.suspicious_cells import WRONG_ENCODING

_ENOUGH = 3  # wrong texts: fewer may have been damaged before they came into a file of another encoding
HINT = "Declare encoding: utf-8, or ask the sender which one it is."


class Utf8Search:
    """Looks at the bytes of a file and at what the declared *encoding* makes of them."""

    def __init__(self, encoding: str) -> None:
        is_other = not codecs.lookup(encoding).name.startswith("utf")
        self._decoder = codecs.getincrementaldecoder("utf-8")() if is_other else None
        self._wrong = 0

    def add(self, raw: bytes, text: str, *, final: bool) -> None:
        if self._decoder is None or (raw.isascii() and not self._decoder.getstate()[0]):
            return
        try:
            self._decoder.decode(raw, final)
        except UnicodeDecodeError:
            self._decoder = None
        else:
            odd = pl.Series([line for line in text.split("\n") if not line.isascii()], dtype=pl.String)
            self._wrong += int(odd.str.count_matches(WRONG_ENCODING).sum())

    @property
    def is_found(self) -> bool:
        """Whether all bytes were UTF-8, and the declared encoding makes wrong texts of them."""
        return self._decoder is not None and self._wrong >= _ENOUGH
