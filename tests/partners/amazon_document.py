"""Amazon's own API documents (Swagger 2.0, Apache-2.0, amzn/selling-partner-api-models) as the judge of exchanges.

The project does not contain them: they are read from the folder that `DATA_VARIABLE` names, or from beside the project.
The judge is stricter than JSON Schema: members and parameters that a document does not know are wrong as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from jsonschema_rs import Draft4Validator, ValidationError
from tests.partners.amazon_wire import upper_case
from tests.partners.partner_server import Partner, PartnerAnswer, PartnerRequest

from crossdock.values import exact_json

DATA_VARIABLE = "CROSSDOCK_AMAZON_DATA"
DATA_BESIDE = Path(__file__).parents[3] / "shared" / "data" / "amazon"
NAMES = ("fulfillmentOutbound_2020-07-01.json", "fbaInventory.json")
_METHODS = ("get", "put", "post", "delete")
_INT32 = {"minimum": -(2**31), "maximum": 2**31 - 1}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation as a document describes it, with the document's definitions."""

    name: str
    method: str
    path: str
    described: Mapping[str, Any]
    definitions: Mapping[str, Any]

    def key_in(self, path: str) -> str | None:
        """What stands for the template's parameter in *path*; empty without one, None if *path* is another one."""
        ours, theirs = self.path.split("/"), path.split("/")
        if len(ours) != len(theirs):
            return None
        pairs = list(zip(ours, theirs, strict=True))
        if any(our != their and not our.startswith("{") for our, their in pairs):
            return None
        return next((their for our, their in pairs if our.startswith("{")), "")

    def errors(self, schema: Mapping[str, Any], value: Any, *, upper: bool = False) -> list[str]:
        """What is wrong with *value*, each with its place."""
        judge = _judge(self.name, json.dumps(schema), upper=upper)
        return [_told(error) for error in judge.iter_errors(value)]


def _told(error: ValidationError) -> str:
    return f"/{'/'.join(str(part) for part in error.instance_path)}: {error.message}"


def folder() -> Path:
    return Path(os.environ.get(DATA_VARIABLE) or DATA_BESIDE)


def available() -> bool:
    """Whether this machine has the documents."""
    return all((folder() / name).is_file() for name in NAMES)


@lru_cache(maxsize=100)
def _judge(operation: str, schema: str, *, upper: bool) -> Draft4Validator:
    """What judges values by a schema; Swagger 2.0 takes its schemas from JSON Schema draft 4."""
    definitions = dict(next(one.definitions for one in _read() if one.name == operation))
    if upper and (statuses := definitions.get("FulfillmentOrderStatus")):
        definitions["FulfillmentOrderStatus"] = {**statuses, "enum": [upper_case(one) for one in statuses["enum"]]}
    return Draft4Validator({"allOf": [json.loads(schema)], "definitions": definitions}, validate_formats=True)


@lru_cache(maxsize=1)
def _read() -> tuple[Operation, ...]:
    found: list[Operation] = []
    for name in NAMES:
        document = json.loads((folder() / name).read_text(encoding="utf-8"))
        definitions = _closed(document["definitions"])
        found += (
            Operation(methods[method]["operationId"], method.upper(), path, methods[method], definitions)
            for path, methods in document["paths"].items()
            for method in _METHODS
            if method in methods
        )
    return tuple(sorted(found, key=lambda operation: "{" in operation.path))  # a fixed path goes before a template


def operations() -> tuple[Operation, ...]:
    """All operations of both documents; without the documents, the test is skipped."""
    if not available():
        pytest.skip(f"there is no folder of Amazon's API documents: {folder()}, or what {DATA_VARIABLE} names")
    return _read()


def _closed(schema: Any) -> Any:
    """*schema*, with objects that have no other members, and integers that have 32 bits, where it says so."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    if isinstance(schema.get("properties"), dict):
        closed.setdefault("additionalProperties", False)
    return {**_INT32, **closed} if schema.get("format") == "int32" else closed


def _find(method: str, path: str) -> Operation:
    for operation in operations():
        if operation.method == method and operation.key_in(path) is not None:
            return operation
    pytest.fail(f"Amazon's documents know no {method} {path}")


def check_request(method: str, path: str, body: Any = None, params: Mapping[str, Sequence[str]] = {}) -> None:
    """Raise AssertionError if the document does not allow this request.

    Args:
        path: As sent, percent-encoded, without the query.
        body: The parsed JSON; None without one.
        params: The values of each query parameter, decoded.
    """
    operation = _find(method, path)
    key = unquote(operation.key_in(path) or "")
    limits = [
        one.get("maxLength", len(key)) for one in operation.described.get("parameters", []) if one["in"] == "path"
    ]
    wrong = [f"a key of {len(key)} characters" for limit in limits if not 0 < len(key) <= limit]
    described = {one["name"]: one for one in operation.described.get("parameters", []) if one["in"] == "query"}
    wrong += [f"{name}: unknown parameter" for name in params if name not in described]
    for name, one in described.items():
        schema = {key: one[key] for key in ("type", "enum", "maxItems", "items", "format") if key in one}
        if values := params.get(name):
            wrong += [f"{name}{error}" for error in operation.errors(schema, _value(one["type"], values))]
        elif one.get("required"):
            wrong.append(f"{name}: missing")
    bodies = [one for one in operation.described.get("parameters", []) if one["in"] == "body"]
    if bodies:
        wrong += operation.errors(bodies[0]["schema"], body)
    elif body is not None:
        wrong.append("a body, where the document has none")
    assert not wrong, f"{method} {path} is not as Amazon's document says: {wrong}"


def _value(kind: str, values: Sequence[str]) -> Any:
    """The value of a query parameter; arrays are separated by commas or repeated."""
    match kind:
        case "array":
            return [value for text in values for value in text.split(",")]
        case "boolean":
            return {"true": True, "false": False}.get(values[0], values[0])
        case "integer":
            return int(values[0]) if values[0].lstrip("-").isdigit() else values[0]
    return values[0]


def check_answer(method: str, path: str, status: int, body: Any, *, upper: bool = False) -> None:
    """Raise AssertionError if the document does not allow this answer to a request.

    Args:
        body: The parsed JSON; None without one.
        upper: Whether the statuses of orders are in upper case, as the document's examples have them.
    """
    operation = _find(method, path)
    responses = operation.described["responses"]
    assert str(status) in responses, f"{method} {path}: Amazon's document knows no answer {status}"
    wrong = operation.errors(responses[str(status)]["schema"], body, upper=upper)
    assert not wrong, f"the answer {status} to {method} {path} is not as Amazon's document says: {wrong}"


class CheckedPartner:
    """A fake of Amazon whose every exchange is judged by the documents; the login is in none of them.

    Attributes:
        violations: What is wrong: answers, and requests that were accepted though the document does not allow them.
    """

    def __init__(self, partner: Partner, *, upper: bool = False) -> None:
        self._paths = operations()
        self.partner, self.effects, self.violations = partner, partner.effects, list[str]()
        self._upper = upper

    def throttled(self) -> PartnerAnswer:
        return self.partner.throttled()

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        answer = self.partner.answer(request)
        method, path = request.method, request.path
        if any(one.method == method and one.key_in(path) is not None for one in self._paths):
            try:
                content = answer.content()
                body = exact_json.loads(content) if content else None
                check_answer(method, path, answer.status, body, upper=self._upper)
                if answer.status == 200:
                    check_request(method, path, request.json(), request.params)
            except AssertionError as error:
                self.violations.append(str(error))
        return answer
