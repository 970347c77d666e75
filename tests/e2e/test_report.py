"""``crossdock show RUN -o FILE``: the page of a real run agrees with the terminal."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing

import pytest
from tests.e2e.warehouse import CUSTOMERS, FORWARD, INVOICES, PERSON, PRODUCTS, Fate, Front, Reply, Result, Seen, Site
from tests.report_page import Page


@pytest.fixture
def site(site: Site) -> Site:
    site.init()
    site.fill()
    return site


def show(site: Site, run: int = 1, *more: str) -> Result:
    return site.run("show", str(run), "-o", str(site.folder / "report.html"), *more)


def page(site: Site, run: int = 1) -> Page:
    """The page of *run*; it contains no secret and no personal data."""
    result = show(site, run)
    assert (result.code, result.err) == (0, "")
    assert f"run {run}: " in result.out
    assert result.out.endswith(f"report written to {site.folder / 'report.html'}\n")
    text = (site.folder / "report.html").read_text(encoding="utf-8")
    assert PERSON not in text
    assert not any(secret in text for secret in site.secrets)
    return Page(text)


def accounts(shown: Page) -> list[list[list[str]]]:
    """The tables of rows and of records."""
    return [table for table in shown.tables if table[0][:2] == ["stream", "read"]]


def quoting(seen: Seen) -> Fate:
    """Reject one customer with a message that quotes the name."""
    if b"Amsel" not in seen.body:
        return FORWARD
    detail = f"{json.loads(seen.body)['name']} is <no> name"
    return Reply(422, json.dumps({"detail": detail}).encode(), {"content-type": "application/problem+json"})


def test_the_page_has_the_numbers_of_the_terminal(site: Site) -> None:
    """Both accounts, term by term and stream by stream, and the other facts."""
    site.export("INV_2.csv", INVOICES.replace("2;C2;P1;1;", "2;C2;P1;x;").replace("3;C1", ";C1"))
    assert site.sync().code == 1
    result = site.run("show", "1")
    assert result.code == 0
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    shown = page(site)
    for table in accounts(shown):
        start = lines.index(" ".join(table[0]))
        assert lines[start : start + 4] == [" ".join(line) for line in table]
    facts = site.run("show", "1", "--json").json
    assert f"{facts['requests']:,} ({facts['throttled']} throttled)" in shown.text
    assert "the tally balances" in result.out
    assert "The tally balances." in shown.text
    (missing,) = [line for line in shown.under("stream", "key", "stage") if line[1] == "(none)"]
    assert missing == [
        "wms.invoices",
        "(none)",
        "key",
        "INVNO: the key is empty",
        "INV_2.csv",
        "5",
        "1",
    ]


def test_the_page_gives_reasons_without_personal_data(site: Site) -> None:
    """A quoted name is masked in the reason; a record that was delivered since is not listed."""
    with Front(site.platform.base_url, quoting) as front:
        site.base_url = front.base_url
        site.configure()
        (site.folder / "state.db").unlink()
        site.init()
        assert site.sync().code == 1
        shown = page(site)
        (line,) = shown.under("stream", "key", "stage")
        assert line == ["wms.customers", "C2", "delivery", "(personal) (personal) is <no> name", "CUST_1.csv", "3", "1"]
        (line,) = shown.under("stream", "key", "waits for")
        assert line[:5] == ["wms.invoices", "2", "customer wms:C2", "INV_1.csv", "4"]
        delivered = [line[:2] for line in shown.under("stream", "operations")]
        assert sorted(delivered) == [["wms.customers", "2"], ["wms.invoices", "2"], ["wms.products", "2"]]
        site.export("CUST_2.csv", CUSTOMERS.replace("Amsel", "Meise"))
        assert site.sync().code == 0
        assert all("Nothing needs attention." in page(site, number).text for number in (1, 2))
        assert accounts(page(site, 1)) == accounts(shown)


def test_timings_are_shown_everywhere(site: Site) -> None:
    """The slowest steps and the allowance, the same on the terminal, on the page and for scripts."""
    site.edit("settle_s: 0", "settle_s: 0.2", within="kind: sftp_warehouse")
    os.utime(site.export("PROD_1.csv", PRODUCTS))  # so young that reading waits for it
    assert site.sync().code == 0
    lines = [" ".join(line.split()) for line in site.run("show", "1").out.splitlines()]
    shown, facts = page(site), site.run("show", "1", "--json").json
    place = lines.index("step duration of the run")
    steps = {line[0]: line[:3] for line in shown.under("step", "duration", "of the run")}
    slowest = [step["step"] for step in facts["slowest_steps"]]
    assert any(step.startswith("reading wms.") for step in slowest)
    seconds = [step["seconds"] for step in facts["slowest_steps"]]
    assert seconds == sorted(seconds, reverse=True)
    assert lines[place + 1 : place + 1 + len(slowest)] == [" ".join(steps[name]) for name in slowest]
    (allowance,) = [line.removeprefix("allowance: ") for line in lines if line.startswith("allowance: ")]
    assert f"{allowance.capitalize()}." in shown.text
    assert {"svg", "polygon"} <= shown.tags
    assert 0 <= facts["allowance"]["lowest"] <= facts["allowance"]["highest"]
    assert "slowest_steps" not in site.run("runs", "--json").json[0]


def test_a_run_without_timings(site: Site) -> None:
    """A run that was killed has no timings and is shown without them."""
    assert site.sync().code == 0
    with closing(sqlite3.connect(site.folder / "state.db")) as connection, connection:
        connection.execute("UPDATE runs SET timings = NULL")
    result = site.run("show", "1").out
    assert result.endswith("; the tally balances\n")
    assert "allowance" not in result
    assert "of the run" not in page(site).text
    assert "slowest_steps" not in site.run("show", "1", "--json").json


def test_a_run_that_refused_a_file_says_so_on_its_page(site: Site) -> None:
    """The error is shown with its place, as on the terminal."""
    site.export("INV_2.csv", f"{INVOICES}9;C1\n")
    assert site.sync().code == 4
    result = site.run("show", "1").out
    error = result.partition("error: ")[2].splitlines()[0]
    assert "INV_2.csv" in error
    assert f"Error: {error}" in page(site).text


def test_the_document_on_stdout_is_the_same_with_a_page(site: Site) -> None:
    """``--json`` prints the same document with and without ``-o``."""
    assert site.sync().code == 0
    result = show(site, 1, "--json")
    assert result.out == site.run("show", "1", "--json").out
    assert "report.html" in result.err
    assert (site.folder / "report.html").is_file()


def test_a_page_that_cannot_be_written(site: Site) -> None:
    """A folder and a missing folder are refused; for an unknown run nothing is written."""
    assert site.sync().code == 0
    for target, says in ((".", "is a directory"), ("nowhere/report.html", "cannot be written: No such file")):
        result = site.run("show", "1", "-o", str(site.folder / target))
        assert (result.code, result.out) == (2, "")
        assert says in " ".join(result.err.split())
    result = show(site, 7)
    assert (result.code, "there is no run 7" in result.err) == (2, True)
    assert not (site.folder / "report.html").exists()
