"""Damaged and hostile exports, tokens that expire and shops that tell of changes, with more than in the suite."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.chaos.chance import chaos_seed
from tests.e2e.conftest import platform, site
from tests.e2e.test_damaged_exports import BOTH, Exports, nights, removes_nothing
from tests.e2e.test_hostile_files import NAMES, depot, takes_little_memory
from tests.e2e.test_shop_webhooks import Receiving, receiving, sandbox, shopify_tells
from tests.e2e.test_token_expiry import renewed_once_per_expiry
from tests.e2e.warehouse import Site

from crossdock.sandbox import SandboxServer

__all__ = ["depot", "platform", "receiving", "sandbox", "site"]  # fixtures


@BOTH
def test_a_hundred_damaged_exports_remove_no_record(site: Site, trailer: bool, on_gone: str) -> None:
    """As in the short form: not one of them removes a record, and each says why."""
    exports = Exports(Random(chaos_seed()), trailer=trailer, share=1)
    removes_nothing(exports, nights(site, exports, on_gone), {True: 63, False: 37}[trailer])


def test_a_long_sync_renews_its_token_once_per_expiry(tmp_path: Path) -> None:
    """As in the short form, for three expiries and more."""
    renewed_once_per_expiry(tmp_path, records=1_000, expiries=3)


@pytest.mark.parametrize("seed", range(2))
def test_a_shopify_shop_tells_of_many_changes(
    tmp_path: Path, sandbox: SandboxServer, receiving: Receiving, seed: int
) -> None:
    """As in the short form: a run afterwards has nothing to send."""
    shopify_tells(tmp_path, sandbox, receiving, seed, changes=20)


def test_a_run_over_more_hostile_files_takes_little_memory(depot: Site) -> None:
    """As in the short form, with files that are read to their end too."""
    takes_little_memory(depot, NAMES)
