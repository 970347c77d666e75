"""A run that is suspended among its invoices, replaced, and woken up: what waited in its threads must not leave."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Literal

import pytest
from tests.chaos import contest
from tests.chaos.chance import chaos_seed
from tests.chaos.contest import Runner, Starter
from tests.chaos.test_one_winner import INVOICES_HEAD, begun, quiet, slow_down, starter
from tests.e2e.warehouse import CUSTOMERS, PRODUCTS, Site, expected, open_site, pass_time
from tests.waiting import eventually

from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.state import StateUrl
from crossdock.writing.delivery.state_writer import LEAVE_WITHIN_S

__all__ = ["starter"]  # a fixture

Profile = Literal["full", "no-idempotency"]
AGES_S = (25 * 3_600, 60, 48 * 3_600, 3_600)  # of the platform's clock, after and before its keys are forgotten


@contextmanager
def warehouse(
    folder: Path, monkeypatch: pytest.MonkeyPatch, url: StateUrl, profile: Profile, *, in_flight: int
) -> Iterator[Site]:
    """Customers and products, delivered in peace to a platform with or without idempotency keys."""
    settings = SandboxSettings(rate_per_min=600_000, burst=100_000, profile=profile)
    with SandboxServer(folder / "platform", settings) as platform, open_site(folder, platform, monkeypatch) as site:
        if url.drivername != "sqlite":
            site.edit("sqlite:///state.db", url.render_as_string(hide_password=False))
        site.edit("in_flight: 4", f"in_flight: {in_flight}\n  rate: {{per_minute: 600000, burst: 100000}}")
        if profile == "no-idempotency":
            site.edit("  rate:", "  idempotency: {enabled: false}\n  rate:")
        site.init()
        site.export("CUST_1.csv", CUSTOMERS)
        site.export("PROD_1.csv", PRODUCTS)
        assert site.sync().code == 0
        yield site
        slow_down(site, 0)


def suspended(site: Site, starter: Starter, url: StateUrl, profile: Profile, *, tries: int, invoices: int) -> int:
    """Suspend a run among *invoices* until another has done its work and the platform has forgotten; then wake it up.

    Returns:
        How many invoices the suspended runs had marked as on their way without the platform having seen them.
    """
    random, rows, waited = Random(chaos_seed()), [INVOICES_HEAD], 0
    for turn in range(tries):
        rows += _export(site, turn, invoices)
        slow_down(site, 20)
        sleeper = _suspend(site, starter, url, random.randint(1, invoices // 2), invoices)
        slow_down(site, 0)
        quiet(site)
        waited += len({int(key[1:]) for key in contest.sending(url)} - _made(site).keys())
        asleep_since = time.monotonic()
        assert starter.start(site.config, 1)[0].ended().code in {0, 1}
        if profile == "no-idempotency":  # a person looks at the platform, and says of each in doubt what became of it
            _resolve(site, delivered=False)
            assert site.sync().code in {0, 1}
        pass_time(site.platform.base_url, AGES_S[turn % len(AGES_S)])
        eventually(lambda since=asleep_since: time.monotonic() - since > 2 * LEAVE_WITHIN_S)  # type: ignore[misc]  # mypy infers no default
        before = contest.contents(url)
        sleeper.thaw()
        ended = sleeper.ended()
        assert ended.code == 3, ended
        assert "another run has taken over" in ended.err
        assert contest.changed(before, contest.contents(url)) == []
        quiet(site)
        _resolve(site, delivered=True)
        assert site.invoices() == expected("\n".join(rows)), f"lost or doubled in try {turn}"
        again = site.sync()
        assert (again.code, again.json["requests"]) == (0, 0), again.out
    return waited


def _export(site: Site, turn: int, number: int) -> list[str]:
    """No two invoices are equal, so that each effect says which one it is of."""
    numbers = range(turn * number + 1, (turn + 1) * number + 1)
    rows = [f"N{n};C{1 + n % 2};P{1 + n % 2};{n};1.50;EUR" for n in numbers]
    site.export(f"INV_{turn:03}.csv", "\n".join([INVOICES_HEAD, *rows, ""]))
    return rows


def _suspend(site: Site, starter: Starter, url: StateUrl, after: int, invoices: int) -> Runner:
    """A run that is suspended in the middle of its load, outside of transactions, and whose lease is over."""
    already = len(site.effects("invoice"))
    runner = begun(site, starter, after)
    while True:
        assert runner.at_work, runner.ended()
        runner.freeze()
        if contest.expire(url):
            break
        runner.thaw()
    assert len(site.effects("invoice")) - already < invoices, "it had nothing left to do"
    return runner


def _made(site: Site) -> dict[int, str]:
    """The ids of the invoices that the platform has, by their numbers."""
    return {int(Decimal(each["body"]["items"][0]["quantity"])): each["id"] for each in site.effects("invoice")}


def _resolve(site: Site, *, delivered: bool) -> None:
    """Resolve what is in doubt and was *delivered*, or was not, as the platform shows."""
    made = _made(site)
    for item in site.listed("--state", "in-doubt", "--limit", "100000"):
        name = made.get(int(item["key"][1:]))
        if (name is not None) is delivered:
            word = ("--delivered-as", name, "--yes") if name is not None else ("--not-delivered",)
            assert site.run("records", "resolve", item["stream"], item["key"], *word).code == 0


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("profile", "state_url"),
    [("full", "sqlite"), pytest.param("no-idempotency", "postgresql", marks=pytest.mark.postgres)],
    indirect=["state_url"],
)
def test_a_suspended_run_sends_nothing_when_it_wakes_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, starter: Starter, state_url: StateUrl, profile: Profile
) -> None:
    """Whatever waited in its threads is given back, whether or not the platform still knows the idempotency keys."""
    with warehouse(tmp_path, monkeypatch, state_url, profile, in_flight=12) as site:
        tries = 2 if profile == "full" else 1  # after keys are forgotten, and before; without keys both are the same
        waited = suspended(site, starter, state_url, profile, tries=tries, invoices=40)
        names = Counter(each["id"] for each in site.effects("invoice"))
    print(f"\nsuspended, {profile} on {state_url.drivername}: {waited} waited, {names.total()} invoices, none twice")
