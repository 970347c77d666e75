"""``crossdock explain``: what the code of an error or a warning means."""

from __future__ import annotations

import json
from textwrap import wrap

import click

from crossdock.cli.shared_options_messages_and_signals import as_json as json_option
from crossdock.cli.shared_options_messages_and_signals import (
    check_each_value_is_utf8,
    echo_document_text,
    help_example,
    print_sentences,
)
from crossdock.values import explanations
from crossdock.values.run_states_and_tally import known_words


@click.command(epilog=help_example("crossdock explain", "crossdock explain file_growing", "crossdock explain in doubt"))
@click.argument("code", nargs=-1, callback=check_each_value_is_utf8)
@json_option
def explain(code: tuple[str, ...], *, as_json: bool) -> None:
    """Explain the code of an error or a warning, the word in brackets at its end, or the reason of a rejected record.

    CODE may also be a word that reports use for runs, records, rows, files or plans, such as degraded or in doubt.
    Without it, all codes and words are listed. No config and no network is needed.
    """
    if code:
        name = " ".join(code).strip("[]")
        text = explanations.explanation_of_code_or_word(name)
        echo_document_text(json.dumps({"code": name, "page": text})) if as_json else print_sentences(
            *text.rstrip().split("\n")
        )
        return
    titles = explanations.titles()
    if as_json:
        echo_document_text(json.dumps(titles, indent=2))
        return
    width = max(map(len, titles))
    print_sentences(*(f"{each:{width}}  {title}" for each, title in titles.items()))
    print_sentences("", *wrap(f"Words of reports: {', '.join(known_words())}", 80))
