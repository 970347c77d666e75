"""The judges themselves: what is wrong is found, and a run that proves nothing fails."""

from __future__ import annotations

import json
import math
import socket
from collections import Counter
from decimal import Decimal
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import pytest
from tests.chaos import failing
from tests.chaos.checks import Trial, attempts, attempts_seen, bytes_by_key, compare, effective_twice, judge, requests
from tests.chaos.depot import open_depot, open_sandbox
from tests.chaos.exports import Exports
from tests.chaos.failing import FAILPOINTS, LISTENING, MIGRATING, Failpoint
from tests.chaos.scripted import Asked, Said, Scripted
from tests.e2e.project_folder import LISTS
from tests.e2e.warehouse import Seen, ask


def seen(key: str, body: bytes = b"{}", path: str = "/a") -> Seen:
    return Seen(1, "POST", path, key, body)


def test_what_is_lost_twice_or_unexpected_is_told_apart() -> None:
    """Of three bodies one is missing, one of two equal ones is there three times, and one nobody knows."""
    found = compare(Counter({"a": 1, "b": 2}), Counter({"b": 3, "c": 1}))
    assert (found.records, found.lost, found.twice, found.unexpected) == (3, {"a": 1}, {"b": 1}, {"c": 1})
    assert not found.clean
    assert str(found).startswith("3 records, lost 1, twice 1, unexpected 1\n  lost: a")
    assert compare(Counter("abb"), Counter("bab")).clean


@pytest.mark.parametrize("cut", [5, -2, 25, -20])
def test_a_request_that_a_kill_cuts_off_has_no_effect(cut: int) -> None:
    """The scripted platform answers a whole request, and not one whose client died while it was sent."""
    request = b"POST /a HTTP/1.1\r\nidempotency-key: k\r\ncontent-length: 2\r\n\r\n{}"
    asked: list[Asked] = []

    def answer(each: Asked) -> Said:
        asked.append(each)
        return Said(204)

    with Scripted(answer) as server:
        for sent in (request[:cut], request):
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall(sent)
                client.shutdown(socket.SHUT_WR)
                while client.recv(1_000):
                    pass
    assert [(each.key, each.body) for each in asked] == [("k", b"{}")]


def test_two_effects_under_one_key_are_found() -> None:
    """A key may have one effect; what has no key is not compared."""
    keys = ["k1", "k2", "k1", None, None]
    assert effective_twice([{"idempotencyKey": key} for key in keys]) == ["k1"]


def test_first_attempts_and_resends_are_counted() -> None:
    """By key in the sandbox's log, quoted or not, and by body where there are no keys; reading does not count."""
    log = [{"idempotencyKey": key} for key in ('"a"', "a", '"a"', "b", None)]
    told = attempts(log)
    assert (told.first, told.resends, told.most, told.resent()) == (2, 2, 3, {"a": 3})
    assert math.isclose(told.amplification, 2.0)
    bare = attempts_seen([seen("", b"1"), seen("", b"1"), seen("", b"2"), seen("", b"1", "/b")])
    assert (bare.first, bare.resends) == (3, 1)
    assert attempts([]).amplification == attempts_seen([]).amplification == 1


def test_other_bytes_under_a_key_are_found() -> None:
    """Each different body under a key counts; one that broke off on its way is none."""
    sent = [("a", b"12"), ("a", b"12"), ("b", b"12"), ("b", b"21"), ("c", b"1"), ("c", b"12"), ("c", b""), ("", b"1")]
    hashes = bytes_by_key(seen(key, body) for key, body in sent)
    assert {key: len(bodies) for key, bodies in hashes.items()} == {"a": 1, "b": 2, "c": 1}


@pytest.mark.nightly
def test_an_engine_that_errs_is_found_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A record that is sent twice, a price that drifts and a night that is forgotten are each found at the platform."""
    exports = Exports(Random(1))
    with open_sandbox(tmp_path) as sandbox, open_depot(tmp_path, sandbox, in_flight=4) as depot:
        depot.export(exports.night(3, 3, 10))
        with pytest.raises(AssertionError, match="sent:99:before ended with 0"):
            depot.strike("sent", 99, "before")  # it lives to its end, and is no proof
        assert judge(exports.expected, sandbox).clean
        assert attempts(requests(sandbox)).resends == 0

        made = next(effect["body"] for effect in sandbox.effects() if effect["resource"] == "invoice")
        again = {name: made[name] for name in ("customerId", "currency", "items")}
        drifted = {**again, "items": [{**again["items"][0], "unitPrice": Decimal("999.9999")}]}
        for body in (again, drifted):
            headers = {"authorization": f"Bearer {sandbox.api_key}", "x-tenant-slug": sandbox.tenant}
            text = json.dumps(body, default=float).encode()
            headers["content-type"] = "application/json"
            assert ask(urlsplit(sandbox.base_url).netloc, "POST", LISTS["invoice"], text, headers).status == 201
        exports.night(0, 0, 1)
        found = judge(exports.expected, sandbox)
        assert (found.lost.total(), found.twice.total(), found.unexpected.total()) == (1, 1, 1)

        with Trial("a promise that is broken") as trial, pytest.raises(AssertionError, match="lost 1, twice 1"):
            trial.judge(exports.expected, sandbox)
        trial.plan("lost answer", 0.5, 100)
        trial.injected["lost answer"] = 20
        with pytest.raises(AssertionError, match=r"planned and not injected: \{'lost answer': 1"):
            trial.judge(exports.expected, sandbox)
    assert f"a promise that is broken: seed {trial.seed}; injected none; verdict 17 records" in capsys.readouterr().out


def test_the_engine_has_every_failpoint() -> None:
    """Each name in the table is a function of the engine, at one boundary of its own."""
    owners = [point.owner() for point in {**FAILPOINTS, **LISTENING, **MIGRATING}.values()]
    assert all(callable(getattr(owner, name)) for owner, name in owners)
    assert len(owners) >= 14


def test_a_failpoint_that_vanished_fails_loudly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A function that was renamed is an error at the start, not a strike that never comes."""
    gone = Failpoint("crossdock.state.tables.run_history", "Runs.gone", "night")
    monkeypatch.setattr(failing, "FAILPOINTS", {"gone": gone})
    with pytest.raises(AttributeError, match="gone"):
        failing.arm("gone", 1, "after", tmp_path / "note")
