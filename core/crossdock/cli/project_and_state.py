"""Loads the selected config as a project, and opens its state for commands that only read it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from crossdock.cli.shared_options import overriding_config_files
from crossdock.errors import StateError

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.state import Transaction


def load_project(config: Path) -> Project:
    """Load the selected config. Its models are imported here, so that ``--help`` need not wait for them."""
    from crossdock.config.project import project

    loaded = project.load(config, *overriding_config_files(config))
    gc.freeze()  # what was imported stays: a collection that goes through it takes 0.1 s and finds nothing
    return loaded


@contextmanager
def read_state(config: Path) -> Iterator[tuple[Transaction, str]]:
    """Read the state of the selected config; yield it with the name of its tenant.

    Only what says where the state is is read of the config, all of it if the state cannot be opened: a mistake in the
    config may be the reason.
    """
    from crossdock.config import state_location
    from crossdock.state import State

    found = state_location.locate_state(config, *overriding_config_files(config))
    url, pin = found or ((loaded := load_project(config)).state_url, loaded.pinned_tenant)
    with ExitStack() as stack:
        try:
            state = stack.enter_context(closing(State(url, pin, read_only=True)))
            tx = stack.enter_context(state.begin_read_only())
        except StateError:
            load_project(config)
            raise
        yield tx, pin.tenant
