"""Pages about the keys of a config file, from its JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crossdock.config.project import connections_and_bound_streams
from crossdock.config.project.config_schema import config_schema
from site_builder.config_page_list import FIRST_KINDS, PAGES, Page, Root
from site_builder.markdown_text import code, escaped, paragraphs, table
from site_builder.schema_types import Types, default_text, kind_of, references

FOLDER = "reference/config"
Schema = Mapping[str, Any]


_MAP = "[form](map.md), by member, or text"  # the schema has the members by resource, and not here


@dataclass(frozen=True)
class Section:
    """A definition of the JSON Schema on the page that explains it.

    Attributes:
        path: Where it stands in a config file.
        selector: What tells it from others in its place, such as its kind.
        around: That of the section around it.
        anchor: The path with the selectors in it.
    """

    page: str
    path: str
    selector: str
    around: str
    anchor: str

    @property
    def label(self) -> str:
        return self.selector or self.path

    def below(self, key: str, selector: str) -> Section:
        return _section(self.page, f"{self.path}.{key}", selector, self.selector or self.around, f"{self.anchor}.{key}")


def _section(page: str, path: str, selector: str, around: str = "", anchor: str = "") -> Section:
    return Section(page, path, selector, around, ".".join(filter(None, (anchor or path, selector))))


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each page."""
    kinds = [
        *FIRST_KINDS,
        *(name for name in connections_and_bound_streams.installed_connectors() if name not in FIRST_KINDS),
    ]
    settings = {name: connections_and_bound_streams.load_connector(name).settings for name in kinds}
    yield from _Reference(config_schema(settings), {name: each.__name__ for name, each in settings.items()}).pages()


class _Reference:
    def __init__(self, schema: Schema, kinds: Mapping[str, str]) -> None:
        self.schema, self.kinds, self.definitions = schema, kinds, schema["$defs"]
        connections = [
            Page(f"connections_{kind}", f"Connection: {kind}", "", (Root(each, "connections.NAME"),))
            for kind, each in self.kinds.items()
        ]
        self.all_pages = (*PAGES[:1], *connections, *PAGES[1:])

    def pages(self) -> Iterator[tuple[str, str]]:
        yield f"{FOLDER}/index.md", self._index()
        yield f"{FOLDER}/connections.md", self._connections()
        for page in self.all_pages:
            parts = [f"# {page.title}\n", self._about(page)]
            parts += [self._section(name) for name, each in self.sections.items() if each.page == page.file]
            yield f"{FOLDER}/{page.file}.md", "\n".join(parts)

    @cached_property
    def sections(self) -> Mapping[str, Section]:
        """Each definition of the schema by its name, on the first page that uses it unless it begins another page."""
        found: dict[str, Section] = {}
        for page in self.all_pages:
            names = [root.definition for root in page.roots]
            for root in page.roots:
                found[root.definition] = _section(page.file, root.path, self._selector(root.definition, names))
        for page in self.all_pages:
            waiting = [root.definition for root in page.roots]
            while waiting:
                name = waiting.pop(0)
                for key, below, names in self._below(name):
                    if below not in found:
                        found[below] = found[name].below(key, self._selector(below, names))
                        waiting.append(below)
        return found

    def _below(self, name: str) -> Iterator[tuple[str, str, list[str]]]:
        """Yield the sections below a section: their keys, their names, and those of their alternatives."""
        for key, member in self.definitions[name]["properties"].items():
            names = references(member)
            place = f"{key}.NAME" if "NAME" in _levels(member) else key
            yield from ((place, each, names) for each in names)

    def _selector(self, name: str, alternatives: Sequence[str]) -> str:
        """Return what tells a section from its *alternatives*: its kind, or a key that it requires and they lack."""
        others = [self.definitions[each] for each in alternatives if each != name]
        if not others:
            return ""
        theirs = {key for each in others for key in each["properties"]}
        own = [key for key in self.definitions[name].get("required", ()) if key not in theirs]
        return kind_of(self.definitions[name]) or (own[0] if own else "")

    def _about(self, page: Page) -> str:
        if page.about:
            return page.about + "\n"
        return (
            f"The keys of a connection of kind `{page.file.removeprefix('connections_')}`, below `connections.NAME`.\n"
        )

    def _section(self, name: str) -> str:
        section, definition = self.sections[name], self.definitions[name]
        title = code(section.path) + _selection(section, definition)
        types = Types(self.sections, section.page)
        rows = [_row(section, key, member, definition, types) for key, member in definition["properties"].items()]
        keys = _key_table(rows)
        about = paragraphs(definition.get("description", ""))
        return f"## {title} {{ #{section.anchor} }}\n\n{about}\n{keys}"

    def _index(self) -> str:
        definition = _section("index", "", "")
        types = Types(self.sections, "index")
        rows = [_row(definition, key, member, self.schema, types) for key, member in self.schema["properties"].items()]
        pages = [f"- [{page.title}]({page.file}.md)" for page in self.all_pages]
        pages.insert(1, "- [Connections](connections.md)")
        return "\n".join(
            (
                "# Config keys\n",
                "Each key of a config file. NAME is a name of your choice. Keys that begin with `x-` are ignored.\n",
                *pages,
                "\n## Sections at the top\n",
                _key_table(rows),
            )
        )

    def _connections(self) -> str:
        settings = [self.definitions[name] for name in self.kinds.values()]
        rows = [
            (
                f"[`{kind}`](connections_{kind}.md)",
                escaped(self.definitions[name].get("description", "").split("\n\n")[0]),
            )
            for kind, name in self.kinds.items()
        ]
        common = set.intersection(*(set(each["properties"]) for each in settings)) - {"kind"}
        keys = ", ".join(code(key) for key in settings[0]["properties"] if key in common)
        return "\n".join(
            (
                "# Connections\n",
                "The kinds of connections, below `connections`: one of these, or that of a connector of your own.\n",
                table(("kind", "reads"), rows),
                f"Every connection has the keys {keys}.\n",
            )
        )


def _key_table(rows: Iterable[tuple[str, str, str, str] | None]) -> str:
    return table(("key", "values", "default", "meaning"), [row for row in rows if row is not None], style="keys")


def _levels(member: Schema) -> str:
    """Return the word NAME if the sections of *member* have names that the author chooses."""
    if member.get("type") == "object" and "$ref" not in member:
        return "NAME"
    branches = [*member.get("anyOf", ()), *member.get("oneOf", ())]
    return "".join(_levels(each) for each in branches if references(each))


def _selection(section: Section, definition: Schema) -> str:
    if kind := kind_of(definition):
        return f" of kind {code(kind)}"
    if section.selector:
        return f" with {code(section.selector)}"
    return f" ({section.around})" if section.around else ""


def _row(
    section: Section, key: str, member: Schema, definition: Schema, types: Types
) -> tuple[str, str, str, str] | None:
    if key == "kind" and "const" in member:
        return None
    anchor = f"{section.anchor}.{key}".strip(".")
    name = code(key) if types.is_section(anchor) else f"{code(key)}{{ #{anchor} }}"
    default = "required" if key in definition.get("required", ()) else default_text(member)
    values = _MAP if key == "map" else types.text(member)
    return name, values, default, escaped(member.get("description", ""))
