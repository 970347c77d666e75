"""The page of a rehearsal in a real browser: no wider than its window, and nothing is requested or refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser import Tab, opened
from tests.report_page import HOSTILE
from tests.unit.cli.migrate.test_rehearsal_page import COLUMN, DOCUMENT, STREAM, WAVE

from crossdock.cli.migrate import rehearsal_document_text_and_page

SPILT = """[...document.querySelectorAll("body *")].filter(each => !each.closest(".wide")
 && each.getBoundingClientRect().right > document.documentElement.clientWidth + 1).length"""
DRAWN = '[...document.querySelectorAll("svg.cell")].map(each => each.getBoundingClientRect().width)'


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with opened(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.mark.nightly(but=["1280"])
@pytest.mark.parametrize("width", [1280, 400])
def test_a_rehearsal_fits_its_window(tab: Tab, tmp_path: Path, width: int) -> None:
    """With many columns and long names; drawings have a size, and hostile text is text."""
    columns = [COLUMN, *(COLUMN | {"name": f"COLUMN_{number}_{'X' * number}"} for number in range(60))]
    stream = STREAM | {"profile": {"rows": 9, "has_more_columns": False, "columns": columns}}
    waves = [WAVE | {"name": "w" * 63}, WAVE]
    path = tmp_path / "rehearsal.html"
    rehearsal_document_text_and_page.write_rehearsal_page(
        path, DOCUMENT | {"streams": {"wms.invoices": stream}, "waves": waves}, Path("c.yaml")
    )
    tab.resize(width)
    tab.open(path.as_uri())
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run(SPILT) == 0
    drawn = tab.run(DRAWN)
    assert len(drawn) == 2 + 1 + 3 * (len(columns) + 1)  # the joined file has one column
    assert all(each > 50 for each in drawn)
    assert HOSTILE in tab.run("[...document.querySelectorAll('td')].map(each => each.textContent)")
    assert tab.run("document.querySelectorAll('script, img, b').length") == 0
    assert tab.requested == [path.as_uri()]
    assert tab.complaints == []
