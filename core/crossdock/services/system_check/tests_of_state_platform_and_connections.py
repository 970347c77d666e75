"""`crossdock.check` and the command: whether the state, platform, credentials, connections and disks of a config can be
used. The tests change nothing.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from crossdock.config.project.connections_and_bound_streams import Connection
from crossdock.config.project.project import Project
from crossdock.connector import Context, Finding, Stream
from crossdock.errors import CrossdockError, UnavailableError, add_code_to_first_line
from crossdock.mapping.row_order_and_cursors import Checkpoint
from crossdock.pacing.token_bucket import limit_text
from crossdock.platform import needed_and_granted_scopes
from crossdock.platform.platform_config import Profile
from crossdock.reading.sources.run_context import SourceContext
from crossdock.reading.transport.authorization_code_tokens import AuthorizationCodeAuth
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.runs.init_plan_run_for_programs import Config, load_project
from crossdock.services.inbox.webhook_verification_and_parsing import endpoints_by_connection
from crossdock.values.author_code_errors import convert_author_errors
from crossdock.values.clock import SystemClock
from crossdock.values.raw_rows_and_records import RawBatch
from crossdock.values.run_progress_and_messages import SilentProgress
from crossdock.values.texts_of_numbers_and_times import byte_size_text, count_with_noun, duration_text
from crossdock.writing.targets import platform_access_and_clock_checks

_UNNOTICED_CLOCK_DIFFERENCE_S = 2.0  # the platform says its time in whole seconds


def findings_of_all_tests(loaded: Project) -> Iterator[tuple[str, Finding]]:
    """Test everything, and yield each finding with its subject. Connections are opened."""
    yield from (("config", Finding(ok=True, text=text, code="config_key_renamed")) for text in loaded.warnings)
    yield from findings_of_state_and_platform(loaded)
    for connection in loaded.connections:
        yield from ((connection.name, finding) for finding in findings_of_connection(loaded, connection))


def findings_of_state_and_platform(loaded: Project) -> Iterator[tuple[str, Finding]]:
    """Test the state, the platform and the disks."""
    state = _finding_of_test(lambda: loaded.open_state(read_only=True).close(), "exists and belongs to this platform")
    yield "state", state
    yield from _platform_findings(loaded)
    if state.ok:  # otherwise the allowance fails for the same reason
        yield "allowance", _finding_of_test(lambda: _allowance_text(loaded))
        yield from (("disk", finding) for finding in disk_findings(loaded))


def findings_of_connection(loaded: Project, connection: Connection) -> Iterator[Finding]:
    """Test one connection, as a source, as a target and as a sender of webhooks."""
    answers = True
    for finding in _source_findings(connection):
        answers = answers and finding.ok
        yield finding
    yield from (
        _change_reading_assumptions_finding(stream)
        for _, stream in connection.enabled_streams_with_full_names()
        if stream.reads_changes and answers
    )
    sent = {scope.namespace for scope in loaded.scope_by_stream.values() if scope.target == connection.name}
    shortened = (_ambiguous_key_finding(stream, sent) for stream in connection.streams)
    yield from (finding for finding in shortened if finding is not None)
    yield from _webhook_and_target_findings(loaded, connection)


def _webhook_and_target_findings(loaded: Project, connection: Connection) -> Iterator[Finding]:
    try:
        if connection.webhooks is not None:
            yield _finding_of_test(
                partial(_read_webhook_secrets, connection), "the secrets of its webhooks can be used"
            )
        target = connection.target(loaded.platform.tenant, SystemClock())
    except CrossdockError as error:
        yield _finding_of_error(error)
        return
    if target is not None:
        yield _finding_of_test(target.reach)


def _platform_findings(loaded: Project) -> Iterator[tuple[str, Finding]]:
    """Request what delivery needs to read, or else one list, for which a refusal also suffices."""
    try:
        access = platform_access_and_clock_checks.read_platform_access_or_raise(
            loaded.platform, loaded.access_test_resources
        )
    except CrossdockError as error:
        yield "platform", _finding_of_error(error)
        return
    yield "platform", Finding(ok=True, text=access.text)
    yield "clock", _finding_of_test(partial(_clock_text, loaded.platform, access.ahead_s))
    for resource in access.unreadable:
        if resource in loaded.looked_up_resources:
            yield (
                "platform",
                Finding(
                    ok=False,
                    text=f"may not read {_plural_resource_name(resource)}, but their delivery needs look-ups",
                    code="scopes_missing",
                ),
            )
        else:
            yield (
                "platform",
                Finding(
                    ok=True,
                    text=f"may not read {_plural_resource_name(resource)}; look-ups are not possible, writes need none",
                ),
            )
    needed = needed_and_granted_scopes.needed_scopes(
        loaded.platform,
        loaded.written_resources,
        {*loaded.looked_up_resources, *loaded.resource_names_read_from_platform},
    )
    compared = needed_and_granted_scopes.compare_scopes(needed, access.scopes)
    code = "scopes_missing" if compared.missing else None
    yield "scopes", Finding(ok=not compared.missing, text=compared.text, code=code)


def _clock_text(profile: Profile, ahead_s: float | None) -> str:
    if ahead_s is None:
        return "the platform's answers do not say the time"
    platform_access_and_clock_checks.raise_if_clock_difference_too_large(profile, ahead_s)
    if abs(ahead_s) < _UNNOTICED_CLOCK_DIFFERENCE_S:
        return "as the platform's"
    return f"{duration_text(abs(ahead_s))} {'ahead of' if ahead_s > 0 else 'behind'} the platform's"


def _plural_resource_name(resource: str) -> str:
    return f"{resource.replace('_', ' ')}s"


def _allowance_text(loaded: Project) -> str:
    with loaded.read_state() as tx:
        earlier = tx.buckets.get("platform")
    known = loaded.platform.rate.estimate(earlier.estimate if earlier else None)
    shared = "; shared with others" if loaded.platform.rate.shared else ""
    return f"{limit_text(known)}{shared}"


def _finding_of_test(test: Callable[[], str | None], text: str = "") -> Finding:
    """Return the result of *test*: its error, or the text that it returns, or else *text*."""
    try:
        return Finding(ok=True, text=test() or text)
    except CrossdockError as error:
        return _finding_of_error(error)


def _finding_of_error(error: CrossdockError) -> Finding:
    return Finding(ok=False, text=str(error), code=error.code, category=error.category)


def _change_reading_assumptions_finding(stream: Stream[Any]) -> Finding:
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


def _ambiguous_key_finding(stream: Stream[Any], sent: AbstractSet[str]) -> Finding | None:
    """Find external ids of records *sent* in these namespaces whose key is what is left behind the namespace."""
    told = None if stream.ours is None else stream.ours.member  # by the external id as it is, before it is shortened
    for name in (each for each in stream.key if each != told):
        prefix = stream.columns[name].strip_prefix if name in stream.columns else None
        if prefix is not None and prefix.removesuffix(":") in sent:
            text = f"a record of others that is called like the key {name}, without {prefix}, would be the same record"
            ours = f"declare ours: {{member: {name}, namespace: {prefix.removesuffix(':')}}}"
            return Finding(ok=False, text=f"{stream.name}: {text}; {ours}", code="key_ambiguous")
    return None


def _read_webhook_secrets(connection: Connection) -> None:
    endpoints_by_connection([connection], SystemClock())


def _source_findings(connection: Connection) -> Iterator[Finding]:
    """Test whether the account is connected, if a person has to do that, and then the connection."""
    access = _authorization_finding(connection)
    if access is not None:
        yield access
    if access is None or access.ok:
        yield from _author_or_first_page_findings(connection)


def _authorization_finding(connection: Connection) -> Finding | None:
    try:
        api = connection.api
    except CrossdockError as error:
        return _finding_of_error(error)
    return (
        _finding_of_test(api.auth.status) if api is not None and isinstance(api.auth, AuthorizationCodeAuth) else None
    )


def _author_or_first_page_findings(connection: Connection) -> Iterator[Finding]:
    check = connection.connector.check
    if check is None and connection.connector.api is None:
        return
    with tempfile.TemporaryDirectory(prefix="crossdock-") as folder:
        run = SourceContext(SystemClock(), SilentProgress(), EmptyIntakeLog(), Path(folder), Path(folder), Path(folder))
        try:
            with run.at_end:
                context = connection.context(run)
                yield from (
                    _first_page_findings(connection, context)
                    if check is None
                    else _findings_of_author_check(connection, check, context)
                )
        except CrossdockError as error:
            yield _finding_of_error(error)


def _findings_of_author_check(connection: Connection, check: Any, context: Context[Any]) -> Iterator[Finding]:
    with convert_author_errors("check", connection.name, code=check, settings=connection.settings):
        for finding in check(context):
            if not isinstance(finding, Finding):
                raise TypeError(f"check yielded a {type(finding).__name__} instead of a Finding")
            yield finding


def _first_page_findings(connection: Connection, context: Context[Any]) -> Iterator[Finding]:
    """Read the first page of each stream. An API that does not respond is not tried again."""
    for _, stream in connection.enabled_streams_with_full_names():
        try:
            with convert_author_errors("pull", None, code=stream, settings=connection.settings):
                text = _first_page_text(stream, context)
        except CrossdockError as error:
            yield Finding(ok=False, text=f"{stream.name}: {error}", code=error.code, category=error.category)
            if isinstance(error, UnavailableError):
                return
        else:
            yield Finding(ok=True, text=f"{stream.name}: {text}")


def _first_page_text(stream: Stream[Any], context: Context[Any]) -> str:
    pulled = stream.pull(context, None)
    try:
        for read in pulled:
            if isinstance(read, RawBatch):
                return f"{read.source} responds, with {read.load().height:,} rows"
            if not isinstance(read, Checkpoint):
                raise TypeError(f"yielded a {type(read).__name__} instead of a RawBatch")
        return "has no records"
    finally:
        if isinstance(pulled, Generator):
            pulled.close()


LEAST_FREE_BYTES = 64 * 2**20
"""Bytes that a run needs on each disk for logs of the database and temporary files."""
COPIES_IN_SPOOL, COPIES_IN_TEMPORARY_FILES, COPIES_IN_STATE = 2, 1, 3
"""How many copies of a file may exist at once: in the spool, and sorted beside it; as a plan keeps it; in the state, as
the raw form, the payload and the request of each record.
"""


def disk_findings(loaded: Project) -> Iterator[Finding]:
    """Yield for each disk that a run writes to whether the free space is enough for the largest files so far."""
    with loaded.read_state() as tx:
        read = sum(
            size for stream, size in tx.intake.largest_size_by_stream().items() if stream in loaded.scope_by_stream
        )
    needs = [
        ("spool", loaded.spool, COPIES_IN_SPOOL),
        ("temporary files", Path(tempfile.gettempdir()), COPIES_IN_TEMPORARY_FILES),
    ]
    if loaded.state_url.drivername == "sqlite":
        needs.append(("state", Path(loaded.state_url.database or "").parent, COPIES_IN_STATE))
    disks: dict[int, list[tuple[str, Path, int]]] = {}
    for name, folder, times in needs:
        there = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
        disks.setdefault(there.stat().st_dev, []).append((name, there, times))
    for uses in disks.values():
        free = shutil.disk_usage(uses[0][1]).free
        need = LEAST_FREE_BYTES + read * sum(times for *_, times in uses)
        places = ", ".join(f"{name} in {folder}" for name, folder, _ in uses)
        seen = f"; the largest files of its streams have {byte_size_text(read)}" if read else ""
        text = f"{byte_size_text(free)} free for {places}; a run may need {byte_size_text(need)}{seen}"
        if free >= need:
            yield Finding(ok=True, text=text)
        else:
            yield Finding(ok=False, text=f"{text}; free some space, or move 'spool'", code="disk_space_low")


@dataclass(frozen=True, slots=True, repr=False)
class CheckResult:
    """What `check` found. Printed, it is what ``crossdock check`` prints.

    Attributes:
        findings: In the order of the tests, each with its subject: ``state``, ``platform`` or the name of a connection.
    """

    findings: Sequence[tuple[str, Finding]]

    @property
    def ok(self) -> bool:
        return all(finding.ok for _, finding in self.findings)

    def __str__(self) -> str:
        failed, tests = sum(not finding.ok for _, finding in self.findings), count_with_noun(len(self.findings), "test")
        summary = f"{failed:,} of {tests} failed" if failed else f"{tests} passed"
        return "\n".join((*(finding_line(subject, finding) for subject, finding in self.findings), summary))

    __repr__ = __str__


def finding_line(subject: str, finding: Finding) -> str:
    return f"{'ok  ' if finding.ok else 'FAIL'}  {subject}: {add_code_to_first_line(finding.text, finding.code)}"


def check(config: Config) -> CheckResult:
    """Test the state, the platform, the credentials and the sources, as ``crossdock check`` does. Nothing is changed.

    Args:
        config: As for `crossdock.run`.

    Raises:
        ConfigError: If the config is invalid.
    """
    return CheckResult(list(findings_of_all_tests(load_project(config))))
