"""Runs the commands of a page as its reader does: by a shell, in order, in one folder."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Self

import httpx
from tests.chaos import processes
from tests.documentation import foreign_programs, shell_programs
from tests.documentation.fences import ROOT
from tests.documentation.services import Service, answered, service_of, words_and_options
from tests.documentation.worlds import World, name_the_partner
from tests.partners.token_project import address_in
from tests.servers import free_port
from tests.waiting import WITHIN_S, eventually

PORTS = re.compile(r"\b(8080|8090|8400|8500|9000|9464)\b")  # that pages use; the test takes free ones
STANDARD = (  # programs that pages may use and that every reader has
    *("cat", "chmod", "cp", "curl", "cut", "date", "echo", "env", "grep", "head", "ls", "mkdir", "mv"),
    *("openssl", "printf", "rm", "sed", "seq", "sh", "sha256sum", "sleep", "sort", "tail", "tee", "touch", "tr", "wc"),
)
NEWEST_KEY = re.compile(r"crossdock (sandbox.* keys) revoke ID")
PYTHON = """\
#!/bin/bash
if [ "$1 $2" = "-m venv" ]; then mkdir -p "$3/bin" && touch "$3/bin/activate"; else exec {python} "$@"; fi
"""
ENDED_BY_A_SIGNAL = {0, 130}
WRONG_USAGE, UNBALANCED = 2, 70
SCRIPT = """\
. {place}/environment; cd "$(cat {place}/folder)"
trap 'export -p > {place}/environment; pwd > {place}/folder' EXIT
command_not_found_handle() {{ echo "$1" >> {place}/missing; return 127; }}
set -a -o pipefail {stops}
{text}
"""


@dataclass
class Ran:
    """What came of a block."""

    exit_code: int
    output: str
    errors: str
    commands: list[tuple[list[str], int]] = field(default_factory=list)


class Shell:
    """Args:
    place: A folder of the shell's own.
    world: Where the page's reader is.
    units: What the systemd units of the page start.
    """

    def __init__(self, place: Path, world: World, units: Sequence[str] = ()) -> None:
        self._place, self._names, self._units, self._ports = place, world.names, units, dict[str, str]()
        project = world.folder
        self._commands: list[tuple[list[str], int]] = []
        self._wrong: list[str] = []
        self._installed: list[Path] = []
        self._services: list[tuple[Service, ForkServerProcess, Path]] = []
        self._numbers = count(1)
        self._given = place / "given"
        self._given.write_text("correct horse battery staple\n", encoding="utf-8")
        own = {"PATH": str(place / "bin"), "HOME": str(place / "home"), "COLUMNS": "200", "LANG": "C.UTF-8"}
        exported = "".join(
            f"export {name}={json.dumps(value)}\n" for name, value in {**world.environment, **own}.items()
        )
        (place / "environment").write_text(exported, encoding="utf-8")
        (place / "folder").write_text(str(project), encoding="utf-8")
        (place / "home").mkdir()
        if (project / "pyproject.toml").exists():
            self._install(project)
        self._fill(place / "bin")

    def _fill(self, programs: Path) -> None:
        programs.mkdir()
        for name in STANDARD:
            shell_programs.link(programs, name)
        for name in ("python", "python3"):
            (programs / name).write_text(PYTHON.format(python=sys.executable), encoding="utf-8")
            (programs / name).chmod(0o755)
        for name in ("crossdock", *foreign_programs.PROGRAMS):
            shell_programs.place(programs, name, self._place / "socket")

    def __enter__(self) -> Self:
        self._listener = socket.socket(socket.AF_UNIX)
        folder = os.open(self._place, os.O_RDONLY)
        try:
            self._listener.bind(f"/proc/self/fd/{folder}/socket")  # the path itself may be too long
        finally:
            os.close(folder)
        self._listener.listen()
        threading.Thread(target=self._serve, name="documented commands", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        while self._services:
            self._end(*self._services.pop())

    def finish(self, *kept: str) -> None:
        """Interrupt the services that the page has started, except *kept*; each ends in order."""
        for started in [each for each in reversed(self._services) if each[0].name not in kept]:
            self._services.remove(started)
            service, process, log = started
            code = self._end(service, process, log)
            assert code in ENDED_BY_A_SIGNAL, f"{service.name} ended with {code}:\n{log.read_text()}"

    def _end(self, service: Service, process: ForkServerProcess, log: Path) -> int | None:
        if process.pid and process.is_alive():
            os.kill(process.pid, signal.SIGINT)
        process.join(WITHIN_S)
        process.kill()
        process.join()
        return process.exitcode

    def text_of(self, text: str) -> str:
        """A block of the page as it is run here."""
        text = NEWEST_KEY.sub(r"crossdock \1 revoke $(crossdock \1 list | tail -n 1 | cut -d ' ' -f 1)", text)
        for name, value in sorted(self._names.items(), key=lambda each: -len(each[0])):
            pattern = (
                rf"(?<![\w$-]){re.escape(name)}(?![\w=])" if name.isupper() or "STREAM" in name else re.escape(name)
            )
            text = re.sub(pattern, value.replace("\\", r"\\"), text)
        return PORTS.sub(lambda found: self.port(found[0]), text)

    def port(self, documented: str) -> str:
        """The free port that stands for a documented one."""
        return self._ports.setdefault(documented, str(free_port()))

    def put(self, name: str, text: str) -> None:
        """Write a file of the page into the folder where the reader is, unless it is there."""
        path = Path((self._place / "folder").read_text(encoding="utf-8").strip(), name)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.text_of(text), encoding="utf-8")

    def run(self, text: str, *, stops: bool) -> Ran:
        """Run a block.

        Args:
            stops: The first command that fails ends it.
        """
        self._commands = []
        if "curl " not in text:
            self.finish("sandbox", "demo")
        script = SCRIPT.format(place=self._place, text=self.text_of(text), stops="-e" if stops else "")
        done = subprocess.run(
            ["/bin/bash", "-c", script],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=WITHIN_S,
            env={},
        )
        assert not self._wrong, self._wrong
        missing = self._place / "missing"
        assert not missing.exists(), f"no such program here: {missing.read_text()}"
        return Ran(done.returncode, done.stdout, done.stderr, self._commands)

    # ---- what the small programs ask for

    def _serve(self) -> None:
        while True:
            try:
                wire, _ = self._listener.accept()
            except OSError:
                return  # the shell is closed
            threading.Thread(target=self._answer, args=(wire,), name="documented command", daemon=True).start()

    def _answer(self, wire: socket.socket) -> None:
        with wire, wire.makefile("rw", encoding="utf-8") as lines:
            asked = json.loads(lines.readline())
            try:
                code = self._done(asked)
            except Exception as error:  # noqa: BLE001  the test reports it
                self._wrong.append(f"{asked['program']} {' '.join(asked['arguments'])}: {error!r}")
                code = 99
            lines.write(f"{code}\n")

    def _done(self, asked: dict[str, Any]) -> int:
        arguments: list[str] = asked["arguments"]
        if foreign_programs.is_foreign(asked["program"], arguments):
            foreign_programs.check(asked["program"], arguments, Path(asked["folder"]))
            if asked["program"] == "pip":
                self._install(Path(asked["folder"]))
            return self._started_units(asked) if "enable --now" in " ".join(arguments) else 0
        if words_and_options(arguments)[0] == ["connect"]:
            return self._connected(asked, answered(arguments))
        service = service_of(arguments, self.port)
        if service:
            return self._start(service, asked)
        descriptors = Path("/proc", str(asked["pid"]), "fd")
        process = self._command(asked, answered(arguments), descriptors / "1", descriptors / "2")
        process.join(WITHIN_S)
        process.kill()
        process.join()
        code = process.exitcode if process.exitcode is not None else 98
        if arguments[:1] == ["new"]:
            name_the_partner(Path(asked["folder"]), asked["environment"]["PARTNER_URL"])
        self._commands.append((arguments, code))
        return code

    def _connected(self, asked: dict[str, Any], arguments: list[str]) -> int:
        """A person gives access, in a browser."""
        log = self._place / "connect"
        process = self._command(asked, arguments, log, log)
        httpx.get(address_in(log), follow_redirects=True, trust_env=False)
        process.join(WITHIN_S)
        self._commands.append((arguments, process.exitcode or 0))
        return process.exitcode or 0

    def _install(self, folder: Path) -> None:
        """Install the project in *folder* as ``pip install -e .`` does, for the commands of this page."""
        if folder == ROOT or not (folder / "pyproject.toml").exists():
            return
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        facts = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        facts.mkdir()
        about = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        (facts / "METADATA").write_text(about, encoding="utf-8")
        points = project.get("entry-points", {})
        lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in each.items()) for group, each in points.items()]
        (facts / "entry_points.txt").write_text("".join(lines), encoding="utf-8")
        self._installed.append(folder)

    def _started_units(self, asked: dict[str, Any]) -> int:
        """Start what systemd would start."""
        for line in self._units:
            program, *arguments = shlex.split(self.text_of(line))
            assert program == "crossdock", line
            service = service_of(arguments, self.port)
            assert service, line
            self._start(service, asked)
        return 0

    def _start(self, service: Service, asked: dict[str, Any]) -> int:
        for former in [each for each in self._services if each[0].takes == service.takes]:
            self._services.remove(former)
            self._end(*former)
        log = self._place / f"service-{next(self._numbers)}"
        process = self._command(asked, service.arguments, log, log)
        self._services.append((service, process, log))
        eventually(lambda: not process.is_alive() or (log.exists() and service.is_ready(log.read_text())), 60)
        code = process.exitcode or 0
        with Path("/proc", str(asked["pid"]), "fd", "1").open("a", encoding="utf-8") as shown:
            shown.write(log.read_text())
        self._commands.append((service.arguments, code))
        return code

    def _command(self, asked: dict[str, Any], arguments: list[str], out: Path, err: Path) -> ForkServerProcess:
        folders = (ROOT, ROOT / "core", ROOT / "connectors", *self._installed)
        python_path = os.pathsep.join(map(str, folders))
        environment = {**asked["environment"], "PYTHONPATH": python_path}
        program = str(Path(__file__).with_name("documented_command.py"))
        words = ("-P", program, asked["folder"], str(self._given), *arguments)
        return processes.start(words, environment, out, err)
