"""An order that is cancelled after it went to the 3PL, by the configs of shops as they are."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
import pytest

from crossdock.config.project import project
from crossdock.runs import sync_and_replay
from crossdock.testing.demo.shop import shop_demo_folder_and_servers
from crossdock.values.clock import SystemClock
from crossdock.values.progress import SilentProgress

MERGE = {"content-type": "application/merge-patch+json"}


@pytest.mark.nightly(but=["shopify"])
@pytest.mark.parametrize("kind", ["shopify", "woocommerce"])
def test_the_3pl_is_told_of_a_cancellation(
    tmp_path: Path, kind: shop_demo_folder_and_servers.Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cancels the order, and ships the others; one that it has shipped is a dead letter, which says so."""
    with shop_demo_folder_and_servers.create_and_serve_shop_demo(tmp_path / "demo", kind) as demo:
        for name, value in demo.variables.items():
            monkeypatch.setenv(name, value)
        synced = project.load(tmp_path / "demo" / shop_demo_folder_and_servers.CONFIG)
        synced.create_or_upgrade_state()

        def sync(stream: str) -> int:
            clock, interrupt = SystemClock(), threading.Event()
            return sync_and_replay.sync(
                synced, [stream], clock=clock, progress=SilentProgress(), interrupt=interrupt
            ).exit_code

        def cancel(order: str) -> None:
            [found] = platform.get("/api/v1/sales/orders", params={"externalId": order}).json()["data"]
            path = f"/api/v1/sales/orders/{found['id']}"
            assert platform.patch(path, json={"status": "cancelled"}, headers=MERGE).status_code == 200

        def at_depot() -> list[str]:
            return [each["shop_order"] for each in demo.depot.orders]

        headers = {"authorization": f"Bearer {demo.platform.api_key}", "x-tenant-slug": demo.platform.tenant}
        with httpx.Client(base_url=demo.platform.base_url, headers=headers, trust_env=False) as platform:
            assert (sync("shop"), sync("erp")) == (0, 0)
            cancelled, shipped, *others = at_depot()
            cancel(cancelled)
            assert (sync("erp"), sync("erp")) == (0, 0)
            assert at_depot() == [shipped, *others]
            demo.depot.ship_all_orders()
            cancel(shipped)
            assert sync("erp") == 1
            assert at_depot() == [shipped, *others]
