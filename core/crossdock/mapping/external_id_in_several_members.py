"""External ids that a target keeps in several members of a record, such as a source and the number there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from crossdock.errors import RecordError
from crossdock.mapping.own_external_ids import make_external_id_from_form, normalized_external_id
from crossdock.values.json_paths import MISSING, find_at_pointer

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
        wanted = find_at_pointer(own, queried_pointer)
        return [
            each
            for each in records
            if find_at_pointer(each, queried_pointer) != wanted or not _contradicts_expected_members(each, own)
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
