"""The two exchanges of docs/how_to/exchange_files, as they are written there, with a warehouse that this test plays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.e2e.project_folder import in_process

from crossdock.sandbox import SandboxServer
from crossdock.values import yaml_reader

PAGES = Path(__file__).parents[2] / "docs" / "how_to" / "exchange_files"
CSV, X12 = (
    yaml_reader.parse_yaml_mapping(text, page, None).data
    for page in ("csv_exchange.md", "x12_exchange.md")
    for text in re.findall(r"^```yaml\n(.*?)^```", (PAGES / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)
)
ADDRESS = {"name": "Harbour Lights", "line1": "1 Harbour Street", "city": "Port", "country": "DE"}


class Exchange:
    """A platform with three released orders, and a folder of the warehouse."""

    def __init__(self, folder: Path, platform: SandboxServer) -> None:
        self.folder, self._platform = folder, platform
        headers = {"authorization": f"Bearer {platform.api_key}", "x-tenant-slug": platform.tenant}
        self._client = httpx.Client(base_url=platform.base_url, headers=headers, trust_env=False)
        customer = self.create("sales/customers", externalId="shop:C", name="Harbour Lights")
        skus = {sku: self.create("catalog/products", externalId=sku, sku=sku, name=sku) for sku in ("LAMP", "ROPE")}
        items = [{"productId": each, "quantity": 3, "unitPrice": 1} for each in skus.values()]
        about = {"customerId": customer, "currency": "EUR", "placedAt": "2026-01-05T08:15:00Z", "status": "released"}
        self._order = {"items": items, "shippingAddress": ADDRESS, **about}
        self.ids = [self.release(number) for number in (1001, 1002, 1003)]

    def release(self, number: int) -> str:
        return self.create("sales/orders", externalId=f"shop:{number}", **self._order)

    def create(self, path: str, **members: Any) -> str:
        answer = self._client.post(f"/api/v1/{path}", json=members)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def listed(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._client.get(f"/api/v1/{path}").json()["data"]
        return found

    def progress(self) -> list[tuple[str, list[str]]]:
        orders = {each["id"]: each for each in self.listed("sales/orders")}
        return [(orders[i]["status"], [each["number"] for each in orders[i].get("tracking", ())]) for i in self.ids]

    def configure(self, connections: dict[str, Any], name: str) -> None:
        """Write the config, with a folder in place of the warehouse's server, in which nothing grows."""
        for key in ("host", "user", "private_key", "host_key"):
            connections[name].pop(key, None)
        connections[name] |= {"kind": "folder_warehouse", "path": "files", "settle_s": 0}
        (self.folder / "files" / "in" / "archive").mkdir(parents=True)
        (self.folder / "files" / "out").mkdir()
        platform = {"base_url": self._platform.base_url, "tenant": self._platform.tenant}
        auth = {"kind": "api_key", "token": "env:CROSSDOCK_API_KEY"}
        config = {"platform": platform | {"auth": auth}, "state": "sqlite:///state.db", "connections": connections}
        (self.folder / "c.yaml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        self.run("init")

    def run(self, *arguments: str, exit_code: int = 0) -> Any:
        done = in_process(
            self.folder / "c.yaml", *arguments, "--json", environment={"CROSSDOCK_API_KEY": self._platform.api_key}
        )
        assert done.exit_code == exit_code, done.stdout + done.stderr
        return done.document if done.stdout else None

    def open_records(self) -> list[tuple[str, str, str]]:
        return [(each["state"], each["key"], each["why"]) for each in self.run("records", "list")]

    def sent(self) -> list[str]:
        files = [path for path in sorted((self.folder / "files" / "in").iterdir()) if path.is_file()]
        return [path.read_text() for path in files if path.suffix != ".done"]

    def answer(self, name: str, text: str) -> None:
        (self.folder / "files" / "out" / name).write_text(text)


@pytest.fixture
def exchange(tmp_path: Path) -> Iterator[Exchange]:
    with SandboxServer(tmp_path / "sandbox") as platform:
        yield Exchange(tmp_path, platform)


def interchange(number: int, kind: str, group: str, *sets: str) -> str:
    """An X12 file with transaction sets; their segments are separated by spaces."""
    isa = f"ISA*00*          *00*          *ZZ*DEPOT          *ZZ*ACME           *261122*0815*U*00401*{number:09}*0*P*>"
    segments = [isa, f"GS*{group}*DEPOT*ACME*20261122*0815*{number}*X*004010"]
    for place, text in enumerate(sets, 1):
        own = text.split()
        segments += [f"ST*{kind}*{place:04}", *own, f"SE*{len(own) + 2}*{place:04}"]
    return "".join(f"{each}~\n" for each in (*segments, f"GE*{len(sets)}*{number}", f"IEA*1*{number:09}"))


def test_the_exchange_in_csv(exchange: Exchange) -> None:
    """Each order has a file of its own as the page shows it, and comes back acknowledged, refused and shipped. What
    contradicts an earlier acknowledgement, or fits nothing, is told; what is not acknowledged, a person settles."""
    orders = CSV["connections"]["wms"]["target"]["resources"]["orders"]
    orders |= {"temporary": "{name}.tmp", "marker": "{stem}.done"}  # as others want it
    exchange.configure(CSV["connections"], "wms")
    exchange.run("sync")
    one, two, three = exchange.ids
    first, *_ = files = exchange.sent()
    assert first == (
        f'"PH","{one}","N","Harbour Lights","1 Harbour Street","Port"\n'
        f'"PD","{one}","1","LAMP","3"\n"PD","{one}","2","ROPE","3"\n'
    )
    names = sorted(path.name for path in (exchange.folder / "files" / "in").glob("*.csv"))
    assert ([name[:11] for name in names], len(files)) == (["ord_000001_", "ord_000002_", "ord_000003_"], 3)
    answers = f"FILE,ORDER,STATUS,REASON\n{names[0]},{one},OK,\n{names[1]},{two},ERROR,no such street\n"
    exchange.answer("ack_1.csv", answers)
    exchange.answer("shp_1.csv", f"ORDER,STATUS,CARRIER,TRACKING\n{one},PARTIAL,DHL,A\n{one},PARTIAL,DHL,B\n")
    exchange.run("sync", exit_code=1)
    assert exchange.progress() == [("partially_shipped", ["A", "B"]), ("released", []), ("released", [])]
    assert exchange.open_records() == [("rejected", two, "rejected: wms refused it: no such street")]
    exchange.answer("ack_2.csv", f"FILE,ORDER,STATUS,REASON\n{names[1]},{two},OK,\n{names[0]},SO-9,OK,\n")
    exchange.run("sync", exit_code=1)
    told = {key: why.partition(":")[0] for _, key, why in exchange.open_records()}
    assert told == {two: "rejected", f"{names[1]}|{two}": "conflict", f"{names[0]}|SO-9": "unmatched"}
    exchange.run("records", "resolve", "erp.orders_out", three, "--not-delivered")
    exchange.run("records", "replay", "erp.orders_out", two)
    exchange.run("sync", exit_code=1)
    assert len(exchange.sent()) == 5
    assert len(list((exchange.folder / "files" / "in").glob("ord_*.done"))) == 5
    for record in (two, three):
        exchange.run("records", "resolve", "erp.orders_out", record, "--delivered")
    exchange.run("records", "drop", "wms.acknowledgements", "--yes")
    assert exchange.run("sync")["requests"] == 0


def test_an_exchange_goes_on_after_a_backup_was_restored(exchange: Exchange) -> None:
    """An order that was handed over after the backup is in doubt and not sent again; others go on, and no number comes
    twice."""
    exchange.configure(CSV["connections"], "wms")
    exchange.run("sync")
    state = exchange.folder / "state.db"
    backup = state.read_bytes()
    forgotten = exchange.release(1004)
    exchange.run("sync")
    state.write_bytes(backup)
    exchange.run("sync", exit_code=4)
    exchange.run("state", "restored")
    exchange.release(1005)
    exchange.run("sync", exit_code=1)
    doubtful = {key for kind, key, _ in exchange.open_records() if kind == "in-doubt"}
    assert forgotten in doubtful
    for record in doubtful:
        told = "--delivered" if record == forgotten else "--not-delivered"
        exchange.run("records", "resolve", "erp.orders_out", record, told)
    exchange.run("sync")
    assert exchange.run("records", "list") == []
    sent = [text.split(",")[1].strip('"') for text in exchange.sent()]
    assert (len(sent), len(set(sent))) == (5, 5)
    numbers = sorted(path.name[4:10] for path in (exchange.folder / "files" / "in").glob("ord_*.csv"))
    assert numbers == ["000001", "000002", "000003", "000004", "001004"]


def test_the_exchange_in_x12(exchange: Exchange) -> None:
    """Sets are acknowledged by their place in the file, or all at once; orders are found by their number, parcels of
    several advices add up, and each shipped line moves its units once, also those of a substitute."""
    connections = X12["connections"]
    bin_id = exchange.create("warehouse/bins", externalId="bin", code="OUTBOUND", warehouse="DEPOT")
    connections["depot"]["streams"]["departures"]["map"]["toBinId"] = {"const": bin_id}
    exchange.configure(connections, "depot")
    bindings = "".join(f"platform,order,shop,{1001 + n},{each}\n" for n, each in enumerate(exchange.ids))
    (exchange.folder / "b.csv").write_text(f"target,resource,namespace,key,target_id\n{bindings}")
    exchange.run("bindings", "import", str(exchange.folder / "b.csv"))
    exchange.run("sync")
    (sent,) = exchange.sent()
    assert re.findall(r"ST\*940\*(\d+)~\nW05\*N\*(\d+)~", sent) == [
        ("0001", "1001"),
        ("0002", "1002"),
        ("0003", "1003"),
    ]

    partner = exchange.answer
    partner("997_1.x12", interchange(1, "997", "FA", "AK1*OW*1 AK2*940*0001 AK5*A AK2*940*0002 AK5*R*5 AK9*P*3*3*1"))
    receipts = "W17*F*20261120*R1 W07*10*EA**VN*LAMP***L1 W07*10*EA**VN*ROPE***L2 W14*20"
    partner("944_1.x12", interchange(2, "944", "RE", receipts))
    part = "W06*F*1001*20261121*S1 W27*M*DHL N9*2I*A LX*1 W12*BP*3*2**EA**VN*LAMP*L1 W03*2"
    partner("945_1.x12", interchange(3, "945", "SW", part))
    exchange.run("sync", exit_code=1)
    assert exchange.open_records() == [("rejected", "1002", "rejected: depot refused it: segments in error")]
    assert exchange.progress()[0] == ("partially_shipped", ["A"])
    rest = (
        "W06*F*1001*20261122*S2 W27*M*DHL N9*2I*B LX*1 W12*CS*3*1**EA**VN*ROPE*L2 LX*2 W12*CC*3*3**EA**VN*ROPE*L2 W03*4"
    )
    partner("945_2.x12", interchange(4, "945", "SW", rest))
    partner("997_2.x12", interchange(5, "997", "FA", "AK1*OW*1 AK9*A*3*3*3"))
    exchange.run("sync", exit_code=1)
    assert exchange.progress()[0] == ("shipped", ["A", "B"])
    lots = {
        (each["lotNumber"], each.get("binId") == bin_id): each["quantity"] for each in exchange.listed("inventory/lots")
    }
    assert lots == {("L1", False): 8, ("L1", True): 2, ("L2", False): 6, ("L2", True): 4}
    assert exchange.run("records", "list", "--state", "handed-over") == []
    assert exchange.run("sync", exit_code=1)["requests"] == 0
