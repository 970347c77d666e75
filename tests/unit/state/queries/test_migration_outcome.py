"""What a sign-off asks the state: dead letters by reason, records that were there, what was written since."""

from __future__ import annotations

from datetime import timedelta

from tests.report_page import AT, dead_letter, start
from tests.unit.state.samples import intent

from crossdock.state import State
from crossdock.state.tables.inputs_of_streams import FileFacts
from crossdock.state.tables.system_migrations import DeadLetterCount

STREAM = "wms.products"


def test_dead_letters_are_counted_by_reason(state: State) -> None:
    """Rejected and dropped ones apart; those of other streams do not count."""
    with state.begin() as tx:
        run = start(tx)
        letters = [dead_letter(number, stream=STREAM) for number in (1, 2, 3)]
        letters += [dead_letter(4, stream=STREAM, code="conflict"), dead_letter(5, stream="shop.orders")]
        tx.dead_letters.put(letters, run_id=run, at=AT)
        tx.dead_letters.mark_dropped(STREAM, [3])
        assert tx.migration_outcome.dead_letter_counts([STREAM, "wms.lots"]) == [
            DeadLetterCount(STREAM, "bad_value", "dropped", 1),
            DeadLetterCount(STREAM, "bad_value", "rejected", 2),
            DeadLetterCount(STREAM, "conflict", "rejected", 1),
        ]


def test_only_files_are_places(state: State) -> None:
    """The address of a page may hold a key, so only names of imported files are told, in their order."""
    with state.begin() as tx:
        run = start(tx)
        tx.intake.accept(STREAM, "v1", [FileFacts("f.csv", "ab" * 32, 9, AT, "1")], at=AT)
        tx.intake.accept("wms.lots", "v1", [FileFacts("g.csv", "cd" * 32, 9, AT, "1")], at=AT)
        tx.dead_letters.put(
            [
                dead_letter(3, stream=STREAM),
                dead_letter(2, stream=STREAM),
                dead_letter(1, stream=STREAM, source="/products/secret-key"),
                dead_letter(4, stream=STREAM, source="g.csv"),
            ],
            run_id=run,
            at=AT,
        )
        (group,) = tx.migration_outcome.dead_letter_counts([STREAM])
        assert group.records == 4
        assert tx.migration_outcome.dead_letter_files_and_lines(group, limit=9) == [("f.csv", 2), ("f.csv", 3)]
        assert tx.migration_outcome.dead_letter_files_and_lines(group, limit=1) == [("f.csv", 2)]


def test_records_that_were_there_are_counted(state: State) -> None:
    """Operations of the migration's runs that wrote nothing."""
    with state.begin() as tx:
        own, other = start(tx), start(tx)
        migration = tx.migrations.begin("acme", at=AT, by="ann")
        tx.migrations.add_run(migration, own, "load", "products")
        there = [intent(number, status="delivered", untouched=True) for number in (1, 2)]
        tx.intents.add([*there, intent(3, status="delivered"), intent(4)], run_id=own, fence=1, at=AT)
        tx.intents.add([intent(5, status="delivered", untouched=True)], run_id=other, fence=1, at=AT)
        assert tx.migration_outcome.unneeded_write_counts(migration) == {STREAM: 2}


def test_what_was_written_since_a_time(state: State) -> None:
    """An operation that was stored later counts, and one that was settled later."""
    later = AT + timedelta(minutes=1)
    with state.begin() as tx:
        run = start(tx)
        items = [intent(1), intent(2)]
        tx.intents.add(items, run_id=run, fence=1, at=AT)
        assert tx.migration_outcome.count_operations_since([STREAM], AT) == 0
        items[0].status = "delivered"
        tx.intents.write_outcomes(items[:1], at=later)
        assert tx.migration_outcome.count_operations_since([STREAM], AT) == 1
        tx.intents.add([intent(3)], run_id=run, fence=1, at=later)
        assert tx.migration_outcome.count_operations_since([STREAM], AT) == 2
        assert tx.migration_outcome.count_operations_since(["wms.lots"], AT) == 0
