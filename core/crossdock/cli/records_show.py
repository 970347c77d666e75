"""``crossdock records show``: why a record was not delivered, and how it differs from what was delivered before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load
from crossdock.cli.records_list import INBOX, OPEN
from crossdock.cli.shared_options import check_utf8, common_options, help_example
from crossdock.errors import ConfigError
from crossdock.values.display_texts import instant_text

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.runs.open_records import Item
    from crossdock.state import Transaction


@click.command("show", epilog=help_example("crossdock records show wms.invoices 536365 --raw"))
@click.argument("stream", callback=check_utf8)
@click.argument("key", callback=check_utf8)
@click.option("--raw", is_flag=True, help="Include the record's data, which may be personal.")
@common_options
def show_(stream: str, key: str, config: Path, *, raw: bool, as_json: bool) -> None:
    """Show why a record was not delivered; its data only with --raw.

    For a record that changed after it was delivered, show each member that differs, personal ones only with --raw.
    """
    from crossdock.runs.open_records import list_unverified, matching_items, without_data
    from crossdock.state import RecordFilter
    from crossdock.values.record_keys import key_text

    loaded = load(config)
    keys = {key, key_text([key])}  # as listed, or as in the source
    with loaded.read_state() as tx:
        choices = [RecordFilter(stream, each) for each in sorted(keys)]
        items = [item for each in choices for item in matching_items(tx, each, _SHOWN, 10)]
        items += [item for each in choices for item in list_unverified(loaded, tx, each, 10)]
        shown = [without_data(item) | _details(loaded, tx, item, raw=raw) for item in items]
    if not shown:
        raise ConfigError(
            f"no record {key!r} of stream {stream!r} is rejected, waiting, in doubt, pending, unverified, dropped or in"
            " the inbox",
            hint=f"'crossdock trace {key} --stream {stream}' shows the history of one that was delivered",
            code="record_unknown",
        )
    if as_json:
        terminal_output.print_json(shown)
        return
    for item in shown:
        for line in _lines(item):
            terminal_output.output_console().print(line, soft_wrap=True)


_SHOWN = (*OPEN, "pending", "dropped", INBOX)


def _details(loaded: Project, tx: Transaction, item: Item, *, raw: bool) -> Item:
    from crossdock.runs.open_records import delivered_difference

    details: Item = {"raw": item.get("raw"), "mapped": item.get("mapped")} if raw else {}
    if "first_run_id" in item:
        details = {"run": item["run_id"], "first_run": item["first_run_id"]} | details
    if item.get("code") == "changed_after_delivery":
        details["difference"] = delivered_difference(loaded, tx, item, raw=raw)
    return details


def _lines(item: Item) -> Iterator[str]:
    from crossdock.runs.record_lines import value_text
    from crossdock.values import exact_json

    for name, value in item.items():
        if name == "since" and value is not None:
            yield f"{name:12} {instant_text(value)}"
        elif name == "difference":
            yield "difference   delivered -> now"
            for each in value:
                yield f"  {each['pointer']}: {value_text(each['before'])} -> {value_text(each['after'])}"
        elif name != "since":
            text = value if isinstance(value, str) else exact_json.dumps(value).decode()
            yield f"{name:12} {text}"
