"""A report in a real browser: no wider than its window, no markup from data, no network access."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.report_page import AT, HOSTILE, dead_letter, finish, multiplied, sqlite_state, start, waiting
from tests.servers import require, served
from tests.unit.state.samples import intent

from crossdock.console import run_and_fleet_report

WIDTHS = (1280, 400)

# The page around the report opens it in frames, unfolds all lists and measures them; the report itself has no script.
AROUND = """<!doctype html><title>around</title><link rel="icon" href="data:,">
FRAMES
<pre id="found"></pre>
<script>
onload = () => {
  const found = [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument;
    for (const list of page.querySelectorAll("details")) list.open = true;
    const root = page.documentElement;
    const spilt = [...page.querySelectorAll("body *")].filter(each =>
      !each.closest(".wide") && each.getBoundingClientRect().right > root.clientWidth + 1).map(each => each.tagName);
    return {
      width: frame.clientWidth, room: root.clientWidth, wide: root.scrollWidth, spilt: spilt, title: page.title,
      cells: [...page.querySelectorAll("td")].map(each => each.textContent),
      alien: page.querySelectorAll("script, img, b").length,
    };
  });
  document.getElementById("found").textContent = JSON.stringify(found);
};
</script>"""


@dataclass
class Browser:
    """A headless browser, and the paths that it requested.

    Attributes:
        profile: Folder of the browser's profile.
    """

    program: str
    profile: Path
    asked: list[str] = field(default_factory=list)

    def open(self, name: str, text: str, *widths: int) -> list[dict[str, Any]]:
        """What a script around the page finds at each of *widths*."""
        frames = (f'<iframe src="/{name}" width="{width}" height="900" style="border: 0"></iframe>' for width in widths)
        answers = {f"/{name}": text, "/": AROUND.replace("FRAMES", "".join(frames))}
        with served(ThreadingHTTPServer(("127.0.0.1", 0), self._handler(answers))) as server:
            dump = self._dump(f"http://127.0.0.1:{server.server_port}/")
        text_found = unescape(dump.partition('<pre id="found">')[2].partition("</pre>")[0])
        pages: list[dict[str, Any]] = json.loads(text_found)
        return pages

    def _dump(self, address: str) -> str:
        command = [
            self.program,
            "--headless",
            "--no-sandbox",  # the pages are ours, and a container's root may not make a sandbox
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--no-proxy-server",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            f"--user-data-dir={self.profile}",
            "--dump-dom",
            address,
        ]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    def _handler(self, answers: Mapping[str, str]) -> type[BaseHTTPRequestHandler]:
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                body = answers.get(self.path, "").encode()
                self.send_response_only(200)
                self.send_header("content-type", "text/html; charset=utf-8")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """No log."""

        return Handler


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    require(program is not None, "Chromium")
    assert program is not None
    return Browser(program, tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a run with 100,000 dead letters, hostile ones and long ones among them."""
    folder = tmp_path_factory.mktemp("report")
    with sqlite_state(folder) as state:
        with state.begin() as tx:
            run = start(tx)
            message = "is not one of the countries that this tenant sells to, as the settings say; " * 4
            tx.dead_letters.put([dead_letter(1, message=message)], run_id=run, at=AT)
        multiplied(folder / "state.db", 100_000)
        with state.begin() as tx:
            evil = dead_letter(0, key=HOSTILE, message=HOSTILE, source=HOSTILE, pointer=None, code="forbidden")
            tx.dead_letters.put([evil, dead_letter(5, key="k" * 2_000, code="forbidden")], run_id=run, at=AT)
            tx.waiting_records.put([waiting(number) for number in range(1, 300)], run_id=run, at=AT)
            unsettled = [intent(number, status="in_doubt", attempts=1, first_sent_at=AT) for number in range(1, 300)]
            tx.intents.add(unsettled, run_id=run, fence=1, at=AT)
            steps = [[f"fetching {name}", 0, 1_000] for name in ("k" * 190, HOSTILE, "PRODUCTS_20260329.csv.gz")]
            timings = {"steps": steps, "samples": [[7_000 * number, number * 37 % 2_000] for number in range(500)]}
            found = finish(tx, run, error=f"{'long' * 100}\n{HOSTILE}", timings=timings, rejected=100_003)
            return run_and_fleet_report.render_run_report_file(tx, found, at=AT, tenant="acme", config=Path("c.yaml"))


@dataclass(frozen=True)
class Met:
    """What the browser found in the page, by width, and the paths that it requested."""

    by_width: list[dict[str, Any]]
    asked: set[str]


@pytest.fixture(scope="module")
def met(text: str, browser: Browser) -> Met:
    browser.asked.clear()
    return Met(browser.open("report.html", text, *WIDTHS), set(browser.asked))


@pytest.mark.nightly
def test_a_large_report_fits_its_window(met: Met) -> None:
    """With everything unfolded, wide and narrow; only tables are wider, and scroll."""
    assert [each["width"] for each in met.by_width] == list(WIDTHS)
    for each in met.by_width:
        assert len(each["cells"]) > 5 * run_and_fleet_report.LISTED * 6  # three reasons, what waits, what is in doubt
        assert each["wide"] <= each["room"]
        assert each["spilt"] == []


@pytest.mark.nightly
def test_hostile_data_is_text_to_a_browser(met: Met) -> None:
    """Hostile text is shown as text, and nothing but the page is requested."""
    for each in met.by_width:
        cells = [cell for cell in each["cells"] if "alert" in cell]
        assert [cell.removeprefix("long" * 100) for cell in cells] == [*[HOSTILE] * 3, f"fetching {HOSTILE}", HOSTILE]
        assert each["alien"] == 0
        assert each["title"] == "incomplete: run 1, 2026-03-29"
    assert met.asked == {"/", "/report.html"}


@pytest.mark.nightly
def test_the_policy_holds_where_escaping_would_fail(text: str, browser: Browser) -> None:
    """An injected script does not run and an injected image does not load; without the policy they would."""
    attacked = text.replace("</body>", "<script>document.title = 'it ran'</script><img src='/evil.png'></body>")
    bare = attacked.replace('http-equiv="Content-Security-Policy"', 'name="none"')
    assert bare != attacked != text
    browser.asked.clear()
    (guarded,) = browser.open("guarded.html", attacked, 1280)
    assert (guarded["title"], browser.asked.count("/evil.png")) == ("incomplete: run 1, 2026-03-29", 0)
    (unguarded,) = browser.open("bare.html", bare, 1280)
    assert (unguarded["title"], browser.asked.count("/evil.png")) == ("it ran", 1)
