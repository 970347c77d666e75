"""The effective config: defaults, references for secrets, and no personal constants."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path

import pytest

from crossdock.config.project import connections_and_bound_streams
from crossdock.config.project.masked_effective_config import (
    PERSONAL,
    ChangedSetting,
    changed_settings,
    effective_config,
)
from crossdock.connector import Connector, Settings
from crossdock.errors import ConfigError
from crossdock.values import exact_json

CONFIG = """\
platform: {base_url: https://api.example.com, tenant: acme, auth: {kind: api_key, token: env:KEY}}
state: sqlite:///data/acme.db
connections:
  wms:
    kind: folder_warehouse
    path: in
    streams:
      customers:
        files: "C_*.csv"
        mode: append
        key: [NR]
        resource: customer
        skip: {tests: {field: NAME, starts_with: Ada}, closed: {field: KIND, equals: X}}
        map: {name: NAME, email: {const: ada@example.com}, currency: {const: EUR}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG)
    return path


def test_paths_are_absolute_and_secrets_are_references(config: Path) -> None:
    """State, spool and folders do not depend on the working folder; no secret is read."""
    shown = effective_config(config)
    assert shown["state"] == f"sqlite:///{config.parent / 'data' / 'acme.db'}"
    assert shown["spool"] == str(config.parent / "data" / "acme.db.spool")
    assert shown["connections"]["wms"]["path"] == str(config.parent / "in")
    assert shown["platform"]["auth"]["token"] == "env:KEY"
    assert (shown["retention"], "notify" in shown) == ("90d", False)


def test_personal_constants_are_masked(config: Path) -> None:
    """Constants of personal members, and values that filters compare personal columns with, are not shown."""
    stream = effective_config(config)["connections"]["wms"]["streams"]["customers"]
    assert stream["map"] == {"name": "NAME", "email": {"const": PERSONAL}, "currency": {"const": "EUR"}}
    assert stream["skip"] == {
        "tests": {"field": "NAME", "starts_with": PERSONAL},
        "closed": {"field": "KIND", "equals": "X"},
    }
    assert "ada@" not in str(effective_config(config))


def test_constants_anywhere_in_a_personal_member_are_masked(config: Path) -> None:
    """In a table, a default, a condition and its two sides; what a condition compares a personal column with, too."""
    name = "{from: NAME, table: {ada@a: ada@b}, otherwise: ada@c, default: ada@d}"
    when = "{field: NAME, one_of: [ada@e]}"
    email = f"{{when: {{any: [{when}, {{not: {when}}}]}}, then: {{const: ada@f}}, otherwise: {{template: ada@h}}}}"
    phone = "{when: {field: NAME, empty: true}, then: {const: '4711'}, otherwise: PHONE}"
    currency = "{from: NAME, table: {ada@g: EUR}}"
    forms = f"{{name: {name}, email: {email}, phone: {phone}, currency: {currency}}}"
    config.write_text(CONFIG.replace("{name: NAME, email: {const: ada@example.com}, currency: {const: EUR}}", forms))
    shown = str(effective_config(config))
    assert "ada@" not in shown
    assert "4711" not in shown
    assert shown.count(PERSONAL) > 8


def test_numbers_are_exact(config: Path) -> None:
    """A float setting is shown as it was written."""
    config.write_text(CONFIG.replace("tenant: acme,", "tenant: acme, http: {read_timeout_s: 0.1},"))
    assert effective_config(config)["platform"]["http"]["read_timeout_s"] == Decimal("0.1")


def test_an_invalid_config_is_not_shown(config: Path) -> None:
    """The error is the loader's."""
    config.write_text(CONFIG.replace("tenant: acme, ", ""))
    with pytest.raises(ConfigError, match="tenant"):
        effective_config(config)


def test_a_section_that_was_empty_is_no_changed_setting() -> None:
    """Only what it contains now is; an empty list that has members now is the same setting."""
    then: dict[str, object] = {"jobs": {}, "days": []}
    now = {"jobs": {"nightly": {"at": "02:30"}}, "days": ["mon"]}
    assert changed_settings(then, now) == [
        ChangedSetting(("jobs", "nightly", "at"), None, "02:30"),
        ChangedSetting(("days",), "[]", "mon"),
    ]


def test_a_value_of_another_type_is_another_value() -> None:
    """A mapping delivers it differently, so both are shown as JSON."""
    (changed,) = changed_settings({"table": {"A": True, "B": ["1"]}}, {"table": {"A": "true", "B": ["1"]}})
    assert changed == ChangedSetting(("table", "A"), "true", '"true"')


def test_settings_of_any_connector_can_be_stored(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A set has the same order in each process, and infinity, which is no JSON, is text."""

    class MadeSettings(Settings):
        regions: frozenset[str] = frozenset("hgfedcba")
        most: float = math.inf
        least: Decimal = Decimal("-Infinity")

    connector = Connector("made", "Made", MadeSettings, lambda _settings: ())
    monkeypatch.setattr(connections_and_bound_streams, "load_connector", lambda _kind: connector)
    config.write_text(CONFIG[: CONFIG.index("    kind:")] + "    kind: made\n")
    made = effective_config(config)["connections"]["wms"]
    assert (made["regions"], made["most"], made["least"]) == (list("abcdefgh"), "inf", "-Infinity")
    assert exact_json.loads(exact_json.dumps(made)) == made
