"""People act in the console while a scheduler runs jobs: ``pytest tests/long/test_console_beside_scheduler.py -rP``.

Three minutes for each database. ``CROSSDOCK_CHAOS_SEED`` gives another seed to what people do; ``-rP`` shows what was
done, and how long runs took for each file while nobody did anything and while people did.
"""

from __future__ import annotations

import json
import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any

from tests.chaos.chance import chaos_seed
from tests.e2e.conftest import platform, site
from tests.e2e.test_console_each_action import BUSY, Desk, Stage
from tests.e2e.test_folder_warehouse import serve_folder
from tests.e2e.warehouse import Site
from tests.plain_browser import Browser, Page
from tests.waiting import eventually

from crossdock.state import StateUrl

__all__ = ["platform", "site"]  # fixtures

PHASES, PHASE_S = 8, 20.0
PEOPLE = 4
NEW_RECORDS = 40
PLACES: Sequence[tuple[str, str, dict[str, str]]] = (
    ("", "sync", {}),
    ("", "plan", {}),
    ("", "start-job", {}),
    ("", "pause-job", {"job": "other"}),
    ("", "resume-job", {"job": "other"}),
    ("records/rejected", "replay", {}),
    ("records/rejected", "drop", {}),
)
VIEWED = ("", "runs", "records", "records/rejected", "connections", "settings", "audit", "commands")
UNLOGGED = frozenset({"plan"})
NOTHING_DONE = "has already been run", "is paused; "  # by a job that is started


@dataclass(frozen=True, slots=True)
class Pressed:
    """A button that was pressed, with a reason that no other has, and the answer."""

    action: str
    reason: str
    answer: Page


@dataclass
class Crowd:
    """People at one console, who act until they are told to stop."""

    desks: Sequence[Desk]
    rng: random.Random
    pressed: list[Pressed] = field(default_factory=list)
    together: list[list[int]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def act(self, seconds: float) -> None:
        """Act each in a thread, after all have pressed the same button."""
        self._press_together()
        until = time.monotonic() + seconds
        with ThreadPoolExecutor(len(self.desks)) as pool:
            seeds = [self.rng.random() for _ in self.desks]
            for done in [pool.submit(self._act, *each, until) for each in zip(self.desks, seeds, strict=True)]:
                done.result()

    def _act(self, desk: Desk, seed: float, until: float) -> None:
        rng = random.Random(seed)
        while time.monotonic() < until:
            for place in rng.choices(VIEWED, k=3):
                assert desk.page(place).status == 200
            place, action, fields = rng.choice(PLACES)
            if previews := desk.links(place, action, **fields):
                self._press(desk, action, desk.browser.open(rng.choice(previews)))

    def _press(self, desk: Desk, action: str, preview: Page) -> int | None:
        if not any(each["method"] == "post" for each in preview.forms):
            return None  # nothing of it is left to do
        reason = f"reason {next(self._numbers)}"
        answer = desk.browser.send(preview, why=reason)
        assert answer.status in {200, 409}, answer.text
        self.pressed.append(Pressed(action, reason, answer))
        return answer.status

    def _press_together(self) -> None:
        eventually(lambda: bool(self.desks[0].links("records/rejected", "drop")))
        for address in self.desks[0].links("records/rejected", "drop")[:1]:
            previews = [each.browser.open(address) for each in self.desks]
            ready = threading.Barrier(len(self.desks))
            with ThreadPoolExecutor(len(self.desks)) as pool:
                statuses = list(pool.map(partial(self._press_at, ready), self.desks, previews))
            self.together.append([each for each in statuses if each is not None])

    def _press_at(self, ready: threading.Barrier, desk: Desk, preview: Page) -> int | None:
        ready.wait()
        return self._press(desk, "drop", preview)


@contextmanager
def exports(site: Site, numbers: Iterator[int]) -> Iterator[None]:
    """A file comes every second, with some new products and one whose price is no number."""
    over = threading.Event()

    def export() -> None:
        while not over.wait(1):
            number = next(numbers)
            lines = [f"N{number}-{each};Nail;0.10\n" for each in range(NEW_RECORDS)]
            whole = site.folder / "PROD.new"
            whole.write_text(f"SKU;NAME;PRICE\nBAD{number};Nail;x\n{''.join(lines)}", encoding="utf-8")
            whole.rename(site.out / f"PROD_{number:06}.csv")

    thread = threading.Thread(target=export, name="exports")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_people_act_while_jobs_run(site: Site, state_url: StateUrl) -> None:
    """Each button that was accepted is one row of the audit log, each record is created once, and nothing is locked."""
    serve_folder(site)
    site.edit("key: [SKU]", "key: [SKU]\n        order: any", within="products:")
    site.edit("sqlite:///state.db", state_url.render_as_string(hide_password=False))
    jobs = {
        "often": {"streams": ["wms.products"], "schedule": {"time_zone": "UTC", "every": "2s"}},
        "other": {"streams": ["wms.customers"], "schedule": {"time_zone": "UTC", "every": "5s"}},
    }
    site.config.write_text(f"{site.config.read_text()}jobs: {json.dumps(jobs)}\n")
    site.init()
    site.fill()
    assert site.sync().code == 0
    numbers, phases = count(), list[tuple[bool, datetime, datetime]]()
    with Stage(site.config, site.tenant) as stage:
        people = [
            stage.desk,
            *(Desk(site.config, site.tenant, Browser(stage.desk.browser.base_url)) for _ in range(PEOPLE - 1)),
        ]
        crowd = Crowd(people, random.Random(chaos_seed()))
        with exports(site, numbers):
            for number in range(PHASES):
                began, act = datetime.now(UTC), number % 2 == 1
                (crowd.act if act else time.sleep)(PHASE_S)
                phases.append((act, began, datetime.now(UTC)))
        outcomes = judged(stage.desk, crowd)
        stage.desk.done("", "sync")
        stage.end()
    created = Counter(site.names("product"))
    assert set(created.values()) == {1}
    wanted = {f"wms:N{each}-{place}" for each in range(next(numbers)) for place in range(NEW_RECORDS)}
    assert created.keys() == wanted | {"wms:P1", "wms:P2"}
    quiet, busy = (durations(site, [each for each in phases if each[0] is act]) for act in (False, True))
    alone, beside = statistics.median(quiet), statistics.median(busy)
    print(f"\n{state_url.drivername}: {dict(outcomes)}, {len(created):,} records created once")
    print(f"seconds for a file: {alone:.3f} in {len(quiet)} runs, {beside:.3f} in {len(busy)} with people beside them")


def judged(desk: Desk, crowd: Crowd) -> Counter[str]:
    """Compare what people were told with the audit log; return how often each action had each outcome."""
    texts = [desk.ended(each.answer).text if each.answer.status == 200 else "" for each in crowd.pressed]
    log = desk.audit()
    rows = Counter((each["reason"], each["outcome"]) for each in log)
    found = Counter[str]()
    for each, text in zip(crowd.pressed, texts, strict=True):
        done, refused = rows[each.reason, "done"], rows[each.reason, "refused"]
        if each.answer.status == 409:
            assert (done, refused) == (0, 0), each
            found["told that others were faster"] += 1
            continue
        assert "locked" not in text, text
        is_done = "exit code 0" in text or "exit code 1)" in text
        changed = is_done and each.action not in UNLOGGED and not any(words in text for words in NOTHING_DONE)
        assert done == changed, f"{text}\n{[row for row in log if row['reason'] == each.reason]}"
        assert done + refused <= 1
        outcome = "done" if is_done else "refused beside a run" if BUSY in text else "refused"
        found[f"{each.action}: {outcome}"] += 1
    assert [each.count(200) for each in crowd.together] == [1] * len(crowd.together)
    return found


def durations(site: Site, phases: Sequence[tuple[bool, datetime, datetime]]) -> list[float]:
    """Return the seconds for each file of the job's runs that began in one of *phases* and delivered something."""
    runs: list[dict[str, Any]] = site.run("runs", "--json", "--limit", "100000").json
    ended = [each for each in runs if each["job"] == "often" and each["seconds"] is not None and each["requests"]]
    began = [(datetime.fromisoformat(each["started_at"]), each) for each in ended]
    return [
        each["seconds"] / each["requests"] * NEW_RECORDS
        for at, each in began
        if any(first <= at < last for _, first, last in phases)
    ]
