"""Whatever texts a platform answers with, the state takes them, on both databases."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.integration.delivery.harness import SCOPE, Answer, Bench, Platform, Seen, created, operation, updating

EVIL = 'bad\0value \x1b[2J\u202e\u2028"\r\ncrossdock: run 1: done'
SHOWN = r"bad\x00value \x1b[2J\u202e\u2028" + r'"\r\ncrossdock: run 1: done'
EVERYWHERE = {
    "type": EVIL,
    "title": EVIL,
    "detail": EVIL,
    "errors": [{"pointer": f"#/{EVIL}", "detail": EVIL}],
}


def test_a_refusal_with_nul_is_a_dead_letter(bench: Bench, platform: Platform) -> None:
    """A problem document with NUL and escapes in all its texts refuses its record, and the next one is delivered."""
    platform.script = lambda seen: (
        (422, {}, json.dumps(EVERYWHERE).encode()) if b'"wms:0"' in seen.body else created(seen)
    )
    bench.deliver(2)
    assert bench.statuses() == {"rejected": 1, "delivered": 1}
    with bench.state.begin_read_only() as tx:
        (dead_letter,) = tx.dead_letters.listed(limit=9)
    assert (dead_letter["message"], dead_letter["pointer"]) == (SHOWN, f"/{SHOWN}")


@pytest.mark.parametrize("status", [500, 503])
def test_an_attempt_that_failed_with_nul_is_kept(bench: Bench, platform: Platform, status: int) -> None:
    """The story of a record that was sent again holds what was answered, and the run goes on."""

    def script(seen: Seen) -> Answer:
        wait = {"retry-after": "0"} if status == 503 else {}
        return created(seen) if seen.turn > 1 else (status, wait, json.dumps(EVERYWHERE).encode())

    platform.script = script
    bench.deliver(1)
    assert bench.statuses() == {"delivered": 1}
    with bench.state.begin_read_only() as tx:
        (made,) = tx.record_history.operations(SCOPE, 0)
    assert SHOWN in [sent["message"] for sent in made["sendings"]]


def test_a_version_with_control_characters_is_no_version(bench: Bench, platform: Platform) -> None:
    """An entity tag that RFC 9110 does not allow is not kept and not sent back; any other is, as it came."""
    tags = {b'"wms:0"': '"a\x1bb"', b'"wms:1"': '"v\xe91"'}

    def script(seen: Seen) -> Answer:
        status, _, body = created(seen) or (0, {}, b"")
        return status, {"etag": next((tag for name, tag in tags.items() if name in seen.body), '"v2"')}, body

    platform.script = script
    bench.deliver(2)
    assert [bench.binding(number).etag for number in range(2)] == [None, '"v\xe91"']
    for number in range(2):
        bound = bench.binding(number)
        bench.carry_out([updating(bound, {**bound.payload, "name": "y"})])
    assert [seen.if_match for seen in platform.of("PATCH")] == [None, '"v\xe91"']


TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\0\x1b\x7f\x85\u2028\u202e"), max_size=20)
PROBLEM = st.fixed_dictionaries(
    {},
    optional={
        "type": TEXT,
        "title": TEXT,
        "detail": TEXT,
        "errors": st.lists(st.fixed_dictionaries({}, optional={"pointer": TEXT, "detail": TEXT}), max_size=3),
    },
)


def refuse_anything(bench: Bench, platform: Platform, examples: int) -> None:
    """Refuse records with problems of any texts; each must be settled as a dead letter."""

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(problems=st.lists(st.tuples(st.sampled_from([400, 422]), PROBLEM), min_size=1, max_size=8))
    def refuse(problems: list[tuple[int, object]]) -> None:
        def script(seen: Seen) -> Answer:
            if seen.method == "GET":  # whether the platform has a record that is in the way
                return 200, {}, b'{"data":[]}'
            status, problem = problems[int(json.loads(seen.body)["externalId"].removeprefix("wms:"))]
            return status, {}, json.dumps(problem).encode()

        platform.script = script
        with bench.state.begin() as tx:
            tx.dead_letters.remove_records("wms.products", range(9))
        bench.carry_out([operation(number) for number in range(len(problems))])
        with bench.state.begin_read_only() as tx:
            assert len(tx.dead_letters.listed(limit=99)) == len(problems)
            assert tx.intents.unsettled() == []

    refuse()


@pytest.mark.nightly
def test_any_refusal_is_settled(bench: Bench, platform: Platform) -> None:
    """Whatever texts refusals hold, each record is settled as a dead letter."""
    refuse_anything(bench, platform, 15)
