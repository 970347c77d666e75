"""``crossdock config`` and ``crossdock schema``: what takes effect, and what a config file may contain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crossdock.cli import terminal_output
from crossdock.cli.shared_options_messages_and_signals import (
    CommandGroup,
    common_options,
    echo_document_text,
    help_example,
    overriding_config_files,
)
from crossdock.printable import printable_json, printable_lines


@click.group(cls=CommandGroup, epilog=help_example("crossdock config show -C acme.yaml"))
def config() -> None:
    """Inspect the config."""


@config.command(epilog=help_example("crossdock config show -C acme.yaml"))
@common_options
def show(config: Path, *, as_json: bool) -> None:
    """Show the effective config with all defaults.

    Secrets are shown as references; constants that may be personal are masked.
    """
    from crossdock.config.project.masked_effective_config import effective_config
    from crossdock.values import exact_json

    document = effective_config(config, *overriding_config_files(config))
    if as_json:
        echo_document_text(printable_json(exact_json.dumps(document).decode()))
    else:
        click.echo(_yaml(document), nl=False)


@click.command(
    epilog=help_example("crossdock schema > crossdock.schema.json", "crossdock schema --kind sftp_warehouse")
)
@click.option("--kind", metavar="CONNECTOR", help="Only connections of this kind; default: all installed.")
@click.option("--json", "as_json", is_flag=True, help="No effect: a schema is JSON.")
def schema(kind: str | None, *, as_json: bool) -> None:
    """Print the JSON Schema of a config file, for editors.

    Draft 2020-12. With it, editors can complete and validate a config file.
    """
    from crossdock.config.project import connections_and_bound_streams
    from crossdock.config.project.config_schema import config_schema

    del as_json
    names = [kind] if kind else sorted(connections_and_bound_streams.installed_connectors())
    terminal_output.print_json(
        config_schema({name: connections_and_bound_streams.load_connector(name).settings for name in names})
    )


def _yaml(document: dict[str, Any]) -> str:
    from decimal import Decimal

    import yaml

    from crossdock.values.exact_json import decimal_text

    class Dumper(yaml.SafeDumper):
        """Writes decimals with their exact digits."""

    def number(dumper: Dumper, value: Decimal) -> yaml.Node:
        text = decimal_text(value)
        return dumper.represent_scalar(f"tag:yaml.org,2002:{'float' if '.' in text else 'int'}", text)

    Dumper.add_representer(Decimal, number)
    text = yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)
    if text == printable_lines(text):
        return text
    return yaml.dump(document, Dumper=Dumper, sort_keys=False, width=120)  # escapes everything that is not printable
