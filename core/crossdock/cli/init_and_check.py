"""``crossdock init`` and ``crossdock check``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli import terminal_output
from crossdock.cli.config_loading import load
from crossdock.cli.shared_options import common_options, example, fleet_base, fleet_option
from crossdock.cli.tenant_states import FleetStates
from crossdock.errors import ConfigError, CrossdockError
from crossdock.values.clock import SystemClock
from crossdock.values.display_times import duration_text

if TYPE_CHECKING:
    from crossdock.config.project.connections import Connection
    from crossdock.config.project.project import Project
    from crossdock.connector import Finding, Stream
    from crossdock.platform.platform_config import Profile

_SAME_S = 2.0  # the platform says its time in whole seconds


@click.command(epilog=example("crossdock init -C acme.yaml", "crossdock -C base.yaml init --fleet 'tenants/*.yaml'"))
@fleet_option
@common_options
def init(config: Path, *, fleet: str | None, as_json: bool) -> int:
    """Create the state. It is pinned to the platform and tenant of the config."""
    if fleet is None:
        document, text = _created(load(config))
        terminal_output.print_result(document, text, as_json=as_json)
        return 0
    states = FleetStates(fleet, fleet_base(config))
    found = list(states.each(_created))
    lines = [f"{name}: {text}" for name, (_, text) in found]
    document_of_all = [{"tenant": name, **document} for name, (document, _) in found]
    terminal_output.print_result(document_of_all, *lines, as_json=as_json)
    return states.exit_code


def _created(loaded: Project) -> tuple[dict[str, Any], str]:
    created = loaded.init()
    url, pin = loaded.state_url.render_as_string(hide_password=True), loaded.pin
    document = {"state": url, "made": created, "base_url": pin.base_url, "tenant": pin.tenant}
    text = f"state {'created' if created else 'already exists'}: {url}, for tenant {pin.tenant!r} of {pin.base_url}"
    return document, text


@click.command(
    epilog=example(
        "crossdock check",
        "crossdock check --openapi openapi.json",
        "crossdock -C base.yaml check --fleet 'tenants/*.yaml'",
    )
)
@fleet_option
@common_options
@click.option(
    "--openapi",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Only compare the platform's OpenAPI document with what is sent to it; no connection is opened.",
)
def check(config: Path, *, fleet: str | None, as_json: bool, openapi: Path | None) -> int:
    """Test state, platform, credentials and sources; change nothing.

    Also lists what is assumed about the platform. Exit codes: 0 all tests passed; 2 invalid config; 3 a test failed.
    """
    if fleet is not None:
        if openapi is not None:
            raise ConfigError(
                "--openapi does not go with --fleet", hint="crossdock -C BASE -C TENANT check --openapi FILE"
            )
        return _check_fleet(FleetStates(fleet, fleet_base(config)), as_json=as_json)
    loaded = load(config)
    if openapi is not None:
        from crossdock.cli import openapi_check

        return openapi_check.check(loaded, openapi, as_json=as_json)
    findings = list(_findings(loaded))
    assumptions = dict(loaded.platform.assumptions())
    if as_json:
        found = [{"subject": subject, "ok": item.ok, "text": item.text} for subject, item in findings]
        terminal_output.print_json({"findings": found, "assumptions": assumptions})
    else:
        console = terminal_output.out()
        for subject, item in findings:
            terminal_output.print_lines(console, f"{'ok  ' if item.ok else 'FAIL'}  {subject}: {item.text}")
        console.print()
        console.print(terminal_output.table("Assumptions (undocumented)", ("what", "value"), assumptions.items()))
    return 0 if all(item.ok for _, item in findings) else 3


def _check_fleet(states: FleetStates, *, as_json: bool) -> int:
    """Test each tenant, without the assumptions, which each tenant's own check lists."""
    found = [
        {"tenant": tenant, "subject": subject, "ok": item.ok, "text": item.text}
        for tenant, findings in states.each(lambda loaded: list(_findings(loaded)))
        for subject, item in findings
    ]
    lines = [
        f"{'ok  ' if each['ok'] else 'FAIL'}  {each['tenant']}: {each['subject']}: {each['text']}" for each in found
    ]
    terminal_output.print_result({"findings": found}, *lines, as_json=as_json)
    return states.exit_code or (0 if all(each["ok"] for each in found) else 3)


def _findings(loaded: Project) -> Iterator[tuple[str, Finding]]:
    state = _try(lambda: loaded.open_state(read_only=True).close(), "exists and belongs to this platform")
    yield "state", state
    yield from _platform(loaded)
    if state.ok:  # otherwise the allowance fails for the same reason
        yield "allowance", _try(lambda: _allowance(loaded))
        from crossdock.cli import disk_check

        yield from (("disk", finding) for finding in disk_check.findings(loaded))
    for connection in loaded.connections:
        answers = True
        for finding in _reached(connection):
            answers = answers and finding.ok
            yield connection.name, finding
        read = [stream for _, stream in connection.named_streams() if stream.reads_changes and answers]
        yield from ((connection.name, _beliefs(stream)) for stream in read)
        sent = {scope.namespace for scope in loaded.scopes.values() if scope.target == connection.name}
        shortened = (_shortened_key(stream, sent) for stream in connection.streams)
        yield from ((connection.name, finding) for finding in shortened if finding is not None)
        yield from ((connection.name, finding) for finding in _declared(loaded, connection))


def _declared(loaded: Project, connection: Connection) -> Iterator[Finding]:
    from crossdock.connector import Finding

    try:
        if connection.webhooks is not None:
            yield _try(partial(_receive, connection), "the secrets of its webhooks can be used")
        target = connection.target(loaded.platform.tenant, SystemClock())
    except CrossdockError as error:
        yield Finding(ok=False, text=str(error))
        return
    if target is not None:
        yield _try(target.reach)


def _platform(loaded: Project) -> Iterator[tuple[str, Finding]]:
    """Request what delivery needs to read, or else one list, for which a refusal also suffices."""
    from crossdock.connector import Finding
    from crossdock.platform import access_scopes
    from crossdock.writing.targets import platform_access

    try:
        access = platform_access.reach(loaded.platform, loaded.probed_resources)
    except CrossdockError as error:
        yield "platform", Finding(ok=False, text=str(error))
        return
    yield "platform", Finding(ok=True, text=access.text)
    yield "clock", _try(partial(_clock, loaded.platform, access.ahead_s))
    for resource in access.unreadable:
        if resource in loaded.looked_up_resources:
            yield (
                "platform",
                Finding(ok=False, text=f"may not read {_plural(resource)}, but their delivery needs look-ups"),
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
    yield "scopes", Finding(ok=not compared.missing, text=compared.text)


def _clock(profile: Profile, ahead_s: float | None) -> str:
    from crossdock.writing.targets import platform_access

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
    sure = f", {known.agreed + 1} estimates agree" if known.rate_from == "learned" and known.agreed else ""
    rate = f"{known.rate_per_s * 60:,.0f} a minute ({known.rate_from}{sure})" if known.rate_per_s else "rate unknown"
    burst = f"burst {known.burst:,} ({known.burst_from})" if known.burst else "burst unknown"
    learning = "" if known.rate_per_s and known.burst else "; it is learned from answers"
    shared = "; shared with others" if loaded.platform.rate.shared else ""
    return f"{rate}, {burst}{learning}{shared}"


def _try(test: Callable[[], str | None], text: str = "") -> Finding:
    """Return the result of *test*: its error, or the text that it returns, or else *text*."""
    from crossdock.connector import Finding

    try:
        return Finding(ok=True, text=test() or text)
    except CrossdockError as error:
        return Finding(ok=False, text=str(error))


def _beliefs(stream: Stream[Any]) -> Finding:
    """Describe what a stream of changes assumes about its source, and how that is checked."""
    from crossdock.connector import Finding

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
    from crossdock.connector import Finding

    told = None if stream.ours is None else stream.ours.member  # by the external id as it is, before it is shortened
    for name in (each for each in stream.key if each != told):
        prefix = stream.columns[name].strip_prefix if name in stream.columns else None
        if prefix is not None and prefix.removesuffix(":") in sent:
            text = f"a record of others that is called like the key {name}, without {prefix}, would be the same record"
            ours = f"declare ours: {{member: {name}, namespace: {prefix.removesuffix(':')}}}"
            return Finding(ok=False, text=f"{stream.name}: {text}; {ours}")
    return None


def _receive(connection: Connection) -> None:
    from crossdock.services.inbox.webhook_endpoints import endpoints

    endpoints([connection], SystemClock())


def _reached(connection: Connection) -> Iterator[Finding]:
    """Test whether the account is connected, if a person has to do that, and then the connection."""
    access = _access(connection)
    if access is not None:
        yield access
    if access is None or access.ok:
        yield from _connection(connection)


def _access(connection: Connection) -> Finding | None:
    from crossdock.connector import Finding
    from crossdock.reading.transport.authorization_code import AuthorizationCodeAuth

    try:
        api = connection.api
    except CrossdockError as error:
        return Finding(ok=False, text=str(error))
    return _try(api.auth.status) if api is not None and isinstance(api.auth, AuthorizationCodeAuth) else None


def _connection(connection: Connection) -> Iterator[Finding]:
    from crossdock.connector import Finding
    from crossdock.reading.sources.run_context import SourceContext
    from crossdock.runs.intake_log import NoIntake
    from crossdock.values.author_code import guarded
    from crossdock.values.progress import Silent

    check = connection.connector.check
    if check is None:
        return
    with tempfile.TemporaryDirectory(prefix="crossdock-") as folder:
        run = SourceContext(SystemClock(), Silent(), NoIntake(), Path(folder), Path(folder), Path(folder))
        try:
            with run.at_end, guarded("check", connection.name, code=check, settings=connection.settings):
                for finding in check(connection.context(run)):
                    if not isinstance(finding, Finding):
                        raise TypeError(f"check yielded a {type(finding).__name__} instead of a Finding")
                    yield finding
        except CrossdockError as error:
            yield Finding(ok=False, text=str(error))
