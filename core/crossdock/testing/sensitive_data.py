"""Recognizes secrets and personal data in JSON, parameters and headers, by names and by drafts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum, auto
from functools import cache
from string import digits
from typing import Any

from crossdock.testing.personal_data_substitutes import WORD
from crossdock.values.web_address_checks import has_secret_parameter

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
