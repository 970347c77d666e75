"""``crossdock sandbox``, which serves if it is called without a subcommand."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli.sandbox_clients import clients
from crossdock.cli.sandbox_keys import keys
from crossdock.cli.shared_options import CommandGroup, help_example

if TYPE_CHECKING:
    from crossdock.sandbox.fault_injection import FaultSet

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
_FOLDER = click.Path(path_type=Path, file_okay=False)
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
