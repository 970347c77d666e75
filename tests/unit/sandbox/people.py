"""A person at the sandbox's page: keeps the cookie, and sends forms with the tokens that the page contains."""

from __future__ import annotations

import itertools
import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import urlencode

import httpx
from tests.unit.sandbox.raw import BASE_URL, Raw

from crossdock.sandbox import Sandbox

FORM = "application/x-www-form-urlencoded"


class Person:
    """One browser without scripts."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._raw, self._cookie = Raw(sandbox, key="none"), ""

    def get(self, path: str = "/") -> httpx.Response:
        return self._kept(self._raw("GET", path, authorization=None, cookie=self._cookie or None))

    def token(self, action: str = "/page/keys", page: str = "/") -> str:
        """A token from the form on *page* that is sent to *action*."""
        found = re.search(rf'action="{re.escape(action)}">\s*<input [^>]*value="([^"]+)"', self.get(page).text)
        assert found
        return found[1]

    def post(self, action: str, *fields: tuple[str, str], **headers: str | None) -> httpx.Response:
        sent: dict[str, str | None] = {"origin": BASE_URL, "cookie": self._cookie or None, "content_type": FORM}
        return self._kept(self._raw("POST", action, urlencode(fields), authorization=None, **{**sent, **headers}))

    def send(self, action: str, *fields: tuple[str, str], page: str = "/") -> httpx.Response:
        """Send the form on *page* for *action*, filled in with *fields*."""
        return self.post(action, ("csrf_token", self.token(action, page)), *fields)

    def create(self, *scopes: str, tenant: str = "sandbox") -> str:
        """Create a key and return it."""
        answer = self.send("/page/keys", ("tenant", tenant), *(("scope", scope) for scope in scopes))
        assert answer.status_code == 201, answer.text
        return key_in(answer)

    def _kept(self, answer: httpx.Response) -> httpx.Response:
        if "set-cookie" in answer.headers:
            self._cookie = answer.headers["set-cookie"].partition(";")[0]
        return answer


def key_in(answer: httpx.Response) -> str:
    found = re.search(r'id="key"[^>]* value="([^"]+)"', answer.text)
    assert found, answer.text
    return unescape(found[1])


class Outline(HTMLParser):
    """What a screen reader relies on: the language, headings, and the fields and tables without a name.

    Attributes:
        unclosed: Elements that are still open at the end, or closed in another order.
    """

    _VOID = frozenset({"meta", "link", "input", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.unclosed: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self._VOID:
            self.unclosed.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.unclosed and self.unclosed[-1] == tag:
            self.unclosed.pop()

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attrs for tag, attrs in self.tags if tag in tags]

    @property
    def headings(self) -> list[int]:
        return [int(tag[1]) for tag, _ in self.tags if re.fullmatch("h[1-6]", tag)]

    @property
    def nameless_fields(self) -> list[dict[str, str | None]]:
        labelled = {each.get("for") for each in self.all("label")}
        fields = (each for each in self.all("input") if each.get("type") != "hidden")
        return [each for each in fields if "aria-label" not in each and each.get("id") not in labelled]

    @property
    def ids(self) -> list[str | None]:
        return [attrs["id"] for _, attrs in self.tags if "id" in attrs]


def assert_accessible(text: str) -> Outline:
    """Well-formed, with a language, a title, a skip link, headings in order, and a name for every field and column."""
    page = Outline(text)
    assert page.unclosed == []
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("title")) == len(page.all("main")) == page.headings.count(1) == 1
    assert page.all("a")[0] == {"class": "skip", "href": "#content"}
    levels = page.headings
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert page.nameless_fields == []
    assert all("scope" in each for each in page.all("th"))
    assert len(page.ids) == len(set(page.ids))
    assert {"#" + str(each) for each in page.ids} >= {
        str(each["href"]) for each in page.all("a") if str(each.get("href")).startswith("#")
    }
    assert not page.all("script", "img", "style")
    assert not any(name.startswith("on") or name == "style" for _, attrs in page.tags for name in attrs)
    return page
