"""Shopify's own Admin schema, version 2026-10, as the judge of ours and of every query that we send.

Shopify publishes it in the npm package ``@shopify/dev-mcp`` (ISC). It is not part of this project, for its size: npm
fetches the pinned version, and what it fetched is compared with the pinned hash.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from graphql import (
    GraphQLNamedType,
    GraphQLSchema,
    build_client_schema,
    is_enum_type,
    is_input_object_type,
    is_interface_type,
    is_object_type,
    is_required_argument,
    is_required_input_field,
    is_specified_directive,
    is_specified_scalar_type,
    is_union_type,
    print_ast,
)
from tests.consumers.generated_clients import npm
from tests.partners.shopify.schema import VERSION

PACKAGE = "@shopify/dev-mcp@1.16.0"
SHA512 = "tqgRnK7sQhjew+htxtleTH23nXB5fZcsrhWgEkomsorGXvLOB2mh2upwZm8uzuTDNTZnqtLMe64yIwh6s2awtw=="
_MEMBER = f"package/dist/data/admin_{VERSION}.json.gz"


def kept_in(cache: Path) -> Path:
    """Where `fetched` keeps the schema."""
    return cache / f"{PACKAGE.rpartition('@')[2]}_{Path(_MEMBER).name}"


def fetched(cache: Path) -> Path:
    """The introspection of the schema, compressed; in the folder *cache* once it was fetched.

    Raises:
        AssertionError: If npm fails, or fetches something else than what is pinned.
    """
    kept = kept_in(cache)
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=cache) as name:
            folder = Path(name)
            npm(folder, "pack", PACKAGE, "--ignore-scripts")
            [packed] = folder.glob("*.tgz")
            assert base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode() == SHA512
            with tarfile.open(packed) as archive:
                member = archive.extractfile(_MEMBER)
                assert member is not None
                (folder / "schema").write_bytes(member.read())
            (folder / "schema").replace(kept)
    return kept


@lru_cache(maxsize=1)
def introspection(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))["data"]
    return found


@lru_cache(maxsize=1)
def published_schema(file: Path) -> GraphQLSchema:
    """The schema; it breaks a rule of graphql-core on deprecated fields, so it is taken as it is."""
    return build_client_schema(introspection(file), assume_valid=True)  # type: ignore[arg-type]  # read from JSON


def differences(ours: GraphQLSchema, theirs: GraphQLSchema) -> list[str]:
    """Where *ours* is not a part of *theirs*: a query that is valid by ours would not be valid, or mean the same."""
    return [
        *(f"{name}: unknown type" for name in ours.type_map if name not in theirs.type_map),
        *(
            f"{name}{problem}"
            for name, own in ours.type_map.items()
            if name in theirs.type_map and not name.startswith("__") and not is_specified_scalar_type(own)
            for problem in _of_type(own, theirs.type_map[name])
        ),
        *(
            f"@{own.name}: not as published"
            for own in ours.directives
            if not is_specified_directive(own)
            if (other := theirs.get_directive(own.name)) is None or not _arguments_fit(own.args, other.args)
        ),
    ]


def _of_type(own: GraphQLNamedType, other: GraphQLNamedType) -> Iterator[str]:
    if type(own) is not type(other):
        yield ": another kind of type"
    elif is_enum_type(own) and is_enum_type(other):
        yield from (f".{value}: unknown value" for value in own.values if value not in other.values)
    elif is_union_type(own) and is_union_type(other):
        names = {one.name for one in other.types}
        yield from (f": {one.name} is no member" for one in own.types if one.name not in names)
    elif is_input_object_type(own) and is_input_object_type(other):
        if not _arguments_fit(own.fields, other.fields):
            yield ": other input fields"
    elif (is_object_type(own) and is_object_type(other)) or (is_interface_type(own) and is_interface_type(other)):
        implemented = {one.name for one in other.interfaces}
        yield from (f": does not implement {one.name}" for one in own.interfaces if one.name not in implemented)
        for name, field in own.fields.items():
            if name not in other.fields:
                yield f".{name}: unknown field"
            elif str(field.type) != str(other.fields[name].type):
                yield f".{name}: {field.type}, and not {other.fields[name].type}"
            elif not _arguments_fit(field.args, other.fields[name].args):
                yield f".{name}: other arguments"
            elif bool(field.deprecation_reason) != bool(other.fields[name].deprecation_reason):
                yield f".{name}: deprecated in one of them"


def _arguments_fit(own: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether all of ours exist there with the same type and default, and ours have all that are required there."""
    same = all(name in other and _shown(one) == _shown(other[name]) for name, one in own.items())
    needed = (name for name, one in other.items() if is_required_argument(one) or is_required_input_field(one))
    return same and all(name in own for name in needed)


def _shown(argument: Any) -> tuple[str, str]:
    return str(argument.type), print_ast(argument.default.literal) if argument.default else ""
