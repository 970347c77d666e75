"""The namespaces that a config knows: those in which its streams write, and others that it names."""

from __future__ import annotations

from msgspec import Struct

from crossdock.config.project.project import Project
from crossdock.values.json_paths import texts_within


class KnownNamespaces(Struct, frozen=True):
    """*written* are those in which streams write or refer by default, and *named* are all texts of connections.

    Settings of connectors may name a namespace of records that another program has delivered, under any key.
    """

    written: frozenset[str]
    named: frozenset[str] = frozenset()

    def __contains__(self, namespace: str) -> bool:
        return namespace in self.written or namespace in self.named


def known_namespaces(project: Project) -> KnownNamespaces:
    """Return the namespaces of *project*, also of streams that are switched off: they keep what they have delivered."""
    written = {
        namespace
        for connection in project.connections
        for stream in connection.streams
        for namespace in (connection.namespace, stream.namespace or connection.namespace)
    }
    sections = project.config_sections.connections if project.config_sections is not None else {}
    settings = (connection.settings.model_dump(warnings=False) for connection in project.connections)
    return KnownNamespaces(frozenset(written), frozenset(texts_within([sections, *settings])))
