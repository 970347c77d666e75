"""The pages of settings: the effective config, what changed since the last run, and the schedule."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.console.visitor import visiting

from crossdock.config.project import project
from crossdock.config.project.masked_effective_config import (
    effective_config,
    effective_settings,
)
from crossdock.console.visitors_and_roles import Role
from crossdock.state import RunResult
from crossdock.state.tables.inputs_of_streams import FileFacts
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import RunMessage

NOW = datetime(2026, 10, 23, 6, tzinfo=UTC)  # a Friday
CONFIG = """\
platform: {base_url: "http://127.0.0.1:9", tenant: acme, auth: {kind: api_key, token: env:CANARY}}
state: sqlite:///state.db
connections:
  wms:
    kind: folder_warehouse
    path: exports
    streams:
      customers: &stream
        mode: append
        files: "*.csv"
        key: [SKU]
        resource: customer
        map: {name: {const: Ann Lee}}
      products: {<<: *stream, resource: product, map: {sku: SKU, name: NAME}}
jobs:
  nightly:
    schedule:
      time_zone: Europe/Berlin
      at: ["02:30"]
      days: [mon, tue, wed, thu, fri, sat, sun]
      holidays: [2026-10-26]
      blackouts: [{from: 2026-10-27T02:00:00+01:00, to: 2026-10-27T05:00:00+01:00}]
  stock: {schedule: {time_zone: Europe/Berlin, every: 6h, days: [mon]}}
  pulse: {schedule: {time_zone: Europe/Berlin, every: 2s, days: [wed]}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "acme.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    project.load(path).create_or_upgrade_state()
    return path


def test_each_setting_has_its_file_and_line(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of a second file. Secrets are references, and constants of personal members are masked."""
    monkeypatch.setenv("CANARY", "canary-of-a-secret")
    more = config.parent / "more.yaml"
    more.write_text("\nconnections: {wms: {settle_s: 7}}\n", encoding="utf-8")
    with visiting(config, more, role=Role.VIEWER) as visitor:
        html, page = visitor.html("/t/acme/settings"), visitor.page("/t/acme/settings")
        written = visitor.page("/t/acme/settings?only=written")
    rows = page.under("setting")
    assert ["auth.token", "env:CANARY", "acme.yaml:1"] in rows
    assert ["settle_s", "7", "more.yaml:2"] in rows
    assert ["lookup.settle_s", "60", "default"] in rows
    assert ["streams.customers.map.name.const", "(personal)", "acme.yaml:13"] in rows
    assert "canary-of-a-secret" not in html
    assert "Ann Lee" not in html
    assert [row for row in rows if row[2] != "default"] == written.under("setting")


def test_no_setting_is_left_out(config: Path) -> None:
    """What is shown one by one is the whole effective config."""
    shown = {each.place for each in effective_settings(project.load(config))}

    def missing(value: object, place: tuple[str | int, ...]) -> bool:
        if place in shown:
            return False
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        return not items or any(missing(inner, (*place, name)) for name, inner in items)

    assert not missing(effective_config(config), ())


def test_a_config_that_cannot_be_loaded_is_explained(config: Path) -> None:
    """The page has every finding with its line, and what the state knows."""
    with visiting(config) as visitor:
        config.write_text(CONFIG.replace("mode: append", "mode: appendd"), encoding="utf-8")
        page = visitor.page("/t/acme/settings")
    assert "The config cannot be loaded." in page.text
    assert "acme.yaml:9:9: connections.wms.streams.customers.mode" in page.text


def test_the_page_says_which_mappings_changed_since_the_last_import(config: Path) -> None:
    """A job that is no more in the config is named."""
    loaded = project.load(config)
    with closing(loaded.open_state()) as state, state.begin() as tx:
        for name, version in (("wms.customers", loaded.stream("wms.customers").version), ("wms.products", "earlier")):
            tx.intake.accept(name, version, [FileFacts("f.csv", "ab" * 32, 9, NOW, "1")], at=NOW)
            tx.intake.finish_accepted_files(name, version)
        run = tx.runs.start(business_date="2026-10-22", at=NOW)
        tx.runs.finish(run, RunResult("done", tally={"wms.gone": {"records": {}}}), at=NOW)
    with visiting(config) as visitor:
        page = visitor.page("/t/acme/settings")
    customers, products = page.under("stream")
    assert customers[3] == "yes"
    assert products[3].startswith("no, changed since the import of 2026-10-23 06:00Z")
    assert "The stream wms.gone is no more in the config; run 1 was the last that read it." in page.text
    assert "The job nightly has not run yet." in page.text


def test_the_page_shows_what_had_another_value_in_the_last_run(config: Path) -> None:
    """Also a setting that was added or removed. A secret is its reference then and now, and a refused run has none."""
    with closing(project.load(config).open_state()) as state, state.begin() as tx:
        first = tx.runs.start(business_date="2026-10-22", at=NOW)
        tx.run_configs.store(first, effective_config(config))
        tx.runs.record_failed_start(RunMessage("error", "", "no"), business_date="2026-10-22", at=NOW, job=None)
    with visiting(config) as visitor:
        assert "Every setting has the value that it had in run 1." in visitor.page("/t/acme/settings").text
        edited = CONFIG.replace("env:CANARY", "env:OTHER").replace('files: "*.csv"', 'files: "*.txt"')
        edited = edited.replace("        key: [SKU]\n", "        key: [SKU, SIZE]\n        enabled: true\n")
        config.write_text(edited.replace("      holidays: [2026-10-26]\n", ""), encoding="utf-8")
        page = visitor.page("/t/acme/settings?only=written")
    changed = {
        row[0].replace("connections.wms.streams.products.", ""): row[1:] for row in page.under("changed setting")
    }
    assert changed["platform.auth.token"] == ["env:CANARY", "env:OTHER", "acme.yaml:1"]
    assert changed["files"] == ["*.csv", "*.txt", "acme.yaml:10"]
    assert changed["key"][:2] == ["SKU", "SKU, SIZE"]
    assert changed["jobs.nightly.schedule.holidays"] == ["2026-10-26", "[]", "default"]
    assert "enabled" not in changed
    assert "had another value in run 1:" in page.text
    assert "Not compared are constants that are masked" in page.text


def test_the_calendar_has_clock_changes_blackouts_and_holidays(config: Path) -> None:
    """A run in a blackout begins at its end; many runs of a day are one line."""
    with visiting(config, clock=ManualClock(NOW)) as visitor:
        page = visitor.page("/t/acme/settings/schedule")
    days = {row[0][4:14]: row[1:] for row in page.under("day")}
    assert len(days) == 15
    assert days["2026-10-24"] == ["02:30", "", ""]
    assert days["2026-10-26"] == ["holiday", "4 runs, 00:00 to 18:00", ""]
    assert days["2026-10-27"] == ["05:00blackout 02:00 to 05:00", "", ""]
    assert days["2026-10-28"][2] == "more than 1,500 runs, 00:00 to 23:59"
    assert "Sun 2026-10-25, clocks change" in {row[0] for row in page.under("day")}
    assert "Sun 2026-10-25: the clocks of Europe/Berlin go back by 1 h, from 03:00 to 02:00" in page.text
