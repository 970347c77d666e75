"""SIGKILL of processes that receive webhooks: nothing that was accepted is lost, nothing is done twice."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from random import Random

from tests.chaos import processes
from tests.chaos.checks import Trial
from tests.chaos.failing import LISTENING, NOTE_VARIABLE, Side
from tests.chaos.killed_syncs import FAILING
from tests.chaos.listen_stage import ListenStage, body_of, listen_stage, new_secret, signed, slow_body
from tests.chaos.listen_traffic import Traffic, planned
from tests.chaos.processes import CROSSDOCK
from tests.waiting import WITHIN_S, eventually

FIRST: tuple[tuple[str, Side], ...] = (("stored", "after"), ("fetching", "before"))
"""Between inbox and answer, and between answer and delivery."""
POINTS: tuple[tuple[str, Side], ...] = (
    *((name, side) for name, point in LISTENING.items() for side in point.sides if (name, side) not in FIRST),
    ("sent", "after"),
    ("settle_written", "before"),
)
"""Other places where a process strikes itself."""
OFTEN = frozenset({"received", "stored", "sent"})
"""Points that any process comes by several times."""


@dataclass
class Lives:
    """The processes that receive, one after the other.

    Attributes:
        share: Of all requests, sent in the life of one process.
    """

    stage: ListenStage
    traffic: Traffic
    trial: Trial
    random: Random
    share: float

    def __post_init__(self) -> None:
        self.log, self.note = self.stage.folder / "listen.log", self.stage.folder / "note"
        self.process: ForkServerProcess | None = None

    def start(self, point: str = "") -> ForkServerProcess:
        """A process that receives from now on."""
        program = ("-P", FAILING, point) if point else CROSSDOCK
        arguments = [*program, "-C", str(self.stage.config), "listen", "--address", str(self.stage.port)]
        environment, before = {**os.environ, NOTE_VARIABLE: str(self.note)}, self._said("receiving webhooks at")
        process = self.process = processes.start(arguments, environment, self.log, self.log)
        eventually(lambda: self._said("receiving webhooks at") > before or not process.is_alive())
        return process

    def _said(self, words: str) -> int:
        return self.log.read_text().count(words) if self.log.exists() else 0

    def struck(self, point: str, side: Side) -> None:
        """A life that ends by itself at a failpoint while webhooks are sent."""
        before = self.note.read_text() if self.note.exists() else ""
        nth = self.random.randint(1, 3) if point in OFTEN else 1
        process = self.start(f"{point}:{nth}:{side}")
        self.traffic.release(self.share)
        eventually(lambda: not process.is_alive())
        assert process.exitcode == -signal.SIGKILL, self.log.read_text()
        assert self.note.read_text().startswith(f"{before}{point}:")
        self.trial.injected.update([f"kill at {point}", "kills"])

    def killed(self) -> None:
        """A life that is killed from outside while webhooks are sent: once some of them were accepted, not all."""
        process, accepted = self.start(), self.traffic.accepted
        enough = accepted + self.random.randint(1, max(1, self.traffic.release(self.share) // 2))
        eventually(lambda: self.traffic.accepted >= enough)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL, self.log.read_text()
        self.trial.injected.update(["kill from outside", "kills"])

    def rotated(self) -> None:
        """A life in which the secret is replaced: both are known, the sender changes, the old one is forgotten."""
        old, new = self.stage.secret, new_secret()
        process = self.start()
        self.traffic.release(self.share)
        self._hang_up(process, new, old)
        self.traffic.rotate(new)
        self._hang_up(process, new)
        body = body_of("customers", "C0")
        assert self.stage.post(body, signed(old, body, name="late")).status_code == 401
        self.trial.injected["secret replaced"] += 1
        self.last()

    def _hang_up(self, process: ForkServerProcess, *known: str) -> None:
        self.stage.configure(*known)
        before = self._said("SIGHUP: watching")
        assert process.pid is not None
        os.kill(process.pid, signal.SIGHUP)
        eventually(lambda: self._said("SIGHUP: watching") > before)

    def last(self) -> None:
        """The process that lives delivers everything, and ends normally."""
        process = self.process
        assert process is not None
        eventually(lambda: not self.traffic.unsent and not self.stage.hints())
        process.terminate()
        process.join(WITHIN_S)
        assert process.exitcode == 0, self.log.read_text()

    def last_with_slow_bodies(self, slow: int) -> None:
        """The same beside so many requests whose bodies do not end, each of which is answered 408."""
        self.start()
        with ExitStack() as stack:
            wires = [stack.enter_context(slow_body(self.stage.port)) for _ in range(slow)]
            self.traffic.release(1)
            assert [wire.recv(100).split()[1:2] for wire in wires] == [[b"408"]] * slow
            self.last()
        self.trial.injected["slow bodies"] += slow


def killed_listening(
    folder: Path, *, seed: int, webhooks: int, copies: int, bad: int, large: int, slow: int, kills: int
) -> None:
    """Webhooks in several copies among forged and malformed ones; processes are killed, and the secret is replaced.

    At least *kills* processes are killed, half of them at points where something is just stored or delivered.
    """
    with Trial("listen", seed=seed) as trial, listen_stage(folder) as stage:
        trial.planned.update({"kills": kills, "secret replaced": 1, "slow bodies": slow})
        trial.planned.update(f"kill at {point}" for point, _ in FIRST)
        random = Random(seed)
        traffic = planned(stage, random, webhooks=webhooks, copies=copies, bad=bad, large=large)
        lives = Lives(stage, traffic, trial, random, 1 / (kills + 2))
        try:
            with traffic.sending():
                _lives(lives, kills, slow)
        finally:
            if lives.process is not None:
                lives.process.kill()
        trial.told["answers"] = dict(sorted(traffic.answers.items()))
        assert not traffic.wrong, traffic.wrong[:10]
        assert not (missing := trial.planned - trial.injected), f"planned and not injected: {dict(missing)}"
        stage.judge(traffic.keys)
        trial.told["records"] = stage.stored().total()


def _lives(lives: Lives, kills: int, slow: int) -> None:
    points = [*FIRST, *lives.random.sample(POINTS, len(POINTS))]
    for number in range(kills):
        if number == kills // 2:
            lives.rotated()
        if number % 2:
            lives.killed()
        else:
            lives.struck(*points[number // 2 % len(points)])
    lives.last_with_slow_bodies(slow)
