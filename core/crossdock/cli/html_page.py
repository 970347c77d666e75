"""A report as one self-contained file: the frame of the page with its style and policy, and how it is written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from crossdock.errors import ConfigError
from crossdock.values.local_files import replace_file

_STYLE = (Path(__file__).parent / "report.css").read_text(encoding="utf-8")
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
    return _PAGE.format(title=title, style=_STYLE, body="\n".join(part for part in parts if part))


def write(path: Path, page: str) -> None:
    """Write *page* to *path*, as `replace_file` does. Raises ConfigError if it cannot be written."""
    try:
        replace_file(path, page.encode())
    except OSError as error:
        raise ConfigError(f"the report cannot be written: {error.strerror}", where=str(path)) from error
