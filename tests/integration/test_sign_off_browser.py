"""A sign-off report in a real browser: it fits, executes nothing and loads nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser import Tab, opened
from tests.report_page import AT, HOSTILE, sqlite_state
from tests.unit.migration.loaded_migration import LATER, LoadedMigration, loaded_project, reconciliation

from crossdock.console import page_rendering, self_contained_sign_off_report
from crossdock.state.tables.inputs_of_streams import FileFacts

_UNFOLD = "for (const list of document.querySelectorAll('details')) list.open = true"
_SPILT = """[...document.querySelectorAll("body *")].filter(each => !each.closest(".wide")
  && each.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(each => each.tagName)"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with 40 files, one of them with a hostile name, and with exceptions."""
    folder = tmp_path_factory.mktemp("signed")
    with sqlite_state(folder) as state:
        made = LoadedMigration(loaded_project(folder), state)
        made.fill()
        differences = [{"resource": "product", "class": "diverged", "records": 3}]
        with state.begin() as tx:
            tx.migrations.store_reconciliation(made.migration_id, reconciliation(differences=differences))
            names = [HOSTILE, *(f"exports/2026/PRODUCTS_{number:08d}.csv" for number in range(39))]
            files = [FileFacts(name, f"{number:064x}", 9, AT, "1") for number, name in enumerate(names)]
            tx.intake.accept("wms.products", "v1", files, at=LATER)
        content, _ = page_rendering.append_checksum_line(
            self_contained_sign_off_report.render_sign_off_report(made.report(accepted="known " * 60))
        )
    path = folder / "report.html"
    path.write_bytes(content)
    return path


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with opened(tmp_path_factory.mktemp("browser")) as tab:
        yield tab


@pytest.mark.parametrize("width", [1280, 400])
def test_a_report_fits_its_window(tab: Tab, report: Path, width: int) -> None:
    """With everything unfolded; only tables are wider, and scroll."""
    tab.resize(width)
    tab.open(report.as_uri())
    tab.run(_UNFOLD)
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run(_SPILT) == []
    assert tab.run("document.querySelectorAll('td').length") > 41 * 5


def test_a_report_loads_and_executes_nothing(tab: Tab, report: Path) -> None:
    """The JSON in it can be read, hostile names are text, and the browser has nothing to complain about."""
    tab.open(report.as_uri())
    assert tab.requested == [report.as_uri()]
    assert tab.complaints == []
    assert tab.run("document.querySelectorAll('img, b').length") == 0
    assert tab.run("JSON.parse(document.getElementById('report').textContent).files.length") == 41
    assert tab.run("document.body.lastElementChild.textContent").startswith("SHA-256 of all lines above this one: ")
