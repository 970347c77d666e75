"""JSON Schemas whose descriptions are the docstrings below a model's fields, read from the source when needed.

pydantic would read them when each model is defined, which would cost each command a fifth of a second.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema


class SchemaGeneratorWithDescriptions(GenerateJsonSchema):
    """A ``schema_generator`` for pydantic that adds the descriptions."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        written = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        descriptions = docstrings_by_model_field(model)
        for name, field in model.model_fields.items():
            member = written.get("properties", {}).get(field.alias or name)
            if member is not None and name in descriptions:
                member.setdefault("description", descriptions[name])
        return written


def docstrings_by_model_field(model: type[BaseModel]) -> dict[str, str]:
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if base is BaseModel or not model.model_fields.keys() & inspect.get_annotations(base).keys():
            continue
        origin = getattr(base, "__pydantic_generic_metadata__", {}).get("origin") or base
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(origin))).body
        assert isinstance(definition, ast.ClassDef)
        found |= docstring_by_class_member(definition)
    return found


def docstring_by_class_member(definition: ast.ClassDef) -> dict[str, str]:
    """Return the docstrings below the annotated members of a class, by member."""
    found: dict[str, str] = {}
    for field, below in pairwise(definition.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
    return found
