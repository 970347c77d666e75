"""The names of scopes, and what a set of them permits. A set is a text with spaces between the scopes, as in OAuth.

A scope is ``RESOURCE:read`` or ``RESOURCE:write``; ``*`` stands for every resource, and writing includes reading. Those
of ledger accounts and warehouse bins can be narrowed to one record: ``accounts:4000:write``, ``bins:wms:A-01:read``. A
record is named by its id, an account also by its code, and a bin also by its externalId.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

SCOPE_NAME_BY_RESOURCE: Mapping[str, str] = {
    "invoice": "invoices",
    "order": "orders",
    "customer": "customers",
    "product": "products",
    "inventory_lot": "lots",
    "warehouse_bin": "bins",
    "ledger_account": "accounts",
}
LABELS: Mapping[str, str] = {
    "*": "All resources",
    **{name: f"{resource.replace('_', ' ')}s".capitalize() for resource, name in SCOPE_NAME_BY_RESOURCE.items()},
    "webhooks": "Webhooks",
}
SCOPES = tuple(
    f"{name}:{access}" for name in (*SCOPE_NAME_BY_RESOURCE.values(), "webhooks", "*") for access in ("read", "write")
)
TEXT_OF_KNOWN_SCOPES = f"{', '.join(SCOPES)}, and accounts:CODE:ACCESS and bins:EXTERNAL_ID:ACCESS for one record"
_NARROWED = re.compile(r"(accounts|bins):([!#-\[\]-~]{1,200}):(read|write)")  # the characters of RFC 6749 section 3.3


class _Scope(NamedTuple):
    name: str
    record: str  # "" for all
    access: str


def is_valid_scope(text: str) -> bool:
    return text in SCOPES or _NARROWED.fullmatch(text) is not None


def required_scope(resource: str, method: str) -> str:
    return f"{SCOPE_NAME_BY_RESOURCE[resource]}:{'read' if method == 'GET' else 'write'}"


def scope_description(scope: str) -> str:
    name, _, access = scope.partition(":")
    records = "everything" if name == "*" else name
    return f"Read {records}." if access == "read" else f"Read and change {records}."


@lru_cache(4096)
def permitted_single_record_names(scopes: str, resource: str, access: str) -> frozenset[str] | None:
    """Return the names of the records that *scopes* permit; None for all of them."""
    sufficient = [each for each in _parse_scopes(scopes) if each.access in {access, "write"}]
    if any(each.name in {SCOPE_NAME_BY_RESOURCE[resource], "*"} and not each.record for each in sufficient):
        return None
    return frozenset(each.record for each in sufficient if each.name == SCOPE_NAME_BY_RESOURCE[resource])


@lru_cache(4096)
def is_narrowed_to_single_records(scopes: str, resource: str) -> bool:
    return any(each.name == SCOPE_NAME_BY_RESOURCE[resource] and each.record for each in _parse_scopes(scopes))


def is_scope_included(granted: str, wanted: str) -> bool:
    name, record, access = _split_into_name_record_and_access(wanted)
    return any(
        each.name in {name, "*"} and each.record in {"", record} and each.access in {access, "write"}
        for each in _parse_scopes(granted)
    )


@lru_cache(1024)
def _parse_scopes(scopes: str) -> tuple[_Scope, ...]:
    return tuple(map(_split_into_name_record_and_access, scopes.split()))


def _split_into_name_record_and_access(scope: str) -> _Scope:
    name, _, rest = scope.partition(":")
    record, _, access = rest.rpartition(":")
    return _Scope(name, record, access)
