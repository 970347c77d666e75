"""``crossdock init`` and ``crossdock check``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossdock.cli.shared_options import as_json, config_option, example, say
from crossdock.errors import CrossdockError

if TYPE_CHECKING:
    from crossdock.connector import Finding
    from crossdock.project.project import Connection, Project


@click.command(epilog=example("crossdock init -C acme.yaml"))
@config_option
@as_json
def init(config: Path, *, as_json: bool) -> None:
    """Make the state for this config, pinned to its platform and tenant; or bring an older one up to date."""
    from crossdock.cli import terminal_output
    from crossdock.project import project

    loaded = project.load(config)
    made = loaded.init()
    place = loaded.state_url.render_as_string(hide_password=True)
    if as_json:
        pinned = {"base_url": loaded.pin.base_url, "tenant": loaded.pin.tenant}
        terminal_output.print_json({"state": place, "made": made, **pinned})
        return
    pin = f"tenant {loaded.pin.tenant!r} of {loaded.pin.base_url}"
    say(f"{'made' if made else 'already there, up to date:'} {place}, for {pin}")


@click.command(epilog=example("crossdock check"))
@config_option
@as_json
def check(config: Path, *, as_json: bool) -> int:
    """Reach everything once and change nothing: state, platform, credentials, sources; and list what is assumed."""
    from crossdock import config_file as configs
    from crossdock.cli import terminal_output
    from crossdock.notifications.notifier import notify_config
    from crossdock.project import project

    loaded = project.load(config)
    notify_config(configs.read(config))
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
        console.print(terminal_output.table("Assumptions (not documented)", ("what", "value"), assumptions.items()))
    return 0 if all(item.ok for _, item in findings) else 3


def _findings(loaded: Project) -> Iterator[tuple[str, Finding]]:
    from crossdock.platform import access_check

    yield "state", _tried(lambda: loaded.open_state(read_only=True).close(), "there, and of this platform")
    yield "platform", _tried(lambda: access_check.reach(loaded.platform))
    yield "allowance", _tried(lambda: _allowance(loaded))
    for connection in loaded.connections:
        yield from ((connection.name, finding) for finding in _connection(connection))


def _allowance(loaded: Project) -> str:
    """What is known of the rate limit, from whom, and how sure it is."""
    with loaded.look() as tx:
        earlier = tx.buckets.get("platform")
    known = loaded.platform.rate.estimate(earlier.estimate if earlier else None)
    sure = f", {known.agreed + 1} estimates agree" if known.rate_from == "learned" and known.agreed else ""
    rate = f"{known.rate_per_s * 60:,.0f} a minute ({known.rate_from}{sure})" if known.rate_per_s else "rate unknown"
    burst = f"burst {known.burst:,} ({known.burst_from})" if known.burst else "burst unknown"
    shared = ", shared with others" if loaded.platform.rate.shared else ""
    learning = "" if known.rate_per_s and known.burst else ": answers will tell"
    return f"{rate}, {burst}{learning}{shared}"


def _tried(look: Callable[[], str | None], text: str = "") -> Finding:
    """What came of *look*: its error, or what it tells, or else *text*."""
    from crossdock.connector import Finding

    try:
        return Finding(ok=True, text=look() or text)
    except CrossdockError as error:
        return Finding(ok=False, text=str(error))


def _connection(connection: Connection) -> Iterator[Finding]:
    from crossdock.clock import SystemClock
    from crossdock.connector import Context, Finding
    from crossdock.progress import Silent
    from crossdock.runs.intake_logs import NoIntake
    from crossdock.sources.source_context import SourceContext

    if connection.connector.check is None:
        return
    with tempfile.TemporaryDirectory(prefix="crossdock-") as folder:
        place = SourceContext(SystemClock(), Silent(), NoIntake(), Path(folder), Path(folder), Path(folder))
        try:
            yield from connection.connector.check(Context(connection.settings, connection.name, place))
        except CrossdockError as error:
            yield Finding(ok=False, text=str(error))
