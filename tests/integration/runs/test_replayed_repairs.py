"""Records that the state keeps, after the config was mended, are as a reading gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.chaos.guarded_target import Lines
from tests.chaos.mappings import open_bench

from crossdock import Record, RecordError, Reference
from crossdock.mapping.stream_declaration import Filter, Repair
from crossdock.state import parse_database_url


class Prices(Lines):
    name, resource = "prices", "customer"

    def to_resource(self, record: Record) -> dict[str, Any]:
        price = record.row["Q"] or ""
        if not price.isdigit():
            raise RecordError("bad_value", "no number")
        return {"name": price}


def test_a_replay_repairs_columns_as_the_config_says_now(tmp_path: Path) -> None:
    """Records that a missing repair has rejected are delivered by the replay, with the repaired text."""
    with open_bench(tmp_path, parse_database_url("sqlite:///state.db", tmp_path)) as bench:
        stream = Prices()
        stream.rows = [{"K": str(number), "Q": f"{number} EUR" if number % 3 else f"{number}"} for number in range(9)]
        bench.begin([stream])
        assert bench.sync().tally("b.prices").records["rejected"] == 6
        stream.columns = {"Q": Repair(strip_suffix=" EUR")}
        assert bench.replay().exit_code == 0
        assert not bench.dead_letters()
        assert bench.created() == {f"b:{number}": 1 for number in range(9)}
        assert bench.sync().counters.requests == 0


def test_a_replay_sends_nothing_that_a_new_filter_excludes(tmp_path: Path) -> None:
    """Such dead letters stay, and the report says so; the others are delivered."""
    with open_bench(tmp_path, parse_database_url("sqlite:///state.db", tmp_path)) as bench:
        stream = Prices()
        stream.rows = [{"K": str(number), "Q": "TEST" if number % 3 else f"{number} EUR"} for number in range(6)]
        bench.begin([stream])
        assert bench.sync().tally("b.prices").records["rejected"] == 6
        stream.columns = {"Q": Repair(strip_suffix=" EUR")}
        stream.skip = {"test": Filter(field="Q", equals="TEST")}
        report = bench.replay()
        assert (report.balanced, report.exit_code, len(bench.dead_letters())) == (True, 1, 4)
        assert bench.created() == {"b:0": 1, "b:3": 1}
        (note,) = report.notes["b.prices"]
        assert note.startswith("filters (skip) exclude 4 records that are rejected, so that nothing was sent")


class Names(Lines):
    """Customers of an account."""

    name, resource, namespace = "names", "ledger_account", "names"

    def to_resource(self, record: Record) -> dict[str, Any]:
        parent = Reference("ledger_account", record.row["Q"] or "") if record.row["Q"] else None
        return {"code": record.key, "name": record.key, "type": "asset", "parentId": parent}


def test_a_waiting_record_that_a_new_filter_excludes_is_not_sent(tmp_path: Path) -> None:
    """It continues to wait, also when its parent comes; without the filter it is sent."""
    with open_bench(tmp_path, parse_database_url("sqlite:///state.db", tmp_path)) as bench:
        stream = Names()
        stream.rows = [{"K": "a", "Q": "p"}, {"K": "b", "Q": "p"}]
        bench.begin([stream])
        assert bench.sync().tally("b.names").records["carried_on"] == 2
        stream.rows += [{"K": "p", "Q": ""}]  # a snapshot without the others would end their wait
        stream.skip = {"test": Filter(field="K", equals="a")}
        report = bench.sync()
        assert (report.balanced, report.tally("b.names").records["carried_on"]) == (True, 1)
        assert bench.created() == {"names:b": 1, "names:p": 1}
        stream.skip = {}
        assert bench.sync().exit_code == 0
        assert bench.created() == {"names:a": 1, "names:b": 1, "names:p": 1}
