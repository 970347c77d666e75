"""What the codes of errors and warnings and the reasons of dead letters mean: one Markdown page each, named after it.

A page has the title in its first line, then what happened, "Usual causes" and "What to do". Lines have at most 80
characters, because ``crossdock explain`` shows a page as it is. The documentation has the same pages.

The words that reports show, such as ``degraded``, have pages that are made from their sentences.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib.resources import files
from textwrap import fill

from crossdock.errors import ConfigError
from crossdock.values.run_states_and_tally import known_words, meanings_of_state_word

_SUFFIX = ".md"


def codes() -> list[str]:
    """Return all codes, sorted."""
    names = (each.name for each in files(__name__).iterdir())
    return sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))


def page(code: str) -> str:
    """Return the page about *code*, in Markdown."""
    return (files(__name__) / f"{code}{_SUFFIX}").read_text(encoding="utf-8")


def explanation_of_code_or_word(name: str) -> str:
    """Return the page about a code or a word of reports, in Markdown.

    Raises:
        ConfigError: If no error or warning has this code, and no report this word.
    """
    known = codes()
    pages = [page(name)] if name in known else []
    if found := meanings_of_state_word(name):
        lines = (fill(f"- Of {of}: {meaning}.", 80, subsequent_indent="  ") for of, meaning in found)
        pages.insert(0, "\n".join((f"# {name}\n", *lines, "")))
    if not pages:
        near = get_close_matches(name, [*known, *known_words()], n=3, cutoff=0.5)
        advice = f"did you mean {' or '.join(near)}?" if near else "crossdock explain lists all"
        raise ConfigError(f"{name!r} is neither a code nor a word of reports", hint=advice, code="code_unknown")
    return "\n".join(pages)


def titles() -> dict[str, str]:
    """Return the titles of all pages by code, sorted."""
    return {code: page(code).partition("\n")[0].removeprefix("# ") for code in codes()}
