"""Templates of pages: what they show of a text is decided in one place, and HTML is inserted unchanged."""

from __future__ import annotations

import jinja2
import pytest

from crossdock.values.html_templates import PageTemplates

TEMPLATES = PageTemplates("crossdock.sandbox", shown=str.upper)


def test_what_is_shown_of_a_text_is_escaped() -> None:
    """In the text of a page and in its attributes; text of the template itself is unchanged."""
    made = TEMPLATES.render("message.html", here="", style_path='"', heading="<b>", back="/", message="it's")
    assert "<h1>&lt;B&gt;</h1>" in made
    assert "IT&#39;S" in made
    assert 'href="&#34;"' in made


def test_what_a_macro_makes_is_inserted_unchanged() -> None:
    """It is HTML, whose values were shown and escaped when it was made."""
    made = TEMPLATES.macro("macros.html", "csrf")("<a>")
    assert made.strip() == '<input type="hidden" name="csrf_token" value="&lt;A&gt;">'
    assert made in TEMPLATES.render("message.html", here="", style_path="", heading=made, back="", message="")


def test_a_missing_value_is_an_error() -> None:
    """A template never shows nothing in the place of a value that was forgotten."""
    with pytest.raises(jinja2.UndefinedError):
        TEMPLATES.render("message.html", here="")
