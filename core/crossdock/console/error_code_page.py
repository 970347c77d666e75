"""The page that explains the code of an error or the reason of a rejected record, as ``crossdock explain`` does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from starlette.responses import Response

from crossdock.console.page_request_context import PageError, PageRequest
from crossdock.console.page_tables import Link
from crossdock.values import explanations

_CODE = re.compile(r"\[(\w+)\]$", re.MULTILINE)  # at the end of the first line of an error
_ITEM = "- "


class Block(Struct, frozen=True):
    """A heading, a paragraph or a list. Each of its texts is in pieces, of which every second one is code."""

    tag: str
    texts: Sequence[Sequence[str]]


def show_error_code(visit: PageRequest) -> Response:
    code = visit.path_params["code"]
    if code not in explanations.codes():
        raise PageError(404, f"No error has the code {code}.")
    title, _, text = explanations.page(code).partition("\n")
    return visit.render_page(
        "code.html", title.removeprefix("# "), code=code, blocks=list(_parse_explanation_blocks(text))
    )


def explanation_links(visit: PageRequest, codes: Iterable[str | None]) -> list[Link]:
    """Return a link to the page about each of the *codes* that has one."""
    known = explanations.codes()
    return [Link(code, visit.link("codes", code)) for code in dict.fromkeys(codes) if code in known]


def error_codes_in(text: str) -> list[str]:
    """Return the codes of the errors in what a command has printed."""
    return _CODE.findall(text)


def _parse_explanation_blocks(text: str) -> Iterator[Block]:
    for part in text.strip().split("\n\n"):
        if part.startswith("## "):
            yield Block("h2", [_split_at_code_marks(part.removeprefix("## "))])
        elif part.startswith(_ITEM):
            yield Block("ul", [_split_at_code_marks(each) for each in part.removeprefix(_ITEM).split(f"\n{_ITEM}")])
        else:
            yield Block("p", [_split_at_code_marks(part)])


def _split_at_code_marks(text: str) -> Sequence[str]:
    return " ".join(text.split()).split("`")
