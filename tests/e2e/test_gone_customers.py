"""A record that others refer to is not deleted: `tests/long/test_gone_customers.py` has nights at random."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.gone_customers import GoneCustomers

from crossdock.sandbox import SandboxServer


@pytest.fixture
def project(tmp_path: Path) -> Iterator[GoneCustomers]:
    with SandboxServer(tmp_path / "sandbox") as platform:
        yield GoneCustomers(tmp_path / "project", platform)


def test_what_others_refer_to_is_kept(project: GoneCustomers) -> None:
    """Orders of any connection keep their customer until they are gone, in whichever order the streams run."""
    project.write_night(["C1", "C2", "C3"], {"O1": "C1"}, {"S1": "C2"}, {"1": "", "2": "1", "3": "2"})
    project.night(0)
    project.write_night([], {"O1": "C1", "O2": "C3"}, {"S1": "C2"}, {})
    report = project.night(1)
    assert report["streams"]["wms.customers"]["records"]["rejected"] == 3
    assert sorted(project.stored()["customer"]) == ["wms:C-any", "wms:C1", "wms:C2", "wms:C3"]
    assert [each for each in project.stored()["ledger_account"] if "wms" in each] == ["wms:0"], (
        "parents are deleted after their children"
    )
    assert project.dangling() == []
    kept = project.kept()
    assert kept["C2"].startswith("referenced_by: order shop:S1 refers to it; it is deleted when they are")
    assert kept["C3"].startswith("referenced_by: order wms:O2 refers to it"), "an order of the same night"
    project.write_night([], {"O1": "C1"}, {}, {})
    report = project.night(1)
    assert report["streams"]["wms.customers"]["records"]["deleted"] == 2, "their orders went in the same night"
    assert list(project.kept()) == ["C1"]
    project.set_gone(referenced="delete")
    project.write_night([], {"O1": "C1"}, {}, {})
    project.night(0)
    assert (project.dangling(), project.kept()) == (["wms:O1"], {})


@pytest.mark.nightly
def test_what_is_kept_does_not_count_for_the_limits(project: GoneCustomers) -> None:
    """A record that was held back was within the limits when it went, and needs no approval later."""
    project.write_night(["C1", "C2", "C3"], {"O1": "C1"}, {}, {})
    project.night(0)
    project.set_gone(at_most=1)
    project.write_night(["C2", "C3"], {"O1": "C1"}, {}, {})
    project.night(1)
    project.write_night(["C3"], {"O1": "C1"}, {}, {})
    report = project.night(1)
    assert report["streams"]["wms.customers"]["records"]["deleted"] == 1
    assert list(project.kept()) == ["C1"]
    project.write_night(["C1", "C3"], {"O1": "C1"}, {}, {})
    project.night(0)
    assert project.kept() == {}, "it is listed again"
