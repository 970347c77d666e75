"""A browser without JavaScript: it keeps cookies, follows links and sends the forms of a page."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from http.cookiejar import CookieJar
from typing import Any
from urllib.parse import urlencode, urljoin


@dataclass(frozen=True)
class Link:
    text: str
    address: str


class PageParser(HTMLParser):
    """Collects the visible text, the links and the forms of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.links: list[Link] = []
        self.forms: list[dict[str, Any]] = []
        self._address: str | None = None
        self._link_texts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in given:
            self._address, self._link_texts = given["href"], []
        elif tag == "form":
            self.forms.append({"method": given.get("method", "get"), "action": given.get("action", ""), "fields": {}})
        elif tag in {"input", "textarea", "select"} and self.forms and "name" in given:
            if given.get("type") != "radio" or "checked" in given:
                self.forms[-1]["fields"][given["name"]] = given.get("value", "")
        elif tag in {"style", "script", "title"}:
            self._hidden += 1

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._address is not None:
            self.links.append(Link(" ".join("".join(self._link_texts).split()), self._address))
            self._address = None
        elif tag in {"style", "script", "title"}:
            self._hidden -= 1

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.texts.append(data)
        if self._address is not None:
            self._link_texts.append(data)


class Page:
    def __init__(self, status: int, url: str, headers: Mapping[str, str], html: str) -> None:
        self.status, self.url, self.headers, self.html = status, url, headers, html
        parser = PageParser()
        parser.feed(html)
        self.links, self.forms = parser.links, parser.forms
        self.text = " ".join(" ".join(parser.texts).split())

    def link(self, text: str) -> str:
        """Return the address of the first link with this text, or one that begins with it."""
        exact = [each.address for each in self.links if each.text == text]
        return (exact or [each.address for each in self.links if each.text.startswith(text)])[0]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class Browser:
    def __init__(self, base_url: str, *, follows: bool = True) -> None:
        self.base_url, self.cookies = base_url, CookieJar()
        handlers: list[Any] = [urllib.request.HTTPCookieProcessor(self.cookies), urllib.request.ProxyHandler({})]
        self._opener = urllib.request.build_opener(*handlers, *([] if follows else [_NoRedirect()]))

    def open(self, address: str, *, headers: Mapping[str, str] | None = None, data: bytes | None = None) -> Page:
        request = urllib.request.Request(urljoin(self.base_url, address), data, dict(headers or {}))
        try:
            answer = self._opener.open(request)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            return Page(answer.status, answer.url, dict(answer.headers), answer.read().decode())

    def follow(self, page: Page, text: str) -> Page:
        """Follow the link with this text, as a person does."""
        return self.open(urljoin(page.url, page.link(text)))

    def send(self, page: Page, number: int = -1, /, **entered: str) -> Page:
        """Send a form of *page*, by default the last one, with what a person has entered."""
        form = page.forms[number]
        fields = form["fields"] | entered
        address = urljoin(page.url, form["action"])
        if form["method"] == "get":
            return self.open(f"{address}?{urlencode(fields)}")
        return self.open(address, data=urlencode(fields).encode(), headers={"Origin": self.base_url})
