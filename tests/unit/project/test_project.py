"""Loading a config file: invalid secrets, names, zones, formats and patterns are refused with their place."""

from __future__ import annotations

import io
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from crossdock.cli.main import main
from crossdock.config.project import project
from crossdock.errors import ConfigError, StateError
from crossdock.values.config_base_types import secrets_in

CANARY = "hunter2"
CONFIG = """\
platform:
  base_url: https://api.example.com
  tenant: acme
  auth: {kind: api_key, token: env:KEY}
  rate: {shared: "sqlite:///rate.db"}
  idempotency: {header: Idempotency-Key}
  paths: {customer: "/customers"}
state: sqlite:///acme.db
connections:
  wms:
    kind: sftp_warehouse
    namespace: other
    host: wms.example.com
    user: export
    password: env:PW
    host_key: "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    streams:
      orders:
        mode: append
        files: "out/ORD_*"
        key: [NR]
        group_by: [NR]
        resource: order
        map:
          customerId: {ref: customer, key: C, namespace: shop}
          currency: {const: EUR}
          placedAt: {from: DAY, as: instant, format: "%Y%m%d", timezone: Europe/Berlin}
          items: {each: {productId: {ref: product, key: SKU}, quantity: Q, unitPrice: P}}
notify:
  webhook: {url: "https://chat.example.com/hook"}
fleet:
  database: sqlite:///fleet.db
"""


def edited(folder: Path, old: str, new: str) -> Path:
    assert CONFIG.count(old) == 1
    path = folder / "c.yaml"
    path.write_text(CONFIG.replace(old, new), encoding="utf-8")
    return path


def place(old: str) -> str:
    """Line and column of *old*."""
    before = CONFIG[: CONFIG.index(old)]
    return f"c.yaml:{before.count(chr(10)) + 1}:{len(before.rpartition(chr(10))[2]) + 1}: "


def test_the_config_is_valid(tmp_path: Path) -> None:
    """The config of the other tests loads without their changes."""
    assert project.load(edited(tmp_path, "acme.db", "acme.db")).connections


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('shared: "sqlite:///rate.db"', f'shared: "postgresql://u:{CANARY}@h/d"', "must not contain a secret"),
        ('shared: "sqlite:///rate.db"', f'shared: "postgresql://h/d?PASSWORD={CANARY}"', "must not contain a secret"),
        ('shared: "sqlite:///rate.db"', 'shared: "postgresql://u@[::1/d"', "is not a database URL"),
        ("state: sqlite:///acme.db", f"state: postgresql://h/d?pass%77ord={CANARY}", "must not contain a secret"),
        ("database: sqlite:///fleet.db", f"database: postgresql://u:{CANARY}@h/d", "must not contain a secret"),
        ("base_url: https://", f"base_url: https://:{CANARY}@", "refer to a secret by env:NAME or file:PATH"),
        ("base_url: https://", f"base_url: https://u:{CANARY}%40", "refer to a secret by env:NAME or file:PATH"),
        ("base_url: https://api.example.com", f"base_url: https://h/?key={CANARY}", "without a query"),
        ('customer: "/customers"', f'customer: "/customers?key={CANARY}"', "must match the pattern"),
        ("header: Idempotency-Key", f'header: "X: {CANARY}"', "must match the pattern"),
        ("host: wms.example.com", f"host: export:{CANARY}@wms.example.com", "must be a host name"),
        ("password: env:PW", f"password: {CANARY}", "refer to it by env:NAME or file:PATH"),
    ],
)
def test_a_literal_secret_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    """A secret in an address or a header is refused with its place and never repeated."""
    with pytest.raises(ConfigError) as refused:
        project.load(edited(tmp_path, old, new))
    assert place(old) in str(refused.value)
    assert message in str(refused.value)
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize("query", ["token", "KEY", "sig", "api%5Fkey", "pass%2577ord"])
@pytest.mark.parametrize("command", [["check"], ["config", "show"], ["plan"], ["records", "list"]])
def test_a_literal_secret_of_a_webhook_is_refused(tmp_path: Path, query: str, command: list[str]) -> None:
    """Every command that reads a config checks its section notify too, and repeats nothing of a secret address."""
    path = edited(tmp_path, "chat.example.com/hook", f"chat.example.com/hook?{query}={CANARY}")
    shown = io.StringIO()
    with redirect_stdout(shown), redirect_stderr(shown), pytest.raises(SystemExit) as ended:
        main(["-C", str(path), *command])
    assert ended.value.code == 2
    assert "c.yaml:30:13: notify.webhook.url: must not contain a secret: refer to the whole" in shown.getvalue()
    assert CANARY not in shown.getvalue()


@pytest.mark.parametrize("zone", ["localtime", "posixrules", "Factory", "../etc/passwd", "/etc/localtime", "posix/UTC"])
def test_an_invalid_time_zone_is_refused(tmp_path: Path, zone: str) -> None:
    """The machine's own zone, a path and placeholder zones would give other results on another machine."""
    with pytest.raises(ConfigError, match="is not an IANA time zone") as refused:
        project.load(edited(tmp_path, "timezone: Europe/Berlin", f"timezone: {zone}"))
    assert place("timezone:") in str(refused.value)


@pytest.mark.parametrize("layout", ["%Y%Y", "%Y %d %Y", "%Y%", "%G%V", "%Q", "%-d", "%d" * 51, "%9999999999d"])
def test_a_date_format_that_cannot_be_read_is_refused(tmp_path: Path, layout: str) -> None:
    """Every exception of strptime, for repeated or unknown directives, is a finding."""
    with pytest.raises(ConfigError) as refused:
        project.load(edited(tmp_path, '"%Y%m%d"', f'"{layout}"'))
    assert place("format:") in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("orders:\n", "or/ders:\n"),
        ("orders:\n", "..:\n"),
        ("orders:\n", f"{'o' * 64}:\n"),
        ("wms:\n", "w ms:\n"),
        ("namespace: other", "namespace: a:b"),
        ("namespace: shop", 'namespace: ""'),
    ],
)
def test_names_have_a_fixed_form(tmp_path: Path, old: str, new: str) -> None:
    """Names of streams, connections and namespaces are used in paths, arguments and ids: letters, digits, _ and -."""
    with pytest.raises(ConfigError, match="a name has 1 to 63 letters") as refused:
        project.load(edited(tmp_path, old, new))
    assert place(old) in str(refused.value)


@pytest.mark.parametrize("files", ["out/", "", "o*t//x", "a\\x01b", "a\\nb"])
def test_a_pattern_that_matches_no_file_name_is_refused(tmp_path: Path, files: str) -> None:
    """It is refused when the config is loaded, not when the files are read."""
    with pytest.raises(ConfigError, match=r"names no files|a folder without a name") as refused:
        project.load(edited(tmp_path, '"out/ORD_*"', f'"{files}"'))
    assert place("files:") in str(refused.value)


def test_a_kind_is_text(tmp_path: Path) -> None:
    """A section instead of a name is a finding that does not print its content."""
    with pytest.raises(ConfigError, match="kind: must be text") as refused:
        project.load(edited(tmp_path, "kind: sftp_warehouse", f"kind: {{password: {CANARY}}}"))
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  idempotency: {header: Idempotency-Key}", "  idempotency: {kept_s: 999999999999999}"),
        ("  idempotency: {header: Idempotency-Key}", "  retry: {cap_s: 1.0e+17}"),
        ("  idempotency: {header: Idempotency-Key}", "  http: {read_timeout_s: 1.0e+17}"),
        ("    user: export", "    user: export\n    timeout_s: 1.0e+17"),
        ("    user: export", "    user: export\n    settle_s: 99999999"),
    ],
)
def test_a_duration_has_an_upper_bound(tmp_path: Path, old: str, new: str) -> None:
    """Larger numbers would make sockets and clocks fail in the middle of a run."""
    with pytest.raises(ConfigError, match="must be at most"):
        project.load(edited(tmp_path, old, new))


def test_the_name_of_a_stream_in_code_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that a connector declares have the same form as those of a config: the state stores them."""
    facts = tmp_path / "odd_shop-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-shop\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[crossdock.connectors]\nodd_shop = odd_shop:CONNECTOR\n")
    (tmp_path / "odd_shop.py").write_text(
        "from crossdock import Connector, Settings, Stream\n"
        "class Odd(Stream):\n"
        "    name, resource, key = 'or/ders', 'product', ('id',)\n"
        "    def pull(self, ctx, since): yield from ()\n"
        "    def to_resource(self, record): return {}\n"
        "CONNECTOR = Connector('odd_shop', 'Odd', Settings, lambda _: (Odd(),))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    head, _, _ = CONFIG.partition("connections:")
    (tmp_path / "c.yaml").write_text(head + "connections: {shop: {kind: odd_shop}}")
    with pytest.raises(ConfigError, match=r"c.yaml:9:15: shop.or/ders: not a valid stream name; a name has 1 to 63"):
        project.load(tmp_path / "c.yaml")


@pytest.mark.parametrize(
    ("port", "message"),
    [
        ("8443", None),
        ("nonsense", "must be an address"),
        ("99999", "must be an address"),
        ("1/x?key=1", "must be an address such as https://api.example.com, without a query"),
    ],
)
def test_an_address_with_a_variable_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: str, message: str | None
) -> None:
    """The whole address is checked when the config is loaded, with the variable's value in it."""
    monkeypatch.setenv("PORT", port)
    path = edited(tmp_path, "https://api.example.com", "https://api.example.com:${PORT}")
    if message is None:
        assert project.load(path).platform.base_url == f"https://api.example.com:{port}"
        return
    with pytest.raises(ConfigError, match=f"c.yaml:2:3: platform.base_url: {message}"):
        project.load(path)


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ("currency: NO", 'currency: must be text: NO is a boolean in YAML; quote it, "NO"'),
        ("currency: NULL", 'currency: must be text: NULL means no value in YAML; quote it, "NULL"'),
        ("currency: 17", "currency: must be text: quote numbers"),
        ("currency: 0017", "currency: is an octal number in YAML"),
        ("currency: {const: NO}", "currency.const: NO is the boolean false in YAML"),
        ("currency: {const: 2026-01-02}", "currency.const: must be text: quote numbers and dates"),
        ("currency: {const: [EUR]}", "currency.const: must be text"),
        (
            "currency: {from: C, empty: NULL}",
            'currency.empty: must be text: NULL means no value in YAML; quote it, "NULL"',
        ),
        ("currency: {from: C, empty: [~]}", 'currency.empty.0: must be text: ~ means no value in YAML; quote it, "~"'),
        ("currency: {from: C, empty: 99991231}", "currency.empty: must be text: quote numbers"),
        ("currency: {from: C, empty: 00000000}", "currency.empty: is an octal number in YAML"),
        ("currency: {template: 17}", "currency.template: must be text: quote numbers"),
    ],
)
def test_a_column_or_a_constant_without_quotes_is_found(tmp_path: Path, member: str, message: str) -> None:
    """The one message about the member says which quoting is needed."""
    with pytest.raises(ConfigError) as refused:
        project.load(edited(tmp_path, "currency: {const: EUR}", member))
    assert f"map.{message}" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_relative_paths_stay_where_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They begin at the config file, also after an author's code has changed the working folder."""
    edited(tmp_path, "password: env:PW", "private_key: file:key")
    monkeypatch.chdir(tmp_path)
    loaded = project.load(Path("c.yaml"))
    (settings,) = [each.settings for each in loaded.connections]
    (key,) = secrets_in(settings)
    places = [Path(loaded.state_url.database or ""), loaded.spool, key.folder, loaded.folder]
    assert places == [tmp_path / "acme.db", tmp_path / "acme.db.spool", tmp_path, tmp_path]


def test_states_in_one_database_share_no_tokens(tmp_path: Path) -> None:
    """Each has a spool of its own, and the tokens beside it: the account of one would be read for the other."""
    places = []
    for tenant in ("acme", "globex"):
        address = f"postgresql://crossdock@db/crossdock?options=-csearch_path%3D{tenant}"
        loaded = project.load(
            edited(tmp_path, "state: sqlite:///acme.db", f"state: {address}\nspool: spools/{tenant}.spool")
        )
        places.append(loaded.connections[0].tokens)
    assert places == [tmp_path / f"spools/{tenant}.tokens/wms.json" for tenant in ("acme", "globex")]
    loaded = project.load(edited(tmp_path, "state: sqlite:///acme.db", "state: postgresql://crossdock@db/acme"))
    assert loaded.connections[0].tokens == tmp_path / "acme.tokens/wms.json"
    loaded = project.load(edited(tmp_path, "state: sqlite:///acme.db", "state: sqlite:///acme.db\nspool: spools/a"))
    assert loaded.connections[0].tokens == tmp_path / "acme.db.tokens/wms.json"


def test_states_of_two_tenants_share_no_folders(tmp_path: Path) -> None:
    """A database that was moved, or one of another tenant in the same place, has the folders of the former one."""

    def claim(database: str, tenant: str) -> None:
        path = edited(tmp_path, "state: sqlite:///acme.db", f"state: postgresql://crossdock@{database}")
        path.write_text(path.read_text().replace("tenant: acme", f"tenant: {tenant}"))
        project.load(path).claim_folders_beside_spool()

    for database, tenant in (("db1/acme", "acme"), ("db2/acme", "acme"), ("db2/acme", "globex")):
        claim(database, tenant)
    for elsewhere in ("db1/acme", "db2/acme?options=-csearch_path%3Dacme"):
        with pytest.raises(StateError, match="acme.keys belongs to the state of tenant 'globex'") as refused:
            claim(elsewhere, "acme")
        assert refused.value.code == "state_of_another_tenant"
    (tmp_path / "acme.keys" / "state.json").write_text("damaged")
    claim("db1/acme", "acme")


def test_sqlite_states_of_two_tenants_share_no_spool(tmp_path: Path) -> None:
    """A run of one would replace the fence of the other, which shows that it was restored from a backup."""
    for tenant in ("acme", "globex"):
        path = edited(tmp_path, "state: sqlite:///acme.db", f"state: sqlite:///{tenant}.db\nspool: shared.spool")
        path.write_text(path.read_text().replace("tenant: acme", f"tenant: {tenant}"))
        loaded = project.load(path)
        with pytest.raises(StateError) if tenant == "globex" else nullcontext():
            loaded.claim_folders_beside_spool()


def test_notify_is_part_of_the_project(tmp_path: Path) -> None:
    """Its section is read once, with the rest of the file."""
    loaded = project.load(edited(tmp_path, "acme.db", "acme.db"))
    assert loaded.notify is not None
    assert loaded.notify.webhook is not None


def test_overrides_change_connections(tmp_path: Path) -> None:
    """A later file changes one setting of a connection; what it adds wrongly is found in that file."""
    path, production = edited(tmp_path, "acme.db", "acme.db"), tmp_path / "production.yaml"
    production.write_text("connections: {wms: {host: other.example.com}}")
    assert getattr(project.load(path, production).connections[0].settings, "host", None) == "other.example.com"
    production.write_text("connections:\n  wms:\n    hots: other.example.com")
    with pytest.raises(
        ConfigError, match=r"production.yaml:3:5: connections.wms.hots: unknown key; did you mean 'host'"
    ):
        project.load(path, production)


def test_a_connection_without_streams_is_only_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All streams are those of the others; a run of that connection alone is refused with the reason."""
    facts = tmp_path / "silent_depot-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: silent-depot\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[crossdock.connectors]\nsilent_depot = silent_depot:CONNECTOR\n")
    (tmp_path / "silent_depot.py").write_text(
        "from crossdock import Connector, Settings\n"
        "CONNECTOR = Connector('silent_depot', 'Silent', Settings, lambda _: ())\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "c.yaml").write_text(CONFIG.replace("connections:\n", "connections:\n  depot: {kind: silent_depot}\n"))
    loaded = project.load(tmp_path / "c.yaml")
    assert loaded.selected_streams([]) == {"wms.orders"}
    with pytest.raises(ConfigError, match="'depot' has no streams: others write to it"):
        loaded.selected_streams(["depot"])
