"""Configured connections, and their streams: as configured and as bound to a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from crossdock import registry
from crossdock.config_file import Document
from crossdock.connector import Connector, Context, Settings, Stream
from crossdock.errors import ConfigError
from crossdock.project.stream_declarations import check_declaration
from crossdock.project.stream_overrides import configurable, overridden
from crossdock.sources.source_context import SourceContext
from crossdock.state import Scope


@dataclass(frozen=True, slots=True)
class Connection:
    """One configured instance of a connector."""

    name: str
    connector: Connector[Any]
    settings: Settings
    streams: tuple[Stream[Any], ...]

    @property
    def namespace(self) -> str:
        return self.settings.namespace or self.name

    def named_streams(self) -> Iterator[tuple[str, Stream[Any]]]:
        """Each stream with its full name, ``CONNECTION.STREAM``."""
        return ((f"{self.name}.{stream.name}", stream) for stream in self.streams)

    def context(self, run: SourceContext) -> Context[Any]:
        """What the streams of the connection share in *run*."""
        return Context(self.settings, self.name, run, _declared_api=self.connector.api)

    def bind(self, name: str, stream: Stream[Any], target: str, context: Context[Any]) -> BoundStream:
        """*stream*, whose full name is *name*, in a run."""
        namespace = stream.namespace or self.namespace
        return BoundStream(name, namespace, self.namespace, stream, Scope(target, stream.resource, namespace), context)


@dataclass(frozen=True, slots=True)
class BoundStream:
    """A stream of a connection, in a run.

    Attributes:
        name: ``CONNECTION.STREAM``.
        namespace: Of its own record keys.
        connection_namespace: Of the connection.
    """

    name: str
    namespace: str
    connection_namespace: str
    stream: Stream[Any]
    scope: Scope
    context: Context[Any]

    def namespace_of(self, resource: str) -> str:
        """The namespace of a reference to *resource* that names none."""
        return self.namespace if resource == self.stream.resource else self.connection_namespace


def load_connections(document: Document, sections: Mapping[str, Mapping[str, Any]]) -> tuple[Connection, ...]:
    """The connections of a config file.

    Raises:
        ConfigError: If a connector, its settings or its streams are invalid, or two streams write the same records.
    """
    connections = tuple(_connection(document, name, data) for name, data in sections.items())
    writers: dict[tuple[str, str], str] = {}
    for connection in connections:
        where = document.where(("connections", connection.name))
        for name, stream in connection.named_streams():
            written = (stream.resource, stream.namespace or connection.namespace)
            if (other := writers.setdefault(written, name)) != name:
                raise ConfigError(
                    f"{name} and {other} both write {stream.resource} in namespace {written[1]!r}",
                    where=where,
                    hint="set namespace in one of the streams or connections, or merge the streams",
                )
    return connections


def _connection(document: Document, name: str, data: Mapping[str, Any]) -> Connection:
    section, kind = ("connections", name), ("connections", name, "kind")
    if "kind" not in data:
        installed = ", ".join(sorted(registry.available()))
        message = f"connections.{name}: kind is missing; installed: {installed}"
        raise ConfigError(message, where=document.where(section))
    if not isinstance(data["kind"], str):
        raise ConfigError(f"connections.{name}.kind: must be text", where=document.where(kind))
    try:
        connector = registry.load(data["kind"])
    except ConfigError as error:
        raise ConfigError(error.message, where=document.where(kind), hint=error.hint) from error
    settings = document.check(configurable(connector.settings), data, section)
    try:
        streams = tuple(connector.streams(settings))
        for stream in streams:
            check_declaration(f"{name}.{getattr(stream, 'name', '')}", stream)
    except ConfigError as error:
        raise ConfigError(error.message, where=document.where(section), hint=error.hint) from error
    settings, streams = overridden(document, section, data, settings, streams)
    return Connection(name, connector, settings, streams)
