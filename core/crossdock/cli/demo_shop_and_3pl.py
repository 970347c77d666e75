"""``crossdock demo --shop``: a shop's orders become invoices, go to a 3PL, and come back shipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli.interrupts import interruptible

if TYPE_CHECKING:
    from rich.console import Console

    from crossdock.config.project.project import Project
    from crossdock.testing.demo.shop.shop_demo_folder_and_servers import Kind, ShopDemo

Sync = Callable[..., Any]


def run(
    ctx: click.Context,
    console: Console,
    folder: Path,
    kind: Kind,
    sync: Sync,
    heading: Callable[..., None],
    *,
    as_json: bool,
) -> dict[str, object]:
    from crossdock.cli import plan, terminal_output
    from crossdock.config.project import project
    from crossdock.testing.demo.shop import shop_demo_folder_and_servers
    from crossdock.writing.targets import platform_access_and_clock_checks

    with interruptible() as interrupt, shop_demo_folder_and_servers.create_and_serve_shop_demo(folder, kind) as demo:
        loaded = project.load(config := folder / shop_demo_folder_and_servers.CONFIG)
        loaded.create_or_upgrade_state()
        platform_access_and_clock_checks.read_platform_access_or_raise(loaded.platform, loaded.access_test_resources)
        terminal_output.print_lines(console, _INTRODUCTION.format(folder=folder, **demo.variables))
        reports = []
        if not as_json:
            heading(console, "crossdock plan --limit 2", _PLANNED)
            ctx.invoke(plan.plan, config=config, limit=2)
        for connection, before in _STEPS:
            heading(console, f"crossdock sync {connection}", before)
            if connection == "depot":
                demo.depot.ship_all_orders()
                demo.shop.refund_units(demo.shop.orders[2], "MUG-3", 2)
            reports.append(sync(loaded, [connection], interrupt, as_json=as_json))
            if not as_json:
                terminal_output.show_run(console, reports[-1].as_json())
        orders = list(_compare_orders(loaded, demo))
    heading(console, "What became of each order", _COMPARED)
    console.print(_order_comparison_table(orders))
    heading(console, "Next steps", _NEXT_STEPS.format(cd=quote(str(folder)), kind=kind))
    return {"folder": str(folder), "runs": [report.as_json() for report in reports], "orders": orders}


def serve_without_sync(console: Console, folder: Path, kind: Kind, *, as_json: bool) -> None:
    """Run a platform, a shop and a 3PL in a new *folder* until Ctrl-C. The 3PL ships everything on request."""
    from crossdock.cli import terminal_output
    from crossdock.testing.demo.shop import shop_demo_folder_and_servers

    with (
        interruptible() as interrupt,
        shop_demo_folder_and_servers.create_and_serve_shop_demo(
            folder, kind, ships_when_shipments_are_listed=True
        ) as demo,
    ):
        if as_json:
            addresses = {name: text for name, text in demo.variables.items() if name.endswith("_URL")}
            terminal_output.print_json({"folder": str(folder), **addresses})
        else:
            facts = {"cd": quote(str(folder.resolve())), **demo.variables}
            terminal_output.print_lines(console, _SERVING.format(**facts))
        interrupt.wait()


def _compare_orders(loaded: Project, demo: ShopDemo) -> Iterator[dict[str, Any]]:
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


def _order_comparison_table(orders: list[dict[str, Any]]) -> Any:
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


_INTRODUCTION = """\
A made-up shop has four paid orders. crossdock syncs them to the platform, here a
sandbox, and to a 3PL, which ships them. Nothing leaves this machine.

platform   {PLATFORM_URL}
shop       {SHOP_URL}
3PL        {THREEPL_URL}
folder     {folder} (config, state, environment.sh)"""
_SERVING = """\
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
_PLANNED = "What a sync would do. A plan sends nothing and writes nothing.\n"
_STEPS = (
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
_COMPARED = "The sums of shop and platform are equal to the cent.\n"
_NEXT_STEPS = """\
  cd {cd}
  . ./environment.sh        the variables that crossdock.yaml names
  crossdock runs            the four runs
  crossdock trace 1008      an order and its invoice, with every attempt
  crossdock records list    records that need a person: none
Run a shop to try commands and changes of the config with:
  crossdock demo --shop {kind} --serve --folder another
The config is crossdock.yaml; configs/{kind}.yaml is the same one."""
