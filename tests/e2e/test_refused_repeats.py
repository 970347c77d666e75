"""Creates that are refused when they are sent again, and batches that are refused as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.e2e.declared_writes import declared_writes
from tests.partners.partner_server import PartnerAnswer, PartnerRequest

LOOK_UP = {"look_up": {"path": "/records", "params": {"ref": "{name}"}, "records": ""}}
REFUSED_TWICE = {"repeated": {"status": 422, "text": "duplicate reference"}}


class Stock:
    """An API that has one piece, and tells nobody that it took the first order for it.

    Attributes:
        lost: How many answers to creates are lost.
        executes: Whether a create whose answer is lost is carried out.
        refusal: The answer to a create for which there is nothing left.
        unseen: How many look-ups do not show a record yet.
    """

    def __init__(self, *, executes: bool = True, refusal: tuple[int, str] = (400, "out of stock")) -> None:
        self.held, self.lost, self.executes, self.refusal, self.unseen = dict[str, Any](), 1, executes, refusal, 0

    def answer(self, request: PartnerRequest) -> PartnerAnswer | None:
        if request.method == "GET":
            self.unseen -= 1
            found = self.held.get(request.param("ref"))
            return PartnerAnswer(200, [] if found is None or self.unseen >= 0 else [found])
        self.lost -= 1
        if self.held or (self.lost < 0 and not self.executes):
            return PartnerAnswer(self.refusal[0], {"message": self.refusal[1]})
        record = request.json() | {"id": "1"}
        if self.lost < 0 or self.executes:
            self.held[record["ref"]] = record
        return None if self.lost >= 0 else PartnerAnswer(201, record)


@pytest.mark.parametrize(
    ("declared", "executes", "state"),
    [
        (REFUSED_TWICE | LOOK_UP, True, None),
        (REFUSED_TWICE | LOOK_UP, False, "rejected"),
        ({"repeated": "ignored"}, True, "in-doubt"),
    ],
    ids=["looked up and found", "looked up and not found", "without a look-up"],
)
def test_a_refusal_of_the_second_attempt_is_not_that_of_the_first(
    tmp_path: Path, declared: dict[str, Any], executes: bool, state: str | None
) -> None:
    """The first one may have been carried out, and be why: the record is looked up, or a person decides."""
    stock = Stock(executes=executes)
    with declared_writes(tmp_path, stock.answer, {"create": "POST /records", **declared}) as project:
        project.export("1,Name")
        done = project.run("sync")
        found = {each: list(project.listed(each)) for each in ("rejected", "in-doubt")}
        assert found == {each: ["1"] if each == state else [] for each in ("rejected", "in-doubt")}
        assert done.exit_code == (0 if state is None else 1)
        if state is not None:
            assert "out of stock" in project.listed(state)["1"]


def test_a_name_that_is_taken_and_not_shown_yet_is_in_doubt(tmp_path: Path) -> None:
    """The record may be this one, which the list does not show yet: the next run finds it."""
    stock = Stock(refusal=(422, "duplicate reference"))
    stock.unseen = 10
    with declared_writes(tmp_path, stock.answer, {"create": "POST /records", **REFUSED_TWICE, **LOOK_UP}) as project:
        project.export("1,Name")
        project.sync(1)
        assert "does not show it" in project.listed("in-doubt")["1"]
        stock.unseen = 0
        project.sync()
        assert len(stock.held) == 1
        assert project.listed("in-doubt") == {}


@pytest.mark.nightly(but=["alone-403", "with a look-up-404"])
@pytest.mark.parametrize("status", [403, 404])
@pytest.mark.parametrize("more", [{}, LOOK_UP], ids=["alone", "with a look-up"])
def test_a_batch_that_all_records_would_be_refused_as_leaves_none_in_doubt(
    tmp_path: Path, status: int, more: dict[str, Any]
) -> None:
    """A wrong path or a lack of permission is one error; the corrected config delivers all records."""
    batch = {"size": 5, "items": "items", "results": "items"}
    declared = {"create": "POST /wrong", "batch": batch, **more}

    def answer(request: PartnerRequest) -> PartnerAnswer:
        if request.path == "/wrong" and request.method == "POST":
            return PartnerAnswer(status, {"message": "no"})
        if request.method == "GET":
            return PartnerAnswer(200, [])
        items = request.json()["items"]
        return PartnerAnswer(200, {"items": [{**each, "id": f"id {each['ref']}"} for each in items]})

    with declared_writes(tmp_path, answer, declared) as project:
        project.export(*(f"{number},Name" for number in range(20)))
        done = project.sync(3)
        assert done.stderr.count("HTTP") == 1
        assert len(project.listed("pending")) == 20
        project.configure(declared | {"create": "POST /records"})
        project.sync()
