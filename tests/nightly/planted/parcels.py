"""Parcels that only their order shows, and their bugs: a look-up has all parcels of the order."""

from __future__ import annotations

from typing import Any

from tests.nightly.planted.bugs import Bug
from tests.unit.testing.parcels_target import ParcelsContract, ParcelsOfOneOrderContract, ParcelTarget, parcels

from crossdock.targets import Answer, ExpectedRecord, Outcome, Request


def _case(**methods: Any) -> type[ParcelsContract]:
    return type("Case", (ParcelsContract,), {"connector": parcels(type("Bug", (ParcelTarget,), methods))})


def _other_order_believed(self: Any, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
    found = ParcelTarget.found(self, resource, answer, expected)
    is_whole = found.kind == "unavailable" and answer.status == 200 and answer.body.endswith(b"}")
    return Outcome("absent", status=200) if is_whole else found


BUGS = [
    Bug(what, "parcels", made, test, says)
    for what, made, test, says in (
        ("a foreign record believed", _case(is_it=lambda *_: True), "a_look_up_tells_records_of_a_parent_apart",
         "Bug.found, parcels, look_up by name of A%2F0|1Z%7C0"),
        ("a foreign record believed", _case(found=_other_order_believed), "a_look_up_believes_no_other_answer",
         "Bug.found, parcels, look_up by name: another record is taken for absent"),
        ("a look-up that does not ask for the record", _case(look_up=lambda *_: Request("GET", "/orders/latest")),
         "a_look_up_asks_for_the_name", "Bug.look_up"),
    )
]  # fmt: skip
CORRECT = (ParcelsContract, ParcelsOfOneOrderContract)
