"""``python -m crossdock.console.exit_code_recorder FOLDER LOCK ARGUMENT...``: runs a command and keeps its exit code.

The command inherits the file descriptor LOCK, so that the lock is held to its end, even if this process is killed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from crossdock.values.safe_local_files import replace_file_atomically


def main(folder: str, lock: str, *arguments: str) -> None:
    command = [sys.executable, "-P", "-m", "crossdock", *arguments]
    code = subprocess.run(command, check=False, pass_fds=(int(lock),)).returncode  # noqa: S603  its own
    replace_file_atomically(Path(folder) / "exit_code", str(code).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
