"""All errors and warnings of a run are rows, and every output is made from these."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from email.utils import formatdate
from html.parser import HTMLParser

import pytest
from tests.e2e.warehouse import CUSTOMERS, INVOICES, PRODUCTS, Front, Reply, Result, Site
from tests.integration.notifications.receivers import Post, Receiver, Relay, relaying
from tests.servers import served

from crossdock.config.project import project
from crossdock.values.run_progress_and_messages import RunMessage

JOBS = """\
jobs:
  nightly: {{schedule: {{time_zone: UTC, at: "00:00", days: [mon, tue, wed, thu, fri, sat, sun]}}}}
notify:
  webhook: {{url: "{hook}"}}
  email: {{host: 127.0.0.1, port: {mail}, tls: none, sender: sync@example.com, to: [ops@example.com]}}
"""


class People:
    """Who is notified about the nights of a site."""

    def __init__(self, hook: Receiver, relay: Relay) -> None:
        self._hook, self._relay = hook, relay

    @property
    def posts(self) -> list[Post]:
        return self._hook.posts

    @property
    def mails(self) -> list[str]:
        return [mail.get_content() for _, _, mail in self._relay.mails]

    @property
    def kinds(self) -> list[list[str]]:
        """Of each message."""
        return [json.loads(post.body)["data"]["kinds"] for post in self.posts]


@pytest.fixture
def people(site: Site) -> Iterator[People]:
    with served(Receiver()) as hook, relaying(Relay()) as relay:
        jobs = JOBS.format(hook=hook.url, mail=relay.port)
        site.config.write_text(site.config.read_text() + jobs)
        site.init()
        yield People(hook, relay)


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def handle_data(self, data: str) -> None:
        self.text += data + " "


def of_page(page: str) -> str:
    parser = _Texts()
    parser.feed(page)
    return parser.text


def rows(site: Site) -> list[RunMessage]:
    """What the newest run said, as the state has it."""
    with closing(project.load(site.config).open_state()) as state, state.begin_read_only() as tx:
        (newest,) = tx.runs.listed(limit=1)
        return list(newest.messages)


def flat(text: str) -> str:
    return " ".join(text.split())


def assert_tells(name: str, text: str, said: list[RunMessage], *, of_streams: bool = True) -> None:
    """Assert that *text* has all facts of each of *said*."""
    for each in said:
        for fact in (each.stream if of_streams else "", each.message, each.place, each.advice):
            assert flat(fact or "") in flat(text), f"{name} does not say {fact!r}:\n{text}"


Mishap = Callable[[Site], AbstractContextManager[None]]


@contextmanager
def two_bad_files(site: Site) -> Iterator[None]:
    """Two streams fail for different reasons and a third goes on without its file."""
    site.edit(
        "mode: append", "mode: append\n        wait: {for: 1s, poll: 1s, then: without}", within="      invoices:"
    )
    site.export("CUST_1.csv", f"{CUSTOMERS}C3\n")
    site.export("PROD_1.csv", PRODUCTS.replace("P2;Nut", 'P2;"Nut'))
    yield


@contextmanager
def no_folder(site: Site) -> Iterator[None]:
    site.out.rename(site.out.with_name("moved"))
    yield


@contextmanager
def answering(site: Site, reply: Reply) -> Iterator[None]:
    """The platform gives no other answer."""
    with Front(site.platform.base_url, lambda _: reply) as front:
        site.edit(site.platform.base_url, front.base_url)
        site.edit("state.db", "other.db")
        site.init()
        yield


def an_outage(site: Site) -> AbstractContextManager[None]:
    site.fill()
    return answering(site, Reply(503, headers={"date": formatdate(usegmt=True)}))


def another_clock(site: Site) -> AbstractContextManager[None]:
    return answering(site, Reply(200, headers={"date": formatdate(0, usegmt=True)}))


@contextmanager
def no_credential(site: Site) -> Iterator[None]:
    site.setenv("CROSSDOCK_API_KEY", None)
    yield


@contextmanager
def another_run(site: Site) -> Iterator[None]:
    with project.load(site.config).open_state_exclusively():
        yield


@contextmanager
def an_older_state(site: Site) -> Iterator[None]:
    """The state is a backup, which was not declared."""
    backup = site.folder / "backup.db"
    shutil.copy(site.folder / "state.db", backup)
    site.fill()
    assert site.run("sync").code == 0
    shutil.copy(backup, site.folder / "state.db")
    yield


MISHAPS: dict[str, tuple[Mishap, int, list[str]]] = {
    "two bad files": (two_bad_files, 4, ["file_damaged", "file_damaged"]),
    "no folder": (no_folder, 2, ["folder_missing"] * 3),
    "outage": (an_outage, 3, ["target_unavailable"]),
    "another clock": (another_clock, 3, ["clock_differs"]),
    "no credential": (no_credential, 2, ["secret_missing"]),
    "another run": (another_run, 3, ["state_busy"]),
    "older state": (an_older_state, 4, ["state_restored"]),
}


@pytest.mark.nightly(but=["two bad files", "no credential"])
@pytest.mark.parametrize("mishap", MISHAPS)
def test_all_outputs_have_all_errors(site: Site, people: People, mishap: str) -> None:
    """Each error of a night, also of one that could not begin, has the same facts in all outputs."""
    happens, code, codes = MISHAPS[mishap]
    with happens(site):
        once = site.run("schedule", "--once", "latest", "--log-format", "json", "--json")
        said = rows(site)
        errors = [each for each in said if each.level == "error"]
        assert (once.code, [each.code for each in errors]) == (code, codes)
        assert_shown(site, people, once, said, errors)
        if mishap == "another clock":
            return  # which counts for scheduled runs only
        synced = site.run("sync")
        assert synced.code == code
        assert_tells("sync", synced.err, [each for each in rows(site) if each.level == "error"])
    assert_tells("show", site.run("show").out, rows(site))


def assert_shown(site: Site, people: People, once: Result, said: list[RunMessage], errors: list[RunMessage]) -> None:
    """Assert that all outputs of a scheduled run, and about it, have the *errors* of what it *said*."""
    *_, ended = (json.loads(line) for line in once.err.splitlines())
    assert [RunMessage(**each) for each in ended["errors"]] == errors
    shown = site.run("show", "--json").json
    listed = site.run("runs", "--json").json[0]
    (night,) = site.run("jobs", "list", "--json").json["nights"]
    documents = [shown, listed, night, *once.json]
    for document in documents:
        assert [RunMessage(**each) for each in document["messages"]] == said
    assert all(each["errors"] == shown["errors"] for each in (listed, *once.json))
    page = site.folder / "report.html"
    assert site.run("show", "-o", str(page)).code == 0
    (post,), (mail,) = people.posts, people.mails
    data = json.loads(post.body)["data"]
    facts = ("stream", "code", "category", "place", "message", "advice")
    assert data["errors"] == [{name: getattr(each, name) for name in facts} for each in errors]
    assert {shown["run"], listed["run"], night["run"]} == {data["run"]}
    assert {shown["status"], listed["status"], night["status"]} == {data["status"]}
    texts = {
        "the log": ended["message"],
        "show": site.run("show").out,
        "the page": of_page(page.read_text()),
        "jobs list": site.run("jobs", "list").out,
        "the webhook": json.loads(post.body)["text"],
        "the mail": mail,
    }
    for name, text in texts.items():
        assert_tells(name, text, errors)
    for name in ("show", "the page"):
        assert_tells(name, texts[name], said)


def test_the_lines_of_a_sync_are_those_of_its_rows(site: Site) -> None:
    """Also an error of the run itself, and what the service has printed only."""
    site.init()
    site.export("CUST_1.csv", f"{CUSTOMERS}C3\n")
    site.export("INV_1.csv", INVOICES.replace("3;C1", "3;C1;C1"))
    synced = site.run("sync")
    said = rows(site)
    assert [(each.level, each.stream) for each in said] == [
        ("error", "wms.customers"),
        ("note", "wms.products"),
        ("error", "wms.invoices"),
    ]
    assert_tells("sync", synced.err, said)
    assert "wms.products: no file matches out/PROD_*" in site.run("show").out


def test_a_retry_retries(site: Site, people: People) -> None:
    """A night that is not done is run again; one failure is told once, and that it is over as well."""
    site.export("CUST_1.csv", CUSTOMERS)
    site.export("PROD_1.csv", f"{PRODUCTS}P3\n")
    once = "schedule", "--once", "latest", "--json"
    assert [site.run(*once).code for _ in range(2)] == [4, 4]
    assert people.kinds == [["failed"]]
    (site.out / "PROD_1.csv").unlink()
    site.export("PROD_1.csv", PRODUCTS)
    site.export("INV_1.csv", INVOICES.replace("3;C1;P2;100", "3;C1;P2;none"))
    degraded = site.run(*once)
    assert (degraded.code, people.kinds[1:]) == (1, [["degraded", "recovered"]])
    assert site.run(*once).code == 1
    assert site.run("records", "drop", "wms.invoices", "3").code == 0
    assert (site.run(*once).code, people.kinds[2:]) == (0, [["recovered"]])
    done = site.run(*once)
    assert (done.code, done.json, len(people.posts)) == (0, [], 3)
    assert done.err.endswith(": has already been run\n")
    (night,) = site.run("jobs", "list", "--json").json["nights"]
    assert (night["status"], night["attempts"]) == ("done", 5)


def test_a_night_that_cannot_begin(site: Site, people: People) -> None:
    """Its attempts are one failed night and one message, until a retry that can begin ends both."""
    site.setenv("CROSSDOCK_API_KEY", None)
    once = "schedule", "--once", "latest"
    assert [site.run(*once).code for _ in range(3)] == [2, 2, 2]
    (night,) = site.run("jobs", "list", "--json").json["nights"]
    assert (night["status"], night["run"], people.kinds) == ("failed", 1, [["failed"]])
    assert [(each["job"], each["status"]) for each in site.run("runs", "--json").json] == [("nightly", "failed")]
    site.setenv("CROSSDOCK_API_KEY", site.api_key)
    site.fill()
    assert site.run(*once).code == 0
    (night,) = site.run("jobs", "list", "--json").json["nights"]
    assert (night["status"], night["run"], people.kinds[1:]) == ("done", 2, [["recovered"]])


def test_a_paused_job_is_not_run(site: Site, people: People) -> None:
    """It says how the job is resumed."""
    assert site.run("jobs", "pause", "nightly").code == 0
    paused = site.run("schedule", "--once", "latest")
    assert (paused.code, people.posts) == (0, [])
    assert "not run: the job is paused; 'crossdock jobs resume nightly' resumes it" in paused.err
    assert site.run("jobs", "list", "--json").json["nights"] == []
