"""Each idea of the documentation has a picture that can be read in light and dark, and by those who do not see it."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.documentation.fences import DOCS

CONCEPTS = [page for page in sorted((DOCS / "concepts").glob("*.md")) if page.name != "index.md"]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("page", CONCEPTS, ids=lambda page: page.stem)
def test_a_concept_has_a_picture_that_everybody_can_read(page: Path) -> None:
    """It has a text alternative, a title and a description, colours for both schemes, and loads nothing."""
    ((alternative, name),) = re.findall(r"^!\[(.+)\]\((\S+\.svg)\)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    text = (page.parent / name).read_text(encoding="utf-8")
    picture = ET.fromstring(text)
    assert alternative
    assert all(picture.findtext(f"{SVG}{part}") for part in ("title", "desc"))
    assert "prefers-color-scheme: dark" in text
    assert re.findall(r"https?://[^\s\"]+", text) == ["http://www.w3.org/2000/svg"]
