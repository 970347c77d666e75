"""``crossdock init`` and ``crossdock check``.

``--openapi FILE`` compares the platform's OpenAPI document with what is sent to the platform.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import FleetStates, load_project
from crossdock.cli.shared_options_messages_and_signals import (
    common_options,
    explicitly_given_fleet_base_files,
    fleet_option,
    help_example,
    print_sentences,
)
from crossdock.errors import ConfigError

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.platform.comparison_with_openapi import DifferenceFromOpenApi
    from crossdock.values.json_documents.project_record_and_state_commands import OpenApiCheck, OpenApiDifference, State


@click.command(
    epilog=help_example("crossdock init -C acme.yaml", "crossdock -C base.yaml init --fleet 'tenants/*.yaml'")
)
@fleet_option
@common_options
def init(config: Path, *, fleet: str | None, as_json: bool) -> int:
    """Create the state. It is pinned to the platform and tenant of the config."""
    if fleet is None:
        document, text = _create_or_upgrade_state(load_project(config))
        terminal_output.print_result(document, text, as_json=as_json)
        return 0
    states = FleetStates(fleet, explicitly_given_fleet_base_files(config))
    found = list(states.read_each_tenant(_create_or_upgrade_state))
    lines = [f"{name}: {text}" for name, (_, text) in found]
    document_of_all = [{"tenant": name, **document} for name, (document, _) in found]
    terminal_output.print_result(document_of_all, *lines, as_json=as_json)
    return states.exit_code


def _create_or_upgrade_state(loaded: Project) -> tuple[State, str]:
    before = loaded.create_or_upgrade_state()
    from crossdock.state.db.database_opening_and_errors import url_without_password
    from crossdock.state.db.schema import VERSION

    url, pin = url_without_password(loaded.state_url), loaded.pinned_tenant
    document: State = {"state": url, "made": before == 0, "base_url": pin.base_url, "tenant": pin.tenant}
    upgraded = f"upgraded from version {before} to {VERSION}"
    what = "already exists" if before is None else upgraded if before else "created"
    text = f"state {what}: {url}, for tenant {pin.tenant!r} of {pin.base_url}"
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
@click.option(
    "--assumptions", is_flag=True, help="Also list what is assumed about the platform, which does not document it."
)
def check(config: Path, *, fleet: str | None, as_json: bool, openapi: Path | None, assumptions: bool) -> int:
    """Test state, platform, credentials and sources; change nothing.

    Exit codes: 0 all tests passed; 2 invalid config; 3 a test failed.
    """
    if fleet is not None:
        if openapi is not None:
            raise ConfigError(
                "--openapi does not go with --fleet",
                hint="crossdock -C BASE -C TENANT check --openapi FILE",
                code="options_conflict",
            )
        return _check_fleet(FleetStates(fleet, explicitly_given_fleet_base_files(config)), as_json=as_json)
    loaded = load_project(config)
    if openapi is not None:
        return compare_and_print_openapi_differences(loaded, openapi, as_json=as_json)
    from crossdock.services.system_check.tests_of_state_platform_and_connections import (
        CheckResult,
        findings_of_all_tests,
    )

    result = CheckResult(list(findings_of_all_tests(loaded)))
    assumed = dict(loaded.platform.assumptions())
    if as_json:
        found = [{"subject": subject, **asdict(item)} for subject, item in result.findings]
        terminal_output.print_json({"findings": found, "assumptions": assumed})
    else:
        terminal_output.print_lines(terminal_output.output_console(), str(result))
        if assumptions:
            table = terminal_output.make_fitting_table(
                "Assumptions about the platform", ("what", "value"), assumed.items()
            )
            terminal_output.output_console().print("", table, sep="\n")
        else:
            print_sentences(f"{len(assumed)} facts about the platform are assumed; --assumptions lists them")
    return 0 if result.ok else 3


def _check_fleet(states: FleetStates, *, as_json: bool) -> int:
    """Test each tenant, without the assumptions, which each tenant's own check lists."""
    from crossdock.services.system_check.tests_of_state_platform_and_connections import (
        finding_line,
        findings_of_all_tests,
    )

    found = [
        (tenant, subject, item)
        for tenant, findings in states.read_each_tenant(lambda loaded: list(findings_of_all_tests(loaded)))
        for subject, item in findings
    ]
    document = [{"tenant": tenant, "subject": subject, **asdict(item)} for tenant, subject, item in found]
    lines = [finding_line(f"{tenant}: {subject}", item) for tenant, subject, item in found]
    terminal_output.print_result({"findings": document}, *lines, as_json=as_json)
    return states.exit_code or (0 if all(item.ok for *_, item in found) else 3)


def compare_and_print_openapi_differences(loaded: Project, path: Path, *, as_json: bool) -> int:
    """Print the differences for the resources that the streams write, or for all. Return 3 if a request must fail."""
    from crossdock.platform import comparison_with_openapi, openapi_file
    from crossdock.resources import ResourceName

    document, resources = (
        openapi_file.read_openapi_file(path),
        loaded.written_resources or tuple(get_args(ResourceName)),
    )
    found = comparison_with_openapi.compare_openapi_with_profile(
        document, loaded.platform, resources, loaded.looked_up_resources, loaded.resources_with_deleting_streams
    )
    failing = [each for each in found if each.is_error]
    if as_json:
        listed: list[OpenApiDifference] = [
            {"where": each.where, "what": each.what, "fix": each.fix or None, "error": each.is_error} for each in found
        ]
        compared: OpenApiCheck = {"file": str(path), "resources": list(resources), "differences": listed}
        terminal_output.print_json(compared)
    else:
        _print_openapi_differences(path, resources, failing, [each for each in found if not each.is_error])
    return 3 if failing else 0


def _print_openapi_differences(
    path: Path,
    resources: Sequence[str],
    failing: Sequence[DifferenceFromOpenApi],
    others: Sequence[DifferenceFromOpenApi],
) -> None:
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
            console.print(terminal_output.make_fitting_table(title, columns, shown))
    settings = list(dict.fromkeys(each.fix for each in (*failing, *others) if each.fix))
    if settings:
        terminal_output.print_lines(console, "\n".join(["", "Settings to try:", *(f"  {each}" for each in settings)]))
