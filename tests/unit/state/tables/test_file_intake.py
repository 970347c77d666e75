"""Accepted files are known by content and version."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.state.samples import AT

from crossdock.state import (
    FileFacts,
    State,
)


def test_intake_remembers_content_under_a_version(state: State) -> None:
    """A file is known by content and version: another mapping reads it again."""
    facts = FileFacts("a.csv", "c0ffee", 12, AT, "2026-03-29", AT)
    with state.begin() as tx:
        tx.intake.accept("s", "v1", [facts], at=AT)
        assert tx.intake.finished_files("s", "v1") == {}
        assert tx.intake.unfinished_files("s") == {"c0ffee": facts}
        tx.intake.finish_accepted_files("s", "v1")
        assert tx.intake.finished_files("s", "v1") == {"c0ffee": facts}
        assert tx.intake.finished_files("s", "v2") == {}
        assert tx.intake.known_files("s") == [facts]


def test_passed_files_are_those_of_the_last_look(state: State) -> None:
    """What the source no longer lists is forgotten, and so is everything when the stream reads all files again."""
    old, older = ("a.csv", 12, AT), ("b.csv", 1, AT)
    with state.begin() as tx:
        tx.intake.replace_passed_over_snapshots("s", {old, older})
        assert tx.intake.passed_over_snapshots("s") == {old, older}
        assert tx.intake.passed_over_snapshots("t") == set()
        tx.intake.replace_passed_over_snapshots("s", {older})
        assert tx.intake.passed_over_snapshots("s") == {older}
        tx.intake.forget_files_of_stream("s")
        assert tx.intake.passed_over_snapshots("s") == set()


def test_a_file_accepted_under_an_older_mapping_is_read_on(state: State) -> None:
    """What was not worked through stays to be read under any version, until one has worked it through."""
    facts = FileFacts("f.csv", "c0ffee", 10, AT, "2026-03-29")
    with state.begin() as tx:
        tx.intake.accept("s", "v1", [facts], at=AT)
        assert set(tx.intake.unfinished_files("s")) == {"c0ffee"}
        tx.intake.accept("s", "v2", [facts], at=AT)
        tx.intake.finish_accepted_files("s", "v2")
        assert tx.intake.unfinished_files("s") == {}


def test_only_the_files_of_a_run_are_taken_back(state: State) -> None:
    """Files of earlier and later runs stay imported, so that what comes late is compared with them."""
    files = [FileFacts(f"{day}.csv", f"c0ffee{day}", 10, AT, f"2026-03-0{day}") for day in (1, 2, 3)]
    with state.begin() as tx:
        for day, facts in enumerate(files):
            tx.intake.accept("s", "v1", [facts], at=AT + timedelta(days=day))
            tx.intake.finish_accepted_files("s", "v1")
        tx.intake.mark_files_of_run_undone("s", AT + timedelta(days=1), AT + timedelta(days=1, hours=1))
        assert [facts.is_undone for facts in tx.intake.known_files("s")] == [False, True, False]
        tx.intake.mark_files_of_run_undone("s", AT + timedelta(days=2), None)
        assert [facts.is_undone for facts in tx.intake.known_files("s")] == [False, True, True]
