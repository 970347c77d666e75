"""``crossdock explain``: what the code of an error or a warning means."""

from __future__ import annotations

import json

import click

from crossdock.cli.printed_sentences import say
from crossdock.cli.shared_options import as_json as json_option
from crossdock.cli.shared_options import check_utf8, echo_document, help_example
from crossdock.values import explanations


@click.command(epilog=help_example("crossdock explain", "crossdock explain file_growing"))
@click.argument("code", required=False, callback=check_utf8)
@json_option
def explain(code: str | None, *, as_json: bool) -> None:
    """Explain the code of an error or a warning, the word in brackets at its end, or the reason of a rejected record.

    Without a CODE, all codes are listed. No config and no network is needed.
    """
    if code is not None:
        code = code.strip("[]")
        text = explanations.page(code)
        echo_document(json.dumps({"code": code, "page": text})) if as_json else say(*text.rstrip().split("\n"))
        return
    titles = explanations.titles()
    if as_json:
        echo_document(json.dumps(titles, indent=2))
        return
    width = max(map(len, titles))
    say(*(f"{each:{width}}  {title}" for each, title in titles.items()))
