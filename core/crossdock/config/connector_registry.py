"""Installed connectors, found by entry point and imported only when a config names them."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from crossdock.connector import Connector
from crossdock.errors import ConfigError
from crossdock.values.author_code_errors import (
    class_name_with_place,
    described_exception,
    described_value_type,
    has_frame_of_author,
    is_interruption_or_engine_error,
    masked_error_text,
    misspelt_attribute_class_and_message,
    shortened_text,
)
from crossdock.values.config_file import unknown_key_message

_ADVICE = "the entry point names CONNECTOR = Connector(...) of the package"


def installed_connectors() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=Connector.group)}


def load_connector(name: str) -> Connector[Any]:
    found = installed_connectors()
    if name not in found:
        advice = unknown_key_message(name, list(found)).removeprefix("unknown key; ")
        hint = "install the package of the connector with pip"
        raise ConfigError(f"no connector is called {name!r}; {advice}", hint=hint, code="connector_unknown")
    try:
        connector = found[name].load()
    except BaseException as error:  # any class: the module is foreign code
        if is_interruption_or_engine_error(error):
            raise
        raise _load_error(found[name], error) from error
    if not isinstance(connector, Connector):
        raise ConfigError(
            f"{found[name].value} is {described_value_type(connector)} instead of a Connector",
            hint=_ADVICE,
            code="connector_invalid",
        )
    if wrong := misspelt_attribute_class_and_message(connector, lambda _, value: callable(value)):
        raise ConfigError(
            f"the connector {name!r}: {wrong[1]}",
            hint=f"fix class {class_name_with_place(wrong[0])}",
            code="connector_invalid",
        )
    return connector


def _load_error(point: EntryPoint, error: BaseException) -> ConfigError:
    package = point.dist.name if point.dist else point.value
    message = f"the connector {point.name!r} cannot be loaded"
    if isinstance(error, ImportError):
        what = f"{shortened_text(type(error).__name__)}: {masked_error_text(error)}"
        return ConfigError(
            f"{message}: {what}", hint=f"is {package} installed with its extras?", code="connector_invalid"
        )
    if isinstance(error, AttributeError) and not has_frame_of_author(error):
        return ConfigError(f"{message}: {point.module} has no {point.attr}", hint=_ADVICE, code="connector_invalid")
    return ConfigError(
        f"{message}: {described_exception(error, None, '')}",
        hint="fix the code at this place",
        code="connector_invalid",
    )
