"""A replay after the config was mended gives what a reading gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.chaos.guarded_target import Lines
from tests.chaos.mappings import open_bench

from crossdock import Record, RecordError
from crossdock.mapping.repairs_and_filters import Repair
from crossdock.state import parse_url


class Prices(Lines):
    name, resource = "prices", "customer"

    def to_resource(self, record: Record) -> dict[str, Any]:
        price = record.row["Q"] or ""
        if not price.isdigit():
            raise RecordError("bad_value", "no number")
        return {"name": price}


def test_a_replay_repairs_columns_as_the_config_says_now(tmp_path: Path) -> None:
    """Records that a missing repair has rejected are delivered by the replay, with the repaired text."""
    with open_bench(tmp_path, parse_url("sqlite:///state.db", tmp_path)) as bench:
        stream = Prices()
        stream.rows = [{"K": str(number), "Q": f"{number} EUR" if number % 3 else f"{number}"} for number in range(9)]
        bench.begin([stream])
        assert bench.sync().tally("b.prices").records["rejected"] == 6
        stream.columns = {"Q": Repair(strip_suffix=" EUR")}
        assert bench.replay().exit_code == 0
        assert not bench.dead_letters()
        assert bench.created() == {f"b:{number}": 1 for number in range(9)}
        assert bench.sync().counters.requests == 0
