"""The documentation is complete and true: keys, links, anchors, examples and commands."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml
from pydantic import TypeAdapter
from site_builder.reference_pages import generated
from tests.documentation.config_blocks import data_of, files_of_pages, whole_config
from tests.documentation.fences import DOCS, PAGES, ROOT, fences, fences_of

from crossdock.config.project import connections_and_bound_streams
from crossdock.config.project.config_schema import config_schema
from crossdock.config.project.masked_effective_config import effective_config
from crossdock.config.stream_configuration import StreamOverrides
from crossdock.mapping.declarative import Form
from crossdock.values import exact_json

CONFIGURE = DOCS / "how_to" / "configure"
LINKED = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]


def blocks(page: Path, language: str) -> list[str]:
    return [each.text for each in fences_of(page) if each.language == language]


@cache
def known_keys() -> frozenset[str]:
    """Every key of a config file, from its JSON Schema."""
    schema = config_schema(
        {
            name: connections_and_bound_streams.load_connector(name).settings
            for name in connections_and_bound_streams.installed_connectors()
        }
    )
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


EXAMPLES = {each.name: data_of(each) for each in fences("yaml") if each.page in PAGES}
WHOLE = whole_config()
SOURCE_FILES = list(files_of_pages().items())


def test_a_login_is_shared_as_the_guide_shows(tmp_path: Path) -> None:
    """The example, as it is written, gives both connections the login, and one of them its own user."""
    (tmp_path / "whole.yaml").write_bytes(exact_json.dumps(WHOLE))
    (example,) = [text for text in blocks(CONFIGURE / "reuse_sections.md", "yaml") if "<<: *login" in text]
    (tmp_path / "example.yaml").write_text(example, encoding="utf-8")
    connections = effective_config(tmp_path / "whole.yaml", tmp_path / "example.yaml")["connections"]
    hamburg, bremen = connections["hamburg"], connections["bremen"]
    assert hamburg["private_key"] == bremen["private_key"] == "file:~/.ssh/wms"
    assert (hamburg["user"], bremen["user"]) == ("export", "crossdock")
    assert hamburg["streams"] == bremen["streams"]


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
