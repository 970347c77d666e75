"""An SFTP server whose wire fails: it stands between ``sshd`` and ``sftp-server``, and counts what changes files.

Run by ``sshd`` as ``sftp_wire.py FOLDER PLAN``. The plan is a JSON file that the test writes, and the counts of all
sessions are beside it. A step is a request that changes something. At the step of the plan the wire

- ``before``: kills the client and does not pass the request on,
- ``done``: passes it on, and kills the client in place of answering,
- ``answered``: passes it and its answer on, and kills the client then,
- ``lost``: passes it on, and breaks the connection in place of answering,
- ``copied``: copies what should be renamed, has the partner take it, and breaks the connection,
- ``full``: answers each write from this step on, for one session, that it failed.

``poll`` of the plan is a command that the partner runs as soon as a file was renamed. ``denied`` lists what it permits
nobody: ``rename``, and ``read`` of what is in the folder ``in``. ``plain`` hides that it can rename at once.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

VERSION, OPEN, WRITE, REMOVE, RENAME, STATUS, EXTENDED = 2, 3, 6, 13, 18, 101, 200
SERVER = "/usr/lib/openssh/sftp-server"


def packet(stream: IO[bytes]) -> bytes:
    """Read one message with its length; nothing at the end."""
    head = stream.read(4)
    return head + stream.read(int.from_bytes(head)) if len(head) == 4 else b""


def is_step(message: bytes) -> bool:
    """Return whether a request changes a file."""
    kind = message[4]
    writes = kind == OPEN and bool(int.from_bytes(message[13 + int.from_bytes(message[9:13]) :][:4]) & 2)
    return writes or kind in {WRITE, REMOVE, RENAME, EXTENDED}


def is_rename(message: bytes) -> bool:
    """Return whether a request renames a file."""
    return message[4] == RENAME or (message[4] == EXTENDED and message[13:].startswith(b"posix-rename"))


def _strings(fields: bytes) -> list[str]:
    found = []
    while fields:
        size = int.from_bytes(fields[:4])
        found.append(fields[4 : 4 + size].decode())
        fields = fields[4 + size :]
    return found


def _status(message: bytes, code: int) -> bytes:
    body = struct.pack(">BII", STATUS, int.from_bytes(message[5:9]), code) + struct.pack(">II", 0, 0)
    return struct.pack(">I", len(body)) + body


class Wire:
    """One session."""

    def __init__(self, plan: Path) -> None:
        self._plan, self._steps = plan, plan.with_suffix(".steps")
        self._server = subprocess.Popen([SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._is_full = False

    def serve(self) -> None:
        """Pass messages on, one request at a time, until the client ends."""
        out = sys.stdout.buffer
        while message := packet(sys.stdin.buffer):
            fault = self._fault(message)
            if fault == "before":
                self._kill()
                return
            if fault == "copied":
                shutil.copy(*_strings(message[9:]))
                subprocess.run(self._read()["poll"], check=True)
                return
            if fault == "full" or (self._is_full and message[4] == WRITE):
                self._is_full = True
                answer = _status(message, 4)
            elif self._is_denied(message):
                answer = _status(message, 3)
            else:
                answer = self._answer(message)
            if fault == "done":
                self._kill()
            if fault in {"done", "lost"}:
                return
            out.write(answer)
            out.flush()
            if fault == "answered":
                self._kill()
                return

    def _answer(self, message: bytes) -> bytes:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(message)
        self._server.stdin.flush()
        answer = packet(self._server.stdout)
        if answer[4] == VERSION and self._read().get("plain"):
            answer = struct.pack(">IBI", 5, VERSION, 3)
        if is_rename(message) and (command := self._read().get("poll")):
            subprocess.run(command, check=True)
        return answer

    def _is_denied(self, message: bytes) -> bool:
        denied = self._read().get("denied", ())
        reads = message[4] == OPEN and not is_step(message) and message[13:].startswith(b"in/")
        return ("rename" in denied and is_rename(message)) or ("read" in denied and reads)

    def _fault(self, message: bytes) -> str:
        plan = self._read()
        if not is_step(message):
            return ""
        step = int(self._steps.read_text() or 0) + 1 if self._steps.exists() else 1
        self._steps.write_text(str(step))
        return str(plan["fault"]) if step == plan.get("at") else ""

    def _read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._plan.read_text())
        return found

    def _kill(self) -> None:
        os.kill(self._read()["pid"], signal.SIGKILL)


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    Wire(Path(sys.argv[2])).serve()
