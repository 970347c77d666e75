"""Syncs of one stream to a sandbox, stopped and continued."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.unit.testing.checkpointed_connector import CheckpointedContract

from crossdock.testing.sandbox_syncs import SandboxSyncs, Tenant


@pytest.fixture
def tenants(tmp_path: Path) -> Iterator[tuple[Tenant, Tenant]]:
    case = CheckpointedContract()
    with case.in_environment(), SandboxSyncs(tmp_path) as syncs:
        trial = case.read()
        first, second = (syncs.create_tenant(case.connector, case.new_context(), trial) for _ in range(2))
        yield first, second


def test_a_stopped_sync_keeps_what_it_read_up_to_a_checkpoint(tenants: tuple[Tenant, Tenant]) -> None:
    """It stops after a number of batches and checkpoints; the next one continues from the last checkpoint."""
    case, seen = CheckpointedContract(), list[str | None]()

    def network(since: str | None) -> httpx.BaseTransport:
        seen.append(since)
        return case.network()

    stopped, whole = tenants
    assert whole.sync(network).errors == {}
    assert whole.pulled == 4, "two pages, each with a batch and a checkpoint"
    assert [str(error) for error in stopped.sync(network, most=3).errors.values()] == ["stopped by the test"]
    assert sum("order " in body for body in stopped.count_stored_records_by_body()) == 2
    seen.clear()
    stopped.sync(network)
    assert "2026-11-21T10:00:00Z" in seen
    assert stopped.count_stored_records_by_body() == whole.count_stored_records_by_body()


def test_tenants_do_not_share_records(tenants: tuple[Tenant, Tenant]) -> None:
    """A tenant has the records that the example refers to, and those of its own syncs."""
    first, second = tenants
    before = second.count_stored_records_by_body()
    assert {body.partition(" ")[0] for body in before} == {"customer", "product"}
    first.sync(lambda _: CheckpointedContract().network())
    assert second.count_stored_records_by_body() == before
