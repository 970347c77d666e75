"""OpenSSH's own SFTP client."""

from __future__ import annotations

import subprocess
from pathlib import Path


def fetch(host: str, port: int, user: str, key: Path, to: Path) -> None:
    """Get ``a.txt`` with OpenSSH's client."""
    options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "IdentitiesOnly=yes", "BatchMode=yes"]
    arguments = [word for option in options for word in ("-o", option)]
    subprocess.run(
        ["sftp", "-q", "-F", "none", "-P", str(port), "-i", str(key), *arguments, "-b", "-", f"{user}@{host}"],
        input=f"get a.txt {to}\n",
        text=True,
        check=True,
        capture_output=True,
        timeout=30,
    )
