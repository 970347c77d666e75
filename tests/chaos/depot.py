"""A warehouse on SFTP, a sandbox in a process of its own, and crossdock between them, each command a process."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import yaml
from tests.chaos import processes
from tests.chaos.exports import NAMESPACE, ScheduledRun
from tests.chaos.failing import NOTE_VARIABLE, Side
from tests.chaos.processes import CROSSDOCK
from tests.e2e import platform_faults
from tests.e2e.project_folder import UNPACED, SandboxProcess
from tests.e2e.warehouse import CONFIG
from tests.ended_commands import Done

from crossdock.testing.sftp_server import SftpServer

HERE = Path(__file__).parent
SQLITE = "sqlite:///state.db"
REORDERED = ("-P", str(HERE / "reordered.py"))
WITHIN_S = 600.0


class Depot:
    """A folder with a config and a state; its files are served from *out*."""

    def __init__(
        self, folder: Path, sandbox: Any, sftp: SftpServer, *, in_flight: int, state: str, base_url: str
    ) -> None:
        self.folder, self.sandbox, self.out = folder, sandbox, sftp.folder / "out"
        self._sftp, self._numbers = sftp, count(1)
        self._began = int(time.time()) - 86_400
        self._note, self._config = folder / "struck", folder / "crossdock.yaml"
        text = CONFIG.format(base_url=base_url, tenant=sandbox.tenant, port=sftp.port, fingerprint=sftp.fingerprint)
        config: dict[str, Any] = yaml.safe_load(text)
        assert set(config["connections"]) == {NAMESPACE}
        config["state"] = state
        self.configure(config, in_flight, base_url)
        self._config.write_text(yaml.safe_dump(config, sort_keys=False))
        assert self.run("init").exit_code == 0

    def configure(self, config: dict[str, Any], in_flight: int, base_url: str) -> None:
        """Complete the config before it is written."""
        config["platform"] |= {
            "rate": {"per_minute": UNPACED.per_minute, "burst": UNPACED.burst},
            "retry": {"attempts": 20, "base_s": 0.02, "cap_s": 0.2},
            "in_flight": in_flight,
        }

    # ---- files

    def export(self, night: ScheduledRun, name: str = "") -> None:
        """Put the files of a night into the warehouse, a day old, under a new name if none is given."""
        number = next(self._numbers)
        for kind, text in night.files().items():
            path = self.out / f"{kind}_{name or f'{number:04}'}.csv"
            path.write_text(text, encoding="utf-8", newline="")
            os.utime(path, (self._began + number, self._began + number))

    # ---- commands

    def command(self, *arguments: str, program: tuple[str, ...] = CROSSDOCK) -> list[str]:
        return [*program, "-C", str(self._config), *arguments]

    def environment(self) -> dict[str, str]:
        secrets = {"CROSSDOCK_API_KEY": self.sandbox.api_key, "WMS_PASSWORD": self._sftp.password}
        return {**os.environ, **secrets, NOTE_VARIABLE: str(self._note)}

    def run(self, *arguments: str, program: tuple[str, ...] = CROSSDOCK) -> Done:
        """Run a command to its end."""
        return processes.finish(self.command(*arguments, program=program), self.environment(), WITHIN_S)

    def sync(self, *, expect: int = 0, program: tuple[str, ...] = CROSSDOCK) -> Done:
        """A sync that nothing kills, and that ends with this code."""
        done = self.run("sync", "--json", program=program)
        assert done.exit_code == expect, f"exit {done.exit_code}\n{done.stderr}{done.stdout}"
        return done

    def dead_letters(self) -> Counter[str]:
        """The keys of the records that crossdock tells its operator it refused."""
        done = self.run("records", "list", "--state", "rejected", "--limit", "100000", "--json")
        assert done.exit_code == 0, done.stderr
        return Counter(each["key"] for each in json.loads(done.stdout))

    # ---- kills

    def strike(self, name: str, nth: int, side: Side) -> None:
        """A sync that kills itself at a failpoint; fails unless it really did."""
        label = f"{name}:{nth}:{side}"
        self._note.unlink(missing_ok=True)
        done = self.run("sync", program=("-P", str(HERE / "failing.py"), label))
        assert done.exit_code == -signal.SIGKILL, f"{label} ended with {done.exit_code}\n{done.stderr}{done.stdout}"
        assert self._note.read_text() == f"{label}\n"

    def killed(self, due: Callable[[], bool]) -> bool:
        """Start a sync and kill it once *due* says so; False if it ended before."""
        with processes.running(self.command("sync"), self.environment()) as process:
            while process.is_alive() and not due():
                time.sleep(0.001)
            process.kill()
        return process.exitcode == -signal.SIGKILL

    # ---- the platform

    def set_faults(self, rates: Mapping[str, float], seed: int, **more: int) -> None:
        """From now on every write meets these faults."""
        faults = [{"name": name, "probability": rate, "route": "POST", **more} for name, rate in rates.items()]
        platform_faults.set_faults(self.sandbox.base_url, faults, seed)

    def end_faults(self) -> Counter[str]:
        """No more faults; returns how often each struck."""
        return platform_faults.end_faults(self.sandbox.base_url)


def open_sandbox(folder: Path) -> SandboxProcess:
    """An empty platform that no limit holds back."""
    return SandboxProcess(folder / "sandbox", UNPACED)


@contextmanager
def open_depot(
    folder: Path, sandbox: SandboxProcess, *, in_flight: int, state: str = SQLITE, base_url: str = ""
) -> Iterator[Depot]:
    """An empty warehouse and an empty state; *base_url* is what stands before the sandbox, if anything does."""
    served = folder / "served"
    (served / "out").mkdir(parents=True)
    with SftpServer(served) as sftp:
        yield Depot(folder, sandbox, sftp, in_flight=in_flight, state=state, base_url=base_url or sandbox.base_url)
