"""Connectors are found by entry point, and a wrong one is an error of the configuration."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from crossdock.config.project import connections_and_bound_streams
from crossdock.errors import ConfigError


def install(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    point = EntryPoint("shop", value, "crossdock.connectors")
    monkeypatch.setattr(connections_and_bound_streams, "entry_points", lambda **_: [point])


def test_a_name_that_is_not_installed_is_refused_with_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A typo is the usual reason."""
    install(monkeypatch, "nowhere:CONNECTOR")
    assert list(connections_and_bound_streams.installed_connectors()) == ["shop"]
    with pytest.raises(ConfigError, match=r"no connector is called 'shpo'; did you mean 'shop'\?") as refused:
        connections_and_bound_streams.load_connector("shpo")
    assert refused.value.hint


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("nowhere:CONNECTOR", "cannot be loaded: ModuleNotFoundError"),
        ("json:CONNECTOR", "cannot be loaded: json has no CONNECTOR"),
        ("json:dumps", "is function instead of a Connector"),
    ],
)
def test_a_broken_connector_is_refused(monkeypatch: pytest.MonkeyPatch, value: str, message: str) -> None:
    """Whatever its import raises."""
    install(monkeypatch, value)
    with pytest.raises(ConfigError, match=message):
        connections_and_bound_streams.load_connector("shop")
