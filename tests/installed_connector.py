"""A connector of the tests, installed for the processes that they start."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def installed(folder: Path, name: str, module: str) -> dict[str, str]:
    """Register ``CONNECTOR`` of *module* as *name* below *folder*; the environment in which it is found."""
    facts = folder / f"{name}-1.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1\n")
    (facts / "entry_points.txt").write_text(f"[crossdock.connectors]\n{name} = {module}:CONNECTOR\n")
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
