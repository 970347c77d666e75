"""What crossdock promises of its delivery, each promise once, as a function of size.

The short forms are in `tests.chaos.test_promises`, the long ones in `tests.long.test_chaos`.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from tests.chaos.checks import Trial, attempts, attempts_seen, bytes_by_key, requests
from tests.chaos.depot import REORDERED, SQLITE, Depot, open_depot, open_sandbox
from tests.chaos.exports import Exports, Invoice, ScheduledRun, product_body
from tests.chaos.failing import FAILPOINTS, Failpoint
from tests.chaos.systems import PLATFORM, System
from tests.e2e.warehouse import FORWARD, LOSE, Fate, Front, Seen

# ---- nothing lost in a crash


def nothing_lost_in_a_crash(
    folder: Path,
    *,
    records: int,
    rounds: int,
    kills: int,
    in_flight: int,
    state: str = SQLITE,
    sides: int = 2,
    system: System = PLATFORM,
    at: Sequence[str] = (),
) -> None:
    """Whatever instant a process is killed at, what it did is known and what it did not do is done later.

    Every night brings new records and is killed once; what it leaves is the next one's to send.

    Args:
        records: That must be at the platform in the end.
        rounds: How often each failpoint strikes on each of its sides.
        kills: How many more nights are killed from outside, at random instants.
        sides: On how many of its sides each failpoint strikes; on some chance decides.
        at: The failpoints; none are all of the system.
    """
    with (
        Trial("nothing lost in a crash") as trial,
        system.open(folder) as sandbox,
        system.depot(folder, sandbox, in_flight=in_flight, state=state) as depot,
    ):
        random = trial.random
        exports = system.exports(random)
        points = [(name, FAILPOINTS[name]) for name in at or system.failpoints] * rounds
        strikes = [(name, s) for name, point in points for s in random.sample(point.sides, len(point.sides))[:sides]]
        random.shuffle(strikes)
        size = -(-records // (len(strikes) + kills + 1))
        for name, side in strikes:
            depot.export(_night(exports, size, system))
            nth = random.randint(1, _certain_calls(FAILPOINTS[name], size, in_flight, system))
            depot.strike(name, nth, side)
            trial.injected[f"{name} {side}"] += 1
        trial.planned.update(f"{name} {side}" for name, side in strikes)
        _kill_from_outside(depot, exports, trial, random, kills=kills, size=size, system=system)
        depot.export(_night(exports, size, system, last=True))
        depot.sync(expect=1)  # some records were refused
        trial.told["SIGKILLs"] = trial.injected.total()
        trial.told["resends"] = attempts(requests(sandbox)).resends
        made = trial.judge(exports.expected, sandbox).records
        assert made >= records, f"{made} records are fewer than {records}"
        missing = Counter(exports.refused) - depot.dead_letters()
        assert not missing, f"neither delivered nor refused: {missing}"


def _night(exports: Exports, size: int, system: System, *, last: bool = False) -> ScheduledRun:
    """A night of *size* records that are sent; one invoice waits for the next night's customer, one is refused."""
    few = max(2, size // 10)
    invoices = size - 2 * few if system.parents else size
    return exports.night(few, few, invoices, waiting=0 if last or not system.parents else 1, refused=1)


def _certain_calls(point: Failpoint, size: int, in_flight: int, system: System) -> int:
    """How often a night of *size* records is certain to come by a failpoint."""
    sent = size - 1  # one may wait
    return {"night": 1, "stream": system.streams, "turn": -(-sent // in_flight), "record": sent}[point.often]


def _kill_from_outside(
    depot: Depot, exports: Exports, trial: Trial, random: Random, *, kills: int, size: int, system: System
) -> None:
    """Kill syncs at random instants: every other one after some effects, the others after some time."""
    trial.planned["SIGKILL at random"] = kills
    began = time.monotonic()
    depot.sync(expect=1)
    lasts_s = time.monotonic() - began
    depot.set_faults({"slow": 1.0}, trial.seed, ms=20)  # most requests are on their way when it comes
    for number in range(3 * kills):  # a sync that ended before its kill is no proof, and another one is tried
        if trial.injected["SIGKILL at random"] == kills:
            break
        depot.export(_night(exports, size, system))
        if number % 2:
            at = time.monotonic() + random.uniform(0.1, 1.0) * lasts_s
            struck = depot.killed(lambda at=at: time.monotonic() > at)  # type: ignore[misc]  # mypy infers no default
        else:
            effects = depot.sandbox.effects()[-1]["seq"] + random.randrange(1, size // 2)
            struck = depot.killed(lambda effects=effects: depot.sandbox.has_effects(effects))  # type: ignore[misc]
        trial.injected["SIGKILL at random"] += struck
    depot.end_faults()


# ---- one effect each


def one_effect_each(folder: Path, *, invoices: int, in_flight: int, system: System = PLATFORM) -> None:
    """Where answers are lost, cut, or errors after the work, each record has one effect."""
    with (
        Trial("one effect each") as trial,
        system.open(folder) as sandbox,
        system.depot(folder, sandbox, in_flight=in_flight) as depot,
    ):
        exports = system.exports(trial.random)
        depot.export(exports.night(invoices // 20, invoices // 20, invoices))
        for name, rate in system.faults.items():
            trial.plan(name, rate, exports.expected.size)
        depot.set_faults(system.faults, trial.seed)
        depot.sync()
        trial.injected += depot.end_faults()
        tries = attempts(requests(sandbox))
        trial.told["resends"] = tries.resends
        found = tries.first, len(sandbox.effects())
        assert found == (exports.expected.size,) * 2, f"keys and effects {found} of {exports.expected.size} records"
        trial.judge(exports.expected, sandbox)


# ---- same key, same bytes


def same_key_same_bytes(
    folder: Path, *, invoices: int, kill_at: int, in_flight: int, system: System = PLATFORM
) -> None:
    """What one build wrote down goes out with its bytes, in whatever order a later build writes members.

    Answers are lost, some of them each time, until the process is killed in the middle of sending again.

    Args:
        kill_at: It is killed when it has sent invoices again so many times.
    """
    with (
        Trial("same key, same bytes") as trial,
        system.open(folder) as sandbox,
        Front(sandbox.base_url) as front,
        system.depot(folder, sandbox, in_flight=in_flight, base_url=front.base_url) as depot,
    ):
        exports = system.exports(trial.random)
        depot.export(exports.night(invoices // 10, invoices // 10, invoices))
        losing = _Losing(kill_at, system.path)
        front.fate = losing
        trial.injected["SIGKILL in mid-retry"] += depot.killed(losing.due.is_set)
        front.fate = lambda _: FORWARD
        sandbox.settle()
        earlier = {each.key for each in front.seen}
        sent_before = len(front.seen)
        depot.export(exports.night(2, 2, max(2, invoices // 10)))
        done = depot.run("sync", program=REORDERED)
        assert done.exit_code in {0, 1}, done.stderr  # it ran to its end

        later = front.seen[sent_before:]
        trial.injected["lost answer"] += losing.lost
        trial.injected["resend by another build"] += len({each.key for each in later} & earlier)
        trial.injected["other order"] += sum(each.key not in earlier and _is_backwards(each.body) for each in later)
        least = {"SIGKILL in mid-retry": 1, "lost answer": kill_at, "resend by another build": 5, "other order": 5}
        trial.planned.update(least)
        tries = attempts_seen(front.seen)
        trial.told |= {"keys": tries.first, "resends": tries.resends}
        several = {key: len(bodies) for key, bodies in bytes_by_key(front.seen).items() if len(bodies) > 1}
        assert not several, f"other bytes under the same key: {several}"
        assert "422" not in sandbox.by_status(), "the platform saw other bytes under a known key"
        trial.judge(exports.expected, sandbox)


class _Losing:
    """The fate of requests: every other key loses its first answer, and one invoice in five all of them.

    All is done that was asked for. *due* is set at the resend to kill at; after it no answer arrives.
    """

    def __init__(self, kill_at: int, path: str) -> None:
        self._kill_at, self._path = kill_at, path
        self._tries: Counter[str] = Counter()
        self._never: set[str] = set()
        self._again = 0
        self._lock = threading.Lock()
        self.due = threading.Event()
        self.lost = 0

    def __call__(self, seen: Seen) -> Fate:
        is_invoice = seen.path == self._path
        with self._lock:
            self._tries[seen.key] += 1
            first = self._tries[seen.key] == 1
            if first and is_invoice and len(self._tries) % 5 == 0:
                self._never.add(seen.key)
            self._again += is_invoice and not first
            if self._again >= self._kill_at:
                self.due.set()
            lose = self.due.is_set() or seen.key in self._never or (first and len(self._tries) % 2 == 1)
            self.lost += lose
            return LOSE if lose else FORWARD


def _is_backwards(body: bytes) -> bool:
    names = list(json.loads(body))
    return len(names) > 1 and names == sorted(names, reverse=True)


# ---- rerun is harmless


def rerun_is_harmless(folder: Path, *, records: int, in_flight: int) -> None:
    """The same night again, in whatever guise, does nothing at the platform."""
    with (
        Trial("rerun is harmless") as trial,
        open_sandbox(folder) as sandbox,
        open_depot(folder, sandbox, in_flight=in_flight) as depot,
    ):
        random = trial.random
        exports = Exports(random)
        night = exports.night(records // 10, records // 10, records - 2 * (records // 10), refused=2)
        depot.export(night)
        depot.sync(expect=1)
        trial.judge(exports.expected, sandbox)
        done = len(sandbox.effects()), attempts(requests(sandbox)).by_key.total()
        for guise, files in (
            ("the same files", None),
            ("identical files under new names", night),
            ("the same rows in another order", night.shuffled(random)),
        ):
            if files:
                depot.export(files)
            depot.sync(expect=1)  # what was refused is open
            assert (len(sandbox.effects()), attempts(requests(sandbox)).by_key.total()) == done, guise
            trial.injected[guise] += 1
        for turn in ("all dead letters", "all dead letters again"):
            replayed = depot.run("records", "replay", "--json")
            assert replayed.exit_code == 1, f"{replayed.stderr}{replayed.stdout}"  # as wrong as before
            assert json.loads(replayed.stdout)["requests"] == 0 == len(sandbox.effects()) - done[0], turn
            trial.injected[turn] += 1
        trial.told["new effects"] = len(sandbox.effects()) - done[0]
        trial.judge(exports.expected, sandbox)


def another_order_is_no_change(folder: Path, *, records: int, in_flight: int) -> None:
    """What was delivered is unchanged for a build that writes the same members in another order."""
    with (
        Trial("another order is no change") as trial,
        open_sandbox(folder) as sandbox,
        open_depot(folder, sandbox, in_flight=in_flight) as depot,
    ):
        exports = Exports(trial.random)
        night = exports.night(records // 10, records // 10, records - 2 * (records // 10))
        depot.export(night)
        depot.sync()
        done = len(sandbox.effects())
        depot.export(night.shuffled(trial.random))
        depot.sync(program=REORDERED)
        trial.told["new effects"] = len(sandbox.effects()) - done
        trial.judge(exports.expected, sandbox)
        assert trial.told["new effects"] == 0, "what was delivered was sent again"


# ---- not a cent drifts

LARGEST = "999999999999999.9999"
EDGES = (
    LARGEST,
    f"-{LARGEST}",
    "0.0001",
    "-0.0001",
    "123456789012345.6789",
    "900719925474099.3",
    "0.1",
    "1.10",
    "-0.0000",
)


def not_a_cent_drifts(folder: Path, *, amounts: int, in_flight: int, state: str = SQLITE) -> None:
    """A number in a file is the same number at the platform, through every table of the state that can hold it.

    Prices of products go out from the intents of a process that was killed before it sent them. An invoice with all
    amounts waits for its customer, and goes out from the waiting records; in the same run each price becomes another
    one, which an update carries.
    """
    with (
        Trial("not a cent drifts") as trial,
        open_sandbox(folder) as sandbox,
        open_depot(folder, sandbox, in_flight=in_flight, state=state) as depot,
    ):
        values = [*EDGES, *_drawn(amounts, trial.seed)]
        long = sum(map(_is_long, values))
        trial.told |= {"amounts": len(values), "of 19 digits": long}
        assert long > amounts // 20, f"{long} of {len(values)} amounts have all digits"
        goods = [(f"S{number}", "Amsel", value) for number, value in enumerate(values)]
        lines = tuple((sku, value, other) for (sku, _, value), other in zip(goods, reversed(values), strict=True))
        invoice = Invoice("1", "C1", "EUR", lines)
        exports = Exports(trial.random)
        exports.expect(ScheduledRun([], goods, []))
        depot.export(ScheduledRun([], goods, [invoice]))
        depot.strike("committed", 1, "before")  # the first prices are in the state, and none has left
        trial.injected["committed before"] += 1
        depot.sync(expect=1)  # the invoice waits
        trial.judge(exports.expected, sandbox)

        exports.expect(ScheduledRun([("C1", "Amsel")], [], [invoice]))
        moved = [(sku, name, value) for (sku, name, _), value in zip(goods, values[1:] + values[:1], strict=True)]
        exports.expected.products = Counter(product_body(*each) for each in moved)
        depot.export(ScheduledRun([("C1", "Amsel")], moved, []))
        depot.sync(expect=4)  # almost all prices change
        (pending,) = json.loads(depot.run("approve", "--json").stdout)
        assert depot.run("approve", pending["stream"], str(pending["number"])).exit_code == 0
        depot.sync()
        trial.judge(exports.expected, sandbox)


def _drawn(number: int, chosen: int) -> list[str]:
    """Amounts as files spell them, with signs, idle zeros, and a good share that has all 19 digits."""
    drawn: list[str] = []
    spellings = st.from_regex(r"[+-]?([0-9]{1,15}|[1-9][0-9]{14})(\.([0-9]{1,4}|[0-9]{3}[1-9]))?", fullmatch=True)

    @seed(chosen)
    @settings(max_examples=number, database=None, phases=[Phase.generate])
    @given(spellings)
    def draw(spelling: str) -> None:
        drawn.append(spelling)

    draw()
    return drawn


def _is_long(spelling: str) -> bool:
    whole, _, part = spelling.lstrip("+-0").partition(".")
    return len(whole) == 15 and len(part.rstrip("0")) == 4
