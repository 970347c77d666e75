"""The page about the platform's resources, from their models."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from crossdock.mapping.resource_types import WRITABLE_RESOURCE_TYPES, personal_members
from crossdock.values.schema_descriptions_from_docstrings import SchemaGeneratorWithDescriptions
from site_builder.markdown_text import code, escaped, paragraphs, table
from site_builder.schema_types import Types

_REFERENCE = "Reference"
_INTRODUCTION = """# Resources

The members that the map of a stream may have, by the resource that its records become. The platform documents only the
invoice; the other resources are assumptions.

Identifiers are text: `0017` stays `0017`. Money is exact from file to wire. Currencies are codes of ISO 4217, countries
those of ISO 3166-1 (alpha-2). `status` is any text, because the platform documents no words. The bundled shops write
`draft`, `open`, `processing`, `on_hold`, `partially_shipped`, `shipped`, `closed` and `cancelled` for orders.
"""


class _Part(NamedTuple):
    """A section of the page about an object that several resources have."""

    label: str
    page: str = "resources"

    @property
    def anchor(self) -> str:
        return self.label.lower()


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of the page."""
    parts: dict[str, Any] = {}
    schemas = {
        name: kind.draft.model_json_schema(schema_generator=SchemaGeneratorWithDescriptions)
        for name, kind in WRITABLE_RESOURCE_TYPES.items()
    }
    for schema in schemas.values():
        parts |= schema.get("$defs", {})
    parts.pop(_REFERENCE)
    types = Types({name: _Part(name.removesuffix("Draft")) for name in parts}, "resources")
    text = [_INTRODUCTION]
    for name, schema in schemas.items():
        text += [f"## {name}\n", _members(schema, personal_members(WRITABLE_RESOURCE_TYPES[name].draft), types)]
    for name, schema in parts.items():
        text += [f"## {name.removesuffix('Draft')}\n", paragraphs(schema.get("description", ""))]
        personal = {member for member, each in schema["properties"].items() if "x-personal" in str(each)}
        text.append(_members(schema, personal, types))
    yield "reference/resources.md", "\n".join(text)


def _members(schema: Mapping[str, Any], personal: Collection[str], types: Types) -> str:
    required = schema.get("required", ())
    rows = [
        (
            code(name),
            "another record" if f"/{_REFERENCE}'" in str(member) else types.text(member),
            "required" if name in required else "",
            " ".join(["Personal data."] * (name in personal) + [escaped(member.get("description", ""))]).strip(),
        )
        for name, member in schema["properties"].items()
    ]
    return table(("member", "values", "", "meaning"), rows)
