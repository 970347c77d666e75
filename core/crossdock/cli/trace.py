"""``crossdock trace``: the history of a record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project
from crossdock.cli.shared_options_messages_and_signals import (
    common_options,
    help_example,
    print_sentences,
    raise_if_value_not_utf8,
)
from crossdock.errors import ConfigError

if TYPE_CHECKING:
    from crossdock.runs.record_history import RecordHistory


@click.command(
    epilog=help_example(
        "crossdock trace 536365",
        "crossdock trace wms:gid%3A%2F%2F7",
        "crossdock trace inv_4711",
        "crossdock trace INV_20260301.txt:118",
    )
)
@click.argument("name", metavar="ID", callback=raise_if_value_not_utf8)
@click.option("--stream", metavar="STREAM", help="Only the record of this stream.", callback=raise_if_value_not_utf8)
@common_options
def trace(name: str, config: Path, *, stream: str | None, as_json: bool) -> None:
    """Show the history of a record, with every attempt.

    ID is its key, its externalId or its id on the platform, the idempotency key of an operation, or FILE:LINE of its
    source. Records of several streams may have the same key; each is shown with its stream. Of the record's data, only
    what an update changed is shown, without personal values.
    """
    from crossdock.runs import record_history
    from crossdock.runs.open_records import record_filter_from_options
    from crossdock.runs.record_history import RecordSearch

    loaded = load_project(config)
    with loaded.read_state() as tx:
        in_inbox = tx.inbox.count_records_to_fetch(record_filter_from_options(stream, name, None, None))
        found, first_line = RecordSearch(tx, loaded.scope_by_stream).find(name)
        for history in found:
            record_history.add_changed_members_to_operations(loaded, tx, history)
    histories = [each for each in found if stream is None or stream in each.streams]
    if not histories:
        raise _not_found_error(name, stream, found, in_inbox=in_inbox > 0)
    if as_json:
        terminal_output.print_json([record_history.history_document(each) for each in histories])
        return
    if first_line is not None:
        print_sentences(f"nearest known record, which begins on line {first_line}:")
    for history in histories:
        for line in record_history.history_lines(history):
            terminal_output.output_console().print(line, soft_wrap=True)


def _not_found_error(name: str, stream: str | None, elsewhere: list[RecordHistory], *, in_inbox: bool) -> ConfigError:
    from crossdock.runs.record_history import streams_or_namespace_text

    if in_inbox:
        why = f"crossdock records list --state inbox --key {name}"
        return ConfigError(
            f"a webhook has named {name!r}, which is not fetched yet", hint=f"'{why}' says why", code="record_unknown"
        )
    if elsewhere:
        others = sorted({streams_or_namespace_text(each) for each in elsewhere})
        return ConfigError(
            f"the state has no record {name!r} of {stream}",
            hint=f"it has one of {', '.join(others)}",
            code="record_unknown",
        )
    hint = "give a record's key, its externalId or id on the platform, an idempotency key, or FILE:LINE"
    return ConfigError(f"the state has no record {name!r}", hint=hint, code="record_unknown")
