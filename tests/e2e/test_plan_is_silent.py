"""A plan tells everything and touches nothing: not the platform, not the state, not the disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e import retail_truth
from tests.e2e.project_folder import Stage
from tests.e2e.socket_guard_runs import guarded, plan_silently

pytestmark = pytest.mark.openssh


@pytest.mark.nightly
@pytest.mark.retail
def test_the_first_day_is_planned_in_silence_and_then_done_as_planned(fresh: Stage, exports: list[Path]) -> None:
    """A plan reaches no platform and leaves no trace; the sync after it sends just what it told, and all arrives."""
    fresh.serve(exports[:1])

    plan = plan_silently(fresh)
    report = fresh.sync()

    assert plan["operations"] == {"create": report["requests"]} == {"create": 1_157}
    assert plan["errors"] == {}
    created = {name: stream["records"]["created"] for name, stream in report["streams"].items()}
    assert created == {"shop.customers": 95, "shop.products": 941, "shop.invoices": 121}
    for name, stream in report["streams"].items():
        assert plan["streams"][name]["rows"] == stream["rows"]
        assert plan["streams"][name]["records"]["read"] == created[name]
        assert stream["rows"]["read"] == 3_108
        assert stream["rows"]["filtered"] == {"cancelled": 26, "no_customer": 1_140}
    held = fresh.sandbox.holdings()
    assert held.differences(retail_truth.of(exports[:1]).holdings) == {}
    assert fresh.sandbox.by_status().get("201") == len(fresh.sandbox.effects()) == 1_157


@pytest.mark.nightly
def test_the_guard_that_watches_a_plan_does_keep_the_platform_away(fresh: Stage, tmp_path: Path) -> None:
    """A command that does call the platform fails under the guard, and the guard notes its attempt."""
    before = fresh.sandbox.requests()

    done = guarded(fresh, tmp_path / "notes", tmp_path, "check", "--json")

    findings = {finding["subject"]: finding["ok"] for finding in done.document["findings"]}
    assert not findings["platform"]
    assert f"('127.0.0.1', {fresh.sandbox.base_url.rpartition(':')[2]})" in (tmp_path / "notes").read_text()
    assert fresh.sandbox.requests() == before
