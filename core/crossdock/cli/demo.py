"""``crossdock demo``."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from crossdock.cli.shared_options import as_json, example, interruptible
from crossdock.errors import StoppedError

if TYPE_CHECKING:
    from rich.console import Console

    from crossdock.project.project import Project
    from crossdock.runs.run_report import Report


@click.command(epilog=example("crossdock demo", "crossdock demo --serve"))
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("crossdock-demo"),
    show_default=True,
    help="Where everything goes; new or empty.",
)
@click.option("--serve", is_flag=True, help="Start both servers of an earlier demo again, until Ctrl-C.")
@as_json
@click.pass_context
def demo(ctx: click.Context, folder: Path, *, serve: bool, as_json: bool) -> None:
    """Sync two nights of a made-up warehouse to a sandbox, all on this machine, and tell what happens.

    It takes a few seconds, and leaves a folder with config, state and a third night to play with.
    """
    from crossdock.cli import terminal_output
    from crossdock.demo.demo_folder import keep_open

    console = terminal_output.out()
    if serve:
        keep_open(folder, terminal_output.print_json if as_json else lambda facts: _serving(console, folder, facts))
        return
    console.quiet = as_json
    document = _play(ctx, console, folder, as_json=as_json)
    if as_json:
        terminal_output.print_json(document)


def _play(ctx: click.Context, console: Console, folder: Path, *, as_json: bool) -> dict[str, object]:
    from crossdock.cli import plan, records, terminal_output
    from crossdock.demo import demo_folder as place
    from crossdock.demo import effects_check
    from crossdock.platform import access_check
    from crossdock.project import project

    with interruptible() as interrupt, place.opened(folder) as warehouse:
        loaded = project.load(config := folder / place.CONFIG)
        loaded.init()
        access_check.reach(loaded.platform)
        _begin(console, folder, loaded.pin.base_url, warehouse.port)
        reports = []
        for night, limit in ((1, 3), (2, 9)):
            place.export(night, folder / "warehouse" / "out")
            if not as_json:
                _heading(console, f"Night {night}: crossdock plan --limit {limit}", _BEFORE[night])
                ctx.invoke(plan.plan, config=config, limit=limit)
                _heading(console, f"Night {night}: crossdock sync")
            reports.append(_sync(loaded, interrupt, as_json=as_json))
            if not as_json:
                terminal_output.show_run(console, reports[-1].as_json())
                _heading(console, f"Night {night}: crossdock records list")
                ctx.invoke(records.list_, config=config)
                terminal_output.print_lines(console, f"\n{_AFTER[night]}")
        place.export(3, folder / "night-3")
        effects = effects_check.compare(loaded, reports)
    _heading(console, "What the sandbox saw", _PROOF.format(all=effects.total(), **effects))
    _heading(console, "Now you", _NOW.format(cd=quote(str(folder))))
    return {"folder": str(folder), "runs": [report.as_json() for report in reports], "effects": dict(effects)}


def _sync(loaded: Project, interrupt: threading.Event, *, as_json: bool) -> Report:
    from crossdock.cli import terminal_output
    from crossdock.clock import SystemClock
    from crossdock.runs import runner

    with terminal_output.progress(wanted=not as_json) as progress:
        report = runner.sync(loaded, [], clock=SystemClock(), progress=progress, interrupt=interrupt)
    if interrupt.is_set():
        raise StoppedError("stopped before its end", hint="remove the folder before the next try")
    for error in report.errors.values():
        raise error
    return report


def _begin(console: Console, folder: Path, base_url: str, port: int) -> None:
    from crossdock.cli import terminal_output

    terminal_output.print_lines(
        console,
        "A made-up warehouse exports files to an SFTP server every night, and crossdock\n"
        "brings them to the platform, which a sandbox plays. Nothing leaves this machine.\n\n"
        f"platform   {base_url}\n"
        f"warehouse  sftp://export@127.0.0.1:{port}\n"
        f"folder     {folder}, with config, state and exports",
    )


def _serving(console: Console, folder: Path, facts: Mapping[str, str]) -> None:
    console.print(f"platform   {facts['base_url']}")
    console.print(f"warehouse  sftp://export@{facts['host']}:{facts['port']}")
    console.print("Both answer until Ctrl-C. In another terminal:")
    console.print(f"  cd {quote(str(folder.resolve()))}", soft_wrap=True)
    console.print("  crossdock plan")


def _heading(console: Console, title: str, text: str = "") -> None:
    from rich.text import Text

    from crossdock.cli import terminal_output

    console.print()
    console.rule(Text(title, style="bold"), align="left", style="dim")
    if text:
        terminal_output.print_lines(console, text)


_BEFORE = {
    1: "What a sync would do. A plan calls nothing and writes nothing.\n",
    2: "The same tables, in another order: what is unchanged stays at home.\n",
}
_AFTER = {
    1: "70013 has a letter O in its price. 70021 names an item that the warehouse has\n"
    "not exported yet. Everything else went through.",
    2: "70013 came again, corrected, and 70021 has its item now: both went through.\n"
    "70030 had been delivered and reads differently tonight: invoices are written\n"
    "once, so a person decides. The customer of 70050 is not exported yet.",
}
_PROOF = """\
crossdock says it delivered {all} records. The sandbox keeps a list of its own of
everything that happened to it: {all} effects, {create} created and {update} updated, exactly
one for each delivered record, none twice and none besides."""
_NOW = """\
  cd {cd}
  crossdock runs                                    both runs
  crossdock show 1                                  one of them
  crossdock records show wms.invoices 70030         why it did not get through
  crossdock records show wms.invoices 70030 --raw   and what it says

A third night lies ready, with the missing customer. Start both servers again:
  crossdock demo --serve --folder .
and in another terminal:
  mv night-3/* warehouse/out/
  crossdock plan
  crossdock sync
Then change what you like in warehouse/out or crossdock.yaml, and plan again."""
