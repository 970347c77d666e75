"""Recognizes secrets and personal data in JSON, parameters and headers, by names and by drafts, and removes them.

They are removed from the texts and JSON of a recording in two passes. The first collects values: secrets, personal
members, mail addresses. The second replaces them wherever they are: in other members, in URLs, percent-encoded, in
Base64, and in JSON inside of texts. Substitutes have the same length and kinds of characters, and are the same for
equal words.
"""

from __future__ import annotations

import binascii
import re
import secrets
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum, IntEnum, auto
from functools import cache
from hashlib import shake_256
from string import digits
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from crossdock.printable import MASK, SHORTEST
from crossdock.testing import readable_json
from crossdock.testing.readable_json import NumberText
from crossdock.values.web_address_checks import has_secret_parameter

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


Path = tuple[str, ...]
"""The names that lead to a value, without the indexes of lists."""

_BETWEEN = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # words in camel case
_IDENTIFIER = re.compile(r"[A-Za-z_][\w.-]{0,63}")  # the name of a member, and no data
_SECRET = re.compile(r"authoriz|bearer|cookie|session|jwt|csrf|\bauth\b")
_SECRET_PARAMETERS = frozenset({"key", "sig"})
_PAGING = frozenset({"page", "next", "prev", "previous", "cursor", "continuation", "sync", "after", "before"})
_NAMES = frozenset({
    "address line", "bank account", "first name", "full name", "last name", "middle name", "national id", "passport id",
    "post code", "postal code", "street number", "tax id", "tax number", "user agent", "user name", "vat id",
    "vat number", "zip code", "house number",
})  # fmt: skip
_PERSONAL = frozenset({
    "address", "addresses", "addressee", "birth", "birthdate", "birthday", "buyer", "city",
    "comment", "comments", "consignee", "contact", "contacts", "dob", "email", "emails", "fax", "firstname", "forename",
    "gender", "iban", "instructions", "ip", "lastname", "latitude", "line1", "line2", "longitude", "mail", "mobile",
    "nachname", "nickname", "note", "notes", "ort", "passport", "phone", "phones", "plz", "postal", "postcode",
    "province", "recipient", "recipients", "remark", "remarks", "salutation", "ssn", "strasse", "street", "surname",
    "telefon", "telephone", "town", "username", "vorname", "zip",
})  # fmt: skip
_PERSONS = frozenset({
    "addressee", "author", "billing", "buyer", "client", "company", "consignee", "contact", "customer",
    "driver", "employee", "guest", "owner", "person", "recipient", "sender", "shipping", "user",
})  # fmt: skip
_NAMED = frozenset({"company", "initials", "name", "names", "organisation", "organization"})
_KEPT = frozenset({
    "at", "code", "count", "country", "currency", "format", "gid", "id", "ids", "kind", "language", "level", "locale",
    "method", "mode", "state", "status", "type", "url", "uuid", "verified", "version", "zone",
})  # fmt: skip
_BIRTH = frozenset({"birth", "birthdate", "birthday", "dob"})
_FREE_TEXT = frozenset({"comment", "comments", "instructions", "note", "notes", "remark", "remarks"})
_SHORTEST_PART = 4  # characters of a part of a name that is found in a record


class Kind(Enum):
    """The treatment of a value."""

    SECRET = auto()
    PERSONAL = auto()
    INHERITED = auto()
    """Personal because of an outer member, such as an address."""
    KEPT = auto()
    """An id, code or type, which changes only as a whole."""
    PLAIN = auto()


Leaf = Callable[[Kind, Path, Any], Any]


@cache
def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a member's name, in lower case: ``shippingAddress``, ``shipping_address`` and so on."""
    return tuple(part.lower() for part in WORD.findall(_BETWEEN.sub(" ", name)))


def is_secret_name(name: str) -> bool:
    """Return whether a member, parameter or header of this name usually has a credential.

    The token of a page is not one.
    """
    words = words_of(name)
    text = "_".join(words)
    found = has_secret_parameter(f"{text}=") or bool(_SECRET.search(" ".join(words)))
    return found and _PAGING.isdisjoint(words)


def is_secret_parameter(name: str) -> bool:
    return is_secret_name(name) or name.lower() in _SECRET_PARAMETERS


def is_birth_date_name(name: str) -> bool:
    return not _BIRTH.isdisjoint(words_of(name))


def is_free_text_name(name: str) -> bool:
    return not _FREE_TEXT.isdisjoint(words_of(name))


class PersonalMembers:
    """The personal members of one recording.

    Args:
        names: Further names, in any notation.

    Attributes:
        learned: Paths, or ends of them, that mappings make personal members of.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = {words_of(name) for name in names}
        self.learned = set[Path]()

    def is_declared_personal(self, name: str) -> bool:
        return words_of(name) in self._names

    def treatment_of_member(self, path: Path, outer: Kind = Kind.PLAIN, siblings: Collection[str] = ()) -> Kind:
        """Return the kind of the member at *path*.

        Args:
            outer: The kind of the object around it.
            siblings: The names in that object, which show whether its name is that of a person.
        """
        words = words_of(path[-1])
        last = words[-1:] and words[-1]
        if words in self._names or any(path[-len(end) :] == end for end in self.learned):
            return Kind.PERSONAL
        if outer is Kind.SECRET or is_secret_name(path[-1]):
            return Kind.SECRET
        if " ".join(words[-2:]) in _NAMES:
            return Kind.PERSONAL
        if last in _KEPT:
            return Kind.KEPT
        if _has_personal_word(words) or (
            not _NAMED.isdisjoint(words) and self._is_of_person(path, words, outer, siblings)
        ):
            return Kind.PERSONAL
        return Kind.INHERITED if outer in {Kind.PERSONAL, Kind.INHERITED} else Kind.PLAIN

    def _is_of_person(self, path: Path, words: Path, outer: Kind, siblings: Collection[str]) -> bool:
        around = [*words, *(words_of(path[-2]) if len(path) > 1 else ())]
        is_person = any(word in _PERSONS or word.removesuffix("s") in _PERSONS for word in around)
        return outer is not Kind.PLAIN or is_person or any(_indicates_person(name) for name in siblings)

    def map_leaves_with_kind(self, value: Any, leaf: Leaf, path: Path = ("",), outer: Kind = Kind.PLAIN) -> Any:
        """Replace each value in *value* that contains no others by the result of *leaf*."""
        if isinstance(value, dict):
            return {
                name if _IDENTIFIER.fullmatch(name) else leaf(Kind.KEPT, inside, name): self.map_leaves_with_kind(
                    inner, leaf, inside, self.treatment_of_member(inside, outer, value.keys())
                )
                for name, inner in value.items()
                for inside in [(*path, name)]
            }
        if isinstance(value, list):
            return [self.map_leaves_with_kind(inner, leaf, path, outer) for inner in value]
        return leaf(outer, path, value)

    def learn_personal_paths(self, item: Any, members: Mapping[str, Any]) -> None:
        """Add the paths in the record *item* whose values are in the personal *members* of its draft."""
        texts = {
            text
            for text in (_normalized_words(value) for name, value in _leaves(members) if "country" not in name)
            if text
        }

        def compare(kind: Kind, path: Path, value: Any) -> None:
            text = _normalized_words(value)
            is_part = len(text) >= _SHORTEST_PART and kind is not Kind.KEPT and not text.isdecimal()
            if text and (text in texts or (is_part and any(f" {text} " in f" {whole} " for whole in texts))):
                self.learned.add(path[1:])

        self.map_leaves_with_kind(item, compare)


def _has_personal_word(words: Path) -> bool:
    found = any(word in _PERSONAL or word.rstrip(digits) in _PERSONAL for word in words)
    return found and words[-1] not in _KEPT


def _indicates_person(name: str) -> bool:
    return _has_personal_word(words_of(name)) and not is_free_text_name(name)


def _normalized_words(value: Any) -> str:
    return "" if value is None or isinstance(value, bool) else " ".join(WORD.findall(str(value).lower()))


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values in *value* that contain no others, each with the name of its member."""
    if isinstance(value, Mapping):
        for inside, inner in value.items():
            yield from _leaves(inner, inside)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner, name)
    else:
        yield name, value


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
        if isinstance(value, NumberText):
            return NumberText(self._clean_number(kind, path, value))
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
