"""The demo with a warehouse that exchanges files, judged by the files of both sides, its book and the platform."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from crossdock.cli.main import main
from crossdock.cli.safe_terminal_console import PlainConsole
from crossdock.sandbox import SandboxServer
from crossdock.testing.demo.warehouse import warehouse_working_on_order_files

CONFIG = Path(__file__).parents[2] / "configs" / "warehouse_exchange.yaml"


def crossdock(*arguments: str) -> tuple[int, str]:
    """Run a command; its exit code and output. Nothing but warnings goes to the other stream."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert all(line.startswith("crossdock: warning") for line in err.getvalue().splitlines()), err.getvalue()
    return int(ended.value.code or 0), out.getvalue()


def rows(folder: Path, pattern: str) -> list[dict[str, str]]:
    return [row for path in sorted(folder.rglob(pattern)) for row in csv.DictReader(path.read_text().splitlines())]


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the demo shows on a narrow terminal; it is in its default folder."""
    for name in ("PLATFORM_URL", "CROSSDOCK_API_KEY"):
        monkeypatch.setenv(name, "")  # the demo sets them for its process
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(PlainConsole, "is_terminal", property(lambda console: not console.stderr))
        code, output = crossdock("demo", "--warehouse")
    assert code == 0
    monkeypatch.chdir(tmp_path / "crossdock-demo-warehouse")
    return output


def test_orders_go_to_the_warehouse_once_and_come_back_acknowledged_and_shipped(
    shown: str,
) -> None:
    """Refused, overdue, substituted and short ones too: files, book, stock, platform and runs agree, and the last steps
    that the demo proposes settle what is left."""
    assert [line for line in shown.splitlines() if len(line) > 80] == []
    assert CONFIG.read_text() == Path("crossdock.yaml").read_text()
    warehouse = Path("depot")
    sent = rows(warehouse / "in", "ord_*.csv")
    orders = Counter((row["purchase_order"], row["order_id"]) for row in sent if row["line"] == "1")
    assert {number: times for (number, _), times in orders.items()} == {
        "shop:1001": 1, "shop:1002": 1, "shop:1003": 2, "shop:1004": 1, "shop:1005": 1,
    }  # fmt: skip
    assert sorted(path.stem[-6:] for path in warehouse.rglob("ord_*")) == ["000001", "000002"]
    left = Counter(json.loads((warehouse / "book.json").read_text())["stock"])
    for row in rows(warehouse / "out", "shp_*.csv"):
        left[row["sku"]] += int(row["shipped_qty"])
    assert left == warehouse_working_on_order_files.STOCK
    code, listed = crossdock("runs", "--json")
    nights = [(run["status"], run["open"]) for run in reversed(json.loads(listed))]
    assert [(status, {name: n for name, n in found.items() if n}) for status, found in nights] == [
        ("done", {}), ("degraded", {"rejected": 1, "overdue": 1}), ("done", {}),
    ]  # fmt: skip
    assert "refused it: no carrier to CH" in shown
    assert re.search(r"wms\.shipments: read shp_\w+\.csv \(6 rows\)\n", shown)  # a file that two parts read, once
    assert "DOES NOT" not in shown

    address = httpx.URL(_variables()["PLATFORM_URL"])
    warehouse_working_on_order_files.Depot(warehouse).work_for_a_day(datetime.now(UTC))
    Path("at-once.yaml").write_text("connections: {wms: {settle_s: 0}}")
    with SandboxServer(Path("sandbox"), port=address.port or 0) as platform:
        code, report = crossdock("-C", "crossdock.yaml", "-C", "at-once.yaml", "sync", "--json")
        headers = {"authorization": f"Bearer {platform.api_key}", "x-tenant-slug": platform.tenant}
        stored = httpx.get(f"{address}/api/v1/sales/orders", headers=headers, trust_env=False).json()["data"]
    assert (code, json.loads(report)["balanced"]) == (0, True)
    assert {each["externalId"]: _progress(each) for each in stored} == {
        "shop:1001": ("shipped", 1), "shop:1002": ("shipped", 2), "shop:1003": ("shipped", 1),
        "shop:1004": ("shipped_short", 1), "shop:1005": ("shipped", 1),
    }  # fmt: skip
    assert json.loads(crossdock("records", "list", "--state", "handed-over", "--json")[1]) == []


def _variables() -> dict[str, str]:
    lines = Path("environment.sh").read_text().splitlines()
    return dict(line.removeprefix("export ").split("=", 1) for line in lines)


def _progress(order: dict[str, Any]) -> tuple[str, int]:
    return order["status"], len(order.get("tracking", ()))
