"""Every block of code on every page is executed; one that nobody claims fails."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from shlex import split

import pytest
from cronsim import CronSim
from tests.documentation import claims, config_blocks
from tests.documentation.fences import READ, ROOT, Fence, fences, page_name
from tests.documentation.options import check_options
from tests.documentation.quoted_messages import unknown_words

from crossdock.reading.formats.cobol_copybook import parse_copybook
from crossdock.services.fleet import executor_kinds_by_entry_point

OUTPUT = ("text", "json")


def of(*languages: str) -> pytest.MarkDecorator:
    """Cases for each block in one of *languages*."""
    return pytest.mark.parametrize("fence", list(fences(*languages)), ids=lambda each: f"{each.name}.{each.language}")


@of("yaml", "yml")
def test_yaml(fence: Fence, tmp_path: Path) -> None:
    """It is a config, a part of one, or a file for another program, and is valid as that."""
    kind = config_blocks.kind_of(fence)
    assert kind, f"{fence.place}: it is unknown what this YAML is"
    _, tried = config_blocks.KINDS[kind]
    tried(config_blocks.data_of(fence), fence, tmp_path)


UNITS = {each.title: each.text for each in fences("ini")} | {
    path.name: path.read_text(encoding="utf-8") for path in (ROOT / "configs/deploy/systemd").glob("*.service")
}


@pytest.mark.parametrize("name", UNITS)
def test_systemd_units(name: str, tmp_path: Path) -> None:
    """systemd accepts the unit where it is installed; its commands exist, and its options are known."""
    unit = configparser.ConfigParser(strict=False, interpolation=None, comment_prefixes="#")
    unit.optionxform = str  # type: ignore[assignment, method-assign]  # names of systemd have capitals
    unit.read_string(UNITS[name].replace("\\\n", " "))
    program, *words = split(unit["Service"]["ExecStart"])
    if Path(program).name == "crossdock":
        check_options(words)
    if not shutil.which("systemd-analyze"):
        return
    path = tmp_path / f"{Path(name).stem}.service"
    path.write_text(re.sub(r"/opt/crossdock/bin/\w+", "/bin/true", UNITS[name]).replace("User=crossdock\n", ""))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if path.name in line]
    assert said == [], said


@of("crontab")
def test_crontab(fence: Fence) -> None:
    """Each line has a time that comes, and a command that exists."""
    for line in fence.text.splitlines():
        *when, command = line.split(maxsplit=5)
        assert next(CronSim(" ".join(when), datetime.now(UTC))) > datetime.now(UTC)
        program, *words = split(command)
        assert program == "crossdock"
        check_options(words)


@of("toml")
def test_toml(fence: Fence) -> None:
    """It is valid, and its entry points are of groups that crossdock reads."""
    data = tomllib.loads(fence.text)
    for group, points in data.get("project", {}).get("entry-points", {}).items():
        assert group in {"crossdock.connectors", executor_kinds_by_entry_point.GROUP}
        assert all(re.fullmatch(r"[\w.]+:\w+", value) for value in points.values())


@of("cobol")
def test_copybooks(fence: Fence) -> None:
    """crossdock reads it."""
    assert parse_copybook(fence.text, "fixed")


@of("json")
def test_json(fence: Fence) -> None:
    """It is the output of the command before it, which `test_commands` compares."""
    assert is_output(fence), f"{fence.place}: no command has printed this"


@of("text")
def test_texts(fence: Fence) -> None:
    """It is the output of the commands before it, which `test_commands` compares, or has messages of the code."""
    if is_output(fence) or claims.claim(claims.TEXTS, fence.text):
        return
    unknown = {line: unknown_words(line) for line in fence.text.splitlines()}
    assert not any(unknown.values()), f"{fence.place}: no message of the code: {unknown}"


def is_output(fence: Fence) -> bool:
    """Whether commands directly before a block have written it."""
    before = fence.before
    return before is not None and (before.language == "sh" or (before.language in OUTPUT and is_output(before)))


def named_commands() -> Iterator[tuple[str, str]]:
    """The commands in the sentences of the pages."""
    for page in READ:
        for command in re.findall(r"`crossdock ([^`]*)`", page.read_text(encoding="utf-8")):
            yield page_name(page), " ".join(command.split())


def test_commands_in_sentences() -> None:
    """Each has a subcommand and options that exist."""
    found = list(named_commands())
    assert len(found) > 30
    for page, command in found:
        try:
            check_options(split(command.partition(" #")[0]))
        except AssertionError as error:
            pytest.fail(f"{page}: crossdock {command}: {error}")


# ---- who executes what

Told = Callable[[Fence], str]


def _python(fence: Fence) -> str:
    return claims.claim(claims.PYTHON, fence.text) or "imported, and its tests run"


def _text(fence: Fence) -> str:
    if is_output(fence):
        return "compared with the output of the commands"
    return claims.claim(claims.TEXTS, fence.text) or "messages of the code"


EXECUTED: dict[str, Told] = {
    "sh": lambda fence: claims.claim(claims.SHELL, fence.text) or "run by a shell",
    "python": _python,
    "yaml": lambda fence: f"loaded: {config_blocks.kind_of(fence)}",
    "yml": lambda fence: f"loaded: {config_blocks.kind_of(fence)}",
    "ini": lambda _: "checked by systemd",
    "nginx": lambda _: "tests/integration/test_reverse_proxies.py",
    "caddyfile": lambda _: "tests/integration/test_reverse_proxies.py",
    "crontab": lambda _: "its times and commands",
    "toml": lambda _: "parsed, with its entry points",
    "cobol": lambda _: "read as a copybook",
    "json": lambda _: "compared with the output of the commands",
    "text": _text,
}


def test_every_block_is_executed() -> None:
    """Each language has a test, each claim names a test that exists, and no code is only indented."""
    unclaimed = [
        f"{each.place} ({each.language or 'no language'})" for each in fences() if each.language not in EXECUTED
    ]
    assert unclaimed == []
    told = Counter((each.language, EXECUTED[each.language](each)) for each in fences())
    for (language, how), number in sorted(told.items()):
        print(f"{number:4} {language:10} {how}")
    for test in {how.partition("::") for _, how in told if how.startswith("tests/")}:
        path, _, name = test
        assert (ROOT / path).exists(), path
        assert not name or f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), test
