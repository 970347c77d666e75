"""Law 8: secrets and personal data stay put, whatever is asked and whatever goes wrong."""

from __future__ import annotations

import io
import json
import logging
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime

import click
import pytest
from tests.e2e.warehouse import FORWARD, INVOICES, PASSWORD, PERSON, PRODUCTS, Front, Reply, Seen, Site
from tests.unit.state.samples import intent

from crossdock.cli.main import cli, main
from crossdock.errors import StateError
from crossdock.state import State
from crossdock.state.db import database_opening_and_errors

PASSPHRASE = "phrase-canary-9c2d"
# Every personal value begins with PERSON, so that one word watches over all of them.
CUSTOMER = f"{PERSON} Vogelsang;{PERSON}@mail.example;{PERSON}-555-17;{PERSON}weg 1;{PERSON}stadt;{PERSON}-77;DE"
CUSTOMERS = f"CUSTNO;NAME;MAIL;PHONE;STREET;CITY;ZIP;LAND\nC1;{CUSTOMER}\nC2;{CUSTOMER}\n"
MOVED = CUSTOMERS.replace(f"{PERSON}weg 1", f"{PERSON}gasse 2")
MAP = """name: NAME
          email: MAIL
          phone: PHONE
          billingAddress: {object: {line1: STREET, city: CITY, postalCode: ZIP, country: LAND}}"""

COMMANDS = (
    "check",
    "plan",
    "sync",
    "plan --limit 0 wms.customers",
    "runs",
    "show 1",
    "records list",
    "records show wms.customers C1",
    "records show wms.customers C9",
    "config show",
    "state purge --dry-run",
    "state purge --older-than 0h",
    "init",
)
OF_FILES = ("check", "plan", "sync", "runs", "show 2")  # these read or report a file that is refused


@pytest.fixture
def site(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site with personal data in its files, and secrets of every kind."""
    monkeypatch.setenv("WMS_PASSPHRASE", PASSPHRASE)
    site.secrets += [PASSPHRASE]
    configure(site)
    site.init()
    fill(site)
    return site


@pytest.fixture
def front(site: Site) -> Iterator[Front]:
    """Stands before the platform of *site* and quotes what it is told to."""
    with Front(site.platform.base_url) as front:
        site.base_url = front.base_url
        configure(site)
        (site.folder / "state.db").unlink()
        site.init()
        yield front


def configure(site: Site) -> None:
    site.configure()
    site.edit("name: NAME", MAP, within="customers:")
    site.edit("password: env:WMS_PASSWORD", "password: env:WMS_PASSWORD\n    passphrase: env:WMS_PASSPHRASE")


def fill(site: Site) -> None:
    site.export("CUST_1.csv", CUSTOMERS)
    site.export("PROD_1.csv", PRODUCTS)
    site.export("INV_1.csv", INVOICES)


def shown(site: Site, *arguments: str) -> tuple[object, str]:
    """The exit code of a command, and all that it showed on both streams; a traceback may be among it."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out), pytest.raises(SystemExit) as ended:
        main(["-C", str(site.config), *arguments])
    return ended.value.code, out.getvalue()


class LeakError(AssertionError):
    """Something is shown that must not be: the only failure that a known leak may have."""


def assert_private(site: Site, text: str) -> None:
    if any(secret in text for secret in site.secrets):
        raise LeakError("a secret is shown")
    if PERSON.lower() in text.lower():
        raise LeakError(f"personal data is shown:\n{text}")


def assert_all_private(site: Site, commands: Sequence[str] = COMMANDS) -> None:
    for command in commands:
        for form in ([], ["--json"]):
            code, text = shown(site, *command.split(), *form)
            assert_private(site, text)
            assert code in {0, 1, 2, 3, 4}, text


# ---- what goes wrong


@dataclass(frozen=True)
class Trouble:
    """Something that goes wrong, and what a sync then says, which proves that it did.

    Attributes:
        commands: That are looked at in the suite.
    """

    cause: Callable[[Site, ExitStack], object]
    code: int
    says: str
    commands: Sequence[str] = COMMANDS


def refuse_login(site: Site, _: ExitStack) -> None:
    site.setenv("WMS_PASSWORD", "wrong-canary-11")
    site.secrets.append("wrong-canary-11")


def refuse_key(site: Site, _: ExitStack) -> None:
    site.setenv("CROSSDOCK_API_KEY", "ck_wrong_canary_22")
    site.secrets.append("ck_wrong_canary_22")


def lock(site: Site, stack: ExitStack) -> None:
    other = stack.enter_context(closing(sqlite3.connect(site.folder / "state.db", isolation_level=None)))
    other.execute("BEGIN IMMEDIATE")


def block_log(site: Site, _: ExitStack) -> None:
    (site.folder / "state.db-wal").mkdir()


def encrypt_key(site: Site, _: ExitStack) -> None:
    (site.folder / "key").write_text(f"-----BEGIN OPENSSH PRIVATE KEY-----\n{PASSWORD}\n")
    (site.folder / "key").chmod(0o600)
    site.edit("password: env:WMS_PASSWORD", "private_key: file:key")


def binary_key(site: Site, _: ExitStack) -> None:
    encrypt_key(site, _)
    (site.folder / "key").write_bytes(PASSWORD.encode() + b"\xff")


TROUBLES = {
    "nothing": Trouble(lambda *_: None, 0, "the tally balances"),
    "names too long": Trouble(
        lambda site, _: site.export("CUST_2.csv", CUSTOMERS.replace("Vogelsang", "x" * 500)),
        1,
        "crossdock records list",
    ),
    "wrong password": Trouble(refuse_login, 3, "login refused"),
    "wrong api key": Trouble(refuse_key, 3, "does not accept the credential"),
    "unreadable private key": Trouble(encrypt_key, 2, "private_key cannot be read"),
    "private key that is no text": Trouble(binary_key, 2, "is not UTF-8 text"),
    "locked state": Trouble(lock, 3, "database is locked"),
    "state that cannot be written": Trouble(block_log, 3, "the state cannot be used"),
    "state that is no database": Trouble(
        lambda site, _: (site.folder / "state.db").write_bytes(CUSTOMERS.encode() * 99), 3, "the state cannot be used"
    ),
    "a record cut short": Trouble(
        lambda site, _: site.export("CUST_3.csv", f"{CUSTOMERS}C3;{PERSON}\n"), 4, "2 fields instead of 8"
    ),
    "a quote never closed": Trouble(
        lambda site, _: site.export("CUST_3.csv", f'{CUSTOMERS}C3;"{PERSON}\n'), 4, "never closed", OF_FILES
    ),
    "two columns of one name": Trouble(
        lambda site, _: site.export("CUST_3.csv", f"{PERSON};{PERSON}\n"),
        4,
        "columns 1 and 2 have the same name",
        OF_FILES,
    ),
}


@pytest.mark.nightly(but=["a record cut short"])
@pytest.mark.parametrize("retry_state", [pytest.param(retry_state, id=name) for name, retry_state in TROUBLES.items()])
def test_nothing_is_shown_whatever_goes_wrong(
    site: Site, retry_state: Trouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No command shows a secret or a person, in either form, with data in the state and with trouble of any kind."""
    monkeypatch.setattr(database_opening_and_errors, "BUSY_S", 0.05)
    shows_nothing(site, retry_state, retry_state.commands)


def shows_nothing(site: Site, retry_state: Trouble, commands: Sequence[str]) -> None:
    """Fails if one of *commands* shows a secret or a person while there is trouble."""
    assert site.sync().code == 0
    site.export("CUST_2.csv", MOVED)
    with ExitStack() as stack:
        retry_state.cause(site, stack)
        code, text = shown(site, "sync")
        assert (code, retry_state.says in text) == (retry_state.code, True), text
        assert_private(site, text)
        assert_all_private(site, commands)


@pytest.mark.nightly
def test_a_plan_of_everything_shows_nobody(site: Site) -> None:
    """Creates and updates of personal members are planned without their content, in either form."""
    for _ in range(2):
        for form in ([], ["--json"], ["--limit", "1000"]):
            code, text = shown(site, "plan", *form)
            assert code == 0
            assert_private(site, text)
        assert site.sync().code == 0
        site.export("CUST_2.csv", MOVED)
    sent = json.dumps(site.effects("customer"), default=str)
    assert all(part in sent for part in (*CUSTOMER.split(";"), f"{PERSON}gasse 2"))


def test_raw_alone_shows_a_record(site: Site) -> None:
    """What was rejected is printed by ``records show --raw``, and by nothing else."""
    site.export("CUST_1.csv", CUSTOMERS.replace("Vogelsang", "x" * 500))
    assert site.sync().code == 1
    for form in ([], ["--json"]):
        assert f"{PERSON}weg 1" in shown(site, "records", "show", "wms.customers", "C2", "--raw", *form)[1]
    assert_all_private(site)


def test_files_are_for_their_owner(site: Site) -> None:
    """What keeps records, in the state, its log and the spool, may be read by nobody else, also while work is left."""
    site.setenv("CROSSDOCK_API_KEY", "ck_wrong_canary_22")
    with closing(sqlite3.connect(site.folder / "state.db")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM runs").fetchall()  # so that the log stays
        assert shown(site, "sync")[0] == 3
        holding = [path for path in site.folder.rglob("*") if path.is_file() and PERSON.encode() in path.read_bytes()]
        ours = [path for path in holding if "served" not in path.parts]
        assert {path.relative_to(site.folder).parts[0] for path in ours} >= {"state.db-wal", "state.db.spool"}
        for path in ours:
            assert not path.stat().st_mode & 0o077 or not path.parent.stat().st_mode & 0o077, path


def test_help_knows_nothing_of_the_environment(site: Site) -> None:
    """No help text shows a value of a variable or of the config."""

    def walk(command: click.Command, path: list[str]) -> Iterator[list[str]]:
        yield path
        if isinstance(command, click.Group):
            with click.Context(command) as context:
                for name in command.list_commands(context):
                    inner = command.get_command(context, name)
                    assert inner is not None
                    yield from walk(inner, [*path, name])

    helped = [shown(site, *path, "--help") for path in walk(cli, [])]
    assert len(helped) > 15
    for code, text in helped:
        assert code == 0
        assert_private(site, text)


SLIPS = {
    "literal": (f"password: {PASSWORD}", "env:NAME or file:PATH"),
    "alias": (f"password: *{PASSWORD}", "is not valid YAML"),
    "tag": (f"password: !{PASSWORD}", "is not valid YAML"),
    "tag with a handle": (f"password: !{PASSWORD}!x", "is not valid YAML"),
    "anchors": (f"password: &{PASSWORD} env:A\n    passphrase: &{PASSWORD} env:A", "is not valid YAML"),
    "percent": (f"password: %{PASSWORD}", "is not valid YAML"),
    "reserved": (f"password: @{PASSWORD}", "is not valid YAML"),
    "no blank": (f"password:{PASSWORD}", "is not valid YAML"),
    "list": (f"password: [{PASSWORD}]", "env:NAME or file:PATH"),
    "date": ("password: 2026-13-41", "is not one: quote it"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_secret_in_a_config_is_not_repeated(site: Site, slip: str) -> None:
    """A secret that somebody wrote into the config is refused, and stands in no message, be it no YAML at all."""
    new, says = SLIPS[slip]
    site.edit("password: env:WMS_PASSWORD", new)
    site.secrets.append("2026-13-41")
    for command in ("sync", "check", "config show"):
        code, text = shown(site, *command.split())
        assert (code, says in text) == (2, True), text
        assert_private(site, text)


def test_persons_in_a_config_are_not_repeated(site: Site) -> None:
    """A constant or a filter of a config may be personal: neither findings nor ``config show`` quote it."""
    site.edit("email: MAIL", f"email: {{const: '{PERSON}@mail.example'}}")
    site.edit("resource: customer", f"resource: customer\n        skip: {{me: {{field: NAME, equals: {PERSON}}}}}")
    assert_all_private(site)
    site.edit("email: {const: '", "email: {konst: 1, const: '")
    code, text = shown(site, "sync")
    assert (code, "konst" in text) == (2, True)
    assert_private(site, text)


# ---- what others say


ECHOES = {
    "whole": lambda seen: f"{json.loads(seen.body)['name']} is no name",
    "the address": lambda seen: f"{json.loads(seen.body)['billingAddress']['line1']} is no street",
}


@pytest.mark.nightly(but=["whole"])
@pytest.mark.parametrize("echo", ECHOES)
def test_a_refusal_that_quotes_a_record(site: Site, front: Front, echo: str) -> None:
    """A 422 that repeats a personal value is kept and shown without it."""
    front.fate = lambda seen: reply(422, ECHOES[echo](seen)) if b"billingAddress" in seen.body else FORWARD
    assert shown(site, "sync")[0] == 1
    assert_all_private(site)
    assert PERSON not in json.dumps([run.get("error") for run in site.run("runs", "--json").json])


@pytest.mark.nightly
def test_an_answer_that_breaks_the_rules_is_not_quoted(site: Site, front: Front) -> None:
    """A header that is not HTTP, and repeats our key and a person, is shown by no command and kept nowhere."""
    front.fate = lambda _: Reply(200, b"{}", {"x-echo": f"Bearer {site.api_key} {PERSON}\0"})
    code, text = shown(site, "sync")
    assert (code, "the response is not valid HTTP" in text) == (3, True)
    assert_private(site, text)
    assert_all_private(site)
    assert any("is not valid HTTP" in str(run["errors"]) for run in site.run("runs", "--json").json)
    kept = b"".join(file.read_bytes() for file in site.folder.glob("state.db*") if file.is_file())
    assert site.api_key.encode() not in kept


def reply(status: int, detail: str, **members: object) -> Reply:
    return Reply(
        status, json.dumps({"detail": detail, **members}).encode(), {"content-type": "application/problem+json"}
    )


def cut(seen: Seen) -> Reply:
    """The value stands where a long message is cut off."""
    return reply(422, f"{'x' * (300 - len(PERSON) - 2)} {json.loads(seen.body)['name']}")


def first_name(seen: Seen) -> Reply:
    return reply(422, f"{json.loads(seen.body)['name'].split()[0]} is no name")


def capitals(seen: Seen) -> Reply:
    return reply(422, f"{json.loads(seen.body)['name'].upper()} is no name")


def pointer(seen: Seen) -> Reply:
    name = json.loads(seen.body)["name"]
    return reply(422, "is no name", errors=[{"pointer": f"/customers/{name}", "detail": "is no name"}])


QUOTES: dict[str, Callable[[Seen], Reply]] = {
    "cut": cut,
    "first name": first_name,
    "capitals": capitals,
    "pointer": pointer,
    "403": lambda seen: reply(403, f"{json.loads(seen.body)['name']} is forbidden"),
    "404": lambda seen: reply(404, f"{json.loads(seen.body)['name']} is unknown"),
    "500": lambda seen: reply(500, f"cannot store {json.loads(seen.body)['name']}"),
}


@pytest.mark.nightly(but=["cut", "first name", "capitals"])
@pytest.mark.parametrize("answer", QUOTES.values(), ids=QUOTES)
def test_an_answer_that_quotes_a_record(site: Site, front: Front, answer: Callable[[Seen], Reply]) -> None:
    """Whatever a platform or a gateway repeats of a record in an error, no command shows it."""
    front.fate = lambda seen: answer(seen) if b"billingAddress" in seen.body else FORWARD
    assert_private(site, shown(site, "sync", "wms.customers")[1])
    for command in ("records list", "records show wms.customers C1", "runs --json", "show 1"):
        assert_private(site, shown(site, *command.split())[1])


@pytest.mark.nightly
def test_a_refusal_that_quotes_what_was_before(site: Site, front: Front) -> None:
    """An update that is refused with the old values of a person shows neither these nor the new ones."""
    assert site.sync().code == 0
    old = f"{PERSON}weg 1 and {PERSON}stadt"
    site.export("CUST_2.csv", MOVED.replace(PERSON, "Nova"))
    site.secrets += ["Nova"]
    front.fate = lambda seen: (
        reply(422, f"{old} became {seen.body.decode()}") if seen.method == "PATCH" and b"name" in seen.body else FORWARD
    )
    assert shown(site, "sync", "wms.customers")[0] == 1
    assert_all_private(site)
    assert "(personal)" in site.listed()[0]["why"]


@pytest.mark.nightly(but=["401-sync"])
@pytest.mark.parametrize("command", ["sync", "check"])
@pytest.mark.parametrize("status", [401, 403])
def test_an_answer_that_quotes_the_key(site: Site, front: Front, command: str, status: int) -> None:
    """A platform that repeats the credential which it refuses does not make us show it."""
    front.fate = lambda _: reply(status, f"the key {site.api_key} is not valid")
    assert_private(site, shown(site, command)[1])
    assert_private(site, shown(site, "show", "1")[1])


def test_a_file_without_its_header(site: Site) -> None:
    """Where the header is missing, the first record stands in its place: it is not listed as the columns there are."""
    site.export("CUST_1.csv", f"C1;{CUSTOMER}\nC2;{CUSTOMER}\n")
    code, text = shown(site, "sync", "wms.customers")
    assert code == 4
    assert_private(site, text)


def test_a_password_in_the_address_of_the_state(site: Site) -> None:
    """A state's address with a password in its query is refused as one before the host is."""
    site.edit("sqlite:///state.db", f"postgresql://crossdock@127.0.0.1:9/d?password={PASSWORD}")
    code, text = shown(site, "init")
    assert_private(site, text)
    assert code == 2


# ---- defects


SHOP = """
from typing import Literal
from crossdock import Connector, CustomerDraft, RawBatch, SecretRef, Settings, Stream

class ShopSettings(Settings):
    kind: Literal["canary_shop"]
    token: SecretRef
    defect: str

class Customers(Stream[ShopSettings]):
    name, resource, key = "customers", "customer", ("id",)
    defect = ""

    def pull(self, ctx, since):
        items = [{"id": "1", "name": bytes.fromhex("%s").decode()}]
        if ctx.settings.defect == "pull":
            raise ValueError(f"{ctx.settings.token.reveal()} does not open {items}")
        yield RawBatch.json(items, source="page", key=["id"])

    def to_resource(self, record):
        try:
            return CustomerDraft(name=record.json()["name"], age=int(record.json()["name"]))
        except ValueError as error:
            raise LookupError(f"{record} is bad") from error

def check(ctx):
    yield [][ctx.settings.token.reveal()]

CONNECTOR = Connector("canary_shop", "A shop", ShopSettings, lambda _: (Customers(),), check)
"""


@pytest.fixture
def shop(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site with a connection more, of an installed connector that is full of defects."""
    folder = site.folder / "installed"
    facts = folder / "canary_shop-1.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: canary-shop\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[crossdock.connectors]\ncanary_shop = canary_shop:CONNECTOR\n")
    (folder / "canary_shop.py").write_text(SHOP % f"{PERSON} Vogelsang".encode().hex())
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "canary_shop", raising=False)
    site.edit("connections:", "connections:\n  shop: {kind: canary_shop, token: env:WMS_PASSPHRASE, defect: pull}")
    return site


@pytest.mark.parametrize("command", ["sync shop", "plan shop"])
def test_a_pull_that_raises_with_its_record(shop: Site, command: str) -> None:
    """A defect of `pull` is told by its place, its class and its text, without secrets and quoted values."""
    code, text = shown(shop, *command.split())
    assert code == 3
    assert "shop.customers: pull raised ValueError in line 17 of " in text
    assert re.search(r"canary_shop\.py: \(secret\)\s+does not open", text)
    assert "canary_shop.py" in text
    assert "Traceback" not in text
    assert_private(shop, text)
    assert_private(shop, shown(shop, "show", "1")[1])


def test_a_check_that_raises_is_a_test_that_failed(shop: Site) -> None:
    """A defect of `check` is told by its place and its class; the command goes on with its other tests."""
    code, text = shown(shop, "check")
    assert code == 3
    assert "FAIL  shop: shop: check raised TypeError in line 27 of " in text
    assert "FAIL  platform" in text or "ok    platform" in text
    assert "Traceback" not in text
    assert_private(shop, text)
    assert_private(shop, shown(shop, "runs", "--json")[1])


@pytest.mark.parametrize("command", ["sync shop", "plan shop"])
def test_a_mapping_that_raises_with_its_record(shop: Site, command: str) -> None:
    """An exception with the record in its text makes a dead letter that names the place in the code, and no data."""
    shop.edit("defect: pull", "defect: mapping")
    code, text = shown(shop, *command.split())
    assert code == (1 if command == "sync shop" else 0)
    listed = text if command == "plan shop" else shown(shop, "records", "list", "--json")[1]
    assert "mapping_failed" in listed
    assert re.search(r"LookupError in line \d+ of \S*canary_shop.py", listed)
    for said in (text, listed, shown(shop, "show", "1")[1], shown(shop, "records", "show", "shop.customers", "1")[1]):
        assert_private(shop, said)


def test_a_database_error_holds_no_values(state: State) -> None:
    """What the database says about a statement is told without the statement's values."""
    body = f'{{"name":"{PERSON}"}}'.encode()
    of_no_run = intent(1, body=body, raw={"name": PERSON})
    with pytest.raises(StateError) as refused, state.begin() as tx:
        tx.intents.add([of_no_run], run_id=4711, fence=1, at=datetime(2026, 1, 1, tzinfo=UTC))
    assert "foreign key" in str(refused.value).lower()
    assert PERSON not in str(refused.value)


# ---- logs


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(logging.Formatter("%(name)s %(message)s"))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What every logger says at DEBUG from now on, as somebody sees it who embeds crossdock."""
    kept, root = _Kept(), logging.getLogger()
    loggers = [root, *(item for item in logging.Logger.manager.loggerDict.values() if isinstance(item, logging.Logger))]
    for item in loggers:
        monkeypatch.setattr(item, "level", logging.DEBUG)
    logging.Logger.manager._clear_cache()  # type: ignore[attr-defined]  # levels are remembered by every logger
    root.addHandler(kept)
    yield kept.lines
    root.removeHandler(kept)
    monkeypatch.undo()
    logging.Logger.manager._clear_cache()  # type: ignore[attr-defined]  # see above


def everything(site: Site) -> None:
    site.export("CUST_3.csv", f"{CUSTOMERS}C3;{PERSON}{'x' * 500};;;;;;\n")
    for command in ("check", "plan", "sync", "records list", "sync", "state purge --older-than 0h"):
        shown(site, *command.split())
    site.export("CUST_2.csv", MOVED)
    shown(site, "sync")


def test_logs_hold_nothing(site: Site, logged: list[str]) -> None:
    """Whatever level is asked for, no logger of crossdock, of HTTP or of SSH tells a secret or a person."""
    everything(site)
    assert any(line.startswith("httpcore") for line in logged)
    for line in logged:
        if not line.startswith("sqlalchemy"):
            assert_private(site, line)


@pytest.mark.nightly
def test_logs_of_the_database_hold_nothing(site: Site, logged: list[str]) -> None:
    """Statements are logged without their values, and rows not at all."""
    everything(site)
    found = [line for line in logged if line.startswith("sqlalchemy")]
    assert found
    for line in found:
        assert_private(site, line)


# ---- what a config marks


def test_a_member_can_be_marked_as_personal(site: Site, front: Front) -> None:
    """What is not personal in general can be here: plans hide it, and what the platform repeats of it is masked."""
    site.edit("        resource: product\n", "        resource: product\n        personal: [name]\n")
    site.export("PROD_1.csv", f"SKU;NAME;PRICE\nP1;Made for {PERSON};1.50\n")
    front.fate = lambda seen: reply(422, f"{json.loads(seen.body)['name']} is too long")
    assert_private(site, shown(site, "plan", "wms.products")[1])
    assert_private(site, shown(site, "sync", "wms.products")[1])
    (dead_letter,) = site.listed()
    assert "(personal)" in dead_letter["why"]
    front.fate = lambda _: FORWARD
    assert shown(site, "records", "replay")[0] == 0
    site.export("PROD_2.csv", f"SKU;NAME;PRICE\nP1;Sent to {PERSON};1.50\n")
    text = shown(site, "plan", "wms.products")[1]
    assert "name: changed (personal)" in text
    assert_private(site, text)


def test_a_mark_on_no_member_is_told_with_its_place(site: Site) -> None:
    """A slip in the marks would leave something unmasked, so it is an error."""
    site.edit("        resource: product\n", "        resource: product\n        personal: [nmae]\n")
    code, text = shown(site, "plan")
    assert (code, "did you mean 'name'?" in text) == (2, True)
    assert site.place("nmae") in text
