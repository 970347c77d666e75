"""Orders in lists: exactly once, however requests end. The long form is in `tests.long.test_bulk_orders`."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from tests.chaos.bulk_orders import FAILED_DEPENDENCY, SIZE, WRONG, BulkApi, Knows, Stage, orders_arrive_once
from tests.chaos.chance import chaos_seed
from tests.chaos.scripted import Asked, Said, Scripted


@pytest.mark.nightly(but=["look_up"])
@pytest.mark.parametrize("knows", get_args(Knows))
def test_orders_arrive_once(tmp_path: Path, knows: Knows) -> None:
    """Lost answers, half executed requests, a refusal of all for one, and a kill: no order twice, none lost."""
    counts = orders_arrive_once(tmp_path, knows, chaos_seed(), orders=80, kills=1)
    assert counts["kills"]


def test_what_was_left_is_sent_in_the_form_of_a_new_config(tmp_path: Path) -> None:
    """What a batch had is not sent alone to its path once the config has none: it is looked up, and made again."""
    with Scripted(lambda _: None) as server:
        api = BulkApi("repeated", chaos_seed())
        stage = Stage(tmp_path, api, server)
        stage.export(1, {f"{number:05}": ("", "1.5") for number in range(80)})
        stage.killed_run(2)
        stage.config(batch=None, create="POST /orders", update="PUT /orders/{id}")
        done = stage.run("sync")
        assert (done.exit_code, api.kills) == (0, 1), done.stderr
        assert api.effects == {f"wms:{number:05}": 1 for number in range(80)}


@pytest.mark.parametrize("orders", [1, 10])
def test_a_rate_that_ends_inside_of_a_request_is_waited_for(tmp_path: Path, orders: int) -> None:
    """The rest of its orders is sent in one request, after the time that the answer states; one alone is throttled."""
    sent_at = list[float]()
    with Scripted(lambda _: None) as server:
        api = BulkApi("look_up", chaos_seed(), throttled={f"wms:{number:05}" for number in range(orders) if number > 2})
        api.throttled |= {"wms:00000"} if orders == 1 else set()
        stage = Stage(tmp_path, api, server)

        def answered(asked: Asked) -> Said | None:
            said, is_limited = api.answer(asked), bool(api.throttled)
            sent_at.append(time.monotonic())
            api.throttled.clear()
            return replace(said, headers={**said.headers, "retry-after": "1"}) if said and is_limited else said

        server.answer = answered
        stage.export(1, {f"{number:05}": ("", "1.5") for number in range(orders)})
        done = stage.run("sync")
        assert done.exit_code == 0, done.stderr
        assert api.requests == ([1, 1] if orders == 1 else [10, 7])
        assert sent_at[1] - sent_at[0] >= 1
        assert json.loads(stage.run("runs", "--json").stdout)[0]["throttled"] == (orders == 1)


def test_redirected_orders_are_not_in_doubt(tmp_path: Path) -> None:
    """The run ends with where the redirect leads; once the path is right, all orders arrive, and none was divided."""
    with Scripted(lambda _: None) as server:
        api = BulkApi("nothing", chaos_seed())
        stage = Stage(tmp_path, api, server)
        asked: list[str] = []

        def moved(request: Asked) -> Said | None:
            asked.append(request.path)
            return api.answer(request) if request.path.endswith("/") else Said(308, b"", {"location": "/orders/bulk/"})

        server.answer = moved
        stage.export(1, {f"{number:05}": ("", "1.5") for number in range(80)})
        done = stage.run("sync")
        assert (done.exit_code, stage.listed("in-doubt"), len(stage.listed("pending"))) == (3, set(), 80)
        assert "redirects to /orders/bulk/ (HTTP 308) [redirect_refused]" in done.stderr
        assert len(asked) <= 80 / SIZE
        stage.config(create="POST /orders/bulk/", update="PUT /orders/bulk/")
        done = stage.run("sync")
        assert done.exit_code == 0, done.stderr
        assert api.effects == {f"wms:{number:05}": 1 for number in range(80)}


@pytest.mark.nightly(but=["wrong"])
@pytest.mark.parametrize("throttled", [pytest.param(set(), id="wrong"), pytest.param({7}, id="throttled")])
def test_one_order_holds_up_no_others(tmp_path: Path, throttled: set[int]) -> None:
    """One that is always refused for its rate waits for the next run, and what was undone for a wrong one is sent."""
    names = {f"wms:{number:05}" for number in throttled}
    with Scripted(lambda _: None) as server:
        api = BulkApi("nothing", chaos_seed(), refuses_with=FAILED_DEPENDENCY, throttled=names)
        stage = Stage(tmp_path, api, server)
        stage.export(1, {f"{number:05}": (WRONG if number == 50 else "", "1.5") for number in range(80)})
        done = stage.run("sync")
        assert done.exit_code == 1, done.stderr
        assert (stage.listed("rejected"), stage.listed("pending")) == ({"wms:00050"}, names)
        assert api.effects == {f"wms:{number:05}": 1 for number in range(80) if number not in {50, *throttled}}
