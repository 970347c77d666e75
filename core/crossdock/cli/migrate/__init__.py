"""``crossdock migrate``: the one-off move of a legacy system.

Input: a config with a section ``migration``. Output: what `crossdock.migration` finds or does, as text, JSON or a page.
It may import the rest of `crossdock.cli` and what that may import.
"""

import click

from crossdock.cli.main import LazyGroup

_COMMANDS = {  # command -> module
    "rehearse": "rehearse",
    "load": "load",
    "status": "status",
    "go": "go_pause_resume",
    "pause": "go_pause_resume",
    "resume": "go_pause_resume",
    "freeze": "freeze_check",
    "reconcile": "reconcile",
    "undo": "undo",
    "sign-off": "sign_off",
    "verify": "verify",
}


@click.group(cls=LazyGroup, home=__name__, homes=_COMMANDS)
def migrate() -> None:
    """Move a legacy system once: rehearse, load in waves, reconcile, undo, sign off.

    The section 'migration' of the config names the waves. See docs/how_to/migrate/.
    """
