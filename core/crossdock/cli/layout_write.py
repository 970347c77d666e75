"""``crossdock layout write``: the file that a record makes for a partner."""

from __future__ import annotations

import base64
from pathlib import Path

import click

from crossdock.cli import terminal_output
from crossdock.cli.output_files import absolute_path, check_writable
from crossdock.cli.printed_sentences import say
from crossdock.cli.project_and_state import load
from crossdock.cli.shared_options import check_utf8, common_options, help_example
from crossdock.errors import ConfigError
from crossdock.values.clock import SystemClock
from crossdock.values.display_texts import counted


@click.command(
    "write",
    epilog=help_example(
        "crossdock layout write shop.orders --record SO-17 --raw",
        "crossdock layout write shop.orders --record SO-17 -o SO-17.csv",
    ),
)
@click.argument("stream", callback=check_utf8)
@click.option("--record", "key", required=True, metavar="KEY", help="The key of the record.", callback=check_utf8)
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the file here.")
@click.option("--raw", is_flag=True, help="Show the file, whose values may be personal.")
@common_options
def write(stream: str, key: str, out: Path | None, config: Path, *, raw: bool, as_json: bool) -> None:
    """Show the file that the next sync would hand over for one record alone, or the last file that had it.

    Nothing is handed over, and no number is used up.
    """
    from crossdock.runs.record_file_preview import file_of_record
    from crossdock.values.local_files import replace_file
    from crossdock.values.record_keys import entered_key

    if not raw and out is None:
        raise ConfigError(
            "the file may have personal values: give --raw to show it, or -o FILE", code="personal_data_withheld"
        )
    place = absolute_path(out)
    loaded = load(config)
    check_writable(place)
    if stream not in loaded.scope_by_stream:
        loaded.selected_streams([stream])
        raise ConfigError(f"{stream!r} is a connection: name one of its streams", code="choice_unsuitable")
    name, body = file_of_record(loaded, stream, entered_key(key), SystemClock())
    if place is not None:
        replace_file(place, body)
    if as_json:
        content = base64.b64encode(body).decode() if raw else None
        terminal_output.print_json({"name": name, "bytes": len(body), "content_base64": content})
        return
    say(f"{name}, {counted(len(body), 'byte')}" + (f", written to {place}" if place else ""), err=raw)
    if raw:
        terminal_output.print_lines(
            terminal_output.output_console(), body.decode("utf-8", "backslashreplace").rstrip("\n")
        )
