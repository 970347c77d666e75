"""The page of a run in the console has the numbers of ``crossdock show --json``, and its balance sheets balance."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.e2e.folder_project import FolderProject, table
from tests.examples import examples
from tests.plain_browser import Browser
from tests.report_page import Page

from crossdock.console import tenant_configs_and_states, web_server
from crossdock.sandbox import SandboxServer
from crossdock.values.clock import SystemClock

pytestmark = pytest.mark.nightly

SKUS = [f"P{number}" for number in range(12)]
NIGHTS = 3
_CONNECTIONS = count(1)
Night = dict[str, Any]


def nights() -> st.SearchStrategy[list[Night]]:
    """Each with the products that a snapshot lists, their prices, and the lots that came, some of them bad."""
    prices = st.sampled_from(["1.50", "2.00", "x", ""])
    lots = st.tuples(st.sampled_from([f"L{number}" for number in range(8)]), st.sampled_from([*SKUS, "P99"]))
    quantity = st.sampled_from(["1", "5", "many"])
    night = st.fixed_dictionaries(
        {
            "products": st.dictionaries(st.sampled_from(SKUS), prices, min_size=1),
            "lots": st.lists(st.tuples(lots, quantity), max_size=6),
            "keyless": st.integers(0, 2),
        }
    )
    return st.lists(night, min_size=NIGHTS, max_size=NIGHTS)


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path_factory.mktemp("platform")) as platform:
        yield platform


class Warehouse:
    """A folder of exports, its runs, and the console beside them."""

    def __init__(self, folder: Path, platform: SandboxServer) -> None:
        decimal = {"as": "decimal"}
        products = table("PROD_*", ["SKU"], resource="product", skip={"blocked": {"field": "PRICE", "equals": ""}})
        products |= {"mode": "snapshot", "on_gone": "delete"}
        products["gone"] = {"at_most_percent": 100, "rows_within_percent": 100}
        products["map"] = {"sku": "SKU", "name": "SKU", "unitPrice": {"from": "PRICE", **decimal}}
        lots = table("LOT_*", ["LOT"], resource="inventory_lot")
        lots["map"] = {"productId": {"ref": "product", "key": "SKU"}, "lotNumber": "LOT"}
        lots["map"] |= {"quantity": {"from": "QTY", **decimal}}
        streams = {"products": products, "lots": lots}
        wms = {"kind": "folder_warehouse", "path": "out", "settle_s": 0, "streams": streams}
        self.project = FolderProject(folder, platform, {f"wms{next(_CONNECTIONS)}": wms})  # its namespace
        assert self.project.run("init").exit_code == 0
        self.nights = 0

    def run(self, night: Night) -> dict[str, Any]:
        """Sync what *night* brings; return what ``show --json`` says of it."""
        self.nights += 1
        products = [f"{sku};{price}" for sku, price in night["products"].items()] + [";1.00"] * night["keyless"]
        lots = [f"{lot};{sku};{quantity}" for (lot, sku), quantity in night["lots"]]
        self.project.write(f"PROD_{self.nights}.csv", "\n".join(["SKU;PRICE", *products, ""]))
        self.project.write(f"LOT_{self.nights}.csv", "\n".join(["LOT;SKU;QTY", *lots, ""]))
        done = self.project.run("sync")
        assert done.exit_code in {0, 1, 4}, done.stderr
        return self.project.run("show", "--json").document


def number(text: str) -> int:
    return int(text.replace(",", ""))


def assert_equal(page: Page, run: dict[str, Any]) -> None:
    """Every number of the page is that of the document."""
    for head, *lines in (made for made in page.tables if made[0][:2] == ["stream", "read"]):
        of = "rows" if "in records" in head else "records"
        for name, *cells in lines:
            terms = _terms(run, name, of)
            assert [terms.get(term, 0) for term in head[1:]] == list(map(number, cells))
    _assert_sheets(page, run)
    files = [line[:3] for line in page.under("stream", "file", "rows")]
    read = [
        [name, file["name"], "unchanged" if file["rows"] is None else f"{file['rows']:,}"]
        for name, stream in run["streams"].items()
        for file in stream["files"]
    ]
    assert [line for line in files if not line[1].startswith("no ")] == read
    reasons = [[each["stream"], each["code"], each["records"], each["own"]] for each in run["rejected_by_reason"]]
    shown = page.under("stream", "reason")
    assert [[stream, code, number(records), number(own)] for stream, code, records, own, *_ in shown] == reasons
    changed = [[each["stream"], each["member"], each["updates"]] for each in run["changed_members"]["members"]]
    assert [[stream, member, number(times)] for stream, member, times, *_ in page.under("stream", "member")] == changed
    for row in page.under("run", "business date")[:1]:
        delivered = sum(stream["records"]["delivered"] for stream in run["streams"].values())
        updated = sum(stream["records"]["updated"] for stream in run["streams"].values())
        rows = sum(stream["rows"]["read"] for stream in run["streams"].values())
        assert (number(row[0]), *map(number, row[3:6])) == (run["run"], rows, delivered, updated)
    for fact in (
        f"requests{run['requests']:,} ({run['throttled']:,} throttled)",
        f"delivered{sum(stream['records']['delivered'] for stream in run['streams'].values()):,}",
    ):
        assert fact in re.sub(r"\n+", "", page.text)


def _terms(run: dict[str, Any], name: str, of: str) -> dict[str, int]:
    terms: dict[str, Any] = run["streams"][name][of]
    skipped = {f"skip {each}": count for each, count in terms.get("filtered", {}).items()}
    return skipped | {term.replace("_", " "): count for term, count in terms.items() if term != "filtered"}


def _assert_sheets(page: Page, run: dict[str, Any]) -> None:
    sheets = [each for each in page.tables if each[0][:1] == ["came in"]]
    captions = [(name, of) for name, stream in run["streams"].items() for of in ("rows", "records")]
    with_counts = [(name, of) for name, of in captions if any(_terms(run, name, of).values())]
    assert len(sheets) == len(with_counts)
    for (name, of), (head, *lines, sums) in zip(with_counts, sheets, strict=True):
        assert head == ["came in", of, "became", of]
        came = {line[0]: number(line[1]) for line in lines if line[0]}
        became = {line[2]: number(line[3]) for line in lines if line[2]}
        terms = _terms(run, name, of)
        assert came | became == {term: count for term, count in terms.items() if count and term != "delivered"}
        assert sum(came.values()) == sum(became.values()) == number(sums[1]) == number(sums[3])


@given(some=nights())
@settings(max_examples=max(10, examples(100)), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_number_of_a_page_is_that_of_the_command(
    some: list[Night], platform: SandboxServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Thirty random nights: products come, change, go and are bad; lots refer to them, or to none."""
    warehouse = Warehouse(tmp_path_factory.mktemp("night"), platform)
    runs = [warehouse.run(night) for night in some]
    with web_server.serve_console_in_thread(
        tenant_configs_and_states.single_tenant([warehouse.project.config]), SystemClock()
    ) as base_url:
        browser = Browser(base_url)
        for run in [warehouse.project.run("show", str(each["run"]), "--json").document for each in runs]:
            assert_equal(Page(browser.open(f"/t/{platform.tenant}/runs/{run['run']}").html), run)
