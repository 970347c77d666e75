"""A small program in place of ``crossdock`` and of programs that are not run: it asks the test what to do."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

ASKED = """\
#!{python} -SE
import json, os, signal, socket, sys

signal.signal(signal.SIGPIPE, signal.SIG_DFL)
wire = socket.socket(socket.AF_UNIX)
folder = os.open({folder!r}, os.O_RDONLY)
wire.connect(f"/proc/self/fd/{{folder}}/{name_of_socket}")  # the path itself may be too long
asked = {{"program": {name!r}, "arguments": sys.argv[1:], "folder": os.getcwd(), "pid": os.getpid()}}
wire.sendall(json.dumps(asked | {{"environment": dict(os.environ)}}).encode() + b"\\n")
sys.exit(int(wire.makefile().readline() or 99))
"""


def place(folder: Path, name: str, socket: Path) -> None:
    """Put the program *name* into *folder*; what it is asked to do is sent to *socket*."""
    path = folder / name
    path.write_text(
        ASKED.format(python=sys.executable, name=name, folder=str(socket.parent), name_of_socket=socket.name),
        encoding="utf-8",
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def link(folder: Path, name: str) -> bool:
    """Let *folder* have the program *name* of this machine; False if there is none."""
    for place in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if (found := Path(place, name)).exists():
            (folder / name).symlink_to(found)
            return True
    return False
