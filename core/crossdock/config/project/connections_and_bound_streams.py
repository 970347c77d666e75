"""Configured connections, their streams, as configured and as bound to a run, and the flow of members between them."""

from __future__ import annotations

import functools
import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from crossdock.config.http_api_connector_settings import HttpSettings
from crossdock.config.stream_configuration import (
    DeclaredStream,
    check_and_complete_declaration,
    raise_if_column_name_reserved,
    settings_and_streams_with_overrides,
    settings_model_with_streams_key,
)
from crossdock.connector import Connector, Context, Settings, Stream
from crossdock.errors import ConfigError, CrossdockError
from crossdock.mapping.resource_types import ResourceType
from crossdock.mapping.stream_declaration import PLATFORM, Destinations
from crossdock.platform.platform_config import Profile
from crossdock.reading.sources.run_context import SourceContext
from crossdock.reading.transport.http_answers_and_errors import RefusedCredentials
from crossdock.resources import Reference
from crossdock.state import Scope
from crossdock.values.author_code_errors import (
    AuthorCodeError,
    class_name_with_place,
    convert_author_errors,
    has_frame_of_author,
    is_interruption_or_engine_error,
    masked_error_text,
    masked_exception_text_with_place,
    misspelt_attribute_class_and_message,
    shortened_text,
    text_with_line_of_code,
    type_name_of_wrong_value,
)
from crossdock.values.clock import Clock
from crossdock.values.config_file import Document, unknown_key_message
from crossdock.values.record_keys import key_text, trimmed_key
from crossdock.writing.targets.target import ConnectorTarget, Target, TargetResource
from crossdock.writing.targets.target_code_guard import defect_of_target_class, wrap_target_in_guard

if TYPE_CHECKING:
    from crossdock.reading.sources.api_declaration import Api
    from crossdock.webhooks import Webhooks

_ADVICE = "the entry point names CONNECTOR = Connector(...) of the package"


def installed_connectors() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=Connector.group)}


def load_connector(name: str) -> Connector[Any]:
    found = installed_connectors()
    if name not in found:
        advice = unknown_key_message(name, list(found)).removeprefix("unknown key; ")
        hint = "install the package of the connector with pip"
        raise ConfigError(f"no connector is called {name!r}; {advice}", hint=hint, code="connector_unknown")
    try:
        connector = found[name].load()
    except BaseException as error:  # any class: the module is foreign code
        if is_interruption_or_engine_error(error):
            raise
        raise _load_error(found[name], error) from error
    if not isinstance(connector, Connector):
        raise ConfigError(
            f"{found[name].value} is {type_name_of_wrong_value(connector)} instead of a Connector",
            hint=_ADVICE,
            code="connector_invalid",
        )
    if wrong := misspelt_attribute_class_and_message(connector, lambda _, value: callable(value)):
        raise ConfigError(
            f"the connector {name!r}: {wrong[1]}",
            hint=f"fix class {class_name_with_place(wrong[0])}",
            code="connector_invalid",
        )
    return connector


def _load_error(point: EntryPoint, error: BaseException) -> ConfigError:
    package = point.dist.name if point.dist else point.value
    message = f"the connector {point.name!r} cannot be loaded"
    if isinstance(error, ImportError):
        what = f"{shortened_text(type(error).__name__)}: {masked_error_text(error)}"
        return ConfigError(
            f"{message}: {what}", hint=f"is {package} installed with its extras?", code="connector_invalid"
        )
    if isinstance(error, AttributeError) and not has_frame_of_author(error):
        return ConfigError(f"{message}: {point.module} has no {point.attr}", hint=_ADVICE, code="connector_invalid")
    return ConfigError(
        f"{message}: {masked_exception_text_with_place(error, None, '')}",
        hint="fix the code at this place",
        code="connector_invalid",
    )


_Load = Callable[[str], Connector[Any]]


@dataclass(frozen=True, slots=True)
class Connection:
    """One configured instance of a connector.

    Attributes:
        streams: All of them; of disabled ones, records are known.
        tokens: The file for tokens that a person gives access to.
        refused_credentials: What its streams and its target know of refusals of its credentials.
    """

    name: str
    connector: Connector[Any]
    settings: Settings
    streams: tuple[Stream[Any], ...]
    tokens: Path | None = None
    refused_credentials: RefusedCredentials = field(default_factory=RefusedCredentials, repr=False, compare=False)

    @property
    def namespace(self) -> str:
        return self.settings.namespace or self.name

    @property
    def source_host(self) -> str | None:
        """The host that is read; None if there is none, or if the connector does not tell it."""
        with convert_author_errors("source_host", self.name, code=self.settings, settings=self.settings):
            host: object = self.settings.source_host
        if host is None or isinstance(host, str):
            return host
        raise AuthorCodeError("source_host", f"returned {type(host).__name__} instead of a text", where=self.name)

    @property
    def address(self) -> str:
        """Where it leads, for people: a URL, a host or a folder. The form of settings allows no secret in it."""
        settings = self.settings
        if isinstance(settings, HttpSettings):
            return settings.base_url
        folder: object = getattr(settings, "path", None)
        return self.source_host or (str(folder) if isinstance(folder, Path) else "")

    def enabled_streams_with_full_names(self) -> Iterator[tuple[str, Stream[Any]]]:
        return ((f"{self.name}.{stream.name}", stream) for stream in self.streams if stream.enabled)

    def context(self, run: SourceContext) -> Context[Any]:
        declare, tokens, refused = self.connector.api, self.tokens, self.refused_credentials
        return Context(self.settings, self.name, run, _declared_api=declare, _tokens=tokens, _refused=refused)

    @property
    def api(self) -> Api | None:
        """The API that the connector declares for these settings, if it declares one."""
        from crossdock.reading.sources.api_declaration import declared_api  # noqa: PLC0415  most commands read no API

        declare = self.connector.api
        if declare is None:
            return None
        return declared_api(declare, self.settings, self.name, self.tokens, self.refused_credentials)

    def scope_of_written_records(self, stream: Stream[Any]) -> Scope:
        target, _, _ = stream.to.partition(".")
        scope = Scope(target, stream.resource_type.name, stream.namespace or self.namespace)
        return scope.contribution_scope_of_stream(f"{self.name}.{stream.name}") if stream.contributes else scope

    def bind_stream(
        self,
        name: str,
        stream: Stream[Any],
        targets: Mapping[str, Target],
        context: Context[Any],
        others: FactsOfAllStreams | None = None,
    ) -> BoundStream:
        """Bind *stream* to a run."""
        others = others or FactsOfAllStreams()
        scope = self.scope_of_written_records(stream)
        system, _, resource = (stream.reads or "").partition(".")
        read = (system, targets[system].resources[resource]) if stream.reads else None
        same = (each for each in others.scopes if (each.target, each.resource) == (scope.target, scope.resource))
        contributed = (others.contributed.get(each, ()) for each in (scope, structs.replace(scope, namespace="")))
        return BoundStream(
            name,
            self.namespace,
            stream,
            scope,
            context,
            targets[scope.target],
            read,
            namespaces_of_target_system=others.origins.get(scope.target, frozenset()),
            is_fetched_for_webhooks=stream.fetches and self._receives_webhooks,
            untrimmed_key_scopes=others.as_written,
            namespaces_of_config=None if self.settings.namespace or stream.namespace else others.namespaces,
            members_of_others=frozenset[str]().union(*contributed),
            targets_and_resources_of_config=frozenset(
                (target, kind) for target, each in targets.items() for kind in each.resources
            ),
            namespaces_of_same_resource=frozenset(each.whole_record_scope.namespace for each in same),
        )

    @property
    def webhooks(self) -> Webhooks[Any] | None:
        declare = self.connector.webhooks
        if declare is None:
            return None
        from crossdock.webhooks import Webhooks  # noqa: PLC0415  few connectors declare them

        with convert_author_errors("webhooks", self.name, code=declare, settings=self.settings):
            made: object = declare(self.settings)
        if made is None:
            return made
        if isinstance(made, Webhooks):
            if wrong := misspelt_attribute_class_and_message(made, lambda *_: True):
                hint = f"fix class {class_name_with_place(wrong[0])}"
                raise ConfigError(f"{self.name}: webhooks: {wrong[1]}", hint=hint, code="connector_invalid")
            return made
        raise _wrong_result_error(self.connector, "webhooks", made, "Webhooks")

    @property
    def _receives_webhooks(self) -> bool:
        """Whether it declares webhooks. A failing declaration is an error of ``listen``, not of a run."""
        try:
            return self.webhooks is not None
        except CrossdockError:
            return False

    def target(self, account: str, clock: Clock) -> ConnectorTarget | None:
        """Return the target that the connection is, or None. *account* is the one whose data it changes."""
        connector = self.connector
        if connector.target is None:
            return None
        with convert_author_errors("target", self.name, code=connector.target, settings=self.settings):
            made = connector.target(self.settings)
            if made is None:
                return None
            made.connect(self.name, account, functools.partial(_required_api, self), clock)
        return wrap_target_in_guard(made, self.settings)


def cursor_version(stream: Stream[Any], settings: Settings) -> str:
    """Return the version under which a cursor of *stream* is stored: that of the stream, and which API is read.

    What another API, such as that of a test system, has changed since a time is not what this one has.
    """
    if not isinstance(settings, HttpSettings):
        return stream.cursor_version
    address = hashlib.sha256(settings.base_url.rstrip("/").encode()).hexdigest()[:16]
    return f"{stream.cursor_version}:{address}"


class FactsOfAllStreams(Struct, frozen=True):
    """What a stream must know of all streams of the config.

    Attributes:
        origins: The namespaces of the records that are read from each target.
        as_written: The scopes whose keys are not trimmed.
        namespaces: Returns the namespaces that the config knows.
        contributed: See `members_contributed_by_scope`.
        scopes: What they write.
    """

    origins: Mapping[str, frozenset[str]] = {}
    as_written: frozenset[Scope] = frozenset()
    namespaces: Callable[[], frozenset[str]] | None = None
    contributed: Mapping[Scope, frozenset[str]] = {}
    scopes: frozenset[Scope] = frozenset()


class BoundStream(Struct, frozen=True):
    """A stream of a connection, in a run.

    Attributes:
        read_target_and_type: Those of the records that it reads, if they are records of a target.
        namespaces_of_target_system: Those of records of the system that it writes to.
        untrimmed_key_scopes: The scopes whose keys are not trimmed.
        namespaces_of_config: Returns those that the config knows; None if it declares the one of the stream.
        members_of_others: Those of its records that other streams contribute.
        targets_and_resources_of_config: What any stream may write to.
        namespaces_of_same_resource: Those in which streams write to the same resource of the target.
    """

    name: str
    connection_namespace: str
    stream: Stream[Any]
    scope: Scope
    context: Context[Any]
    target: Target
    read_target_and_type: tuple[str, ResourceType] | None = None
    namespaces_of_target_system: frozenset[str] = frozenset()
    is_fetched_for_webhooks: bool = False
    untrimmed_key_scopes: frozenset[Scope] = frozenset()
    namespaces_of_config: Callable[[], frozenset[str]] | None = None
    members_of_others: frozenset[str] = frozenset()
    targets_and_resources_of_config: frozenset[tuple[str, str]] = frozenset()
    namespaces_of_same_resource: frozenset[str] = frozenset()

    def members_of_own(self, payload: dict[str, Any], mapped: Collection[str] = ()) -> dict[str, Any]:
        """Return what the stream still writes of an accepted *payload*: those that it has given up are left as they
        are.

        A contribution never writes other members than those that it declares. A stream of whole records has given up
        those that others contribute, unless they are still *mapped*.
        """
        if own := self.stream.contributes:
            return {name: value for name, value in payload.items() if name in own}
        given_up = self.members_of_others.difference(mapped)
        return {name: value for name, value in payload.items() if name not in given_up} if given_up else payload

    @property
    def cursor_version(self) -> str:
        return cursor_version(self.stream, self.context.settings)

    @property
    def namespace(self) -> str:
        return self.scope.whole_record_scope.namespace

    @property
    def resource_type(self) -> ResourceType:
        return self.stream.resource_type

    @property
    def records_text(self) -> str:
        """Its records in words, with the target that holds them: ``orders of wms in depot``."""
        place = "on the platform" if self.target.name == PLATFORM else f"in {self.target.name}"
        return f"{self.resource_type.name} of {self.namespace} {place}"

    def namespace_and_key_of_reference(self, reference: Reference) -> tuple[str, str]:
        """Return the namespace of the referenced record, and its record key."""
        own = self.scope.whole_record_scope
        default = self.namespace if reference.resource == own.resource else self.connection_namespace
        scope = structs.replace(own, resource=reference.resource, namespace=reference.namespace or default)
        key = key_text(reference.key_parts)
        if scope not in self.untrimmed_key_scopes:
            key = trimmed_key(key)
        return scope.namespace, self.stream.earlier_keys.get(key, key) if scope == own else key


def _required_api(connection: Connection) -> Api:
    api = connection.api
    assert api is not None  # a target has one
    return api


def guard_author_code_of_stream(bound: BoundStream) -> AbstractContextManager[None]:
    """Guard uses of *bound* by the engine in which the code of the stream may run, such as its facts."""
    return convert_author_errors(
        "code of the stream", bound.name, code=bound.stream, settings=bound.context.settings, only_authors=True
    )


def load_connections(
    document: Document, sections: Mapping[str, Mapping[str, Any]], platform: Profile
) -> tuple[Connection, ...]:
    """Load the connections of a config file. No two streams may write the same records."""
    load = functools.cache(load_connector)  # finding a connector searches all installed packages
    targets = _declared_resources_by_target(document, sections, load)
    connections = tuple(
        _load_connection(document, name, data, targets, platform, load) for name, data in sections.items()
    )
    for connection, message, hint in write_conflict_messages_and_hints(connections):
        raise ConfigError(
            message, where=document.where(("connections", connection.name)), hint=hint, code="config_invalid"
        )
    _refuse_two_way_members(document, connections)
    return connections


def write_conflict_messages_and_hints(connections: Iterable[Connection]) -> Iterator[tuple[Connection, str, str]]:
    """Yield each stream that writes what another one writes: its connection, the error and advice."""
    writers: dict[Scope, str] = {}
    contributors: dict[Scope, dict[str, str]] = {}
    for connection in connections:
        for name, stream in connection.enabled_streams_with_full_names():
            scope, kind = connection.scope_of_written_records(stream), stream.resource_type
            if isinstance(kind, TargetResource) and kind.acknowledges:
                continue  # it writes no records
            if (other := writers.setdefault(scope, name)) != name:
                message = f"{name} and {other} both write {scope.resource} in namespace {scope.namespace!r}"
                yield connection, message, "set namespace in one of the streams or connections, or merge the streams"
            if (
                clash := _member_written_twice_error(
                    stream, name, contributors.setdefault(scope.whole_record_scope, {})
                )
            ) is not None:
                yield connection, clash, "let one of them write it"


@contextmanager
def _convert_author_errors_on_load(
    document: Document, name: str, method: str, code: object, settings: object = None, *, only_authors: bool = True
) -> Iterator[None]:
    """Guard the code of a connector while the config is loaded: a failure is a ConfigError at the connection."""
    try:
        with convert_author_errors(method, name, code=code, settings=settings, only_authors=only_authors):
            yield
    except AuthorCodeError as error:
        where = document.where(("connections", name))
        raise ConfigError(
            f"connections.{name}: {error.message}", where=where, hint=error.hint, code=error.code
        ) from error


def _refuse_two_way_members(document: Document, connections: Sequence[Connection]) -> None:
    """Refuse a member that two streams write from each other, as far as a config maps their members."""
    flows = [
        MemberFlow(
            name,
            stream.reads,
            _written_target_and_resource(stream),
            stream.mapped_members,
            contributes=bool(stream.contributes),
        )
        for connection in connections
        for name, stream in connection.enabled_streams_with_full_names()
        if stream.reads is not None and isinstance(stream, DeclaredStream)
    ]
    if (clash := two_way_member_error(flows)) is not None:
        hint = "choose the system that owns the member, and let only the stream that reads this system map it"
        raise ConfigError(clash, where=document.where(("connections",)), hint=hint, code="config_invalid")


def _written_target_and_resource(stream: Stream[Any]) -> str:
    """Return what a stream writes, in the form of ``reads`` of another stream."""
    return f"{PLATFORM}.{stream.resource_type.name}" if stream.to == PLATFORM else stream.to


def members_contributed_by_scope(connections: Iterable[Connection]) -> dict[Scope, frozenset[str]]:
    """Return the members that streams contribute to the records of each scope; without a namespace if they may be of
    any.
    """
    found = defaultdict[Scope, set[str]](set)
    for connection in connections:
        for stream in connection.streams:
            if stream.contributes:
                scope = connection.scope_of_written_records(stream).whole_record_scope
                scope = scope if stream.matches == "key" else structs.replace(scope, namespace="")
                found[scope].update(stream.contributes)
    return {scope: frozenset(members) for scope, members in found.items()}


def _member_written_twice_error(stream: Stream[Any], name: str, written: dict[str, str]) -> str | None:
    """Return the error if another stream writes a member that *stream* also writes, or None. Completes *written*.

    Code may make any member, so those of a stream that creates whole records are known from a config only.
    """
    config = stream.mapped_members if isinstance(stream, DeclaredStream) else ()
    for member in stream.contributes or config:
        if (other := written.setdefault(member, name)) != name:
            return f"{name} and {other} both write {member} of {stream.resource_type.name}"
    return None


def _declared_resources_by_target(
    document: Document, sections: Mapping[str, Mapping[str, Any]], load: _Load
) -> Destinations:
    found: dict[str, Mapping[str, ResourceType]] = {}
    for name, data in sections.items():
        kind = data.get("kind")
        connector: Connector[Any] | None = None
        with suppress(ConfigError):  # reported with the connection
            connector = load(kind) if isinstance(kind, str) else None
        if connector is not None and connector.target is not None:
            with _convert_author_errors_on_load(document, name, "settings", connector.settings):
                settings = document.validated_as_model(
                    settings_model_with_streams_key(connector.settings), data, ("connections", name)
                )
            with _convert_author_errors_on_load(
                document, name, "target", connector.target, settings, only_authors=False
            ):
                made = connector.target(settings)
            with _convert_author_errors_on_load(document, name, "target", connector.target, settings):
                if made is not None:
                    found[name] = _type_checked_target_resources(connector, made)
    return found


def _type_checked_target_resources(connector: Connector[Any], made: object) -> Mapping[str, ResourceType]:
    if not isinstance(made, ConnectorTarget):
        raise _wrong_result_error(connector, "target", made, "an ApiTarget")
    resources: object = getattr(made, "resources", None)
    if not (isinstance(resources, Mapping) and all(isinstance(each, TargetResource) for each in resources.values())):
        raise _wrong_result_error(connector, "target", made, "a target whose resources are TargetResource by name")
    if fault := defect_of_target_class(made):
        raise AuthorCodeError("target", f"made an object that cannot be used: {fault}")
    return resources


def _type_checked_streams(connector: Connector[Any], settings: Settings) -> tuple[Stream[Any], ...]:
    made: object = connector.streams(settings)
    streams = tuple(made) if isinstance(made, Iterable) else (made,)
    if wrong := [each for each in streams if not isinstance(each, Stream)]:
        raise _wrong_result_error(connector, "streams", wrong[0], "a tuple of streams such as (Products(),)")
    return streams


def _wrong_result_error(connector: Connector[Any], method: str, made: object, expected: str) -> AuthorCodeError:
    place = text_with_line_of_code(getattr(connector, method), method)
    return AuthorCodeError(method, f"returned {type_name_of_wrong_value(made)} instead of {expected}{place}")


def _stream_name(stream: Stream[Any]) -> str:
    return stream.name


def _load_connection(
    document: Document, name: str, data: Mapping[str, Any], targets: Destinations, platform: Profile, load: _Load
) -> Connection:
    section, kind = ("connections", name), ("connections", name, "kind")
    if "kind" not in data:
        installed = ", ".join(sorted(installed_connectors()))
        message = f"connections.{name}: kind is missing; installed: {installed}"
        raise ConfigError(message, where=document.where(section), code="config_invalid")
    if not isinstance(data["kind"], str):
        raise ConfigError(f"connections.{name}.kind: must be text", where=document.where(kind), code="config_invalid")
    try:
        connector = load(data["kind"])
    except ConfigError as error:
        raise ConfigError(error.message, where=document.where(kind), hint=error.hint, code=error.code) from error
    with _convert_author_errors_on_load(document, name, "settings", connector.settings):
        settings = document.validated_as_model(
            settings_model_with_streams_key(connector.settings), data, section, targets=targets, platform=platform
        )
    try:
        with _convert_author_errors_on_load(document, name, "streams", connector.streams, settings, only_authors=False):
            streams = _type_checked_streams(connector, settings)
        with _convert_author_errors_on_load(document, name, "streams", connector.streams, settings):
            for stream in streams:
                check_and_complete_declaration(f"{name}.{getattr(stream, 'name', '')}", stream, targets)
                _ = stream.resource_type, stream.fetches, stream.finds_deleted  # an author may compute them
        if doubled := next((each for each, number in Counter(map(_stream_name, streams)).items() if number > 1), None):
            raise ConfigError(
                f"{name}.{doubled}: the connector has two streams of this name, which share cursor and files",
                code="connector_invalid",
            )
    except ConfigError as error:
        raise ConfigError(error.message, where=document.where(section), hint=error.hint, code=error.code) from error
    settings, streams = settings_and_streams_with_overrides(document, section, data, settings, streams)
    if settings.namespace not in {None, name}:
        streams = tuple(_with_namespace(stream, settings.namespace) for stream in streams)
    for stream in streams:
        place = document.where((*section, "streams", stream.name))
        raise_if_column_name_reserved(f"{name}.{stream.name}", stream, place)
    return Connection(name, connector, settings, streams)


def _with_namespace(stream: Stream[Any], namespace: str | None) -> Stream[Any]:
    """Return *stream* with its namespace, which its version depends on: under another one, nothing was sent."""
    if stream.namespace is not None:
        return stream
    changed = copy(stream)
    changed.namespace = namespace
    return changed


class MemberFlow(Struct, frozen=True):
    """The members that a stream copies from records of one system, such as ``platform.order``, to those of another."""

    stream: str
    read: str
    written: str
    members: Mapping[str, Sequence[str]]
    contributes: bool


def two_way_member_error(flows: Iterable[MemberFlow]) -> str | None:
    """Return the error if two streams write a member from each other, or None.

    Streams that create whole records in both directions are not such a pair: each record was created on one side.
    A member that flows both ways would restore an older value, because neither side shows who has changed it last.
    """
    for flow, other in combinations(flows, 2):
        is_pair = (flow.read, flow.written) == (other.written, other.read)
        if is_pair and (flow.contributes or other.contributes):
            for there, here in _members_flowing_both_ways(flow, other):
                written = f"{there} of {flow.written}, and {here} of {flow.read}"
                return f"{flow.stream} and {other.stream} write {written}, from each other"
    return None


def _members_flowing_both_ways(flow: MemberFlow, other: MemberFlow) -> Iterator[tuple[str, str]]:
    for member, columns in flow.members.items():
        for back in dict.fromkeys(column.partition(".")[0] for column in columns):
            if any(column.partition(".")[0] == member for column in other.members.get(back, ())):
                yield member, back
