"""Annotations as texts that can be compared."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def normal_text(annotation: str) -> str:
    """Return *annotation* without modules and what ``Annotated`` adds, and with the members of each union in order."""
    return ast.unparse(_Normal().visit(ast.parse(annotation, mode="eval")))


def is_wider(before: str, after: str) -> bool:
    """Return whether *after* is a union of all that *before* permits, and of more."""
    return _members(before) < _members(after)


def _members(annotation: str) -> set[str]:
    return {ast.unparse(each) for each in _alternatives(ast.parse(annotation, mode="eval").body)}


def _alternatives(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from _alternatives(node.left)
        yield from _alternatives(node.right)
    else:
        yield node


class _Normal(ast.NodeTransformer):
    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return ast.Name(node.attr)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        kind = ast.unparse(node.value).rpartition(".")[2]
        if kind == "Annotated" and isinstance(node.slice, ast.Tuple):
            return self._normal(node.slice.elts[0])
        return ast.Subscript(ast.Name(kind), self._normal(node.slice))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        first, *others = sorted((self._normal(each) for each in _alternatives(node)), key=ast.unparse)
        for each in others:
            first = ast.BinOp(first, ast.BitOr(), each)
        return first

    def _normal(self, node: ast.expr) -> ast.expr:
        found: ast.expr = self.visit(node)
        return found
