"""The facts of the public API, which griffe reads from the source: names, bases, members, parameters and types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import griffe
from tests.compatibility.annotations import normal_text
from tests.compatibility.facts import REQUIRED, TYPE, Fact

PUBLIC = (
    "crossdock",
    "crossdock.client",
    "crossdock.errors",
    "crossdock.resources",
    "crossdock.sources",
    "crossdock.targets",
    "crossdock.testing",
    "crossdock.testing.acceptance",
    "crossdock.testing.contract",
    "crossdock.testing.http_contract",
    "crossdock.testing.plugin",
    "crossdock.testing.target_acceptance",
    "crossdock.testing.target_contract",
    "crossdock.testing.target_under_test",
    "crossdock.webhooks",
)
"""The modules whose ``__all__`` is the public API."""
CORE = Path(__file__).parents[2] / "core"
_CALLED_BY_PYTHON = {"__init__", "__call__", "__enter__", "__iter__"}
_LONGEST_DEFAULT = 60  # a longer value is an implementation, such as a pattern
_KINDS = griffe.ParameterKind


def loaded() -> griffe.Module:
    package = griffe.load("crossdock", search_paths=[str(CORE)])
    assert isinstance(package, griffe.Module)
    return package


def exported(package: griffe.Module) -> dict[str, griffe.Object | None]:
    """Return what each public name stands for; None for an object of another package."""
    found: dict[str, griffe.Object | None] = {}
    for path in PUBLIC:
        module = _inside(package, path)
        for name in module.exports or ():
            found[f"{path}.{name}"] = _resolved(module.members[str(name)])
    return found


def api_facts(package: griffe.Module, *, inherited: bool = False) -> set[Fact]:
    """Return the facts of all public names. The members of an object are told under its first public name.

    Args:
        inherited: Tell the members of a public base class also for each of its subclasses.
    """
    public, names, facts = exported(package), dict[str, str](), set[Fact]()
    for name, found in public.items():
        if found is None:
            facts.add((name, "exported"))
        elif (first := names.setdefault(found.path, name)) != name:
            facts.add((name, f"the same as {first}"))
    described = {path: public[name] for path, name in names.items()}
    for path, found in described.items():
        assert found is not None
        facts.update(_facts(names[path], found, names, inherited=inherited))
    return facts


def _inside(package: griffe.Module, path: str) -> griffe.Module:
    inner = path.removeprefix("crossdock").removeprefix(".")
    module = package[inner] if inner else package
    assert isinstance(module, griffe.Module)
    return module


def _resolved(found: griffe.Object | griffe.Alias) -> griffe.Object | None:
    try:
        return found.final_target if isinstance(found, griffe.Alias) else found
    except griffe.AliasResolutionError:
        return None


def _facts(name: str, found: griffe.Object, names: dict[str, str], *, inherited: bool) -> Iterator[Fact]:
    yield name, found.kind.value
    if isinstance(found, griffe.Function):
        if "abstractmethod" in found.labels:
            yield name, REQUIRED
        yield from _parameters(name, found)
        if found.returns is not None:
            yield name, f"returns {normal_text(str(found.returns))}"
    elif isinstance(found, griffe.Attribute):
        yield from _type(name, found.annotation)
    elif isinstance(found, griffe.Class):
        yield from _bases(name, found, names)
        for member, each in _members(found, names, inherited=inherited):
            yield from _facts(f"{name}.{member}", each, names, inherited=inherited)
            if isinstance(each, griffe.Attribute) and "dataclass" not in found.labels:
                yield from _value(f"{name}.{member}", each)


def _bases(name: str, found: griffe.Class, names: dict[str, str]) -> Iterator[Fact]:
    for each in (found, *found.mro()):
        for base in map(_path, each.bases):
            if base in names or not base.startswith("crossdock."):
                yield name, f"a {names.get(base, base)}"


def _path(base: griffe.Expr | str) -> str:
    expression = base.left if isinstance(base, griffe.ExprSubscript) else base
    return expression if isinstance(expression, str) else expression.canonical_path


def _members(found: griffe.Class, names: dict[str, str], *, inherited: bool) -> Iterator[tuple[str, griffe.Object]]:
    for name, alias in found.all_members.items():
        member = _resolved(alias)
        if member is None or not _is_public(name):
            continue
        home = member.parent
        if inherited or home is found or home is None or home.path not in names:
            yield name, member


def _is_public(name: str) -> bool:
    """Return whether users may rely on a member. A test to inherit is called by no one."""
    return name in _CALLED_BY_PYTHON or not (name.startswith(("_", "test_")) or name == "model_config")


def _type(subject: str, annotation: griffe.Expr | str | None) -> Iterator[Fact]:
    if annotation is not None:
        yield subject, f"{TYPE}{normal_text(str(annotation))}"


def _value(name: str, found: griffe.Attribute) -> Iterator[Fact]:
    if "property" in found.labels or "ClassVar" in str(found.annotation):
        return
    if found.value is None:
        yield name, REQUIRED
    elif len(text := str(found.value)) <= _LONGEST_DEFAULT:
        yield name, f"default {text}"


def _parameters(name: str, function: griffe.Function) -> Iterator[Fact]:
    is_method = isinstance(function.parent, griffe.Class) and "staticmethod" not in function.labels
    for position, parameter in enumerate(list(function.parameters)[is_method:], 1):
        if parameter.name.startswith("_"):
            continue
        subject = f"{name}({parameter.name})"
        if parameter.kind in {_KINDS.positional_only, _KINDS.positional_or_keyword}:
            yield subject, f"position {position}"
        if parameter.kind in {_KINDS.keyword_only, _KINDS.positional_or_keyword}:
            yield subject, "keyword"
        if parameter.kind in {_KINDS.var_positional, _KINDS.var_keyword}:
            yield subject, f"{parameter.kind.value}"
        else:
            yield subject, REQUIRED if parameter.required else f"default {parameter.default}"
        yield from _type(subject, parameter.annotation)
