"""What is uploaded to a package index: sdist and wheel; `tests.long.test_install` installs them."""

from __future__ import annotations

import os
import tarfile
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest
from markdown_it import MarkdownIt
from tests.distributions import PROJECT, ROOT, VERSIONS, Distributions, built

ELSEWHEN = 1_000_000_000  # in 2001


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    return built(ROOT, tmp_path_factory.mktemp("dist"))


def test_two_builds_are_identical(
    distributions: Distributions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sdist builds both again, byte for byte: in another folder, time zone and umask, of files of another time."""
    with tarfile.open(distributions.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    for each in source.rglob("*"):
        os.utime(each, (ELSEWHEN, ELSEWHEN))
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    before = os.umask(0o077)
    try:
        again = built(source, tmp_path / "again")
    finally:
        os.umask(before)
    assert again.wheel.read_bytes() == distributions.wheel.read_bytes()
    assert again.sdist.read_bytes() == distributions.sdist.read_bytes()


def test_the_wheel_has_the_packages_and_nothing_else(distributions: Distributions) -> None:
    """Each file of both packages, such as templates and ``py.typed``, and no test."""
    with ZipFile(distributions.wheel) as wheel:
        found = {name for name in wheel.namelist() if ".dist-info/" not in name}
    sources = [(ROOT / "core", "crossdock"), (ROOT / "connectors", "crossdock_connectors")]
    assert found == {
        path.relative_to(top).as_posix()
        for top, package in sources
        for path in (top / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_description_links_to_nothing_that_an_index_has_not(distributions: Distributions) -> None:
    """The README without its relative links, which lead nowhere on the page of a package index."""
    with ZipFile(distributions.wheel) as wheel:
        (metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        about = message_from_bytes(wheel.read(metadata))
    text = str(about.get_payload())
    assert about["Description-Content-Type"] == "text/markdown"
    assert "What crossdock guarantees" in text
    tokens = (child for token in MarkdownIt().parse(text) for child in token.children or ())
    links = [
        str(each.attrs.get("href") or each.attrs.get("src")) for each in tokens if each.type in {"link_open", "image"}
    ]
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_classifiers_are_the_versions_that_are_tried() -> None:
    """The lowest of them is the lowest that can be installed."""
    named = [
        each.rpartition(" ")[2]
        for each in PROJECT["classifiers"]
        if each.startswith("Programming Language :: Python :: 3.")
    ]
    assert tuple(named) == VERSIONS
    assert PROJECT["requires-python"] == f">={VERSIONS[0]}"
