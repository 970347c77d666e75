"""Substitutes for personal data: of the same length and kinds of characters, and the same for equal words."""

from __future__ import annotations

import re
import secrets
from functools import cache
from hashlib import shake_256

WORD = re.compile(r"[^\W_]+")
EMAIL = re.compile(r"(?<![\w.+%'-])[\w.+%'-]+@(?:[\w-]+\.)+([A-Za-z]{2,24})(?![\w-])")
_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?!\d)")
_LONG_NUMBER = 9  # digits; telephone numbers have as many, and begin with the country or the area
_ATTEMPTS = 200
_ASCII_LETTERS, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"


class Substitutes:
    """Replaces words. Equal words have equal substitutes, whatever their case, and other words have others.

    The key is random and not stored, so that nobody can find the words by trying.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._of_word = dict[str, str]()
        self._avoided = set[str]()

    def avoid_words(self, text: str) -> None:
        """Avoid the words of *text* as substitutes, as far as there are others."""
        self._avoided.update(word.lower() for word in WORD.findall(text))

    def replace_words(self, text: str) -> str:
        """Return *text* with a substitute for each word.

        Punctuation, the top-level domain of a mail address, a leading zero, and the first two of nine or more digits do
        not change.
        """
        stays = {found.start(1) for found in EMAIL.finditer(text)}
        return WORD.sub(
            lambda found: found[0] if found.start() in stays else self._substitute_in_same_case(found[0]), text
        )

    def replace_day(self, text: str) -> str:
        """Replace a day in ISO 8601 at the beginning of *text* by another day; else do the same as `replace_words`."""
        found = _DAY.match(text)
        if not found:
            return self.replace_words(text)
        first, second, third, *_ = self._pseudorandom_bytes(found[0], 0, 3)
        return f"{1950 + first % 50}-{1 + second % 12:02}-{1 + third % 28:02}{text[found.end() :]}"

    def _substitute_in_same_case(self, word: str) -> str:
        lower = word.lower()
        if len(lower) != len(word):
            return self._substitute(word)
        made = self._substitute(lower)
        return "".join(new.upper() if old.isupper() else new for old, new in zip(word, made, strict=True))

    def _substitute(self, word: str) -> str:
        if word not in self._of_word:
            made = word
            for attempt in range(_ATTEMPTS):
                made = self._candidate(word, attempt)
                if made not in self._avoided:
                    break
            self._avoided.add(made)
            self._of_word[word] = made
        return self._of_word[word]

    def _candidate(self, word: str, attempt: int) -> str:
        kept = 2 if len(word) >= _LONG_NUMBER and word.isdecimal() else 0
        drawn = self._pseudorandom_bytes(word, attempt, 2 * len(word))
        made = list(word)
        for place, old in enumerate(word):
            choices = _alphabet_of_character(old)
            if place == 0 and old in _DIGITS:
                choices = "0" if old == "0" else "123456789"  # the number keeps its length
            if place >= kept and choices:
                made[place] = choices[int.from_bytes(drawn[2 * place : 2 * place + 2]) % len(choices)]
        return "".join(made)

    def _pseudorandom_bytes(self, word: str, attempt: int, count: int) -> bytes:
        return shake_256(self._key + f"{attempt}:{word}".encode()).digest(count)


@cache
def _alphabet_of_character(character: str) -> str:
    """Return characters of the same kind, including *character*: from ASCII, or from the same part of Unicode."""
    if character in _DIGITS:
        return _DIGITS
    if character.isascii():
        return _ASCII_LETTERS
    start = ord(character) // 64 * 64
    others = (chr(code) for code in range(start, start + 64))
    kind = (character.isalpha(), character.isdecimal())
    return "".join(
        other
        for other in others
        if (other.isalpha(), other.isdecimal()) == kind
        and any(kind)
        and other.lower() == other
        and other.isupper() == character.isupper()  # capitals without a small letter, such as mathematical ones
        and len(other.upper()) == 1
    )
