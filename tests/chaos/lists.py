"""Lists of an API that ignores parameters, repeats pages, changes while it is read and states wrong totals.

It also fails inside of answers of success, and ends its lists in all ways that APIs do.
The API is written from what APIs do, and knows nothing of crossdock's paginators. Each case is read by the real engine
and delivered to a small platform; a case is judged by what the platform holds, and by what was deleted there.
The short form is in `tests.chaos.test_lists`, the long one in `tests.long.test_lists`.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest
from tests.chaos.books import Platform, empty
from tests.chaos.scripted import Scripted

from crossdock.config.project import project
from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.config.project.project import Project
from crossdock.reading.sources import paginated_api_client
from crossdock.reading.sources.run_context import SourceContext
from crossdock.runs import parts_between_checkpoints, sync_and_replay
from crossdock.runs.run_report import Report
from crossdock.state import PinnedTenant, StateUrl, create_or_upgrade_state
from crossdock.targets import Target
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import SilentProgress

KINDS = (
    "page_number",
    "offset",
    "after_id",
    "cursor_in_body",
    "cursor_in_header",
    "link_header",
    "next_url",
    "graphql_connection",
)
COUNTED = {"page_number", "offset"}
FAULTS = ("none", "ignored", "repeated", "overlapping", "drifting", "shrinking")
TOTALS = ("none", "right", "of the page", "too small", "too large")
PLACES = ("query", "body", "variables")
EVENTS = ("created", "deleted", "changed")
PAGE_LIMITS = tuple(range(3, 8))
AFTER = ("empty", "empty", "repeated", "cursor", 204, 400, 404)
WORDS = ("none", "none", "right", "always")
ERRORS = ("none", "none", "success", "errors", "code", "busy", "message", "failed", 207, 503)
Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One list, how it is declared, and what the API does.

    Attributes:
        pages: What the API states as its number of pages, as `TOTALS`.
        ahead_s: By how much the clock of the API is ahead of ours.
        events: What happens to the records after the first requests; each a number of requests, and an event.
        after: What comes after the last page: a page without records, the last one once more, a page without records
            with another cursor, or a status.
        word: Whether pages say that there are more: not at all, rightly, or that there are none on each page.
        stop: What `stop` of the pagination declares.
        error: How one answer fails: by a member beside an empty list, or beside a part of it, or by its status.
        failing: The number of the request that fails.
        cap: The number of requests after which the list ends as after its last page, although there are more.
        most: The number of records after which it ends so, which may shorten the last page.
        page_limit: The number of records that the server gives at most in a page, however many are asked for: it then
            tells of no next page, and pages by number begin where those of the asked size would.
    """

    seed: int
    kind: str
    place: str
    fault: str
    total: str
    pages: str
    number: int
    size: int
    declares_size: bool
    mode: str
    by_change: bool
    part_rows: int
    ahead_s: int
    events: tuple[tuple[int, str], ...]
    after: str | int = "empty"
    word: str = "none"
    stop: str = "none"
    error: str | int = "none"
    failing: int = 0
    cap: int | None = None
    most: int | None = None
    page_limit: int | None = None

    @classmethod
    def drawn(cls, seed: int) -> Case:
        return cls.of_pages(seed)._with_ends(Random(f"ends of {seed}"))._with_cuts(Random(f"cuts of {seed}"))

    def _with_cuts(self, random: Random) -> Case:
        """Return this case, in some cases with a limit of records or of a page that no total reveals by itself."""
        case, is_refused = self, isinstance(self.after, int) and self.after >= 400
        if is_refused and self._is_told and not self.declares_cap and self.number and random.random() < 0.7:
            most = random.randint(1, self.number)
            shows = self.pages == "none" or self.total != "none" or -(-most // self.size) < -(-self.number // self.size)
            case = replace(case, most=most if shows else None)
        is_limited = self.has_size and self.size > min(PAGE_LIMITS) and self.fault not in {"shrinking", "repeated"}
        if is_limited and random.random() < 0.5:
            limits = [each for each in PAGE_LIMITS if each < self.size]
            case = replace(case, page_limit=random.choice(limits), cap=None, most=None)
        return case

    @property
    def _is_told(self) -> bool:
        """Whether no statement of the API hides a limit of it."""
        return {self.total, self.pages} <= {"none", "right", "too large"} and self.word != "always"

    @property
    def declares_cap(self) -> bool:
        """Whether the limit that the API documents is declared, so that a status below it can end the list."""
        is_status = self.stop == "statuses" and isinstance(self.after, int) and self.after >= 400
        return is_status and self.kind in COUNTED and not self.states_end

    def _with_ends(self, random: Random) -> Case:
        """Return this case with an end and errors, but not with two that hide each other: nothing shows those."""
        after, word, error = random.choice(AFTER), random.choice(WORDS), random.choice(ERRORS)
        is_asked = self.kind in {"page_number", "offset", "after_id"}
        has_cursor = self.kind in {"cursor_in_body", "cursor_in_header"}
        if (after == "repeated" and self.kind != "page_number") or (isinstance(after, int) and not is_asked):
            after = "empty"
        after = "empty" if after == "cursor" and not has_cursor else after
        stops = ["none"]
        if word == "right" and (is_asked or has_cursor):
            stops.append("when")
        if isinstance(after, int) and (after == 204 or self.total != "none" or self.kind in COUNTED):
            stops.append("statuses")
        if after == "repeated" and self.states_end:
            stops.append("repeated")
        stop = random.choice(stops)
        if after == "cursor":
            word = stop = "right"
            stop = "when"
        is_told = replace(self, word=word)._is_told
        cap = (
            random.randint(1, 3)
            if isinstance(after, int) and after >= 400 and is_told and random.random() < 0.3
            else None
        )
        return replace(self, after=after, word=word, stop=stop, error=error, failing=random.randint(1, 4), cap=cap)

    @property
    def has_size(self) -> bool:
        return self.declares_size and self.kind not in {"link_header", "next_url", "graphql_connection"}

    @property
    def states_end(self) -> bool:
        return self.kind in COUNTED and (self.total != "none" or self.pages != "none")

    def is_end_known(self, number: int) -> bool:
        """Whether the API, or what is declared, proves the end of a list of *number* records that stands still."""
        if self.stop == "when" or self.after == "empty":
            return True
        if self.word == "right":
            return number > 0
        if self.after == "repeated":
            return self.stop == "repeated" or (self.states_end and number > self.size)
        if self.after == 204:
            return self.stop == "statuses" or (self.states_end and number > 0)
        return number > 0 and (self.states_end or self.declares_cap)

    @classmethod
    def of_pages(cls, seed: int) -> Case:
        """A case whose list ends with a page without records, or without a next one, and whose requests succeed."""
        random = Random(seed)
        kind, fault = random.choice(KINDS), random.choice(FAULTS)
        free = kind not in {"link_header", "next_url"}
        total = random.choice(TOTALS) if free else "none"
        mode = random.choice(("snapshot", "on_gone", "existing", "incremental", "incremental"))
        size = random.choice((1, 2, 3, 5, 8))
        many = tuple((random.randint(1, 4), random.choice(EVENTS)) for _ in range(random.randint(1, 3)))
        place = "variables" if kind == "graphql_connection" else random.choice(PLACES) if free else "query"
        return cls(
            seed=seed,
            kind=kind,
            place=place,
            fault=fault,
            total=total,
            pages=random.choice(TOTALS) if kind == "page_number" else "none",
            number=random.choice((0, 1, size, 2 * size, 3 * size, random.randint(1, 30))),
            size=size,
            declares_size=random.random() < 0.5,
            mode="on_gone" if mode == "existing" and place != "query" else mode,
            by_change=kind != "after_id" and random.random() < 0.5,
            part_rows=random.choice((1, 500)),
            ahead_s=random.choice((0, 0, -120, 120, -7_200, 7_200, -86_400, 86_400)),
            events=many if fault == "drifting" else (),
        )

    @property
    def removes(self) -> bool:
        return self.mode in {"on_gone", "existing"}

    @property
    def has_cursor(self) -> bool:
        return self.mode in {"incremental", "existing"}

    @property
    def is_blind(self) -> bool:
        """Whether nothing that the API says shows what it does: a record may be read in a later run only.

        Records that are deleted move those behind them to earlier pages: without a total this looks like any other
        list, and with one it does if as many are created. What such a list lacks never counts as gone.
        """
        deleted = any(event == "deleted" for _, event in self.events)
        created = any(event == "created" for _, event in self.events)
        return self.kind in COUNTED and deleted and (self.total == "none" or created or self.total == "of the page")


class Api:
    """Lists records, in the order of their ids or changes."""

    def __init__(self, case: Case, now: Callable[[], datetime]) -> None:
        self.case, self._now, self._random = case, now, Random(case.seed)
        start = now() - timedelta(days=9)
        self.records: dict[int, Item] = {
            n: {"id": n, "sku": f"00{n}", "title": "v1", "changed": _text(start, 900 * n)} for n in _ids(case)
        }
        self.touched, self.deleted = set[int](), set[int]()
        self.is_honest = True
        self._answers, self._requests, self._last = 0, 0, b""
        self._is_after, self.listed = False, 0
        self._repeated = self._random.randint(2, 3)

    def begin(self, *, honest: bool) -> None:
        """Another run begins."""
        self.is_honest, self._requests = honest, 0

    def answer(self, request: httpx.Request) -> httpx.Response:
        self._requests += 1
        self._answers += 1
        fault = "none" if self.is_honest else self.case.fault
        if fault == "drifting":
            for after, event in self.case.events:
                if after == self._requests - 1:
                    self._happen(event)
        asked = self._asked(request)
        if fault == "ignored":
            asked = {name: value for name, value in asked.items() if name in {"since", "limit"}}
        is_capped = not self.is_honest and self.case.cap is not None and self._requests > self.case.cap
        body, headers = self._page(asked, fault)
        if isinstance(self.case.after, int) and (self._is_after or is_capped):
            return httpx.Response(self.case.after, json={"message": "no such page"} if self.case.after >= 400 else None)
        if not self.is_honest and self._requests == self.case.failing and self.case.error != "none":
            return self._failed(body, headers)
        if fault == "repeated" and self._requests == self._repeated:
            return httpx.Response(200, content=self._last, headers=headers)
        headers["date"] = format_datetime(self._now(), usegmt=True)
        self._last = json.dumps(body).encode()
        return httpx.Response(200, content=self._last, headers=headers)

    def _failed(self, body: dict[str, Any], headers: dict[str, str]) -> httpx.Response:
        """An answer that fails, in place of a page with *body*."""
        error, shown = self.case.error, json.loads(json.dumps(body))
        holder = shown["data"]["items"] if "data" in shown else shown
        name = "nodes" if "data" in shown else "items"
        if error == 503:
            return httpx.Response(503, json=shown)
        if error == 207:
            return httpx.Response(207, json=shown, headers=headers)
        holder[name] = holder[name][1:] if error == "errors" else []
        told: dict[str, Any] = (
            {"errors": [{"message": "one is missing"}]} if error == "errors" else {"code": str(error)}
        )
        told = {"success": False} if error == "success" else told
        told = {"message": "Too many requests"} if error == "message" else told
        told = {"failed": True} if error == "failed" else told
        return httpx.Response(200, json={**shown, **told}, headers=headers)

    def change_one(self) -> None:
        """A record changes between two runs."""
        self._happen("changed")

    def show_late(self) -> None:
        """A record appears whose time is five minutes before the latest one."""
        number = max(self.records, default=0) + 1
        latest = max((datetime.fromisoformat(item["changed"]) for item in self.records.values()), default=self._now())
        self.records[number] = self._record(number, "late") | {"changed": _text(latest, -300)}

    def _happen(self, event: str) -> None:
        known = sorted(self.records)
        if event == "created":
            self.records[max(known, default=0) + 1] = self._record(max(known, default=0) + 1, "new")
            self.touched.add(max(known, default=0) + 1)
        elif known:
            chosen = self._random.choice(known)
            self.touched.add(chosen)
            if event == "deleted":
                del self.records[chosen]
                self.deleted.add(chosen)
            else:
                self.records[chosen] = self._record(chosen, f"changed {self._answers}")

    def _record(self, number: int, title: str) -> Item:
        return {"id": number, "sku": f"00{number}", "title": title, "changed": _text(self._now(), self._answers)}

    def _asked(self, request: httpx.Request) -> dict[str, str]:
        """What a request asks for, where this API reads it; elsewhere it would be ignored."""
        case, found = self.case, dict(parse_qsl(request.url.query.decode()))
        if request.method == "GET":
            return found
        body = json.loads(request.content)
        held = body["variables"] if case.place == "variables" else body
        paging = held if case.kind == "graphql_connection" else held.get("paging", {})
        since = {"since": held["since"]} if "since" in held else {}
        return {name: str(value) for name, value in {**paging, **since}.items()}

    def _page(self, asked: Mapping[str, str], fault: str) -> tuple[dict[str, Any], dict[str, str]]:
        case = self.case
        listed = [item for item in self.records.values() if item["changed"] >= asked.get("since", "")]
        listed.sort(key=self._place)
        self.listed = len(listed)
        number = len(listed)
        if case.most is not None and not self.is_honest:
            listed = listed[: case.most]
        size = int(asked.get("limit", case.size))
        is_cut = case.page_limit is not None and size > case.page_limit
        if fault == "shrinking":
            size = max(1, size - 1) if case.kind == "page_number" else self._random.randint(1, size)
        start = self._start(asked, listed, size)
        start = max(0, start - self._random.randint(1, 2)) if fault == "overlapping" and start else start
        self._is_after = start >= len(listed) and (start > 0 or case.stop == "statuses") and "token" not in asked
        if self._is_after and case.after == "repeated":
            start = max(0, (len(listed) - 1) // size * size)
        found = listed[start : start + (min(size, case.page_limit or size))]
        end = start + len(found)
        token = f"{found[-1]['changed']}~{found[-1]['id']}" if found else asked.get("token", "~~").rsplit("~", 1)[0]
        more = end < number and not is_cut
        shown = [{**item, "seen_at": self._answers} for item in found]
        paging: dict[str, Any] = {"next": None, "url": None, "total": _stated(case.total, number, len(found))}
        paging["pages"] = _stated(case.pages, -(-number // size), 1)
        if case.word != "none":
            paging["has_more"] = more and case.word == "right"
        headers = {}
        if more or (case.after == "cursor" and token != "~"):
            n = self._answers if fault == "ignored" or case.after == "cursor" else 0
            token = f"{token}~{n}"
            url = httpx.URL(
                "https://lists.example/items",
                params={**({"since": asked["since"]} if "since" in asked else {}), "token": token},
            )
            paging |= {"next": token, "url": str(url)}
            headers = {"x-next": token, "link": f'<{url}>; rel="next"'}
        if case.kind == "graphql_connection":
            info = {"hasNextPage": more, "endCursor": token or None}
            told = {"has_more": paging["has_more"]} if "has_more" in paging else {}
            connection = {"nodes": shown, "pageInfo": info, **told, "totalCount": paging["total"]}
            return {"data": {"items": connection}}, headers
        return {"items": shown, "paging": paging}, headers

    def _place(self, item: Item) -> tuple[Any, ...]:
        """By what the list is sorted."""
        return (item["changed"], item["id"]) if self.case.by_change else (item["id"],)

    def _start(self, asked: Mapping[str, str], listed: list[Item], size: int) -> int:
        if "page" in asked:
            return (int(asked["page"]) - 1) * size
        if "skip" in asked:
            return int(asked["skip"])
        if "since_id" in asked:
            return sum(item["id"] <= int(asked["since_id"]) for item in listed)
        if "token" in asked:
            changed, number, *_ = asked["token"].split("~")
            after = self._place({"changed": changed, "id": int(number)})
            return sum(self._place(item) <= after for item in listed)
        return 0


def _stated(how: str, right: int, of_the_page: int) -> int | None:
    """What an API states as the number of its records or pages."""
    stated = {"right": right, "of the page": of_the_page, "too small": right - 1, "too large": right + 1}
    return stated.get(how)


def _ids(case: Case) -> range:
    return range(1, case.number + 1)


def _text(moment: datetime, number: int) -> str:
    return (moment + timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%SZ")


def declared(case: Case) -> dict[str, Any]:
    """The stream of a config that reads the list of *case* as the API documents it."""
    nested = case.place != "query" and case.kind != "graphql_connection"
    name = (lambda text: f"paging.{text}") if nested else (lambda text: text)
    paging: dict[str, Any] = {"kind": case.kind}
    match case.kind:
        case "page_number":
            paging |= {"param": name("page")} | ({} if case.pages == "none" else {"pages": "paging.pages"})
        case "offset":
            paging |= {"param": name("skip")}
        case "after_id":
            paging |= {"param": name("since_id")}
        case "cursor_in_body":
            paging |= {"param": name("token"), "path": "paging.next"}
        case "cursor_in_header":
            paging |= {"param": name("token"), "header": "X-Next"}
        case "next_url":
            paging |= {"path": "paging.url"}
        case "graphql_connection":
            paging |= {"path": "data.items", "cursor": "token"}
    sized = case.kind not in {"link_header", "next_url"}
    if sized and case.declares_size:
        paging |= {
            "size": case.size,
            "size_variable" if case.kind == "graphql_connection" else "size_param": name("limit"),
        }
    if sized and case.total != "none":
        paging["total"] = "data.items.totalCount" if case.kind == "graphql_connection" else "paging.total"
    if case.declares_cap:
        paging["cap"] = 1_000
    if case.stop != "none":
        stops: dict[str, Any] = {"when": {"field": "paging.has_more", "equals": "false"}, "statuses": [case.after]}
        paging["stop"] = {case.stop: stops.get(case.stop, True)}
    since = {"since": "{since}"} if case.has_cursor else {}
    stream: dict[str, Any] = {"path": "/items", "records": "items", "key": ["id"], "resource": "product"}
    stream |= {"map": {"sku": "sku", "name": "title"}, "mode": case.mode, "pagination": paging}
    if case.removes:
        stream |= {"on_gone": "delete", "gone": {"at_most_percent": 100, "rows_within_percent": 100}}
    if case.mode == "on_gone":
        stream["mode"] = "snapshot"
    if case.mode == "existing":
        stream |= {"mode": "incremental", "existing": {"path": "/items", "records": "items"}}
    if case.has_cursor:
        stream |= {"cursor": {"column": "changed", "as": "instant", "sorted": case.by_change}}
    if case.place == "variables":
        query = "query ($token: String, $limit: Int, $paging: Paging, $since: String) { items { id } }"
        stream |= {"graphql": query, "variables": since}
    elif case.place == "body":
        stream |= {"body": {"filter": 1, **since}}
    else:
        stream |= {"params": since}
    if sized and case.kind != "graphql_connection" and case.place != "query":
        paging["in"] = case.place
    if case.kind == "graphql_connection":
        stream["records"] = "data.items.nodes"
    return stream


class _Read(Project, frozen=True):
    """A project whose API is in this process."""

    transport: httpx.BaseTransport | None = None

    def bind_streams(self, wanted: set[str], *, targets: Mapping[str, Target], run: SourceContext) -> list[BoundStream]:
        return Project.bind_streams(self, wanted, targets=targets, run=replace(run, transport=self.transport))


@dataclass(slots=True)
class Stage:
    """A platform that takes everything, and a state.

    Attributes:
        told: How many runs ended with each exit code while the API misbehaved.
    """

    folder: Path
    url: StateUrl
    server: Scripted
    patch: pytest.MonkeyPatch
    told: Counter[int] = field(default_factory=Counter)

    def play(self, case: Case) -> str:
        """What is wrong after the runs of *case*; empty if nothing is."""
        empty(self.url)
        platform, clock = Platform(keys=True), ManualClock()
        self.server.answer = platform.answer
        self.patch.setattr(parts_between_checkpoints, "PART_ROWS", case.part_rows)
        api = Api(case, lambda: clock.now() + timedelta(seconds=case.ahead_s))
        read = self._project(case, api)
        for _ in range(3 if case.removes and case.number else 0):
            self._sync(read, clock, api, honest=True)
        report = self._sync(read, clock, api, honest=False)
        self.told[report.exit_code] += 1
        untouched = {number: item for number, item in api.records.items() if number not in api.touched}
        if report.exit_code == 0 and not case.is_blind and (wrong := _wrong(platform, untouched)):
            return f"exit 0, and the platform {wrong}"
        api.change_one()
        last = self._sync(read, clock, api, honest=True)
        if last.exit_code == 0 and not case.is_blind and (wrong := _wrong(platform, api.records)):
            return f"after another run, of a list that stands still, the platform {wrong}"
        is_documented = case.total in {"none", "right"} and case.pages in {"none", "right"} and case.number
        is_documented = (
            is_documented and case.page_limit is None and case.word != "always" and case.is_end_known(api.listed)
        )
        is_refused = case.mode == "snapshot" and not api.records  # an empty snapshot, unless it is declared
        if last.exit_code and is_documented and not case.removes and not is_refused:
            return f"a list that stands still: exit {last.exit_code}: {last.errors}"
        if case.has_cursor and last.exit_code == 0:
            api.show_late()
            last = self._sync(read, clock, api, honest=True)
            if last.exit_code == 0 and not case.is_blind and (wrong := _wrong(platform, api.records)):
                return f"after a record was shown late, the platform {wrong}"
        gone = {int(body["sku"]) for operation, _, body in platform.effects if operation == "delete"}
        wrongly = gone - api.deleted
        return f"{sorted(wrongly)} were deleted" if wrongly else "" if report.balanced else "the tally does not balance"

    def _sync(self, read: Project, clock: ManualClock, api: Api, *, honest: bool) -> Report:
        api.begin(honest=honest)
        return sync(read, clock)

    def _project(self, case: Case, api: Api) -> Project:
        more: dict[str, Any] = {}
        if case.error in {"code", "busy"}:
            more["failed"] = {"when": {"field": "code", "one_of": ["code", "busy"]}, "statuses": {"busy": 503}}
        return self.project(declared(case), api.answer, **more)

    def project(
        self, stream: Mapping[str, Any], answer: Callable[[httpx.Request], httpx.Response], **more: Any
    ) -> Project:
        """A project that reads *stream* of an API with these answers."""
        path = self.folder / "c.yaml"
        shop = {"kind": "http_json", "base_url": "https://lists.example", "streams": {"items": stream}, **more}
        config = {
            "platform": {
                "base_url": self.server.base_url,
                "tenant": "acme",
                "auth": {"kind": "api_key", "token": "env:KEY"},
            },
            "state": self.url.render_as_string(hide_password=False),
            "connections": {"shop": shop},
        }
        path.write_text(json.dumps(config))
        loaded = project.load(path)
        values = {name: getattr(loaded, name) for name in loaded.__struct_fields__}
        return _Read(**values, transport=httpx.MockTransport(answer))


def sync(read: Project, clock: ManualClock) -> Report:
    """A run an hour after the last one."""
    clock.advance(3_600)
    return sync_and_replay.sync(read, [], clock=clock, progress=SilentProgress(), interrupt=threading.Event())


def _wrong(platform: Platform, wanted: Mapping[int, Item]) -> str:
    """What the platform lacks or has otherwise of *wanted*; it may have more."""
    held = {int(body["sku"]): body["name"] for body in platform._stored.values()}
    missing = sorted(wanted.keys() - held.keys())
    other = sorted(n for n, item in wanted.items() if n in held and held[n] != item["title"])
    return f"lacks {missing} and has an older version of {other}" if missing or other else ""


@contextmanager
def open_stage(folder: Path, url: StateUrl) -> Iterator[Stage]:
    with Scripted(lambda _asked: None) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEY", "k")
        patch.setattr(paginated_api_client, "USUAL_PAGE_LIMITS", frozenset(PAGE_LIMITS))
        create_or_upgrade_state(url, PinnedTenant(server.base_url, "acme"))
        yield Stage(folder, url, server, patch)


def no_record_is_lost_silently(folder: Path, url: StateUrl, first: int, number: int) -> Counter[int]:
    """Whatever a list does, the platform equals it, or the exit code is not 0 and neither cursor nor deletes moved.

    Returns:
        How many runs ended with each exit code while the API misbehaved.
    """
    with open_stage(folder, url) as stage:
        for seed in range(first, first + number):
            case = Case.drawn(seed)
            wrong = stage.play(case)
            assert not wrong, f"{wrong}\n{case}"
    return stage.told
