"""``python -m crossdock.console.started_process FOLDER ARGUMENT...``: runs a command and keeps its exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from crossdock.values.local_files import replace_file


def main(folder: str, *arguments: str) -> None:
    code = subprocess.run([sys.executable, "-P", "-m", "crossdock", *arguments], check=False).returncode  # noqa: S603  its own
    replace_file(Path(folder) / "exit_code", str(code).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
