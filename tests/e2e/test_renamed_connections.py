"""A connection that is renamed names its records otherwise: none of them is created a second time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.folder_project import FolderProject, table
from tests.e2e.partner_files import PartnerFiles

from crossdock.sandbox import SandboxServer

CUSTOMERS = {**table("out/C_*.csv", ["NO"]), "resource": "customer", "map": {"name": "NAME"}}


def rename(project: FolderProject, **settings: Any) -> None:
    config = yaml.safe_load(project.config.read_text())
    (section,) = config["connections"].values()
    section.pop("namespace", None)
    config["connections"] = {"depot": section | settings}
    project.config.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[FolderProject]:
    """A project that has delivered three customers under the name of its connection."""
    wms = {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": {"customers": CUSTOMERS}}
    with SandboxServer(tmp_path / "sandbox") as platform:
        project = FolderProject(tmp_path, platform, {"wms": wms})
        assert project.run("init").exit_code == 0
        project.write("C_1.csv", "NO;NAME\n1;Ada\n2;Bob\n3;Cay\n")
        project.sync()
        yield project


def test_records_of_a_renamed_connection_are_not_created_again(project: FolderProject) -> None:
    """Plan and sync refuse them; with the old name as the namespace, nothing has changed; with the new one, all has."""
    rename(project)
    for command in ("plan", "sync"):
        refused = project.run(command)
        assert refused.exit_code == 4
        shown = " ".join((refused.stdout + refused.stderr).split())
        assert "3 of 3 records that were compared are known under the namespace 'wms'" in shown
        assert "set connections.depot.namespace: wms; if these are other records, set it to depot" in shown
    rename(project, namespace="wms")
    project.sync()
    assert len(project.effects()) == 3
    rename(project, namespace="depot")
    project.write("C_2.csv", "NO;NAME\n1;Another Ada\n")
    project.sync()
    assert sorted(each["body"]["externalId"] for each in project.effects()[3:]) == ["depot:1", "depot:2", "depot:3"]


def test_other_records_of_another_connection_are_created(project: FolderProject) -> None:
    """A connection that replaces one with other keys needs no declaration."""
    rename(project)
    (project.folder / "out" / "C_1.csv").unlink()
    project.write("C_2.csv", "NO;NAME\n3;Cay\n4;Dan\n5;Eve\n")
    project.sync()
    assert len(project.effects()) == 6


def test_records_of_a_renamed_stream_are_not_forgotten(project: FolderProject) -> None:
    """One that was rejected and whose file is gone makes each run degraded, until it is delivered or given up."""
    project.write("C_2.csv", "NO;NAME\n4;\n")
    former = project.config.read_text()
    project.sync(exit_code=1)
    for path in (project.folder / "out").iterdir():
        path.unlink()
    config = yaml.safe_load(former)
    streams = config["connections"]["wms"]["streams"]
    streams["clients"] = streams.pop("customers")
    project.config.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    done = project.run("sync")
    assert done.exit_code == 1
    said = " ".join(done.stdout.split())
    assert "wms.customers: the config no longer has this stream, and nothing works on its records (1 rejected)" in said
    assert (
        "give it its name again, or give them up with 'crossdock records drop wms.customers' [stream_missing]" in said
    )
    assert project.run("records", "drop", "wms.customers", "--yes").exit_code == 0
    project.sync()


def rekey(project: FolderProject, **stream: Any) -> None:
    config = yaml.safe_load(project.config.read_text())
    (section,) = config["connections"].values()
    section["streams"] = {"customers": CUSTOMERS | stream}
    project.config.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")


@pytest.mark.nightly(but=["True-changed1"])
@pytest.mark.parametrize("changed", [{"key": ["NO", "NAME"]}, {"columns": {"NO": {"zfill": 4}}}])
@pytest.mark.parametrize("has_new", [False, True])
def test_records_under_changed_keys_are_not_created_again(
    project: FolderProject, changed: dict[str, Any], *, has_new: bool
) -> None:
    """Plan and sync refuse files that were read before, whether or not another one has come; as before, they go on."""
    if has_new:
        project.write("C_2.csv", "NO;NAME\n4;Dan\n")
    rekey(project, **changed)
    for command in ("plan", "sync", "sync"):
        refused = project.run(command)
        assert refused.exit_code == 4
        assert "is known under its key, although an earlier run has read their file" in " ".join(
            (refused.stdout + refused.stderr).split()
        )
    assert len(project.effects()) == 3
    rekey(project, map={"name": {"from": "NAME", "as": "text"}})
    project.sync()
    assert len(project.effects()) == (4 if has_new else 3)


def test_records_that_a_filter_has_left_out_may_come_first(project: FolderProject) -> None:
    """The records behind them are known: a thousand others before them are no sign of another key."""
    (project.folder / "out" / "C_1.csv").unlink()
    rekey(project, skip={"guests": {"field": "NAME", "starts_with": "Guest"}})
    guests = "".join(f"G{number};Guest {number}\n" for number in range(2_000))
    project.write("C_2.csv", f"NO;NAME\n{guests}4;Dan\n5;Eve\n6;Fay\n")
    project.sync()
    rekey(project)
    project.sync()
    assert len(project.effects()) == 3 + 3 + 2_000


@pytest.mark.parametrize("dropped", [False, True])
def test_files_of_which_nothing_was_delivered_are_read_again(project: FolderProject, *, dropped: bool) -> None:
    """A correction of the mapping delivers what was rejected, and not dropped: the state knows it by its key."""
    (project.folder / "out" / "C_1.csv").unlink()
    project.write("C_2.csv", "NO;NAME;CURRENCY\n4;Dan;Euro\n5;Eve;Euro\n")
    rekey(project, map={"name": "NAME", "currency": "CURRENCY"})
    project.sync(exit_code=1)
    if dropped:
        assert project.run("records", "drop", "wms.customers", "--yes").exit_code == 0
    rekey(project)
    project.sync()
    assert len(project.effects()) == (3 if dropped else 5)


KNOWN = [f"{number:04}" for number in range(1, 21)]


@pytest.mark.nightly(but=["new0-known0", "new2-known2"])
@pytest.mark.parametrize("known", [KNOWN, [f"{key}.0" for key in KNOWN], [f"{number}" for number in range(1, 21)]])
@pytest.mark.parametrize("new", [KNOWN, [f"{int(key)}.0" for key in KNOWN], [str(int(key)) for key in KNOWN]])
def test_known_keys_in_another_notation_are_not_created_again(
    project: FolderProject, known: list[str], new: list[str]
) -> None:
    """A spreadsheet makes 17 of 0017, and a program that reads numbers 17.0: the platform would have all twice."""
    texts = ["NO;NAME\n" + "".join(f"{key};A{number}\n" for number, key in enumerate(keys)) for keys in (known, new)]
    project.write("C_2.csv", texts[0])
    project.sync()
    project.write("C_3.csv", texts[1])
    for command in ("plan", "sync"):
        done = project.run(command)
        assert done.exit_code == (0 if known == new else 4)
        assert ("key_notation_changed" in done.stdout + done.stderr) is (known != new)


def test_keys_that_are_other_records_are_created(project: FolderProject) -> None:
    """A file with 17 and 0017 has two records, and a few new ones among many are no sign of another notation."""
    both = [*KNOWN, *(str(int(key)) for key in KNOWN)]
    few = [*(f"{int(key)}.0" for key in KNOWN[:9]), *(f"{number:05}" for number in range(50_000, 50_009))]
    for number, keys in enumerate((KNOWN, both, few), 2):
        project.write(f"C_{number}.csv", "NO;NAME\n" + "".join(f"{key};A\n" for key in keys))
        project.sync()
    created = {each["body"]["externalId"] for each in project.effects()}
    assert created == {f"wms:{key}" for key in ("1", "2", "3", *both, *few)}


@pytest.mark.parametrize(("connection", "resource"), [("depot", "orders"), ("wms", "sales")])
def test_orders_are_not_sent_again_to_a_renamed_partner(tmp_path: Path, connection: str, resource: str) -> None:
    """Plan and sync refuse a new name of the target or its resource: the partner would get each order twice."""
    stage = PartnerFiles(tmp_path, acknowledged=None)
    stage.export("SO-1,Ann,1", "SO-2,Bob,2")
    stage.sync()
    former = stage.config.read_text()
    config = yaml.safe_load(former)
    connections = config["connections"]
    connections[connection] = connections.pop("wms") | {"namespace": "wms"}
    connections[connection]["streams"]["acknowledgements"]["to"] = f"{connection}.acknowledgements"
    resources = connections[connection]["target"]["resources"]
    resources[resource] = resources.pop("orders")
    connections["shop"]["streams"]["orders"]["to"] = f"{connection}.{resource}"
    stage.config.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    stage.export("SO-3,Cyd,3")
    for command in ("plan", "sync"):
        refused = stage.run(command)
        assert refused.exit_code == 4
        shown = " ".join((refused.stdout + refused.stderr).split())
        assert "2 of 3 records that were compared were sent to wms.orders, which the config no longer has" in shown
        assert "give it the name wms.orders again" in shown
    connections["shop"]["streams"]["orders"]["namespace"] = "again"
    stage.config.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    assert "3 create shop.orders" in stage.run("plan").stdout
    stage.config.write_text(former, encoding="utf-8")
    stage.sync()
    assert list(stage.files().values()) == [["N,SO-1,Ann,1", "N,SO-2,Bob,2"], ["N,SO-3,Cyd,3"]]


def move(stage: PartnerFiles, **orders: Any) -> Path:
    """Have the partner at another address, with these keys of the stream of orders, and return its inbox."""
    config = yaml.safe_load(stage.config.read_text())
    config["connections"]["wms"]["path"] = "live"
    config["connections"]["shop"]["streams"]["orders"] |= orders
    stage.config.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    for name in ("in", "out"):
        (stage.folder / "live" / name).mkdir(parents=True, exist_ok=True)
    return stage.folder / "live" / "in"


def orders_in(folder: Path) -> list[list[str]]:
    return [each.read_text().splitlines()[1:] for each in sorted(folder.iterdir())]


def refused_as_moved(stage: PartnerFiles) -> None:
    for command in ("plan", "sync"):
        refused = stage.run(command)
        assert refused.exit_code == 4
        shown = " ".join((refused.stdout + refused.stderr).split())
        partner = (
            f"wms at {stage.partner} (folder in), and the config has it at {stage.folder / 'live'} (folder in) now"
        )
        assert f"2 records of shop.orders were sent to {partner}" in shown
        assert "crossdock approve shop.orders 2" in shown


def test_orders_do_not_count_as_sent_to_another_partner(tmp_path: Path) -> None:
    """Plan and sync refuse another address of the target, and its acknowledgements; a namespace sends all orders."""
    stage = PartnerFiles(tmp_path)
    stage.export("SO-1,Ann,1", "SO-2,Bob,2")
    stage.sync()
    inbox = move(stage)
    (stage.folder / "live" / "out" / "ack_1.csv").write_text("id,file,number,set,order_no,status,text\n1,,1,,,OK,\n")
    stage.export("SO-3,Cyd,3")
    refused_as_moved(stage)
    assert len(stage.listed("handed-over")) == 2
    move(stage, namespace="live")
    (stage.folder / "live" / "out" / "ack_1.csv").unlink()
    stage.sync()
    assert orders_in(inbox) == [["N,SO-1,Ann,1", "N,SO-2,Bob,2", "N,SO-3,Cyd,3"]]


def test_orders_do_not_count_as_sent_to_another_folder(tmp_path: Path) -> None:
    """A partner often has one for tests and one for the live system, at one address."""
    stage = PartnerFiles(tmp_path, acknowledged=None)
    stage.export("SO-1,Ann,1", "SO-2,Bob,2")
    stage.sync()
    config = yaml.safe_load(stage.config.read_text())
    orders = config["connections"]["wms"]["target"]["resources"]["orders"]
    orders["folder"] = "./in"
    stage.config.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    assert stage.run("plan").exit_code == 0
    orders["folder"] = "live"
    (stage.partner / "live").mkdir()
    stage.config.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    for command in ("plan", "sync"):
        refused = stage.run(command)
        assert (refused.exit_code, "(folder live)" in refused.stdout + refused.stderr) == (4, True)
    stage.configure(acknowledged=None)
    stage.sync()


def test_orders_count_as_sent_to_a_partner_that_has_moved(tmp_path: Path) -> None:
    """Once a person has approved that its new address has them, only new ones are sent, and the same is not asked."""
    stage = PartnerFiles(tmp_path, acknowledged=None)
    stage.export("SO-1,Ann,1", "SO-2,Bob,2")
    stage.sync()
    inbox = move(stage)
    stage.export("SO-3,Cyd,3")
    refused_as_moved(stage)
    assert "orders that wms has at" in " ".join(stage.run("approve").stdout.split())
    assert stage.run("approve", "shop.orders", "2").exit_code == 0
    stage.sync()
    assert orders_in(inbox) == [["N,SO-3,Cyd,3"]]
    assert "nothing needs approval" in stage.run("approve").stdout
    stage.export("SO-4,Dan,4")
    stage.sync()
    assert len(orders_in(inbox)) == 2


def test_what_was_to_be_sent_to_a_former_address_stays(tmp_path: Path) -> None:
    """A cancellation that the test system has not got is not sent to the live one, which gets the other orders."""
    stage = PartnerFiles(tmp_path, acknowledged=None)
    stage.export("SO-1,Ann,1")
    stage.sync()
    (stage.partner / "in").rename(stage.partner / "away")
    stage.export("SO-1,Ann,1,2,yes")
    assert stage.run("sync").exit_code == 2
    inbox = move(stage, namespace="live")
    stage.export("SO-3,Cyd,3")
    done = stage.run("sync")
    assert "1 unsettled operations are left: they are for" in " ".join((done.stdout + done.stderr).split())
    assert orders_in(inbox) == [["N,SO-3,Cyd,3"]]


def test_an_undo_cancels_nothing_at_another_address(tmp_path: Path) -> None:
    """It is refused and does not count as done; at the former address it still can be."""
    stage = PartnerFiles(tmp_path, acknowledged=None)
    stage.export("SO-1,Ann,1", "SO-2,Bob,2")
    stage.sync()
    assert stage.run("undo", "1", "-o", str(tmp_path / "undo.plan")).exit_code == 0
    former = stage.config.read_text()
    inbox = move(stage)
    refused = stage.run("apply", str(tmp_path / "undo.plan"))
    assert (refused.exit_code, "2 records of shop.orders were sent to wms at" in refused.stderr) == (4, True)
    assert orders_in(inbox) == []
    stage.config.write_text(former, encoding="utf-8")
    assert stage.run("undo", "1", "-o", str(tmp_path / "again.plan")).exit_code == 0
    assert stage.run("apply", str(tmp_path / "again.plan")).exit_code == 0
    assert sorted(list(stage.files().values())[1]) == ["X,SO-1,Ann,1", "X,SO-2,Bob,2"]
