"""``crossdock demo``."""

import click


@click.command()
def demo() -> None:
    """Placeholder while the road is built."""
