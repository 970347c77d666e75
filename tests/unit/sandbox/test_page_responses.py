from __future__ import annotations

import jinja2
import pytest

from crossdock.sandbox.html_page_responses import html_response, render, style_response


def test_values_are_escaped() -> None:
    """Whatever a template is given is text."""
    text = render("message.html", here="", heading="<b>", back="/", message='"<script>&')
    assert "&lt;b&gt;" in text
    assert "&#34;&lt;script&gt;&amp;" in text


def test_a_missing_value_is_an_error() -> None:
    """A template never shows nothing in the place of a value that was forgotten."""
    with pytest.raises(jinja2.UndefinedError):
        render("message.html", here="")


def test_the_style_loads_nothing() -> None:
    """It refers to no other file, and has a dark form."""
    text = bytes(style_response().body).decode()
    assert "url(" not in text
    assert "@import" not in text
    assert "prefers-color-scheme: dark" in text


def test_a_page_has_its_status() -> None:
    """It is HTML in UTF-8."""
    answer = html_response("ä", 404)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
