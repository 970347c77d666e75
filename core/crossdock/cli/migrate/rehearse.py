"""``crossdock migrate rehearse``."""

from __future__ import annotations

from pathlib import Path

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project
from crossdock.cli.shared_options_messages_and_signals import (
    absolute_path,
    common_options,
    help_example,
    print_sentences,
    raise_if_not_writable,
)
from crossdock.values.clock import SystemClock


@click.command(
    epilog=help_example(
        "crossdock migrate rehearse",
        "crossdock migrate rehearse -o acme.rehearsal --html acme.html",
        "crossdock migrate rehearse --against-platform",
    )
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Save the rehearsal for 'crossdock migrate load --rehearsal'.",
)
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a web page that you can mail or open, without values of records.",
)
@click.option("--against-platform", is_flag=True, help="List what the platform has, to find what is there already.")
@click.option("--raw", is_flag=True, help="Show values of records, which may be personal; not on the page.")
@common_options
def rehearse(
    out: Path | None, page: Path | None, config: Path, *, against_platform: bool, raw: bool, as_json: bool
) -> int:
    """Plan all waves of a migration, and profile what they read.

    Shows for each column how much of it is filled, how many different values it has and what is odd about them; what
    would be rejected, and why; references that will not resolve; and how long each wave would take.

    Writes nothing, and calls nothing on the platform without --against-platform, which only reads.

    Exit codes: 0 everything would be delivered; 1 some records would be rejected, wait or need a decision; 2 wrong
    usage or config; 3 a source, the state or the platform cannot be read; 4 refused for safety.
    """
    from crossdock.cli.migrate import rehearsal_document_text_and_page
    from crossdock.migration.rehearsal import rehearse as rehearsed_migration

    place, page = absolute_path(out), absolute_path(page)
    raise_if_not_writable(place, page)
    loaded = load_project(config)
    with terminal_output.show_progress(wanted=not as_json) as progress:
        rehearsed = rehearsed_migration(
            loaded, clock=SystemClock(), progress=progress, against_platform=against_platform
        )
    planned = rehearsed.planned
    terminal_output.print_errors(planned.errors)
    document = rehearsal_document_text_and_page.rehearsal_document(rehearsed, raw=raw)
    if as_json:
        terminal_output.print_json(document)
    else:
        rehearsal_document_text_and_page.print_rehearsal(terminal_output.output_console(), document)
    if page is not None:
        rehearsal_document_text_and_page.write_rehearsal_page(
            page, rehearsal_document_text_and_page.rehearsal_document(rehearsed, raw=False), config
        )
    if planned.errors:
        return planned.exit_code
    if place is not None:
        rehearsed.to_rehearsal().save(place)
        if not as_json:
            print_sentences(f"saved; load it with: crossdock migrate load --rehearsal {out}")
    return 1 if rehearsed.has_open_records else 0
