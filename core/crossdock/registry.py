"""Entry points -> connectors, imported only when a config asks for them."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from crossdock.config_file import unknown
from crossdock.connector import Connector
from crossdock.errors import ConfigError


def available() -> dict[str, EntryPoint]:
    """Installed connectors by name; none of them is imported."""
    return {point.name: point for point in entry_points(group=Connector.group)}


def load(name: str) -> Connector[Any]:
    """Import the connector called *name*.

    Raises:
        ConfigError: If none of that name is installed, or its import fails, or it is no connector.
    """
    found = available()
    if name not in found:
        advice = unknown(name, list(found)).removeprefix("unknown key; ")
        raise ConfigError(
            f"no connector is called {name!r}; {advice}",
            hint="connectors are installed with pip; their package names them",
        )
    try:
        connector = found[name].load()
    except Exception as error:  # whatever somebody else's module raises when it is imported
        distribution = found[name].dist
        package = distribution.name if distribution else found[name].value
        raise ConfigError(
            f"the connector {name!r} cannot be loaded: {type(error).__name__}: {error}",
            hint=f"is {package} installed with its extras?",
        ) from error
    if not isinstance(connector, Connector):
        raise ConfigError(f"{found[name].value} is no Connector but a {type(connector).__name__}")
    return connector
