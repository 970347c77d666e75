"""Whether what commands print with ``--json`` is of the types from which its reference is written."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import jsonschema_rs
import msgspec

from crossdock.values.json_documents.document_types_by_command import DOCUMENTS


def check_type(arguments: Sequence[str], output: str) -> None:
    """Fail if a command with these *arguments* has printed JSON with members that its type has not, or without some."""
    if "--json" not in arguments or not output:
        return
    configs = {value for option, value in pairwise(arguments) if option in {"-C", "--config"}}
    words = " ".join(each for each in arguments if not each.startswith("-") and each not in configs)
    commands = {usage: re.sub(r",? (-|[A-Z]).*", "", usage) for usage in DOCUMENTS}
    named = [each for each in commands.values() if f"{words} ".startswith(f"{each} ")]
    assert named, f"{words}: document_types_by_command.py has no type of its JSON"
    command = max(named, key=len)
    found = {usage: _faults(usage, output) for usage, each in commands.items() if each == command}
    assert [] in found.values(), found


@cache
def _validator(usage: str) -> jsonschema_rs.Validator:
    (schema,), objects = msgspec.json.schema_components([DOCUMENTS[usage]], ref_template="#/$defs/{name}")
    closed = {name: each | {"additionalProperties": False} for name, each in objects.items()}
    return jsonschema_rs.validator_for({**schema, "$defs": closed})


def _faults(usage: str, output: str) -> list[str]:
    found = _validator(usage).iter_errors(json.loads(output))
    return [f"{'/'.join(map(str, each.instance_path))}: {each.message[:300]}" for each in found]
