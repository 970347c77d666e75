"""``crossdock demo --warehouse``: orders go to a warehouse in files, and come back acknowledged and shipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from crossdock.cli.interrupts import interruptible

if TYPE_CHECKING:
    from rich.console import Console

    from crossdock.config.project.project import Project
    from crossdock.testing.demo.warehouse.warehouse_demo_folder_and_platform import WarehouseDemo


def run(
    ctx: click.Context,
    console: Console,
    folder: Path,
    sync: Callable[..., Any],
    heading: Callable[..., None],
    *,
    as_json: bool,
) -> dict[str, object]:
    from crossdock.cli import open_records_list, terminal_output
    from crossdock.config.project import project
    from crossdock.testing.demo.warehouse import warehouse_demo_folder_and_platform
    from crossdock.writing.targets import platform_access_and_clock_checks

    with (
        interruptible() as interrupt,
        warehouse_demo_folder_and_platform.create_and_serve_warehouse_demo(folder) as demo,
    ):
        loaded = project.load(config := folder / warehouse_demo_folder_and_platform.CONFIG)
        loaded.create_or_upgrade_state()
        platform_access_and_clock_checks.read_platform_access_or_raise(loaded.platform, loaded.access_test_resources)
        demo.place_orders(loaded)
        terminal_output.print_lines(console, _INTRODUCTION.format(folder=folder, **demo.variables))
        reports = []
        for number, before in enumerate(_NIGHTS, 1):
            night = warehouse_demo_folder_and_platform.SimulatedNightClock(days_ago=len(_NIGHTS) - number)
            if number == len(_NIGHTS):
                demo.correct_order_country_on_platform(loaded, "1003")
            heading(console, f"Night {number}: crossdock sync", before)
            reports.append(sync(loaded, [], interrupt, as_json=as_json, clock=night))
            if not as_json:
                terminal_output.show_run(console, reports[-1].as_json())
                heading(console, f"Night {number}: crossdock records list")
                ctx.invoke(open_records_list.list_, config=config)
            if number < len(_NIGHTS):
                demo.let_warehouse_work_next_day(night)
        orders = list(_orders_at_warehouse_and_platform(loaded, demo))
    heading(console, "What became of each order", _COMPARED)
    console.print(_order_comparison_table(orders))
    port = urlsplit(demo.variables["PLATFORM_URL"]).port
    heading(console, "Next steps", _NEXT_STEPS.format(cd=quote(str(folder)), port=port, order=demo.ids["1002"]))
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


def _order_comparison_table(orders: list[dict[str, Any]]) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("order", "the warehouse", "shipped", "on the platform", "parcels"):
        table.add_column(name, no_wrap=True)
    for each in orders:
        shipped = f"{each['shipped']} of {each['units']}"
        table.add_row(each["order"], each["warehouse"], shipped, each["status"], " ".join(each["parcels"]))
    return table


_INTRODUCTION = """\
A made-up warehouse has no API: it takes orders in files, and answers in files.
Once a night, crossdock exchanges them with the platform, here a sandbox.
Nothing leaves this machine, and the three nights take some seconds.

platform   {PLATFORM_URL}
folder     {folder} (config, state, and depot with all files)"""
_NIGHTS = (
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
_COMPARED = "By the warehouse's own book, and by the platform's orders.\n"
_NEXT_STEPS = """\
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
