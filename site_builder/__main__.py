"""``python -m site_builder``: builds the documentation site."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from site_builder.build import SiteError, build
from site_builder.navigation import NavigationError


@click.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("site"),
    show_default=True,
    help="Folder of the site, which gets a folder for this version. Other versions in it stay.",
)
def main(output: Path) -> None:
    """Build the documentation site.

    Fails on warnings of zensical, on links without a target, and on pages that load something from another host.
    """
    try:
        place = build(output)
    except (SiteError, NavigationError) as error:
        sys.exit(str(error))
    click.echo(f"{place}\nTo read it with its search: python -m http.server -d {output}")


main()
