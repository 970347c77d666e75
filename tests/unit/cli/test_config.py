"""``crossdock schema`` and ``crossdock config show``."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from crossdock.cli.main import main
from crossdock.config.project import project
from crossdock.config.project.masked_effective_config import effective_config

ROOT = Path(__file__).parents[3]
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))


@dataclass(frozen=True)
class Result:
    code: object
    out: str
    err: str


def run(*arguments: str) -> Result:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return Result(ended.value.code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    result = run("schema")
    assert (result.code, result.err) == (0, "")
    document: dict[str, Any] = json.loads(result.out)
    return document


@pytest.fixture(scope="module")
def validator(schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    """A third-party validator; it checks the schema first."""
    jsonschema_rs.meta.validate(schema)
    return jsonschema_rs.Draft202012Validator(schema)


def config_of(page: str = "docs/how_to/configure/first_config.md") -> Any:
    whole = re.search(r"```yaml\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert whole
    return yaml.safe_load(whole[1])


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_the_schema_takes_every_config(path: Path, validator: jsonschema_rs.Draft202012Validator) -> None:
    """The example configs are valid by the schema."""
    validator.validate(yaml.safe_load(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", ["docs/how_to/configure/first_config.md", "README.md"])
def test_the_schema_takes_the_configs_of_the_pages(page: str, validator: jsonschema_rs.Draft202012Validator) -> None:
    """The configs in the documentation are valid by the schema."""
    validator.validate(config_of(page))


Wrong = Callable[[dict[str, Any]], object]
STREAM = "connections.wms.streams.customers"
MISTAKES: dict[str, tuple[Wrong, str]] = {
    "unknown section": (lambda c: c.update(stat="x"), ""),
    "unknown key of a connection": (lambda c: c["connections"]["wms"].update(hots="x"), "connections.wms"),
    "unknown connector": (lambda c: c["connections"]["wms"].update(kind="sftp_warehous"), "connections.wms.kind"),
    "no kind": (lambda c: c["connections"]["wms"].pop("kind"), "connections.wms"),
    "literal secret": (lambda c: c["connections"]["wms"].update(password="hunter2"), "connections.wms.password"),
    "literal token": (lambda c: c["platform"]["auth"].update(token="hunter2"), "platform.auth"),
    "word for a number": (lambda c: c["connections"]["wms"].update(settle_s="soon"), "connections.wms.settle_s"),
    "number for text": (lambda c: c["platform"].update(tenant=17), "platform.tenant"),
    "missing tenant": (lambda c: c["platform"].pop("tenant"), "platform"),
    "connection without streams": (lambda c: c["connections"]["wms"].update(streams={}), "connections.wms.streams"),
    "odd connection name": (lambda c: c["connections"].update({"W MS": c["connections"]["wms"]}), "connections"),
    "unknown mode": (lambda c: stream(c).update(mode="sometimes"), f"{STREAM}.mode"),
    "unknown resource": (lambda c: stream(c).update(resource="client"), f"{STREAM}.resource"),
    "unknown member": (lambda c: stream(c)["map"].update(nmae="NAME"), f"{STREAM}.map"),
    "missing member": (lambda c: stream(c).update(map={"email": "MAIL"}), f"{STREAM}.map"),
    "unknown form": (lambda c: stream(c)["map"].update(name={"constant": "x"}), f"{STREAM}.map.name"),
    "unknown condition": (lambda c: stream(c).update(skip={"x": {"field": "F", "is": "x"}}), f"{STREAM}.skip.x"),
    "filter without field": (lambda c: stream(c).update(skip={"x": {"equals": "x"}}), f"{STREAM}.skip.x"),
}


def stream(config: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = config["connections"]["wms"]["streams"]["customers"]
    return found


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_schema_refuses_what_is_wrong(mistake: str, validator: jsonschema_rs.Draft202012Validator) -> None:
    """The schema finds each mistake in its place."""
    config = config_of()
    spoil, place = MISTAKES[mistake]
    spoil(config)
    found = [".".join(map(str, error.instance_path)) for error in validator.iter_errors(config)]
    assert found
    assert all(path.startswith(place) for path in found), found


def test_docstrings_are_descriptions(schema: dict[str, Any]) -> None:
    """Docstrings of settings become descriptions for editors; a secret has the schema of a reference."""
    settings = schema["$defs"]["SftpWarehouseSettings"]["properties"]
    assert settings["settle_s"]["description"].startswith("Seconds for which files must keep")
    assert schema["$defs"]["Profile"]["properties"]["in_flight"]["description"].startswith("The most requests")
    assert {"pattern": "^(env|file):.+", "type": "string"} in settings["password"]["anyOf"]
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_a_schema_of_one_connector() -> None:
    """``--kind`` selects one connector; an unknown one is answered with the nearest name."""
    result = run("schema", "--kind", "sftp_warehouse", "--json")
    assert json.loads(result.out)["properties"]["connections"]["additionalProperties"]["properties"]["kind"] == {
        "enum": ["sftp_warehouse"]
    }
    result = run("schema", "--kind", "sftp_warehous")
    assert (result.code, result.out) == (2, "")
    assert "did you mean 'sftp_warehouse'?" in result.err


CANARIES = ("sekret-env-41", "sekret-file-42", "sekret-phrase-43")
PERSON = "Kanari"
CONFIG = f"""\
platform:
  base_url: https://api.example.com
  tenant: acme
  auth: {{kind: api_key, token: env:CROSSDOCK_API_KEY}}
connections:
  wms:
    kind: sftp_warehouse
    host: wms.example.com
    user: export
    private_key: file:key
    passphrase: env:WMS_PASSPHRASE
    host_key: "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    sources:
      all:
        files: "*.csv"
        format: {{quote: null}}
        skip: {{tests: {{field: NAME, one_of: ["{PERSON} Test"]}}, others: {{field: KIND, equals: X}}}}
    streams:
      customers:
        source: all
        mode: append
        key: [CUSTNO]
        resource: customer
        skip: {{gone: {{field: NAME, empty: true}}}}
        map:
          name: NAME
          email: {{const: "{PERSON}@example.com"}}
          phone: {{template: "{PERSON} {{PHONE}}"}}
          currency: {{const: EUR}}
          billingAddress: {{object: {{line1: STREET, city: {{const: "{PERSON}ville"}}, country: LAND}}}}
      products:
        source: all
        mode: append
        key: [SKU]
        resource: product
        map: {{sku: SKU, name: {{template: "Item {{SKU}}"}}, unitPrice: {{const: 0.5}}}}
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config with secrets that exist and are readable."""
    monkeypatch.setenv("CROSSDOCK_API_KEY", CANARIES[0])
    monkeypatch.setenv("WMS_PASSPHRASE", CANARIES[2])
    (tmp_path / "key").write_text(CANARIES[1])
    (tmp_path / "key").chmod(0o600)
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["yaml", "json"])
def test_secrets_are_shown_as_references(config: Path, form: list[str]) -> None:
    """The effective config has references to secrets, no secret, and no personal data."""
    result = run("config", "show", "-C", str(config), *form)
    assert (result.code, result.err) == (0, "")
    for canary in (*CANARIES, PERSON):
        assert canary not in result.out
    shown = json.loads(result.out) if form else yaml.safe_load(result.out)
    assert shown["platform"]["auth"] == {"kind": "api_key", "token": "env:CROSSDOCK_API_KEY"}
    wms = shown["connections"]["wms"]
    assert (wms["private_key"], wms["passphrase"]) == ("file:key", "env:WMS_PASSPHRASE")


def test_defaults_are_filled_in(config: Path) -> None:
    """Defaults, paths and configured values are shown; only personal values are masked."""
    shown = yaml.safe_load(run("config", "show", "-C", str(config)).out)
    assert shown["state"] == f"sqlite:///{config.parent / 'crossdock.db'}"
    assert shown["spool"] == str(config.parent / "crossdock.db.spool")
    assert shown["platform"]["rate"] == {}
    wms = shown["connections"]["wms"]
    assert (wms["port"], wms["settle_s"]) == (22, 2)
    assert wms["sources"]["all"]["format"]["quote"] is None
    assert wms["sources"]["all"]["skip"] == {
        "tests": {"field": "NAME", "one_of": "(personal)"},
        "others": {"field": "KIND", "equals": "X"},
    }
    customers, products = wms["streams"]["customers"], wms["streams"]["products"]
    assert customers["skip"] == {"gone": {"field": "NAME", "empty": True}}
    assert customers["map"] == {
        "name": "NAME",
        "email": {"const": "(personal)"},
        "phone": {"template": "(personal) {PHONE}"},
        "currency": {"const": "EUR"},
        "billingAddress": {"object": {"line1": "STREET", "city": {"const": "(personal)"}, "country": "LAND"}},
    }
    assert products["map"] == {"sku": "SKU", "name": {"template": "Item {SKU}"}, "unitPrice": {"const": 0.5}}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_what_is_shown_is_a_config(path: Path, tmp_path: Path) -> None:
    """The output is itself a config with the same meaning, wherever it is stored."""
    again = tmp_path / "again.yaml"
    again.write_text(run("config", "show", "-C", str(path)).out, encoding="utf-8")
    assert effective_config(again) == effective_config(path)


@pytest.mark.parametrize(
    ("written", "shown", "kept"),
    [("90d", "90d", 90), ("7d", "7d", 7), ("36525d", "36525d", 36_525), ("off", "off", None), ("false", "off", None)],
)
def test_retention_is_a_number_of_days_or_off(
    config: Path, validator: jsonschema_rs.Draft202012Validator, written: str, shown: str, kept: int | None
) -> None:
    """It is shown as it takes effect; off must be explicit."""
    assert project.load(config).retention == timedelta(days=90)
    config.write_text(f"{config.read_text()}retention: {written}\n")
    assert project.load(config).retention == (None if kept is None else timedelta(days=kept))
    assert json.loads(run("-C", str(config), "config", "show", "--json").out)["retention"] == shown
    validator.validate(yaml.safe_load(config.read_text()))


@pytest.mark.parametrize("written", ["6d", "36526d", "90", "12h", "0d", "-1d", "", "true", "[90d]", "1e3d"])
def test_retention_has_bounds(config: Path, written: str) -> None:
    """Other values are refused with their place and the allowed range."""
    config.write_text(f"{config.read_text()}retention: {written}\n")
    result = run("-C", str(config), "config", "show")
    assert result.code == 2
    line = config.read_text().count("\n")
    assert result.err.startswith(f"crossdock: {config}:{line}:")
    assert "must be a number of days from 7d to 36525d, or off; not " in result.err


def test_a_wrong_config_is_not_shown(config: Path) -> None:
    """It is reported with exit 2, as by every command."""
    config.write_text(CONFIG.replace("host:", "hots:"), encoding="utf-8")
    result = run("config", "show", "-C", str(config))
    assert (result.code, result.out) == (2, "")
    assert "did you mean 'host'?" in result.err


def test_a_variable_is_shown_with_its_value(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value takes the place of the variable, and a dollar that would begin one is doubled again."""
    monkeypatch.setenv("FOLDER", "from ${outside}")
    text = config.read_text(encoding="utf-8")
    config.write_text(f'{text}\nspool: "/${{FOLDER}} $${{X}} 5$"\n', encoding="utf-8")
    shown = json.loads(run("-C", str(config), "config", "show", "--json").out)
    assert shown["spool"] == "/from $${outside} $${X} 5$"
