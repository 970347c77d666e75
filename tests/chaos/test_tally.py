"""Law 3 under everything at once: both accounts balance after each run, and every record is in exactly one place."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from tests.chaos.books import (
    ACCOUNTS,
    CUSTOMERS,
    FATES,
    INVOICES,
    RESOURCE,
    Eye,
    Failpoints,
    Item,
    Named,
    Places,
    Platform,
    Rule,
    World,
    empty,
    failpoints,
    version_of,
)
from tests.chaos.chance import chaos_seed
from tests.chaos.scripted import Said, Scripted

from crossdock.runs.run_report import Report
from crossdock.state import PinnedTenant, StateUrl, create_or_upgrade_state

KEYS = range(1, 7)
PREFIX = {ACCOUNTS: "A", CUSTOMERS: "C", INVOICES: "I"}
SETTLED = ("unchanged", "suppressed", "delivered", "rejected", "replaced", "ignored", "dropped", "carried_on")
MANY = 100  # examples in which everything must have happened at least once
CRASHES = ("before commit", "after commit", "before send", "after send")


@dataclass(slots=True)
class Figures:
    """What was done over all examples; *crashes* are exceptions out of failpoints, not killed processes."""

    examples: int = 0
    steps: int = 0
    reports: int = 0
    runs: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    crashes: Counter[str] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)
    resolved: int = 0
    effects: int = 0


@dataclass(slots=True)
class Stage:
    """What all examples share."""

    folder: Path
    url: StateUrl
    server: Scripted
    eye: Eye
    points: Failpoints
    monkeypatch: pytest.MonkeyPatch
    figures: Figures = field(default_factory=Figures)


_ITEM = st.fixed_dictionaries(
    {
        "key": st.sampled_from(KEYS),
        "kind": st.sampled_from(["new", "new", "new", "new", "bad", "reverted", "keyless", "test", "again"]),
        "parent": st.sampled_from([0, *KEYS]),
    }
)

Page = tuple[str, list[dict[str, Any]]]
_PAGES = st.lists(
    st.tuples(st.sampled_from(list(RESOURCE)), st.lists(_ITEM, min_size=2, max_size=5)), min_size=1, max_size=3
)
_FATES = st.lists(st.sampled_from(["ok", *FATES]), min_size=2, max_size=6)
_MODE = st.sampled_from(["", "", "", *CRASHES, "connection refused"])


class Machine(RuleBasedStateMachine):
    """Exports, runs, and all that can happen to them, in any order."""

    stage: Stage

    @initialize(rule=st.sampled_from(["resend", "verify", "park"]))
    def begin(self, rule: Rule) -> None:
        stage = self.stage
        empty(stage.url)
        self.platform = Platform(keys=rule == "resend")
        stage.server.answer = self.platform.answer
        self.world = World(stage.folder, stage.url, stage.server.base_url, self.platform, rule, stage.monkeypatch)
        self.versions = count(1)
        self.history: dict[Named, list[Item]] = {}
        self.places: Places = stage.eye.look()
        stage.figures.examples += 1

    @rule(pages=_PAGES, fates=_FATES, mode=_MODE, countdown=st.integers(1, 4))
    def night(self, pages: list[Page], fates: list[str], mode: str, countdown: int) -> None:
        """New, changed, bad, reverted, late, repeated and keyless rows, and a run that meets all sorts of answers."""
        for stream, items in pages:
            self.world.books.put(stream, [self._item(stream, **item) for item in items])
        self.platform.fates.extend(fates)
        if mode == "connection refused":
            self.stage.server.refuse()
        try:
            self._run(self.world.sync, mode, countdown)
        finally:
            if mode == "connection refused":
                self.stage.figures.faults[mode] += 1
                self.stage.server.accept()

    @rule(pages=_PAGES, fates=_FATES)
    def plain_night(self, pages: list[Page], fates: list[str]) -> None:
        """The same, while crossdock itself has no trouble."""
        self.night(pages=pages, fates=fates, mode="", countdown=0)

    def _item(self, stream: str, key: int, kind: str, parent: int) -> Item:
        name = f"{PREFIX[stream]}{key}"
        past = self.history.setdefault((stream, name), [])
        if kind == "reverted" and past:
            return past[0]
        if kind == "again" and past:
            return past[-1]
        item: Item = {"id": name, "v": next(self.versions), "bad": kind == "bad"}
        if stream == ACCOUNTS and parent:
            item["parent"] = f"A{parent}"
        if stream == INVOICES:
            item["parent"] = f"C{parent or key}"
        if kind == "keyless":
            return item | {"id": None}
        if kind == "test":
            return item | {"id": f"T{key}"}
        past.append(item)
        return item

    @rule(what=st.sampled_from(["replay", "resolve", "drop"]), stream=st.sampled_from(list(RESOURCE)))
    def morning(self, what: str, stream: str) -> None:
        """A person looks at what did not get through."""
        if what == "replay":
            self._run(self.world.replay)
        elif what == "resolve":
            self._resolve()
        else:
            self.stage.figures.steps += 1
            self.world.drop(stream)
            self._look()

    def _resolve(self) -> None:
        self.stage.figures.steps += 1
        self.stage.figures.resolved += self.world.resolve()
        self._look()

    def _run(self, work: Callable[[], Report | None], place: str = "", countdown: int = 0) -> None:
        figures, before = self.stage.figures, self.places
        figures.steps += 1
        self.stage.points.arm(place, countdown, self.world.dead)
        try:
            report = work()
        finally:
            self.stage.points.disarm()
        self._look()
        if report is not None:
            figures.reports += 1
            self._balances(report, before, replayed=work == self.world.replay)

    def _balances(self, report: Report, before: Places, *, replayed: bool) -> None:
        told = report.as_json()
        assert "70" not in {str(error.exit_code) for error in report.errors.values()}, told
        for name, stream in told["streams"].items():
            rows, records = stream["rows"], stream["records"]
            in_records = rows["filtered"].get("test_data", 0) + rows["superseded"] + rows["rejected"]
            assert rows["read"] == in_records + rows["in_records"], (name, rows)
            entered = sum(records[term] for term in ("carried_over", "read", "gone"))
            assert entered == sum(records[term] for term in SETTLED), f"{name} {records} {told} {before}"
            assert records["delivered"] == records["created"] + records["updated"] + records["deleted"]
            if not replayed:
                self._is_true(name, stream, before, whole=not report.errors)

    def _is_true(self, name: str, stream: dict[str, Any], before: Places, *, whole: bool) -> None:
        """What an account says is what the source gave, and what the state held before and holds now."""
        rows, records, now = stream["rows"], stream["records"], self.places
        assert rows["read"] in {self.world.pulled[name], 0}, (name, rows, self.world.pulled)
        left, waited = before.unsettled[name], len(before.waiting[name])
        assert records["carried_over"] in {left, left + waited}, (name, records, left, waited)
        if whole:
            assert rows["read"] == self.world.pulled[name]
            assert records["carried_over"] == left + waited, (name, records, left, waited)
            unread = {key for stream, key in self.unread if f"wms.{stream}" == name}
            on = now.unsettled[name] + len(now.waiting[name] | unread)
            assert records["carried_on"] == on, (name, records, now.unsettled[name], now.waiting[name], unread)

    def _look(self) -> None:
        """Every record's newest version is in exactly one place, or still in its source."""
        self.places = places = self.stage.eye.look()
        self.unread: set[Named] = set()
        for named, (page, item) in self.world.books.newest.items():
            where = sorted(place for place, version in places.found.get(named, []) if version == item["v"])
            unread = page > places.cursors.get(named[0], 0)
            told = f"{named} {item} is {where}, unread {unread}, of {places.found.get(named)}"
            if where == ["rejected", "unsettled"]:
                where = ["unsettled"]  # a letter goes when its replay has an end
            assert len(where) == 1 or (not where and unread), told
            self.stage.figures.places[where[0] if where else "unread"] += 1
            if not where:
                self.unread.add(named)

    def teardown(self) -> None:
        """Once nothing goes wrong any more, everything ends where it belongs, and nothing happened twice."""
        if not hasattr(self, "world"):
            return
        self.platform.fates.clear()
        figures, world = self.stage.figures, self.world
        self._run(world.sync)
        self._resolve()
        self._run(world.sync)
        last = world.sync()
        assert last is not None
        assert (last.counters.requests, dict(last.errors)) == (0, {})
        self._stands()
        figures.runs.update(world.runs)
        figures.faults.update(self.platform.struck)
        figures.effects += len(self.platform.effects)

    def _stands(self) -> None:
        places = self.places = self.stage.eye.look()
        for (stream, key), (_, item) in self.world.books.newest.items():
            held = self.platform.stored(stream)
            (where,) = (place for place, version in places.found[stream, key] if version == item["v"])
            if where == "delivered":
                assert version_of(stream, held[key]) == item["v"], (stream, item, held[key])
            else:
                assert where in {"rejected", "dropped", "waiting"}, (stream, item, where)
        created = Counter(
            (path, body.get("externalId") or body["items"][0]["unitPrice"])
            for operation, path, body in self.platform.effects
            if operation == "create"
        )
        assert all(number == 1 for number in created.values()), f"twice: {created}"


def balances(folder: Path, url: StateUrl, monkeypatch: pytest.MonkeyPatch, *, examples: int, steps: int) -> Figures:
    """Play *examples* of at most *steps* steps each on a state."""
    with Scripted(lambda _asked: None) as server, failpoints() as points:
        create_or_upgrade_state(url, PinnedTenant(server.base_url, "acme"))
        stage = Stage(folder, url, server, Eye(url), points, monkeypatch)

        @seed(chaos_seed())
        class Seeded(Machine):
            pass

        Seeded.stage = stage
        chosen = settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            phases=[Phase.generate],  # shrinking takes minutes; the seed brings the same examples again
            suppress_health_check=list(HealthCheck),
        )
        try:
            run_state_machine_as_test(Seeded, settings=chosen)
        finally:
            stage.eye.close()
            stage.figures.crashes = points.raised
            print(f"\ntally on {url.drivername}: seed {chaos_seed()}, {stage.figures}")
    figures = stage.figures
    assert figures.examples >= examples, figures
    assert figures.faults.total() >= examples, f"too few faults: {figures}"
    assert figures.crashes.total() >= examples / 2, f"too few crashes: {figures}"
    if examples >= MANY:
        never = {*FATES, "connection refused"} - set(figures.faults)
        assert not never, f"never struck: {never}: {figures}"
        assert set(figures.places) == {"delivered", "rejected", "waiting", "unsettled", "dropped", "unread"}, figures
    return figures


def test_both_accounts_balance_whatever_happens(
    tmp_path: Path, state_url: StateUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad rows, every class of answer, crashes, replays and drops: no record is lost, doubled, or in two places."""
    began = time.monotonic()
    examples = 3 if state_url.drivername == "sqlite" else 2
    balances(tmp_path, state_url, monkeypatch, examples=examples, steps=15)
    print(f"{time.monotonic() - began:.1f} s")


def test_a_refused_first_step_is_refused_once(
    tmp_path: Path, state_url: StateUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An account in a circle whose first step the platform refuses is a dead letter, and is not sent each night."""
    platform = Platform(keys=True)
    with Scripted(lambda _asked: Said(422)) as server:
        create_or_upgrade_state(state_url, PinnedTenant(server.base_url, "acme"))
        world = World(tmp_path, state_url, server.base_url, platform, "resend", monkeypatch)
        world.books.put(ACCOUNTS, [{"id": "A1", "v": 1, "parent": "A1"}])
        reports = [world.sync(), world.sync()]
        eye = Eye(state_url)
        found = eye.look().found[ACCOUNTS, "A1"]
        eye.close()
    assert [report.counters.requests for report in reports if report] == [1, 0]
    assert found == [("rejected", 1)]


def test_a_run_that_is_stopped_between_streams_says_so(
    tmp_path: Path, state_url: StateUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt at the last request of a stream ends the run before the next one, with exit 130 and not with 0."""
    platform = Platform(keys=True)
    with Scripted(platform.answer) as server:
        create_or_upgrade_state(state_url, PinnedTenant(server.base_url, "acme"))
        world = World(tmp_path, state_url, server.base_url, platform, "resend", monkeypatch)
        world.books.put(CUSTOMERS, [{"id": "C1", "v": 1}])
        world.books.put(INVOICES, [{"id": "I1", "v": 1, "parent": "C1"}])
        platform.fates.append("interrupt")
        reports = [world.sync(), world.sync()]
    assert [(r.exit_code, r.status, r.counters.requests) for r in reports if r] == [
        (130, "incomplete", 1),
        (0, "done", 1),
    ]


def test_a_stream_that_begins_while_the_platform_is_down_is_not_skipped(
    tmp_path: Path, state_url: StateUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When all of one stream failed for good, the next one is still delivered, since its source is not read again."""
    platform = Platform(keys=False)
    with Scripted(platform.answer) as server:
        create_or_upgrade_state(state_url, PinnedTenant(server.base_url, "acme"))
        world = World(tmp_path, state_url, server.base_url, platform, "park", monkeypatch)
        world.books.put(ACCOUNTS, [{"id": f"A{n}", "v": 1} for n in range(12)])
        world.books.put(CUSTOMERS, [{"id": f"C{n}", "v": 1} for n in range(3)])
        platform.fates.extend(["failing"] * 12)
        report = world.sync()
    assert report is not None
    assert (report.balanced, report.tallies["wms.accounts"].records["carried_on"]) == (True, 12)
    assert report.tallies["wms.customers"].records["created"] == len(platform.effects) == 3
