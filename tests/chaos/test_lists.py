"""Short form of what lists of hostile APIs are promised; ``pytest tests/long/test_lists.py`` runs the long one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.grouped_lists import no_order_is_made_of_two_moments
from tests.chaos.lists import Api, Case, no_record_is_lost_silently, open_stage

from crossdock.reading.sources import list_completeness_evidence
from crossdock.state import parse_database_url


@pytest.mark.nightly(but=["0"])
@pytest.mark.parametrize("part", range(5))
def test_no_record_is_lost_silently(tmp_path: Path, part: int) -> None:
    """Whatever pages and totals an API gives: the platform equals its list, or a run says that it does not."""
    url, seed = parse_database_url("sqlite:///state.db", tmp_path), chaos_seed() + 40 * part
    told = no_record_is_lost_silently(tmp_path, url, seed, 40)
    assert told[0]
    assert told[4]


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(4))
def test_no_order_is_made_of_two_moments(tmp_path: Path, part: int) -> None:
    """An order whose lines are on several pages, or listed twice, has those of one reading."""
    url, seed = parse_database_url("sqlite:///state.db", tmp_path), chaos_seed() + 25 * part
    told = no_order_is_made_of_two_moments(tmp_path, url, seed, 25)
    assert told[0]
    assert told[4]


@pytest.mark.parametrize("total", ["none", "right"])
def test_nothing_is_gone_by_a_list_as_long_as_a_cut_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, total: str
) -> None:
    """Some APIs end each list at a round number of records, and say nothing: the others still exist."""
    monkeypatch.setattr(list_completeness_evidence, "USUAL_CAPS", {6})
    case = replace(
        Case.of_pages(1), kind="cursor_in_body", mode="on_gone", total=total, events=((0, "deleted"),), place="query",
        fault="drifting", pages="none", number=7, size=3, by_change=False, part_rows=500, ahead_s=0,
    )  # fmt: skip
    with open_stage(tmp_path, parse_database_url("sqlite:///state.db", tmp_path)) as stage:
        assert not stage.play(case)
    assert stage.told == {4: 1}


@pytest.mark.parametrize(
    ("kind", "mode", "total", "created"),
    [
        ("offset", "on_gone", "none", 0),
        ("offset", "existing", "right", 1),
        ("page_number", "existing", "none", 0),
    ],
)
def test_what_a_list_passed_over_is_not_gone(tmp_path: Path, kind: str, mode: str, total: str, created: int) -> None:
    """A record leaves a list by position while it is read: the one that moved to an earlier page is not deleted."""
    first = 1 if mode == "on_gone" else 3  # request after which the records change: the changes take two
    events = ((first, "deleted"),) + ((first, "created"),) * created
    case = replace(
        Case.of_pages(1), kind=kind, mode=mode, total=total, events=events, place="query", fault="drifting",
        pages="none", number=9, size=3, by_change=False, part_rows=500, ahead_s=0,
    )  # fmt: skip
    with open_stage(tmp_path, parse_database_url("sqlite:///state.db", tmp_path)) as stage:
        assert not stage.play(case)
    assert stage.told == {4: 1}


def test_an_answer_to_another_request_is_no_proof(tmp_path: Path) -> None:
    """A cache that leaves out the query gives the list of changes for that of all records: it is read again."""
    case = Case.of_pages(20262782)
    assert (case.kind, case.mode, case.fault) == ("cursor_in_body", "existing", "repeated")
    with open_stage(tmp_path, parse_database_url("sqlite:///state.db", tmp_path)) as stage:
        assert not stage.play(case)
    assert stage.told == {4: 1}


@pytest.mark.parametrize(("age", "exit_code"), [("0", 0), ("1", 4)])
def test_nothing_is_gone_by_an_old_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age: str, exit_code: int
) -> None:
    """A list that a cache kept lacks what was created since."""
    answer = Api.answer

    def aged(api: Api, request: httpx.Request) -> httpx.Response:
        answered = answer(api, request)
        answered.headers["age"] = "0" if api.is_honest else age
        return answered

    monkeypatch.setattr(Api, "answer", aged)
    case = replace(
        Case.of_pages(1), kind="cursor_in_body", mode="on_gone", total="none", events=((0, "deleted"),), place="query",
        fault="drifting", pages="none", number=7, size=3, by_change=False, part_rows=500, ahead_s=0,
    )  # fmt: skip
    with open_stage(tmp_path, parse_database_url("sqlite:///state.db", tmp_path)) as stage:
        assert not stage.play(case)
    assert stage.told == {exit_code: 1}
