"""The page of connections: what is known of each without opening it, and a check, which opens them."""

from __future__ import annotations

import io
import json
from contextlib import closing, redirect_stdout
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.console.visitor import visiting

from crossdock.cli.main import main
from crossdock.config.project import project
from crossdock.console.visitors_and_roles import Role
from crossdock.errors import add_code_to_first_line
from crossdock.pacing.token_bucket import BucketState, LimitEstimate
from crossdock.state import ReceivedWebhook, RunResult, StreamAndKey
from crossdock.state.tables.inputs_of_streams import FileFacts
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_states_and_tally import Tally

NOW = datetime(2026, 3, 29, 6, tzinfo=UTC)
CONFIG = """\
platform: {base_url: "http://127.0.0.1:9", tenant: acme, auth: {kind: api_key, token: file:platform.key}}
state: sqlite:///state.db
connections:
  wms:
    kind: folder_warehouse
    path: exports
    streams:
      products:
        mode: append
        files: "*.csv"
        key: [SKU]
        resource: product
        map: {sku: SKU, name: NAME}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config whose state exists, and whose secret is in a file."""
    path = tmp_path / "acme.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    (tmp_path / "platform.key").write_text("canary-of-a-secret", encoding="utf-8")
    (tmp_path / "platform.key").chmod(0o600)
    (tmp_path / "exports").mkdir()
    project.load(path).create_or_upgrade_state()
    return path


def fill(config: Path) -> None:
    """One run that was throttled and imported a file, a bucket, and webhooks."""
    samples = [[0, 2_000], [60_000, 0], [120_000, 500]]
    with closing(project.load(config).open_state()) as state, state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-28", at=NOW - timedelta(hours=4))
        file = FileFacts("p.csv", "ab" * 32, 9, NOW, "1")
        tx.intake.accept("wms.products", "v1", [file], at=NOW - timedelta(hours=3))
        tx.intake.finish_accepted_files("wms.products", "v1")
        tally = {"wms.products": Tally().as_json()}
        timings = {"steps": [], "samples": samples}
        ended = RunResult("done", requests=1_000, throttled=40, tally=tally, duration_ms=120_000, timings=timings)
        tx.runs.finish(run, ended, at=NOW - timedelta(hours=3, minutes=58))
        estimate = LimitEstimate(100.0, "reported", 2_000, "reported")
        tx.buckets.put("platform", BucketState(estimate.bucket((NOW + timedelta(seconds=5)).timestamp()), estimate))
        received = [
            ReceivedWebhook("shop", "d1", "orders/paid", None, (StreamAndKey("wms.products", "K1"),)),
            ReceivedWebhook("shop", "d2", "orders/<b>", "the body is not JSON"),
        ]
        tx.inbox.receive(received, {"K1": 7}, at=NOW - timedelta(hours=1))


def test_a_connection_is_described_without_opening_it(config: Path) -> None:
    """Address, last read, credentials by reference, tokens now, refusals of the last runs, and the inbox."""
    fill(config)
    with visiting(config, role=Role.VIEWER, clock=ManualClock(NOW)) as visitor:
        html, page = visitor.html("/t/acme/connections"), visitor.page("/t/acme/connections")
    assert "canary-of-a-secret" not in html
    assert "<form" not in html.partition("<main")[2]
    (platform, wms) = page.under("connection", "kind")
    assert platform == ["platform", "platform", "http://127.0.0.1:9", "", "1,500 tokens", "1,000", "40"]
    assert wms[:4] == ["wms", "folder_warehouse", str(config.parent / "exports"), "2026-03-29 03:00:00Z"]
    assert "40 of 1,000 requests (4 %) of the last 1 run were refused, last in run 1." in page.text
    assert "1 run had between 0 and 2,000 tokens, and 40 requests were refused." in page.text
    (credential,) = page.under("credential")
    assert credential[:2] == ["token", "file:platform.key"]
    assert page.under("stream", "mode")[0][2:4] == ["2026-03-29 03:00:00Z", "1"]
    assert page.under("stream", "records to fetch") == [["wms.products", "1", "0", "2026-03-29 05:00:00Z"]]
    assert page.under("received") == [["2026-03-29 05:00:00Z", "shop", "orders/<b>", "the body is not JSON"]]
    assert 'href="/t/acme/records/inbox?stream=wms.products"' in html


def test_a_missing_credential_is_said(config: Path) -> None:
    """A file that is not there, and a variable that is not set."""
    (config.parent / "platform.key").unlink()
    with visiting(config) as visitor:
        (credential,) = visitor.page("/t/acme/connections").under("credential")
    assert credential == ["token", "file:platform.key", "Not usable: cannot be read: No such file or directory"]


def test_a_check_says_what_the_command_says(config: Path) -> None:
    """Of all connections, and of one."""
    out = io.StringIO()
    with redirect_stdout(out), pytest.raises(SystemExit):
        main(["-C", str(config), "check", "--json"])
    said = [
        ["ok" if each["ok"] else "FAIL", each["subject"], add_code_to_first_line(each["text"], each["code"])]
        for each in json.loads(out.getvalue())["findings"]
    ]
    with visiting(config) as visitor:
        page = visitor.send("/t/acme/connections/check", {"connection": ""}, at="/t/acme/connections")
        one = visitor.send("/t/acme/connections/check", {"connection": "wms"}, at="/t/acme/connections")
        visitor.send("/t/acme/connections/check", {"connection": "<b>"}, at="/t/acme/connections", status=404)

    def lasting(rows: list[list[str]]) -> list[list[str]]:
        return [row for row in rows if row[1] != "disk"]  # the free space changes

    assert lasting(page.tables[0][1:]) == lasting(said)
    assert any(row[0] == "FAIL" for row in said)
    assert one.tables[0][1:] == [row for row in said if row[1] == "wms"]


def test_subscriptions_of_a_connection_without_webhooks_are_refused(config: Path) -> None:
    """The page says why, and what to do."""
    with visiting(config) as visitor:
        page = visitor.send(
            "/t/acme/connections/subscriptions", {"connection": "wms"}, at="/t/acme/connections", status=400
        )
    assert "the connection receives no webhooks" in page.text
