"""People start commands in the console: previews, confirmations, several people, and processes that go on."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest
from tests.e2e.test_folder_warehouse import serve_folder
from tests.e2e.warehouse import Site
from tests.plain_browser import Browser, Page
from tests.waiting import eventually

from crossdock.config.project import project
from crossdock.console import started_commands, tenant_configs_and_states, web_server
from crossdock.values.clock import SystemClock

BAD = "INVNO;CUSTNO;SKU;QTY;PRICE;CURRENCY\n7;C1;P1;x;1.50;EUR\n8;C1;P1;y;1.50;EUR\n"


@pytest.fixture
def depot(site: Site) -> Site:
    serve_folder(site)
    site.init()
    site.fill()
    site.export("INV_2.csv", BAD)
    assert site.sync().code == 1
    return site


@pytest.fixture
def base_url(depot: Site) -> Iterator[str]:
    with web_server.serve_console_in_thread(
        tenant_configs_and_states.single_tenant([depot.config]), SystemClock()
    ) as base_url:
        yield base_url


def ended(browser: Browser, page: Page) -> Page:
    """The page of a started command, once the command has ended."""
    pages = [page]

    def has_ended() -> bool:
        pages[0] = browser.open(page.url)
        return "It is running" not in pages[0].text

    eventually(has_ended)
    return pages[0]


def at(depot: Site, *parts: str) -> str:
    return "/".join(("/t", depot.tenant, *parts))


def test_what_was_rejected_is_replayed_after_the_mapping_was_corrected(depot: Site, base_url: str) -> None:
    """The preview counts what will be sent, the command delivers it, and its page shows what the command printed."""
    depot.edit("quantity: {from: QTY, as: decimal}", "quantity: {const: 1}")
    browser = Browser(base_url)
    preview = browser.open(at(depot, "do", "replay?reason=bad_value"))
    assert "2 records will be mapped again" in preview.text
    before = len(depot.effects("invoice"))

    page = ended(browser, browser.send(preview, why="the quantity is always one"))

    assert "done (exit code 0)" in page.text
    assert "the quantity is always one" in page.text
    assert len(depot.effects("invoice")) == before + 2
    assert depot.listed() == []


def test_nothing_is_done_if_it_has_changed_since_it_was_shown(depot: Site, base_url: str) -> None:
    """A record that was dropped meanwhile is not counted any more, so that the person is asked again."""
    browser = Browser(base_url)
    preview = browser.open(at(depot, "do", "drop?stream=wms.invoices&reason=bad_value"))
    assert "2 records rejected" in preview.text
    assert depot.run("records", "drop", "wms.invoices", "7").code == 0

    answer = browser.send(preview)

    assert answer.status == 409
    assert "It has changed since it was shown" in answer.text
    assert "1 record rejected" in answer.text
    assert len(depot.listed("--state", "rejected")) == 1


@pytest.mark.nightly
def test_an_action_waits_for_the_end_of_a_run(depot: Site, base_url: str) -> None:
    """Its page says so before; it is done once the run has ended."""
    browser = Browser(base_url)
    with project.load(depot.config).open_state_exclusively() as state:
        with state.begin() as tx:
            run = tx.runs.start(business_date="2026-03-14", at=SystemClock().now(), job="nightly")
        preview = browser.open(at(depot, "do", "drop?stream=wms.invoices&reason=bad_value"))
        assert f"Run {run} is in progress since" in preview.text
        assert "waits at most 10 s" in preview.text
        page = browser.send(preview)
        assert page.status == 200
    assert "done (exit code 0)" in ended(browser, page).text
    assert depot.listed("--state", "rejected") == []


def test_an_action_that_meets_a_long_run_says_which(
    depot: Site, base_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the wait nothing is done, and the page names the run, since when it is in progress, and how to end it."""
    monkeypatch.setattr(started_commands, "WAITS_S", 1)
    browser = Browser(base_url)
    with project.load(depot.config).open_state_exclusively() as state:
        with state.begin() as tx:
            run = tx.runs.start(business_date="2026-03-14", at=SystemClock().now(), job="nightly")
        page = ended(browser, browser.send(browser.open(at(depot, "do", "replay?reason=bad_value"))))
    named = rf"it did not end within 1 s: run {run} of the job nightly, in progress since \S+ \S+Z"
    assert re.search(named, page.text)
    assert f"crossdock stop {run}" in page.text
    assert "exit code 3" in page.text
    assert len(depot.listed("--state", "rejected")) == 2


@pytest.mark.nightly
def test_who_presses_after_it_was_done_is_told_by_whom(depot: Site, base_url: str) -> None:
    """With a link to what the other has started, also if nothing is left to do."""
    first, second = Browser(base_url), Browser(base_url)
    address = at(depot, "do", "drop?stream=wms.invoices&key=7")
    previews = [each.open(address) for each in (first, second)]
    done = ended(first, first.send(previews[0]))
    late = second.send(previews[1])
    assert late.status == 409
    assert re.search("has started the same at .*, and it has ended", late.text)
    assert second.follow(late, "See its result").url == done.url


@pytest.mark.nightly
def test_two_people_press_the_same_button(depot: Site, base_url: str) -> None:
    """One command is started, and the other person is told who was faster."""
    people = [Browser(base_url) for _ in range(8)]
    previews = [each.open(at(depot, "do", "sync")) for each in people]
    answers: list[Page] = []
    threads = [
        threading.Thread(target=lambda who=who, preview=preview: answers.append(who.send(preview)))
        for who, preview in zip(people, previews, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    started = [each for each in answers if each.status == 200]
    assert len(started) == 1, [each.text for each in answers]
    assert all(re.search("has started the same|is being started", each.text) for each in answers if each.status == 409)
    ended(people[0], started[0])
    assert len(depot.run("runs", "--json").json) == 2


def test_a_command_goes_on_without_the_console(depot: Site) -> None:
    """It is a process of its own: the console that started it can end, and another one shows how it ended."""
    with web_server.serve_console_in_thread(
        tenant_configs_and_states.single_tenant([depot.config]), SystemClock()
    ) as base_url:
        browser = Browser(base_url)
        page = browser.send(browser.open(at(depot, "do", "sync")))
        address = page.url.removeprefix(base_url)
    with web_server.serve_console_in_thread(
        tenant_configs_and_states.single_tenant([depot.config]), SystemClock()
    ) as base_url:
        browser = Browser(base_url)
        page = ended(browser, browser.open(address))
    assert "done, but records are open" in page.text
    assert "the tally balances" in page.text


def test_a_plan_is_executed_as_it_was_shown(depot: Site, base_url: str) -> None:
    """A plan is made and read first; the link on its page leads to the form that executes exactly that."""
    depot.export("PROD_2.csv", "SKU;NAME;PRICE\nP3;Screw;0.10\n")
    browser = Browser(base_url)
    planned = ended(browser, browser.send(browser.open(at(depot, "do", "plan"))))
    assert "P3" in planned.text
    assert len(depot.names("product")) == 2

    page = ended(browser, browser.send(browser.follow(planned, "Execute this plan")))

    assert "exit code" in page.text
    assert depot.names("product") == ["wms:P1", "wms:P2", "wms:P3"]


@pytest.mark.nightly(but=["do/undo?run=-1-400"])
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("do/nothing", 404),
        ("do/drop", 400),
        ("do/replay?reason=%3Cscript%3E", 400),
        ("do/undo?run=-1", 400),
        ("do/undo?run=99999999", 200),
        ("do/apply?plan=..%2F..%2Fstate.db", 200),
        ("commands/..%2F..", 404),
        ("commands/20260101T000000-00000000", 404),
    ],
)
def test_addresses_that_mean_nothing(depot: Site, base_url: str, path: str, status: int) -> None:
    """They are answered by a page that says what is wrong, never by an internal error or by a form."""
    page = Browser(base_url).open(at(depot, path))
    assert page.status == status
    assert not [form for form in page.forms if form["method"] == "post"]


def test_a_form_needs_the_token_of_its_page(depot: Site, base_url: str) -> None:
    """Without it, with that of another browser, or sent twice, nothing is started."""
    browser = Browser(base_url)
    preview = browser.open(at(depot, "do", "sync"))
    assert browser.send(preview, csrf_token="").status == 403
    other = Browser(base_url)
    other.open("/")
    assert other.send(preview).status == 403
    page = ended(browser, browser.send(preview))
    assert "exit code" in page.text
    again = browser.send(preview)
    assert (again.status, "It is not carried out again" in again.text) == (409, True)
    assert browser.follow(again, "Open its page again").url == preview.url
    evil = {"Origin": "http://evil.example", "Content-Type": "application/x-www-form-urlencoded"}
    assert browser.open(urljoin(base_url, at(depot, "do", "sync")), headers=evil, data=b"").status == 403
    assert len(depot.run("runs", "--json").json) == 2
