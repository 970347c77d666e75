"""``crossdock show RUN -o FILE``: the page of a real run, beside what the terminal says."""

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
    """The page of *run*; it shows no secret and no person."""
    told = show(site, run)
    assert (told.code, told.err) == (0, "")
    assert f"run {run}: " in told.out
    assert told.out.endswith(f"its report is {site.folder / 'report.html'}\n")
    text = (site.folder / "report.html").read_text(encoding="utf-8")
    assert PERSON not in text
    assert not any(secret in text for secret in site.secrets)
    return Page(text)


def quoting(seen: Seen) -> Fate:
    """Refuses one customer, and quotes the name."""
    if b"Amsel" not in seen.body:
        return FORWARD
    detail = f"{json.loads(seen.body)['name']} is <no> name"
    return Reply(422, json.dumps({"detail": detail}).encode(), {"content-type": "application/problem+json"})


def test_the_page_has_the_numbers_of_the_terminal(site: Site) -> None:
    """Both accounts, term by term and stream by stream, and what else is known of the run."""
    site.export("INV_2.csv", INVOICES.replace("2;C2;P1;1;", "2;C2;P1;x;").replace("3;C1", ";C1"))
    assert site.sync().code == 1
    told = site.run("show", "1")
    assert told.code == 0
    lines = [" ".join(line.split()) for line in told.out.splitlines()]
    seen = page(site)
    for table in seen.tables[:2]:
        start = lines.index(" ".join(table[0]))
        assert lines[start : start + 4] == [" ".join(line) for line in table]
    facts = site.run("show", "1", "--json").json
    assert f"{facts['requests']:,} ({facts['throttled']} throttled)" in seen.text
    assert "the tally balances" in told.out
    assert "The tally balances." in seen.text
    (missing,) = [line for line in seen.under("stream", "key", "stage") if line[1] == "(none)"]
    assert missing == [
        "wms.invoices",
        "(none)",
        "key",
        "INVNO: the key is empty",
        "INV_2.csv",
        "5",
        "1",
    ]


def test_the_page_tells_why_and_shows_nobody(site: Site) -> None:
    """A refusal that quotes a record is told without the quotation; what has got through since is listed no more."""
    with Front(site.platform.base_url, quoting) as front:
        site.base_url = front.base_url
        site.configure()
        (site.folder / "state.db").unlink()
        site.init()
        assert site.sync().code == 1
        seen = page(site)
        (line,) = seen.under("stream", "key", "stage")
        assert line == ["wms.customers", "C2", "delivery", "(personal) (personal) is <no> name", "CUST_1.csv", "3", "1"]
        (line,) = seen.under("stream", "key", "waits for")
        assert line[:5] == ["wms.invoices", "2", "customer wms:C2", "INV_1.csv", "4"]
        delivered = [line[:2] for line in seen.under("stream", "operations")]
        assert sorted(delivered) == [["wms.customers", "2"], ["wms.invoices", "2"], ["wms.products", "2"]]
        site.export("CUST_2.csv", CUSTOMERS.replace("Amsel", "Meise"))
        assert site.sync().code == 0
        assert page(site, 1).text.count("None.") == page(site, 2).text.count("None.") == 3
        assert page(site, 1).tables[:2] == seen.tables[:2]


def test_the_course_of_a_run_is_told_everywhere(site: Site) -> None:
    """The slowest steps and the allowance, the same on the terminal, on the page and for scripts."""
    site.edit("settle_s: 0", "settle_s: 0.2", within="kind: sftp_warehouse")
    os.utime(site.export("PROD_1.csv", PRODUCTS))  # so young that reading waits for it
    assert site.sync().code == 0
    lines = [" ".join(line.split()) for line in site.run("show", "1").out.splitlines()]
    seen, facts = page(site), site.run("show", "1", "--json").json
    place = lines.index("step lasted of the run")
    steps = seen.under("step", "lasted", "of the run")
    assert steps[0][0].startswith("reading wms.")
    assert lines[place + 1 : place + 1 + len(steps)] == [" ".join(line) for line in steps]
    assert [step["step"] for step in facts["slowest_steps"]] == [line[0] for line in steps]
    (allowance,) = [line.removeprefix("allowance: ") for line in lines if line.startswith("allowance: ")]
    assert f"{allowance.capitalize()}." in seen.text
    assert {"svg", "polygon"} <= seen.tags
    assert 0 <= facts["allowance"]["lowest"] <= facts["allowance"]["highest"]
    assert "slowest_steps" not in site.run("runs", "--json").json[0]


def test_of_a_run_without_a_course_nothing_is_told(site: Site) -> None:
    """One that was killed, or that an earlier version did, is shown as it always was."""
    assert site.sync().code == 0
    with closing(sqlite3.connect(site.folder / "state.db")) as connection, connection:
        connection.execute("UPDATE runs SET course = NULL")
    told = site.run("show", "1").out
    assert told.endswith("; the tally balances\n")
    assert "allowance" not in told
    assert "Slowest" not in page(site).text
    assert "slowest_steps" not in site.run("show", "1", "--json").json


def test_a_run_that_refused_a_file_says_so_on_its_page(site: Site) -> None:
    """The error stands there with its place, as on the terminal."""
    site.export("INV_2.csv", f"{INVOICES}9;C1\n")
    assert site.sync().code == 4
    told = site.run("show", "1").out
    error = told.partition("it ended with: ")[2].splitlines()[0]
    assert "INV_2.csv" in error
    assert f"It ended with: {error}" in page(site).text


def test_the_document_on_stdout_is_the_same_with_a_page(site: Site) -> None:
    """With ``--json`` a script gets what it gets without ``-o``, and the page is there."""
    assert site.sync().code == 0
    told = show(site, 1, "--json")
    assert told.out == site.run("show", "1", "--json").out
    assert "report.html" in told.err
    assert (site.folder / "report.html").is_file()


def test_what_cannot_be_written_is_told(site: Site) -> None:
    """A folder, and a place that is not there; of a run that is not there nothing is written."""
    assert site.sync().code == 0
    for target, says in ((".", "is a directory"), ("nowhere/report.html", "cannot be written: No such file")):
        told = site.run("show", "1", "-o", str(site.folder / target))
        assert (told.code, told.out) == (2, "")
        assert says in " ".join(told.err.split())
    told = show(site, 7)
    assert (told.code, "there is no run 7" in told.err) == (2, True)
    assert not (site.folder / "report.html").exists()
