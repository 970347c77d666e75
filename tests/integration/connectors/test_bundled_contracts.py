"""Each bundled connector has all tests of the kit that it offers to authors, and none of them is changed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, TypeVar

import pytest

from crossdock.config.project import connections_and_bound_streams
from crossdock.connector import Connector
from crossdock.testing import context
from crossdock.testing.acceptance import SyncAcceptance
from crossdock.testing.connector_under_test import ConnectorUnderTest
from crossdock.testing.contract import StreamContract
from crossdock.testing.target_acceptance import TargetAcceptance
from crossdock.testing.target_contract import TargetContract

KITS = (StreamContract, SyncAcceptance, TargetContract, TargetAcceptance)
MODULES = (
    "tests.integration.connectors.shop.shopify.test_target_acceptance",
    "tests.integration.connectors.shop.woocommerce.test_contract",
    "tests.integration.connectors.test_bundled_acceptance",
    "tests.integration.connectors.test_shop_targets",
    "tests.integration.connectors.test_shopify_contract",
    "tests.integration.connectors.test_threepl_contract",
    "tests.integration.connectors.test_threepl_targets",
    "tests.nightly.test_bundled_targets",
    "tests.nightly.test_bundled_warehouses",
    "tests.unit.connectors.test_http_json",
)
BUNDLED = sorted(
    name
    for name, point in connections_and_bound_streams.installed_connectors().items()
    if point.value.startswith("crossdock_connectors.")
)


Case = TypeVar("Case", bound=ConnectorUnderTest)


def cases(kit: type[Case], connector: Connector[Any]) -> Iterator[type[Case]]:
    """The test classes of *connector* that inherit *kit*."""
    for module in map(import_module, MODULES):
        for name, value in vars(module).items():
            is_case = name.startswith("Test") and isinstance(value, type) and issubclass(value, kit)
            if is_case and value.connector is connector:
                yield value


@pytest.mark.parametrize("name", BUNDLED)
def test_every_stream_and_target_is_tested(name: str) -> None:
    """Each stream of the settings under test has the contract, and the connector the acceptance; so has the target."""
    connector = connections_and_bound_streams.load_connector(name)
    streams = [case() for case in cases(StreamContract, connector)]
    assert streams
    declared = set[str]()
    for case in streams:
        with case.in_environment():
            settings = context(connector, case.settings).settings
        declared |= {stream.name for stream in connector.streams(settings)}
    assert {case.stream for case in streams} == declared
    assert list(cases(SyncAcceptance, connector))
    for kit in (TargetContract, TargetAcceptance):
        assert bool(list(cases(kit, connector))) == (connector.target is not None and connector.api is not None)


@pytest.mark.parametrize("name", BUNDLED)
def test_no_test_of_the_kit_is_changed(name: str) -> None:
    """What is inherited is run: nothing replaces it, and no mark skips it."""
    for kit in KITS:
        for case in cases(kit, connections_and_bound_streams.load_connector(name)):
            for test in (each for each in dir(kit) if each.startswith("test_")):
                assert getattr(case, test) is getattr(kit, test), f"{case.__name__} replaces {test}"
            marks = {mark.name for mark in getattr(case, "pytestmark", ())}
            assert not marks & {"skip", "skipif", "xfail"}, f"{case.__name__} is switched off"
