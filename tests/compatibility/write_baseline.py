"""Writes what a release promises: its public API, its config keys, the tables of its state, and a filled state.

    python -m tests.compatibility.write_baseline 0.3.0

Run it when a release is made, then remove the entries of ``declared_breaks.toml``.
"""

from __future__ import annotations

import sys

from tests.compatibility import api_facts, config_facts, state_tables
from tests.compatibility.facts import HERE, text_of


def main(version: str) -> None:
    (HERE / f"api_{version}.txt").write_text(text_of(api_facts.api_facts(api_facts.loaded())), encoding="utf-8")
    (HERE / f"config_{version}.txt").write_text(
        text_of(config_facts.config_facts(config_facts.schema())), encoding="utf-8"
    )
    state_tables.write()


if __name__ == "__main__":
    main(*sys.argv[1:])
