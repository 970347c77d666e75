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

from crossdock.cli.main import cli
from crossdock.config import registry
from crossdock.config.project import project
from crossdock.config.project.config_schema import config_schema
from crossdock.config.project.effective_config import effective
from crossdock.config.project.stream_overrides import StreamOverrides
from crossdock.mapping.declarative import Form
from crossdock.mapping.resource_types import WRITTEN, personal_members
from crossdock.records import REASONS
from crossdock.values import exact_json, yaml_reader

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CONFIGURE = DOCS / "how_to" / "configure"
PAGES = sorted(DOCS.rglob("*.md"))
LINKED = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
REFERENCE = (DOCS / "reference.md").read_text(encoding="utf-8")

SECTIONS = {  # definition in the JSON Schema -> how the reference names its keys
    "MigrationConfig": "migration.",
    "Wave": "migration.waves.NAME.",
    "Gate": "migration.waves.NAME.gate.",
    "Hours": "migration.hours.",
    "Profile": "platform.",
    "ApiKey": "platform.auth.",
    "ClientCredentials": "platform.auth.",
    "Rate": "platform.rate.",
    "Idempotency": "platform.idempotency.",
    "LookUp": "platform.lookup.",
    "Retry": "platform.retry.",
    "Http": "platform.http.",
    "SftpWarehouseSettings": "connections.NAME.",
    "FolderWarehouseSettings": "connections.NAME.",
    "HttpJsonSettings": "connections.NAME.",
    "PlatformSourceSettings": "connections.NAME.",
    "PlatformStreamConfig": "streams.NAME.",
    "ShipBobSettings": "connections.NAME.",
    "AmazonMcfSettings": "connections.NAME.",
    "ShopifySettings": "connections.NAME.",
    "ChargeProduct": "charges.KIND.",
    "WooCommerceSettings": "connections.NAME.",
    "StreamOverrides": "streams.NAME.",
    "AdoptBy": "adopt.",
    "SentOrders": "connections.NAME.orders.",
    "Bills": "connections.NAME.bills.",
    "HeaderCredential": "connections.NAME.auth.",
    "BasicCredential": "connections.NAME.auth.",
    "BearerCredential": "connections.NAME.auth.",
    "ClientCredentialsGrant": "connections.NAME.auth.",
    "Assertion": "client_assertion.",
    "RefreshTokenGrant": "connections.NAME.auth.",
    "AuthorizationCode": "connections.NAME.auth.",
    "LoginRequest": "connections.NAME.auth.",
    "RateLimit": "connections.NAME.rate.",
    "ThrottledAnswer": "connections.NAME.throttled.",
    "ExpiredAnswer": "connections.NAME.auth.expired.",
    "TargetConfig": "connections.NAME.target.",
    "FileTargetConfig": "connections.NAME.target.",
    "FileResourceConfig": "target.resources.NAME.",
    "JobResourceConfig": "target.resources.NAME.",
    "BulkJob": "resources.NAME.job.",
    "JobRequest": "job.request.",
    "JobUpload": "job.upload.",
    "JobState": "job.state.",
    "JobResults": "job.results.",
    "AcknowledgementConfig": "acknowledged.",
    "DelimitedContent": "content.",
    "FixedWidthContent": "content.",
    "JsonLinesContent": "content.",
    "JsonContent": "content.",
    "XmlContent": "content.",
    "X12Content": "content.",
    "EdifactContent": "content.",
    "DelimitedRow": "rows.",
    "FixedWidthRow": "rows.",
    "JsonRow": "rows.",
    "XmlRow": "rows.",
    "EdiRow": "rows.",
    "Cell": "cell.",
    "WrittenColumn": "cell.",
    "FailedAnswer": "failed.",
    "PostedRequest": "request.",
    "TargetResourceConfig": "resources.NAME.",
    "RestOfConnection": "rest.PATH.",
    "Member": "members.NAME.",
    "LookUpByName": "look_up.",
    "BatchConfig": "resources.NAME.batch.",
    "RepeatedAnswer": "repeated.",
    "OutdatedAnswer": "outdated.",
    "HttpJsonStreamConfig": "streams.NAME.",
    "SinglePage": "pagination.",
    "LinkHeaderPages": "pagination.",
    "AfterIdPages": "pagination.",
    "NextUrlPages": "pagination.",
    "CursorInBodyPages": "pagination.",
    "CursorInHeaderPages": "pagination.",
    "PageNumberPages": "pagination.",
    "OffsetPages": "pagination.",
    "GraphQLPages": "pagination.",
    "StopConfig": "stop.",
    "Cursor": "cursor.",
    "Windows": "windows.",
    "WebhookSettings": "connections.NAME.webhooks.",
    "HttpJsonWebhooks": "connections.NAME.webhooks.",
    "WebhookScheme": "scheme.",
    "HintRule": "hints.",
    "ListedKeys": "existing.",
    "FetchedRecord": "fetch.",
    "ExpandedMember": "expand.NAME.",
    "SourceConfig": "sources.NAME.",
    "WarehouseStreamConfig": "streams.NAME.",
    "DelimitedFormat": "format.",
    "DelimitedRecordType": "record_types.NAME.",
    "FixedWidthFormat": "fixed_width.",
    "Copybook": "fixed_width.copybook.",
    "FixedRecordType": "fixed_width.record_types.NAME.",
    "FixedColumn": "fixed_width.columns.NAME.",
    "TypePosition": "fixed_width.record_type.",
    "SheetFormat": "sheet.",
    "JsonLinesFormat": "json_lines.",
    "JsonFormat": "json.",
    "XmlFormat": "xml.",
    "X12Format": "x12.",
    "EdifactFormat": "edifact.",
    "ParquetFormat": "parquet.",
    "WholeFileFormat": "whole_file.",
    "ArrowFormat": "arrow.",
    "EdiLoop": "x12.loops.NAME.",
    "EdiColumn": "x12.columns.NAME.",
    **dict.fromkeys(
        ("GzipSettings", "Bz2Settings", "XzSettings", "ZstdSettings", "ZipSettings", "PgpSettings"), "wrapped."
    ),
    "PgpKey": "wrapped.decrypt.",
    "Trailer": "format.trailer.",
    "Repair": "columns.COLUMN.",
    "Filter": "skip.NAME.",
    "Join": "join.NAME.",
    "Lookup": "lookup.NAME.",
    "Wait": "wait.",
    "NameOrder": "order.",
    "Manifest": "manifest.",
    "Expect": "expect.",
    "GoneLimits": "gone.",
    "Reread": "reread.",
    "OpenUntil": "open_until.",
    "Ours": "ours.",
    "ChangeLimits": "changes.",
    "SuspiciousLimit": "suspicious.",
    "FailureLimits": "mapping_failed.",
    "FromColumn": "map.MEMBER.",
    "Const": "map.MEMBER.",
    "Template": "map.MEMBER.",
    "RefTo": "map.MEMBER.",
    "Nested": "map.MEMBER.",
    "Each": "map.MEMBER.",
    "When": "map.MEMBER.",
    "Total": "total.",
    "OrderBy": "order_by.",
    "JobConfig": "jobs.NAME.",
    "FleetConfig": "fleet.",
    "Schedule": "jobs.NAME.schedule.",
    "Blackout": "jobs.NAME.schedule.blackouts.",
    "ListenConfig": "listen.",
    "NotifyConfig": "notify.",
    "Webhook": "notify.webhook.",
    "Email": "notify.email.",
}


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@cache
def known_keys() -> frozenset[str]:
    """Every key of a config file, from its JSON Schema."""
    schema = config_schema({name: registry.load(name).settings for name in registry.available()})
    new = ", ".join(sorted(schema["$defs"].keys() - SECTIONS.keys()))
    assert not new, f"document the keys of {new} in docs/reference.md, and say above how it names them"
    keys = {f"{SECTIONS[name]}{key}" for name, part in schema["$defs"].items() for key in part["properties"]}
    return frozenset({*keys, *schema["properties"]})


def test_the_reference_lists_every_config_key() -> None:
    """The tables and the JSON Schema name the same keys."""
    config = REFERENCE.partition("## Config file")[2].partition("\n## ")[0]
    documented = re.findall(r"^\| `([^`]+)` \|", config, re.MULTILINE)
    assert len(documented) == len(set(documented))
    assert set(documented) == known_keys()


def test_the_reference_lists_every_reason_code() -> None:
    """The table and `Reason` name the same codes."""
    section = REFERENCE.partition("## Reason codes")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)) == REASONS


def test_the_reference_lists_every_member() -> None:
    """Each resource has the members of its draft; required and personal ones are marked."""
    section = REFERENCE.partition("## Resources")[2].partition("\n## ")[0]
    rows: list[tuple[str, str]] = re.findall(r"^\| `([^`]+)` \| (.*) \|$", section, re.MULTILINE)
    assert {name for name, _ in rows} == set(WRITTEN)
    for name, kind in WRITTEN.items():
        members = re.sub(r"\([^)]*\)", "", dict(rows)[name]).split(",")
        personal = {re.sub(r"\W", "", each) for each in members if re.sub(r"\*\*", "", each).strip().endswith("*")}
        required = {re.sub(r"\W", "", each) for each in members if each.strip().startswith("**")}
        fields = {field.alias or "": field for field in kind.draft.model_fields.values()}
        assert {re.sub(r"\W", "", each) for each in members} == set(fields)
        assert required == {alias for alias, field in fields.items() if field.is_required()}
        assert personal == personal_members(kind.draft)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles: list[str] = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_resolve(page: Path) -> None:
    """Each relative link leads to a file of the project, and its anchor to a heading."""
    text = re.sub(r"^```.*?^```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        if link.startswith("https://"):
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


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


def test_both_pages_list_every_key_that_changes_a_stream_of_a_connector() -> None:
    """The guide says what each of them does."""
    guide = (CONFIGURE / "connector_streams.md").read_text(encoding="utf-8")
    rows = "".join(re.findall(r"^\| (`.*?`) \|", guide, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", rows)) == StreamOverrides.model_fields.keys()
    listed = REFERENCE.partition("A stream of a [connector in Python]")[2].partition("all optional")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == StreamOverrides.model_fields.keys()


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
