"""Removes secrets and personal data from the texts and JSON of a recording, in two passes.

The first pass collects values: secrets, personal members, mail addresses. The second replaces them wherever they
are: in other members, in URLs, percent-encoded, in Base64, and in JSON inside of texts.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Iterator
from enum import IntEnum
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from crossdock.printable import MASK, SHORTEST
from crossdock.testing import readable_json
from crossdock.testing.personal_data_substitutes import EMAIL, WORD, Substitutes
from crossdock.testing.readable_json import Number
from crossdock.testing.sensitive_data import (
    Kind,
    Path,
    PersonalMembers,
    is_birth_date_name,
    is_free_text_name,
    is_secret_parameter,
)

SHORTEST_VALUE = 3  # characters of a value that is replaced outside of personal members
SHORTEST_NAME = 4  # letters of a part of a name or mail address that is
_SHORTEST_NUMBER = 6  # digits
_MOST_WORDS = 24
_MOST_DEEP = 3  # encodings inside of each other
_PHONE = re.compile(r"\+\d(?:[ ()/.-]{0,2}\d){6,14}(?!\d)")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ][\d:.,]+ ?(?:Z|[+-]\d\d:?\d\d)?)?")
_PARAMETER = re.compile(r"(?P<before>[?&;]|^)(?P<name>[^=?&;#/\s\"'<>]{1,64})=(?P<value>[^&;#\s\"'<>]*)")
_TOKEN = re.compile(r"[^\s\"'<>&=?#;/,:]+")
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}|\w\+\w")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_LOWER_WORD = re.compile("[a-z]+")  # rather a role or a kind than a name
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0e-\x1f]")


class _Value(IntEnum):
    NAME = 1
    """A word of a name."""
    WHOLE = 2
    """The value of a personal member."""
    SECRET = 3


class SensitiveDataRemover:
    """Collects secrets and personal values, and then replaces them.

    Attributes:
        collecting: Whether values are collected; nothing is changed until it is False.
        replaced: The personal values and secrets that were replaced, in their original form.
    """

    def __init__(self, members: PersonalMembers) -> None:
        self.collecting = True
        self.replaced = set[str]()
        self._members, self._substitutes = members, Substitutes()
        self._credentials = set[str]()  # replaced even inside of words
        self._values = dict[str, _Value]()  # by their text in lower case
        self._lengths = defaultdict[str, set[int]](set)  # first word of a value -> numbers of words
        self._days = set[str]()
        self._made = set[str]()

    # ---- what is collected

    def add_credential(self, value: str) -> None:
        """Replace *value* by `MASK` wherever it occurs. There may be several credentials."""
        if len(value) >= SHORTEST and value != MASK:
            forms = {value, quote(value, safe=""), quote_plus(value), b64encode(value.encode()).decode()}
            self._credentials |= {form for form in forms if form}
        self._collect_value(_without_outer_punctuation(value), _Value.SECRET)

    def _collect_personal_value(self, name: str, text: str) -> None:
        self._substitutes.avoid_words(text)
        if is_birth_date_name(name):
            self._days.add(text)
        whole = _without_outer_punctuation(text)
        is_distinct = len(whole) >= SHORTEST_VALUE and any(character.isalpha() for character in whole)
        is_distinct |= sum(character.isdigit() for character in whole) >= _SHORTEST_NUMBER
        if is_distinct and not (is_free_text_name(name) and len(WORD.findall(whole)) <= 2):
            self._collect_value(whole, _Value.WHOLE)
        is_name = "name" in name.lower() or "@" in text or self._members.is_declared_personal(name)
        for word in WORD.findall(text.partition("@")[0]) if is_name else ():
            if len(word) >= SHORTEST_NAME and word.isalpha():
                self._collect_value(word, _Value.NAME)

    def _collect_value(self, value: str, kind: _Value) -> None:
        text = value.lower()
        words = WORD.findall(text)
        if 0 < len(words) <= _MOST_WORDS and len(text) >= SHORTEST_VALUE:
            self._values[text] = max(kind, self._values.get(text, kind))
            self._lengths[words[0]].add(len(words))

    # ---- JSON

    def clean_json(self, value: Any) -> Any:
        """Remove secrets and personal data from *value*, which `readable_json.loads_keeping_number_texts` has read."""
        return self._members.map_leaves_with_kind(value, self._clean_leaf)

    def clean_parameters(self, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Clean the parameters of a URL or form."""
        return [(name, self._clean_parameter(name, value)) for name, value in pairs]

    def _clean_parameter(self, name: str, value: str) -> str:
        if is_secret_parameter(name):
            return self._clean_secret(value)
        return str(self._clean_leaf(self._members.treatment_of_member((name,)), (name,), value))

    def _clean_leaf(self, kind: Kind, path: Path, value: Any) -> Any:
        if value is None or isinstance(value, bool) or value == "":
            return value
        if isinstance(value, Number):
            return Number(self._clean_number(kind, path, value))
        is_time = _TIME.fullmatch(value) is not None
        if kind is Kind.SECRET and not is_time:
            return self._clean_secret(value)
        if kind in {Kind.PERSONAL, Kind.INHERITED} and (not is_time or is_birth_date_name(path[-1])):
            is_word = kind is Kind.INHERITED and _LOWER_WORD.fullmatch(value)
            return value if is_word and self.collecting else self._clean_personal(path[-1], value)
        return value if is_time else self.clean_text(value, names=kind is not Kind.KEPT)

    def _clean_number(self, kind: Kind, path: Path, value: str) -> str:
        digits = sum(character.isdigit() for character in value)
        is_personal = kind is Kind.PERSONAL or (kind is Kind.INHERITED and digits >= _SHORTEST_NUMBER)
        if is_personal or kind is Kind.SECRET:
            return self._clean_personal(path[-1], value)
        return self._replace_collected(value, names=False)

    def _clean_secret(self, value: str) -> str:
        if self.collecting:
            if len(value) >= SHORTEST and value != MASK:
                self._collect_value(_without_outer_punctuation(value), _Value.SECRET)
            return value
        self.replaced.add(value)
        return MASK if value else value

    def _clean_personal(self, name: str, value: str) -> str:
        if self.collecting:
            self._collect_personal_value(name, value)
            return value
        return MASK.join(self._substitute(part) for part in self._without_credentials(value).split(MASK))

    def _clean_match_unless_substitute(self, value: str) -> str:
        return value if value in self._made else self._clean_personal("", value)

    def _substitute(self, value: str) -> str:
        if not WORD.search(value):
            return value
        self.replaced.add(value)
        made = self._substitutes.replace_day(value) if value in self._days else self._substitutes.replace_words(value)
        self._made.add(made)
        return made

    # ---- texts

    def clean_text(self, text: str, *, names: bool = True, depth: int = 0) -> str:
        """Remove secrets and personal values from *text*.

        Args:
            names: Also replace single words of names.
        """
        text = self._without_credentials(text)
        if text[:1] in {"{", "["} and depth < _MOST_DEEP:
            try:
                return readable_json.apply_change_to_json_text(text, self.clean_json)
            except ValueError:
                pass
        text = _PARAMETER.sub(self._clean_url_parameter, text)
        if depth < _MOST_DEEP:
            text = _TOKEN.sub(lambda found: self._clean_percent_encoded(found[0], depth), text)
            text = _BASE64.sub(lambda found: self._clean_base64(found[0], depth), text)
        for pattern in (EMAIL, _PHONE):
            text = pattern.sub(lambda found: self._clean_match_unless_substitute(found[0]), text)
        return self._replace_collected(text, names=names)

    def _without_credentials(self, text: str) -> str:
        if not self.collecting:
            for credential in sorted(self._credentials, key=len, reverse=True):
                if credential in text:
                    self.replaced.add(credential)
                    text = text.replace(credential, MASK)
        return text

    def _clean_url_parameter(self, found: re.Match[str]) -> str:
        name, value = unquote_plus(found["name"]), found["value"]
        kind = self._members.treatment_of_member((name,))
        if kind is Kind.SECRET or (is_secret_parameter(name) and found["before"]):
            return f"{found['before']}{found['name']}={self._clean_secret(unquote_plus(value)) if value else ''}"
        if kind is not Kind.PERSONAL or not value:
            return found[0]
        plain = unquote_plus(value)
        encode = quote_plus if "+" in value else quote
        made = plain if plain in self._made else self._clean_personal(name, plain)
        if made != plain:
            value = encode(made, safe="@" if "@" in value else "")
        return f"{found['before']}{found['name']}={value}"

    def _clean_percent_encoded(self, token: str, depth: int) -> str:
        if not _ENCODED.search(token):
            return token
        try:
            plain = unquote_plus(token, errors="strict") if "+" in token else unquote(token, errors="strict")
        except UnicodeDecodeError:
            return token
        made = self.clean_text(plain, depth=depth + 1)
        if made == plain:
            return token
        return quote_plus(made, safe="()") if "+" in token else quote(made, safe="()")

    def _clean_base64(self, token: str, depth: int) -> str:
        standard = token.rstrip("=").replace("-", "+").replace("_", "/")
        try:
            plain = b64decode(standard + "=" * (-len(standard) % 4), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return token
        if _UNPRINTABLE.search(plain):
            return token
        made = self.clean_text(plain, depth=depth + 1)
        if made == plain:
            return token
        encoded = b64encode(made.encode()).decode()
        if "-" in token or "_" in token:
            encoded = encoded.replace("+", "-").replace("/", "_")
        return encoded if token.endswith("=") or "=" not in encoded else encoded.rstrip("=")

    def _replace_collected(self, text: str, *, names: bool) -> str:
        """Replace the collected values in *text* that begin and end with its words."""
        if self.collecting:
            return text
        made, at = "", 0
        for start, end, kind in self._spans_of_collected_values(text, names=names):
            made += text[at:start] + (MASK if kind is _Value.SECRET else self._substitute(text[start:end]))
            at = end
        return made + text[at:]

    def _spans_of_collected_values(self, text: str, *, names: bool) -> Iterator[tuple[int, int, _Value]]:
        words, number = [found.span() for found in WORD.finditer(text)], 0
        while number < len(words):
            start, end = words[number]
            used = 1
            for length in sorted(self._lengths.get(text[start:end].lower(), ()), reverse=True):
                if number + length > len(words):
                    continue
                stop = words[number + length - 1][1]
                kind = self._values.get(text[start:stop].lower())
                if kind is not None and (names or kind is not _Value.NAME):
                    yield start, stop, kind
                    used = length
                    break
            number += used


def _without_outer_punctuation(text: str) -> str:
    words = list(WORD.finditer(text))
    return text[words[0].start() : words[-1].end()] if words else ""
