"""A platform that answers falsely now and then: no record of somebody else is touched, and every run ends in order."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.chaos.chance import chaos_seed
from tests.e2e.project_folder import LISTS, UNPACED
from tests.e2e.warehouse import FORWARD, Fate, Front, Reply, Seen, Site, ask, expected, open_site

from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.state import StateUrl

ODD = "bad\u0000value \u001b]0;x\u0007 \u202eesrever\u2028 crossdock: done"
ODD_IDS = (".", "..", "../products", "", "x" * 65, "a\u0000b", "a\u001b[2Jb", "\u202eb", "a\nb", 17, None, ["x"])
HUGE = b'{"id": "x", "n": 1e400000000, "m": 1e-400000000}'
Twist = Callable[[Random, Seen, dict[str, Any]], bytes]


class Hostile(Front):
    """Forwards every request, and twists one answer in *every*.

    Attributes:
        foreign: Ids of records that are not ours, by resource.
        twisted: How many answers were, by kind.
    """

    def __init__(self, upstream: str, random: Random, every: int) -> None:
        super().__init__(upstream)
        self._random, self._every = random, every
        self.foreign: dict[str, list[dict[str, Any]]] = {}
        self.twisted: Counter[str] = Counter()

    def _obey(self, fate: Fate, seen: Seen, headers: dict[str, str]) -> Reply | None:
        reply = super()._obey(fate, seen, headers)
        with self._lock:
            if reply is None or fate != FORWARD or self._every == 0 or self._random.randrange(self._every):
                return reply
            return self._twisted(seen, reply)

    def end(self) -> None:
        """Answer truly from now on."""
        with self._lock:
            self._every = 0

    def _twisted(self, seen: Seen, reply: Reply) -> Reply:
        kind = self._random.choice([*(_LOOK_UPS if seen.method == "GET" else _WRITES), *_ANY])
        self.twisted[kind] += 1
        return getattr(self, f"_{kind}")(seen, reply)  # type: ignore[no-any-return]  # each gives a reply

    def _foreign(self, seen: Seen) -> dict[str, Any]:
        path = urlsplit(seen.path).path
        name = next((name for name, place in LISTS.items() if path.startswith(place)), "product")
        return self._random.choice(self.foreign.get(name) or self.foreign["product"])

    def _foreign_list(self, seen: Seen, reply: Reply) -> Reply:
        return _with(reply, {"data": [self._foreign(seen)]})

    def _foreign_record(self, seen: Seen, reply: Reply) -> Reply:
        return _with(reply, self._foreign(seen))

    def _our_name_on_a_foreign_id(self, seen: Seen, reply: Reply) -> Reply:
        body = _read(reply)
        records = body.get("data", [body])
        for record in records if isinstance(records, list) else []:
            record["id"] = self._foreign(seen)["id"]
        return _with(reply, body)

    def _nothing_there(self, _seen: Seen, reply: Reply) -> Reply:
        return _with(reply, {"data": []}, 200)

    def _swapped_id(self, seen: Seen, reply: Reply) -> Reply:
        return _with(reply, _read(reply) | {"id": self._foreign(seen)["id"]})

    def _odd_id(self, _seen: Seen, reply: Reply) -> Reply:
        return _with(reply, _read(reply) | {"id": self._random.choice(ODD_IDS)})

    def _odd_location(self, seen: Seen, reply: Reply) -> Reply:
        place = self._random.choice(["..", ".", f"../{self._foreign(seen)['id']}", "http://[::1", "%2e%2e", "x" * 300])
        reply.headers["Location"] = f"{urlsplit(seen.path).path}/{place}"
        return _with(reply, {})

    def _odd_problem(self, _seen: Seen, reply: Reply) -> Reply:
        status = self._random.choice([400, 409, 422])
        errors = [{"pointer": f"#/{ODD}", "detail": ODD}] * self._random.choice([0, 1, 500])
        return Reply(status, json.dumps({"detail": ODD, "title": ODD, "errors": errors}).encode(), reply.headers)

    def _huge_number(self, _seen: Seen, reply: Reply) -> Reply:
        return Reply(reply.status, HUGE, reply.headers)

    def _odd_members(self, _seen: Seen, reply: Reply) -> Reply:
        reply.headers["ETag"] = '"\x9b2J' + "e" * 300 + '"'
        return _with(reply, _read(reply) | {"note": ODD, "status": ODD})

    def _not_json(self, _seen: Seen, reply: Reply) -> Reply:
        return Reply(
            reply.status, self._random.choice([b"<html>", b"{", b"\xff\xfe", b"[]", b"null", b"17"]), reply.headers
        )


_LOOK_UPS = ("foreign_list", "foreign_record", "our_name_on_a_foreign_id", "nothing_there")
_WRITES = ("swapped_id", "our_name_on_a_foreign_id", "odd_id", "odd_location", "odd_problem")
_ANY = ("huge_number", "odd_members", "not_json")


def _read(reply: Reply) -> dict[str, Any]:
    try:
        body = json.loads(reply.body)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _with(reply: Reply, body: object, status: int | None = None) -> Reply:
    return Reply(status or reply.status, json.dumps(body).encode(), reply.headers)


@contextmanager
def hostile_site(
    folder: Path, monkeypatch: pytest.MonkeyPatch, url: StateUrl, *, every: int
) -> Iterator[tuple[Site, Hostile]]:
    """A warehouse behind whose back the platform twists one answer in *every*."""
    settings = SandboxSettings(rate_per_min=UNPACED.per_minute, burst=UNPACED.burst)
    with (
        SandboxServer(folder / "platform", settings) as sandbox,
        Hostile(sandbox.base_url, Random(chaos_seed()), every) as hostile,
        open_site(folder, sandbox, monkeypatch) as site,
    ):
        site.edit(sandbox.base_url, hostile.base_url)
        site.edit("in_flight: 4", "in_flight: 16")
        site.edit("attempts: 2", "attempts: 4")
        if url.drivername != "sqlite":
            site.edit("sqlite:///state.db", url.render_as_string(hide_password=False))
        hostile.foreign = _foreign_records(site)
        site.init()
        yield site, hostile


def _foreign_records(site: Site) -> dict[str, list[dict[str, Any]]]:
    """What somebody else keeps on the platform."""
    headers = {
        "authorization": f"Bearer {site.api_key}",
        "x-tenant-slug": site.tenant,
        "content-type": "application/json",
    }
    found: dict[str, list[dict[str, Any]]] = {}
    for name, facts in (("customer", {"name": "Theirs"}), ("product", {"sku": "T", "name": "Theirs", "active": True})):
        for number in range(5):
            body = json.dumps({"externalId": f"erp:{number}", **facts}).encode()
            reply = ask(urlsplit(site.platform.base_url).netloc, "POST", LISTS[name], body, headers)
            assert reply.status == 201, reply.body
            found.setdefault(name, []).append(json.loads(reply.body))
    return found


def survives(site: Site, hostile: Hostile, *, rounds: int, records: int) -> Counter[str]:
    """Create and change *records* of each kind in *rounds*; how many answers were twisted, by kind."""
    foreign = {record["id"] for listed in hostile.foreign.values() for record in listed}
    already = len(site.effects())
    rows = ["INVNO;CUSTNO;SKU;QTY;PRICE;CURRENCY"]
    for turn in range(rounds):
        numbers = range(records)
        customers = "".join(f"C{n};Name {turn} of {n}\n" for n in numbers)
        products = "".join(f"P{n};Thing {turn};{n}.{turn}0\n" for n in numbers)
        rows += [f"I{turn}-{n};C{n};P{n};{1 + turn * records + n};1.50;EUR" for n in numbers]
        site.export(f"CUST_{turn}.csv", f"CUSTNO;NAME\n{customers}")
        site.export(f"PROD_{turn}.csv", f"SKU;NAME;PRICE\n{products}")
        site.export(f"INV_{turn}.csv", "\n".join([rows[0], *rows[-records:], ""]))
        _in_order(site.sync())
    hostile.end()
    for _ in range(3):
        _in_order(site.sync())
    for command in (("records", "list", "--limit", "1000"), ("runs",), ("state", "stats")):
        _in_order(site.run(*command))
    touched = [effect for effect in site.effects()[already:] if effect["id"] in foreign]
    assert touched == [], "a foreign record was written"
    for resource in ("customer", "product"):
        names = Counter(site.names(resource))
        assert set(names.values()) == {1}, names.most_common(3)
    surplus = site.invoices() - expected("\n".join(rows))
    twice = {quantity for _, _, items in surplus for _, quantity, _ in items}
    made = Counter(item["quantity"] for effect in site.effects("invoice") for item in effect["body"]["items"])
    assert max(made.values()) == 1, f"an invoice was sent twice: {made.most_common(3)} {twice}"
    return hostile.twisted


def _in_order(result: Any) -> None:
    assert result.code in {0, 1, 3, 4}, f"exit {result.code}\n{result.err}"
    assert "Traceback" not in result.err
    shown = result.out + result.err
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029]", shown), ascii(shown)[:500]


@pytest.mark.nightly
def test_no_foreign_record_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state_url: StateUrl) -> None:
    """One answer in ten is false: nothing of others is written, nothing is done twice, nothing ends in a defect."""
    with hostile_site(tmp_path, monkeypatch, state_url, every=10) as (site, hostile):
        twisted = survives(site, hostile, rounds=2, records=20)
    assert twisted.total() >= 10, twisted
    print(f"\nhostile platform on {state_url.drivername}: seed {chaos_seed()}, {dict(twisted)}")
