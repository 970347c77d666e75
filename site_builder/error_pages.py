"""Pages about errors, warnings and the reasons of dead letters, which ``crossdock explain`` prints too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from crossdock.values import explanations
from crossdock.values.raw_rows_and_records import REASONS
from site_builder.markdown_text import code, escaped, table

FOLDER = "reference/errors"


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each page: one for each code, and an index of errors and of reasons."""
    errors = [each for each in explanations.codes() if each not in REASONS]
    yield (
        f"{FOLDER}/index.md",
        "# Errors\n\nWhat each error and each warning means, and what to do about it. It ends with its code in"
        " brackets, and `crossdock explain CODE` prints the same page.\n\n"
        + _index(errors, "")
        + "\n## Reasons of dead letters\n\n"
        + _index(sorted(REASONS), ""),
    )
    yield (
        "reference/reason_codes.md",
        "# Reason codes\n\nWhy a record is a dead letter. Its reason is one of these codes.\n\n"
        + _index(sorted(REASONS), "errors/"),
    )
    for name in explanations.codes():
        heading, _, rest = explanations.page(name).partition("\n")
        rest = re.sub(r"^## (.*)$", r"**\1**", rest, flags=re.MULTILINE)  # one result of the search for each code
        yield f"{FOLDER}/{name}.md", f"{heading}\n\nCode: {code(name)}\n{rest}"


def _index(codes: Iterable[str], folder: str) -> str:
    titles = explanations.titles()
    rows = [(f"[{code(name)}]({folder}{name}.md)", escaped(titles[name])) for name in codes]
    return table(("code", "what happened"), rows)
