"""``crossdock sandbox keys``: the sandbox's API keys, whether it is running or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from crossdock.cli.sentence_printing import say
from crossdock.cli.shared_options import CommandGroup, as_json, help_example
from crossdock.errors import ConfigError


def _given_or_parent_command_folder(ctx: click.Context, _parameter: click.Parameter, value: Path | None) -> Path:
    """Return the folder given here, or else to ``crossdock sandbox``."""
    assert ctx.parent is not None
    assert ctx.parent.parent is not None
    given: Path = value or ctx.parent.parent.params["data"]
    return given


_FOLDER = click.Path(path_type=Path, file_okay=False)
data_option = click.option(
    "--data", type=_FOLDER, callback=_given_or_parent_command_folder, help="The sandbox's folder."
)


@click.group(cls=CommandGroup)
def keys() -> None:
    """Create, list and revoke API keys.

    A running sandbox notices at once.
    """


_NEW = "crossdock sandbox keys new"


@keys.command("new", epilog=help_example(_NEW, f"{_NEW} --scope invoices:write --scope orders:read"))
@data_option
@click.option("--tenant", default="sandbox", show_default=True, help="Tenant of the key; created if it is new.")
@click.option("--scope", multiple=True, metavar="WHAT:read|write", help="Repeatable; default: *:write.")
@as_json
def new(data: Path, tenant: str, scope: tuple[str, ...], *, as_json: bool) -> None:
    """Create a key.

    It is shown only once: the sandbox stores its hash. WHAT is one of invoices, orders, customers, products, lots,
    bins, accounts, or '*'. Writing includes reading. accounts:4000:write is for the account with this code alone, and
    bins:EXTERNAL_ID:read for one bin; both can be named by id as well.
    """
    from crossdock.sandbox.api_keys import ApiKeyStore

    with ApiKeyStore(data) as keyring:
        credential, key = keyring.create_credential(tenant, scope)
    facts = {"id": credential.id, "tenant": tenant, "scopes": credential.scopes.split(), "api_key": key}
    print_result(key, facts, as_json=as_json)


@keys.command("list", epilog=help_example("crossdock sandbox keys list --data ./sandbox"))
@data_option
@click.option("--tenant", help="Only keys of this tenant.")
@as_json
def list_(data: Path, tenant: str | None, *, as_json: bool) -> None:
    """List the valid keys by id."""
    from crossdock.sandbox.api_keys import ApiKeyStore

    with ApiKeyStore(existing_sandbox_folder(data)) as keyring:
        print_credentials_without_secrets("API keys", keyring.list_credentials(tenant), as_json=as_json)


@keys.command("revoke", epilog=help_example("crossdock sandbox keys revoke 0f3a9c52d1e7"))
@data_option
@click.argument("key_id", metavar="ID")
@as_json
def revoke(data: Path, key_id: str, *, as_json: bool) -> None:
    """Revoke a key.

    ID is shown by 'keys list'. The next request with the key is answered 401.
    """
    from crossdock.sandbox.api_keys import ApiKeyStore

    with ApiKeyStore(existing_sandbox_folder(data)) as keyring:
        if not keyring.revoke(key_id):
            raise ConfigError(
                "no key has this id",
                where=str(data),
                hint="'crossdock sandbox keys list' shows the ids.",
                code="sandbox_credential_unknown",
            )
    print_result(f"revoked {key_id}", {"revoked": key_id}, as_json=as_json)


def print_result(text: str, document: object, *, as_json: bool) -> None:
    if as_json:
        from crossdock.cli.terminal_output import print_json

        print_json(document)
    else:
        say(text)


def print_credentials_without_secrets(title: str, found: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    from crossdock.cli import terminal_output

    if as_json:
        terminal_output.print_json(found)
        return
    rows = [
        (each["id"], each["tenant"], " ".join(each["scopes"]), datetime.fromisoformat(each["createdAt"]))
        for each in found
    ]
    terminal_output.output_console().print(
        terminal_output.make_fitting_table(title, ("id", "tenant", "scopes", "created"), rows)
    )


def existing_sandbox_folder(data: Path) -> Path:
    from crossdock.sandbox.database import DATABASE_FILE_NAME

    if not (data / DATABASE_FILE_NAME).is_file():
        raise ConfigError(
            "there is no sandbox in this folder",
            where=str(data),
            hint="Name its folder with --data.",
            code="sandbox_missing",
        )
    return data
