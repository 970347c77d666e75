"""JSON Schemas whose descriptions are the docstrings that stand below a model's fields.

They are read from the source when a schema is written. pydantic can do that for every model as soon as it is defined,
which costs each command a fifth of a second.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema


class DocumentedModel(GenerateJsonSchema):
    """To be given to pydantic as its ``schema_generator``."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        written = super().model_schema(schema)
        kind: type[BaseModel] = schema["cls"]
        told = field_docstrings(kind)
        for name, field in kind.model_fields.items():
            shown = written.get("properties", {}).get(field.alias or name)
            if shown is not None and name in told:
                shown.setdefault("description", told[name])
        return written


def field_docstrings(kind: type[BaseModel]) -> dict[str, str]:
    """The docstring below each field of *kind* and of the models that it builds on, by the field's name."""
    told: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not issubclass(base, BaseModel) or base is BaseModel:
            continue
        origin = base.__pydantic_generic_metadata__["origin"] or base
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(origin))).body
        assert isinstance(definition, ast.ClassDef)
        for field, below in pairwise(definition.body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
                value = below.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    told[field.target.id] = inspect.cleandoc(value.value)
    return told
