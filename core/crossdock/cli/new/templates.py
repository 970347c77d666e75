"""The files of a new project: templates, of which each feature has some and parts of others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from string import Template

_FILLED = (".py.txt", ".toml.txt", ".yaml.txt", ".md.txt")

Templates = Mapping[str, tuple[str | None, str]]
"""Path in the project -> template, and what the README says of it; ``$package`` is filled in."""

_IN_PYTHON: Templates = {
    "pyproject.toml": ("pyproject.toml.txt", "the package, and the entry point that makes its name a `kind`"),
    "$package/__init__.py": ("$kind/__init__.py.txt", "the constant `CONNECTOR`"),
    "$package/streams.py": ("$kind/streams.py.txt", "settings, reading, and what records become"),
    "$package/py.typed": (None, "the package has types"),
    "tests/test_streams.py": ("$kind/test_streams.py.txt", "the contract tests of crossdock, and your own"),
    "crossdock.yaml": ("$kind/crossdock.yaml.txt", "a config with one connection"),
}
_SAMPLE: Templates = {"exports/ITEMS_20261119.txt": ("ITEMS_20261119.txt", "a sample export")}
_CONFIG_ONLY: Templates = {
    "pyproject.toml": ("declarative/pyproject.toml.txt", "what the tests need"),
    "crossdock.yaml": ("$kind/crossdock.yaml.txt", "a config with one connection and its mapping"),
    "tests/test_config.py": ("$kind/test_config.py.txt", "tests of the mapping"),
}
PROJECT_FILES: Mapping[str, Templates] = {
    "http": _IN_PYTHON,
    "files": {**_IN_PYTHON, **_SAMPLE},
    "declarative": _CONFIG_ONLY,
    "declarative-files": {**_CONFIG_ONLY, **_SAMPLE},
}
FEATURES: Mapping[str, Templates] = {
    "openapi": {
        **{
            f"$package/{name}": (f"openapi/{name}.txt", _IN_PYTHON[f"$package/{name}"][1])
            for name in ("__init__.py", "streams.py")
        },
        "tests/test_streams.py": ("openapi/test_streams.py.txt", "the contract tests of crossdock, and your own"),
        "tests/fake_vendor.py": ("openapi/fake_vendor.py.txt", "a fake of the vendor, with the records in examples"),
        "crossdock.yaml": ("openapi/crossdock.yaml.txt", "a config with one connection"),
    },
    "graphql": {
        "$package/streams.py": ("graphql/streams.py.txt", _IN_PYTHON["$package/streams.py"][1]),
        "tests/test_streams.py": ("graphql/test_streams.py.txt", "the contract tests of crossdock, and your own"),
    },
    "target": {
        "$package/target.py": ("target/target.py.txt", "writing: requests and answers"),
        "tests/test_target.py": ("target/test_target.py.txt", "the contract tests of crossdock for targets"),
    },
    "graphql_target": {
        "$package/target.py": ("graphql/target.py.txt", "writing: mutations and their answers"),
        "tests/fake_partner.py": ("graphql/fake_partner.py.txt", "a fake of the partner that is written to"),
        "tests/test_target.py": ("graphql/test_target.py.txt", "the contract tests of crossdock for targets"),
    },
    "webhooks": {
        "$package/webhooks.py": ("webhooks/webhooks.py.txt", "signatures, and which records webhooks are about"),
        "tests/test_webhooks.py": ("webhooks/test_webhooks.py.txt", "tests of the webhooks"),
    },
}
"""What can be added to a project of kind ``http``."""


def template_and_purpose_by_path(
    kind: str, features: Collection[str], values: Mapping[str, str]
) -> dict[str, tuple[str | None, str]]:
    """Return the files of a project without its README, in the order in which that lists them."""
    found = dict(PROJECT_FILES[kind])
    for name in FEATURES:
        if name in features:
            found |= FEATURES[name]
    return {Template(path).substitute(values): content for path, content in found.items()}


def fill_template(template: str | None, features: Collection[str], values: Mapping[str, str]) -> str:
    """Return the content of a file."""
    if template is None:
        return ""
    path = Template(template).substitute(values)
    from importlib.resources import files

    content = (files("crossdock.cli.new") / "project_templates" / path).read_text(encoding="utf-8")
    return (
        Template(remove_lines_of_other_features(content, features)).substitute(values)
        if path.endswith(_FILLED)
        else content
    )


def remove_lines_of_other_features(content: str, features: Collection[str]) -> str:
    """Leave out the lines between ``#if NAME`` or ``#if !NAME`` and ``#else`` or ``#end`` that are for others."""
    kept: list[str] = []
    is_kept = True
    for line in content.splitlines(keepends=True):
        word, _, name = line.strip().partition(" ")
        if word == "#if":
            is_kept = (name.removeprefix("!") in features) != name.startswith("!")
        elif word == "#else":
            is_kept = not is_kept
        elif word == "#end":
            is_kept = True
        elif is_kept:
            kept.append(line)
    return "".join(kept)
