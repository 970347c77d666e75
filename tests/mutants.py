"""Which small faults the tests notice: ``python -m tests.mutants --executed executed --number 300 --seed 1``.

Each mutant is one changed expression or statement of a function in `PACKAGES`. The tests that execute it run until one
fails, those that execute the fewest functions first. Record them before, which takes twice the time of the suite, or
folder by folder: all recordings in ``executed`` count.

    CROSSDOCK_EXECUTED=executed pytest -n 2 -p tests.executed_functions

What survives is printed, to be looked at by a person. With ``--again FILE`` the mutants of an earlier result are tried,
for example after tests were removed; ``--nightly`` also runs the tests that are marked so.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "delta",
    "mapping",
    "migration",
    "reading",
    "runs/planning",
    "runs/reconciliation",
    "runs/undo",
    "state",
    "writing",
)
WITHIN_S = 600
COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True)
class Mutant:
    """*before* at *line* and *column* of *module*, a path in the project, becomes *after*."""

    module: str
    line: int
    column: int
    before: str
    after: str

    def source(self) -> str:
        """The module with the fault."""
        lines = (ROOT / self.module).read_text("utf-8").splitlines(keepends=True)
        start = sum(map(len, lines[: self.line - 1])) + self.column
        text = "".join(lines)
        assert text[start:].startswith(self.before), f"{self.module} has changed"
        return text[:start] + self.after + text[start + len(self.before) :]

    def __str__(self) -> str:
        return f"{self.module}:{self.line}:{self.column + 1}: {self.before!r} -> {self.after!r}"


def mutants(path: Path) -> Iterator[Mutant]:
    """Each small fault of one module; annotations, docstrings and messages are left alone."""
    text = path.read_text("utf-8")
    if not text.isascii():
        return  # columns of the parser are bytes
    lines, tree, left_alone = text.splitlines(), ast.parse(text), set[ast.AST]()
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inside = {node for function in functions for part in function.body for node in ast.walk(part)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise | ast.AnnAssign | ast.JoinedStr):
            left_alone |= set(ast.walk(node.annotation if isinstance(node, ast.AnnAssign) else node))
        if (
            node in left_alone
            or node not in inside
            or not isinstance(node, ast.expr | ast.stmt)
            or node.lineno != node.end_lineno
        ):
            continue
        before = lines[node.lineno - 1][node.col_offset : node.end_col_offset]
        for after in _faults(node):
            yield Mutant(path.relative_to(ROOT).as_posix(), node.lineno, node.col_offset, before, after)


def _faults(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Compare(left=left, ops=[only], comparators=[right]):
            yield ast.unparse(ast.Compare(left, [COMPARISONS[type(only)]()], [right]))
        case ast.BoolOp(op=ast.And(), values=values):
            yield f"({ast.unparse(ast.BoolOp(ast.Or(), values))})"
        case ast.BoolOp(op=ast.Or(), values=values):
            yield f"({ast.unparse(ast.BoolOp(ast.And(), values))})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield f"({ast.unparse(operand)})"
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            yield f"({ast.unparse(ast.BinOp(left, ast.Sub(), right))})"
        case ast.BinOp(op=ast.Sub(), left=left, right=right):
            yield f"({ast.unparse(ast.BinOp(left, ast.Add(), right))})"
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Constant(value=int(value)):
            yield str(value + 1)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield f"({ast.unparse(ast.IfExp(test, orelse, body))})"
        case ast.Expr(value=ast.Call()) | ast.Assign(targets=[ast.Attribute()]) | ast.AugAssign():
            yield "pass"
        case ast.Break() | ast.Continue():
            yield "pass"
        case _:
            return


def chosen(number: int, seed: int, packages: Sequence[str] = PACKAGES) -> list[Mutant]:
    """So many mutants of *packages*, each equally likely."""
    modules = sorted(path for package in packages for path in (ROOT / "core" / "crossdock" / package).rglob("*.py"))
    every = [mutant for module in modules for mutant in mutants(module)]
    return random.Random(seed).sample(every, number)


class ExecutedFunctions:
    """The tests that execute each function, by path and first line, of the files that `tests.executed_functions` wrote.

    Attributes:
        functions: How many functions each test executes.
    """

    def __init__(self, folder: Path) -> None:
        self._tests: dict[tuple[str, int], set[str]] = defaultdict(set)
        self.functions = dict[str, int]()
        for path in sorted(folder.glob("*.json")):
            for test, executed in json.loads(path.read_text("utf-8")).items():
                self.functions[test] = len(executed)
                for module, line in executed:
                    self._tests[module, line].add(test)

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute the function of *mutant*, those that execute the fewest functions first."""
        tree = ast.parse((ROOT / mutant.module).read_text("utf-8"))
        lines = [
            min([node.lineno, *(each.lineno for each in node.decorator_list)])
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and node.lineno <= mutant.line <= (node.end_lineno or 0)
        ]
        found = self._tests.get((mutant.module, max(lines)), set()) if lines else set[str]()
        return sorted(found, key=lambda test: (self.functions[test], test))


def killed_by(mutant: Mutant, tree: Path, tests: Sequence[str], *options: str) -> str | None:
    """The first of *tests* that notices *mutant*, in a copy of the project at *tree*; None if none does."""
    place = tree / mutant.module
    place.write_text(mutant.source(), "utf-8")
    try:
        return next((by for some in batched(tests) if (by := _failing(tree, [*options, *some])) is not None), None)
    finally:
        shutil.copy(ROOT / mutant.module, place)


def batched(tests: Sequence[str]) -> Iterator[Sequence[str]]:
    """Divide *tests*: few first, since most mutants are noticed by the first ones."""
    start, size = 0, 8
    while start < len(tests):
        yield tests[start : start + size]
        start, size = start + size, 200


def _failing(tree: Path, arguments: Sequence[str]) -> str | None:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(str(tree / each) for each in ("core", "connectors", ""))}
    try:
        ended = subprocess.run(
            command, cwd=tree, env=variables, capture_output=True, text=True, timeout=WITHIN_S, check=False
        )
    except subprocess.TimeoutExpired:
        return "no end"
    if ended.returncode == 0:
        return None
    failed = (line for line in ended.stdout.splitlines() if line.startswith(("FAILED ", "ERROR ")))
    return next(failed, f"exit code {ended.returncode}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--number", type=int, default=300)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--package", action="append", choices=PACKAGES, help="only mutants of these (repeatable)")
    options.add_argument("--again", type=Path, help="a file of --to, whose mutants are tried")
    options.add_argument("--executed", type=Path, required=True, help="the folder with the executed functions")
    options.add_argument("--most", type=int, default=600, help="most tests for a mutant (%(default)s)")
    options.add_argument("--nightly", action="store_true")
    options.add_argument("--to", type=Path, default=Path("mutants.json"), help="file for the results (%(default)s)")
    given = options.parse_args()
    if given.again:
        tried = [Mutant(**each["mutant"]) for each in json.loads(given.again.read_text("utf-8"))]
    else:
        tried = chosen(given.number, given.seed, given.package or PACKAGES)
    executed, results, more = ExecutedFunctions(given.executed), [], ["--nightly"] * given.nightly
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "main"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".*_cache", "__pycache__"))
        for number, mutant in enumerate(tried, 1):
            tests = executed.tests(mutant)[: given.most]
            by = killed_by(mutant, tree, tests, *more)
            results.append({"mutant": asdict(mutant), "tests": len(tests), "killed_by": by})
            given.to.write_text(json.dumps(results, indent=1), "utf-8")
            outcome = f"survives {len(tests)} tests:" if by is None else "killed"
            print(f"{number}/{len(tried)} {outcome} {mutant}", flush=True)
    print(f"{sum(each['killed_by'] is not None for each in results)} of {len(results)} mutants were killed")


if __name__ == "__main__":
    main()
