"""The cases of `bench_allowance`: each runs a server and clients in separate processes and yields rows.

A ratio is the time from the first request to the last answer, as the server saw them, over (requests - burst) / rate.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tests.benchmarks import allowance_peers as peers
from tests.benchmarks.allowance_client import Client
from tests.benchmarks.allowance_server import UNLIMITED, Seen, Server, Size

from crossdock.testing.postgres_server import PostgresServer

LEARN = {"per_minute": "learn"}
PAIRS = 7  # of a burst, paced and unpaced in turn
PROCESSES = 4
LIVE, LIVE_AT_MS = 20, 50


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        met: Whether the goal was reached; None where there is none.
    """

    case: str
    goal: str
    result: str
    met: bool | None
    seconds: float

    def cells(self, others: float) -> tuple[object, ...]:
        """The cells of the table, with the number of cores that *others* used."""
        met = "" if self.met is None else "yes" if self.met else "NO"
        return (self.case, self.goal, self.result, met, f"{self.seconds:.2f}", f"{others:.2f}")


def configured(size: Size, **more: str) -> dict[str, Any]:
    """The rate section of a config."""
    return {"per_minute": size.per_minute, "burst": size.burst, **more}


def load(server: Server, rate: dict[str, Any], count: int, folder: Path, first: int = 0) -> tuple[Seen, dict[str, Any]]:
    """Let a client deliver *count* products; what the server saw, and the client's result."""
    before = server.count()
    with Client(server, folder, rate, count, first=first) as client:
        client.go()
        result = client.result()
    assert result["delivered"] == count, result
    return server.seen(before), result


def alone(size: Size, rate: dict[str, Any], count: int, latency_ms: int) -> tuple[Seen, Any]:
    """The same against a new server."""
    with tempfile.TemporaryDirectory() as folder, Server(size, latency_ms) as server:
        return load(server, rate, count, Path(folder))


def judged(case: str, seen: Seen, ratio: float, refused: float, more: str = "") -> Row:
    """A row with two goals: a ratio and a share of refused requests."""
    share = f"429: at most {refused:.1%}" if refused else "429: 0"
    text = f"{seen.ratio:.4f}, 429: {seen.refused} ({seen.refused_share:.2%}){more}"
    met = seen.ratio <= ratio and seen.refused_share <= refused
    return Row(case, f"at most {ratio}, {share}", text, met, seen.seconds)


def known_bucket(size: Size, *, quick: bool) -> Iterator[Row]:
    """Rate and burst are configured."""
    for bursts, latency_ms in [(3, 50)] if quick else [(3, 0), (3, 50), (3, 200), (10, 50)]:
        seen, _ = alone(size, configured(size), bursts * size.burst, latency_ms)
        more = f"; at most {seen.most_at_once:,.0f} at once"
        yield judged(f"known, N = {bursts} B, {latency_ms} ms", seen, 1.02, 0.0, more)


def one_burst(size: Size, *, quick: bool) -> Iterator[Row]:
    """As many requests as the bucket holds, compared with an unpaced client and a server without a limit."""
    for latency_ms in [50] if quick else [0, 50]:
        pairs = [
            (
                alone(size, configured(size), size.burst, latency_ms)[0],
                alone(UNLIMITED, configured(UNLIMITED), size.burst, latency_ms)[0],
            )
            for _ in range(3 if quick else PAIRS)
        ]
        ours, theirs = (median(each.seconds for each in arm) for arm in zip(*pairs, strict=True))
        refused, speed = sum(paced.refused for paced, _ in pairs), median(u.seconds / p.seconds for p, u in pairs)
        rates = f"medians {size.burst / ours:,.0f} and {size.burst / theirs:,.0f} a second"
        result = f"{speed:.3f} of the unpaced rate ({rates}, {len(pairs)} pairs), 429: {refused}"
        met = speed >= 0.9 and not refused
        yield Row(f"known, N = B, {latency_ms} ms", "at least 0.9 of the unpaced rate, 429: 0", result, met, ours)


def hidden_bucket(size: Size, *, quick: bool) -> Iterator[Row]:
    """Nothing is reported; the second run starts with the stored estimate, once the bucket is full again."""
    for latency_ms in [50] if quick else [0, 50, 200]:
        count = 3 * size.burst
        with tempfile.TemporaryDirectory() as name, Server(size, latency_ms) as server:
            folder = Path(name)
            for run, ratio, refused in ((1, 1.08, 0.02), (2, 1.03, 0.002)):
                seen, result = load(server, LEARN, count, folder, first=(run - 1) * count)
                rate, burst = result["rate_per_s"], result["burst"]
                learned = f"; then known: {rate:.1f}/s, {burst:,}" if rate else "; nothing learned"
                yield judged(f"nothing reported, run {run}, N = 3 B, {latency_ms} ms", seen, ratio, refused, learned)
                if run == 1:
                    time.sleep(1.1 * size.gain_s(size.burst))


def shared_bucket(size: Size, *, quick: bool) -> Iterator[Row]:
    """Processes share a bucket; one is killed half-way and restarted."""
    with tempfile.TemporaryDirectory() as folder:
        yield together(size, "SQLite", f"sqlite:///{folder}/bucket.db")
    if quick:
        return
    if not PostgresServer.available():
        yield Row(f"{PROCESSES} processes, PostgreSQL", "at most 1.05, 429: 0", "no PostgreSQL here", None, 0.0)
        return
    with PostgresServer() as postgres:
        yield together(size, "PostgreSQL", postgres.create_database())


def together(size: Size, where: str, url: str, latency_ms: int = 50) -> Row:
    """Deliver five bursts by all processes, each product once; the time includes requests resent after the kill."""
    rate, each = configured(size, shared=url), 5 * size.burst // PROCESSES
    with ExitStack() as opened:
        server = opened.enter_context(Server(size, latency_ms))
        folders = [Path(opened.enter_context(tempfile.TemporaryDirectory())) for _ in range(PROCESSES)]
        waiting = [Client(server, folder, rate, each, first=n * each) for n, folder in enumerate(folders)]
        clients = [opened.enter_context(client) for client in waiting]
        for client in clients:
            client.go()
        while server.count() < PROCESSES * each // 2:
            time.sleep(0.05)
        clients[0].kill()
        clients[0] = opened.enter_context(Client(server, folders[0], rate, each))
        clients[0].go()
        results = [client.result() for client in clients]
        assert [one["delivered"] for one in results[1:]] == [each] * (PROCESSES - 1), results
        assert server.created() == PROCESSES * each
        seen = server.seen()
    twice = seen.accepted - PROCESSES * each
    more = f"; at most {seen.most_at_once:,.0f} at once; {twice} sent again"
    return judged(f"{PROCESSES} processes, {where}, one killed, N = 5 B, {latency_ms} ms", seen, 1.05, 0.0, more)


def live_request(size: Size, *, quick: bool) -> Iterator[Row]:
    """A process with the priority ``live`` sends requests while a batch uses the bucket that both share."""
    count = 2 * size.burst if quick else 5 * size.burst
    number, trip_s = 5 if quick else LIVE, LIVE_AT_MS / 1000
    with ExitStack() as opened:
        server = opened.enter_context(Server(size, LIVE_AT_MS))
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        rate = configured(size, shared=f"sqlite:///{folder}/bucket.db")
        for name in ("live", "batch"):
            (folder / name).mkdir()
        asking = Client(server, folder / "live", rate, 2 * number + 1, first=count, priority="live", one_by_one=True)
        live = opened.enter_context(asking)
        quiet = asked(live, number + 1, 0.2)[1:]  # the first one connects
        time.sleep(size.gain_s(number))
        batch = opened.enter_context(Client(server, folder / "batch", rate, count))
        before = server.count()
        batch.go()
        while server.count() < before + size.burst + count // 20:
            time.sleep(0.05)
        steady_s = size.gain_s(before + count - server.count())
        busy = asked(live, number, max(0.0, 0.8 * steady_s / number - 2 * trip_s))
        running = server.count() < before + count
        batch.result()
        seen = server.seen(before)
    assert running, "the batch was over before the last live request"
    answers, tokens = [one.answer_s / trip_s for one in busy], [one.token_s for one in busy]
    without = [one.answer_s / trip_s for one in quiet]
    times = f"median {median(answers):.2f}, longest {max(answers):.2f}; token after {max(tokens) * 1000:.0f} ms at most"
    case = f"{number} live requests during a batch of {count:,}, {LIVE_AT_MS} ms"
    times += f"; without a batch {median(without):.2f} and {max(without):.2f}"
    result = f"{times}; 429: {seen.refused}; the batch {seen.ratio:.4f}"
    yield Row(case, f"at most 2 round trips of {LIVE_AT_MS} ms", result, max(answers) <= 2, seen.seconds)


class Took(NamedTuple):
    """Seconds until a request had its token, and until it was answered."""

    token_s: float
    answer_s: float


def asked(live: Client, number: int, every_s: float) -> list[Took]:
    """The times of *number* requests, each *every_s* after the previous answer."""
    took = []
    for _ in range(number):
        live.go()
        took.append(Took(*live.result()))
        time.sleep(every_s)
    return took


def side_by_side(size: Size, *, quick: bool) -> Iterator[Row]:
    """Other clients against the same server."""
    count, latency_ms = 3 * size.burst, 50
    ours: Mapping[str, dict[str, Any]] = {"crossdock, known": configured(size), "crossdock, nothing reported": LEARN}
    for name, rate in ours.items():
        seen, result = alone(size, rate, count, latency_ms)
        yield beside(name, seen, result["cpu_s"])
    if needed := peers.missing():
        yield Row("beside others", "", f"not installed: {needed}", None, 0.0)
        return
    for peer in peers.PEERS:
        with Server(size, latency_ms, dialect="draft10" if peer == "Retry-After" else "none") as server:
            cpu_s = peers.deliver(server, peer, size, count)
            seen = server.seen()
        yield beside(peer, seen, cpu_s)


def beside(name: str, seen: Seen, cpu_s: float) -> Row:
    result = f"{seen.ratio:.4f}, 429: {seen.refused} ({seen.refused_share:.2%}); CPU {cpu_s:.1f} s"
    return Row(f"beside others: {name}, N = 3 B, 50 ms", "", result, None, seen.seconds)


CASES: Mapping[str, Callable[..., Iterator[Row]]] = {
    "known": known_bucket,
    "burst": one_burst,
    "hidden": hidden_bucket,
    "shared": shared_bucket,
    "live": live_request,
    "others": side_by_side,
}
