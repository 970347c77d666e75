"""Writes what a release promises: its public API, its config keys, the tables of its state, and a state with data.

    python -m tests.compatibility.write_baseline 0.3.0

Run it when a release is made, then remove the entries of ``declared_breaks.toml``. Words after the version, ``api``,
``config``, ``output``, ``tables`` or ``state``, choose what is written.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.compatibility import api_facts, config_facts, output_facts, released_state, state_tables
from tests.compatibility.facts import HERE, text_of


def main(version: str, *kinds: str) -> None:
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise SystemExit(__doc__)
    wanted = kinds or ("api", "config", "output", "tables", "state")
    if "api" in wanted:
        (HERE / f"api_{version}.txt").write_text(text_of(api_facts.api_facts(api_facts.loaded())), encoding="utf-8")
    if "config" in wanted:
        facts = config_facts.config_facts(config_facts.schema())
        (HERE / f"config_{version}.txt").write_text(text_of(facts), encoding="utf-8")
    if "output" in wanted:
        with TemporaryDirectory() as folder:
            (HERE / f"output_{version}.txt").write_text(
                text_of(output_facts.output_facts(Path(folder))), encoding="utf-8"
            )
    if "tables" in wanted:
        state_tables.write()
    if "state" in wanted:
        released_state.write(version)


if __name__ == "__main__":
    main(*sys.argv[1:])
