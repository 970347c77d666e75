"""The documentation is complete and true: keys, links, anchors, examples and commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from shlex import split
from typing import Any
from zoneinfo import ZoneInfo

import click
import pytest
import yaml
from pydantic import TypeAdapter
from site_builder.reference_pages import generated

from crossdock.cli.main import cli
from crossdock.config import registry
from crossdock.config.project import project
from crossdock.config.project.config_schema import config_schema
from crossdock.config.project.effective_config import effective
from crossdock.config.project.stream_overrides import StreamOverrides
from crossdock.mapping.declarative import Form
from crossdock.values import exact_json, yaml_reader

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CONFIGURE = DOCS / "how_to" / "configure"
PAGES = sorted(DOCS.rglob("*.md"))
LINKED = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@cache
def known_keys() -> frozenset[str]:
    """Every key of a config file, from its JSON Schema."""
    schema = config_schema({name: registry.load(name).settings for name in registry.available()})
    return frozenset(key for part in (schema, *schema["$defs"].values()) for key in part["properties"])


def anchors(markdown: str) -> set[str]:
    """The anchors of a page: those of its headings, as GitHub makes them, and those that it sets."""
    text = re.sub(r"^```.*?^```", "", markdown, flags=re.DOTALL | re.MULTILINE)
    titles: list[str] = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    made = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    return made | set(re.findall(r"\{ #([^ }]+) \}", text))


@cache
def generated_pages() -> dict[Path, str]:
    return {(DOCS / path).resolve(): text for path, text in generated().items()}


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_resolve(page: Path) -> None:
    """Each relative link leads to a file of the project or a generated page, and its anchor to a heading."""
    text = re.sub(r"^```.*?^```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        if link.startswith("https://"):
            continue
        target = (page.parent / path).resolve() if path else page
        assert target in generated_pages() or target.exists(), link
        if anchor:
            known = generated_pages().get(target)
            assert anchor in anchors(target.read_text(encoding="utf-8") if known is None else known), link


@pytest.mark.parametrize("folder", sorted({page.parent for page in PAGES}), ids=lambda folder: folder.name)
def test_the_index_of_a_folder_names_its_pages(folder: Path) -> None:
    """No page is hidden."""
    index = (folder / "index.md").read_text(encoding="utf-8")
    assert [page.name for page in folder.glob("*.md") if f"]({page.name})" not in index] == ["index.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_is_short_and_has_one_title(page: Path) -> None:
    """Each page has one purpose."""
    text = page.read_text(encoding="utf-8")
    assert text.count("\n") <= 300 or page.parent == DOCS  # the pages there are not split yet
    assert len(re.findall(r"^# ", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)) == 1


def yaml_examples() -> Iterator[tuple[str, dict[str, Any]]]:
    for page in PAGES:
        for number, text in enumerate(blocks(page, "yaml"), 1):
            name = page.relative_to(DOCS).with_suffix("").as_posix().replace("/", ".")
            yield f"{name}-{number}", yaml_reader.parse(text, page.name, {}).data


EXAMPLES = dict(yaml_examples())
WHOLE = EXAMPLES["how_to.configure.first_config-1"]
SOURCE_FILES = [
    (text.partition("\n")[0].removeprefix("# "), text)
    for page in PAGES
    for text in blocks(page, "python")
    if re.match(r"# \w+\.py\n", text)
] + [(text.splitlines()[0].strip(" *"), text) for page in PAGES for text in blocks(page, "cobol")]


# tests/unit/test_deploy_examples.py loads fleets and manifests, tests/unit/console/sign_in the one of the console;
# tests/e2e/test_tutorials.py runs the last one, whose connector is on the same page.
FLEETS = ("start_a_fleet", "second_tenant")
OTHERS = {
    *(f"how_to.fleet.{page}-{number}" for page in FLEETS for number in (1, 2)),
    "how_to.console.openid_connect-1",
    "how_to.deploy.kubernetes-1",
    "tutorials.connector-1",
}


@pytest.mark.parametrize(
    "example", [name for name, data in EXAMPLES.items() if "command" not in data and name not in OTHERS]
)
def test_yaml_examples_load(tmp_path: Path, example: str) -> None:
    """Each example is a whole config, or sections that replace those of the first one; a container's command is not."""
    for name, text in SOURCE_FILES:
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "c.yaml").write_bytes(exact_json.dumps({**WHOLE, **EXAMPLES[example]}))
    assert project.load(tmp_path / "c.yaml").connections


def test_a_login_is_shared_as_the_guide_shows(tmp_path: Path) -> None:
    """The example, as it is written, gives both connections the login, and one of them its own user."""
    (tmp_path / "whole.yaml").write_bytes(exact_json.dumps(WHOLE))
    (example,) = [text for text in blocks(CONFIGURE / "reuse_sections.md", "yaml") if "<<: *login" in text]
    (tmp_path / "example.yaml").write_text(example, encoding="utf-8")
    connections = effective(tmp_path / "whole.yaml", tmp_path / "example.yaml")["connections"]
    hamburg, bremen = connections["hamburg"], connections["bremen"]
    assert hamburg["private_key"] == bremen["private_key"] == "file:~/.ssh/wms"
    assert (hamburg["user"], bremen["user"]) == ("export", "crossdock")
    assert hamburg["streams"] == bremen["streams"]


def test_there_are_examples_to_load() -> None:
    """The pages have what the test above loads, the first of them as the text of a file."""
    assert {"platform", "state", "connections"} <= set(WHOLE)
    assert len(EXAMPLES) >= 8


def test_the_guide_lists_every_key_that_changes_a_stream_of_a_connector() -> None:
    """It says what each of them does."""
    guide = (CONFIGURE / "connector_streams.md").read_text(encoding="utf-8")
    rows = "".join(re.findall(r"^\| (`.*?`) \|", guide, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", rows)) == StreamOverrides.model_fields.keys()


def test_every_form_of_a_map_is_accepted() -> None:
    """The table of forms lists forms that exist."""
    page = (CONFIGURE / "map_columns.md").read_text(encoding="utf-8")
    forms = [
        form for row in re.findall(r"^\| (`\{.*`) \|", page, re.MULTILINE) for form in re.findall(r"`(\{.*?\})`", row)
    ]
    assert len(forms) >= 9
    for form in forms:
        TypeAdapter(Form).validate_python(yaml.safe_load(form.replace(", ...", "")))


def commands() -> Iterator[tuple[str, str]]:
    for page in LINKED:
        text = page.read_text(encoding="utf-8")
        lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
        lines += re.findall(r"`(crossdock [^`]*)`", text) + re.findall(r"^    (crossdock .*)$", text, re.MULTILINE)
        yield from ((page.name, line) for line in lines if line.startswith("crossdock "))


def test_commands_and_options_exist() -> None:
    """Each command that a page shows has the subcommand and the options that it uses."""
    found = list(commands())
    assert len(found) > 30
    for page, line in found:
        words = split(line.partition(" #")[0])[1:]
        command: click.Command = cli
        options = {name for parameter in cli.params for name in parameter.opts}
        for word in words:
            if isinstance(command, click.Group) and (below := command.get_command(click.Context(command), word)):
                command = below
                options |= {name for parameter in command.params for name in parameter.opts}
            elif word.startswith("-"):
                assert word.partition("=")[0] in {*options, "--help", "--version"}, f"{page}: {line}"
        assert command is not cli or "|" in words or words[0].isupper() or words[0].startswith("-"), f"{page}: {line}"


def test_the_trigger_of_the_guide_fires_when_the_schedule_is_due() -> None:
    """The Python example of the page on APScheduler adds a job whose first time is the schedule's next one."""
    (code,) = blocks(DOCS / "how_to" / "schedule" / "apscheduler.md", "python")
    names: dict[str, Any] = {}
    exec(code, names)
    scheduler = names["scheduler"]
    scheduler.start(paused=True)
    try:
        (job,) = scheduler.get_jobs()
        local = job.next_run_time.astimezone(ZoneInfo("Europe/Berlin"))
        assert (local.hour, local.minute) == (2, 30)
    finally:
        scheduler.shutdown()
