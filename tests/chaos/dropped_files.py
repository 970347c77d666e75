"""A warehouse that drops exports under thirty naming schemes, with all that goes wrong at night.

It is written from what warehouses do, and knows nothing of how crossdock compares names and times. Each case is read by
the real engine, from a folder or an OpenSSH server, and delivered to a small platform; a case is judged by what the
platform holds.
The short form is in `tests.chaos.test_dropped_files`, the long one in `tests.long.test_dropped_files`.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.chaos.books import Platform, empty
from tests.chaos.scripted import Scripted
from tests.servers import require

from crossdock.config.project import project
from crossdock.runs import sync_and_replay
from crossdock.runs.run_report import Report
from crossdock.state import PinnedTenant, StateUrl, create_or_upgrade_state
from crossdock.testing.manual_clock import ManualClock
from crossdock.testing.openssh_server import OpenSshServer
from crossdock.values.run_progress_and_messages import SilentProgress

START = datetime(2026, 11, 24, 1, tzinfo=UTC)  # so that a year ends meanwhile
KEYS = 6
EVENTS = ("none", "none", "correction", "second", "resent", "late", "growing")


class Scheme(NamedTuple):
    """How a warehouse names its exports.

    Attributes:
        name: Of strftime, with ``#`` for a number that rises by one.
        order: What its operator declares if crossdock asks; empty for ``modified``.
        corrected: The name of a correction, after the name of what it corrects.
    """

    name: str
    order: str = ""
    corrected: str = "-CORR"


SCHEMES = (
    Scheme("S_%Y%m%d_#", "S_{date:%Y%m%d}_{number}"),
    Scheme("S_%m-%d-%Y_#", "S_{date:%m-%d-%Y}_{number}"),
    Scheme("S_%d%m%Y_#", "S_{date:%d%m%Y}_{number}"),
    Scheme("S_%m%d%Y_#", "S_{date:%m%d%Y}_{number}"),
    Scheme("%Y/%m/%d/S_#", "{date:%Y/%m/%d}/S_{number}"),  # a folder for each day
    Scheme("S_%Y-%m-%d.#", "S_{date:%Y-%m-%d}.{number}"),
    Scheme("S_%d.%m.%Y-#", "S_{date:%d.%m.%Y}-{number}"),
    Scheme("S_%d-%m-%y_#", "S_{date:%d-%m-%y}_{number}"),
    Scheme("S_%y%m%d_#", "S_{date:%y%m%d}_{number}"),
    Scheme("S_%b-%d-%Y_#", "S_{date:%b-%d-%Y}_{number}"),
    Scheme("S_%d%b%Y_#", "S_{date:%d%b%Y}_{number}"),
    Scheme("S_%Y%j_#", "S_{date:%Y%j}_{number}"),
    Scheme("S_%Y%m%d%H%M%S", "S_{date:%Y%m%d%H%M%S}"),
    Scheme("S_%Y-%m-%dT%H-%M-%S", "S_{date:%Y-%m-%d}T{time:%H-%M-%S}"),
    Scheme("S_%Y%m%d_%I%M%p", "S_{date:%Y%m%d}_{time:%I%M%p}"),
    Scheme("S_%m%d%Y_%I%M%S%p", "S_{date:%m%d%Y}_{time:%I%M%S%p}"),
    Scheme("S_%Y%m%d_%H%M", "S_{date:%Y%m%d}_{time:%H%M}"),
    Scheme("S_%d%m%Y_%H%M", "S_{date:%d%m%Y}_{time:%H%M}"),
    Scheme("%Y%m%d_%H%M_S", "{date:%Y%m%d}_{time:%H%M}_S"),
    Scheme("%d%b%y-%H%M_S", "{date:%d%b%y}-{time:%H%M}_S"),
    Scheme("S_#", "S_{number}"),
    Scheme("S (#)", "S ({number})"),
    Scheme("S-v#", "S-v{number}"),
    Scheme("#_S", "{number}_S"),
    Scheme("S_%s", "S_{number}"),
    Scheme("S_%Y%m%d_v#", "S_{date:%Y%m%d}_v{number}"),
    Scheme("S_%m%d_#"),  # without a year
    Scheme("S_%a_#"),  # the day of the week
    Scheme("S_%H%M%S"),  # the time alone
    Scheme("S_@"),  # a name by chance
)


@dataclass(frozen=True, slots=True)
class Case:
    """What one warehouse does.

    Attributes:
        ahead_s: By how much the clock of its server is ahead of ours.
        times: What the modification time of a file is: when it was written, or when all of a night were copied.
        asks_first: Whether the order is declared only when crossdock asks for it.
    """

    seed: int
    scheme: Scheme
    mode: str
    archives: bool
    ahead_s: int
    times: str
    asks_first: bool
    nights: int

    @classmethod
    def drawn(cls, seed: int, nights: int) -> Case:
        random = Random(seed)
        scheme = SCHEMES[seed % len(SCHEMES)]
        return cls(
            seed=seed,
            scheme=scheme,
            mode=random.choice(("append", "snapshot")),
            archives=random.random() < 0.5 and "/" not in scheme.name,
            ahead_s=random.choice((0, 0, -120, 120, -3_600, 3_600, -86_400, 86_400)),
            times=random.choice(("written", "written", "copied")),
            asks_first=random.random() < 0.7,
            nights=nights,
        )


class _Clock(ManualClock):
    """Something happens the next time that a run waits."""

    meanwhile: Callable[[], None] | None = None

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            meanwhile()


class Export(NamedTuple):
    """A file, in the order of what it says."""

    place: int
    name: str
    rows: dict[str, str]
    written: datetime


@dataclass(slots=True)
class Warehouse:
    """Writes its exports into *folder*."""

    case: Case
    folder: Path
    random: Random
    exports: list[Export] = field(default_factory=list)
    held: Export | None = None  # made, and not yet there
    number: int = 0
    stock: dict[str, str] = field(default_factory=dict)

    def make(self, at: datetime, correcting: Export | None = None) -> Export:
        """The next export: of a snapshot all rows, otherwise some that have changed."""
        self.number += 1
        changed = self.random.sample(range(KEYS), 3)
        rows = {f"K{key}": f"v{self.number}" for key in changed}
        self.stock |= rows
        if self.case.mode == "snapshot":
            rows = dict(self.stock)
        name = at.strftime(self.case.scheme.name).replace("#", str(self.number + 7))
        name = name.replace("@", f"{self.random.getrandbits(40):x}")
        if correcting:
            name = correcting.name.removesuffix(".csv") + self.case.scheme.corrected
        return Export(self.number, f"{name}.csv", rows, at)

    def drop(self, export: Export, at: datetime | None = None, *, part: bool = False) -> None:
        """Write *export*, as changed at a time of the server; of a growing one the first bytes."""
        text = "SKU,NAME\n" + "".join(f"{key},{value}\n" for key, value in sorted(export.rows.items()))
        path = self.folder / export.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text[: len(text) // 2] if part else text)
        moment = (at or export.written).timestamp() + self.case.ahead_s
        os.utime(path, (int(moment), int(moment)))
        if not part and export not in self.exports:
            self.exports.append(export)

    def truth(self) -> dict[str, str]:
        """What the exports that were dropped say together."""
        found: dict[str, str] = {}
        for export in sorted(self.exports):
            found |= export.rows
        return found


@dataclass(slots=True)
class Stage:
    """A platform that takes everything, and a state.

    Attributes:
        connection: Where the exports in *folder* are read from.
        told: How many nights ended with each exit code.
    """

    folder: Path
    url: StateUrl
    server: Scripted
    connection: Mapping[str, object]
    told: Counter[int] = field(default_factory=Counter)
    _asked: bool = False  # of this case's order

    def play(self, case: Case) -> str:
        """What is wrong after the nights of *case*; empty if nothing is."""
        empty(self.url)
        platform, clock = Platform(keys=True), _Clock(START)
        self.server.answer = platform.answer
        out = self.folder / f"out{case.seed}"
        (out / "done").mkdir(parents=True)
        warehouse = Warehouse(case, out, Random(case.seed))
        declares = not case.asks_first
        for night in range(case.nights):
            begin = clock.now()
            if wrong := self._night(case, warehouse, clock, platform, declares=declares):
                return f"night {night}: {wrong}"
            declares = declares or self._asked
            clock.advance((begin + timedelta(days=1) - clock.now()).total_seconds())
        return ""

    def _night(self, case: Case, warehouse: Warehouse, clock: _Clock, platform: Platform, *, declares: bool) -> str:
        """One night: exports are dropped, then crossdock runs, as often as its operator is asked for something."""
        random, self._asked = warehouse.random, False
        event = random.choice(EVENTS)
        earlier = warehouse.held
        minutes = iter(range(7, 600, 61))

        def next_at() -> datetime:
            return clock.now() + timedelta(minutes=next(minutes), seconds=random.randint(0, 59))

        dropped = [warehouse.make(next_at())]
        if event == "correction" and case.scheme.name[-1] not in "#@" and case.scheme.order:
            dropped.append(warehouse.make(next_at(), correcting=dropped[0]))
        elif event in {"second", "correction"}:
            dropped.append(warehouse.make(next_at()))
        if event == "late" and not warehouse.held:  # it is made in its turn, and dropped on another night
            warehouse.held = dropped.pop(0)
        clock.advance(11 * 3_600)
        copied = clock.now() - timedelta(minutes=30) if case.times == "copied" else None
        growing = dropped[-1] if event == "growing" and dropped else None
        for export in dropped:
            warehouse.drop(export, copied, part=export is growing)
        if growing:
            clock.meanwhile = lambda: warehouse.drop(growing, clock.now())
        late = earlier if earlier and event != "late" else None
        nothing_tells = late and copied and not case.scheme.order  # that the late one is older, if times differ
        if event == "resent" and warehouse.exports and not nothing_tells:
            again = warehouse.exports[-1]
            warehouse.drop(again, clock.now() - timedelta(minutes=20))
        if late:
            warehouse.held = None
            warehouse.drop(late, copied)
        report = self._sync(case, clock, declares=declares)
        clock.meanwhile = None
        for attempt in range(3):
            if report.exit_code == 0:
                break
            if wrong := self._refusal(report, warehouse):
                return wrong
            if growing and growing not in warehouse.exports:
                warehouse.drop(growing, clock.now())
            elif not declares:
                declares = self._asked = True
            elif late and (warehouse.folder / late.name).exists():  # the operator moves it away
                (warehouse.folder / late.name).unlink()
                warehouse.exports.remove(late)
            elif copied and not case.scheme.order and len(dropped) > 1:  # only the operator knows which is newer
                warehouse.drop(dropped[-1], copied + timedelta(minutes=1))
            elif attempt:
                break
            clock.advance(600)
            report = self._sync(case, clock, declares=declares)
        clock.advance(600)
        if report.exit_code == 0 and growing:
            report = self._sync(case, clock, declares=declares)
        if report.exit_code:
            said = [str(error) for error in report.errors.values()]
            return f"{event}: all that was asked for is done, and still exit {report.exit_code}: {said}"
        held = {body["sku"]: body["name"] for body in platform._stored.values()}
        wanted = warehouse.truth()
        if {key: value for key, value in held.items() if key in wanted} != wanted:
            return f"{event}: exit 0, the platform has {held} instead of {wanted}; files {sorted(warehouse.exports)}"
        return "" if report.balanced else "the tally does not balance"

    def _refusal(self, report: Report, warehouse: Warehouse) -> str:
        """What is wrong with how a run was refused: it must name a file, and do as refusals do."""
        said = "\n".join(map(str, report.errors.values()))
        names = {path.name for path in warehouse.folder.rglob("*.csv")}
        if report.exit_code not in {1, 3, 4} or not any(name in said for name in names):
            return f"exit {report.exit_code} without the name of a file: {said}"
        return ""

    def _sync(self, case: Case, clock: ManualClock, *, declares: bool) -> Report:
        report = sync_and_replay.sync(
            project.load(self._config(case, declares=declares)),
            [],
            clock=clock,
            progress=SilentProgress(),
            interrupt=threading.Event(),
        )
        self.told[report.exit_code] += 1
        return report

    def _config(self, case: Case, *, declares: bool) -> Path:
        scheme = case.scheme
        stream: dict[str, Any] = {
            "files": f"out{case.seed}/{'*/' * scheme.name.count('/')}*.csv",
            "mode": case.mode,
            "key": ["SKU"],
            "resource": "product",
            "map": {"sku": "SKU", "name": "NAME"},
        }
        if case.archives:
            stream["archive"] = f"out{case.seed}/done"
        if declares:
            forms = [f"{scheme.order}.csv", f"{scheme.order}{scheme.corrected}.csv"]
            stream["order"] = {"name": forms} if scheme.order else "modified"
        path = self.folder / "c.yaml"
        auth = {"kind": "api_key", "token": "env:KEY"}
        config = {
            "platform": {"base_url": self.server.base_url, "tenant": "acme", "auth": auth},
            "state": self.url.render_as_string(hide_password=False),
            "connections": {"wms": {**self.connection, "streams": {"products": stream}}},
        }
        path.write_text(json.dumps(config))
        return path


FOLDER = {"kind": "folder_warehouse", "path": "."}


@contextmanager
def serving(folder: Path) -> Iterator[Mapping[str, object]]:
    """The connection to an OpenSSH server with the files in *folder*."""
    require(OpenSshServer.available(), "an OpenSSH server")
    with OpenSshServer(folder) as ssh, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSH_KEY", ssh.client_key)
        yield {
            "kind": "sftp_warehouse",
            "host": ssh.host,
            "port": ssh.port,
            "user": ssh.user,
            "private_key": "env:SSH_KEY",
            "host_key": ssh.fingerprint,
        }


@contextmanager
def open_stage(folder: Path, url: StateUrl, connection: Mapping[str, object]) -> Iterator[Stage]:
    with Scripted(lambda _asked: None) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEY", "k")
        create_or_upgrade_state(url, PinnedTenant(server.base_url, "acme"))
        yield Stage(folder, url, server, connection)


def the_newest_row_wins(
    folder: Path,
    url: StateUrl,
    first: int,
    cases: int,
    nights: int,
    connection: Mapping[str, object] = FOLDER,
) -> Counter[int]:
    """Whatever a warehouse drops: the platform equals it, or a run has named the file that it waits for.

    Returns:
        How many runs ended with each exit code.
    """
    with open_stage(folder, url, connection) as stage:
        for seed in range(first, first + cases):
            case = Case.drawn(seed, nights)
            wrong = stage.play(case)
            assert not wrong, f"{wrong}\n{case}"
    return stage.told
