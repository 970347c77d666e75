"""Which small faults the tests notice: ``python -m tests.mutants --number 300 --seed 1``.

Each mutant is one changed expression or statement of a module in `PACKAGES`. The tests that name its module run first,
then those of its package, until one fails. What survives is printed, to be looked at by a person. With ``--again FILE``
the mutants of an earlier result are tried, for example after tests were removed.
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
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("delta", "mapping", "migration", "planning", "reading", "state", "writing")
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
    lines, left_alone = text.splitlines(), set[ast.AST]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Raise | ast.AnnAssign | ast.JoinedStr):
            left_alone |= set(ast.walk(node.annotation if isinstance(node, ast.AnnAssign) else node))
        if node in left_alone or not isinstance(node, ast.expr | ast.stmt) or node.lineno != node.end_lineno:
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


def chosen(number: int, seed: int) -> list[Mutant]:
    """So many mutants of all packages, each equally likely."""
    modules = sorted(path for package in PACKAGES for path in (ROOT / "core" / "crossdock" / package).rglob("*.py"))
    every = [mutant for module in modules for mutant in mutants(module)]
    return random.Random(seed).sample(every, number)


def tests_of(module: str) -> list[list[str]]:
    """Test files that name *module*, then those that name its package, of the suite."""
    name = module.removeprefix("core/").removesuffix(".py").replace("/", ".")
    package, _, last = name.rpartition(".")
    found: list[list[str]] = [[], []]
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        parts = path.relative_to(ROOT / "tests").parts
        if parts[0] in {"nightly", "long", "benchmarks"}:
            continue
        text = path.read_text("utf-8")
        if name in text or f"from {package} import {last}" in text or path.stem == f"test_{last}":
            found[0].append(path.relative_to(ROOT).as_posix())
        elif f"{package}." in text or f"from {package} import" in text:
            found[1].append(path.relative_to(ROOT).as_posix())
    return found


def killed_by(mutant: Mutant, tree: Path, stages: Sequence[Sequence[str]]) -> str | None:
    """The first test that notices *mutant*, in a copy of the project at *tree*; None if none does."""
    place = tree / mutant.module
    place.write_text(mutant.source(), "utf-8")
    try:
        return next((by for files in stages if files and (by := _failing(tree, files)) is not None), None)
    finally:
        shutil.copy(ROOT / mutant.module, place)


def _failing(tree: Path, files: Sequence[str]) -> str | None:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files]
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
    options.add_argument("--again", type=Path, help="a file of --to, whose mutants are tried")
    options.add_argument("--to", type=Path, default=Path("mutants.json"), help="file for the results (%(default)s)")
    given = options.parse_args()
    if given.again:
        tried = [Mutant(**each["mutant"]) for each in json.loads(given.again.read_text("utf-8"))]
    else:
        tried = chosen(given.number, given.seed)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "main"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".*_cache", "__pycache__"))
        for number, mutant in enumerate(tried, 1):
            by = killed_by(mutant, tree, tests_of(mutant.module))
            results.append({"mutant": asdict(mutant), "killed_by": by})
            given.to.write_text(json.dumps(results, indent=1), "utf-8")
            print(f"{number}/{len(tried)} {'survives' if by is None else 'killed'} {mutant}", flush=True)
    print(f"{sum(each['killed_by'] is not None for each in results)} of {len(results)} mutants were killed")


if __name__ == "__main__":
    main()
