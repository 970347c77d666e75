"""``crossdock plan``: what it shows, and its exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.conftest import CONFIG, CommandLine

from crossdock.cli.plan import _sending_time_text
from crossdock.pacing.token_bucket import Forecast


def test_a_plan_lists_operations_and_refusals(command_line: CommandLine) -> None:
    """Creates, rejections with their place, and the sum; a limit counts what it hides."""
    (command_line.folder / "exports" / "a.csv").write_text("SKU,NAME,PRICE\n0017,Lamp,1\n0018,Shelf,x\n")
    shown = command_line.run("plan").out
    assert "create wms.products 0017\n" in shown
    assert "reject wms.products 0018\n         bad_value at a.csv:3 PRICE: " in shown
    assert "plan: 1 create wms.products, 1 reject wms.products\n1 request needed" in shown
    assert "and 2 more (--limit)\n" in command_line.run("plan", "--limit", "0").out


def test_a_plan_shows_rows_without_a_key(command_line: CommandLine) -> None:
    """A row that the sync will reject is listed with its place and counted among the rejected rows."""
    (command_line.folder / "exports" / "a.csv").write_text("SKU,NAME,PRICE\n,Lamp,1\n0018,Shelf,2\n")
    shown = command_line.run("plan").out
    assert "reject wms.products (no key)\n         key_missing at a.csv:2 SKU: the key is empty\n" in shown
    assert "plan: 1 reject wms.products, 1 create wms.products\n" in shown
    planned = command_line.run("plan", "--json").json
    assert planned["streams"]["wms.products"]["rows"] == {
        "read": 2, "filtered": {}, "superseded": 0, "rejected": 1, "in_records": 1,
    }  # fmt: skip


def test_a_plan_ends_with_the_tally_of_its_sync(command_line: CommandLine) -> None:
    """The terms are those of a run's report, so that both can be compared."""
    (command_line.folder / "exports" / "a.csv").write_text("SKU,NAME,PRICE\n0017,Lamp,1\n0018,Shelf,x\n")
    lines = [line.split() for line in command_line.run("plan").out.splitlines()]
    assert ["stream", "read", "unchanged", "created", "rejected"] in lines
    assert ["wms.products", "2", "0", "1", "1"] in lines


def test_exit_codes(command_line: CommandLine) -> None:
    """Zero when there is nothing to do, 10 by request when there is something, 2 for an unknown stream."""
    idle = command_line.run("plan", "--detailed-exitcode")
    assert (idle.code, "plan: nothing to do" in idle.out, "Records" in idle.out) == (0, True, False)
    (command_line.folder / "exports" / "a.csv").write_text("SKU,NAME,PRICE\n0017,Lamp,1\n")
    planned = command_line.run("plan", "--detailed-exitcode", "--json")
    (item,) = planned.json["shown"]
    assert (planned.code, item["do"], item["key"]) == (10, "create", "0017")
    assert item["changes"]["name"] == {"before": None, "after": "Lamp"}
    assert command_line.run("plan", "wms.nothing").code == 2


def test_the_code_of_a_mapping_changes_neither_output_nor_paths(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it prints is not in the document, and the plan is saved where it was named, whatever its working folder."""
    folder = command_line.folder
    (folder / "exports" / "a.csv").write_text("SKU,NAME,PRICE\n0017,Lamp,1\n")
    steps = ["import os", "print('loaded')", "def one(record):", "    print('mapped')", "    os.chdir('/')"]
    (folder / "m.py").write_text("\n".join([*steps, "    return {'sku': '1'}", ""]))
    command_line.config.write_text(CONFIG.replace(CONFIG[CONFIG.index("map:") :], "map: m.py:one\n"))
    monkeypatch.chdir(folder)
    planned = CommandLine(Path()).run("plan", "--json", "-o", "daily.plan")
    assert (planned.code, planned.err) == (0, "loaded\nmapped\n")
    assert planned.json["rejected_before"] == {}
    assert (folder / "daily.plan").exists()


def test_a_plan_that_is_not_saved_says_so(command_line: CommandLine) -> None:
    """If a stream cannot be planned; and a folder that is not there is found before anything is read."""
    (command_line.folder / "exports" / "a.csv").write_text("SKU,NAMES\n0017,Lamp\n")
    refused = command_line.run("plan", "-o", str(command_line.folder / "daily.plan"))
    assert refused.code == 4
    assert "daily.plan: a stream could not be planned" in refused.err
    assert not (command_line.folder / "daily.plan").exists()
    nowhere = command_line.run("plan", "-o", str(command_line.folder / "missing" / "daily.plan"))
    assert nowhere.code != 4
    assert "daily.plan" in nowhere.err


def _forecast(requests: int, seconds: float) -> Forecast:
    return Forecast(requests, at_once=2_000, rate_per_s=100.0, seconds=seconds)


@pytest.mark.parametrize(
    ("forecast", "text"),
    [
        pytest.param(_forecast(0, 0.0), "", id="nothing to send"),
        pytest.param(Forecast(5, None, None, None), "", id="unknown limit"),
        pytest.param(_forecast(5, 0.0), ", all of which can be sent at once", id="within the burst"),
        pytest.param(_forecast(3_000, 10.0), ": 2,000 at once, the rest at 6,000 a minute; at least 10.0 s", id="more"),
    ],
)
def test_the_forecast_in_words(forecast: Forecast, text: str) -> None:
    """How many requests can be sent now, and how long the others take."""
    assert _sending_time_text(forecast) == text
