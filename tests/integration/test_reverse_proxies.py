"""What the page about nginx and Caddy promises, with the real proxies and the command of the page behind them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import httpx
import pytest
from tests.chaos.listen_stage import ListenStage, listen_stage, signed
from tests.documentation.fences import DOCS, fences_of
from tests.plain_browser import Page
from tests.reverse_proxies import CONSOLE, HOOKS, Caddy, Nginx, ReverseProxy
from tests.servers import free_port, require
from tests.waiting import eventually

from crossdock.console.sign_in.accounts import AccountFile
from crossdock.console.visitors_and_roles import ALL_TENANTS, Role
from crossdock.state import AuditFilter
from crossdock.webhooks import WebhookScheme

PAGE = DOCS / "how_to" / "deploy" / "nginx_or_caddy.md"
PASSWORD = "correct horse battery"
ADDRESS = "127.0.0.2"  # of the browser; the proxy has another
LARGEST = WebhookScheme().max_body_bytes


@dataclass(frozen=True)
class Stand:
    """Attributes:
    console: The address of the console itself.
    """

    proxy: ReverseProxy
    stage: ListenStage
    console: str

    def webhook(self, body: bytes) -> httpx.Response:
        headers = signed(self.stage.secret, body, name=uuid4().hex)
        with self.proxy.client(HOOKS) as client:
            return client.post("/webhooks/shop", content=body, headers=headers)


@pytest.fixture(
    scope="module",
    params=[Nginx, pytest.param(Caddy, marks=pytest.mark.nightly)],
    ids=lambda kind: kind.name,
    name="stand",
)
def _stand(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    kind: type[ReverseProxy] = request.param
    require(kind.program() is not None, kind.name)
    folder = tmp_path_factory.mktemp(kind.name)
    with listen_stage(folder) as stage:
        AccountFile(folder / "people").add("anna", PASSWORD, {ALL_TENANTS: Role.ADMINISTRATOR})
        console = free_port()
        with (
            stage.receiving(*documented_command(stage, console)),
            kind({"8090": stage.port, "8400": console}) as proxy,
        ):
            yield Stand(proxy, stage, f"http://127.0.0.1:{console}")


def documented_command(stage: ListenStage, console: int) -> list[str]:
    """The command of the page that serves both, on free ports."""
    lines = [line for each in fences_of(PAGE) if each.language == "sh" for line in each.text.splitlines()]
    (line,) = (line for line in lines if line.startswith("crossdock schedule "))
    own = {"8090": str(stage.port), "8400": str(console), "people": str(stage.folder / "people")}
    return [own.get(word, word) for word in shlex.split(line)[1:]]


def page_of(answer: httpx.Response) -> Page:
    return Page(answer.status_code, str(answer.url), answer.headers, answer.text)


def send(client: httpx.Client, page: Page, *, origin: str = f"https://{CONSOLE}", **entered: str) -> httpx.Response:
    """Send the last form of *page*, as a browser does."""
    form = page.forms[-1]
    return client.post(form["action"] or page.url, data=form["fields"] | entered, headers={"origin": origin})


@pytest.fixture(name="browser")
def _browser(stand: Stand) -> Iterator[httpx.Client]:
    """A browser in which anna has signed in."""
    with stand.proxy.client(CONSOLE, address=ADDRESS) as client:
        answer = send(client, page_of(client.get("/sign-in")), name="anna", password=PASSWORD)
        assert answer.status_code == 303, answer.text
        yield client


# ---- the console


def test_people_sign_in(stand: Stand, browser: httpx.Client) -> None:
    """The browser gets a cookie that it sends only by TLS, and with it the pages."""
    (cookie,) = browser.cookies.jar
    assert cookie.secure
    assert browser.get(f"/t/{stand.stage.platform.tenant}").status_code == 200
    with stand.proxy.client(CONSOLE) as other:
        assert other.get("/").status_code == 303


def test_the_audit_log_has_the_address_of_the_browser(stand: Stand, browser: httpx.Client) -> None:
    """Not that of the proxy, and not what the browser says of itself."""
    browser.headers["x-forwarded-for"] = "203.0.113.9"
    page = page_of(browser.get(f"/t/{stand.stage.platform.tenant}/do/pause-job?job=nightly"))
    assert send(browser, page, why="a test").status_code == 303

    def paused() -> set[tuple[str, str]]:
        with stand.stage.project.read_state() as tx:
            return {
                (each.person, each.address)
                for each in tx.audit_log.listed(AuditFilter(), limit=100)
                if "pause" in each.action
            }

    eventually(lambda: bool(paused()))
    assert paused() == {("anna", ADDRESS)}


def test_a_page_of_another_site_cannot_sign_in(stand: Stand) -> None:
    """The console compares Origin with the name that the proxy passes on."""
    with stand.proxy.client(CONSOLE) as client:
        answer = send(client, page_of(client.get("/sign-in")), origin="https://evil.example", name="anna")
    assert answer.status_code == 403
    assert "Origin is another site" in answer.text


def test_another_name_does_not_reach_the_console(stand: Stand) -> None:
    """Neither by the proxy, nor with its headers."""
    with stand.proxy.client(CONSOLE) as client:
        assert "csrf_token" in client.get("/sign-in").text
        assert "csrf_token" not in client.get("/sign-in", headers={"host": "evil.example"}).text
    given = {"host": "evil.example", "x-forwarded-for": ADDRESS, "x-forwarded-proto": "https"}
    answer = httpx.get(f"{stand.console}/sign-in", headers=given, trust_env=False)
    assert (answer.status_code, "Host is not this server" in answer.text) == (403, True)


def test_the_console_answers_nobody_but_the_proxy(stand: Stand) -> None:
    """Whoever reaches its port without TLS is refused."""
    answer = httpx.get(f"{stand.console}/sign-in", headers={"host": CONSOLE}, trust_env=False)
    assert (answer.status_code, "must be reached by https" in answer.text) == (403, True)
    transport = httpx.HTTPTransport(local_address=ADDRESS)
    with httpx.Client(transport=transport) as client:
        answer = client.get(f"{stand.console}/sign-in", headers={"host": CONSOLE, "x-forwarded-proto": "https"})
    assert (answer.status_code, "Use the address of the proxy" in answer.text) == (403, True)


# ---- webhooks


@pytest.mark.parametrize(
    "body",
    [
        b'{"type":"products.changed","data":{"id":"P1"}}',
        b'\xef\xbb\xbf {"type" : "products.changed",\r\n\t"data": {"id": "P\\u00e9 \xc3\xa9"}} \r\n',
        b'{"type": "other", "text": "' + b"x" * (LARGEST - 29) + b'"}',
    ],
    ids=["short", "white space", "as large as crossdock accepts"],
)
def test_the_body_of_a_webhook_is_unchanged(stand: Stand, body: bytes) -> None:
    """Its signature is that of the bytes, so a changed one would be refused."""
    assert len(body) <= LARGEST
    assert stand.webhook(body).status_code == 200


@pytest.mark.parametrize("size", [LARGEST + 1, 8 << 20], ids=["by one byte", "by far"])
def test_a_larger_webhook_is_refused(stand: Stand, size: int) -> None:
    """With the answer that the vendor's log explains, not as a failure of the proxy."""
    assert stand.webhook(b"x" * size).status_code == 413


@pytest.mark.parametrize("path", ["/", "/metrics", "/webhook", "/other/webhooks/shop"])
def test_only_webhooks_are_passed_on(stand: Stand, path: str) -> None:
    """Other paths are answered by the proxy, whatever else is served at the port behind it."""
    own = httpx.get(f"http://127.0.0.1:{stand.stage.port}{path}", trust_env=False)
    assert own.text
    with stand.proxy.client(HOOKS) as client:
        assert client.get(path).text != own.text
