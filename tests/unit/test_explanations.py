"""Every code that the code can emit has a page, which `crossdock explain` shows."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from shlex import split

import click
import pytest
from click.testing import CliRunner
from tests.documentation.options import check_options

import crossdock
import crossdock_connectors
from crossdock.cli.main import cli, main
from crossdock.errors import ConfigError, CrossdockError, FindingsError, RecordError, add_code_to_first_line
from crossdock.values import explanations
from crossdock.values.raw_rows_and_records import REASONS
from crossdock.values.run_progress_and_messages import RunMessage, RunMessages, error_texts, warning_and_note_texts
from crossdock.values.run_states_and_tally import known_words

ROOTS = [Path(package.__path__[0]) for package in (crossdock, crossdock_connectors)]
OF_CLICK = {"usage"}


def error_classes() -> dict[str, type[CrossdockError]]:
    for package in (crossdock, crossdock_connectors):
        for found in walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                import_module(found.name)
    classes, left = {CrossdockError}, [CrossdockError]
    while left:
        below = left.pop().__subclasses__()
        classes |= {*below}
        left += below
    return {each.__name__: each for each in classes if each.__module__.startswith("crossdock")}


@cache
def calls() -> list[tuple[Path, ast.Call]]:
    """Each call of the source, with its file below a root."""
    return [
        (file.relative_to(root), node)
        for root in ROOTS
        for file in root.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    ]


def given_codes() -> Iterator[str]:
    """The text of each argument ``code=`` of a call, also if it is given only in one case."""
    for _, call in calls():
        at = {"RunMessage": 3, "with_code": 1}.get(name_of(call))
        if at is not None and len(call.args) > at and isinstance(given := call.args[at], ast.Constant):
            yield str(given.value)
        for each in call.keywords:
            if each.arg == "code":
                cases = [each.value.body, each.value.orelse] if isinstance(each.value, ast.IfExp) else [each.value]
                yield from (str(case.value) for case in cases if isinstance(case, ast.Constant) and case.value)


def name_of(call: ast.Call) -> str:
    """The name of what is called; that of a method without its object."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def bare_warnings() -> Iterator[str]:
    """The place of each warning of a run, and of each finding that is no success, without a code."""
    for file, call in calls():
        named = {each.arg: each.value for each in call.keywords}
        is_warning = name_of(call) == "warn" and len(call.args) == 2 and "stacklevel" not in named
        is_finding = name_of(call) == "Finding" and not (
            ast.unparse(named["ok"]) == "True" and "warning:" not in ast.unparse(named["text"])
        )
        if (is_warning or is_finding) and "code" not in named:
            yield f"{file}:{call.lineno}: {ast.unparse(call)}"


def bare_errors() -> Iterator[str]:
    """The place of each error that has only the code of a class with many causes."""
    many = {"ConfigError", "RefusedError", "StateError", "RemoteError", "UnauthorizedError", "UnavailableError"}
    many |= {"CrossdockError", "ConnectorError"}
    for file, call in calls():
        if "sign_in" in file.parts:
            continue  # the sign-in has a RefusedError of its own, which is a page
        if not isinstance(call.func, ast.Name) or call.func.id not in many:
            continue
        if not any(each.arg == "code" for each in call.keywords):
            yield f"{file}:{call.lineno}: {call.func.id}"


def emitted() -> set[str]:
    return {*given_codes()} | {each.code or each.category for each in error_classes().values()} | {*REASONS} | OF_CLICK


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    """The codes are listed from the source: arguments `code`, classes of errors, and reasons of dead letters."""
    assert {*explanations.codes()} == emitted()


def test_every_error_says_which_it_is() -> None:
    """No error is made with the code of a class that has many causes."""
    assert [*bare_errors()] == []


def test_every_warning_says_which_it_is() -> None:
    """Those of a run, and the findings of `crossdock check`."""
    assert [*bare_warnings()] == []


def test_a_warning_is_shown_with_its_code() -> None:
    """A note has none."""
    messages = RunMessages()
    messages.add_warning("shop.products", "several variants have the SKU 1", code="sku_repeated")
    messages.add_note("shop.products", "3 files were read")
    assert warning_and_note_texts(messages) == [
        "shop.products: several variants have the SKU 1 [sku_repeated]",
        "shop.products: 3 files were read",
    ]
    assert [each.as_json()["code"] for each in messages] == ["sku_repeated", None]


@pytest.mark.parametrize("code", explanations.codes())
def test_a_page_says_what_happened_why_and_what_to_do(code: str) -> None:
    """In the same order, in lines that fit a terminal."""
    lines = explanations.page(code).rstrip().split("\n")
    assert lines[0].startswith("# ")
    assert [line for line in lines if line.startswith("## ")] == ["## Usual causes", "## What to do"]
    assert lines[2] and lines[2][0] not in "#-"  # noqa: PT018
    assert all(len(line) <= 80 for line in lines)
    assert "TODO" not in "\n".join(lines)


def quoted(code: str) -> list[str]:
    """What a page has in backticks, each in one line."""
    return re.findall(r"`([^`]+)`", " ".join(explanations.page(code).split()))


def options_of(command: click.Command) -> set[str]:
    """The options of a command and of those below it."""
    found = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    if isinstance(command, click.Group):
        names = command.list_commands(click.Context(command))
        below = [command.get_command(click.Context(command), name) for name in names]
        found |= {name for each in below if each is not None for name in options_of(each)}
    return found


def test_the_commands_and_options_that_pages_advise_exist() -> None:
    """A command that is quoted whole has the options that stand beside it."""
    known = {*options_of(cli), "--help"}
    for code in explanations.codes():
        for text in quoted(code):
            words = split(text)
            if words[0] == "crossdock" and len(words) > 1:
                check_options(words[1:])
            assert text[:2] != "--" or {word for word in words if word.startswith("-")} <= known, f"{code}: {text}"


def test_explain_shows_a_page_and_lists_all() -> None:
    """By the code as it stands in a message, with brackets or without."""
    shown = CliRunner().invoke(cli, ["explain", "[state_busy]"])
    assert shown.output == explanations.page("state_busy")
    document = json.loads(CliRunner().invoke(cli, ["explain", "[state_busy]", "--json"]).output)
    assert document == {"code": "state_busy", "page": shown.output}
    listed, words = CliRunner().invoke(cli, ["explain"]).output.split("\n\n")
    assert len(listed.splitlines()) == len(explanations.codes())
    assert {*" ".join(words.split()).removeprefix("Words of reports: ").split(", ")} == {*known_words()}


@pytest.mark.parametrize("word", known_words())
def test_each_word_of_reports_is_explained(word: str) -> None:
    """As reports show it, in lines that fit a terminal."""
    shown = CliRunner().invoke(cli, ["explain", *word.split()]).output
    assert shown.startswith(f"# {word}\n\n- Of ")
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_a_word_of_reports_that_is_also_a_code_has_both_pages() -> None:
    """It has other meanings in a report."""
    shown = explanations.explanation_of_code_or_word("rejected")
    assert "belongs to no record" in shown
    assert shown.endswith(explanations.page("rejected"))


def test_an_unknown_code_names_those_that_are_near() -> None:
    """With the advice to list all where none is."""
    with pytest.raises(ConfigError) as error:
        explanations.explanation_of_code_or_word("state_bussy")
    assert error.value.hint == "did you mean state_busy or state_newer?" or "state_busy" in str(error.value.hint)
    with pytest.raises(ConfigError) as error:
        explanations.explanation_of_code_or_word("zzzz")
    assert error.value.hint == "crossdock explain lists all"


def test_a_command_ends_with_the_code_of_its_error(capsys: pytest.CaptureFixture[str]) -> None:
    """At the end of the first line, before the advice."""
    with pytest.raises(SystemExit):
        main(["explain", "state_bussy"])
    first, advice = capsys.readouterr().err.splitlines()
    assert first.endswith(" [code_unknown]")
    assert advice.startswith("  did you mean state_busy")


def test_the_errors_of_a_run_are_listed_with_their_codes() -> None:
    """Once each, with the streams that they stopped."""
    error = ConfigError("cannot be read", where="a.csv", hint="make it readable", code="file_unreadable")
    messages = [RunMessage.of_error(name, error) for name in ("wms.items", "wms.bins")]
    assert error_texts(messages) == ["wms.items, wms.bins: a.csv: cannot be read [file_unreadable]\n  make it readable"]
    assert add_code_to_first_line(str(FindingsError(["a", "b"])), "config_invalid") == "a [config_invalid]\nb"


def test_an_author_may_give_a_code_of_their_own() -> None:
    """An error without one has that of its class."""
    assert [ConfigError("x").code, ConfigError("x", code="shop_closed").code] == ["config", "shop_closed"]
    assert inspect.signature(RecordError).parameters["code"].default is inspect.Parameter.empty
