"""``crossdock migrate freeze``."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project
from crossdock.cli.shared_options_messages_and_signals import (
    common_options,
    help_example,
    print_sentences,
    stop_event_set_by_signals,
)
from crossdock.values.texts_of_numbers_and_times import count_with_noun, instant_text

UNITS = "smh"


def _parse_duration(_ctx: click.Context, _parameter: click.Parameter, value: str) -> timedelta:
    from crossdock.values.config_base_types import is_duration, parse_duration

    if not is_duration(value, UNITS):
        raise click.BadParameter(f"{value!r} is not a duration, such as 90s, 10m or 2h")
    return parse_duration(value)


@click.command(epilog=help_example("crossdock migrate freeze --wait 30m"))
@click.option(
    "--wait",
    default="10m",
    show_default=True,
    metavar="TIME",
    callback=_parse_duration,
    help="Between the two readings, such as 90s, 10m or 2h.",
)
@common_options
def freeze(wait: timedelta, config: Path, *, as_json: bool) -> None:
    """Check that the sources no longer change.

    Reads all streams of all waves twice. All that they have must be loaded. Sends nothing.

    Exit codes: 0 nothing changed and a load would send nothing; 2 wrong usage or config; 3 a source cannot be read;
    4 a source changed between the readings, a load is needed first, or no migration has begun; 130 interrupted.
    """
    from crossdock.migration.freeze_check import verify_and_store_source_freeze
    from crossdock.values.clock import SystemClock

    loaded = load_project(config)
    with stop_event_set_by_signals() as interrupt:
        frozen = verify_and_store_source_freeze(loaded, wait, clock=SystemClock(), interrupt=interrupt)
    streams = count_with_noun(len(frozen.sources), "stream")
    text = f"{streams}: unchanged since {instant_text(frozen.since)}; a load would send nothing"
    terminal_output.print_result(frozen.as_json(), text, as_json=as_json)
    if frozen.newest_files:
        written = ", ".join(f"{name} of {instant_text(at)}" for name, at in frozen.newest_files.items())
        print_sentences(
            f"the last files with new content: {written}. If a system was closed later than that and has not exported"
            " since, have it export once more, load, and check again",
            err=True,
        )
