"""Records that the platform has under other names are taken over, or nothing is written."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.e2e.folder_project import FolderProject, table
from tests.plan_and_sync import differences

from crossdock.client import Client, Customer, Product, StoredProduct
from crossdock.config.project import project
from crossdock.runs.active_run import ActiveRun
from crossdock.runs.session_shared_by_runs import open_session
from crossdock.sandbox import SandboxServer
from crossdock.testing import ManualClock
from crossdock.values.run_progress_and_messages import SilentProgress

LIST = "/api/v1/catalog/products"
PRODUCTS: Mapping[str, Any] = {"resource": "product", "map": {"sku": "SKU", "name": "NAME"}, "adopt": {"by": "sku"}}
NOTE = "adopt: {by: sku}: the platform is asked about 2 new records at delivery, and may have them"


class Catalogue(FolderProject):
    """A stream of products that takes over what has the same SKU, and the platform's products."""

    def __init__(self, folder: Path, platform: SandboxServer, facts: Mapping[str, Any] = PRODUCTS) -> None:
        streams = {"products": table("P_*.csv", ["ID"], **{"mode": "snapshot", **facts})}
        connection = {"kind": "folder_warehouse", "path": "out", "settle_s": 0, "streams": streams}
        super().__init__(folder, platform, {"wms": connection})
        self.client = Client(platform.base_url, platform.tenant, platform.api_key)
        assert self.run("init").exit_code == 0
        self._exports = 0

    def export(self, *rows: str) -> None:
        self._exports += 1
        self.write(f"P_{self._exports}.csv", "\n".join(["ID;SKU;NAME", *rows, ""]))

    def adopt(self, how: str | None) -> None:
        """Change what the stream takes over."""
        document = yaml.safe_load(self.config.read_text(encoding="utf-8"))
        stream = document["connections"]["wms"]["streams"]["products"]
        stream.pop("adopt", None)
        if how is not None:
            stream["adopt"] = how
        self.config.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")

    def there(self, sku: str, name: str = "", text: str = "old") -> str:
        """A product that the platform has; its id."""
        made = Product(external_id=name or f"erp-{sku}", sku=sku, name=text, barcode="4711")
        return self.client.products.create(made).id

    @property
    def products(self) -> dict[str, StoredProduct]:
        """By external id."""
        return {each.external_id or each.id: each for each in self.client.products.list(page_size=1000)}

    def records(self, exit_code: int = 0) -> dict[str, int]:
        """What a sync of a new export did, as far as it is not zero."""
        found = self.sync(exit_code)["streams"]["wms.products"]["records"]
        wanted = ("created", "updated", "suppressed", "rejected", "unchanged", "carried_on")
        return {name: found[name] for name in wanted if found[name]}

    def reasons(self) -> dict[str, str]:
        listed: Any = self.run("records", "list", "--state", "rejected", "--json").document
        return {each["key"]: each["why"] for each in listed}

    def lists_read(self) -> int:
        """How many pages of the list of products were requested."""
        answer = httpx.get(
            f"{self.platform.base_url}/_sandbox/requests", params={"limit": "10000", "path": LIST}, trust_env=False
        )
        asked = [each for each in answer.json()["data"] if each["method"] == "GET" and each["path"] == LIST]
        return sum("externalId" not in str(each) for each in asked)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox") as running:
        yield running


@pytest.fixture
def catalogue(tmp_path: Path, server: SandboxServer) -> Iterator[Catalogue]:
    made = Catalogue(tmp_path, server)
    with made.client:
        yield made


def test_one_match_is_taken_over_and_the_rest_is_created(catalogue: Catalogue) -> None:
    """It gets an external id and what differs; what we do not write stays. Without a match a record is created."""
    taken = catalogue.there("0017")
    catalogue.there("X")
    catalogue.export("1;0017;Lamp", "2;0018;Shelf")
    planned = catalogue.plan()
    assert catalogue.lists_read() == 0
    report = catalogue.sync()
    assert differences(planned, report, looked_up=True) == []
    done = report["streams"]["wms.products"]["records"]
    assert (done["created"], done["updated"]) == (1, 1)
    products = catalogue.products
    assert products.keys() == {"wms:1", "wms:2", "erp-X"}
    assert (products["wms:1"].id, products["wms:1"].name, products["wms:1"].barcode) == (taken, "Lamp", "4711")


@pytest.mark.nightly
def test_a_run_without_new_records_reads_no_list(catalogue: Catalogue) -> None:
    """The platform is asked only when there is something to decide, and once in a run."""
    catalogue.there("A")
    catalogue.export(*(f"{number};{number};Lamp" for number in range(450)))
    assert catalogue.records() == {"created": 450}
    assert catalogue.lists_read() == 1
    catalogue.export(*(f"{number};{number};Shelf" for number in range(99)), *(f"{n};{n};Lamp" for n in range(99, 450)))
    assert catalogue.records() == {"updated": 99, "unchanged": 351}
    assert catalogue.lists_read() == 1


def test_a_record_that_is_the_same_is_bound_without_a_write(catalogue: Catalogue) -> None:
    """It has the external id already, from a state that was lost."""
    catalogue.there("A", "wms:1", "Lamp")
    catalogue.export("1;A;Lamp")
    before = catalogue.products["wms:1"]
    assert catalogue.records() == {"suppressed": 1}
    assert catalogue.products == {"wms:1": before}
    catalogue.export("1;A;Bulb")
    assert catalogue.records() == {"updated": 1}


def test_several_matches_are_a_dead_letter_until_there_is_one(catalogue: Catalogue) -> None:
    """Nothing is written; the reason names the ids. A replay asks the platform again."""
    first, second = catalogue.there("A"), catalogue.there("A", "erp-2")
    catalogue.export("1;A;Lamp")
    assert catalogue.records(1) == {"rejected": 1}
    why = catalogue.reasons()["1"]
    assert why.startswith("ambiguous_match: ")
    assert f"2 records of the target have its sku: {first}, {second}" in why
    assert catalogue.products.keys() == {"erp-A", "erp-2"}
    catalogue.client.products.delete(second)
    assert catalogue.run("records", "replay").exit_code == 0
    assert {name: each.id for name, each in catalogue.products.items()} == {"wms:1": first}


def test_the_second_record_of_a_value_is_a_dead_letter_in_every_run(catalogue: Catalogue) -> None:
    """Whether the first one took a record over or was created, in this run or in an earlier one."""
    catalogue.there("A")
    rows = ["1;A;Lamp", "2;A;Shelf", "3;B;Lamp", "4;B;Shelf"]
    catalogue.export(*rows)
    assert catalogue.records(1) == {"created": 1, "updated": 1, "rejected": 2}
    assert catalogue.reasons().keys() == {"2", "4"}
    rows[1], rows[3] = "2;A;Table", "4;B;Table"
    catalogue.export(*rows, "5;A;Chair")
    assert catalogue.records(1) == {"unchanged": 2, "rejected": 3}
    assert catalogue.products.keys() == {"wms:1", "wms:3"}


def test_another_record_under_our_name_is_a_dead_letter(catalogue: Catalogue) -> None:
    """It does not stop the others. The reason names its id, and each way out that is documented works."""
    for number, name in ((1, "A"), (3, "B"), (4, "C")):
        catalogue.there(f"OTHER-{name}", f"wms:{number}")
    before = catalogue.products
    catalogue.export("1;A;Lamp", "2;B;Shelf", "3;C;Chair", "4;D;Table")
    assert catalogue.records(1) == {"created": 1, "rejected": 3}
    reasons = catalogue.reasons()
    assert reasons.keys() == {"1", "3", "4"}
    assert reasons["1"].startswith("conflict: ")
    assert f"has another record under this name, {before['wms:1'].id}" in reasons["1"]
    assert catalogue.records(1) == {}
    assert {name: each for name, each in catalogue.products.items() if name != "wms:2"} == before
    # one is dropped, one is bound by hand, one is taken over
    assert catalogue.run("records", "drop", "wms.products", "3").exit_code == 0
    rows = f"target,resource,namespace,key,target_id\nplatform,product,wms,4,{before['wms:4'].id}\n"
    catalogue.write("bindings.csv", rows)
    bound = catalogue.run("bindings", "import", str(catalogue.folder / "out" / "bindings.csv"))
    assert bound.exit_code == 0, bound.stderr
    assert catalogue.run("records", "replay", "wms.products", "4").exit_code == 1, "another one is still rejected"
    assert catalogue.reasons().keys() == {"1"}
    catalogue.adopt("external_id")
    done = catalogue.run("records", "replay", "wms.products", "1")
    assert done.exit_code == 0, done.stdout + done.stderr
    after = catalogue.products
    assert {name: (each.id, each.sku) for name, each in after.items() if name != "wms:2"} == {
        "wms:1": (before["wms:1"].id, "A"),
        "wms:3": (before["wms:3"].id, "OTHER-B"),
        "wms:4": (before["wms:4"].id, "D"),
    }


def test_a_record_that_we_seem_to_have_made_stops_the_run(catalogue: Catalogue) -> None:
    """Every way out that the error names works: dropping the record, with a binding by hand, or taking it over."""
    catalogue.adopt(None)
    catalogue.there("A", "wms:1", "Lamp")
    catalogue.there("B", "wms:2", "Bulb")
    catalogue.export("1;A;Lamp", "2;B;Bulb", "3;C;Chair")
    stopped = catalogue.run("sync")
    assert (stopped.exit_code, "the state has no record of sending it" in stopped.stderr) == (4, True)
    hints = " ".join(stopped.stderr.split())
    assert "run 'crossdock state restored'" in hints
    assert "set 'adopt: external_id' for the stream" in hints
    assert "'crossdock records drop wms.products " in hints
    dropped = catalogue.run("records", "drop", "wms.products", "1")
    assert (dropped.exit_code, dropped.stdout) == (0, "dropped 1 record\n"), dropped.stderr
    ids = {name: each.id for name, each in catalogue.products.items()}
    catalogue.write("bindings.csv", f"target,resource,namespace,key,target_id\nplatform,product,wms,1,{ids['wms:1']}\n")
    assert catalogue.run("bindings", "import", str(catalogue.folder / "out" / "bindings.csv")).exit_code == 0
    assert catalogue.run("sync").exit_code == 4, "the other one is left"
    catalogue.adopt("external_id")
    assert catalogue.run("sync").exit_code == 0
    assert catalogue.products.keys() == {"wms:1", "wms:2", "wms:3"}
    catalogue.export("1;A;Lantern", "2;B;Bulb", "3;C;Chair")
    assert catalogue.records() == {"updated": 1, "unchanged": 2}
    assert {name: each.id for name, each in catalogue.products.items() if name in ids} == ids


def test_the_hints_fit_a_stream_that_matches_by_a_member(tmp_path: Path, server: SandboxServer) -> None:
    """Customers without a mail address match nobody; 'adopt' is set already."""
    members = {"name": "NAME", "email": {"from": "SKU", "empty": "null"}}
    facts = {"resource": "customer", "map": members, "adopt": {"by": "email"}}
    catalogue = Catalogue(tmp_path, server, facts)
    with catalogue.client as client:
        client.customers.create(Customer(external_id="wms:1", name="Ada"))
        catalogue.export("1;;Ada")
        stopped = catalogue.run("sync")
    assert stopped.exit_code == 4
    assert "replace 'adopt: {by: ...}' by 'adopt: external_id'" in " ".join(stopped.stderr.split())


def test_many_other_records_under_our_names_stop_the_run(catalogue: Catalogue) -> None:
    """They show that the state is not the one that these records were sent from."""
    for number in range(30):
        catalogue.there(f"OTHER-{number}", f"wms:{number}")
    catalogue.export(*(f"{number};{number};Lamp" for number in range(40)))
    stopped = catalogue.run("sync")
    assert stopped.exit_code == 4
    assert "records under names that this run would give" in " ".join(stopped.stderr.split())
    assert set(catalogue.reasons()) <= {str(number) for number in range(30)}
    assert {each.name for name, each in catalogue.products.items() if int(name.partition(":")[2]) < 30} == {"old"}


def test_what_belongs_to_another_namespace_is_left_alone(catalogue: Catalogue, tmp_path: Path) -> None:
    """A record that another stream has delivered is nobody's to take over: a second one is created."""
    folder = tmp_path / "other"
    folder.mkdir()
    catalogue.export("1;A;Lamp")
    assert catalogue.records() == {"created": 1}
    streams = {"products": table("Q_*.csv", ["ID"], **{"mode": "snapshot", **PRODUCTS})}
    text = catalogue.config.read_text()
    other = {"kind": "folder_warehouse", "path": "out", "settle_s": 0, "streams": streams}
    FolderProject.__init__(catalogue, catalogue.folder, catalogue.platform, {"shop": other})
    assert text != catalogue.config.read_text()
    catalogue.write("Q_1.csv", "ID;SKU;NAME\n9;A;Lamp\n")
    assert catalogue.sync()["streams"]["shop.products"]["records"]["created"] == 1
    assert catalogue.products.keys() == {"wms:1", "shop:9"}


@pytest.mark.nightly(but=["erp-7"])
@pytest.mark.parametrize("name", ["erp-7", "wms:1"])
def test_an_undo_gives_back_what_was_there(catalogue: Catalogue, name: str) -> None:
    """The name that the record had included; what the run created is deleted."""
    catalogue.there("A", name)
    catalogue.there("C", "wms:3", "Chair")
    before = {key: each.model_dump(exclude={"updated_at"}) for key, each in catalogue.products.items()}
    catalogue.export("1;A;Lamp", "2;B;Shelf", "3;C;Chair")
    assert catalogue.records() == {"created": 1, "updated": 1, "suppressed": 1}
    planned = catalogue.run("undo", "1", "--out", str(catalogue.folder / "undo.json"))
    assert planned.exit_code == 0, planned.stderr
    applied = catalogue.run("apply", str(catalogue.folder / "undo.json"))
    assert applied.exit_code == 0, applied.stderr + applied.stdout
    assert {key: each.model_dump(exclude={"updated_at"}) for key, each in catalogue.products.items()} == before


def test_a_plan_says_that_new_records_may_be_taken_over(catalogue: Catalogue) -> None:
    """It asks no platform; without new records it says nothing."""
    catalogue.there("A")
    catalogue.export("1;A;Lamp", "2;B;Shelf")
    said = catalogue.run("plan")
    assert NOTE in " ".join(said.stderr.split())
    assert catalogue.lists_read() == 0
    catalogue.sync()
    catalogue.export("1;A;Lamp", "2;B;Table")
    assert "adopt" not in catalogue.run("plan").stderr


def test_a_list_that_may_not_be_read_stops_the_stream_alone(catalogue: Catalogue) -> None:
    """Nothing is written; the next run reads the file again. `check` says so before."""
    catalogue.export("1;A;Lamp")
    sandbox, key = catalogue.platform.sandbox, catalogue.platform.api_key
    catalogue.platform.api_key = sandbox.new_key(catalogue.platform.tenant, "orders:write")
    report = catalogue.sync(3)
    assert "needs the scope products:read" in str(report["errors"]["wms.products"])
    assert "products" in catalogue.run("check").stdout
    assert catalogue.run("check").exit_code != 0
    catalogue.platform.api_key = key
    assert catalogue.records() == {"created": 1}


def test_records_without_a_value_are_created(tmp_path: Path, server: SandboxServer) -> None:
    """Of customers that are matched by their mail address, one without any matches nobody."""
    members = {"name": "NAME", "email": {"from": "SKU", "empty": "null"}}
    facts = {"resource": "customer", "map": members, "adopt": {"by": "email"}}
    catalogue = Catalogue(tmp_path, server, facts)
    with catalogue.client as client:
        ada = client.customers.create(Customer(external_id="crm-1", name="A. Byron", email="ada@example.com"))
        client.customers.create(Customer(external_id="crm-2", name="Nobody"))
        catalogue.export("1;ada@example.com;Ada", "2;;Bob", "3;;Eve")
        assert catalogue.records() == {"created": 2, "updated": 1}
        held = {each.external_id: each for each in client.customers.list()}
    assert held.keys() == {"wms:1", "wms:2", "wms:3", "crm-2"}
    assert (held["wms:1"].id, held["wms:1"].name) == (ada.id, "Ada")


def test_an_open_run_reads_what_has_changed_since(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that delivers part after part, as `listen` does, sees what others created after it read the list."""
    monkeypatch.setenv("CROSSDOCK_API_KEY", catalogue.platform.api_key)
    loaded, clock = project.load(catalogue.config), ManualClock(datetime.now(UTC) + timedelta(days=1))
    catalogue.there("A")
    catalogue.export("1;A;Lamp")
    with open_session(loaded, clock) as session:
        run = ActiveRun(session, SilentProgress(), threading.Event())
        with run.recording_start_and_end({"wms.products"}):
            run.records.record_begin_of_reading()
            run.settle_then_deliver_streams(run.streams, run._new_stream_input)
            since = catalogue.there("B")
            catalogue.export("1;A;Lamp", "2;B;Shelf")
            run.streams[0].context.renew()
            run.settle_then_deliver_streams(run.streams, run._new_stream_input)
    assert {name: each.id for name, each in catalogue.products.items() if name == "wms:2"} == {"wms:2": since}
    assert catalogue.products.keys() == {"wms:1", "wms:2"}
