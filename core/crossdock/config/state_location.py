"""Where a config file has its state.

`state_url_and_tenant_or_none` needs three settings and no models, so that commands that only read the state begin
quickly, also while other settings are wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from crossdock.errors import ConfigError
from crossdock.state import PinnedTenant, StateUrl, parse_database_url
from crossdock.values import config_file
from crossdock.values.web_address_checks import checked_base_url_without_slash

DEFAULT_STATE = "sqlite:///crossdock.db"


def state_url_and_tenant_or_none(path: Path, *overrides: Path) -> tuple[StateUrl, PinnedTenant] | None:
    """Return where the state is, and whose it is; None if one of these settings is wrong, which a full load reports."""
    document = config_file.read_config_with_overrides(path, *overrides)
    platform, state = document.data.get("platform"), document.data.get("state", DEFAULT_STATE)
    if not isinstance(platform, Mapping) or not isinstance(state, str):
        return None
    base_url, tenant = platform.get("base_url"), platform.get("tenant")
    if not isinstance(base_url, str) or not isinstance(tenant, str):
        return None
    try:
        return parse_database_url(state, document.folder), PinnedTenant(
            checked_base_url_without_slash(base_url), tenant
        )
    except (ConfigError, ValueError):
        return None
