"""``crossdock sandbox``, which serves without a subcommand, and the sandbox's API keys and OAuth clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli.shared_options_messages_and_signals import CommandGroup, as_json, help_example, print_sentences
from crossdock.errors import ConfigError

if TYPE_CHECKING:
    from crossdock.sandbox.fault_injection import FaultSet


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


_NEW_KEY_COMMAND = "crossdock sandbox keys new"


@keys.command(
    "new", epilog=help_example(_NEW_KEY_COMMAND, f"{_NEW_KEY_COMMAND} --scope invoices:write --scope orders:read")
)
@data_option
@click.option("--tenant", default="sandbox", show_default=True, help="Tenant of the key; created if it is new.")
@click.option("--scope", multiple=True, metavar="WHAT:read|write", help="Repeatable; default: *:write.")
@as_json
def create_api_key(data: Path, tenant: str, scope: tuple[str, ...], *, as_json: bool) -> None:
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
def list_api_keys(data: Path, tenant: str | None, *, as_json: bool) -> None:
    """List the valid keys by id."""
    from crossdock.sandbox.api_keys import ApiKeyStore

    with ApiKeyStore(existing_sandbox_folder(data)) as keyring:
        print_credentials_without_secrets("API keys", keyring.list_credentials(tenant), as_json=as_json)


@keys.command("revoke", epilog=help_example("crossdock sandbox keys revoke 0f3a9c52d1e7"))
@data_option
@click.argument("key_id", metavar="ID")
@as_json
def revoke_api_key(data: Path, key_id: str, *, as_json: bool) -> None:
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
        print_sentences(text)


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


@click.group(cls=CommandGroup)
def clients() -> None:
    """Create, list and revoke OAuth clients.

    A client obtains access tokens at /oauth/token. A running sandbox notices at once.
    """


_NEW_CLIENT_COMMAND = "crossdock sandbox clients new"


@clients.command(
    "new", epilog=help_example(_NEW_CLIENT_COMMAND, f"{_NEW_CLIENT_COMMAND} --id crossdock --scope invoices:write")
)
@data_option
@click.option("--id", "client_id", help="Its client_id; generated by default.")
@click.option("--tenant", default="sandbox", show_default=True, help="Tenant of the client; created if it is new.")
@click.option("--scope", multiple=True, metavar="WHAT:read|write", help="Repeatable; default: *:write.")
@as_json
def create_oauth_client(
    data: Path, client_id: str | None, tenant: str, scope: tuple[str, ...], *, as_json: bool
) -> None:
    """Create a client and print its id and secret.

    The secret is shown only once: the sandbox stores its hash. Tokens may have these scopes or fewer, as described in
    'crossdock sandbox keys new --help'.
    """
    from crossdock.sandbox.oauth_clients_and_tokens import OAuthClientStore

    with OAuthClientStore(data) as stored:
        client, secret = stored.create_credential(tenant, scope, client_id)
    facts = {"client_id": client.id, "client_secret": secret, "tenant": tenant, "scopes": client.scopes.split()}
    print_result(f"{client.id} {secret}", facts, as_json=as_json)


@clients.command("list", epilog=help_example("crossdock sandbox clients list --data ./sandbox"))
@data_option
@click.option("--tenant", help="Only clients of this tenant.")
@as_json
def list_oauth_clients(data: Path, tenant: str | None, *, as_json: bool) -> None:
    """List the clients by id."""
    from crossdock.sandbox.oauth_clients_and_tokens import OAuthClientStore

    with OAuthClientStore(existing_sandbox_folder(data)) as stored:
        print_credentials_without_secrets("OAuth clients", stored.list_credentials(tenant), as_json=as_json)


@clients.command("revoke", epilog=help_example("crossdock sandbox clients revoke crossdock"))
@data_option
@click.argument("client_id", metavar="ID")
@as_json
def revoke_oauth_client(data: Path, client_id: str, *, as_json: bool) -> None:
    """Revoke a client and its tokens.

    ID is shown by 'clients list'. The next request with one of the tokens is answered 401.
    """
    from crossdock.sandbox.oauth_clients_and_tokens import OAuthClientStore

    with OAuthClientStore(existing_sandbox_folder(data)) as stored:
        if not stored.revoke(client_id):
            hint = "'crossdock sandbox clients list' shows the ids."
            raise ConfigError("no client has this id", where=str(data), hint=hint, code="sandbox_credential_unknown")
    print_result(f"revoked {client_id}", {"revoked": client_id}, as_json=as_json)


# Copies of the sandbox's own lists: it is imported only when it runs, so that help is fast.
_DIALECTS = ("draft10", "draft07", "triple", "x-ratelimit", "none")
_PROFILES = ("full", "no-idempotency", "bare")
_FAULTS = (
    "reset_before",
    "error_before",
    "throttle",
    "expire_token",
    "slow",
    "lying_headers",
    "lost_answer",
    "error_after_commit",
    "cut_body",
    "webhook_duplicate",
    "webhook_reorder",
    "webhook_late",
)
_COUNT = click.IntRange(min=1)
_option = partial(click.option, show_default=True)


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    epilog=help_example("crossdock sandbox --data ./sandbox", "crossdock sandbox --rate 600 --fault lost_answer=0.1"),
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0: the previous port, or a free one.")
@_option("--data", type=_FOLDER, default=Path("crossdock-sandbox"), help="Folder for the data.")
@_option("--rate", "rate_per_min", type=_COUNT, default=10_000, help="Requests per minute.")
@_option("--burst", type=_COUNT, default=2_000, help="Size of the token bucket.")
@_option("--max-items", type=_COUNT, default=10_000, help="Maximum lines of an invoice.")
@_option("--token-life", "token_life_s", type=_COUNT, default=3_600, help="Seconds that access tokens are valid.")
@_option("--rate-headers", type=click.Choice(_DIALECTS), default="draft10", help="Dialect of the rate limit headers.")
@_option("--profile", type=click.Choice(_PROFILES), default="full", help="Optional features to emulate.")
@click.option("--fault", multiple=True, metavar="NAME=PROBABILITY", help=f"Repeatable: {', '.join(_FAULTS)}.")
@_option("--seed", type=int, default=0, help="Seed of the faults.")
@click.option(
    "--allow-host",
    "allowed_hosts",
    multiple=True,
    metavar="HOST[:PORT]",
    help="Repeatable: an additional host name for all but the platform's API.",
)
@click.option("--new-key", is_flag=True, help="Create and print another API key.")
@click.pass_context
def sandbox(
    ctx: click.Context, /, port: int, data: Path, fault: tuple[str, ...], seed: int, *, new_key: bool, **settings: Any
) -> None:
    """Serve an emulation of the platform on this machine until interrupted.

    When it is ready, it prints one JSON line with base_url, tenant and api_key. The key is shown only when it is
    created. Open base_url in a browser to manage keys and read the documentation of the API.
    """
    if ctx.invoked_subcommand:
        return
    from crossdock.sandbox import SandboxSettings
    from crossdock.sandbox.server import serve

    serve(data, SandboxSettings(faults=_parse_fault_options(fault, seed), **settings), port=port, new_key=new_key)


sandbox.add_command(keys)
sandbox.add_command(clients)


def _parse_fault_options(given: tuple[str, ...], seed: int) -> FaultSet:
    from crossdock.sandbox.fault_injection import FaultSet

    pairs = [text.partition("=") for text in given]
    try:
        faults = [{"name": name, "probability": float(probability)} for name, _, probability in pairs]
        return FaultSet.model_validate({"faults": tuple(faults), "seed": seed})
    except ValueError:
        wrong = f"give a name and a probability from 0 to 1, as in lost_answer=0.1; names are {', '.join(_FAULTS)}"
        raise click.BadParameter(wrong, param_hint="--fault") from None
