from __future__ import annotations

from typing import Any

from jsonschema_rs import Draft202012Validator
from tests.unit.sandbox.raw import METHODS

from crossdock.sandbox import openapi_document, openapi_schemas


def test_every_example_fits_its_schema() -> None:
    """The examples of schemas, bodies and events are valid, and each object schema has one."""
    document = openapi_document.build_openapi_document()
    bodies = [schema["examples"][0] for schema in document["components"]["schemas"].values()]
    assert all(fits(name, body) for name, body in zip(document["components"]["schemas"], bodies, strict=True))
    items = [*document["paths"].values(), *document["webhooks"].values()]
    operations = [item[method] for item in items for method in METHODS if method in item]
    contents = [each for one in operations for each in one.get("requestBody", {"content": {}})["content"].values()]
    assert len(contents) == 8 + 8 + 1 + 3  # creations, changes, movements, events
    assert all(fits(each["schema"]["$ref"].rpartition("/")[2], each["example"]) for each in contents)


def fits(name: str, body: Any) -> bool:
    schema = openapi_schemas.standalone_schema(name, "http://sandbox.test")
    assert schema is not None
    return bool(Draft202012Validator(schema).is_valid(body))
