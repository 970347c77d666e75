"""The start of the installed wheel: CPU seconds of imports and of small commands, beside those of ``python -c pass``.

The environment has the wheel and what it needs, with bytecode, and nothing else. A figure is the median of several
processes. The goals are for ``import crossdock`` and ``crossdock --help``; what a run needs is imported when it runs.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from tests.benchmarks import results
from tests.benchmarks.delta_processes import run
from tests.distributions import ROOT, EmptyEnvironment, built

REPEATS = 9
GOAL_S = 0.15  # of ``import crossdock``
IMPORTS = ("crossdock", "crossdock.sources", "crossdock.targets", "polars", "sqlalchemy")
COMMANDS = ("--version", "--help", "sync --help")
NOTHING, IMPORT = "python -c pass", "import crossdock"


def measure(folder: Path, repeats: int = REPEATS) -> dict[str, float]:
    """The median CPU seconds of each process, after one that is not counted."""
    environment = EmptyEnvironment(folder / "env")
    assert environment.has(str(built(ROOT, folder / "dist").wheel)), "PyPI cannot be reached"
    python = [str(environment.python), "-I"]  # without PYTHONPATH and the current folder
    script = str(environment.folder / "bin" / "crossdock")
    processes = {
        NOTHING: [*python, "-c", "pass"],
        **{f"import {each}": [*python, "-c", f"import {each}"] for each in IMPORTS},
        "from crossdock import run": [*python, "-c", "from crossdock import run"],
        **{f"crossdock {each}": [*python, script, *each.split()] for each in COMMANDS},
    }
    for command in processes.values():
        run(command)
    return {name: statistics.median(run(command).cpu_s for _ in range(repeats)) for name, command in processes.items()}


def main() -> None:
    """Write the table."""
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder))
    rows = [(name, f"{cpu_s:.3f} s", f"{cpu_s / found[NOTHING]:.1f}") for name, cpu_s in found.items()]
    notes = f"Goal: {IMPORT} takes at most {GOAL_S} s of CPU."
    results.write("Start of the installed wheel", ("process", "CPU", "over python -c pass"), rows, notes)


if __name__ == "__main__":
    main()
