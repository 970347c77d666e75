"""``crossdock demo``: exports of a sample warehouse, or a shop and a 3PL, or a warehouse that exchanges files."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from crossdock.cli.shared_options_messages_and_signals import as_json, help_example, stop_event_set_by_signals
from crossdock.errors import StoppedError

if TYPE_CHECKING:
    from rich.console import Console

    from crossdock.config.project.project import Project
    from crossdock.runs.run_report import Report
    from crossdock.testing.demo.shop.shop_demo_folder_and_servers import Kind, ShopDemo
    from crossdock.testing.demo.warehouse.warehouse_demo_folder_and_platform import WarehouseDemo
    from crossdock.values.clock import Clock


def run_warehouse_demo(
    ctx: click.Context,
    console: Console,
    folder: Path,
    *,
    as_json: bool,
) -> dict[str, object]:
    from crossdock.cli import records, terminal_output
    from crossdock.config.project import project
    from crossdock.testing.demo.warehouse import warehouse_demo_folder_and_platform
    from crossdock.writing.targets import platform_access_and_clock_checks

    with (
        stop_event_set_by_signals() as interrupt,
        warehouse_demo_folder_and_platform.create_and_serve_warehouse_demo(folder) as demo,
    ):
        loaded = project.load(config := folder / warehouse_demo_folder_and_platform.CONFIG)
        loaded.create_or_upgrade_state()
        platform_access_and_clock_checks.read_platform_access_or_raise(loaded.platform, loaded.access_test_resources)
        demo.place_orders(loaded)
        terminal_output.print_lines(console, _WAREHOUSE_INTRODUCTION.format(folder=folder, **demo.variables))
        reports = []
        for number, before in enumerate(_WAREHOUSE_NIGHT_TEXTS, 1):
            night = warehouse_demo_folder_and_platform.SimulatedNightClock(
                days_ago=len(_WAREHOUSE_NIGHT_TEXTS) - number
            )
            if number == len(_WAREHOUSE_NIGHT_TEXTS):
                demo.correct_order_country_on_platform(loaded, "1003")
            _print_heading(console, f"Night {number}: crossdock sync", before)
            reports.append(_sync_or_raise_error(loaded, [], interrupt, as_json=as_json, clock=night))
            if not as_json:
                terminal_output.print_run_report(console, reports[-1].as_json())
                _print_heading(console, f"Night {number}: crossdock records list")
                ctx.invoke(records.list_open_records, config=config)
            if number < len(_WAREHOUSE_NIGHT_TEXTS):
                demo.let_warehouse_work_next_day(night)
        orders = list(_orders_at_warehouse_and_platform(loaded, demo))
    _print_heading(console, "What became of each order", _WAREHOUSE_BOOK_TEXT)
    console.print(_warehouse_order_table(orders))
    port = urlsplit(demo.variables["PLATFORM_URL"]).port
    _print_heading(
        console, "Next steps", _WAREHOUSE_NEXT_STEPS.format(cd=quote(str(folder)), port=port, order=demo.ids["1002"])
    )
    return {"folder": str(folder), "runs": [report.as_json() for report in reports], "orders": orders}


def _orders_at_warehouse_and_platform(loaded: Project, demo: WarehouseDemo) -> Iterator[dict[str, Any]]:
    """Yield each order as the warehouse's own book and the platform have it."""
    from crossdock.testing import sandbox_effects_comparison
    from crossdock.testing.demo.warehouse.warehouse_working_on_order_files import Depot

    stored = {each["id"]: each["body"] for each in sandbox_effects_comparison.list_effects_of_tenant(loaded.platform)}
    book = Depot(demo.folder / "depot").book["orders"]
    for number, record_id in demo.ids.items():
        body, order = stored[record_id], book[record_id]
        units, left = sum(item["quantity"] for item in body["items"]), sum(x["open"] for x in order["lines"].values())
        shipped = 0 if order["state"] == "refused" else units - left
        yield {
            "order": number,
            "file": order["file"],
            "warehouse": order["state"],
            "units": units,
            "shipped": shipped,
            "status": body["status"],
            "parcels": [parcel["number"] for parcel in body.get("tracking", ())],
        }


def _warehouse_order_table(orders: list[dict[str, Any]]) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("order", "the warehouse", "shipped", "on the platform", "parcels"):
        table.add_column(name, no_wrap=True)
    for each in orders:
        shipped = f"{each['shipped']} of {each['units']}"
        table.add_row(each["order"], each["warehouse"], shipped, each["status"], " ".join(each["parcels"]))
    return table


_WAREHOUSE_INTRODUCTION = """\
A made-up warehouse has no API: it takes orders in files, and answers in files.
Once a night, crossdock exchanges them with the platform, here a sandbox.
Nothing leaves this machine, and the three nights take some seconds.

platform   {PLATFORM_URL}
folder     {folder} (config, state, and depot with all files)"""
_WAREHOUSE_NIGHT_TEXTS = (
    """\
Five orders are released. They go to depot/in in one file: written under another
name, and renamed when it is complete. Until the warehouse acknowledges them,
they are handed over, and not delivered.\n""",
    """\
In the day the warehouse has taken the file, and has shipped. Three orders are
acknowledged, one is refused. The warehouse had 20 hours, and has not said
anything about 1005: the order is overdue, and the run is degraded. It is not
sent again.\n""",
    """\
The warehouse has acknowledged 1005 as well, and shipped the rest: of 1002 with
a substitute, of 1004 one unit short. The country of 1003 was wrong. Corrected
on the platform, the order goes out again, in a file with the next number.\n""",
)
_WAREHOUSE_BOOK_TEXT = "By the warehouse's own book, and by the platform's orders.\n"
_WAREHOUSE_NEXT_STEPS = """\
  cd {cd}
  . ./environment.sh         the variables that crossdock.yaml names
  crossdock runs             the three nights
  crossdock trace {order}
                             an order: its file, acknowledgement and changes
  ls depot/*                 all files; book.json is the book of the warehouse

The warehouse has not taken the second file yet. Let it work for a day, and run
the platform in another terminal:
  python depot.py depot
  crossdock sandbox --port {port} --data sandbox
  crossdock sync
The config is crossdock.yaml; configs/warehouse_exchange.yaml is the same one."""


def run_shop_demo(
    ctx: click.Context,
    console: Console,
    folder: Path,
    kind: Kind,
    *,
    as_json: bool,
) -> dict[str, object]:
    from crossdock.cli import plan, terminal_output
    from crossdock.config.project import project
    from crossdock.testing.demo.shop import shop_demo_folder_and_servers
    from crossdock.writing.targets import platform_access_and_clock_checks

    with (
        stop_event_set_by_signals() as interrupt,
        shop_demo_folder_and_servers.create_and_serve_shop_demo(folder, kind) as demo,
    ):
        loaded = project.load(config := folder / shop_demo_folder_and_servers.CONFIG)
        loaded.create_or_upgrade_state()
        platform_access_and_clock_checks.read_platform_access_or_raise(loaded.platform, loaded.access_test_resources)
        terminal_output.print_lines(console, _SHOP_INTRODUCTION.format(folder=folder, **demo.variables))
        reports = []
        if not as_json:
            _print_heading(console, "crossdock plan --limit 2", _SHOP_PLAN_TEXT)
            ctx.invoke(plan.plan, config=config, limit=2)
        for connection, before in _SHOP_SYNC_STEPS:
            _print_heading(console, f"crossdock sync {connection}", before)
            if connection == "depot":
                demo.depot.ship_all_orders()
                demo.shop.refund_units(demo.shop.orders[2], "MUG-3", 2)
            reports.append(_sync_or_raise_error(loaded, [connection], interrupt, as_json=as_json))
            if not as_json:
                terminal_output.print_run_report(console, reports[-1].as_json())
        orders = list(_orders_at_shop_and_platform(loaded, demo))
    _print_heading(console, "What became of each order", _SHOP_SUMS_TEXT)
    console.print(_shop_order_table(orders))
    _print_heading(console, "Next steps", _SHOP_NEXT_STEPS.format(cd=quote(str(folder)), kind=kind))
    return {"folder": str(folder), "runs": [report.as_json() for report in reports], "orders": orders}


def serve_shop_demo_without_sync(console: Console, folder: Path, kind: Kind, *, as_json: bool) -> None:
    """Run a platform, a shop and a 3PL in a new *folder* until Ctrl-C. The 3PL ships everything on request."""
    from crossdock.cli import terminal_output
    from crossdock.testing.demo.shop import shop_demo_folder_and_servers

    with (
        stop_event_set_by_signals() as interrupt,
        shop_demo_folder_and_servers.create_and_serve_shop_demo(
            folder, kind, ships_when_shipments_are_listed=True
        ) as demo,
    ):
        if as_json:
            addresses = {name: text for name, text in demo.variables.items() if name.endswith("_URL")}
            terminal_output.print_json({"folder": str(folder), **addresses})
        else:
            facts = {"cd": quote(str(folder.resolve())), **demo.variables}
            terminal_output.print_lines(console, _SHOP_SERVER_ADDRESSES.format(**facts))
        interrupt.wait()


def _orders_at_shop_and_platform(loaded: Project, demo: ShopDemo) -> Iterator[dict[str, Any]]:
    """Yield each order as the shop and the platform have it: without the units that were refunded."""
    from crossdock.testing import sandbox_effects_comparison

    effects = [dict(each) for each in sandbox_effects_comparison.list_effects_of_tenant(loaded.platform)]
    orders = {each["body"]["externalId"]: each["body"] for each in effects if each["resource"] == "order"}
    invoices = [each["body"] for each in effects if each["resource"] == "invoice"]
    for order in demo.shop.orders:
        stored = orders[f"shop:{order.id}"]
        own = [body for body in invoices if body["total"] in {order.total, -order.refunded_amount}]
        yield {
            "order": order.id,
            "shop": order.total - order.refunded_amount,
            "platform": _order_total(stored),
            "invoices": [body["total"] for body in own],
            "status": stored["status"],
            "parcels": [parcel.number for parcel in order.parcels],
        }


def _order_total(body: dict[str, Any]) -> Decimal:
    return sum((item["quantity"] * item["unitPrice"] for item in body["items"]), Decimal(0))


def _shop_order_table(orders: list[dict[str, Any]]) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, side in (
        ("order", "left"), ("in the shop", "right"), ("on the platform", "right"), ("invoices", "right"),
        ("status", "left"), ("parcels", "left"),
    ):  # fmt: skip
        table.add_column(name, justify=side, no_wrap=True)  # type: ignore[arg-type]  # literals, in a tuple of texts
    for each in orders:
        amounts = " ".join(f"{total:.2f}" for total in each["invoices"])
        cells = f"{each['shop']:.2f}", f"{each['platform']:.2f}", amounts
        table.add_row(f"#{each['order']}", *cells, each["status"], " ".join(each["parcels"]))
    return table


_SHOP_INTRODUCTION = """\
A made-up shop has four paid orders. crossdock syncs them to the platform, here a
sandbox, and to a 3PL, which ships them. Nothing leaves this machine.

platform   {PLATFORM_URL}
shop       {SHOP_URL}
3PL        {THREEPL_URL}
folder     {folder} (config, state, environment.sh)"""
_SHOP_SERVER_ADDRESSES = """\
platform   {PLATFORM_URL}
shop       {SHOP_URL}
3PL        {THREEPL_URL}
All three run until Ctrl-C. In another terminal:
  cd {cd}
  . ./environment.sh
  crossdock init
  crossdock check
  crossdock sync shop       orders and invoices to the platform
  crossdock sync erp        orders to the 3PL
  crossdock sync depot      parcels and stock to the shop"""
_SHOP_PLAN_TEXT = "What a sync would do. A plan sends nothing and writes nothing.\n"
_SHOP_SYNC_STEPS = (
    (
        "shop",
        """\
Products, customers, stock, orders and invoices go to the platform. Discounts,
shipping and taxes are lines of their own, so that the sums are the shop's.\n""",
    ),
    ("erp", "The goods of each order go to the 3PL.\n"),
    (
        "depot",
        """\
The 3PL has shipped, and the shop has paid two mugs back. Each parcel goes to the
shop with its tracking number; an order may have several. So does the stock.\n""",
    ),
    (
        "shop",
        """\
The shop's orders are shipped: their status and parcels go to the platform. The
refund is a credit note, an invoice with negative quantities.\n""",
    ),
)
_SHOP_SUMS_TEXT = "The sums of shop and platform are equal to the cent.\n"
_SHOP_NEXT_STEPS = """\
  cd {cd}
  . ./environment.sh        the variables that crossdock.yaml names
  crossdock runs            the four runs
  crossdock trace 1008      an order and its invoice, with every attempt
  crossdock records list    records that need a person: none
Run a shop to try commands and changes of the config with:
  crossdock demo --shop {kind} --serve --folder another
The config is crossdock.yaml; configs/{kind}.yaml is the same one."""


@click.command(
    epilog=help_example(
        "crossdock demo", "crossdock demo --shop", "crossdock demo --warehouse", "crossdock demo --serve"
    )
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="A new or empty folder for the demo's files. Default: crossdock-demo, or with --shop or --warehouse "
    "crossdock-demo-shop or crossdock-demo-warehouse.",
)
@click.option(
    "--shop",
    type=click.Choice(["shopify", "woocommerce"]),
    is_flag=False,
    flag_value="shopify",
    help="A shop and a 3PL instead of a warehouse; which kind of shop, shopify by default.",
)
@click.option("--warehouse", is_flag=True, help="A warehouse that takes orders in files and answers in files.")
@click.option(
    "--serve",
    is_flag=True,
    help="Run both servers of an earlier demo until Ctrl-C; with --shop, new ones in a new folder.",
)
@as_json
@click.pass_context
def demo(
    ctx: click.Context, folder: Path | None, *, shop: Kind | None, warehouse: bool, serve: bool, as_json: bool
) -> None:
    """Sync two days of exports from a sample warehouse to a sandbox on this machine.

    With --shop, a sample shop's orders become orders and invoices of the platform, go to a sample 3PL, and come back
    shipped. With --warehouse, orders of the platform go to a sample warehouse in files, and come back acknowledged,
    refused and shipped in three nights.

    It takes a few seconds and leaves a folder with the config, the state and the exports of a third day for you to
    try out.
    """
    from crossdock.cli import terminal_output
    from crossdock.testing.demo.demo_folder_and_servers import serve_existing_demo

    console = terminal_output.output_console()
    if warehouse and (shop or serve):
        raise click.UsageError(f"--warehouse cannot be used with {'--shop' if shop else '--serve'}", ctx)
    folder = folder or Path("crossdock-demo" + ("-shop" if shop else "-warehouse" if warehouse else ""))
    if serve and shop:
        serve_shop_demo_without_sync(console, folder, shop, as_json=as_json)
        return
    if serve:
        serve_existing_demo(
            folder,
            terminal_output.print_json if as_json else lambda facts: _print_server_addresses(console, folder, facts),
        )
        return
    console.quiet = as_json
    if warehouse:
        document = run_warehouse_demo(ctx, console, folder, as_json=as_json)
    elif shop is None:
        document = _run_exports_demo(ctx, console, folder, as_json=as_json)
    else:
        document = run_shop_demo(ctx, console, folder, shop, as_json=as_json)
    if as_json:
        terminal_output.print_json(document)


def _run_exports_demo(ctx: click.Context, console: Console, folder: Path, *, as_json: bool) -> dict[str, object]:
    from crossdock.cli import plan, records, terminal_output
    from crossdock.config.project import project
    from crossdock.testing.demo import demo_folder_and_servers
    from crossdock.writing.targets import platform_access_and_clock_checks

    with stop_event_set_by_signals() as interrupt, demo_folder_and_servers.create_and_serve_demo(folder) as warehouse:
        loaded = project.load(config := folder / demo_folder_and_servers.CONFIG)
        loaded.create_or_upgrade_state()
        platform_access_and_clock_checks.read_platform_access_or_raise(loaded.platform, loaded.access_test_resources)
        facts = {"base_url": loaded.pinned_tenant.base_url, "port": warehouse.port, "folder": folder}
        terminal_output.print_lines(console, _INTRODUCTION.format(**facts))
        reports = []
        for day, limit in ((1, 3), (2, 9)):
            demo_folder_and_servers.write_sample_exports_of_day(day, folder / "warehouse" / "out")
            if not as_json:
                _print_heading(console, f"Day {day}: crossdock plan --limit {limit}", _BEFORE[day])
                ctx.invoke(plan.plan, config=config, limit=limit)
                _print_heading(console, f"Day {day}: crossdock sync")
            reports.append(_sync_or_raise_error(loaded, [], interrupt, as_json=as_json))
            if not as_json:
                terminal_output.print_run_report(console, reports[-1].as_json())
                _print_heading(console, f"Day {day}: crossdock records list")
                ctx.invoke(records.list_open_records, config=config)
                terminal_output.print_lines(console, f"\n{_AFTER[day]}")
        demo_folder_and_servers.write_sample_exports_of_day(3, folder / "day-3")
        effects = demo_folder_and_servers.count_effects_or_raise_if_reports_differ(loaded, reports)
    _print_heading(console, "The sandbox's effects log", _CHECKED.format(all=effects.total(), **effects))
    _print_heading(console, "Next steps", _NEXT_STEPS.format(cd=quote(str(folder))))
    return {"folder": str(folder), "runs": [report.as_json() for report in reports], "effects": dict(effects)}


def _sync_or_raise_error(
    loaded: Project, streams: list[str], interrupt: threading.Event, *, as_json: bool, clock: Clock | None = None
) -> Report:
    from crossdock.cli import terminal_output
    from crossdock.runs import sync_and_replay
    from crossdock.values.clock import SystemClock

    with terminal_output.show_progress(wanted=not as_json) as progress:
        report = sync_and_replay.sync(
            loaded, streams, clock=clock or SystemClock(), progress=progress, interrupt=interrupt
        )
    if interrupt.is_set():
        raise StoppedError("the demo was interrupted", hint="remove the folder before you start it again")
    for error in report.errors.values():
        raise error
    return report


def _print_server_addresses(console: Console, folder: Path, facts: Mapping[str, str]) -> None:
    console.print(f"platform   {facts['base_url']}")
    console.print(f"warehouse  sftp://export@{facts['host']}:{facts['port']}")
    console.print("Both servers run until Ctrl-C. In another terminal:")
    console.print(f"  cd {quote(str(folder.resolve()))}", soft_wrap=True)
    console.print("  crossdock plan")


def _print_heading(console: Console, title: str, text: str = "") -> None:
    from rich.text import Text

    from crossdock.cli import terminal_output

    console.print()
    console.rule(Text(title, style="bold"), align="left", style="dim")
    if text:
        terminal_output.print_lines(console, text)


_INTRODUCTION = """\
A made-up warehouse exports files to an SFTP server every day. crossdock syncs
them to the platform, here a sandbox. Nothing leaves this machine.

platform   {base_url}
warehouse  sftp://export@127.0.0.1:{port}
folder     {folder} (config, state and exports)"""
_BEFORE = {
    1: "What a sync would do. A plan sends nothing and writes nothing.\n",
    2: "The same tables in another order: unchanged records are not sent again.\n",
}
_AFTER = {
    1: "70013 has a letter O in its price. 70021 names an item that the warehouse has\n"
    "not exported yet. All other records were delivered.",
    2: "70013 was exported again with a correct price, and the item of 70021 is there:\n"
    "both were delivered. 70030 was exported again with another quantity. Invoices\n"
    "are written only once, so it is rejected for a person to decide. The customer of\n"
    "70050 has not been exported yet.",
}
_CHECKED = """\
The runs report {all} delivered records. The sandbox logs everything that happened
to it: {all} effects, {create} created and {update} updated, exactly one for each delivered
record."""
_NEXT_STEPS = """\
  cd {cd}
  crossdock runs                                    both runs
  crossdock show 1                                  one run
  crossdock records show wms.invoices 70030         why it was rejected
  crossdock records show wms.invoices 70030 --raw   with its data

The exports of a third day, with the missing customer, are in day-3. Start both
servers again:
  crossdock demo --serve --folder .
In another terminal:
  mv day-3/* warehouse/out/
  crossdock plan
  crossdock sync
Then change warehouse/out or crossdock.yaml as you like, and plan again."""
