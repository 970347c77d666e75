"""The page of the audit log, and the entries of people who see personal data."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta

import pytest
from starlette.responses import Response
from tests.unit.cli.conftest import CommandLine
from tests.unit.cli.conftest import command_line as command_line  # noqa: PLC0414  a fixture
from tests.unit.console.visitor import Visitor, visiting

from crossdock.console import personal_data_access, web_server
from crossdock.console.page_request_context import PageRequest
from crossdock.console.web_server import PageRoute
from crossdock.state import AuditEntry, AuditFilter
from crossdock.values.acting_person_and_process import Actor, acting_as

HOSTILE = "<script>alert(1)</script>"
SUBJECTS = {
    "run 17": "/t/acme/runs/17",
    "record wms.products a%20b|2": "/t/acme/record?stream=wms.products&key=a%2520b%7C2",
    "job nightly": "/t/acme/runs?job=nightly",
    "wave lots": "/t/acme/migration",
    "connection shop": "/t/acme/connections",
}


@pytest.fixture
def at(command_line: CommandLine) -> datetime:
    """When the first of sixty changes was made, one a minute."""
    with closing(command_line.state()) as state, state.begin() as tx:
        (init,) = tx.audit_log.listed(AuditFilter(), limit=9)
        for number in range(60):
            with acting_as(Actor("bob" if number % 2 else HOSTILE, "10.0.0.7", f"reason {number}")):
                subject = ([*SUBJECTS, "state"])[number % 6]
                entry = AuditEntry.new_by_current_actor(
                    "jobs pause", subject, at=init.at + timedelta(minutes=number + 1)
                )
            tx.audit_log.put(entry)
    return init.at


@pytest.fixture
def visitor(command_line: CommandLine, at: datetime) -> Iterator[Visitor]:
    with visiting(command_line.config) as visitor:
        yield visitor


def reasons(visitor: Visitor, address: str) -> list[int]:
    return [int(cells[6].removeprefix("reason ")) for cells in rows(visitor, address) if cells[6]]


def rows(visitor: Visitor, address: str) -> list[list[str]]:
    tables = visitor.page(address).tables
    return tables[0][1:] if tables else []


def test_the_log_is_shown_page_by_page(visitor: Visitor) -> None:
    """Newest first; each entry is on one page."""
    first = visitor.html("/t/acme/audit")
    (older,) = {part.split('"')[0].replace("&amp;", "&") for part in first.split('href="') if "before=" in part}
    assert [*reasons(visitor, "/t/acme/audit"), *reasons(visitor, older)] == list(reversed(range(60)))
    assert "Older entries" not in visitor.html(older)


def test_what_is_changed_is_linked_and_escaped(visitor: Visitor) -> None:
    """Runs, records and jobs have pages. A name is no markup, and leads to what this person did."""
    html = visitor.html("/t/acme/audit")
    for subject, address in SUBJECTS.items():
        assert f'<a href="{address.replace("&", "&amp;")}">{subject}</a>' in html
    assert HOSTILE not in html
    assert "/t/acme/audit?person=%3Cscript%3E" in html


def test_entries_are_filtered(visitor: Visitor, at: datetime) -> None:
    """By person, command, and date; a value that is no date, number or text of a database filters nothing or all."""
    assert reasons(visitor, "/t/acme/audit?person=bob") == list(range(59, 0, -2))
    assert reasons(visitor, "/t/acme/audit?action=jobs&person=bob")[0] == 59
    assert reasons(visitor, "/t/acme/audit?action=job") == []
    after, day = (at + timedelta(days=2)).date(), at.date()
    assert reasons(visitor, f"/t/acme/audit?since={after}") == []
    assert reasons(visitor, f"/t/acme/audit?since={day}&until={after}")[0] == 59
    for odd in ("since=9999-12-31&until=9999-12-31", "until=x", "before=%C2%B2", "since=0001-01-01"):
        assert len(reasons(visitor, f"/t/acme/audit?{odd}")) == 50
    assert reasons(visitor, "/t/acme/audit?person=x&before=99999999999999999") == []
    assert "nothing is named with" in visitor.html("/t/acme/audit?person=%00", 400)


def seen(visit: PageRequest) -> Response:
    assert personal_data_access.log_and_permit_personal_data_if_asked(visit, "record wms.products K1")
    return visit.render_page("error.html", "Seen", heading="Seen", message="personal data", advice="", repair=("", ""))


def test_who_sees_personal_data_is_logged(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data is only shown if that is stored, for which nobody waits long."""
    monkeypatch.setattr(
        "tests.unit.console.visitor.PAGE_ROUTES", (*web_server.PAGE_ROUTES, PageRoute("/t/{tenant}/seen", seen))
    )
    monkeypatch.setattr(personal_data_access, "_WAITS_S", 0.05)
    with visiting(command_line.config) as visitor:
        with closing(sqlite3.connect(command_line.folder / "state.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            refused = visitor.html("/t/acme/seen?show=data", 503)
        assert "the audit log could not be written" in refused
        assert "personal data</p>" not in refused
        assert "personal data" in visitor.html("/t/acme/seen?show=data")
        shown = [cells[3:5] for cells in rows(visitor, "/t/acme/audit")]
        assert ["view personal data", "record wms.products K1"] in shown
    (entry, *_) = command_line.run("audit", "--json").json
    assert (entry["person"], entry["address"], entry["outcome"]) == ("ann", "127.0.0.1", "done")
