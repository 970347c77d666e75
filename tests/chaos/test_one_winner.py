"""Several runs on one state: one works, the others say so, and who slept through a takeover writes nothing."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.chaos import contest
from tests.chaos.chance import chaos_seed
from tests.chaos.contest import Runner, Starter
from tests.e2e.platform_faults import set_faults
from tests.e2e.warehouse import CUSTOMERS, PERSON, PRODUCTS, Site, ask, expected, open_site
from tests.waiting import eventually

from crossdock.sandbox import SandboxServer
from crossdock.state import StateUrl

INVOICES_HEAD = "INVNO;CUSTNO;SKU;QTY;PRICE;CURRENCY"


@dataclass(slots=True)
class Figures:
    """What was done on one database. *met* counts races in which somebody came while another was at work."""

    races: int = 0
    processes: int = 0
    met: int = 0
    locked_out: int = 0
    came_after: int = 0
    zombies: int = 0
    kills: int = 0
    sessions_lost: int = 0
    effects: int = 0


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starter]:
    with Starter(tmp_path_factory.mktemp("syncs")) as starter:
        yield starter


@pytest.fixture
def site(
    tmp_path: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch, state_url: StateUrl
) -> Iterator[Site]:
    """A warehouse with customers and products in it, whose state is on one of the databases."""
    with open_site(tmp_path, platform, monkeypatch) as site:
        if state_url.drivername != "sqlite":
            site.edit("sqlite:///state.db", state_url.render_as_string(hide_password=False))
        site.init()
        site.export("CUST_1.csv", CUSTOMERS)
        site.export("PROD_1.csv", PRODUCTS)
        yield site
        slow_down(site, 0)


def slow_down(site: Site, ms: int) -> None:
    """Let the platform do at once what it is asked for, and tell of it *ms* later."""
    faults = [{"name": "slow", "probability": 1.0, "ms": ms, "route": "POST"}] if ms else []
    set_faults(site.platform.base_url, faults, chaos_seed())


def load(site: Site, name: str, number: int) -> list[str]:
    """Put *number* invoices into the warehouse; their rows."""
    rows = [f"{name}-{n};C{1 + n % 2};P{1 + n % 2};{n + 1};1.50;EUR" for n in range(number)]
    site.export(f"INV_{name}.csv", "\n".join([INVOICES_HEAD, *rows, ""]))
    return rows


def assert_once(site: Site, rows: list[str]) -> None:
    assert site.invoices() == expected("\n".join([INVOICES_HEAD, *rows]))
    names = Counter(site.names("customer") + site.names("product"))
    assert set(names.values()) == {1}


def race(site: Site, starter: Starter, *, races: int, entrants: int = 3) -> Figures:
    """Let *entrants* syncs begin at once, *races* times; one of each does all the work."""
    figures = Figures()
    rows: list[str] = []
    slow_down(site, 30)
    for number in range(races):
        name = PERSON + str(number)
        site.export(f"CUST_more{number}.csv", f"CUSTNO;NAME\nR{number};{name}\n")
        rows += load(site, f"race{number}", 5)
        already = len(site.effects())
        ended = [runner.ended() for runner in starter.start(site.config, entrants)]
        told = [f"exit {each.code}: {each.err}" for each in ended]
        came_after = [each for each in ended if each.code == 0 and each.requests == 0]
        locked_out = [each for each in ended if each.was_locked_out]
        (winner,) = (each for each in ended if each.code == 0 and each.requests > 0)
        assert len(came_after) + len(locked_out) == entrants - 1, told
        assert winner.requests == len(site.effects()) - already, told
        figures.met += bool(locked_out)
        figures.locked_out += len(locked_out)
        figures.came_after += len(came_after)
        assert_once(site, rows)
    slow_down(site, 0)
    figures.races, figures.processes, figures.effects = races, races * entrants, len(site.effects())
    assert figures.met >= races * 0.8, f"too few met at all: {figures}"
    return figures


def begun(site: Site, starter: Starter, invoices: int) -> Runner:
    """A sync that has sent so many *invoices*, and is still at work."""
    before = max((effect["seq"] for effect in site.effects()), default=0)
    (runner,) = starter.start(site.config, 1)
    eventually(lambda: _made(site, before) >= invoices or not runner.at_work)
    assert runner.at_work, runner.ended()
    return runner


def _made(site: Site, after: int) -> int:
    """How many invoices were created since an effect."""
    found = _asked(site, "GET", f"/_sandbox/effects?resource=invoice&limit=10000&after={after}")["data"]
    return sum(effect["tenant"] == site.tenant for effect in found)


def _asked(site: Site, method: str, path: str) -> dict[str, Any]:
    """What the sandbox itself answers."""
    answer = ask(urlsplit(site.platform.base_url).netloc, method, path)
    assert answer.status in {200, 201}, answer.body
    told: dict[str, Any] = json.loads(answer.body)
    return told


def quiet(site: Site) -> None:
    """Wait until the platform has carried out everything that reached it, as `SandboxProcess.settle` does."""

    def unchanged() -> bool:
        before = _asked(site, "GET", "/_sandbox/requests?limit=1")["total"]
        _asked(site, "POST", "/_sandbox/keys")
        return bool(_asked(site, "GET", "/_sandbox/requests?limit=1")["total"] == before)

    eventually(unchanged)


def zombies(site: Site, starter: Starter, url: StateUrl, *, number: int, invoices: int) -> Figures:
    """Stop a sync in its load until another has taken over and finished; awake again, it writes nothing."""
    figures = Figures()
    rows: list[str] = []
    for turn in range(number):
        rows += load(site, f"zombie{turn}", invoices)
        slow_down(site, 20)
        already = len(site.effects("invoice"))
        zombie = begun(site, starter, invoices // 4)

        def fall_asleep(zombie: Runner = zombie) -> bool:
            zombie.freeze()
            if contest.expire(url):
                return True
            zombie.thaw()  # it slept in a transaction, so nobody could take over
            return False

        eventually(fall_asleep)
        slow_down(site, 0)
        done = len(site.effects("invoice")) - already
        assert done < invoices, "it had nothing left to do"
        fence = contest.fences(url)
        (other,) = starter.start(site.config, 1)
        took_over = other.ended()
        assert took_over.code == 0, took_over
        assert contest.fences(url) == fence + 1
        quiet(site)
        before = contest.contents(url)
        zombie.thaw()
        ended = zombie.ended()
        assert ended.code == 3, ended
        assert "another run has taken over" in ended.err
        assert contest.changed(before, contest.contents(url)) == []
        figures.zombies += 1
        assert_once(site, rows)
        again = site.sync()
        assert (again.code, again.json["requests"]) == (0, 0)
    figures.effects = len(site.effects())
    assert figures.zombies == number
    return figures


def kills(site: Site, starter: Starter, *, number: int, invoices: int) -> Figures:
    """Kill a sync in its load; the next one, at once, finds the lock free and finishes the work."""
    figures = Figures()
    rows: list[str] = []
    for turn in range(number):
        rows += load(site, f"kill{turn}", invoices)
        slow_down(site, 20)
        begun(site, starter, invoices // 4).kill()
        (heir,) = starter.start(site.config, 1)
        slow_down(site, 0)
        ended = heir.ended()
        assert ended.code == 0, ended
        assert ended.requests > 0, "the killed one had nothing left to do"
        figures.kills += 1
        assert_once(site, rows)
    figures.effects = len(site.effects())
    assert figures.kills == number
    return figures


def hung_up(site: Site, starter: Starter, url: StateUrl, *, number: int, invoices: int) -> Figures:
    """End all database sessions of a sync in its load; it finishes all the same, and tells so."""
    figures = Figures()
    rows: list[str] = []
    for turn in range(number):
        rows += load(site, f"hung{turn}", invoices)
        slow_down(site, 20)
        runner = begun(site, starter, invoices // 4)
        figures.sessions_lost += contest.hang_up(url)
        ended = runner.ended()
        slow_down(site, 0)
        assert ended.code == 0, ended
        assert_once(site, rows)
    figures.effects = len(site.effects())
    assert figures.sessions_lost >= 2 * number, f"the lock's and the writer's: {figures}"
    return figures


Promise = Callable[[], Figures]


def told(what: str, url: StateUrl, promise: Promise) -> None:
    began = time.monotonic()
    figures = promise()
    print(f"\n{what} on {url.drivername}: seed {chaos_seed()}, {figures}, {time.monotonic() - began:.1f} s")


@pytest.mark.nightly
def test_one_of_three_syncs_that_start_at_once_does_the_work(site: Site, starter: Starter, state_url: StateUrl) -> None:
    """Of syncs that start together one delivers everything once; the others say who is at work, or find all done."""
    told("races", state_url, lambda: race(site, starter, races=5))


@pytest.mark.nightly
def test_a_sleeper_that_was_overtaken_writes_nothing(site: Site, starter: Starter, state_url: StateUrl) -> None:
    """A sync that slept longer than its lease wakes up, sees the takeover and ends with exit 3, the state untouched."""
    told("zombies", state_url, lambda: zombies(site, starter, state_url, number=1, invoices=40))


@pytest.mark.nightly
def test_the_lock_of_a_killed_sync_is_free_at_once(site: Site, starter: Starter, state_url: StateUrl) -> None:
    """After SIGKILL the next sync begins without waiting for the lease, and leaves everything there once."""
    told("kills", state_url, lambda: kills(site, starter, number=1, invoices=40))


ON_POSTGRES = pytest.mark.parametrize(
    "state_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)


@ON_POSTGRES
def test_a_database_that_hangs_up_ends_no_sync(site: Site, starter: Starter, state_url: StateUrl) -> None:
    """A sync that loses its sessions, the lock's among them, goes on over new ones and ends with exit 0."""
    told("sessions", state_url, lambda: hung_up(site, starter, state_url, number=1, invoices=40))
