"""Records that wait for another record which the same run reads later, in another part or from another stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.chaos.mappings import Bench, BenchSettings, open_bench
from tests.examples import examples

from crossdock import Context, RawBatch, Record, Reference, Stream
from crossdock.errors import RecordError
from crossdock.mapping.stream_declaration import ChangeLimits
from crossdock.resources import ResourceName
from crossdock.runs import parts_between_checkpoints
from crossdock.runs.planning.waiting_records import RecordsAwaitingParents
from crossdock.runs.run_report import Report
from crossdock.sources import Checkpoint
from crossdock.state import parse_database_url

Account = tuple[str, str | None]
"""Key and parent; a parent in another namespace is ``NAMESPACE:KEY``."""


class Accounts(Stream[BenchSettings]):
    """Accounts in *pages*, with a checkpoint after each."""

    key = ("id",)
    resource: ResourceName = "ledger_account"

    def __init__(self, *pages: Sequence[Account], name: str = "accounts") -> None:
        self.pages, self.name, self.namespace = pages, name, name

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        for number, page in enumerate(self.pages, 1):
            items = [{"id": key, "parent": parent, "page": number} for key, parent in page]
            yield RawBatch.json(items, source=f"page {number}")
            yield Checkpoint(str(number))

    def to_resource(self, record: Record) -> Mapping[str, Any]:
        parent = record.at("/parent", str, default=None)
        namespace, _, key = (parent or "").rpartition(":")
        reference = Reference("ledger_account", key, namespace or None) if parent else None
        return {"code": record.key, "name": f"page {record.at('/page', int)}", "type": "asset", "parentId": reference}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder: Path = tmp_path_factory.mktemp("parts")
    with open_bench(folder, parse_database_url("sqlite:///state.db", folder)) as opened:
        yield opened


def synced(bench: Bench, *streams: Accounts) -> Report:
    """The report of a first load, whose tallies are those of its plan."""
    bench.begin(streams)
    planned, fates = bench.plan()
    report = bench.sync()
    assert report.balanced
    assert not report.errors
    for name, tally in report.tallies.items():
        assert dict(+planned.tallies[name].records) == dict(+tally.records)
    assert fates == bench.fates() or len(streams) > 1
    return report


def test_children_before_their_parents_are_delivered_in_the_same_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parents are in the last of several parts; every account is created once, and none waits."""
    monkeypatch.setattr(parts_between_checkpoints, "PART_ROWS", 50)
    children_before_their_parents(bench, 250, a_page=10)


def children_before_their_parents(bench: Bench, number: int, a_page: int) -> None:
    children = [(f"c{each}", f"p{each % 7}") for each in range(number)]
    pages = [children[start : start + a_page] for start in range(0, number, a_page)]
    report = synced(bench, Accounts(*pages, [(f"p{each}", None) for each in range(7)]))
    tally = report.tallies["b.accounts"].records
    assert (report.exit_code, tally["read"], tally["created"], tally["carried_on"]) == (0, number + 7, number + 7, 0)
    assert set(bench.created().values()) == {1}


def test_a_cycle_over_two_parts_is_delivered_in_the_same_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """One account is created without its parent, and completed after the other one."""
    monkeypatch.setattr(parts_between_checkpoints, "PART_ROWS", 1)
    report = synced(bench, Accounts([("a", "b")], [("c", "a")], [("b", "a")]))
    assert (report.exit_code, report.tallies["b.accounts"].records["created"]) == (0, 3)


def test_a_parent_of_a_later_stream_is_enough(bench: Bench) -> None:
    """Two charts of accounts refer to each other; whichever runs first, nothing waits for the next run."""
    one, two = Accounts([("a", "two:x"), ("b", "a")], name="one"), Accounts([("x", None), ("y", "one:b")], name="two")
    for streams in ([one, two], [two, one]):
        report = synced(bench, *streams)
        assert (report.exit_code, set(bench.created().values())) == (0, {1})


def test_what_is_not_there_is_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends as usual, with the waiting records counted once."""
    monkeypatch.setattr(parts_between_checkpoints, "PART_ROWS", 1)
    report = synced(bench, Accounts([("a", "nowhere"), ("b", "a")], [("c", None)]))
    tally = report.tallies["b.accounts"].records
    assert (report.exit_code, tally["carried_on"], tally["created"]) == (1, 2, 1)


def test_a_record_that_is_read_again_while_it_waits_is_delivered_as_it_was_read_last(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first version is replaced, and never sent."""
    monkeypatch.setattr(parts_between_checkpoints, "PART_ROWS", 1)
    bench.begin([Accounts([("a", "p")], [("a", "p")], [("p", None)])])
    report = bench.sync()
    assert (report.balanced, report.exit_code) == (True, 0)
    assert {body["code"]: body["name"] for *_, body in bench.platform.effects} == {"p": "page 3", "a": "page 2"}


def test_what_waits_when_the_source_fails_is_delivered_by_the_next_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure on a later page loses no record of an earlier part, and counts it once."""
    monkeypatch.setattr(parts_between_checkpoints, "PART_ROWS", 1)

    class Failing(Accounts):
        fails = True

        def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
            for item in super().pull(ctx, since):
                if self.fails and isinstance(item, RawBatch) and item.source == "page 2":
                    raise OSError
                yield item

    stream = Failing([("a", "p"), ("b", None)], [("p", None)])
    bench.begin([stream])
    report = bench.sync()
    tally = report.tallies["b.accounts"].records
    assert (report.balanced, tally["created"], tally["carried_on"]) == (True, 1, 1)
    stream.fails = False
    report = bench.sync()
    tally = report.tallies["b.accounts"].records
    assert (report.balanced, report.exit_code, tally["created"], tally["carried_over"]) == (True, 0, 2, 1)


KEYS = "abcdefg"


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parents=st.dictionaries(st.sampled_from(KEYS), st.none() | st.sampled_from(f"{KEYS}z"), max_size=len(KEYS)),
    sizes=st.lists(st.integers(1, 3), min_size=len(KEYS), max_size=len(KEYS)),
    rows=st.integers(1, 4),
)
def test_any_order_over_any_parts_delivers_all_that_can_be(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, parents: dict[str, str | None], sizes: list[int], rows: int
) -> None:
    """Exactly the accounts that no missing one holds back; plan and sync count the same, and nothing is sent twice."""
    monkeypatch.setattr(parts_between_checkpoints, "PART_ROWS", rows)
    accounts, pages = list(parents.items()), []
    for size in sizes:
        pages.append(accounts[:size])
        accounts = accounts[size:]
    report = synced(bench, Accounts(*[page for page in pages if page]))

    delivered = _deliverable(parents)
    assert {name.partition(":")[2] for name in bench.created()} == delivered
    assert set(bench.created().values()) <= {1}
    assert report.exit_code == int(delivered != set(parents))


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parents=st.dictionaries(st.sampled_from(KEYS), st.none() | st.sampled_from(f"{KEYS}z"), max_size=len(KEYS)),
    nights=st.lists(st.integers(0, 1), min_size=len(KEYS), max_size=len(KEYS)),
    rows=st.integers(1, 4),
)
def test_whatever_comes_on_a_later_night_delivers_what_waited_for_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, parents: dict[str, str | None], nights: list[int], rows: int
) -> None:
    """Also in cycles; each night ends as its plan says, and a night that brings nothing maps no record."""
    monkeypatch.setattr(parts_between_checkpoints, "PART_ROWS", rows)
    mapped: list[str] = []

    class Counted(Accounts):
        def to_resource(self, record: Record) -> Mapping[str, Any]:
            mapped.append(record.key)
            return super().to_resource(record)

    of_night = dict(zip(KEYS, nights, strict=True))
    stream = Counted()
    bench.begin([stream])
    for night in range(2):
        stream.pages = tuple([pair] for pair in parents.items() if of_night[pair[0]] == night)
        planned, _ = bench.plan()
        report = bench.sync()
        assert (report.balanced, report.errors) == (True, {})
        tally = report.tallies["b.accounts"].records
        assert dict(+planned.tallies["b.accounts"].records) == dict(+tally)
        delivered = _deliverable({key: parent for key, parent in parents.items() if of_night[key] <= night})
        assert {name.partition(":")[2] for name in bench.created()} == delivered
        assert set(bench.created().values()) <= {1}
        stream.pages = ()
        mapped.clear()
        idle = bench.sync().tallies["b.accounts"].records
        assert (mapped, idle["carried_over"], idle["carried_on"]) == ([], tally["carried_on"], tally["carried_on"])


def _deliverable(parents: Mapping[str, str | None]) -> set[str]:
    """The accounts that no missing one holds back."""

    def is_held_back(key: str | None, seen: frozenset[str] = frozenset()) -> bool:
        if key is None or key in seen:
            return False
        return key not in parents or is_held_back(parents[key], seen | {key})

    return {key for key in parents if not is_held_back(key)}


def test_what_waits_is_mapped_again_with_another_mapping_and_in_another_version(bench: Bench) -> None:
    """Read again as it was, it continues to wait, and is not mapped; the tally has it each time."""
    mapped: list[str] = []

    class Counted(Accounts):
        def to_resource(self, record: Record) -> Mapping[str, Any]:
            mapped.append(record.key)
            return super().to_resource(record)

    stream = Counted([("a", "p")])
    bench.begin([stream])
    counts = []
    for change in ({}, {}, {"mapping_version": "2"}, {"pages": [[("a", "q")]]}, {"pages": [[("q", None)]]}):
        for name, value in change.items():
            setattr(stream, name, value)
        mapped.clear()
        report = bench.sync()
        assert report.balanced
        counts.append((len(mapped), report.tallies["b.accounts"].records["carried_on"]))
    assert counts == [(1, 1), (0, 1), (1, 1), (1, 1), (3, 0)]


def nights(bench: Bench, *streams: Accounts) -> tuple[Report, Report]:
    """The reports of another night, and of one that brings nothing; both balance."""
    report = bench.sync()
    for stream in streams:
        stream.pages = ()
    idle = bench.sync()
    assert report.balanced
    assert idle.balanced
    return report, idle


@pytest.mark.parametrize("is_first", [True, False])
def test_what_waits_is_delivered_in_the_run_in_which_another_stream_brings_its_parent(
    bench: Bench, is_first: bool
) -> None:
    """Whichever stream is read first, and also what waits below it."""
    one, two = Accounts([("a", "two:x"), ("b", "a")], name="one"), Accounts(name="two")
    bench.begin([two, one] if is_first else [one, two])
    nights(bench, one)
    two.pages = ([("x", None)],)
    report, _ = nights(bench, two)
    assert (report.exit_code, report.tallies["b.one"].records["created"]) == (0, 2)
    assert set(bench.created().values()) == {1}


def test_a_record_that_was_rejected_while_it_waited_is_not_sent(bench: Bench) -> None:
    """Its dead letter replaces what waited, so that its parent does not bring the earlier version back."""

    class Refusing(Accounts):
        def to_resource(self, record: Record) -> Mapping[str, Any]:
            if record.at("/parent", str, default=None) == "bad":
                raise RecordError("bad_value", "bad parent")
            return super().to_resource(record)

    stream = Refusing([("a", "p")])
    bench.begin([stream])
    nights(bench, stream)
    stream.pages = ([("a", "bad")],)
    nights(bench, stream)
    stream.pages = ([("p", None)],)
    nights(bench, stream)
    assert dict(bench.created()) == {"accounts:p": 1}
    assert bench.fates() == {("b.accounts", "a"): "bad_value", ("b.accounts", "p"): "delivered"}


def test_what_waits_for_a_rejected_record_is_delivered_after_its_replay(bench: Bench) -> None:
    """The replay delivers the parent, and the next run what waited below it."""

    class Refusing(Accounts):
        refuses = True

        def to_resource(self, record: Record) -> Mapping[str, Any]:
            if self.refuses and record.key == "p":
                raise RecordError("bad_value", "bad account")
            return super().to_resource(record)

    stream = Refusing([("a", "p"), ("b", "a"), ("p", None)])
    bench.begin([stream])
    nights(bench, stream)
    stream.refuses = False
    assert bench.replay().balanced
    report, _ = nights(bench, stream)
    assert (report.exit_code, dict(bench.created())) == (0, {"accounts:a": 1, "accounts:b": 1, "accounts:p": 1})


def test_what_waits_to_complete_a_record_is_delivered_once_it_exists(bench: Bench) -> None:
    """A contribution waits for the whole record, which another stream creates on a later night."""

    class Names(Accounts):
        contributes = ("name",)

        def to_resource(self, record: Record) -> Mapping[str, Any]:
            return {"name": "given"}

    names, accounts = Names([("a", None)], name="names"), Accounts()
    names.namespace = accounts.namespace
    bench.begin([names, accounts])
    _, idle = nights(bench, names)
    assert idle.tallies["b.names"].records["carried_on"] == 1
    accounts.pages = ([("a", None)],)
    report, _ = nights(bench, accounts)
    assert (report.exit_code, report.tallies["b.names"].records["updated"]) == (0, 1)


def test_a_cycle_that_a_later_night_closes_is_delivered_and_completed(bench: Bench) -> None:
    """The idle record is decided about with the new one, in two steps; nothing is left for another night."""
    stream = Accounts([("a", "b"), ("c", "a")])
    bench.begin([stream])
    nights(bench, stream)
    stream.pages = ([("b", "a")],)
    report, idle = nights(bench, stream)
    assert (report.exit_code, idle.exit_code, set(bench.created().values())) == (0, 0, {1})
    assert idle.tallies["b.accounts"].records["carried_over"] == 0


def test_a_run_that_stops_before_its_end_leaves_no_record_idle(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a kill: the next run decides about what waits, although nothing of it has come."""
    mapped: list[str] = []

    class Counted(Accounts):
        def to_resource(self, record: Record) -> Mapping[str, Any]:
            mapped.append(record.key)
            return super().to_resource(record)

    stream = Counted([("a", "p")])
    bench.begin([stream])
    with monkeypatch.context() as patch:
        patch.setattr(RecordsAwaitingParents, "make_held_records_idle", lambda _held: None)
        nights(bench, stream)
    assert mapped == ["a", "a"]
    nights(bench, stream)
    assert mapped == ["a", "a", "a"]


def test_a_record_that_waits_for_too_long_is_a_dead_letter(bench: Bench) -> None:
    """A plan says so, too. One whose parent comes in that run is delivered; a replay delivers the others later."""
    accounts = Accounts([("c1", "p1"), ("c2", "p2"), ("c3", "p3")])
    accounts.waits_at_most = "2d"
    bench.begin([accounts])

    def night(days: float, *more: Account) -> dict[str, str]:
        bench.clock.advance(days * 86_400)
        accounts.pages = (*accounts.pages, more)
        planned, fates = bench.plan()
        report = bench.sync()
        assert (report.balanced, report.errors) == (True, {})
        assert dict(+planned.tallies["b.accounts"].records) == dict(+report.tallies["b.accounts"].records)
        assert fates.items() <= bench.fates().items()
        return {key: fate for (_, key), fate in bench.fates().items()}

    assert night(0) == dict.fromkeys(("c1", "c2", "c3"), "waiting")
    assert night(1.5, ("late", "p9")) == dict.fromkeys(("c1", "c2", "c3", "late"), "waiting")
    came = night(1, ("c1", "p1"), ("c2", "b:p2"), ("p3", None))
    assert came == {
        "c1": "missing_reference",
        "c2": "missing_reference",
        "c3": "delivered",
        "p3": "delivered",
        "late": "waiting",
    }
    messages = {row.key: row.message for row in bench.dead_letters()}
    assert "has waited since" in messages["c1"]
    assert "for ledger_account accounts:p1: not delivered until now" in messages["c1"]
    assert "for ledger_account b:p2:" in messages["c2"], "the newest version counts"
    assert night(0.1) == came, "it does not wait again because it is read again"
    bench.replay()
    assert {key for (_, key), fate in bench.fates().items() if fate == "waiting"} == {"c1", "c2", "late"}
    assert night(3)["c1"] == "missing_reference"
    assert night(0.1, ("p1", None))["c1"] == "missing_reference"
    bench.replay()
    assert bench.fates()["b.accounts", "c1"] == "delivered"
    assert max(bench.created().values()) == 1


def test_a_record_waits_as_long_as_it_takes_by_default(bench: Bench) -> None:
    """Nothing becomes of it after years."""
    bench.begin([Accounts([("c1", "p1")])])
    bench.sync()
    bench.clock.advance(5 * 366 * 86_400)
    bench.sync()
    assert bench.fates() == {("b.accounts", "c1"): "waiting"}


def test_first_contributions_of_earlier_parts_count_against_no_limit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a record held before is unknown then; updates of what was contributed count, in whichever part they are."""
    monkeypatch.setattr(parts_between_checkpoints, "PART_ROWS", 1)

    class Names(Accounts):
        contributes = ("name",)
        changes = ChangeLimits(at_most=2, at_most_percent=0)
        word = "first"

        def to_resource(self, record: Record) -> Mapping[str, Any]:
            return {"name": f"{self.word} {record.key}"}

    accounts = Accounts([(key, None) for key in "abcdef"])
    names = Names([("a", None), ("b", None), ("c", None)], [("d", None)], [("e", None), ("f", None)], name="names")
    names.namespace = "accounts"
    bench.begin([accounts, names])
    report = bench.sync()
    assert not report.errors
    assert report.tallies["b.names"].records["updated"] == 6
    names.word, names.pages = "second", ([], [("a", None), ("b", None)], [("d", None)], [("c", None)])
    planned, _ = bench.plan()
    report = bench.sync()
    assert report.tallies["b.names"].records["updated"] == 2
    assert "1 of 6 known records would be updated after 2 in this run" in report.errors["b.names"].message
    assert "4 of 6 known records would be updated, more than" in planned.errors["b.names"].message, "it has one part"
