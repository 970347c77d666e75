"""A config file, whole: the platform, the state, the connections and their streams in the order they run."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from crossdock import config_file, registry
from crossdock.clock import Clock
from crossdock.config_file import NAME_FORM, ConfigModel, ConfigPath, Document, Name
from crossdock.connector import Connector, Context, Settings, Stream, no_removal
from crossdock.delivery.masking import Masks
from crossdock.errors import ConfigError
from crossdock.pacing.bucket_store import BucketState, BucketStore, MemoryStore
from crossdock.platform.profile import Profile
from crossdock.resources import RESOURCES
from crossdock.scheduling.job_config import JobConfig, ordered
from crossdock.scheduling.times_and_durations import is_duration, span
from crossdock.sources.source_context import SourceContext
from crossdock.state import Pin, Scope, SharedBucket, State, StateUrl, Transaction, create, parse_url
from crossdock.state.upkeep.expiry import MAX_AGE, Ages
from crossdock.yaml_reader import Place

KEPT = "90d"
LEAST_KEPT = timedelta(days=7)


def _retention(value: Any) -> str:
    if value is False or value == "off":  # YAML itself makes false of off
        return "off"
    if not is_duration(value, "d") or not LEAST_KEPT <= span(value) <= MAX_AGE:
        raise ValueError(f"{str(value)!r} is neither a number of days from 7d to {MAX_AGE.days}d nor off")
    return str(value)


_KEPT_SCHEMA = {"anyOf": [{"type": "string", "pattern": "^([1-9][0-9]{0,4})d$"}, {"enum": ["off", False]}]}
Retention = Annotated[str, BeforeValidator(_retention), WithJsonSchema(_KEPT_SCHEMA)]


class ConfigFile(ConfigModel):
    """Everything a config file may hold."""

    platform: Profile
    state: str = "sqlite:///crossdock.db"
    """``sqlite:///FILE``, relative to this file, or ``postgresql://user@host/database``."""
    spool: ConfigPath | None = None
    """Folder where files are kept while they are worked on; beside a SQLite state without it."""
    connections: Annotated[Mapping[Name, Mapping[str, Any]], Field(min_length=1)]
    retention: Retention = KEPT
    """How long what nothing depends on any more stays in the state, 7d to 36525d: settled operations, the data of dead
    letters, and what is known of runs, nights, files and snapshots. ``crossdock schedule`` does so unless ``off``."""
    jobs: Mapping[Name, JobConfig] = {}
    """What ``crossdock schedule`` runs, and when."""
    notify: Mapping[str, Any] | None = None
    """Whom ``crossdock schedule`` tells how a night went: ``when``, ``webhook``, ``email``."""

    @model_validator(mode="after")
    def _jobs_have_an_order(self) -> Self:
        ordered(self.jobs)
        return self


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


@dataclass(frozen=True, slots=True)
class BoundStream:
    """A stream of a connection, in a run.

    Attributes:
        name: ``CONNECTION.STREAM``.
    """

    name: str
    namespace: str
    stream: Stream[Any]
    scope: Scope
    context: Context[Any]


@dataclass(frozen=True, slots=True)
class Project:
    """A loaded config file. Loading it reaches nothing and reads no secret."""

    path: Path
    platform: Profile
    state_url: StateUrl
    spool: Path
    connections: tuple[Connection, ...]
    jobs: Mapping[str, JobConfig] = field(default_factory=dict)
    retention: timedelta | None = None

    @property
    def pin(self) -> Pin:
        return Pin(self.platform.base_url, self.platform.tenant)

    @property
    def masks(self) -> Masks:
        """What is personal in the streams."""
        named = ((f"{c.name}.{stream.name}", stream.personal) for c in self.connections for stream in c.streams)
        return Masks({name: frozenset(members) for name, members in named})

    @property
    def adopting(self) -> frozenset[str]:
        """The names of the streams that take over what the platform has under our name for it."""
        named = ((f"{c.name}.{stream.name}", stream.adopt) for c in self.connections for stream in c.streams)
        return frozenset(name for name, adopt in named if adopt == "external_id")

    def ages(self, older_than: timedelta, now: datetime) -> Ages:
        """What of the state is *older_than* that, and protects the platform's idempotency keys no longer."""
        return Ages.at(now, older_than, keys_kept_s=self.platform.idempotency.kept_s)

    def init(self) -> bool:
        """Make or upgrade the state; see `crossdock.state.create`."""
        return create(self.state_url, self.pin)

    def open_state(self, *, read_only: bool = False) -> State:
        keys = self.spool.with_name(f"{self.spool.name.removesuffix('.spool')}.keys")
        return State(self.state_url, self.pin, read_only=read_only, keys=keys)

    @contextmanager
    def alone(self, *, restored: bool = False) -> Iterator[State]:
        """The state, held against all other runs; see `crossdock.state.State.exclusive`."""
        with closing(self.open_state()) as state, state.exclusive(this_process(), restored=restored):
            yield state

    @contextmanager
    def look(self) -> Iterator[Transaction]:
        """One look into the state, which cannot be written meanwhile."""
        with closing(self.open_state(read_only=True)) as state, state.look() as tx:
            yield tx

    @contextmanager
    def bucket(self, clock: Clock, earlier: BucketState | None) -> Iterator[BucketStore]:
        """The platform's token bucket: of this process, or the one that the config says to share.

        Args:
            earlier: What the last run left of it.

        Raises:
            ConfigError: If the shared one has no database address.
            StateError: If its database cannot be used.
        """
        rate = self.platform.rate
        if rate.shared is None:
            estimate, now = rate.estimate(earlier.estimate if earlier else None), clock.now().timestamp()
            bucket_state = earlier.carried_over(now, estimate) if earlier else BucketState.of(estimate)
            yield MemoryStore(clock, bucket_state)
            return
        url = parse_url(rate.shared, self.path.parent, where="platform.rate.shared")
        name = f"{self.platform.tenant} at {self.platform.base_url}"
        with closing(SharedBucket(url, clock, name, rate.estimate)) as store:
            yield store

    def bind(self, wanted: set[str], *, target: str, place: SourceContext) -> list[BoundStream]:
        """The streams of these names, parents first."""
        bound = []
        for connection in self.connections:
            context: Context[Any] = Context(connection.settings, connection.name, place)
            for stream in connection.streams:
                name = f"{connection.name}.{stream.name}"
                if name in wanted:
                    scope = Scope(target, stream.resource, connection.namespace)
                    bound.append(BoundStream(name, connection.namespace, stream, scope, context))
        order = list(RESOURCES)
        return sorted(bound, key=lambda item: order.index(item.stream.resource))

    def connections_of(self, job: str) -> set[str]:
        """The names of the connections that *job* has streams of."""
        return {name.partition(".")[0] for name in self.selected(self.jobs[job].streams)}

    def selected(self, selection: Sequence[str]) -> set[str]:
        """The names of the selected streams.

        Args:
            selection: ``CONNECTION`` or ``CONNECTION.STREAM``; all streams where it is empty.

        Raises:
            ConfigError: If a selected name is not there.
        """
        names = [f"{connection.name}.{stream.name}" for connection in self.connections for stream in connection.streams]
        wanted: set[str] = set()
        for choice in selection or [connection.name for connection in self.connections]:
            matching = {name for name in names if name == choice or name.partition(".")[0] == choice}
            if not matching:
                known = [*(connection.name for connection in self.connections), *names]
                advice = config_file.unknown(choice, known).replace(
                    "unknown key", f"no stream or connection is called {choice!r}"
                )
                raise ConfigError(advice, where=str(self.path))
            wanted |= matching
        return wanted


def this_process() -> str:
    """Who works on a state: ``HOST:PROCESS``."""
    return f"{socket.gethostname()}:{os.getpid()}"


def load(path: Path) -> Project:
    """Load a config file.

    Raises:
        ConfigError: With every finding and its place in the file.
    """
    document = config_file.read(path)
    file = document.check(ConfigFile, document.data)
    connections = tuple(_connection(document, name, data) for name, data in file.connections.items())
    _one_writer_each(document, connections)
    url = _database(document, file.state, ("state",))
    if file.platform.rate.shared is not None:
        _database(document, file.platform.rate.shared, ("platform", "rate", "shared"))
    spool = file.spool or _default_spool(url, document.folder)
    retention = None if file.retention == "off" else span(file.retention)
    project = Project(path, file.platform, url, spool, connections, file.jobs, retention)
    for name, job in file.jobs.items():
        try:
            project.selected(job.streams)
        except ConfigError as error:
            raise ConfigError(error.message, where=document.where(("jobs", name, "streams"))) from error
    return project


def _database(document: Document, address: str, place: Place) -> StateUrl:
    try:
        return parse_url(address, document.folder)
    except ConfigError as error:
        message = f"{'.'.join(map(str, place))}: {error.message}"
        raise ConfigError(message, where=document.where(place), hint=error.hint) from error


def _default_spool(url: StateUrl, folder: Path) -> Path:
    return Path(f"{url.database}.spool") if url.drivername == "sqlite" else folder / "crossdock.spool"


def _connection(document: Document, name: str, data: Mapping[str, Any]) -> Connection:
    place = ("connections", name)
    if "kind" not in data:
        installed = ", ".join(sorted(registry.available()))
        raise ConfigError(f"connections.{name}: kind is missing; installed: {installed}", where=document.where(place))
    if not isinstance(data["kind"], str):
        raise ConfigError(f"connections.{name}.kind: must be text", where=document.where((*place, "kind")))
    try:
        connector = registry.load(data["kind"])
    except ConfigError as error:
        raise ConfigError(error.message, where=document.where((*place, "kind")), hint=error.hint) from error
    settings = document.check(connector.settings, data, place)
    try:
        streams = tuple(connector.streams(settings))
    except ConfigError as error:
        raise ConfigError(error.message, where=document.where(place), hint=error.hint) from error
    for stream in streams:
        if not config_file.is_name(stream.name):  # of a stream written in code
            raise ConfigError(f"{name}: {stream.name!r} is not a stream name; {NAME_FORM}", where=document.where(place))
    return Connection(name, connector, settings, streams)


def _one_writer_each(document: Document, connections: tuple[Connection, ...]) -> None:
    writers: dict[tuple[str, str], str] = {}
    for connection in connections:
        for stream in connection.streams:
            if stream.resource not in RESOURCES:
                advice = config_file.unknown(stream.resource, list(RESOURCES)).removeprefix("unknown key; ")
                raise ConfigError(
                    f"{connection.name}.{stream.name}: there is no resource {stream.resource!r}; {advice}"
                )
            name, written = f"{connection.name}.{stream.name}", (stream.resource, connection.namespace)
            if reason := no_removal(stream.resource, stream.mode, stream.on_gone):  # of a stream written in code
                raise ConfigError(f"{name}: on_gone {reason}", where=document.where(("connections", connection.name)))
            if written in writers:
                raise ConfigError(
                    f"{name} and {writers[written]} both write {stream.resource} in namespace {connection.namespace!r}",
                    where=document.where(("connections", connection.name)),
                    hint="give one connection a namespace of its own, or make it one stream",
                )
            writers[written] = name
