"""What the codes of errors and warnings and the reasons of dead letters mean: one Markdown page each, named after it.

A page has the title in its first line, then what happened, "Usual causes" and "What to do". Lines have at most 80
characters, because ``crossdock explain`` shows a page as it is. The documentation has the same pages.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib.resources import files

from crossdock.errors import ConfigError

_SUFFIX = ".md"


def codes() -> list[str]:
    """Return all codes, sorted."""
    names = (each.name for each in files(__name__).iterdir())
    return sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))


def page(code: str) -> str:
    """Return the page about *code*, in Markdown.

    Raises:
        ConfigError: If no error or warning has this code.
    """
    known = codes()
    if code not in known:
        near = get_close_matches(code, known, n=3, cutoff=0.5)
        advice = f"did you mean {' or '.join(near)}?" if near else "crossdock explain lists all codes"
        raise ConfigError(f"no error or warning has the code {code!r}", hint=advice, code="code_unknown")
    return _read(code)


def titles() -> dict[str, str]:
    """Return the titles of all pages by code, sorted."""
    return {code: _read(code).partition("\n")[0].removeprefix("# ") for code in codes()}


def _read(code: str) -> str:
    return (files(__name__) / f"{code}{_SUFFIX}").read_text(encoding="utf-8")
