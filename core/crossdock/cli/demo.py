"""``crossdock demo``."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from crossdock.cli.interrupts import interruptible
from crossdock.cli.shared_options import as_json, help_example
from crossdock.errors import StoppedError

if TYPE_CHECKING:
    from rich.console import Console

    from crossdock.config.project.project import Project
    from crossdock.runs.run_report import Report
    from crossdock.testing.demo.shop.shop_demo_folder_and_servers import Kind
    from crossdock.values.clock import Clock


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
    from crossdock.cli import demo_shop_and_3pl, demo_warehouse_file_exchange, terminal_output
    from crossdock.testing.demo.demo_folder_and_servers import serve_existing_demo

    console = terminal_output.output_console()
    if warehouse and (shop or serve):
        raise click.UsageError(f"--warehouse cannot be used with {'--shop' if shop else '--serve'}", ctx)
    folder = folder or Path("crossdock-demo" + ("-shop" if shop else "-warehouse" if warehouse else ""))
    if serve and shop:
        demo_shop_and_3pl.serve_without_sync(console, folder, shop, as_json=as_json)
        return
    if serve:
        serve_existing_demo(
            folder,
            terminal_output.print_json if as_json else lambda facts: _print_server_addresses(console, folder, facts),
        )
        return
    console.quiet = as_json
    if warehouse:
        document = demo_warehouse_file_exchange.run(
            ctx, console, folder, _sync_or_raise_error, _print_heading, as_json=as_json
        )
    elif shop is None:
        document = _run_exports_demo(ctx, console, folder, as_json=as_json)
    else:
        document = demo_shop_and_3pl.run(
            ctx, console, folder, shop, _sync_or_raise_error, _print_heading, as_json=as_json
        )
    if as_json:
        terminal_output.print_json(document)


def _run_exports_demo(ctx: click.Context, console: Console, folder: Path, *, as_json: bool) -> dict[str, object]:
    from crossdock.cli import open_records_list, plan, terminal_output
    from crossdock.config.project import project
    from crossdock.testing.demo import demo_folder_and_servers
    from crossdock.writing.targets import platform_access_and_clock_checks

    with interruptible() as interrupt, demo_folder_and_servers.create_and_serve_demo(folder) as warehouse:
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
                terminal_output.show_run(console, reports[-1].as_json())
                _print_heading(console, f"Day {day}: crossdock records list")
                ctx.invoke(open_records_list.list_, config=config)
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

    with terminal_output.progress(wanted=not as_json) as progress:
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
