"""Where a config file has its state.

`locate` needs three settings and no models, so that commands that only read the state begin quickly, and also while
other settings are wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from crossdock.errors import ConfigError
from crossdock.state import Pin, State, StateUrl, Transaction, create, parse_url
from crossdock.values import config_file
from crossdock.values.addresses import checked_base_url

DEFAULT_STATE = "sqlite:///crossdock.db"


@dataclass(frozen=True, slots=True)
class StateLocation:
    """The state of a config file.

    Attributes:
        path: The config file.
        pin: The tenant of the platform whose state this is.
    """

    path: Path
    state_url: StateUrl
    pin: Pin

    def init(self) -> bool:
        return create(self.state_url, self.pin)

    @contextmanager
    def look(self) -> Iterator[Transaction]:
        with closing(State(self.state_url, self.pin, read_only=True)) as state, state.look() as tx:
            yield tx


def locate(path: Path, *overrides: Path) -> StateLocation | None:
    """Return the location of the state; None if a setting that it depends on is wrong, which a full load reports."""
    document = config_file.read(path, *overrides)
    platform, state = document.data.get("platform"), document.data.get("state", DEFAULT_STATE)
    if not isinstance(platform, Mapping) or not isinstance(state, str):
        return None
    base_url, tenant = platform.get("base_url"), platform.get("tenant")
    if not isinstance(base_url, str) or not isinstance(tenant, str):
        return None
    try:
        return StateLocation(path, parse_url(state, document.folder), Pin(checked_base_url(base_url), tenant))
    except (ConfigError, ValueError):
        return None
