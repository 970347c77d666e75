"""Law 8 at large: canaries of secrets and persons are looked for in everything that is shown, sent, logged or kept."""

from __future__ import annotations

import json
import socket
import socketserver
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from tests.e2e.canaries import PERSON, SECRETS, Asked, Outputs, Parrot, answer
from tests.e2e.test_privacy import SHOP
from tests.e2e.warehouse import INVOICES, PRODUCTS, Site
from tests.integration.notifications.receivers import Receiver, Relay, relaying
from tests.integration.sources import orders_shop
from tests.servers import served

from crossdock.config.notify_config import NotifyConfig
from crossdock.config.project import connections_and_bound_streams
from crossdock.services.notifications.mail_and_webhook_notifier import Notifier
from crossdock.services.notifications.run_events_and_messages import ScheduledRunEnded
from crossdock.state import parse_database_url
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import RunMessage

WANTED = 150
HEADER = "CUSTNO;NAME;MAIL;PHONE;TAX;STREET;CITY;ZIP;LAND\n"
CUSTOMERS = HEADER + "".join(f"C{n};{';'.join(PERSON.values())};Astadt;10115;DE\n" for n in (1, 2))
MAP = """name: NAME
          email: MAIL
          phone: PHONE
          taxId: TAX
          billingAddress: {object: {line1: STREET, city: CITY, postalCode: ZIP, country: LAND}}"""
OAUTH = "{kind: oauth2_client_credentials, client_id: me, client_secret: env:CLIENT_SECRET}"
JOB = "jobs: {nightly: {schedule: {time_zone: UTC, at: '00:00', days: [mon, tue, wed, thu, fri, sat, sun]}}}\n"
LOOKS = (
    "runs",
    "show 1",
    "records list",
    "records show wms.customers C1",
    "trace C1",
    "plan wms.customers",
    "state stats",
    "approve",
    "bindings export",
)
YESTERDAY = (datetime.now(UTC) - timedelta(days=1)).date()

Script = Callable[[Asked], bytes]


@pytest.fixture
def site(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    fill(site, monkeypatch)
    return site


def fill(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put persons into the files of *site*, and secrets into the environment."""
    monkeypatch.setenv("CLIENT_SECRET", SECRETS["client secret"])
    monkeypatch.setenv("WMS_PASSWORD", SECRETS["ssh password"])
    monkeypatch.setenv("WMS_PASSPHRASE", SECRETS["private key passphrase"])
    monkeypatch.setenv("PGPASSWORD", SECRETS["database password"])
    monkeypatch.setenv("HOOK_KEY", f"whsec_{SECRETS['webhook secret']}")
    monkeypatch.setenv("SMTP_PASSWORD", SECRETS["smtp password"])
    monkeypatch.setenv("SHOP_TOKEN", SECRETS["source token"])
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization=Bearer {SECRETS['trace header']}")
    site.sftp.password = SECRETS["ssh password"]
    site.export("CUST_1.csv", CUSTOMERS)
    site.export("PROD_1.csv", PRODUCTS)
    site.export("INV_1.csv", INVOICES)


@pytest.fixture
def outputs(site: Site) -> Outputs:
    return watched(site)


def watched(site: Site) -> Outputs:
    """Nothing yet, looked through for all secrets that *site* knows."""
    return Outputs({**SECRETS, "api key": site.api_key})


def start(site: Site, base_url: str = "") -> None:
    """A new config and an empty state, of the platform at *base_url*."""
    site.base_url = base_url or site.platform.base_url
    site.configure()
    site.edit("name: NAME", MAP, within="customers:")
    site.edit("password: env:WMS_PASSWORD", "password: env:WMS_PASSWORD\n    passphrase: env:WMS_PASSPHRASE")
    for path in site.folder.glob("state.db*"):
        if path.is_file():
            path.unlink()


def look(site: Site, outputs: Outputs, name: str) -> None:
    """Every command that looks, in both forms; the report; and the words in the state."""
    for command in LOOKS:
        outputs.run(site.config, *command.split())
        if command != "bindings export":
            outputs.run(site.config, *command.split(), "--json")
    report = site.folder / "report.html"
    outputs.run(site.config, "show", "1", "-o", str(report))
    if report.exists():
        outputs.keep(f"report of {name}", report.read_text())
        report.unlink()
    outputs.keep_words(name, parse_database_url("sqlite:///state.db", site.folder))


# ---- a platform that repeats what it was sent


def problem(status: int, asked: Asked, **headers: str) -> bytes:
    told = {"type": f"urn:{asked.echo}", "title": asked.echo, "detail": asked.echo}
    errors = [{"pointer": f"#/name/{asked.echo}", "detail": asked.echo}]
    return answer(status, json.dumps({**told, "errors": errors}), **headers)


def escaped(asked: Asked) -> bytes:
    """The echo with each character as an escape of JSON."""
    told = "".join(f"\\u{ord(each):04x}" for each in asked.echo)
    return answer(422, f'{{"detail":"{told}"}}')


def everywhere(asked: Asked) -> bytes:
    """A refusal with the echo in its reason phrase and in every header that is read."""
    names = ("etag", "location", "retry_after", "ratelimit", "ratelimit_policy", "x_ratelimit_limit", "link", "date")
    return answer(422, json.dumps({"detail": "no"}), asked.echo, **dict.fromkeys(names, asked.echo))


PARROTS: dict[str, Script] = {
    **{f"problem {status}": partial(problem, status) for status in (400, 401, 403, 404, 409, 422, 500)},
    "problem 429": lambda asked: problem(429 if asked.number == 1 else 422, asked, retry_after="0"),
    "problem 503": lambda asked: problem(503, asked, retry_after="0"),
    "escaped": escaped,
    "everywhere": everywhere,
    "redirect": lambda asked: answer(302, asked.echo, location=f"http://127.0.0.1:9/{asked.echo}"),
    "html": lambda asked: answer(502, f"<html>{asked.echo}</html>"),
    "broken json": lambda asked: answer(201, f'{{"id": "{asked.echo}'),
    "success in another form": lambda asked: answer(200, json.dumps([asked.echo])),
    "cut": lambda asked: answer(422, asked.echo)[:-3],
    "length": lambda asked: f"HTTP/1.1 200 OK\r\ncontent-length: {asked.echo}\r\n\r\n".encode(),
    "transfer": lambda asked: f"HTTP/1.1 200 OK\r\ntransfer-encoding: {asked.echo}\r\n\r\n".encode(),
}
MALFORMED: dict[str, Script] = {
    "status line": lambda asked: f"{asked.echo}\r\n\r\n".encode(),
    "version": lambda asked: f"HTTP/9 200 {asked.echo}\r\n\r\n".encode(),
    "header": lambda asked: f"HTTP/1.1 200 OK\r\n{asked.echo}\r\n\r\n".encode(),
    "header name": lambda asked: f"HTTP/1.1 200 OK\r\n{asked.echo}: x\r\n\r\n".encode(),
    "chunk": lambda asked: f"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{asked.echo}\r\n".encode(),
    "coding": lambda asked: answer(200, "{}", content_encoding=asked.echo),
}


def against(site: Site, outputs: Outputs, name: str, script: Script) -> None:
    """All that is shown of a sync with a platform that answers as *script* says."""
    with served(Parrot(script)) as parrot:
        start(site, parrot.url)
        outputs.run(site.config, "init")
        outputs.run(site.config, "check")
        outputs.run(site.config, "sync", "wms.customers")
        outputs.run(site.config, "sync", "wms.customers", "--json")
        look(site, outputs, name)


def not_quoted(site: Site, outputs: Outputs, name: str) -> None:
    """Fails if a canary of this malformed answer is shown."""
    against(site, outputs, name, MALFORMED[name])
    assert len(outputs.kept) >= 20
    assert outputs.leaks() == []


@pytest.mark.nightly(but=["status line"])
@pytest.mark.parametrize("name", ["status line", "header", "chunk", "coding"])
def test_a_malformed_answer_is_not_quoted(site: Site, outputs: Outputs, name: str) -> None:
    """An answer that is not HTTP is reported in a sentence of our own, without its text."""
    not_quoted(site, outputs, name)


def test_a_literal_password_of_a_shared_bucket_is_not_shown(site: Site, outputs: Outputs) -> None:
    """Where the config holds it, no command repeats it."""
    start(site)
    shared = f"postgresql://u:{SECRETS['shared bucket password']}@127.0.0.1:9/d"
    site.edit("  in_flight: 4", f"  in_flight: 4\n  rate: {{shared: '{shared}'}}")
    for command in ("init", "check", "sync", "config show", "config show --json", "runs"):
        outputs.run(site.config, *command.split())
    assert outputs.leaks() == []


# ---- other scenes


def good_nights(site: Site, outputs: Outputs) -> None:
    """Two nights that go well, and every command there is."""
    start(site)
    with site.config.open("a") as file:
        file.write(JOB)
    for command in ("init", "check", "plan", "sync", "sync", "config show", "jobs list", "schedule --preview 2"):
        for form in ([], ["--json"]):
            outputs.run(site.config, *command.split(), *form)
    outputs.run(site.config, "schema")
    for ago, log in enumerate(("json", "text")):
        site.export(f"CUST_{log}.csv", CUSTOMERS.replace("Amselweg", "Neuweg").replace("C1;", f"D{log};"))
        day = YESTERDAY - timedelta(days=ago)
        outputs.run(site.config, "schedule", "--once", day.isoformat(), "--log-format", log)
    outputs.run(site.config, "plan", "-o", str(site.folder / "a.plan"))
    outputs.run(site.config, "apply", str(site.folder / "a.plan"))
    outputs.run(site.config, "jobs", "pause", "nightly")
    look(site, outputs, "good nights")
    for command in ("state purge --older-than 0h", "state compact", "state restored"):
        outputs.run(site.config, *command.split())


def bad_data(site: Site, outputs: Outputs) -> None:
    """Records and files that are refused."""
    start(site)
    outputs.run(site.config, "init")
    site.export("CUST_2.csv", CUSTOMERS.replace("Vogelsang", "Vogelsang" * 99).replace("DE\n", "Kanari Vogelsang\n"))
    outputs.run(site.config, "sync")
    look(site, outputs, "bad data")
    for number, damaged in enumerate((CUSTOMERS[:-9], CUSTOMERS.replace("DE\n", '"DE\n'), CUSTOMERS[len(HEADER) :])):
        damage = site.export(f"CUST_{number + 3}.csv", damaged)
        outputs.run(site.config, "sync", "wms.customers")
        outputs.run(site.config, "plan", "wms.customers", "--json")
        damage.unlink()
    (site.out / "CUST_2.csv").unlink()
    outputs.run(site.config, "records", "drop", "wms.customers", "C9")
    outputs.run(site.config, "records", "replay")


def tokens(site: Site, outputs: Outputs) -> None:
    """A token server that repeats the client's secret, and a platform that repeats the token."""
    given = json.dumps({"access_token": SECRETS["access token"], "token_type": "Bearer", "expires_in": 100})

    def script(refusing: int | None) -> Script:
        def told(asked: Asked) -> bytes:
            if asked.path != "/oauth/token":
                return problem(422, asked)
            secret = json.dumps({"error": SECRETS["client secret"], "error_description": asked.echo})
            return answer(refusing, secret, asked.echo) if refusing else answer(200, given)

        return told

    for refusing in (None, 401):
        with served(Parrot(script(refusing))) as parrot:
            start(site, parrot.url)
            site.edit("{kind: api_key, token: env:CROSSDOCK_API_KEY}", OAUTH)
            outputs.run(site.config, "init")
            outputs.run(site.config, "check")
            outputs.run(site.config, "sync", "wms.customers")
            look(site, outputs, f"tokens {refusing}")


def databases(site: Site, outputs: Outputs) -> None:
    """A state and a shared bucket that cannot be reached, and addresses that hold what they should not."""
    bucket = SECRETS["shared bucket password"]
    literal = f"postgresql://u:{bucket}@127.0.0.1:9/d"
    for old, new in (
        ("state: sqlite:///state.db", "state: postgresql://crossdock@127.0.0.1:9/d"),
        ("state: sqlite:///state.db", f"state: {literal}"),
        ("state: sqlite:///state.db", f"state: {literal}?password={bucket}"),
        ("  in_flight: 4", "  in_flight: 4\n  rate: {shared: postgresql://crossdock@127.0.0.1:9/d}"),
    ):
        start(site)
        site.edit(old, new)
        for command in ("init", "check", "sync", "config show", "config show --json", "runs"):
            outputs.run(site.config, *command.split())


def config_slips(site: Site, outputs: Outputs) -> None:
    """Secrets that stand in the config itself."""
    secret = SECRETS["ssh password"]
    for new in (secret, f"*{secret}", f"!{secret}", f"%{secret}", f"[{secret}]", f"{{{secret}: 1}}", f'"{secret}'):
        start(site)
        site.edit("password: env:WMS_PASSWORD", f"password: {new}")
        for command in ("check", "sync", "config show"):
            outputs.run(site.config, *command.split())


def logins(site: Site, outputs: Outputs) -> None:
    """An SSH server that refuses, and one whose banner repeats what it should not know."""
    start(site)
    outputs.run(site.config, "init")
    site.sftp.password = "another"
    outputs.run(site.config, "sync", "wms.customers")
    outputs.run(site.config, "check")
    site.sftp.password = SECRETS["ssh password"]

    class Banner(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                self.request.sendall(f"{SECRETS['ssh password']} {PERSON['name']}\r\n".encode() * 150)
                self.request.shutdown(socket.SHUT_WR)
                self.request.recv(10_000)

    class Version(Banner):
        def handle(self) -> None:
            with suppress(OSError):
                self.request.sendall(f"SSH-9.{SECRETS['ssh password']}-{PERSON['name']}\r\n".encode())
                self.request.recv(10_000)

    for handler in (Banner, Version):
        with served(socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)) as server:
            server.daemon_threads = True
            start(site)
            site.edit(f"port: {site.sftp.port}", f"port: {server.server_address[1]}")
            outputs.run(site.config, "init")
            outputs.run(site.config, "check")
            outputs.run(site.config, "sync", "wms.customers")
            outputs.run(site.config, "show", "1")


def sources(site: Site, outputs: Outputs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shop that repeats our token in all that it says."""
    load = connections_and_bound_streams.load_connector
    monkeypatch.setattr(
        connections_and_bound_streams,
        "load_connector",
        lambda name: orders_shop.CONNECTOR if name == "orders_shop" else load(name),
    )

    def paged(asked: Asked) -> bytes:
        item = {"id": 1, "sku": "", "title": "x", "price": 1, "updated_at": "2026-01-01"}
        link = f'</products?c={asked.echo.strip()}&n={len(asked.path)}>; rel="next"'
        return answer(200, json.dumps({"items": [item]}), **({} if "c=" in asked.path else {"link": link}))

    twice = f'{{"{PERSON["name"]}": 1, "{PERSON["name"]}": 2}}'
    scripts: tuple[Script, ...] = (
        paged,
        lambda asked: answer(200, asked.echo),
        lambda _: answer(200, twice),
        lambda asked: answer(401, asked.echo, asked.echo),
        lambda asked: answer(404, asked.echo, asked.echo),
        lambda asked: answer(200, '{"items":[]}', link=f'<http://127.0.0.9/{asked.echo.strip()}>; rel="next"'),
    )
    for number, script in enumerate(scripts):
        with served(Parrot(script)) as parrot:
            start(site)
            shop = f"{{kind: orders_shop, base_url: '{parrot.url}', token: env:SHOP_TOKEN}}"
            site.edit("connections:", f"connections:\n  web: {shop}")
            outputs.run(site.config, "init")
            outputs.run(site.config, "sync", "web.products")
            outputs.run(site.config, "plan", "web.products", "--json")
            outputs.run(site.config, "records", "list")
            outputs.keep_words(f"shop {number}", parse_database_url("sqlite:///state.db", site.folder))
    monkeypatch.setattr(connections_and_bound_streams, "load_connector", load)


def defects(site: Site, outputs: Outputs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connector whose exceptions hold secrets and records."""
    folder = site.folder / "installed"
    facts = folder / "canary_shop-1.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: canary-shop\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[crossdock.connectors]\ncanary_shop = canary_shop:CONNECTOR\n")
    (folder / "canary_shop.py").write_text(SHOP % PERSON["name"])
    monkeypatch.syspath_prepend(folder)
    for defect in ("pull", "mapping"):
        start(site)
        shop = f"{{kind: canary_shop, token: env:WMS_PASSPHRASE, defect: {defect}}}"
        site.edit("connections:", f"connections:\n  shop: {shop}")
        for command in ("init", "check", "plan shop", "sync shop", "sync shop --json", "runs --json", "show 1"):
            outputs.run(site.config, *command.split())


def messages(site: Site, outputs: Outputs) -> None:
    """What people and programs are told of a night that failed because of a platform that repeats everything."""
    with served(Parrot(partial(problem, 401))) as parrot:
        start(site, parrot.url)
        outputs.run(site.config, "init")
        outputs.run(site.config, "sync", "wms.customers", "--json")
        outputs.run(site.config, "runs", "--json")
    listed = json.loads(next(shown for name, shown in outputs.kept[::-1] if name == "runs --json"))[0]["messages"]
    said = tuple(RunMessage(**each) for each in listed)
    night = ScheduledRunEnded("nightly", date(2026, 3, 14), None, 17, "failed", 60.0, 5, said, "done")
    with served(Receiver(500, 404)) as hook, relaying(Relay(after=["550 no"])) as relay:
        hook_url = f"{hook.url}/{SECRETS['webhook address']}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOOK", hook_url)
            mail = {"host": "127.0.0.1", "port": relay.port, "tls": "none", "sender": "a@x.org", "to": ["b@x.org"]}
            webhook = {"url": "env:HOOK", "secret": "env:HOOK_KEY"}
            config = NotifyConfig.model_validate({"webhook": webhook, "email": mail}, context={"folder": Path()})
            for unsent in Notifier(config, ManualClock()).notify(night):
                outputs.keep("failed notification", unsent)
        for post in hook.posts:
            outputs.keep("notification", post.body.decode() + str(post.headers))
        for _, _, told in relay.mails:
            outputs.keep("mail", told.as_string() + told.get_content())


def traces(site: Site, outputs: Outputs) -> None:
    """Traces that are taken and that are refused, and what is said of it."""
    bodies: list[bytes] = []

    def taken(asked: Asked) -> bytes:
        bodies.append(asked.body)
        return answer(200 if len(bodies) == 1 else 400, str(asked.headers), str(asked.headers))

    with served(Parrot(taken)) as parrot, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://user:{SECRETS['trace header']}@{parrot.url[7:]}")
        for _ in range(2):
            start(site)
            outputs.run(site.config, "init")
            outputs.run(site.config, "sync", "wms.customers")
    assert bodies
    for body in bodies:
        outputs.keep("trace that was sent", body.decode("latin-1"))


def find_none(site: Site, outputs: Outputs, monkeypatch: pytest.MonkeyPatch, parrots: Iterable[str]) -> None:
    """Collect outputs of every scene, with these of `PARROTS`; none may hold a canary."""
    for name in parrots:
        against(site, outputs, name, PARROTS[name])
    for scene in (good_nights, bad_data, tokens, databases, config_slips, logins, messages, traces):
        scene(site, outputs)
    sources(site, outputs, monkeypatch)
    defects(site, outputs, monkeypatch)
    assert len(outputs.secrets) >= 12
    assert len({shown for _, shown in outputs.kept}) >= WANTED
    assert outputs.leaks() == []


@pytest.mark.nightly
def test_no_canary_is_found_anywhere(site: Site, outputs: Outputs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve secrets and five personal values are in none of more than 150 outputs, whoever repeats them."""
    find_none(site, outputs, monkeypatch, ("everywhere", "escaped"))


def test_the_canaries_would_be_found(site: Site, outputs: Outputs) -> None:
    """What asks for data gets it, and the same watch finds it there: in it, and in the state's own columns."""
    start(site)
    outputs.run(site.config, "init")
    site.export("CUST_2.csv", CUSTOMERS.replace("Vogelsang", "Vogelsang" * 99))
    outputs.run(site.config, "sync", "wms.customers")
    assert outputs.leaks() == []
    outputs.run(site.config, "records", "show", "wms.customers", "C1", "--raw")
    assert len(outputs.leaks()) >= len(PERSON)
    for what, value in outputs.secrets.items():
        watched = Outputs(outputs.secrets)
        watched.keep("x", f"a {value.upper()} b")
        assert watched.leaks()[0].startswith(f"x: the {what}")
