"""A depot with a GraphQL API, and its bugs. It refuses and throttles in answers with HTTP 200."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.nightly.planted.bugs import Bug
from tests.nightly.planted.depot import Depot, DepotCase, DepotSettings

from crossdock import Connector
from crossdock.sources import ApiAnswer, BearerAuth
from crossdock.targets import Answer, RecordShape, Request, TargetResource, Update
from crossdock.values import exact_json

REFUSED = {"data": {"order": None}, "errors": [{"code": 4, "message": "the postcode is wrong"}]}
THROTTLED = {"data": {"order": None}, "errors": [{"code": 30, "message": "no credits", "time_remaining": "17 seconds"}]}


def throttled(answer: ApiAnswer) -> bool | float:
    """The wait that the depot states in its own way."""
    stated = re.fullmatch("([0-9]+) seconds", str(answer.at("/errors/0/time_remaining")))
    return float(stated[1]) if stated else False


class Mutations(Depot):
    """Orders, sent by mutations, and looked up in a connection that has edges alone."""

    members = "id reference state placed_at address { street city region } lines { sku quantity price }"
    by_name = "query ($name: String!) { orders(reference: $name) { edges { node { MEMBERS } } } }"
    resources: Mapping[str, TargetResource] = {
        "orders": replace(
            Depot.resources["orders"],
            shape=RecordShape(record="/data/order", listed="/data/orders/edges/*/node", null_is_absent=True),
        )
    }

    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        return _asked("mutation ($input: Order!) { order: create(input: $input) { id reference } }", input=payload)

    def update(self, resource: str, target_id: str, update: Update) -> Request:
        query = "mutation ($id: ID!, $input: Order!) { order: update(id: $id, input: $input) { id reference } }"
        return _asked(query, id=target_id, input=update.after)

    def delete(self, resource: str, target_id: str) -> Request:
        return _asked("mutation ($id: ID!) { order: delete(id: $id) { id } }", id=target_id)

    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        if target_id is not None:
            return _asked(f"query ($id: ID!) {{ order(id: $id) {{ {self.members} }} }}", id=target_id)
        return _asked(self.by_name.replace("MEMBERS", self.members), name=name)

    def ping(self, resource: str) -> Request:
        return _asked("query { __typename }")

    def failed(self, resource: str, answer: ApiAnswer) -> int | None:
        return 422 if answer.at("/errors") and answer.at("/data/order") is None else None


def _asked(query: str, **variables: Any) -> Request:
    return Request.json("POST", "/graphql", {"query": query, "variables": variables})


def depot(target: type[Mutations], is_throttled: Any = throttled) -> Connector[DepotSettings]:
    return Connector(
        name="depot",
        title="A depot",
        settings=DepotSettings,
        streams=lambda _: (),
        api=lambda own: own.api(auth=BearerAuth(own.token), throttled=is_throttled),
        target=lambda _: target(),
    )


class MutationsCase(DepotCase):
    """Mutations and their answers."""

    connector = depot(Mutations)
    expects = {}
    harmless = ("POST /graphql",)
    refusals = ((Answer(200, {}, exact_json.dumps(REFUSED)), "the postcode is wrong"),)
    throttling = ((Answer(200, {}, exact_json.dumps(THROTTLED)), 17.0),)

    def answered(self, resource: str, operation: str, record: Any) -> Any:
        return {"data": {"order": record}}

    def listing(self, resource: str, records: Sequence[Any]) -> Any:
        return {"data": {"orders": {"edges": [{"node": each} for each in records]}}}


def _case(is_throttled: Any = throttled, **methods: Any) -> type[MutationsCase]:
    made = depot(type("Bug", (Mutations,), methods), is_throttled)
    return type("Case", (MutationsCase,), {"connector": made})


BUGS = [
    Bug(what, "mutations", made, test, says)
    for what, made, test, says in (
        ("a refusal in a 200 left in doubt", _case(failed=lambda *_: None), "a_refusal_is_rejected", "Bug.outcome"),
        ("throttling in a 200 taken for a refusal", _case(lambda _: False), "throttling_is_recognized", "Bug.outcome"),
        ("a wait that is not read off the answer", _case(lambda answer: bool(throttled(answer))),
         "throttling_is_recognized", "the pause is None s, not 17.0 s"),
        ("a look-up by another member", _case(by_name=Mutations.by_name.replace("reference:", "slug:")),
         "a_look_up_asks_for_the_name", "Bug.look_up, orders by name: the query asks by slug"),
        ("a look-up by another member", _case(by_name="query { orders { edges { node { MEMBERS } } } }"),
         "a_look_up_asks_for_the_name", "Bug.look_up, orders by name: the query asks by no argument"),
        ("a name that the look-up does not select", _case(members="id placed_at address { city }"),
         "a_look_up_asks_for_the_name", "the query lacks /data/orders/edges/*/node/reference"),
        ("a member that the look-up does not select", _case(members=Mutations.members.partition(" lines")[0]),
         "a_look_up_finds_what_was_sent", "lacks lines, as it was sent; select it in the query"),
        ("a 404 of a proxy believed", _case(resources={"orders": replace(
            Mutations.resources["orders"], shape=RecordShape(record="/data/order", listed="/data/orders/edges/*/node"),
         )}), "a_look_up_believes_no_other_answer", "set null_is_absent"),
    )
]  # fmt: skip
CORRECT = (MutationsCase,)
