"""A loaded config file: the platform, the state, the connections and the jobs; and its sections, as a model."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Self, cast

from msgspec import Struct, field, structs
from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from crossdock.config.notify_config import NotifyConfig
from crossdock.config.project.connections_and_bound_streams import (
    BoundStream,
    Connection,
    FactsOfAllStreams,
    load_connections,
    members_contributed_by_scope,
)
from crossdock.config.project.migration_config import MigrationConfig
from crossdock.config.schedules.job_and_schedule_config import JobConfig, jobs_in_order
from crossdock.config.state_location import DEFAULT_STATE
from crossdock.connector import Stream
from crossdock.errors import ConfigError
from crossdock.mapping.resource_types import RESOURCES, Action, personal_members
from crossdock.mapping.stream_declaration import PLATFORM, AdoptBy
from crossdock.pacing.token_bucket import BucketState, BucketStore, MemoryBucketStore
from crossdock.platform.platform_config import Profile
from crossdock.reading.sources.run_context import AnnouncesFiles, SourceContext
from crossdock.resources import ResourceName
from crossdock.state import (
    AuditEntry,
    PinnedTenant,
    Recipients,
    Scope,
    SharedBucket,
    State,
    StateUrl,
    Transaction,
    create_or_upgrade_state,
    parse_database_url,
)
from crossdock.state.db.schema import VERSION
from crossdock.state.retention import MAX_AGE, PurgeTimes
from crossdock.state.sidecar_files.folder_owner_and_fence import claim_folder_or_raise
from crossdock.values import config_file
from crossdock.values.acting_person_and_process import own_process_name
from crossdock.values.clock import Clock, SystemClock
from crossdock.values.config_base_types import BaseUrl, ConfigModel, ConfigPath, Name, is_duration, parse_duration
from crossdock.values.config_file import ConfigSource, Document, Signature
from crossdock.values.json_paths import texts_within
from crossdock.values.yaml_reader import Place
from crossdock.writing.delivery.operations_and_intents import PersonalDataMasks
from crossdock.writing.targets.platform_target import PlatformTarget
from crossdock.writing.targets.target import Target

KEPT = "90d"
_LEAST_KEPT = timedelta(days=7)
_RETENTION_SCHEMA = {"anyOf": [{"type": "string", "pattern": "^([1-9][0-9]{0,4})d$"}, {"enum": ["off", False]}]}


def _check_retention(value: Any) -> str:
    if value is False or value == "off":  # YAML 1.1 reads off as false
        return "off"
    if not is_duration(value, "d") or not _LEAST_KEPT <= parse_duration(value) <= MAX_AGE:
        raise ValueError(f"must be a number of days from 7d to {MAX_AGE.days}d, or off; not {str(value)!r}")
    return str(value)


Retention = Annotated[str, BeforeValidator(_check_retention), WithJsonSchema(_RETENTION_SCHEMA)]


class ListenConfig(ConfigModel):
    """How webhooks reach ``crossdock listen``."""

    public_url: BaseUrl
    """The public address of the receiver, such as ``https://hooks.example.com``, without ``/webhooks/CONNECTION``; for
    ``crossdock listen register`` and ``remove``."""


class ConfigFile(ConfigModel):
    """All sections of a config file."""

    platform: Profile
    """The platform: its address, the credential, and what is assumed about it."""
    state: str = DEFAULT_STATE
    """``sqlite:///FILE``, relative to this file, or ``postgresql://user@host/database``."""
    spool: ConfigPath | None = None
    """Folder for copies of the files in progress. Default: next to a SQLite state; with PostgreSQL next to the config
    file, or in ``fleet.folder``, named after the database, such as ``acme.spool``."""
    connections: Annotated[Mapping[Name, Mapping[str, Any]], Field(min_length=1)]
    """The connections by name."""
    retention: Retention = KEPT
    """How long the state keeps what nothing depends on any more, 7d to 36525d: settled operations, the data of dead
    letters, and facts about runs, scheduled runs, files and snapshots. ``crossdock schedule`` deletes it; ``off`` keeps
    everything."""
    jobs: Mapping[Name, JobConfig] = {}
    """What ``crossdock schedule`` runs, and when."""
    listen: ListenConfig | None = None
    """Where vendors send webhooks, for ``crossdock listen register``."""
    migration: MigrationConfig | None = None
    """The one-off move of a legacy system, for ``crossdock migrate``."""
    notify: NotifyConfig | None = None
    """Who is notified of the runs of ``crossdock schedule``."""
    fleet: FleetConfig | None = None
    """What many tenants have in common, for ``crossdock schedule --fleet``; in the base file."""

    @model_validator(mode="after")
    def _check_job_order(self) -> Self:
        jobs_in_order(self.jobs)
        return self


class FleetConfig(ConfigModel):
    """How ``crossdock schedule --fleet`` runs the jobs of many tenants."""

    database: str = "sqlite:///fleet.db"
    """Database of the fleet, in which its schedulers agree who leads: ``sqlite:///FILE``, relative to this file, or
    ``postgresql://user@host/database``. It is created if it is missing; no state of a tenant may be in it."""
    at_once: Annotated[int, Field(ge=1, le=1000)] = 4
    """The most runs at the same time, of all tenants."""
    per_host: Annotated[int, Field(ge=1, le=1000)] = 2
    """The most runs at the same time that read from one host, such as an SFTP server."""
    folder: ConfigPath | None = None
    """Folder for the working files of all tenants on the machine of a run. Default: the folder of this file."""


WAIT_FOR_RUN = "CROSSDOCK_WAIT_FOR_RUN_S"


class Project(Struct, frozen=True):
    """A loaded config file. Loading opens no connection and reads no secret.

    Attributes:
        folder: Where relative paths in it begin; None for that of *path*.
        values: All values, if some of them were given in memory and *path* and *overrides* do not have them.
        shared_bucket: The platform's bucket in the database of ``platform.rate.shared``; default: that of the tenant.
        warnings: What must be changed in the file before a later release, each with its place.
        config_sections: All sections, for the effective config.
        files: The regular files that it was loaded from, and their signature then.
    """

    path: Path
    platform: Profile
    state_url: StateUrl
    spool: Path
    connections: tuple[Connection, ...]
    jobs: Mapping[str, JobConfig] = field(default_factory=dict)
    retention: timedelta | None = None
    notify: NotifyConfig | None = None
    listen: ListenConfig | None = None
    migration: MigrationConfig | None = None
    shared_bucket: str | None = None
    overrides: tuple[Path, ...] = ()
    folder: Path | None = None
    values: Mapping[str, Any] | None = None
    in_fleet: bool = False
    warnings: tuple[str, ...] = ()
    config_sections: ConfigFile | None = None
    files: tuple[tuple[Path, ...], Signature | None] = (), None

    @property
    def has_changed_in_files(self) -> bool:
        """Whether a file was written or removed since it was loaded from it."""
        paths, signature = self.files
        return config_file.file_signature(paths) != signature if paths else False

    @property
    def own_notification_recipient_kinds(self) -> tuple[Recipients, ...]:
        """Who is notified about runs that could not begin or were killed: a fleet's scheduler sees these itself."""
        return () if self.notify is None else ("own",)

    @property
    def notification_recipient_kinds(self) -> tuple[Recipients, ...]:
        return (
            (*self.own_notification_recipient_kinds, "fleet")
            if self.in_fleet
            else self.own_notification_recipient_kinds
        )

    # ---- streams

    @property
    def personal_data_masks(self) -> PersonalDataMasks:
        resources = {
            (target.name, name): kind.personal
            for target in self.targets(SystemClock()).values()
            for name, kind in target.resources.items()
        }
        return PersonalDataMasks(
            {name: frozenset(stream.personal) for name, stream in self._enabled_streams_with_full_names()}, resources
        )

    @property
    def stream_names(self) -> frozenset[str]:
        """All streams of the config, also those that are switched off."""
        return frozenset(f"{each.name}.{stream.name}" for each in self.connections for stream in each.streams)

    @property
    def streams_adopting_by_external_id(self) -> frozenset[str]:
        """The streams that take over records which the platform has under the same external id."""
        return frozenset(
            name for name, stream in self._enabled_streams_with_full_names() if stream.adopt == "external_id"
        )

    @property
    def adoption_member_by_stream(self) -> dict[str, str]:
        """The streams that take over records with other names, each with the member that matches them."""
        return {
            name: stream.adopt.by
            for name, stream in self._enabled_streams_with_full_names()
            if isinstance(stream.adopt, AdoptBy)
        }

    @property
    def streams_rejecting_conflicts(self) -> frozenset[str]:
        """The streams that never overwrite a member that others have changed."""
        return frozenset(
            name for name, stream in self._enabled_streams_with_full_names() if stream.conflicts == "reject"
        )

    @property
    def streams_fetching_by_key(self) -> set[str]:
        return {name for name, stream in self._enabled_streams_with_full_names() if stream.fetches}

    @property
    def resource_by_stream(self) -> dict[str, str]:
        """The resource of each stream."""
        return {name: scope.resource for name, scope in self.scope_by_stream.items()}

    @property
    def scope_by_stream(self) -> dict[str, Scope]:
        return {
            name: connection.scope_of_written_records(stream)
            for connection in self.connections
            for name, stream in connection.enabled_streams_with_full_names()
        }

    def targets(self, clock: Clock) -> dict[str, Target]:
        made = (connection.target(self.platform.tenant, clock) for connection in self.connections)
        return {PLATFORM: PlatformTarget(self.platform, clock)} | {each.name: each for each in made if each is not None}

    def _streams_to_platform(self) -> Iterator[Stream[Any]]:
        return (stream for _, stream in self._enabled_streams_with_full_names() if stream.to == PLATFORM)

    @property
    def looked_up_resources(self) -> tuple[ResourceName, ...]:
        """The resources whose delivery needs look-ups, to adopt records or to verify operations."""
        return tuple(
            {
                _written_resource(stream): None
                for stream in self._streams_to_platform()
                if stream.adopt != "never" or self._verifies_ambiguous_answers(_written_resource(stream))
            }
        )

    def _verifies_ambiguous_answers(self, resource: ResourceName) -> bool:
        """Return whether a look-up follows an ambiguous answer. A record that is written once has only a create."""
        operations = ("create",) if RESOURCES[resource].write_once else ("create", "update")
        return any(
            self.platform.rule_after_ambiguous_answer(resource, operation) == "verify" for operation in operations
        )

    @property
    def written_resources(self) -> tuple[ResourceName, ...]:
        used = {_written_resource(stream) for stream in self._streams_to_platform()}
        return tuple(resource for resource in RESOURCES if resource in used)

    @property
    def resource_names_read_from_platform(self) -> tuple[ResourceName, ...]:
        return tuple(
            dict.fromkeys(
                each for _, stream in self._enabled_streams_with_full_names() for each in stream.platform_reads
            )
        )

    @property
    def names_of_connections_reading_platform(self) -> frozenset[str]:
        return frozenset(
            name.partition(".")[0] for name, stream in self._enabled_streams_with_full_names() if stream.platform_reads
        )

    @property
    def resources_with_deleting_streams(self) -> frozenset[ResourceName]:
        return frozenset(
            _written_resource(stream) for stream in self._streams_to_platform() if stream.on_gone == "delete"
        )

    @property
    def access_test_resources(self) -> tuple[ResourceName, ...]:
        """The resources to request in a test of access: those that are looked up, or else one without personal data."""
        least_personal = min(
            self.written_resources or self.resource_names_read_from_platform or ("product",),
            key=lambda name: (len(personal_members(RESOURCES[name].wire)), name),
        )
        return self.looked_up_resources or (least_personal,)

    def bind_streams(self, wanted: set[str], *, targets: Mapping[str, Target], run: SourceContext) -> list[BoundStream]:
        """Bind the streams of these names, parents first and contributions last."""
        bound = list[BoundStream]()
        as_written = frozenset(
            each.scope_of_written_records(stream).whole_record_scope
            for each in self.connections
            for stream in each.streams
            if not stream.trim_keys
        )
        others = FactsOfAllStreams(
            self._namespaces_by_system(),
            as_written,
            self._known_namespaces,
            members_contributed_by_scope(self.connections),
            frozenset(self.scope_by_stream.values()),
        )
        for connection in self.connections:
            chosen = [(name, stream) for name, stream in connection.enabled_streams_with_full_names() if name in wanted]
            if chosen:
                context = connection.context(run)
                bound += [connection.bind_stream(name, stream, targets, context, others) for name, stream in chosen]
        for each in bound:
            if isinstance(each.stream, AnnouncesFiles):
                each.stream.announce_file_growth_checks(each.context)
        order = {(name, kind): number for name, each in targets.items() for number, kind in enumerate(each.resources)}
        return sorted(
            bound, key=lambda item: (order[item.scope.target, item.scope.resource], item.scope.is_contribution)
        )

    def _known_namespaces(self) -> frozenset[str]:

        known = known_namespaces(self)
        return known.written | known.named

    def _namespaces_by_system(self) -> dict[str, frozenset[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for connection in self.connections:
            for stream in connection.streams:
                system = connection.name if stream.reads is None else stream.reads.partition(".")[0]
                found[system].add(stream.namespace or connection.namespace)
        return {system: frozenset(namespaces) for system, namespaces in found.items()}

    def stream(self, name: str) -> Stream[Any]:
        return dict(self._enabled_streams_with_full_names())[name]

    @property
    def names_of_migrated_streams(self) -> set[str]:
        """The streams of all waves of the migration; empty without one."""
        waves = self.migration.waves.values() if self.migration else ()
        return {name for wave in waves for name in self.selected_streams(wave.streams)}

    def selected_streams(self, selection: Sequence[str]) -> set[str]:
        """Return the names of the selected streams: ``CONNECTION`` or ``CONNECTION.STREAM``; by default all."""
        names = [name for name, _ in self._enabled_streams_with_full_names()]
        known = [connection.name for connection in self.connections]
        off = {
            f"{each.name}.{stream.name}" for each in self.connections for stream in each.streams if not stream.enabled
        }
        wanted = set() if selection else set(names)
        for choice in selection:
            matching = {name for name in names if choice in {name, name.partition(".")[0]}}
            if not matching and choice in off:
                raise ConfigError(
                    f"the stream {choice!r} is switched off (enabled: false)",
                    where=str(self.path),
                    code="choice_unsuitable",
                )
            if not matching and choice in known:
                raise ConfigError(
                    f"{choice!r} has no streams: others write to it", where=str(self.path), code="choice_unsuitable"
                )
            if not matching:
                advice = config_file.unknown_key_message(choice, [*known, *names]).removeprefix("unknown key; ")
                raise ConfigError(
                    f"no stream or connection is called {choice!r}; {advice}",
                    where=str(self.path),
                    code="stream_unknown",
                )
            wanted |= matching
        return wanted

    def stream_of_record(self, name: str) -> str:
        """Return the stream that *name* means where one record is decided: a connection stands for its only stream."""
        if "." in name:
            return name
        names = sorted(self.selected_streams([name]))
        if len(names) > 1:
            hint = f"its streams: {', '.join(names)}"
            raise ConfigError(f"{name!r} is a connection: name one of its streams", hint=hint, code="choice_unsuitable")
        return names[0]

    def connection_names_of_job(self, job: str) -> set[str]:
        return {name.partition(".")[0] for name in self.selected_streams(self.jobs[job].streams)}

    def _enabled_streams_with_full_names(self) -> Iterator[tuple[str, Stream[Any]]]:
        return (named for connection in self.connections for named in connection.enabled_streams_with_full_names())

    # ---- state

    @property
    def pinned_tenant(self) -> PinnedTenant:
        return PinnedTenant(self.platform.base_url, self.platform.tenant)

    def purge_times(self, older_than: timedelta, now: datetime) -> PurgeTimes:
        """Return the limits for rows that are *older_than* that and no longer protect an idempotency key."""
        kept_s = max(target.kept_s for target in self.targets(SystemClock()).values())
        return PurgeTimes.from_age(now, older_than, keys_kept_s=int(kept_s))

    def create_or_upgrade_state(self) -> int | None:
        """Create or upgrade the state, and return the version that it had, 0 if there was none.

        None if nothing was to do. The audit log has what was done.
        """
        found: int | None = None

        def log(tx: Transaction, version: int) -> None:
            nonlocal found
            found = version
            before = {"version": version} if version else None
            entry = AuditEntry.new_by_current_actor(
                "init", "state", at=SystemClock().now(), before=before, after={"version": VERSION}
            )
            tx.audit_log.put(entry)

        create_or_upgrade_state(self.state_url, self.pinned_tenant, log)
        return found

    def open_state(self, *, read_only: bool = False) -> State:
        return State(self.state_url, self.pinned_tenant, read_only=read_only, keys=self.folder_beside_spool("keys"))

    def folder_beside_spool(self, kind: str) -> Path:
        """Return the folder of this *kind* that belongs to the state."""
        return _folder_beside_spool(self.spool, kind)

    def claim_folders_beside_spool(self) -> None:
        """Raise StateError if the folders beside the spool belong to the state of another config."""
        claim_folder_or_raise(self.folder_beside_spool("keys"), self.state_url, self.pinned_tenant)

    @contextmanager
    def open_state_exclusively(self, *, restored: bool = False) -> Iterator[State]:
        with closing(self.open_state()) as state:
            self.claim_folders_beside_spool()
            with _exclusive_use(state, restored=restored):
                yield state

    @contextmanager
    def read_state(self) -> Iterator[Transaction]:
        with closing(self.open_state(read_only=True)) as state, state.begin_read_only() as tx:
            yield tx

    @contextmanager
    def open_rate_limit_bucket(
        self, target: Target, clock: Clock, earlier: BucketState | None
    ) -> Iterator[BucketStore]:
        """Open the token bucket of *target*, in this process or in the database of ``platform.rate.shared``."""
        rate = self.platform.rate
        if rate.shared is None or target.name != PLATFORM:
            bucket_state = BucketState.from_earlier_run(earlier, target.estimate(earlier), clock.now().timestamp())
            yield MemoryBucketStore(clock, bucket_state)
            return
        url = parse_database_url(rate.shared, self.folder or self.path.parent, where="platform.rate.shared")
        name = self.shared_bucket or f"{self.platform.tenant} at {self.platform.base_url}"
        with closing(SharedBucket(url, clock, name, rate.estimate)) as store:
            yield store


def _written_resource(stream: Stream[Any]) -> ResourceName:
    """Return the resource of the platform that *stream* writes, or that its actions are about."""
    kind = stream.resource_type
    return cast("ResourceName", kind.acts_on if isinstance(kind, Action) else kind.name)


def _exclusive_use(state: State, *, restored: bool) -> AbstractContextManager[None]:
    return state.hold_run_lease(own_process_name(), restored=restored, waits_s=_wait_for_run_s())


def _wait_for_run_s() -> int:
    """Return how long the environment lets a command wait for the end of a run that uses the state."""
    text = os.environ.get(WAIT_FOR_RUN, "").strip() or "0"
    if not re.fullmatch(r"[0-9]{1,4}", text):
        raise ConfigError(
            "must be a whole number of seconds, at most 9999", where=WAIT_FOR_RUN, code="option_value_invalid"
        )
    return int(text)


def load(first: ConfigSource, *overrides: ConfigSource) -> Project:
    """Load a config file with *overrides*. Raises ConfigError with every finding and its place."""
    paths = [each for each in (first, *overrides) if isinstance(each, Path) and os.path.isfile(each)]  # noqa: PTH113  no error
    signature = config_file.file_signature(paths)
    document = config_file.read_config_with_overrides(first, *overrides)
    file = document.validated_as_model(ConfigFile, document.data)
    connections = load_connections(document, file.connections, file.platform)
    url = _parse_database_url(document, file.state, ("state",))
    if file.platform.rate.shared is not None:
        _parse_database_url(document, file.platform.rate.shared, ("platform", "rate", "shared"))
    if file.fleet is not None:
        _parse_database_url(document, file.fleet.database, ("fleet", "database"))
    folder = (file.fleet and file.fleet.folder) or document.folder
    spool = file.spool or _folder_beside_state(url, folder, "spool")
    is_file = url.drivername == "sqlite"  # a database of a server may have several states, each with its spool
    tokens = _folder_beside_state(url, folder, "tokens") if is_file else _folder_beside_spool(spool, "tokens")
    connections = tuple(replace(each, tokens=tokens / f"{each.name}.json") for each in connections)
    retention = None if file.retention == "off" else parse_duration(file.retention)
    files = tuple(each for each in overrides if isinstance(each, Path))
    values = document.data if any(isinstance(each, Mapping) for each in (first, *overrides)) else None
    optional = file.notify, file.listen, file.migration, None, files, document.folder, values
    project = Project(document.path, file.platform, url, spool, connections, file.jobs, retention, *optional)
    project = structs.replace(
        project,
        warnings=tuple(document.warnings),
        config_sections=file,
        files=(tuple(each.absolute() for each in paths), signature),
    )
    for name, job in file.jobs.items():
        try:
            project.selected_streams(job.streams)
        except ConfigError as error:
            raise ConfigError(
                error.message, where=document.where(("jobs", name, "streams")), code=error.code
            ) from error
    if file.migration is not None:
        _check_waves(document, project, file.migration)
    return project


def _check_waves(document: Document, project: Project, migration: MigrationConfig) -> None:
    waves: dict[str, str] = {}
    for name, wave in migration.waves.items():
        where = document.where(("migration", "waves", name, "streams"))
        try:
            streams = project.selected_streams(wave.streams)
        except ConfigError as error:
            raise ConfigError(error.message, where=where, code=error.code) from error
        for stream in sorted(streams):
            if (other := waves.setdefault(stream, name)) != name:
                raise ConfigError(
                    f"{stream} is in the waves {other} and {name}",
                    where=where,
                    hint="leave it in one",
                    code="config_invalid",
                )


def _parse_database_url(document: Document, address: str, place: Place) -> StateUrl:
    try:
        return parse_database_url(address, document.folder)
    except ConfigError as error:
        message = f"{'.'.join(map(str, place))}: {error.message}"
        raise ConfigError(message, where=document.where(place), hint=error.hint, code=error.code) from error


def _folder_beside_state(url: StateUrl, folder: Path, kind: str) -> Path:
    """Return the folder of this *kind* beside a state, or in *folder* for a database of a server."""
    if url.drivername == "sqlite":
        return Path(f"{url.database}.{kind}")
    return folder / f"{re.sub(r'[^A-Za-z0-9_-]', '_', url.database or 'crossdock')}.{kind}"


def _folder_beside_spool(spool: Path, kind: str) -> Path:
    return spool.with_name(f"{spool.name.removesuffix('.spool')}.{kind}")


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
