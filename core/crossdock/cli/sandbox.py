"""``crossdock sandbox``."""

from __future__ import annotations

from pathlib import Path

import click

from crossdock.cli.options import example


@click.command(epilog=example("crossdock sandbox --data ./sandbox", "crossdock sandbox --rate 600 --burst 50"))
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0: the one it had, or a free one.")
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), default=Path("crossdock-sandbox"), show_default=True
)
@click.option("--rate", type=click.IntRange(min=1), default=10_000, show_default=True, help="Requests a minute.")
@click.option("--burst", type=click.IntRange(min=1), default=2_000, show_default=True, help="Size of the token bucket.")
@click.option("--new-key", is_flag=True, help="Make and show one more API key.")
def sandbox(port: int, data: Path, rate: int, burst: int, *, new_key: bool) -> None:
    """Serve the emulated platform on this machine, until interrupted; its data stays in a folder.

    When it is ready it prints one JSON line: base_url, tenant, and api_key (shown once, when it is made).
    """
    from crossdock.sandbox import SandboxSettings
    from crossdock.sandbox.server import serve

    serve(data, SandboxSettings(rate_per_min=rate, burst=burst), port=port, new_key=new_key)
