"""What whole commands do in trouble, and shops that tell of changes, with more of both than in the suite."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.chaos.chance import chaos_seed
from tests.e2e.conftest import platform, site
from tests.e2e.test_privacy import COMMANDS, TROUBLES, configure, fill, shows_nothing
from tests.e2e.test_schedule_in_trouble import MANY
from tests.e2e.test_shop_webhooks import Receiving, lost_are_found, receiving, sandbox, shopify_tells, woocommerce_tells
from tests.e2e.test_state_in_trouble import goes_on_after_a_failed_write, goes_on_after_a_full_disk
from tests.e2e.test_token_expiry import renewed_once_per_expiry
from tests.e2e.warehouse import Site
from tests.nightly.test_damaged_exports import BOTH, Exports, nights, removes_nothing
from tests.nightly.test_hostile_files import NAMES, WIDE_MB, depot, takes_little_memory

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
    takes_little_memory(depot, NAMES, WIDE_MB)


def test_a_run_finds_much_that_no_webhook_of_shopify_told(
    tmp_path: Path, sandbox: SandboxServer, receiving: Receiving
) -> None:
    """As in the short form, of more orders."""
    lost_are_found(tmp_path, sandbox, receiving, changes=20)


def test_a_woocommerce_shop_tells_of_many_changes(tmp_path: Path, sandbox: SandboxServer, receiving: Receiving) -> None:
    """As in the short form: a run afterwards has nothing to send."""
    woocommerce_tells(tmp_path, sandbox, receiving, changes=20)


@pytest.mark.postgres
def test_a_server_whose_disk_is_full_during_a_larger_run(site: Site) -> None:
    """As in the short form, with more invoices."""
    goes_on_after_a_full_disk(site, MANY)


def test_a_disk_that_fails_during_a_larger_run(site: Site) -> None:
    """As in the short form, with more invoices."""
    goes_on_after_a_failed_write(site, MANY)


@pytest.mark.parametrize("name", ["a quote never closed", "two columns of one name"])
def test_no_command_shows_anything_of_a_refused_file(site: Site, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As in the short form, whatever the command."""
    monkeypatch.setenv("WMS_PASSPHRASE", "a passphrase")
    configure(site)
    site.init()
    fill(site)
    shows_nothing(site, TROUBLES[name], COMMANDS)
