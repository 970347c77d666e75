"""Promises about the house itself: its rooms, its door, its examples."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

import crossdock
from crossdock.config.project import project
from crossdock.config.project.connections_and_bound_streams import installed_connectors, load_connector
from crossdock.connector import Connector
from crossdock.mapping.resource_types import RESOURCES
from crossdock.testing.connector_context_and_reading import context
from crossdock.values.raw_rows_and_records import Record

ROOT = Path(__file__).parents[2]
MODULES = sorted([*(ROOT / "core").rglob("*.py"), *(ROOT / "connectors").rglob("*.py")])
README = (ROOT / "README.md").read_text(encoding="utf-8")


@functools.cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}


@functools.cache
def classes() -> list[ast.ClassDef]:
    return [node for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


@functools.cache
def bases_of() -> dict[str, set[str]]:
    """The names of the bases of all classes of a name, without their parameters."""
    found = dict[str, set[str]]()
    for each in classes():
        found.setdefault(each.name, set()).update(ast.unparse(base).partition("[")[0] for base in each.bases)
    return found


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found
    return found[1]


def test_money_never_meets_a_float() -> None:
    """``float`` is not called, and no float literal stands, in any module on the way of money."""
    money = (
        "exact_json.py", "json_access.py", "field_types.py", "resources.py", "raw_rows_and_records.py",
        "run_states_and_tally.py", "mapping", "formats", "runs", "planning", "delta", "project", "state", "delivery",
    )  # fmt: skip
    durations = {  # modules whose floats are seconds or percent, or what a file holds of a number
        "lost_digits_of_doubles.py",
        "sync_and_replay.py", "run_start_and_stop_requests.py", "database_opening_and_errors.py", "open_state.py",
        "run_lease.py",
        "dispatcher.py",
        "answer_outcomes.py",
        "masked_effective_config.py", "send_queue_and_threads.py", "outcome_policy.py", "retries_and_look_ups.py",
        "state_writer.py", "reconciliation_result.py",
        "token_buckets.py",
        "run_report.py", "tables_and_sentences_of_run.py", "scheduled_runs.py", "fleet_leadership_and_jobs.py",
        "row_order_and_cursors.py", "stream_declaration.py",
    }  # fmt: skip
    assert {*money, *durations} <= {part for path in MODULES for part in path.parts}
    for path, tree in trees().items():
        if path.name in durations or not any(part in money for part in path.relative_to(ROOT).parts):
            continue
        for node in ast.walk(tree):
            assert not (isinstance(node, ast.Name) and node.id == "float"), f"{path}:{node.lineno}"
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), f"{path}:{node.lineno}"


def test_only_fields_of_structs_are_replaced() -> None:
    """`structs.replace` takes any keyword for mypy, so each one must be a field of some struct."""
    structs = {"Struct"}
    while more := {name for name, bases in bases_of().items() if structs & bases} - structs:
        structs |= more
    members = [member for each in classes() if each.name in structs for member in each.body]
    fields = {ast.unparse(member.target) for member in members if isinstance(member, ast.AnnAssign)}
    calls = [node for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    replaced = [call for call in calls if ast.unparse(call.func) == "structs.replace"]
    assert replaced
    assert not [ast.unparse(each) for each in replaced if {k.arg for k in each.keywords} - {*fields, None}]


def test_no_validator_replaces_that_of_a_base_class() -> None:
    """pydantic keeps validators by their name: one of the same name in a subclass would run in place of the other."""
    validators = {
        each.name: {m.name for m in each.body if isinstance(m, ast.FunctionDef) and _validates(m)} for each in classes()
    }
    assert any(validators.values())
    for name, own in validators.items():
        replaced = own & set[str]().union(*(validators.get(base, ()) for base in _bases(name)))
        assert not replaced, f"{name}: {replaced}"


def _validates(method: ast.FunctionDef) -> bool:
    return any(re.match("(model|field)_(validator|serializer)", ast.unparse(each)) for each in method.decorator_list)


def test_docstrings_name_what_is_there() -> None:
    """What stands between stars, or as an attribute of a class, is a member, an argument or a variable around it."""
    by_name = {each.name: each for each in classes()}
    unknown, found = [], 0
    for path, tree in trees().items():
        for node, around in _documented(tree, frozenset()):
            known = around | _names_in(node)
            if isinstance(node, ast.ClassDef):
                known = known.union(*(_names_in(by_name[each]) for each in _bases(node.name) if each in by_name))
            text = ast.get_docstring(node) or ""
            named = re.findall(r"(?<![\w*`])\*([a-z_]\w*)\*(?![\w*`])", text)
            _, _, attributes = text.partition("Attributes:\n")
            named += re.findall(r"^    ([a-z_]\w*):", attributes, re.MULTILINE)
            found += len(named)
            unknown += [f"{path}:{node.lineno} {name}" for name in named if name not in known]
    assert found
    assert not unknown


def _documented(
    node: ast.AST, around: frozenset[str]
) -> Iterator[tuple[ast.ClassDef | ast.FunctionDef, frozenset[str]]]:
    for child in ast.iter_child_nodes(node):
        is_documented = isinstance(child, (ast.ClassDef, ast.FunctionDef))
        if isinstance(child, (ast.ClassDef, ast.FunctionDef)):
            yield child, around
        yield from _documented(child, around | _names_in(child) if is_documented else around)


@functools.cache
def _names_in(node: ast.AST) -> frozenset[str]:
    """The arguments, variables, attributes and functions in *node*."""
    found = set[str]()
    for each in ast.walk(node):
        match each:
            case ast.arg(arg=name) | ast.Name(id=name) | ast.FunctionDef(name=name) | ast.Attribute(attr=name):
                found.add(name)
    return frozenset(found)


def _bases(name: str) -> set[str]:
    """The names of all classes above *name*."""
    found, left = set[str](), {*bases_of().get(name, ())}
    while left:
        base = left.pop()
        left |= bases_of().get(base, set()) - found
        found.add(base)
    return found


def test_the_facade_gives_what_it_names() -> None:
    """Every exported name is there, and comes from where it lives; those for authors are few enough to learn."""
    embedding = {
        "init",
        "check",
        "plan",
        "run",
        "CheckResult",
        "ExecutorKind",
        "PlanListener",
        "PlanResult",
        "Progress",
        "Report",
        "Schedule",
        "ScheduleTrigger",
        "Tally",
    }
    assert len({*crossdock.__all__} - embedding) <= 30, "the others are for programs that embed crossdock"
    assert set(crossdock.__all__) == set(crossdock._HOME_OF)
    assert all(getattr(crossdock, name) is not None for name in crossdock.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = crossdock.Nonsense  # type: ignore[attr-defined]  # it is wrong


def test_bundled_connectors_come_through_the_door_of_all() -> None:
    """Nothing in core knows their names: they are found by entry point."""
    assert isinstance(load_connector("sftp_warehouse"), Connector)
    assert "sftp_warehouse" in installed_connectors()
    core = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "core").rglob("*.py"))
    assert "crossdock_connectors" not in core


def test_the_config_of_the_readme_loads(tmp_path: Path) -> None:
    """The README's YAML is a whole config file."""
    (tmp_path / "c.yaml").write_text(block("yaml"), encoding="utf-8")
    (connection,) = project.load(tmp_path / "c.yaml").connections
    assert [stream.resource for stream in connection.streams] == ["product"]


@pytest.mark.parametrize("price", ["12.50", '"12.50"', "1.25e1", "2", '"2"', '".5000"'])
def test_the_connector_of_the_readme_maps(price: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's connector is whole: it pulls a page and maps its record, whether the price is a number or a text."""
    code = block("python")
    assert len(code.splitlines()) <= 40
    namespace: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec", dont_inherit=True), namespace)
    connector = namespace["CONNECTOR"]
    (stream,) = connector.streams(None)
    page = f'{{"products": [{{"id": 1, "sku": "0017", "title": "Lamp", "price": {price}, "updated_at": "x"}}]}}'
    pages = iter([page, '{"products": []}'])
    monkeypatch.setenv("SHOP_TOKEN", "t0ken")
    answers = httpx.MockTransport(lambda _: httpx.Response(200, text=next(pages)))
    settings = {"base_url": "https://shop.example", "token": "env:SHOP_TOKEN"}
    batch, _ = stream.pull(context(connector, settings, transport=answers, folder=tmp_path), None)
    rows = batch.load().drop("_line").to_dicts()
    draft = stream.draft(Record("1", tuple(rows), "page", (1,)))
    assert isinstance(draft, RESOURCES["product"].draft)
    assert draft.payload()["sku"] == "0017"
    assert draft.payload()["unitPrice"] == Decimal(price.strip('"'))


def test_the_readme_fits_its_promises() -> None:
    """Two commands, word for word what a new user and CI run."""
    assert "\npip install -e . && crossdock demo\n" in README
    assert "\npip install -e '.[dev]' && pytest -n 2 --dist worksteal\n" in README
    assert len(README.splitlines()) <= 110


HELPED = [
    "",
    "demo",
    "sandbox",
    "new",
    "try",
    "layout show",
    "layout guess",
    "init",
    "check",
    "plan",
    "sync",
    "runs",
    "show",
    "records list",
    "audit",
    "sandbox clients new",
    "sandbox keys new",
    "state purge",
    "config show",
    "schema",
]


def test_help_is_light_and_has_an_example() -> None:
    """Help imports no heavy library, and shows how to call the command; one process shows that of all commands."""
    heavy = ("polars", "sqlalchemy", "pydantic", "paramiko", "httpcore", "starlette", "rich", "jinja2")
    code = (
        "import sys\nfrom crossdock.cli.main import main\n"
        f"for command in {HELPED!r}:\n"
        " try:\n  main([*command.split(), '--help'])\n"
        " except SystemExit as ended:\n  code = ended.code\n"
        f" print('HEAVY', [name for name in {heavy!r} if name in sys.modules], code)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    helps = told.split("HEAVY [] 0\n")
    assert len(helps) == len(HELPED) + 1
    assert helps[-1] == ""
    for command, text in zip(HELPED, helps, strict=False):
        assert "crossdock" in text, command
        assert not command or "Example:" in text, command


def test_every_module_can_be_imported_alone() -> None:
    """No module relies on another one having been imported first."""
    names = [".".join(path.relative_to(ROOT / "core").with_suffix("").parts) for path in (ROOT / "core").rglob("*.py")]
    for name in names:
        if not name.endswith("__main__"):
            importlib.import_module(name.removesuffix(".__init__"))
