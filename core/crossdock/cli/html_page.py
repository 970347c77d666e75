"""A report as one self-contained file: the frame of the page with its style and policy."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

_STYLE = (Path(__file__).parent / "page_templates" / "style.css").read_text(encoding="utf-8")
_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def document(title: str, parts: Iterable[str]) -> str:
    """Return the page of *parts*, which are HTML. Empty parts are left out."""
    return _PAGE.format(title=title, style=_STYLE, body="\n".join(part for part in parts if part))
