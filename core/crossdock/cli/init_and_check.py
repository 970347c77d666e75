"""``crossdock init`` and ``crossdock check``.

``--openapi FILE`` compares the platform's OpenAPI document with what is sent to the platform.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load
from crossdock.cli.shared_options import common_options, fleet_base, fleet_option, help_example
from crossdock.cli.tenant_states import FleetStates
from crossdock.errors import ConfigError, with_code

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.connector import Finding
    from crossdock.platform.openapi_members import Difference


@click.command(
    epilog=help_example("crossdock init -C acme.yaml", "crossdock -C base.yaml init --fleet 'tenants/*.yaml'")
)
@fleet_option
@common_options
def init(config: Path, *, fleet: str | None, as_json: bool) -> int:
    """Create the state. It is pinned to the platform and tenant of the config."""
    if fleet is None:
        document, text = _create_state(load(config))
        terminal_output.print_result(document, text, as_json=as_json)
        return 0
    states = FleetStates(fleet, fleet_base(config))
    found = list(states.each(_create_state))
    lines = [f"{name}: {text}" for name, (_, text) in found]
    document_of_all = [{"tenant": name, **document} for name, (document, _) in found]
    terminal_output.print_result(document_of_all, *lines, as_json=as_json)
    return states.exit_code


def _create_state(loaded: Project) -> tuple[dict[str, Any], str]:
    created = loaded.init()
    url, pin = loaded.state_url.render_as_string(hide_password=True), loaded.pinned_tenant
    document = {"state": url, "made": created, "base_url": pin.base_url, "tenant": pin.tenant}
    text = f"state {'created' if created else 'already exists'}: {url}, for tenant {pin.tenant!r} of {pin.base_url}"
    return document, text


@click.command(
    epilog=help_example(
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
                "--openapi does not go with --fleet",
                hint="crossdock -C BASE -C TENANT check --openapi FILE",
                code="options_conflict",
            )
        return _check_fleet(FleetStates(fleet, fleet_base(config)), as_json=as_json)
    loaded = load(config)
    if openapi is not None:
        return compare_openapi(loaded, openapi, as_json=as_json)
    from crossdock.services.system_check.check import findings_of

    findings = list(findings_of(loaded))
    assumptions = dict(loaded.platform.assumptions())
    if as_json:
        found = [{"subject": subject, **asdict(item)} for subject, item in findings]
        terminal_output.print_json({"findings": found, "assumptions": assumptions})
    else:
        console = terminal_output.output_console()
        for subject, item in findings:
            terminal_output.print_lines(console, _finding_line(subject, item))
        console.print()
        console.print(terminal_output.table("Assumptions (undocumented)", ("what", "value"), assumptions.items()))
    return 0 if all(item.ok for _, item in findings) else 3


def _check_fleet(states: FleetStates, *, as_json: bool) -> int:
    """Test each tenant, without the assumptions, which each tenant's own check lists."""
    from crossdock.services.system_check.check import findings_of

    found = [
        (tenant, subject, item)
        for tenant, findings in states.each(lambda loaded: list(findings_of(loaded)))
        for subject, item in findings
    ]
    document = [{"tenant": tenant, "subject": subject, **asdict(item)} for tenant, subject, item in found]
    lines = [_finding_line(f"{tenant}: {subject}", item) for tenant, subject, item in found]
    terminal_output.print_result({"findings": document}, *lines, as_json=as_json)
    return states.exit_code or (0 if all(item.ok for *_, item in found) else 3)


def _finding_line(subject: str, item: Finding) -> str:
    return f"{'ok  ' if item.ok else 'FAIL'}  {subject}: {with_code(item.text, item.code)}"


def compare_openapi(loaded: Project, path: Path, *, as_json: bool) -> int:
    """Print the differences for the resources that the streams write, or for all. Return 3 if a request must fail."""
    from crossdock.platform import openapi_comparison, openapi_file
    from crossdock.resources import ResourceName

    document, resources = openapi_file.read(path), loaded.written_resources or tuple(get_args(ResourceName))
    found = openapi_comparison.compare(
        document, loaded.platform, resources, loaded.looked_up_resources, loaded.deleted_resources
    )
    failing = [each for each in found if each.is_error]
    if as_json:
        listed = [
            {"where": each.where, "what": each.what, "fix": each.fix or None, "error": each.is_error} for each in found
        ]
        terminal_output.print_json({"file": str(path), "resources": list(resources), "differences": listed})
    else:
        _print(path, resources, failing, [each for each in found if not each.is_error])
    return 3 if failing else 0


def _print(path: Path, resources: Sequence[str], failing: Sequence[Difference], others: Sequence[Difference]) -> None:
    console = terminal_output.output_console()
    named = ", ".join(resources)
    if not failing and not others:
        terminal_output.print_lines(console, f"ok    {path} describes what is sent for {named}")
        return
    terminal_output.print_lines(console, f"{path} compared with what is sent for {named}")
    for title, rows in (("Requests would fail", failing), ("Some records may be rejected", others)):
        if rows:
            columns = ("where", "what", "fix")
            shown = [(each.where, each.what, each.fix) for each in rows]
            console.print()
            console.print(terminal_output.table(title, columns, shown))
    settings = list(dict.fromkeys(each.fix for each in (*failing, *others) if each.fix))
    if settings:
        terminal_output.print_lines(console, "\n".join(["", "Settings to try:", *(f"  {each}" for each in settings)]))
