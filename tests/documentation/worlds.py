"""The projects in which the commands of pages are run: each is made once, and copied for each page."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import Template
from typing import Any
from unittest import mock

import httpx
import trustme
import yaml
from tests.chaos.listen_stage import new_secret
from tests.documentation.fences import fences
from tests.documentation.partner import Partner
from tests.e2e.project_folder import in_process
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.token_vendor import CLIENT, TokenVendor
from tests.servers import free_port

from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.sandbox.fault_injection import Fault, FaultSet

HERE = Path(__file__).parent
CONFIG, FLEET = (Template((HERE / name).read_text(encoding="utf-8")) for name in ("warehouse.yaml", "fleet.yaml"))
SECRET = "of-the-help-desk"
SKUS = [f"{number:04}" for number in range(1, 41)]
CUSTOMERS = [f"C{number}" for number in range(1, 11)]
TENANTS = ("acme", "globex")
SHIPMENT = """\
ISA*00*          *00*          *ZZ*DEPOT          *ZZ*ACME           *261122*0815*U*00401*000000001*0*P*>
GS*SW*DEPOT*ACME*20261122*0815*1*X*004010
ST*945*0001
W06*F*1001*20261121*S1
N1*ST*Harbour Lights*93*C1
LX*1
W12*CC*3*3**EA**VN*LAMP*L1
W03*3
SE*7*0001
GE*1*1
IEA*1*000000001
"""
BINS = """
files: "out/BIN_*.csv"
format: {delimiter: ";"}
mode: append
key: [CODE]
resource: warehouse_bin
map: {code: CODE, warehouse: HALL}
"""
BOOKS = """
kind: http_json
base_url: $url
auth:
  kind: authorization_code
  authorize_url: $url/authorize
  token_url: $url/token
  client_id: $client
  client_secret: env:BOOKS_SECRET
  scopes: [offline_access]
streams:
  items:
    path: /items
    records: items
    mode: snapshot
    key: [id]
    resource: product
    pagination: {kind: cursor_in_body, path: next, param: page}
    map: {sku: id, name: id}
"""


@dataclass
class World:
    """A project, with its platform and its partners at work.

    Attributes:
        names: What stands for names in capital letters, absolute paths and ids on pages.
    """

    folder: Path
    environment: dict[str, str]
    names: dict[str, str] = field(default_factory=dict)


class Worlds:
    """Makes them in *folder*, all for one port of the platform, to which a state is pinned."""

    def __init__(self, folder: Path, partner_url: str, vendor_url: str) -> None:
        self._folder, self._port, self._partner_url, self._vendor_url = folder, free_port(), partner_url, vendor_url
        self._names: dict[str, dict[str, str]] = {}
        self._exported = 0

    @contextmanager
    def copy(self, name: str, folder: Path) -> Iterator[World]:
        """A copy of the world *name* in *folder*, with its platform at work."""
        own_names = self._extended(name, folder)
        project = folder / "project"
        with self._platform(folder / "sandbox") as (platform, environment):
            names = dict.fromkeys(("/etc/crossdock", "/var/lib/crossdock"), str(project))
            names |= {
                "/opt/crossdock/bin/": "",
                "https://api.example.com": platform.base_url,
                "--wait 30m": "--wait 1s",
                "bindings import FILE": "bindings import bindings.csv",
            }
            own = {"TMPDIR": str(folder), **_own_home(folder)}
            yield World(project, {**environment, **own}, {**names, **own_names})

    def _extended(self, name: str, folder: Path) -> dict[str, str]:
        """Copy the world *name* to *folder*; its names."""
        if name not in self._names:
            self._names[name] = MAKERS[name](self, self._folder / name)
        shutil.copytree(self._folder / name, folder)
        return self._names[name]

    @contextmanager
    def _platform(self, data: Path, *faults: Fault) -> Iterator[tuple[SandboxServer, dict[str, str]]]:
        settings = SandboxSettings(rate_per_min=600_000, burst=100_000, faults=FaultSet(faults=faults))
        with SandboxServer(data, settings, port=self._port) as platform:
            keys = {f"{tenant.upper()}_API_KEY": platform.sandbox.new_key(tenant) for tenant in TENANTS}
            environment = {"CROSSDOCK_API_KEY": platform.api_key, "API_KEY": platform.api_key, **keys}
            secrets = {
                "BOOKS_SECRET": CLIENT[1],
                "DESK_SECRET": SECRET,
                "SHOP_TOKEN": "t",
                "ACME_SHOP_TOKEN": "t",
                "NEW_KEY": platform.api_key,
            }
            secrets["PARTNER_URL"] = self._partner_url
            yield platform, {"BASE_URL": platform.base_url, **environment, **secrets}

    # ---- exports

    def _export(self, project: Path, name: str, *rows: str, folder: str = "served/out") -> None:
        path = project / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        self._exported += 1
        written = time.time() - 3_600 + self._exported
        os.utime(path, (written, written))

    def _customers(self, project: Path, night: int) -> None:
        self._export(project, f"CUST_{night}.csv", "CUSTNO;NAME", *(f"{each};Shop {each}" for each in CUSTOMERS))

    def _products(self, project: Path, night: int, number: int = len(SKUS), price: str = "1.50") -> None:
        """The first *number* products, of which one has another *price*."""
        rows = [f"{sku};Part {sku};{price if sku == '0017' else '1.50'}" for sku in SKUS[:number]]
        self._export(project, f"ITEM_{night}.csv", "SKU;DESCR;PRICE", *rows)

    def _invoices(self, project: Path, night: int, *numbers: int, customer: str = "C1", quantity: str = "2") -> None:
        rows = [f"{number};{customer};0001;{quantity};1.50" for number in numbers]
        self._export(project, f"INV_{night}.csv", "INVNO;CUSTNO;SKU;QTY;PRICE", *rows)

    # ---- worlds

    def warehouse(self, folder: Path) -> dict[str, str]:
        """A warehouse after its first night; the second one's files are there. So is a fleet of two tenants."""
        project = self._project(folder)
        with self._platform(folder / "sandbox") as (platform, environment):
            document = httpx.get(f"{platform.base_url}/openapi.json", trust_env=False).content
            (project / "openapi.yaml").write_bytes(document)
            run = _runner(project, environment)
            with mock.patch("sys.stdin", io.StringIO("correct horse battery staple\n")):
                run(
                    "console",
                    "account",
                    "add",
                    "carol",
                    "--role",
                    "administrator",
                    "--accounts",
                    str(project / "people"),
                )
            run("init")
            self._customers(project, 1)
            self._products(project, 1)
            self._invoices(project, 1, *range(70_001, 70_006))
            run("schedule", "--once", _date(-1))
            self._products(project, 2, price="1.75")
            self._invoices(project, 2, 70_006, 70_007)
        return {
            "STREAM": "wms.products",
            "KEY": "0017",
            "RUN": "1",
            "ID": "0017",
            "CODE": "bad_value",
            "FILE:LINE": "ITEM_2.csv:18",
            "FILE": "served/out/ITEM_2.csv",
        }

    def delivered(self, folder: Path) -> dict[str, str]:
        """The same after its second night: nothing is left to do."""
        names = self._extended("warehouse", folder)
        with self._platform(folder / "sandbox") as (_, environment):
            run = _runner(folder / "project", environment)
            run("sync", "wms.products")
            run("sync")
        return {**names, "RUN": "2"}

    def rejected(self, folder: Path) -> dict[str, str]:
        """The same with a rejected invoice, for which the config is mended already."""
        names = self._extended("delivered", folder)
        project = folder / "project"
        self._invoices(project, 3, 70_010, quantity="two")
        with self._platform(folder / "sandbox") as (_, environment):
            _runner(project, environment)("sync", "wms", code=1)
        with _edited(project) as config:
            config["connections"]["wms"]["streams"]["invoices"]["columns"] = {"QTY": {"table": {"two": "2"}}}
        return {**names, "STREAM": "wms.invoices", "KEY": "70010", "CODE": "bad_value"}

    def open_records(self, folder: Path) -> dict[str, str]:
        """The same with records that are rejected, waiting, in doubt and pending."""
        names = self._extended("delivered", folder)
        project = folder / "project"
        with self._platform(folder / "sandbox") as (_, environment):
            run = _runner(project, environment)
            self._invoices(project, 3, 70_010, quantity="two")
            run("sync", "wms", code=1)
            self._invoices(project, 4, 70_011, customer="C99")
            run("sync", "wms", code=1)
        with self._platform(folder / "sandbox", Fault(name="lost_answer", probability=1.0)) as (_, environment):
            self._products(project, 5, price="1.80")
            self._invoices(project, 5, *range(70_013, 70_017))
            _runner(project, environment)("sync", "wms", code=1)
        with self._platform(folder / "sandbox") as (platform, environment):
            created = _created(platform)[-4]
            _runner(project, environment)("sync", "wms", code=1)
        self._invoices(project, 7, 70_020)
        _runner(project, environment)("sync", "wms", code=3)  # the platform is down
        return {**names, "STREAM KEY": "wms.invoices 70013", "inv_4711": created, "CODE": "bad_value"}

    def refused_removal(self, folder: Path) -> dict[str, str]:
        """A warehouse whose last list has half of the products."""
        names = self._extended("delivered", folder)
        project = folder / "project"
        with self._platform(folder / "sandbox") as (_, environment):
            run = _runner(project, environment)
            self._products(project, 3, price="1.80")
            run("sync", "wms")
            self._products(project, 4, 20, price="1.80")
            run("sync", "wms", code=4)
        return {**names, "STREAM NUMBER": "wms.products 20"}

    def new_project(self, folder: Path) -> dict[str, str]:
        """A connector that is new and installed."""
        names = self._extended("warehouse", folder)
        made = folder / "made"
        made.mkdir()
        with contextlib.chdir(made):
            _runner(folder / "project", {})("new", "acme-shop")
        name_the_partner(made, self._partner_url)
        (made / "acme-shop").rename(folder / "acme-shop")
        shutil.rmtree(folder / "project")
        (folder / "acme-shop").rename(folder / "project")
        return names

    def fleet(self, folder: Path) -> dict[str, str]:
        """A fleet of two tenants after its first night."""
        names = self._extended("open_records", folder)
        project = folder / "project"
        with self._platform(folder / "sandbox") as (_, environment):
            run = _runner(project, environment, "base.yaml")
            run("init", "--fleet", str(project / "tenants"))
            for tenant in TENANTS:
                self._export(project, "ITEMS_1.csv", "SKU;NAME", "0017;Bolt", folder=f"exports/{tenant}")
                run("-C", str(project / "tenants" / f"{tenant}.yaml"), "sync")
        return names

    def migration(self, folder: Path) -> dict[str, str]:
        """A warehouse before its migration."""
        project = self._project(folder)
        waves = {name: {"streams": [f"wms.{name}"]} for name in ("customers", "products", "bins", "invoices")}
        with _edited(project) as config:
            del config["jobs"]
            config["migration"] = {"name": "acme-2027", "waves": waves}
            config["connections"]["wms"]["streams"]["bins"] = yaml.safe_load(BINS)
        self._export(project, "BIN_1.csv", "CODE;HALL", "B1;H", "B2;H")
        with self._platform(folder / "sandbox") as (_, environment):
            _runner(project, environment)("init")
        self._customers(project, 1)
        self._products(project, 1)
        self._invoices(project, 1, *range(70_001, 70_006))
        return {}

    def migrated(self, folder: Path) -> dict[str, str]:
        """The same after its migration."""
        names = self._extended("migration", folder)
        with self._platform(folder / "sandbox") as (_, environment):
            run = _runner(folder / "project", environment)
            run("migrate", "load")
            run("migrate", "freeze", "--wait", "1s")
        return {**names, "RUN": "3"}

    def books(self, folder: Path) -> dict[str, str]:
        """A warehouse whose books are kept at a vendor, which grants access to the owner of an account only."""
        names = self._extended("warehouse", folder)
        books = Template(BOOKS).substitute(url=self._vendor_url, client=CLIENT[0])
        with _edited(folder / "project") as config:
            config["connections"]["books"] = yaml.safe_load(books)
        return names

    def exchange(self, folder: Path) -> dict[str, str]:
        """A warehouse with files, as the page that explains the exchange declares it."""
        project = self._project(folder)
        (example,) = [each.text for each in fences("yaml") if "out/ack_" in each.text and "kind: platform" in each.text]
        connections = yaml.safe_load(example)["connections"]
        for key in ("host", "user", "private_key", "host_key"):
            del connections["wms"][key]
        connections["wms"] |= {"kind": "folder_warehouse", "path": "served", "settle_s": 0}
        (project / "served" / "in" / "archive").mkdir(parents=True)
        with _edited(project) as config:
            del config["jobs"], config["listen"]
            config["connections"] = connections
        with self._platform(folder / "sandbox") as (platform, environment):
            _runner(project, environment)("init")
            order = _release_an_order(platform)
        self._export(project, "shp_1.csv", "ORDER,STATUS,CARRIER,TRACKING", f"{order},COMPLETE,DHL,A")
        return {"FILE": "served/out/shp_1.csv"}

    def edi(self, folder: Path) -> dict[str, str]:
        """A depot that reports shipments in X12, as the page on EDI declares it."""
        names = self._extended("warehouse", folder)
        (example,) = [each.text for each in fences("yaml") if '"945_*.edi"' in each.text]
        with _edited(folder / "project") as config:
            config["connections"] |= yaml.safe_load(example)["connections"]
        (folder / "project" / "edi").mkdir()
        (folder / "project" / "edi" / "945_1.edi").write_text(SHIPMENT.replace("\n", "~\n"), encoding="utf-8")
        return {**names, "FILE": "edi/945_1.edi"}

    def webhooks(self, folder: Path) -> dict[str, str]:
        """A shop with an API for subscriptions: the platform itself, as a source."""
        names = self._extended("warehouse", folder)
        orders = {"read": "order", "resource": "product", "namespace": "o", "map": {"sku": "id", "name": "customerId"}}
        shop = {"kind": "platform", "streams": {"orders": orders}, "webhooks": {"secrets": ["file:shop-secret"]}}
        project = folder / "project"
        with _edited(project) as config:
            config["connections"]["shop"] = shop
        return names

    # ---- projects

    def _project(self, folder: Path) -> Path:
        project = folder / "project"
        (project / "tenants").mkdir(parents=True)
        facts = {"base_url": f"http://127.0.0.1:{self._port}", "partner_url": self._partner_url}
        for name in ("crossdock.yaml", "acme.yaml"):
            (project / name).write_text(CONFIG.substitute(facts), encoding="utf-8")
        (project / "production.yaml").write_text("platform: {in_flight: 4}\n", encoding="utf-8")
        (project / "base.yaml").write_text(FLEET.substitute(facts), encoding="utf-8")
        for tenant in TENANTS:
            auth = {"kind": "api_key", "token": f"env:{tenant.upper()}_API_KEY"}
            own = {"platform": {"tenant": tenant, "auth": auth}, "state": f"sqlite:///{tenant}-of-fleet.db"}
            own |= {"connections": {"wms": {"path": f"exports/{tenant}"}}}
            (project / "tenants" / f"{tenant}.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")
            (project / "exports" / tenant).mkdir(parents=True)
        _put_files(project)
        return project


@contextmanager
def _edited(project: Path) -> Iterator[dict[str, Any]]:
    """The project's config, to be changed."""
    path = project / "crossdock.yaml"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    yield config
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")


def _runner(project: Path, environment: dict[str, str], config: str = "crossdock.yaml") -> Callable[..., None]:
    environment = environment | _own_home(project.parent)

    def run(*arguments: str, code: int = 0) -> None:
        done = in_process(project / config, *arguments, environment=environment)
        assert done.exit_code == code, f"{arguments}: exit {done.exit_code}\n{done.stdout}{done.stderr}"

    return run


def _own_home(folder: Path) -> dict[str, str]:
    """Let the state of a world know nothing of its copies, which have the same identity."""
    return {"XDG_STATE_HOME": str(folder / "home")}


def _date(days: int) -> str:
    return str((datetime.now(UTC) + timedelta(days=days)).date())


def _created(platform: SandboxServer) -> list[str]:
    """The platform's ids of all invoices, oldest first."""
    path = "/_sandbox/effects?limit=10000&resource=invoice"
    found = httpx.get(platform.base_url + path, trust_env=False).json()["data"]
    return [each["id"] for each in found if each["operation"] == "create"]


def _release_an_order(platform: SandboxServer) -> str:
    """The id of a new order."""
    headers = {"authorization": f"Bearer {platform.api_key}", "x-tenant-slug": platform.tenant}
    with httpx.Client(base_url=f"{platform.base_url}/api/v1", headers=headers, trust_env=False) as client:

        def create(path: str, **members: Any) -> str:
            answer = client.post(path, json=members)
            assert answer.status_code == 201, answer.text
            return str(answer.json()["id"])

        customer = create("/sales/customers", externalId="shop:C", name="Harbour Lights")
        lamp = create("/catalog/products", externalId="LAMP-1", sku="LAMP-1", name="Lamp")
        address = {"name": "Harbour Lights", "line1": "1 Harbour Street", "city": "Port", "country": "DE"}
        about = {"customerId": customer, "currency": "EUR", "placedAt": "2026-01-05T08:15:00Z", "status": "released"}
        items = [{"productId": lamp, "quantity": 4, "unitPrice": 1}]
        return create("/sales/orders", externalId="shop:1001", items=items, shippingAddress=address, **about)


def name_the_partner(folder: Path, url: str) -> None:
    """Let new projects in *folder* read from the partner, as their authors would."""
    for path in folder.glob("*/crossdock.yaml"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("https://api.example.com", url), encoding="utf-8")


def _put_files(project: Path) -> None:
    """The files that pages name."""
    (project / "bindings.csv").write_text("target,resource,namespace,key,target_id\n", encoding="utf-8")
    certificate = trustme.CA().issue_cert("console.example.com")
    certificate.cert_chain_pems[0].write_to_path(project / "console.pem")
    certificate.private_key_pem.write_to_path(project / "console.key")
    (project / "console.key").chmod(0o600)
    (project / "secrets").mkdir()
    (project / "secrets" / "console.secret").write_text(SECRET, encoding="utf-8")
    (project / "secrets" / "console.secret").chmod(0o600)
    for name in ("desk-secret", "shop-secret"):
        (project / name).write_text(SECRET if name == "desk-secret" else new_secret(), encoding="utf-8")
        (project / name).chmod(0o600)
    (project / "secrets.env").write_text("ACME_API_KEY=k\n", encoding="utf-8")
    record = f"{'0017':8}{'Storm lantern':22}000123D".ljust(40)
    (project / "exports" / "ITEM_1.dat").write_bytes(record.encode("cp037"))
    names = [f"Möbel {number}" if number <= 96 else f"Part {number}" for number in range(1, 1_181)]
    rows = [f"{number:05};{name};{number},50" for number, name in enumerate([*names, *names[-24:]], 1)]
    guessed = "\n".join(("SKU;NAME;PRICE", *rows, ""))
    (project / "exports" / "ITEMS_20261101.csv").write_bytes(guessed.encode("cp1252"))


MAKERS: dict[str, Callable[[Worlds, Path], dict[str, str]]] = {
    name: getattr(Worlds, name)
    for name in (
        "warehouse",
        "delivered",
        "rejected",
        "open_records",
        "refused_removal",
        "new_project",
        "fleet",
        "migration",
        "migrated",
        "books",
        "exchange",
        "webhooks",
        "edi",
    )
}


@contextmanager
def worlds(folder: Path) -> Iterator[Worlds]:
    """All worlds, which share their partners."""
    with ExitStack() as opened:
        urls = [opened.enter_context(serving(PartnerServer(each))).url for each in (Partner(), TokenVendor())]
        yield Worlds(folder, *urls)
