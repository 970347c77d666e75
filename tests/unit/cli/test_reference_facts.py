"""Exit codes and environment variables that the documentation lists are those of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import crossdock
from crossdock.cli.exit_code_and_variable_meanings import ENVIRONMENT_VARIABLE_MEANINGS, EXIT_CODE_MEANINGS
from crossdock.errors import CrossdockError

CORE = Path(crossdock.__path__[0])
OF_LIBRARIES = {"COLUMNS", "NO_COLOR", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}  # of rich, and of urllib.request
OF_THE_MACHINE = {"PATH"}


def sources(*, below: Path = CORE) -> Iterator[ast.AST]:
    for path in below.rglob("*.py"):
        if not {"testing", "new"} & {*path.relative_to(CORE).parts}:
            yield from ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def exit_codes() -> Iterator[int]:
    """Those of errors, and those that the functions of commands return."""
    classes = [CrossdockError]
    for each in classes:
        classes += each.__subclasses__()
        yield each.exit_code
    for node in sources(below=CORE / "cli"):
        if isinstance(node, ast.FunctionDef) and node.returns is not None and ast.unparse(node.returns) == "int":
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return) and inner.value is not None:
                    yield from constants(inner.value)


def constants(value: ast.expr) -> Iterator[int]:
    if isinstance(value, ast.Constant) and isinstance(value.value, int):
        yield value.value
    elif isinstance(value, ast.IfExp):
        yield from (*constants(value.body), *constants(value.orelse))
    elif isinstance(value, ast.BoolOp):
        yield from (number for each in value.values for number in constants(each))


def variables() -> Iterator[str]:
    """The names that are given to what reads the environment, or stand in a constant for it."""
    for node in sources():
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
            yield from names(node.slice)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "os.environ.get" and node.args:
            yield from names(node.args[0])
        elif isinstance(node, ast.Assign):
            if ast.unparse(node.targets[0]) in {"_CERTIFICATE_VARIABLES", "_ENDPOINTS"}:
                yield from names(node.value)
        elif isinstance(node, ast.Constant) and re.fullmatch("CROSSDOCK_[A-Z_]+", str(node.value)):
            yield str(node.value)


def names(value: ast.expr) -> Iterator[str]:
    for each in ast.walk(value):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def test_each_exit_code_has_a_meaning() -> None:
    """And each meaning belongs to a code that a command can end with."""
    assert {*exit_codes()} == {*EXIT_CODE_MEANINGS}


def test_each_environment_variable_is_listed() -> None:
    """And each that is listed is read, by crossdock or by a library."""
    listed = {name for each in ENVIRONMENT_VARIABLE_MEANINGS for name in each}
    assert {*variables()} | OF_LIBRARIES == listed | OF_THE_MACHINE
