"""The tests of a config: whether its state, platform, credentials and connections can be used. They change nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import Any

from crossdock.config.project.connections import Connection
from crossdock.config.project.project import Project
from crossdock.connector import Context, Finding, Stream
from crossdock.errors import CrossdockError
from crossdock.pacing.rate_limit_estimate import limit_text
from crossdock.platform import access_scopes
from crossdock.platform.platform_config import Profile
from crossdock.reading.sources.run_context import SourceContext
from crossdock.reading.transport.authorization_code import AuthorizationCodeAuth
from crossdock.runs.intake_log import NoIntake
from crossdock.services.inbox.webhook_endpoints import endpoints
from crossdock.services.system_check import disk_space
from crossdock.values.author_code import guarded
from crossdock.values.clock import SystemClock
from crossdock.values.display_times import duration_text
from crossdock.values.progress import Silent
from crossdock.values.records import RawBatch
from crossdock.writing.targets import platform_access

_SAME_S = 2.0  # the platform says its time in whole seconds


def findings_of(loaded: Project) -> Iterator[tuple[str, Finding]]:
    """Test everything, and yield each finding with its subject. Connections are opened."""
    yield from (("config", Finding(ok=True, text=text, code="config_key_renamed")) for text in loaded.warnings)
    yield from findings_of_platform(loaded)
    for connection in loaded.connections:
        yield from ((connection.name, finding) for finding in findings_of_connection(loaded, connection))


def findings_of_platform(loaded: Project) -> Iterator[tuple[str, Finding]]:
    """Test the state, the platform and the disks."""
    state = _try(lambda: loaded.open_state(read_only=True).close(), "exists and belongs to this platform")
    yield "state", state
    yield from _platform(loaded)
    if state.ok:  # otherwise the allowance fails for the same reason
        yield "allowance", _try(lambda: _allowance(loaded))
        yield from (("disk", finding) for finding in disk_space.findings(loaded))


def findings_of_connection(loaded: Project, connection: Connection) -> Iterator[Finding]:
    """Test one connection, as a source, as a target and as a sender of webhooks."""
    answers = True
    for finding in _reached(connection):
        answers = answers and finding.ok
        yield finding
    yield from (_beliefs(stream) for _, stream in connection.named_streams() if stream.reads_changes and answers)
    sent = {scope.namespace for scope in loaded.scopes.values() if scope.target == connection.name}
    shortened = (_shortened_key(stream, sent) for stream in connection.streams)
    yield from (finding for finding in shortened if finding is not None)
    yield from _declared(loaded, connection)


def _declared(loaded: Project, connection: Connection) -> Iterator[Finding]:
    try:
        if connection.webhooks is not None:
            yield _try(partial(_receive, connection), "the secrets of its webhooks can be used")
        target = connection.target(loaded.platform.tenant, SystemClock())
    except CrossdockError as error:
        yield _failed(error)
        return
    if target is not None:
        yield _try(target.reach)


def _platform(loaded: Project) -> Iterator[tuple[str, Finding]]:
    """Request what delivery needs to read, or else one list, for which a refusal also suffices."""
    try:
        access = platform_access.reach(loaded.platform, loaded.probed_resources)
    except CrossdockError as error:
        yield "platform", _failed(error)
        return
    yield "platform", Finding(ok=True, text=access.text)
    yield "clock", _try(partial(_clock, loaded.platform, access.ahead_s))
    for resource in access.unreadable:
        if resource in loaded.looked_up_resources:
            yield (
                "platform",
                Finding(
                    ok=False,
                    text=f"may not read {_plural(resource)}, but their delivery needs look-ups",
                    code="scopes_missing",
                ),
            )
        else:
            yield (
                "platform",
                Finding(ok=True, text=f"may not read {_plural(resource)}; look-ups are not possible, writes need none"),
            )
    needed = access_scopes.needed_scopes(
        loaded.platform, loaded.written_resources, {*loaded.looked_up_resources, *loaded.read_resources}
    )
    compared = access_scopes.compare_scopes(needed, access.scopes)
    code = "scopes_missing" if compared.missing else None
    yield "scopes", Finding(ok=not compared.missing, text=compared.text, code=code)


def _clock(profile: Profile, ahead_s: float | None) -> str:
    if ahead_s is None:
        return "the platform's answers do not say the time"
    platform_access.check_ahead(profile, ahead_s)
    if abs(ahead_s) < _SAME_S:
        return "as the platform's"
    return f"{duration_text(abs(ahead_s))} {'ahead of' if ahead_s > 0 else 'behind'} the platform's"


def _plural(resource: str) -> str:
    return f"{resource.replace('_', ' ')}s"


def _allowance(loaded: Project) -> str:
    with loaded.read_state() as tx:
        earlier = tx.buckets.get("platform")
    known = loaded.platform.rate.estimate(earlier.estimate if earlier else None)
    shared = "; shared with others" if loaded.platform.rate.shared else ""
    return f"{limit_text(known)}{shared}"


def _try(test: Callable[[], str | None], text: str = "") -> Finding:
    """Return the result of *test*: its error, or the text that it returns, or else *text*."""
    try:
        return Finding(ok=True, text=test() or text)
    except CrossdockError as error:
        return _failed(error)


def _failed(error: CrossdockError) -> Finding:
    return Finding(ok=False, text=str(error), code=error.code, category=error.category)


def _beliefs(stream: Stream[Any]) -> Finding:
    """Describe what a stream of changes assumes about its source, and how that is checked."""
    cursor = stream.cursor.column if stream.cursor else ""
    text = f"{stream.name}: reads what the source marks as changed{cursor and f', by {cursor}'}; "
    checks = []
    if stream.open_until is not None:
        final = ", ".join(stream.open_until.in_)
        checks.append(f"fetches records until their {stream.open_until.field} is {final}")
    if stream.reread is not None:
        checks.append(f"compares a full list every {stream.reread.every}")
    unseen = "a change without a new mark is not seen: see reread and open_until"
    text += " and ".join(checks) or unseen
    if stream.cursor and stream.fetches and not stream.order_by:
        text += f"; a list that lags behind puts older versions over those of webhooks: declare order_by with {cursor}"
    return Finding(ok=True, text=text)


def _shortened_key(stream: Stream[Any], sent: AbstractSet[str]) -> Finding | None:
    """Find external ids of records *sent* in these namespaces whose key is what is left behind the namespace."""
    told = None if stream.ours is None else stream.ours.member  # by the external id as it is, before it is shortened
    for name in (each for each in stream.key if each != told):
        prefix = stream.columns[name].strip_prefix if name in stream.columns else None
        if prefix is not None and prefix.removesuffix(":") in sent:
            text = f"a record of others that is called like the key {name}, without {prefix}, would be the same record"
            ours = f"declare ours: {{member: {name}, namespace: {prefix.removesuffix(':')}}}"
            return Finding(ok=False, text=f"{stream.name}: {text}; {ours}", code="key_ambiguous")
    return None


def _receive(connection: Connection) -> None:
    endpoints([connection], SystemClock())


def _reached(connection: Connection) -> Iterator[Finding]:
    """Test whether the account is connected, if a person has to do that, and then the connection."""
    access = _access(connection)
    if access is not None:
        yield access
    if access is None or access.ok:
        yield from _connection(connection)


def _access(connection: Connection) -> Finding | None:
    try:
        api = connection.api
    except CrossdockError as error:
        return _failed(error)
    return _try(api.auth.status) if api is not None and isinstance(api.auth, AuthorizationCodeAuth) else None


def _connection(connection: Connection) -> Iterator[Finding]:
    check = connection.connector.check
    if check is None and connection.connector.api is None:
        return
    with tempfile.TemporaryDirectory(prefix="crossdock-") as folder:
        run = SourceContext(SystemClock(), Silent(), NoIntake(), Path(folder), Path(folder), Path(folder))
        try:
            with run.at_end:
                context = connection.context(run)
                yield from _first_pages(connection, context) if check is None else _checked(connection, check, context)
        except CrossdockError as error:
            yield _failed(error)


def _checked(connection: Connection, check: Any, context: Context[Any]) -> Iterator[Finding]:
    with guarded("check", connection.name, code=check, settings=connection.settings):
        for finding in check(context):
            if not isinstance(finding, Finding):
                raise TypeError(f"check yielded a {type(finding).__name__} instead of a Finding")
            yield finding


def _first_pages(connection: Connection, context: Context[Any]) -> Iterator[Finding]:
    """Read the first page of each stream. An API that does not respond is not tried again."""
    for name, stream in connection.named_streams():
        with guarded("pull", name, code=stream, settings=connection.settings):
            first = next((batch for batch in stream.pull(context, None) if isinstance(batch, RawBatch)), None)
        shown = "has no records" if first is None else f"{first.source} responds"
        yield Finding(ok=True, text=f"{stream.name}: {shown}")
