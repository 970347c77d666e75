"""``crossdock config`` and ``crossdock schema``: what a config file may say, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crossdock.cli.shared_options import as_json, config_option, example
from crossdock.printable import printable_json, printable_lines


@click.group()
def config() -> None:
    """Look at the config as it takes effect."""


@config.command(epilog=example("crossdock config show -C acme.yaml"))
@config_option
@as_json
def show(config: Path, *, as_json: bool) -> None:
    """Show the config with all its defaults; no secret, only where each one stands, and nothing personal."""
    from crossdock import exact_json
    from crossdock.project.effective_config import effective

    document = effective(config)
    click.echo(printable_json(exact_json.dumps(document).decode()) if as_json else _yaml(document), nl=as_json)


@click.command(epilog=example("crossdock schema > crossdock.schema.json", "crossdock schema --kind sftp_warehouse"))
@click.option("--kind", metavar="CONNECTOR", help="Only connections of this kind; all installed ones without it.")
@click.option("--json", "as_json", is_flag=True, help="Changes nothing: a schema is JSON.")
def schema(kind: str | None, *, as_json: bool) -> None:
    """Print the JSON Schema (draft 2020-12) of a config file, for editors that complete and check while one writes."""
    from crossdock import registry
    from crossdock.cli import terminal_output
    from crossdock.project.config_schema import config_schema

    del as_json
    names = [kind] if kind else sorted(registry.available())
    terminal_output.print_json(config_schema({name: registry.load(name).settings for name in names}))


def _yaml(document: dict[str, Any]) -> str:
    from decimal import Decimal

    import yaml

    from crossdock.exact_json import decimal_text

    class Exact(yaml.SafeDumper):
        """Writes decimals with the digits that they have."""

    def number(dumper: Exact, value: Decimal) -> yaml.Node:
        text = decimal_text(value)
        return dumper.represent_scalar(f"tag:yaml.org,2002:{'float' if '.' in text else 'int'}", text)

    Exact.add_representer(Decimal, number)
    text = yaml.dump(document, Dumper=Exact, sort_keys=False, allow_unicode=True, width=120)
    if text == printable_lines(text):
        return text
    return yaml.dump(document, Dumper=Exact, sort_keys=False, width=120)  # escapes what could not be seen
