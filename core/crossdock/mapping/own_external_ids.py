"""External ids of records at a partner, and which of the partner's records have one.

An external id is made of a namespace and a record key. A partner may also have records of others, whose names can look
like a key of ours. So a name is read back whole, as the partner has kept it, before anything repairs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Annotated
from urllib.parse import unquote

import polars as pl
from pydantic import AfterValidator, Field, WithJsonSchema

from crossdock.values.config_base_types import ConfigModel, Name
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


def ours_problem(ours: Ours | None, skip: Iterable[str], reads: str | None) -> str | None:
    """Return why *ours* does not fit the other attributes of a stream, or None."""
    if ours is None:
        return None
    if NOT_OURS in skip:
        return f"counts records of others as {NOT_OURS}: give the filter of this name another one"
    return "and reads both say what crossdock has written: leave out one" if reads is not None else None
