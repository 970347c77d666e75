"""``crossdock connect``: the owner of an account gives access to it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project
from crossdock.cli.shared_options_messages_and_signals import (
    common_options,
    help_example,
    print_sentences,
    print_warning,
)
from crossdock.errors import ConfigError
from crossdock.values.clock import SystemClock

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.reading.sources.api_declaration import Api
    from crossdock.reading.transport.authorization_code_tokens import AuthorizationCodeAuth


@click.command(
    epilog=help_example(
        "crossdock connect books",
        "crossdock connect books --no-browser",
        "crossdock connect books --redirect-url https://example.com/done",
    )
)
@click.argument("name")
@common_options
@click.option("--no-browser", is_flag=True, help="Only print the address to open.")
@click.option(
    "--redirect-url",
    metavar="URL",
    help="Where the vendor sends the browser: a port of this machine, or an https address, which you then paste.",
)
@click.option(
    "--within", "within_s", type=click.FloatRange(1, 86_400), default=600.0, show_default=True, metavar="SECONDS",
    help="How long to wait for the person who gives access.",
)  # fmt: skip
def connect(
    config: Path, *, name: str, as_json: bool, no_browser: bool, redirect_url: str | None, within_s: float
) -> None:
    """Give access to the account of the connection NAME, and store the tokens.

    For credentials of the kind authorization_code. Prints an address; the owner of the account opens it and agrees.
    Tokens are kept in a private file, never shown, and renewed by syncs. Earlier ones are replaced.
    """
    from crossdock.runs.audit_log import audited_change_with_begin_and_end

    loaded = load_project(config)
    api, auth = _declared_api_and_auth(loaded, config, name)
    loaded.claim_folders_beside_spool()
    auth.prepare()
    path, clock = auth.file.path, SystemClock()
    with audited_change_with_begin_and_end(
        loaded, "connect", f"connection {name}", clock=clock, warn_unlogged=print_warning
    ) as change:
        was_connected = path.exists()
        if auth.device_url is not None:
            from crossdock.reading.sources import account_owner_consent

            account_owner_consent.obtain_and_store_tokens_by_device_code(api, auth, clock, _show_device_code, within_s)
        else:
            _authorize_in_browser_and_store_tokens(
                api, auth, redirect_url or auth.redirect_url, within_s, opens=not no_browser
            )
        change.set_before_and_after(before={"connected": was_connected}, after={"connected": True})
    document = {"connection": name, "tokens": str(path), "status": auth.status()}
    terminal_output.print_result(document, f"{name} is connected; its tokens are in {path}", as_json=as_json)


def _declared_api_and_auth(loaded: Project, config: Path, name: str) -> tuple[Api, AuthorizationCodeAuth]:
    from crossdock.reading.transport.authorization_code_tokens import AuthorizationCodeAuth
    from crossdock.values import config_file

    connections = {each.name: each for each in loaded.connections}
    if name not in connections:
        advice = config_file.unknown_key_message(name, list(connections)).removeprefix("unknown key; ")
        raise ConfigError(f"no connection is called {name!r}; {advice}", where=str(config), code="connection_unknown")
    api = connections[name].api
    if api is None or not isinstance(api.auth, AuthorizationCodeAuth):
        hint = "crossdock check tests its credentials"
        raise ConfigError(
            f"{name} needs no crossdock connect: its auth is not of kind authorization_code",
            hint=hint,
            code="choice_unsuitable",
        )
    return api, api.auth


def _authorize_in_browser_and_store_tokens(
    api: Api, auth: AuthorizationCodeAuth, redirect_url: str | None, within_s: float, *, opens: bool
) -> None:
    from crossdock.reading.sources import account_owner_consent
    from crossdock.values.web_address_checks import check_https_or_loopback_address

    if redirect_url is not None and not account_owner_consent.is_loopback_redirect(redirect_url):
        try:
            attempt = account_owner_consent.BrowserConsentAttempt(
                api, auth, check_https_or_loopback_address(redirect_url)
            )
        except ValueError as error:
            raise ConfigError(f"--redirect-url {error}", code="option_value_invalid") from None
        _show_and_open_address(attempt.address, opens=opens)
        print_sentences("Then paste the address at which the browser ends:", err=True)
        attempt.take_answer_in_pasted_address(sys.stdin.readline())
        attempt.exchange_code_and_store_tokens()
        return
    with account_owner_consent.listening_for_redirect(redirect_url) as redirect:
        attempt = account_owner_consent.BrowserConsentAttempt(api, auth, redirect.url)
        redirect.take = attempt.take_answer_if_state_matches
        _show_and_open_address(attempt.address, opens=opens)
        if not redirect.has_arrived_within(within_s):
            raise account_owner_consent.access_not_given_error(within_s)
    attempt.exchange_code_and_store_tokens()


def _show_and_open_address(address: str, *, opens: bool) -> None:
    print_sentences("Open this address in a browser, and give access:", f"  {address}", err=True)
    if opens and (sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        import webbrowser

        webbrowser.open(address)


def _show_device_code(address: str, code: str) -> None:
    print_sentences("Open this address in a browser, and enter the code:", f"  {address}", f"  {code}", err=True)
