"""``crossdock listen register`` at shops that refuse: one error that says what to do, and no traceback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.project_folder import in_process
from tests.ended_commands import Done
from tests.partners.shop_stage import shopify_stage, woocommerce_stage
from tests.partners.shopify.access import ALL_SCOPES
from tests.partners.shopify.site import Site
from tests.partners.stage import Project
from tests.partners.woocommerce.shop import FakeShop
from tests.partners.woocommerce.shop_keys import ApiKey

from crossdock.sandbox import SandboxServer
from crossdock.testing.sandbox_syncs import write_private_file
from crossdock.values import exact_json
from crossdock.values.clock import SystemClock

SECRET = "hook-secret-canary"


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path_factory.mktemp("sandbox")) as running:
        yield running


def registered(stage: Project) -> Done:
    """What the command does."""
    document = exact_json.loads(stage.config.read_bytes()) | {"listen": {"public_url": "https://hooks.example"}}
    stage.config.write_bytes(exact_json.dumps(document))
    done = in_process(stage.config, "listen", "register", "shop", environment={"COLUMNS": "200"})
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stderr + done.stdout
    return done


def webhooks(folder: Path) -> dict[str, list[str]]:
    return {"secrets": [write_private_file(folder / "hook-secret", SECRET)]}


@pytest.mark.parametrize(
    ("key", "said"),
    [
        pytest.param(ApiKey(permissions="read"), "401", id="a key that only reads"),
        pytest.param(ApiKey(manages=False), "403", id="a user without the right"),
    ],
)
def test_woocommerce_refuses(tmp_path: Path, platform: SandboxServer, key: ApiKey, said: str) -> None:
    """Exit 3 with the shop's status, and the shop has no subscription."""
    shop = FakeShop(clock=SystemClock(), keys=[key])
    with woocommerce_stage(tmp_path, platform, shop, SystemClock(), webhooks=webhooks(tmp_path)) as stage:
        done = registered(stage)
    assert done.exit_code == 3, done.stderr
    assert said in done.stderr
    assert shop.webhooks.webhooks == {}


def test_shopify_refuses_a_topic_without_its_scope(tmp_path: Path, platform: SandboxServer) -> None:
    """Exit 3; the error names the topic, and other topics that were subscribed before it stay."""
    site = Site(scopes=ALL_SCOPES - {"read_fulfillments"})
    with shopify_stage(tmp_path, platform, site, webhooks=webhooks(tmp_path)) as stage:
        done = registered(stage)
    assert done.exit_code == 3, done.stderr
    assert "refused to subscribe to fulfillments/create" in done.stderr
    assert "needs the scope read_fulfillments" in done.stderr
