"""A sandbox with the records that a config's streams refer to, and its faults."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from crossdock import Connector
from crossdock.sources import HttpSettings
from crossdock.testing.sandbox_with_project import (
    SandboxWithProject,
    connections_section_from_settings,
    read_connections,
)

STREAMS = {
    "invoices": {
        "mode": "append",
        "files": "*.txt",
        "format": {"delimiter": "|"},
        "key": ["NO"],
        "resource": "invoice",
        "group_by": ["NO"],
        "map": {
            "customerId": {"ref": "customer", "key": "CUSTOMER"},
            "currency": {"const": "EUR"},
            "items": {
                "each": {
                    "productId": {"ref": "product", "key": "SKU"},
                    "quantity": {"from": "QTY", "as": "decimal"},
                    "unitPrice": {"from": "PRICE", "as": "decimal"},
                }
            },
        },
    }
}


@pytest.mark.nightly
def test_what_the_streams_refer_to_is_there(tmp_path: Path) -> None:
    """A sync delivers the invoice at once; what was there before is not among the effects."""
    (tmp_path / "INVOICES.txt").write_text("NO|CUSTOMER|SKU|QTY|PRICE\n1|C1|0017|1|2\n", encoding="utf-8")
    settings = {"wms": {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": STREAMS}}
    with SandboxWithProject(tmp_path, settings, None, {}, __name__) as platform:
        assert not platform.count_sync_effects()
        platform.inject_faults({"lost_answer": 1.0}, 0)
        ended = platform.run_command_and_kill(
            lambda: platform.count_injected_faults_by_name()["lost_answer"] >= 1, "sync"
        )
        assert ended.exit_code == -9
        platform.inject_faults({}, 0)
        ended = platform.run_command("sync")
        assert ended.exit_code == 0, ended.errors + ended.output
        ((effect, number),) = platform.count_sync_effects().items()
    assert number == 1
    assert effect.startswith('create invoice {"currency":"EUR","customerId":"wms:C1"')


def test_connections_come_from_a_config_or_from_settings(tmp_path: Path) -> None:
    """The other sections of a config file are left out."""
    (tmp_path / "c.yaml").write_text("state: sqlite:///x.db\nconnections: {a: {kind: b, n: 0.5}}\n", encoding="utf-8")
    assert set(read_connections(tmp_path / "c.yaml")) == {"a"}
    from tests.integration.testing.billing_connector import CONNECTOR

    made = connections_section_from_settings(CONNECTOR, {"folder": Path("x"), "n": 1})
    assert made == {"billing": {"kind": "billing", "folder": "x", "n": 1}}


def test_addresses_that_are_defaults_are_served_too() -> None:
    """No process of a test may send a request to the real server that grants tokens."""

    class GrantedSettings(HttpSettings):
        kind: Literal["granted"]
        token_url: str = "https://login.example.com/token"
        currency: str = "EUR"

    connector = Connector("granted", "A shop", GrantedSettings, streams=lambda _: ())
    assert connections_section_from_settings(connector, {})["granted"] == {
        "kind": "granted",
        "token_url": "https://login.example.com/token",
    }
    other = {"token_url": "https://login.example.eu/token"}
    assert connections_section_from_settings(connector, other)["granted"]["token_url"] == other["token_url"]
