"""Nothing in an address, a key, a file name or a reason makes the console start another command than was confirmed."""

from __future__ import annotations

import csv
import io
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.consoles import make_fleet
from tests.e2e.test_console_actions import BAD, at, ended
from tests.e2e.test_folder_warehouse import serve_folder
from tests.e2e.warehouse import Site
from tests.plain_browser import Browser, Page

from crossdock.console import tenant_configs_and_states, web_server
from crossdock.console.action_definitions import ACTIONS
from crossdock.printable import printable
from crossdock.values.clock import SystemClock
from crossdock.values.record_keys import key_text

KEYS = ("--yes", "PLAN", "K\u202e9", "a\n'\"><b>$(touch x)`touch x`%00{{7*7}}", f"{'L' * 600}1", f"{'L' * 600}2")
"""Of records that cannot be mapped."""
REASONS = (
    "--yes\0\x1b[31m$(touch x)`touch x`\r\nCROSSDOCK_API_KEY=stolen\n\u202e\ufffe1",
    "x" * 60_000,
    "é\U0001f9ff" * 300,
)


@pytest.fixture
def depot(site: Site) -> Site:
    serve_folder(site)
    site.init()
    site.fill()
    site.export("INV_2.csv", BAD)
    rows = io.StringIO(newline="")
    csv.writer(rows, delimiter=";", lineterminator="\n").writerows(
        [["SKU", "NAME", "PRICE"], *([key, "N", "x"] for key in KEYS)]
    )
    site.export("PROD_2.csv", rows.getvalue())
    assert site.sync().code == 1
    return site


@pytest.fixture
def browser(depot: Site) -> Iterator[Browser]:
    with web_server.serve_console_in_thread(
        tenant_configs_and_states.single_tenant([depot.config]), SystemClock()
    ) as base_url:
        yield Browser(base_url)


def sent_forms(page: Page) -> list[dict[str, Any]]:
    """Return the forms that change something; the search of each page does not."""
    return [form for form in page.forms if form["method"] == "post"]


def rejected(depot: Site) -> set[str]:
    return {each["key"] for each in depot.listed("--state", "rejected", "--limit", "1000")}


@pytest.mark.nightly
def test_an_action_is_about_exactly_the_record_on_its_page(depot: Site, browser: Browser) -> None:
    """Whatever its key looks like: as an option, with invisible characters, as another is shown, or very long."""
    left = rejected(depot)
    for key in KEYS:
        record = browser.open(at(depot, f"record?stream=wms.products&key={quote(key_text([key]))}"))
        page = ended(browser, browser.send(browser.follow(record, "Drop records")))
        assert "done (exit code 0)" in page.text, (key, page.text)
        assert len(left - rejected(depot)) == 1, key
        left = rejected(depot)
    assert left == {"7", "8"}


def test_what_an_action_is_about_is_no_option(depot: Site, browser: Browser) -> None:
    """An operator writes no other file and reads no other tenant: what is no stream is refused, before a form."""
    for streams in (
        "-o stolen",
        "-ostolen",
        "--config other.yaml",
        "-C other.yaml",
        "--help",
        "PLAN",
        "wms.products --json",
    ):
        for action in ("sync", "plan", "reconcile"):
            page = browser.open(at(depot, f"do/{action}?streams={quote(streams)}"))
            assert (page.status, sent_forms(page)) == (400, []), (action, streams)


def test_what_no_command_can_take_is_refused(depot: Site, browser: Browser) -> None:
    """No argument of a process has NUL, and no record either."""
    for action in ACTIONS.values():
        for name in action.fields:
            fields = "&".join(f"{each}={'%00' if each == name else '1'}" for each in action.fields)
            page = browser.open(at(depot, f"do/{action.name}?{fields}"))
            assert (page.status, sent_forms(page)) == (400, []), (action.name, name)


@pytest.mark.nightly
def test_a_reason_is_only_a_text(depot: Site, browser: Browser) -> None:
    """It reaches the audit log, printable and not too long, and nothing else."""
    depot.config.write_text(
        f"{depot.config.read_text()}jobs: {{nightly: {{schedule: {{time_zone: UTC, at: '02:30'}}}}}}\n"
    )
    for number, reason in enumerate(REASONS):
        name = ("pause-job", "resume-job")[number % 2]
        page = ended(browser, browser.send(browser.open(at(depot, f"do/{name}?job=nightly")), why=reason))
        assert "done (exit code 0)" in page.text, (reason, page.text)
        (entry, *_) = depot.run("audit", "--json").json
        assert entry["action"] == name.replace("-job", "").join(("jobs ", ""))
        assert printable(reason)[:1_000].startswith(entry["reason"]), reason
        assert len(entry["reason"]) >= min(len(reason), 500), reason


@pytest.mark.nightly
def test_what_is_kept_of_commands_is_private(depot: Site, browser: Browser) -> None:
    """Whatever the umask of the console is."""
    before = os.umask(0)
    try:
        page = ended(browser, browser.send(browser.open(at(depot, "do", "plan"))))
    finally:
        os.umask(before)
    assert "exit code" in page.text
    folder = depot.folder / "state.db.console"
    found = {path: stat.S_IMODE(path.lstat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert {"plan", "output", "command.json", "exit_code"} <= {path.name for path in found}
    assert [path.name for path, mode in found.items() if mode & 0o077] == []


def test_files_of_partners_are_no_modules(depot: Site, browser: Browser) -> None:
    """A partner may put files beside the config, which the started command does not execute."""
    for name in ("click", "json", "random", "subprocess", "pathlib"):
        (depot.folder / f"{name}.py").write_text(f"open({str(depot.folder / 'executed')!r}, 'w')\n")
    page = ended(browser, browser.send(browser.open(at(depot, "do", "plan"))))
    assert "exit code 0)" in page.text
    assert not (depot.folder / "executed").exists()


def test_a_config_that_was_changed_since_it_was_shown(depot: Site, browser: Browser) -> None:
    """Nothing is done: with another config the command would do something else."""
    preview = browser.open(at(depot, "do", "sync"))
    depot.edit("name: NAME", "name: {const: X}", within="resource: product")
    answer = browser.send(preview)
    assert answer.status == 409
    assert "It has changed since it was shown" in answer.text


@pytest.mark.nightly
def test_who_presses_after_the_other_has_ended_is_told(depot: Site, browser: Browser) -> None:
    """Their pages were loaded before, also of two consoles: it is done once, although nothing else has changed."""
    with web_server.serve_console_in_thread(
        tenant_configs_and_states.single_tenant([depot.config]), SystemClock()
    ) as base_url:
        second = Browser(base_url)
        preview, other = (each.open(at(depot, "do", "sync")) for each in (browser, second))
        ended(browser, browser.send(preview))
        answer = second.send(other)
    assert answer.status == 409
    assert re.search("has started the same at .* and it has ended", answer.text)
    assert len(depot.run("runs", "--json").json) == 2


def test_two_tenants_with_one_spool(tmp_path: Path) -> None:
    """Those who may see one of them see nothing of what was started for the other, and execute no plan of it."""
    make_fleet(tmp_path / "tenants")
    for config in (tmp_path / "tenants").glob("*.yaml"):
        config.write_text(f"{config.read_text()}spool: {tmp_path / 'spool'}\n")
    with web_server.serve_console_in_thread(
        tenant_configs_and_states.fleet_tenants(str(tmp_path / "tenants"), ()), SystemClock()
    ) as base_url:
        browser = Browser(base_url)
        page = ended(browser, browser.send(browser.open("/t/a/do/plan")))
        name = page.url.rpartition("/")[2]
        assert name in browser.open("/t/a/commands").html
        assert name not in browser.open("/t/b/commands").html
        assert browser.open(f"/t/b/commands/{name}").status == 404
        assert "There is no such plan" in browser.open(f"/t/b/do/apply?plan={name}").text
