"""What is known of a connection without opening it: its streams, its credentials and its rate limit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from crossdock.config.project.connections_and_bound_streams import Connection, cursor_version
from crossdock.config.project.project import Project
from crossdock.connector import Stream
from crossdock.errors import CrossdockError, add_code_to_first_line, text_with_code
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.pacing.token_bucket import BucketState, limit_text
from crossdock.reading.transport.authorization_code_tokens import AuthorizationCodeAuth
from crossdock.runs import session_shared_by_runs, tables_and_sentences_of_run
from crossdock.state import RunRecord, Transaction
from crossdock.values.config_base_types import secrets_with_places
from crossdock.values.texts_of_numbers_and_times import count_with_noun, duration_text, instant_text


class StreamLastRead(Struct, frozen=True):
    """When a stream was last read. *run* is the last of the runs that were looked at which read it."""

    name: str
    mode: str
    cursor: str
    last_file: datetime | None
    last_full_list: datetime | None
    last_snapshot: datetime | None
    run: RunRecord | None

    @property
    def last_read_at(self) -> datetime | None:
        run = None if self.run is None else self.run.finished_at or self.run.started_at
        times = self.last_file, self.last_full_list, self.last_snapshot, run
        return max((at for at in times if at is not None), default=None)


class Credential(Struct, frozen=True):
    """A reference to a secret, and what is known of it without reading it."""

    name: str
    reference: str
    condition: str
    is_usable: bool = True


class Refusals(Struct, frozen=True):
    """The requests of a connection in some runs, and how many of them were refused for the rate."""

    requests: int
    refused: int


class ConnectionFacts(Struct, frozen=True):
    """One connection, or the platform. *limits* are of what is read and what is written."""

    name: str
    kind: str
    address: str
    streams: Sequence[StreamLastRead]
    limits: Sequence[str]
    refusals: Refusals


def facts_of_platform(tx: Transaction, project: Project, runs: Sequence[RunRecord], now: datetime) -> ConnectionFacts:
    """Return the facts about the platform. Its requests are those of the runs that no API of a connection got."""
    known, shared = tx.buckets.get(PLATFORM), project.platform.rate.shared is not None
    estimate = project.platform.rate.estimate(known.estimate if known else None)
    level = "its level is in the database that it is shared in" if shared else bucket_level_text(known, now)
    refusals = Refusals(sum(run.requests for run in runs), sum(run.throttled for run in runs))
    limits = [f"{level}; {limit_text(estimate)}"]
    return ConnectionFacts(PLATFORM, PLATFORM, project.platform.base_url, (), limits, refusals)


def facts_of_connection(
    tx: Transaction, project: Project, connection: Connection, runs: Sequence[RunRecord], now: datetime
) -> ConnectionFacts:
    name = connection.name
    reading = session_shared_by_runs.read_rate_limits_of_source_apis(
        tx, [name], project.names_of_connections_reading_platform
    )
    buckets = {"reading": reading.get(name), "writing": tx.buckets.get(name)}
    limits = [
        f"{use}: {bucket_level_text(bucket, now)}; {limit_text(bucket.estimate)}"
        for use, bucket in buckets.items()
        if bucket is not None
    ]
    streams = [
        stream_last_read(tx, full, stream, runs, cursor_version(stream, connection.settings))
        for full, stream in connection.enabled_streams_with_full_names()
    ]
    used = [
        usage
        for run in runs
        if (usage := tables_and_sentences_of_run.api_usage_by_connection(run).get(name)) is not None
    ]
    refusals = Refusals(sum(each["requests"] for each in used), sum(each["throttled"] for each in used))
    return ConnectionFacts(name, connection.settings.kind, _address_or_error(connection), streams, limits, refusals)


def stream_last_read(
    tx: Transaction, name: str, stream: Stream[Any], runs: Sequence[RunRecord], version_of_cursor: str
) -> StreamLastRead:
    """Read when *stream* was read last. *runs* are the latest ones, the newest first."""
    finished = tx.intake.last_finished_import(name)
    return StreamLastRead(
        name,
        stream.mode,
        tx.cursors.get_if_same_version(name, version_of_cursor) or "",
        None if finished is None else finished.at,
        tx.full_lists.last_read_time(name),
        tx.snapshots.last_snapshot_time(name),
        next((run for run in runs if name in (run.tally or {})), None),
    )


def bucket_level_text(bucket: BucketState | None, now: datetime) -> str:
    """Describe how many tokens a bucket has now, or that it gives none for a while."""
    if bucket is None:
        return "not used yet"
    at = now.timestamp()
    if at < bucket.frozen_until:
        until = datetime.fromtimestamp(bucket.frozen_until, UTC)
        return f"no tokens until {instant_text(until)}, as the last answer said"
    return "tokens unknown" if bucket.estimate.burst is None else count_with_noun(bucket.bucket.tokens(at), "token")


def _address_or_error(connection: Connection) -> str:
    try:
        return connection.address
    except CrossdockError as error:  # code of the connector failed
        return text_with_code(error)


# ---- credentials


def credential_facts_without_secrets(
    settings: object, now: datetime, environment: Mapping[str, str] = os.environ
) -> Iterator[Credential]:
    """Yield the credentials that *settings* refer to, without reading them."""
    for place, secret in secrets_with_places(settings):
        name = ".".join(str(part) for part in place)
        try:
            path = secret.file
        except CrossdockError as error:
            yield Credential(name, secret.reference, add_code_to_first_line(error.message, error.code), is_usable=False)
            continue
        if path is not None:
            yield _facts_of_file_credential(name, secret.reference, path, now)
        else:
            is_set = bool(environment.get(secret.reference.partition(":")[2]))
            yield Credential(name, secret.reference, f"{'' if is_set else 'not '}set where the console runs", is_set)


def facts_of_authorization_tokens(connection: Connection, now: datetime) -> Iterator[Credential]:
    """Yield the tokens that a person gave access to, if the connection has such."""
    try:
        api = connection.api
    except CrossdockError:  # a secret that it needs cannot be read, which its credential says, or a check
        return
    if api is None or not isinstance(api.auth, AuthorizationCodeAuth):
        return
    try:
        path, stored = api.auth.file.path, api.auth.file.read()
    except CrossdockError as error:
        yield Credential("tokens", "", text_with_code(error), is_usable=False)
        return
    if stored is None:
        advice = f"nobody gave access yet: crossdock connect {connection.name}"
        yield Credential("tokens", path.name, advice, is_usable=False)
        return
    renewal = instant_text(datetime.fromtimestamp(stored.renew_at, UTC))
    pending = f"; a renewal of {stored.renewing_since} was not finished" if stored.renewing_since else ""
    condition = f"access given {stored.connected_at}; the access token is renewed at {renewal}{pending}"
    aged = _facts_of_file_credential("tokens", path.name, path, now)
    yield Credential("tokens", path.name, f"{condition}; file {aged.condition}", is_usable=not pending)


def _facts_of_file_credential(name: str, reference: str, path: Path, now: datetime) -> Credential:
    try:
        changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        return Credential(name, reference, f"cannot be read: {error.strerror}", is_usable=False)
    return Credential(name, reference, f"{_age_text((now - changed).total_seconds())} old")


def _age_text(seconds: float) -> str:
    days = int(seconds // 86_400)
    return count_with_noun(days, "day") if days > 0 else duration_text(max(0.0, seconds))
