"""``crossdock migrate load``: waves in order, gates, catch-up loads, and what stops a load."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.e2e.migrated_folder import STREAMS, MigratedFolder

from crossdock.sandbox import SandboxServer


@pytest.fixture
def migrated(tmp_path: Path) -> Iterator[MigratedFolder]:
    with SandboxServer(tmp_path / "sandbox") as platform:
        yield MigratedFolder(tmp_path / "project", platform)


def test_waves_are_loaded_in_order(migrated: MigratedFolder) -> None:
    """One command loads all waves, each record once, and a second one sends nothing."""
    migrated.fill()
    document = migrated.load("--by", "Ann")
    assert [each["wave"] for each in document["runs"]] == ["customers", "products", "invoices"]
    assert migrated.created() == ["customer"] * 3 + ["product"] * 3 + ["invoice"] * 6
    again = migrated.load()
    assert sum(each["report"]["requests"] for each in again["runs"]) == 0
    status = migrated.status()
    assert (status["migration"]["name"], status["migration"]["started_by"], status["next"]) == ("acme", "Ann", None)
    assert [(w["state"], w["records"], w["delivered"]) for w in status["waves"]] == [
        ("done", 3, 3),
        ("done", 3, 3),
        ("done", 6, 6),
    ]


def test_a_catch_up_load_delivers_what_came_later(migrated: MigratedFolder) -> None:
    """What is new after the first load is delivered by the same command."""
    migrated.fill()
    migrated.load()
    migrated.write("CUST2.csv", "NO;NAME\nC9;Late\n")
    document = migrated.load()
    assert [each["report"]["requests"] for each in document["runs"]] == [1, 0, 0]
    assert Counter(migrated.created())["customer"] == 4


def test_a_second_attempt_with_a_new_state_makes_nothing_twice(migrated: MigratedFolder) -> None:
    """It is refused with advice that leads to one of each invoice, although the platform has forgotten their keys."""
    migrated.fill()
    migrated.load()
    httpx.post(f"{migrated.platform.base_url}/_sandbox/clock", json={"advance_s": 90_000}).raise_for_status()
    for path in migrated.folder.glob("state.db*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert migrated.run("init").exit_code == 0
    refused = migrated.migrate("load")
    assert refused.exit_code == 4
    shown = " ".join(refused.stderr.split())
    assert (
        "if the state is in place of a lost one, or was restored from a backup, run 'crossdock state restored'" in shown
    )
    assert migrated.run("state", "restored").exit_code == 0
    migrated.load()
    assert Counter(migrated.created()) == {"customer": 3, "product": 3, "invoice": 6}


def test_a_closed_gate_ends_the_load(migrated: MigratedFolder) -> None:
    """Too many rejected records: exit 4, the wave and what to do are named, and no later wave begins."""
    migrated.fill()
    migrated.write("PROD2.csv", "SKU;NAME;PRICE\nP7;Bad;dear\n")
    done = migrated.migrate("load")
    assert done.exit_code == 4
    assert "wave 2 of 3: products: the gate is closed: 1 of 4 records open (1 rejected)" in done.stderr
    assert "crossdock records list" in done.stderr
    assert "crossdock migrate go products" in done.stderr
    assert migrated.states()["products"] == ("done", "closed")
    assert migrated.states()["invoices"] == ("not begun", None)
    assert "invoice" not in migrated.created()
    assert migrated.load(exit_code=4)["ended_at"] == "products"  # a load that reads nothing new judges alike
    migrated.waves(products={"rejected_at_most_percent": 25})
    migrated.load(exit_code=1)
    assert Counter(migrated.created())["invoice"] == 6


def test_a_sync_passes_no_gate_by(migrated: MigratedFolder) -> None:
    """While a wave is not loaded, a sync of its streams is refused and sends nothing; others go on."""
    migrated.waves(products={"person": True})
    migrated.fill()
    assert migrated.migrate("load").exit_code == 4
    before = migrated.created()
    for streams in ([], ["wms.invoices"], ["wms"]):
        done = migrated.run("sync", *streams)
        assert done.exit_code == 4
        assert "the migration acme has not loaded its wave invoices yet: wms.invoices" in done.stderr
    assert migrated.created() == before
    migrated.write("CUST2.csv", "NO;NAME\nC9;Late\n")
    assert migrated.run("sync", "wms.customers").exit_code == 0
    assert Counter(migrated.created())["customer"] == 4


def test_a_saved_plan_passes_no_gate_by(migrated: MigratedFolder) -> None:
    """Its streams are those of a wave that is not loaded, so nothing of it is sent."""
    migrated.waves(customers={"person": True})
    migrated.fill()
    assert migrated.migrate("load").exit_code == 4
    plan = str(migrated.folder / "products.plan")
    assert migrated.run("plan", "wms.products", "-o", plan).exit_code == 0
    done = migrated.run("apply", plan)
    assert (done.exit_code, "has not loaded its wave products yet: wms.products" in done.stderr) == (4, True)
    assert Counter(migrated.created()) == {"customer": 3}


def test_an_undone_wave_needs_another_approval_and_is_not_synced(migrated: MigratedFolder) -> None:
    """It counts as not begun: its approval was for what is there no more, and a sync would pass its gate by."""
    migrated.waves(customers={"person": True})
    migrated.fill(invoices=0)
    assert migrated.migrate("load").exit_code == 4
    assert migrated.migrate("go", "customers").exit_code == 0
    assert migrated.migrate("undo", "customers", "--execute").exit_code == 0
    done = migrated.run("sync", "wms.customers")
    assert (done.exit_code, "has not loaded its wave customers yet" in done.stderr) == (4, True)
    assert migrated.migrate("load").exit_code == 4
    assert migrated.states()["customers"] == ("done", "waits for a person")


def test_a_person_lets_it_go_on(migrated: MigratedFolder) -> None:
    """A gate for a person is closed until somebody approves, and again when more is open than then."""
    migrated.waves(customers={"person": True})
    migrated.fill()
    assert migrated.migrate("go", "customers").exit_code == 4  # nothing has begun
    done = migrated.migrate("load")
    assert done.exit_code == 4
    assert "a person must let the migration go on" in done.stderr
    assert migrated.migrate("go", "products").exit_code == 4  # not loaded
    assert migrated.migrate("go", "customers", "--by", "Bob").exit_code == 0
    migrated.load()
    assert migrated.states()["customers"] == ("done", "approved")
    migrated.write("CUST2.csv", "NO;NAME\nC8;\n")
    done = migrated.migrate("load")
    assert done.exit_code == 4
    assert "more than when a person let it go on" in done.stderr
    migrated.migrate("go", "customers")
    migrated.load(exit_code=1)


def test_a_load_until_a_wave(migrated: MigratedFolder) -> None:
    """``--until`` leaves the later waves alone; an unknown wave is refused with the nearest name."""
    migrated.fill()
    migrated.load("--until", "products")
    assert Counter(migrated.created()) == {"customer": 3, "product": 3}
    assert migrated.status()["next"] == "invoices"
    done = migrated.migrate("load", "--until", "product")
    assert done.exit_code == 2
    assert "did you mean 'products'?" in done.stderr


@pytest.mark.nightly
def test_a_wave_that_fails_ends_the_load(migrated: MigratedFolder) -> None:
    """A wave whose run does not reach its end is named, is incomplete, and the next one is not begun."""
    migrated.fill()
    migrated.write("PROD2.csv", 'SKU;NAME;PRICE\nP7;"un;closed\n')
    done = migrated.migrate("load")
    assert done.exit_code == 4, done.stderr
    assert "wave 2 of 3: products: did not reach its end" in done.stderr
    assert migrated.states() == {
        "customers": ("done", "open"),
        "products": ("incomplete", None),
        "invoices": ("not begun", None),
    }
    assert migrated.migrate("go", "products").exit_code == 4
    (migrated.folder / "out" / "PROD2.csv").unlink()
    migrated.load()
    assert migrated.states()["invoices"] == ("done", "open")


def test_a_signed_off_migration_is_not_continued_silently(migrated: MigratedFolder) -> None:
    """After the sign-off a load is refused, unless another migration is asked for."""
    from datetime import UTC, datetime

    from crossdock.config.project import project

    migrated.fill()
    migrated.load()
    state = project.load(migrated.config).open_state()
    with state.begin() as tx:
        current = tx.migrations.current()
        assert current is not None
        tx.migrations.sign_off(current.id, at=datetime.now(UTC), by="Eve", report_sha256="0" * 64)
    state.close()
    done = migrated.migrate("load")
    assert done.exit_code == 4
    assert "by Eve" in done.stderr
    assert "--again" in done.stderr
    migrated.load("--again")
    done = migrated.migrate("load", "--again")
    assert (done.exit_code, "leave --again out" in done.stderr) == (2, True)
    assert migrated.status()["migration"]["signed_off_by"] is None


def test_a_config_without_waves(migrated: MigratedFolder) -> None:
    """Each command says that the section is missing."""
    migrated.configure(migration=None)
    for command in (["load"], ["status"], ["go", "x"], ["pause"], ["resume"], ["freeze"]):
        done = migrated.migrate(*command)
        assert (done.exit_code, "no section 'migration'" in done.stderr) == (2, True), command


def test_status_before_the_first_load(migrated: MigratedFolder) -> None:
    """Status works without a migration; pausing needs one."""
    done = migrated.migrate("status")
    assert done.exit_code == 0
    assert "no migration has begun" in done.stdout
    assert "next: wave 1 of 3: customers" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80, done.stdout
    assert migrated.migrate("pause").exit_code == 4


def test_a_wave_without_a_file_does_not_pass_its_gate(migrated: MigratedFolder) -> None:
    """A person must let it go on, since a pattern or a folder may be wrong."""
    migrated.fill(invoices=0)
    (migrated.folder / "out" / "PROD1.csv").unlink()
    done = migrated.migrate("load")
    assert (done.exit_code, "no file was read: wms.products" in done.stderr) == (4, True)
    assert migrated.states()["products"] == ("done", "closed")
    assert migrated.migrate("go", "products").exit_code == 0
    migrated.load()
    assert migrated.states()["products"] == ("done", "approved")


def test_an_undone_wave_whose_files_are_archived_does_not_pass_its_gate(migrated: MigratedFolder) -> None:
    """The undo names the files that a load must find again, and the load does not pass without them."""
    streams = {name: {**each, "archive": "done"} for name, each in STREAMS.items()}
    migrated.configure(
        connections={"wms": {"kind": "folder_warehouse", "path": "out", "settle_s": 0, "streams": streams}}
    )
    done_folder = migrated.folder / "out" / "done"
    done_folder.mkdir()
    migrated.fill(invoices=0)
    for file in migrated.folder.glob("out/*.csv"):
        os.utime(file, (1.7e9, 1.7e9))
    migrated.load()
    undone = migrated.migrate("undo", "customers", "--execute")
    assert (undone.exit_code, "the next load reads CUST1.csv again: move back" in undone.stderr) == (0, True)
    assert migrated.migrate("load").exit_code == 4
    assert migrated.states()["customers"] == ("done", "closed")
    shutil.move(done_folder / "CUST1.csv", migrated.folder / "out")
    migrated.load()
    assert len(migrated.stored()["customer"]) == 3


@pytest.mark.nightly
def test_an_undone_migration_is_loaded_again(migrated: MigratedFolder) -> None:
    """Status shows the last reconciliation, and after an undo the waves as not begun; a load begins with the first."""
    migrated.fill(invoices=0)  # an invoice cannot be undone
    migrated.load()
    assert migrated.migrate("reconcile").exit_code == 0
    assert "0 differences" in migrated.migrate("status").stdout
    plan = str(migrated.folder / "undo.plan")
    assert migrated.migrate("undo", "-o", plan).exit_code == 0
    done = migrated.run("apply", plan)
    assert done.exit_code == 0, done.stderr
    assert {state for state, _ in migrated.states().values()} == {"not begun"}
    migrated.load()
    assert [each["operation"] for each in migrated.effects()] == ["create"] * 6 + ["delete"] * 6 + ["create"] * 6


def test_what_invoices_refer_to_outlives_the_undo_of_their_migration(migrated: MigratedFolder) -> None:
    """The next load creates the others again, and nothing refers to a record that does not exist."""
    migrated.fill(customers=4, products=5, invoices=3)
    migrated.load()
    before, plan = migrated.stored(), str(migrated.folder / "undo.plan")
    needed = referred(before["invoice"])
    planned = migrated.migrate("undo", "-o", plan, "--json").document
    assert planned["operations"] == {"delete": 3}
    assert {each["stream"]: (each["reason"], each["records"]) for each in planned["kept"]} == {
        "wms.invoices": ("what is written once can be neither changed nor deleted", 3),
        "wms.customers": ("an invoice that stays refers to it", 3),
        "wms.products": ("an invoice that stays refers to it", 3),
    }
    assert migrated.run("apply", plan).exit_code == 0
    after = migrated.stored()
    assert after["invoice"] == before["invoice"]
    for resource in ("customer", "product"):
        assert after[resource] == [each for each in before[resource] if each["id"] in needed]
    migrated.load()
    loaded = migrated.stored()
    assert loaded["invoice"] == before["invoice"]
    assert needed <= {each["id"] for resource in ("customer", "product") for each in loaded[resource]}
    assert len(loaded["product"]) == len(before["product"])
    assert migrated.migrate("reconcile").exit_code == 0


def referred(invoices: list[dict[str, Any]]) -> set[str]:
    """The ids that *invoices* hold."""
    return {name for each in invoices for name in (each["customerId"], *(line["productId"] for line in each["items"]))}
