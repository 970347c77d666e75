"""``crossdock check --openapi FILE``: compares the platform's OpenAPI document with what is sent to the platform."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from crossdock.cli import terminal_output
from crossdock.resources import ResourceName

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.platform.openapi_members import Difference
    from crossdock.values.json_documents.projects import OpenApiCheck, OpenApiDifference


def check(loaded: Project, path: Path, *, as_json: bool) -> int:
    """Print the differences for the resources that the streams write, or for all. Return 3 if a request must fail."""
    from crossdock.platform import openapi_comparison, openapi_file

    document, resources = openapi_file.read(path), loaded.written_resources or tuple(get_args(ResourceName))
    found = openapi_comparison.compare(
        document, loaded.platform, resources, loaded.looked_up_resources, loaded.deleted_resources
    )
    failing = [each for each in found if each.is_error]
    if as_json:
        listed: list[OpenApiDifference] = [
            {"where": each.where, "what": each.what, "fix": each.fix or None, "error": each.is_error} for each in found
        ]
        compared: OpenApiCheck = {"file": str(path), "resources": list(resources), "differences": listed}
        terminal_output.print_json(compared)
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
