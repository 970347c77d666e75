"""Builds the site in a temporary folder, checks it, and puts it into the folder of its version."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from site_builder import api_pages
from site_builder.link_check import problems
from site_builder.navigation import navigation
from site_builder.reference_pages import generated

ROOT = Path(__file__).parents[1]
_REDIRECT = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>crossdock</title>'
    '<meta http-equiv="refresh" content="0; url={0}/index.html"><a href="{0}/index.html">Documentation</a></html>\n'
)


_OUTER_LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<path>(?:\.\./)+[^)#\s]+)\)")

_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_COMPLAINT = re.compile(r"^(griffe|mkdocs\w*|warning|error)\b", re.IGNORECASE | re.MULTILINE)


class SiteError(Exception):
    """The site could not be built, or has broken links."""


def build(output: Path) -> Path:
    """Build the site of this version and return its folder below *output*.

    Raises SiteError, and NavigationError if an index.md lacks a page.
    """
    with tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary)
        _write_sources(project)
        _run_zensical(project)
        (
            project / "site" / "404.html"
        ).unlink()  # its links begin at the root of a host, where no version of the site is
        _shorten_search_index(project / "site" / "search.json")
        if found := problems(project / "site"):
            raise SiteError("\n".join(found))
        place = output / _version()
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(project / "site", place)
    _write_versions(output)
    return place


def _write_sources(project: Path) -> None:
    docs = project / "docs"
    shutil.copytree(ROOT / "docs", docs)
    shutil.copy(ROOT / "site_builder" / "tables.css", docs)
    for path, text in generated().items():
        (docs / path).parent.mkdir(parents=True, exist_ok=True)
        (docs / path).write_text(text, encoding="utf-8")
    for page in docs.rglob("*.md"):
        page.write_text(with_copied_files(page, docs), encoding="utf-8")
    settings = (ROOT / "zensical.toml").read_text(encoding="utf-8").replace('paths = ["core"]', _paths())
    start, project_table, rest = settings.partition("[project]\n")
    text = f"{start}{project_table}nav = {navigation(docs)}\n{rest}"
    (project / "zensical.toml").write_text(text, encoding="utf-8")


def with_copied_files(page: Path, docs: Path) -> str:
    """Return the text of *page*. Its links to files beside docs/ lead to copies of them; links to folders are text."""

    def replaced(link: re.Match[str]) -> str:
        place = os.path.normpath(page.parent.relative_to(docs.parent) / link["path"])
        source = ROOT / place
        if place.startswith("docs/") or not source.exists():
            return link[0]
        if source.is_dir() or source.suffix == ".md":
            return f"{link['text']} (`{place}`)"
        copy = docs / "files" / place
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
        return f"[{link['text']}]({os.path.relpath(copy, page.parent)})"

    return _OUTER_LINK.sub(replaced, page.read_text(encoding="utf-8"))


def _paths() -> str:
    return f"paths = [{json.dumps(str(ROOT / 'core'))}]"


def _run_zensical(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    output = _COLOR.sub("", done.stdout)
    if done.returncode != 0 or _COMPLAINT.search(output):
        raise SiteError("zensical failed:\n" + output.partition("Traceback")[0])


def _shorten_search_index(index: Path) -> None:
    """Leave out the members of classes, which are half of all sections, so that pages about tasks come before them."""
    data = json.loads(index.read_text(encoding="utf-8"))
    data["items"] = [
        each for each in data["items"] if each["level"] < 3 or not each["location"].startswith(api_pages.FOLDER)
    ]
    index.write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def _version() -> str:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])


def _write_versions(output: Path) -> None:
    """Write the list that the version selector of the pages reads, and a page that leads to the newest version."""
    names = [each.parent.name for each in output.glob("*/index.html")]
    newest, *others = sorted(names, key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    versions = [{"version": newest, "title": newest, "aliases": ["latest"]}]
    versions += [{"version": each, "title": each, "aliases": []} for each in others]
    (output / "versions.json").write_text(json.dumps(versions, indent=2), encoding="utf-8")
    (output / "index.html").write_text(_REDIRECT.format(newest), encoding="utf-8")
