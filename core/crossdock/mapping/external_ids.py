"""External ids of records at a partner, and which of the partner's records have one.

An external id is made of a namespace and a record key. A partner may also have records of others, whose names can look
like a key of ours. So a name is read back whole, as the partner has kept it, before anything repairs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any
from urllib.parse import unquote

import polars as pl
from msgspec import Struct
from pydantic import AfterValidator, Field, WithJsonSchema

from crossdock.errors import RecordError
from crossdock.values.config_base_types import ConfigModel, Name
from crossdock.values.json_paths import MISSING, value_at_pointer_or_missing
from crossdock.values.record_keys import MAX_KEY_BYTES, key_parts_of, key_text

NOT_OURS = "not_ours"
"""The name under which records of others are counted, among the filters of a stream."""
DEFAULT_FORM = "{namespace}:{key}"
_LITERAL = r"[A-Za-z0-9._~:#/+-]*"
_FORM = re.compile(rf"{_LITERAL}(?:\{{namespace\}}{_LITERAL})?\{{key\}}{_LITERAL}")


def _check_external_id_template(text: str) -> str:
    if not _FORM.fullmatch(text):
        raise ValueError(
            "must have {key} once, {namespace} before it or not at all, and else only letters, digits and . _ ~ : # / +"
            " and -, such as ACME-{key}"
        )
    return text


NameForm = Annotated[
    str, AfterValidator(_check_external_id_template), WithJsonSchema({"type": "string", "pattern": r"\{key\}"})
]
"""How an external id is made of a namespace and a key, which is percent-encoded."""


def make_external_id_from_form(form: str, namespace: str, key: str) -> str:
    return form.replace("{namespace}", namespace).replace("{key}", key)


class Ours(ConfigModel):
    """The records of a partner that crossdock has sent there: those whose external id has this namespace.

    All others are left out, and counted as ``not_ours``: in lists, among fetched and deleted records, and in webhooks.
    """

    member: Annotated[str, Field(min_length=1)]
    """The column with the external id, exactly as the partner has kept it. If it is the key of the stream, records have
    the keys under which they were sent; otherwise the others are left out, and nothing else changes."""
    namespace: Name
    """The namespace of the streams that send these records."""
    form: NameForm = DEFAULT_FORM
    """How the external ids are made: ``name_form`` of the target."""

    @cached_property
    def _prefix_and_suffix(self) -> tuple[str, str]:
        before, _, after = make_external_id_from_form(self.form, self.namespace, "\0").partition("\0")
        return before, after

    def name_of(self, key: str) -> str:
        """Return the external id of the record with this key, in its text form."""
        return make_external_id_from_form(self.form, self.namespace, key)

    def key_in(self, name: str | None) -> str | None:
        """Return the key in an external id, in its text form; None if crossdock has not made this name."""
        before, after = self._prefix_and_suffix
        if name is None or len(name) <= len(before) + len(after):
            return None
        if not (name.startswith(before) and name.endswith(after) and name.isascii()):
            return None
        key = name[len(before) : len(name) - len(after)]
        parts = key_parts_of(key)
        is_key = all(parts) and key_text(parts) == key
        return key if is_key and all(len(part.encode()) <= MAX_KEY_BYTES for part in parts) else None

    def is_changed(self, name: str | None) -> bool:
        """Return whether a name that is not ours may be one of ours that the partner has changed in case, white space
        or encoding.
        """
        before, after = map(normalized_external_id, self._prefix_and_suffix)
        found = normalized_external_id(name or "")
        is_longer = len(found) > len(before) + len(after) > 0
        return is_longer and found.startswith(before) and found.endswith(after)

    def is_key(self, key: Sequence[str]) -> bool:
        """Return whether *key*, the key columns of the stream, is the external id."""
        return [*key] == [self.member]

    def keys_in(self, names: Iterable[str | None]) -> pl.Series:
        return pl.Series([self.key_in(name) for name in names], dtype=pl.String)


def normalized_external_id(name: str) -> str:
    """Return *name* without what a partner may change of it: case, white space and encoding."""
    return "".join(unquote(name).casefold().split())


def keys_or_their_external_ids(own: Ours | None, keys: Sequence[tuple[str, ...]]) -> Sequence[tuple[str, ...]]:
    """Return the keys of records as their source knows them. *own* is that of a stream whose keys are external ids."""
    return keys if own is None else [(own.name_of(key_text(key)),) for key in keys]


def key_texts_without_foreign_records(own: Ours | None, keys: Iterable[Sequence[str | None]]) -> Iterator[str]:
    """Yield the text forms of keys as a source names them, without those of records of others."""
    for key in keys:
        text = key_text([part or "" for part in key]) if own is None else own.key_in(key[0])
        if text is not None:
            yield text


def ours_setting_problem(ours: Ours | None, skip: Iterable[str], reads: str | None) -> str | None:
    """Return why *ours* does not fit the other attributes of a stream, or None."""
    if ours is None:
        return None
    if NOT_OURS in skip:
        return f"counts records of others as {NOT_OURS}: give the filter of this name another one"
    return "and reads both say what crossdock has written: leave out one" if reads is not None else None


_FIELD = re.compile(r"\{(namespace|key(?:\.[0-9])?)\}")
_VALUES = {"namespace": "[A-Za-z0-9_-]+", "key": ".+"}
_SEPARATOR = re.compile(r"[^A-Za-z0-9_.~%|-]")  # what no namespace has, and no percent-encoded key


class NameMembers(Struct, frozen=True):
    """The members that hold an external id together.

    Attributes:
        forms: How each is made of ``{namespace}``, and of ``{key}`` or its parts ``{key.0}``, ``{key.1}`` and so on.
        whole: How the external id itself is made of ``{namespace}`` and ``{key}``.
    """

    forms: Mapping[str, str]
    whole: str

    def __post_init__(self) -> None:
        found = [field for form in self.forms.values() for field in _FIELD.findall(form)]
        keys = {field for field in found if field != "namespace"}
        parts = {f"key.{number}" for number in range(len(keys))}
        if keys not in ({"key"}, parts) or not keys:
            raise ValueError("name_parts need {key}, or all parts of it from {key.0} on")
        if ("namespace" in found) is not ("{namespace}" in self.whole):
            raise ValueError("name_parts need {namespace} if name_form has it, and else not")
        for form in (*self.forms.values(), self.whole):
            literals = _FIELD.split(form)[::2]
            if any(re.search("[{}]", literal) for literal in literals):
                raise ValueError("name_parts and name_form have braces only around namespace, key, key.0 to key.9")
            if not all(map(_SEPARATOR.search, literals[1:-1])):
                raise ValueError("name_parts and name_form need a character such as : or / between two values")

    @property
    def key_part_count(self) -> int:
        """How many parts a key must have; 0 for any number, if the members do not divide it."""
        return len({each for form in self.forms.values() for each in _FIELD.findall(form) if "." in each})

    def members_of_key(self, namespace: str, key: str) -> dict[str, str]:
        """Return the members of a record. Raises RecordError if the key has another number of parts."""
        parts = key.split("|")
        if self.key_part_count and len(parts) != self.key_part_count:
            raise RecordError(
                "invalid_draft", f"the record key has {len(parts)} parts instead of {self.key_part_count}"
            )
        values = {"namespace": namespace, "key": key} | {f"key.{number}": part for number, part in enumerate(parts)}
        return {name: _FIELD.sub(lambda found: values[found[1]], form) for name, form in self.forms.items()}

    def members_of_external_id(self, name: str) -> dict[str, str]:
        """Return the members of a record with this external id."""
        values = _parse_fields_by_form(self.whole, name) or {"key": name}
        return self.members_of_key(values.get("namespace", ""), values["key"])

    def external_id_in(self, record: Any) -> Any:
        """Return the external id in a record; None if its members have none, `MISSING` if it has no such members."""
        held = {name: record[name] for name in self.forms if name in record} if isinstance(record, dict) else {}
        if not held:
            return MISSING
        values = dict[str, str]()
        for name, form in self.forms.items():
            text = held.get(name)
            found = _parse_fields_by_form(form, text) if isinstance(text, str) else None
            if found is None or any(values.get(field, value) != value for field, value in found.items()):
                return None
            values |= found
        parts = [values[field] for field in sorted(values) if field != "namespace"]
        return make_external_id_from_form(self.whole, values.get("namespace", ""), "|".join(parts))

    def drop_records_of_other_ids(self, records: Sequence[Any], name: str, queried_pointer: str) -> list[Any]:
        """Leave out those of *records* that have the member of this external id at *queried_pointer*, and
        another text in another member.

        A member that is missing, or has another type, case or encoding, may be ours as the target shows it.
        """
        own = self.members_of_external_id(name)
        wanted = value_at_pointer_or_missing(own, queried_pointer)
        return [
            each
            for each in records
            if value_at_pointer_or_missing(each, queried_pointer) != wanted
            or not _contradicts_expected_members(each, own)
        ]


def _contradicts_expected_members(record: Mapping[str, Any], expected: Mapping[str, str]) -> bool:
    held = {name: record.get(name) for name in expected}
    return any(
        isinstance(text, str) and normalized_external_id(text) != normalized_external_id(expected[name])
        for name, text in held.items()
    )


def _parse_fields_by_form(form: str, text: str) -> dict[str, str] | None:
    """Return the values of the fields of *form* in *text*, or None if it does not have this form."""
    pieces = _FIELD.split(form)  # literals and names of fields by turns
    fields = pieces[1::2]
    pattern = "".join(
        f"({_VALUES.get(piece, '[^|]+')})" if number % 2 else re.escape(piece) for number, piece in enumerate(pieces)
    )
    match = re.fullmatch(pattern, text, re.DOTALL)
    return dict(zip(fields, match.groups(), strict=True)) if match else None
