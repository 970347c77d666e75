"""``crossdock sandbox``: serves without a subcommand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossdock.cli.sandbox_keys import keys
from crossdock.cli.shared_options import example

if TYPE_CHECKING:
    from crossdock.sandbox.app import Profile
    from crossdock.sandbox.fault_injection import FaultSet
    from crossdock.sandbox.rate_limit_headers import Dialect

# As the sandbox knows them; it is not imported before it is to run, so that help is quick.
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
)


@click.group(
    invoke_without_command=True,
    epilog=example("crossdock sandbox --data ./sandbox", "crossdock sandbox --rate 600 --fault lost_answer=0.1"),
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0: the one it had, or a free one.")
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), default=Path("crossdock-sandbox"), show_default=True
)
@click.option("--rate", type=click.IntRange(min=1), default=10_000, show_default=True, help="Requests a minute.")
@click.option("--burst", type=click.IntRange(min=1), default=2_000, show_default=True, help="Size of the token bucket.")
@click.option("--max-items", type=click.IntRange(min=1), default=10_000, show_default=True, help="Lines of an invoice.")
@click.option("--rate-headers", type=click.Choice(_DIALECTS), default="draft10", show_default=True, help="Dialect.")
@click.option("--profile", type=click.Choice(_PROFILES), default="full", show_default=True, help="Which courtesies.")
@click.option("--fault", multiple=True, metavar="NAME=PROBABILITY", help=f"Repeatable: {', '.join(_FAULTS)}.")
@click.option("--seed", type=int, default=0, show_default=True, help="What the faults are drawn from.")
@click.option(
    "--allow-host",
    multiple=True,
    metavar="HOST[:PORT]",
    help="Repeatable: a name, besides this machine's own, by which /docs and /_sandbox may be asked.",
)
@click.option("--new-key", is_flag=True, help="Make and show one more API key.")
@click.pass_context
def sandbox(
    ctx: click.Context,
    port: int,
    data: Path,
    rate: int,
    burst: int,
    max_items: int,
    rate_headers: Dialect,
    profile: Profile,
    fault: tuple[str, ...],
    seed: int,
    allow_host: tuple[str, ...],
    *,
    new_key: bool,
) -> None:
    """Serve the emulated platform on this machine, until interrupted; its data stays in a folder.

    When it is ready it prints one JSON line: base_url, tenant, and api_key (shown once, when it is made).
    """
    if ctx.invoked_subcommand:
        return
    from crossdock.sandbox import SandboxSettings
    from crossdock.sandbox.server import serve

    settings = SandboxSettings(
        rate_per_min=rate,
        burst=burst,
        max_items=max_items,
        rate_headers=rate_headers,
        profile=profile,
        faults=_fault_set(fault, seed),
        allowed_hosts=allow_host,
    )
    serve(data, settings, port=port, new_key=new_key)


sandbox.add_command(keys)


def _fault_set(given: tuple[str, ...], seed: int) -> FaultSet:
    from crossdock.sandbox.fault_injection import FaultSet

    pairs = [text.partition("=") for text in given]
    try:
        faults = [{"name": name, "probability": float(probability)} for name, _, probability in pairs]
        return FaultSet.model_validate({"faults": tuple(faults), "seed": seed})
    except ValueError:
        wrong = f"give a name and a probability from 0 to 1, as in lost_answer=0.1; names are {', '.join(_FAULTS)}"
        raise click.BadParameter(wrong, param_hint="--fault") from None
