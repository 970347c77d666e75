"""Nothing that a release promised is removed or changed unless it is declared, and told in the changelog."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
import pytest
from tests.compatibility import state_tables
from tests.compatibility.annotations import normal_text
from tests.compatibility.api_facts import PUBLIC, api_facts, exported, loaded
from tests.compatibility.config_facts import config_facts, schema
from tests.compatibility.facts import HERE, Break, Declared, Fact, breaks, facts_of, newest_release, text_of, widened
from tests.compatibility.output_facts import output_facts

from crossdock.cli import plan
from crossdock.services.observability import health_and_metrics
from crossdock.services.observability.health_and_metrics import METRICS
from crossdock.state.db import schema as state_schema

ROOT = HERE.parents[1]
DECLARED = tomllib.loads((HERE / "declared_breaks.toml").read_text(encoding="utf-8"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def package() -> griffe.Module:
    return loaded()


@pytest.fixture(scope="module")
def config_schema() -> dict[str, Any]:
    return schema()


def broken_api(package: griffe.Module) -> list[Break]:
    after, kept = api_facts(package), api_facts(package, inherited=True)
    return list(breaks(newest_release("api"), after, kept=kept))


def widened_api(package: griffe.Module) -> list[tuple[str, str, str]]:
    return list(widened(newest_release("api"), api_facts(package)))


def broken_config(config_schema: dict[str, Any]) -> list[Break]:
    return list(breaks(newest_release("config"), config_facts(config_schema)))


def broken_output(folder: Path) -> list[Break]:
    return list(breaks(newest_release("output"), output_facts(folder)))


# ---- what CI demands


def test_each_break_is_declared_and_told(package: griffe.Module, config_schema: dict[str, Any], tmp_path: Path) -> None:
    """Each break since the newest release is in declared_breaks.toml and in the changelog; each entry is about one."""
    found = [*broken_api(package), *broken_config(config_schema), *broken_output(tmp_path)]
    declared = [Declared(**each) for each in DECLARED.get("break", ())]
    undeclared = [str(each) for each in found if not any(entry.covers(each) for entry in declared)]
    assert undeclared == [], "keep what users rely on, or declare the break in tests/compatibility/declared_breaks.toml"
    untold = [entry.subject for entry in declared if not entry.is_in(CHANGELOG)]
    assert untold == [], "name it under Removed or Changed in CHANGELOG.md"
    assert [entry.subject for entry in declared if not any(map(entry.covers, found))] == [], "these break nothing"


def test_each_parameter_that_accepts_more_is_in_the_baseline(package: griffe.Module) -> None:
    """A wider type breaks nothing, but is promised from now on."""
    found = [f"{subject}: {before}, now {now}" for subject, before, now in widened_api(package)]
    assert found == [], "accept it: python -m tests.compatibility.write_baseline VERSION api"


def test_the_tables_change_only_with_the_version_of_the_state() -> None:
    """A changed table without a new version would leave the states of users without the change."""
    advice = "increase VERSION in state/db/schema.py and add a migration, then run tests.compatibility.write_baseline"
    assert state_tables.kept().exists(), advice
    assert state_tables.kept().read_text(encoding="utf-8") == state_tables.described(), advice


def test_the_newest_release_has_its_promises_and_the_state_that_it_writes() -> None:
    """Each kind of promise has its version. While nothing is unreleased, the code is that of the release."""
    versions = re.findall(r"^## \[(.+?)\]", CHANGELOG, re.MULTILINE)
    released = next(each for each in versions if each != "Unreleased")
    states = [(HERE / f"state_{released}_{kind}.sql").read_text(encoding="utf-8") for kind in ("sqlite", "postgresql")]
    assert all((HERE / f"{kind}_{released}.txt").exists() for kind in ("api", "config", "output"))
    if versions[0] == released:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert project["version"] == released
        assert all(re.search(rf"'version', ?'{state_schema.VERSION}'", each) for each in states)


# ---- what is public


def test_each_public_module_says_what_it_exports(package: griffe.Module) -> None:
    """Each has names in ``__all__``, and each name exists."""
    names = exported(package)
    assert {name.rpartition(".")[0] for name in names} == {*PUBLIC}


def test_the_page_on_stability_lists_the_public_modules() -> None:
    """Users find the same list as the tools check."""
    page = (ROOT / "docs" / "reference" / "stability.md").read_text(encoding="utf-8")
    assert tuple(sorted(re.findall(r"^\| `(crossdock[a-z_.]*)` \|", page, re.MULTILINE))) == PUBLIC


def test_every_other_module_is_closed_to_connectors() -> None:
    """A new module is public or in the contract of import-linter."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = (each for each in config["contracts"] if each["name"] == "connectors import the public API")
    found = {f"crossdock.{path.stem}" for path in (ROOT / "core" / "crossdock").iterdir() if path.name[0] not in "_."}
    closed = {each for each in contract["forbidden_modules"] if each not in PUBLIC}
    assert found - {"crossdock.py"} - {*PUBLIC} == closed


def shown_imports() -> Iterator[tuple[str, str]]:
    """Yield each imported name in what users copy: documentation, README, example configs, and new projects."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for block in re.findall(
            r"^( *)```python[^\n]*\n(.*?)^\1```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
        ):
            yield from imports(page, re.sub(rf"^{block[0]}", "", block[1], flags=re.MULTILINE))
    templates = ROOT / "core" / "crossdock" / "cli" / "new" / "project_templates"
    for file in [*(ROOT / "configs").rglob("*.py"), *templates.rglob("*.py.txt")]:
        yield from imports(file, file.read_text(encoding="utf-8"))


def imports(file: Path, code: str) -> Iterator[tuple[str, str]]:
    for module, names in re.findall(r"^\s*from (crossdock[\w.]*) import (\([^)]*\)|[^\n#]+)", code, re.MULTILINE):
        for name in re.findall(r"\w+", re.sub(r" as \w+", "", names)):
            yield f"{file.relative_to(ROOT)}", f"{module}.{name}"
    for name in re.findall(r"^\s*import (crossdock[\w.]*)", code, re.MULTILINE):
        yield f"{file.relative_to(ROOT)}", name


def test_what_users_copy_imports_public_names_only(package: griffe.Module) -> None:
    """Documentation, README, examples and templates show what stays."""
    public = {*exported(package), *PUBLIC}
    found = [*shown_imports()]
    assert found
    own = {"crossdock_airflow", "crossdock_dagster"}  # files that the pages about orchestrators show
    assert [each for each in found if each[1] not in public and each[1].partition(".")[0] not in own] == []


# ---- planted breaks


def planted(package: griffe.Module) -> list[str]:
    return [str(each) for each in broken_api(package)]


def test_a_removed_name_is_a_break(package: griffe.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the object stays under another name."""
    before = {*planted(package)}
    module = package["targets"]
    monkeypatch.setattr(module, "exports", [name for name in module.exports if str(name) != "key_text"])
    assert "crossdock.targets.key_text: no longer function" in {*planted(package)} - before


def test_a_removed_parameter_is_a_break(package: griffe.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that names it would fail."""
    before = {*planted(package)}
    function = package["runs.init_plan_run_for_programs.run"]
    monkeypatch.setattr(function, "parameters", griffe.Parameters(*list(function.parameters)[:-1]))
    assert {*planted(package)} - before == {
        "crossdock.run(interrupt): no longer default None", "crossdock.run(interrupt): no longer keyword",
        "crossdock.run(interrupt): no longer type Event | None",
    }  # fmt: skip


def test_a_new_required_parameter_is_a_break_and_an_optional_one_is_not(
    package: griffe.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls that were right stay right without the optional one."""
    before = {*planted(package)}
    function = package["runs.init_plan_run_for_programs.run"]
    added = griffe.Parameter("added", kind=griffe.ParameterKind.keyword_only, default="None")
    monkeypatch.setattr(function, "parameters", griffe.Parameters(*function.parameters, added))
    assert {*planted(package)} == before
    monkeypatch.setattr(added, "default", None)
    assert {*planted(package)} - before == {"crossdock.run(added): newly required"}


def test_a_changed_default_is_a_break(package: griffe.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a call without the parameter does would change."""
    before = {*planted(package)}
    monkeypatch.setattr(package["runs.init_plan_run_for_programs.run"].parameters["wait"], "default", "True")
    assert {*planted(package)} - before == {"crossdock.run(wait): no longer default False"}


def test_a_narrower_parameter_is_a_break_and_a_wider_one_is_to_be_accepted(
    package: griffe.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Type checkers would refuse a call that was right."""
    parameter = package["runs.init_plan_run_for_programs.run"].parameters["interrupt"]
    before = str(parameter.annotation)
    assert "None" in before
    monkeypatch.setattr(parameter, "annotation", f"Planted | {before}")
    assert planted(package) == []
    assert [subject for subject, *_ in widened_api(package)] == ["crossdock.run(interrupt)"]
    monkeypatch.setattr(parameter, "annotation", "Planted")
    assert [each.partition(" type")[0] for each in planted(package)] == ["crossdock.run(interrupt): no longer"]


def test_another_type_of_a_result_or_an_attribute_is_a_break(
    package: griffe.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a wider one, which callers do not expect."""
    monkeypatch.setattr(package["runs.init_plan_run_for_programs.run"], "returns", "Report | None")
    attribute = package["values.run_states_and_tally.Tally"].members["parts"]
    monkeypatch.setattr(attribute, "annotation", "list[str]")
    assert planted(package) == [
        "crossdock.Tally.parts: no longer type Counter[str]",
        "crossdock.run: no longer returns Report",
    ]


def test_annotations_are_compared_without_their_spelling() -> None:
    """Neither modules nor the order in a union make another type."""
    assert normal_text("dt.date | None | str") == normal_text("None | (str | date)")
    assert normal_text("Mapping[str, None | int]") == normal_text("abc.Mapping[str, int | None]")
    assert normal_text("Annotated[int, Field(ge=1)]") == "int"
    assert normal_text("Literal['a.b']") != normal_text("Literal['b']")


def test_a_method_that_a_private_base_loses_is_a_break(package: griffe.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """Authors inherit it by the public class."""
    before = {*planted(package)}
    monkeypatch.delitem(package["reading.transport.http_auth.TokenAuth"].members, "token_of_response")
    found = {*planted(package)} - before
    assert {
        "crossdock.client.ClientCredentialsAuth.token_of_response: no longer function",
        "crossdock.sources.RefreshTokenAuth.token_of_response: no longer function",
    } < found
    assert all(".token_of_response" in each for each in found)


def test_a_method_that_moves_to_a_public_base_is_no_break(
    package: griffe.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is still there for users of the subclass."""
    before = {*planted(package)}
    error, base = package["errors.RecordError"], package["errors.CrossdockError"]
    moved = error.members["at"]
    monkeypatch.delitem(error.members, "at")
    monkeypatch.setitem(base.members, "at", moved)
    assert {*planted(package)} == before


def test_a_lost_member_of_json_output_or_metric_is_a_break(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that read it would fail."""
    monkeypatch.setattr(plan, "error_documents", lambda errors: [{"level": "error"} for _ in errors])
    monkeypatch.setattr(
        health_and_metrics, "METRICS", {name: each for name, each in METRICS.items() if name != "running"}
    )
    found = {str(each) for each in broken_output(tmp_path)}
    assert {"plan --json.messages[].code: no longer member", "crossdock_running: no longer metric"} <= found


MODE, KEY = {"enum": ["snapshot", "append"], "default": "append"}, {"type": "array", "items": {"type": "string"}}
NEW = {"type": "string"}


def config(required: list[str], **properties: dict[str, Any]) -> set[Fact]:
    return config_facts({"properties": properties, "required": required, "$defs": {}})


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (config(["key"], key=KEY), ['mode: no longer accepts "append"', 'mode: no longer accepts "snapshot"',
            'mode: no longer default "append"', "mode: no longer key"]),
        (config(["key"], mode=MODE, key=NEW), ["key: no longer accepts list of string"]),
        (config(["key"], mode=MODE | {"enum": ["append"]}, key=KEY), ['mode: no longer accepts "snapshot"']),
        (config(["key"], mode=MODE | {"default": "snapshot"}, key=KEY), ['mode: no longer default "append"']),
        (config(["key", "mode"], mode=MODE, key=KEY), ["mode: newly required"]),
        (config(["key", "new"], mode=MODE, key=KEY, new=NEW), ["new: newly required"]),
        (config([], mode=MODE | {"enum": ["snapshot", "append", "more"]}, key=KEY, new=NEW), []),
    ],
    ids=["removed key", "other type", "removed value", "other default", "required", "new and required", "additions"],
)  # fmt: skip
def test_breaks_of_config_keys(after: set[Fact], told: list[str]) -> None:
    """A config that was right stays right and means the same; additions break nothing."""
    assert [str(each) for each in breaks(config(["key"], mode=MODE, key=KEY), after)] == [
        f"config.{each}" for each in told
    ]


NUMBER, SHORT = {"type": "integer", "minimum": 1, "maximum": 9}, {"type": "string", "maxLength": 5, "pattern": "^a"}


@pytest.mark.parametrize(
    ("number", "short", "told"),
    [
        (NUMBER | {"minimum": 0, "maximum": 10}, {"type": "string", "maxLength": 6}, []),
        (NUMBER | {"minimum": 2}, SHORT, ["number: newly limited: integer minimum 2"]),
        (NUMBER | {"maximum": 8}, SHORT, ["number: newly limited: integer maximum 8"]),
        (NUMBER | {"exclusiveMaximum": 9}, SHORT, ["number: newly limited: integer exclusiveMaximum 9"]),
        (NUMBER, SHORT | {"pattern": "^b"}, ['short: newly limited: string pattern "^b"']),
        (NUMBER, {"anyOf": [SHORT | {"maxLength": 4}, {"type": "null"}]}, ["short: newly limited: string maxLength 4"]),
    ],
    ids=["wider", "minimum", "maximum", "new bound", "pattern", "length"],
)
def test_narrower_limits_of_config_values_are_breaks(
    number: dict[str, Any], short: dict[str, Any], told: list[str]
) -> None:
    """A value that was right is refused; a wider limit refuses nothing."""
    after = config([], number=number, short=short)
    assert [str(each) for each in breaks(config([], number=NUMBER, short=SHORT), after)] == [
        f"config.{each}" for each in told
    ]


def test_a_declaration_covers_members_and_needs_a_line_in_the_changelog() -> None:
    """The line names the subject under Changed or Removed of its version, or of what is not released yet."""
    entry = Declared("crossdock.Stream.existing", "0.3.0", "It is slow.")
    assert entry.covers(Break("crossdock.Stream.existing(ctx)", "newly required"))
    assert not entry.covers(Break("crossdock.Stream.existing_keys", "no longer function"))
    told = "## [Unreleased]\n### Removed\n- `Stream.existing`: it is slow.\n"
    assert entry.is_in(told)
    assert not entry.is_in(told.replace("Removed", "Added"))
    assert not entry.is_in("## [0.3.0] - 2027-01-01\n### Removed\n- nothing\n" + told)


def test_a_changed_table_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same version of the state."""
    monkeypatch.setattr(state_schema.jobs.c.paused, "nullable", True)
    assert state_tables.kept().read_text(encoding="utf-8") != state_tables.described()


def test_facts_are_read_as_they_are_written() -> None:
    """A line for each subject."""
    facts: set[Fact] = {("a.b(c)", "default ': '"), ("a.b(c)", "keyword"), ("a", "class")}
    assert facts_of(text_of(facts)) == facts
