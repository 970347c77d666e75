"""``crossdock migrate sign-off``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project
from crossdock.cli.shared_options_messages_and_signals import (
    common_options,
    help_example,
    person_name_option,
    print_sentences,
    raise_if_not_writable,
    raise_if_value_not_utf8,
    stop_event_set_by_signals,
)
from crossdock.values.texts_of_numbers_and_times import instant_text


def _parse_reason(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise click.BadParameter("is empty")
    return raise_if_value_not_utf8(ctx, parameter, value)


@click.command("sign-off", epilog=help_example("crossdock migrate sign-off --by 'Ann Lee' -o acme-signed.html"))
@person_name_option
@click.option(
    "-o",
    "--out",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where the report is written: a new HTML file.",
)
@click.option(
    "--accept-exceptions",
    metavar="REASON",
    callback=_parse_reason,
    help="Sign although records differ, were rejected or are waiting; the report says why and who.",
)
@common_options
def sign_off(by: str, out: Path, accept_exceptions: str | None, config: Path, *, as_json: bool) -> None:
    """End the migration with a report for the archive.

    All waves must be loaded, the sources frozen, and everything reconciled since the last load without differences.
    Reads the sources once more and sends nothing. 'crossdock migrate verify' checks the report later.

    Exit codes: 0 signed off; 2 wrong usage or config; 3 a source or the state cannot be read; 4 refused: each reason is
    listed with what to do; 130 interrupted.
    """
    from crossdock.console import page_rendering, self_contained_sign_off_report
    from crossdock.errors import ConfigError
    from crossdock.migration import sign_off as signing
    from crossdock.values.clock import SystemClock

    if out.exists():
        raise ConfigError(
            "the file exists, and a report replaces none",
            where=str(out),
            hint="choose another name",
            code="file_exists",
        )
    raise_if_not_writable(place := out.absolute())
    loaded, digests = load_project(config), list[str]()

    def write(document: dict[str, Any]) -> str:
        content, digest = page_rendering.append_checksum_line(
            self_contained_sign_off_report.render_sign_off_report(document)
        )
        page_rendering.write_page_file(place, content.decode())
        digests.append(digest)
        return digest

    with stop_event_set_by_signals() as interrupt:
        document = signing.sign_off(
            loaded, write, by=by, accepted=accept_exceptions, clock=SystemClock(), interrupt=interrupt
        )
    facts = document["migration"]
    shown = {name: facts[name] for name in ("name", "signed_off_at", "signed_off_by", "accepted_exceptions")}
    shown |= {"report": str(out), "sha256": digests[-1]}
    if as_json:
        terminal_output.print_json(shown)
        return
    print_sentences(
        f"{facts['name']}: signed off {instant_text(facts['signed_off_at'])} by {facts['signed_off_by']}",
        f"report written to {out}",
        f"its SHA-256, for your records: {shown['sha256']}",
    )
