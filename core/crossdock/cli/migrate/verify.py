"""``crossdock migrate verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import read_state_of_config
from crossdock.cli.shared_options_messages_and_signals import common_options, help_example
from crossdock.values.texts_of_numbers_and_times import instant_text

_LARGEST = 1 << 30  # bytes


@click.command(epilog=help_example("crossdock migrate verify acme-signed.html"))
@click.argument("report", type=click.Path(path_type=Path, dir_okay=False))
@common_options
def verify(report: Path, config: Path, *, as_json: bool) -> None:
    """Check that the sign-off report REPORT is unchanged.

    Compares its SHA-256 with its last line, and with the state of the config; without a config file only with its last
    line.

    Exit codes: 0 unchanged; 2 the file cannot be read; 3 the state cannot be read; 4 the file was changed, or the state
    has no sign-off with this report.
    """
    from crossdock.console import page_rendering
    from crossdock.errors import ConfigError, RefusedError
    from crossdock.values.safe_local_files import read_regular_file_within_limit

    try:
        content = read_regular_file_within_limit(report, _LARGEST)
    except OSError as error:
        raise ConfigError(
            f"the report cannot be read: {error.strerror}", where=str(report), code="file_unreadable"
        ) from error
    try:
        digest = page_rendering.verified_digest(content)
    except RefusedError as error:
        raise RefusedError(error.message, where=str(report), hint=error.hint, code=error.code) from None
    document: dict[str, Any] = {"sha256": digest, "name": None, "signed_off_at": None, "signed_off_by": None}
    if not config.exists():
        text = f"{report}: as its last line says; no config here; compare with your records: {digest}"
        terminal_output.print_result(document, text, as_json=as_json)
        return
    with read_state_of_config(config) as (tx, _):
        found = tx.migrations.migration_by_report_digest(digest)
    if found is None or found.signed_off_at is None:
        message = f"not signed off in this state: it has no sign-off with SHA-256 {digest}"
        hint = "the sign-off was interrupted, the report was changed and sealed again, or it is of another state"
        raise RefusedError(message, where=str(report), hint=hint, code="sign_off_invalid")
    document |= {"name": found.name, "signed_off_at": found.signed_off_at, "signed_off_by": found.signed_off_by}
    when = instant_text(found.signed_off_at)
    text = f"{report}: unchanged; {found.name} was signed off {when} by {found.signed_off_by}"
    terminal_output.print_result(document, text, as_json=as_json)
