"""Installed connectors, found by entry point and imported only when a config names them."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from crossdock.connector import Connector
from crossdock.errors import ConfigError
from crossdock.values.author_code import brief, interrupts, text_of
from crossdock.values.config_file import unknown


def available() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=Connector.group)}


def load(name: str) -> Connector[Any]:
    found = available()
    if name not in found:
        advice = unknown(name, list(found)).removeprefix("unknown key; ")
        hint = "install the package of the connector with pip"
        raise ConfigError(f"no connector is called {name!r}; {advice}", hint=hint)
    try:
        connector = found[name].load()
    except BaseException as error:  # any class: the module is foreign code
        if interrupts(error):
            raise
        distribution = found[name].dist
        package = distribution.name if distribution else found[name].value
        raise ConfigError(
            f"the connector {name!r} cannot be loaded: {brief(type(error).__name__)}: {text_of(error)}",
            hint=f"is {package} installed with its extras?",
        ) from error
    if not isinstance(connector, Connector):
        raise ConfigError(f"{found[name].value} is not a Connector but a {type(connector).__name__}")
    return connector
