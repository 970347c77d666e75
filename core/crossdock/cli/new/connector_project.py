"""``crossdock new``: a folder with a connector that works, to change, from templates of which each feature has some."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from string import Template
from typing import Any

import click
from msgspec import Struct, field

from crossdock.cli.shared_options_messages_and_signals import (
    as_json,
    check_each_value_is_utf8,
    help_example,
    print_sentences,
    raise_if_value_not_utf8,
)
from crossdock.cli.terminal_output import print_json
from crossdock.errors import ConfigError
from crossdock.values.texts_of_numbers_and_times import count_with_noun

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


_NAME = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")
_LONGEST = 50  # characters of a name
_READS_API = {"http", "declarative"}

_IN_CONFIG = (
    "a config declares it in a section of the connection: see how_to/apis, how_to/targets and how_to/listen in docs/"
)
_NOT_OF_DOCUMENTS = {
    "graphql": (
        "an OpenAPI document describes no GraphQL query",
        "write the project without --openapi, and put your query in place of that in streams.py",
    ),
    "webhooks": (
        "streams that are proposed from a document have no fetch, which webhooks need",
        "write a second project with --webhooks, and add its webhooks.py and its fetch to the first one",
    ),
}
"""Why an option is refused beside --openapi, and what to do."""

_SET_UP = (
    """Set `base_url` in crossdock.yaml to that of your API, and export {upper}_TOKEN, before you read from it. """
)
_SET_UP_PROPOSED = "Look for TODO: the rest comes from the API's document. {exports}"
_SETTINGS_OF_TESTS = """\
SETTINGS = {{"base_url": "https://api.example.com", "token": "env:{upper}_TOKEN"}}
ENVIRONMENT = {{"{upper}_TOKEN": "token-of-the-tests"}}"""


@click.command(epilog=help_example("crossdock new acme-shop", "crossdock new acme-exports --kind files"))
@click.argument("name", callback=raise_if_value_not_utf8)
@click.option(
    "--kind",
    type=click.Choice(list(PROJECT_FILES)),
    default="http",
    show_default=True,
    help="http: a paged JSON API, in Python. files: exports in a folder, in Python. declarative, declarative-files: the"
    " same by a config alone.",
)
@click.option(
    "--target",
    is_flag=True,
    help="Also a target, to which streams send, and its tests; with --graphql, one of mutations.",
)
@click.option("--webhooks", is_flag=True, help="Also the webhooks of the API.")
@click.option("--graphql", is_flag=True, help="Read the API by a GraphQL query.")
@click.option(
    "--openapi",
    type=click.Path(path_type=Path),
    help="Propose streams, credentials and a fake of the vendor, with --target also a target, from this document, which"
    " is OpenAPI 3.0, 3.1 or Swagger 2.0, in JSON or YAML.",
)
@click.option(
    "--list", "lists", multiple=True, metavar="PATH", callback=check_each_value_is_utf8, help="Only this list of it."
)
@as_json
def new(
    name: str,
    *,
    kind: str,
    target: bool,
    webhooks: bool,
    graphql: bool,
    openapi: Path | None,
    lists: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write a project with a connector, its tests and a config into the new folder NAME.

    The project works as it is: its tests pass. Nothing is overwritten. What cannot be known from an OpenAPI document
    is marked with TODO in the project.
    """
    package = name.replace("-", "_")
    _raise_if_name_unusable(name, package)
    wanted = {"target": target, "webhooks": webhooks, "graphql": graphql, "openapi": openapi is not None}
    features = {feature for feature, is_wanted in wanted.items() if is_wanted}
    _refuse_conflicting_options(kind, features, lists)
    values = {"name": name, "package": package, "upper": package.upper(), "kind": kind, "stream": f"{package}.products"}
    values["before"] = _SET_UP.format(**values) if kind in _READS_API else ""
    values["settings_of_tests"] = _SETTINGS_OF_TESTS.format(**values)
    made = _ProjectContent(features, values | {"topic": "product", "hinted": "products"})
    if openapi is not None:
        _add_openapi_proposal(made, openapi, lists)
    elif target:
        _add_example_target(made)
    chosen_files = template_and_purpose_by_path(kind, made.features, made.values)
    made.values["files"] = "\n".join(f"| `{path}` | {purpose} |" for path, (_, purpose) in chosen_files.items())
    contents = {
        path: fill_template(template, made.features, made.values) for path, (template, _) in chosen_files.items()
    }
    contents["README.md"] = fill_template("README.md.txt", made.features, made.values)
    contents |= made.examples
    _write_folder(name, contents)
    if as_json:
        print_json({"folder": name, "kind": kind, "files": sorted(contents), **made.report})
    else:
        written = f"{name}: {count_with_noun(len(contents), 'file')} written"
        print_sentences(*made.lines, written, f"next: cd {name}; README.md says what to do")


class _ProjectContent(Struct):
    """What fills the templates, and what a document gives besides: examples, and what is said about it."""

    features: set[str]
    values: dict[str, str]
    examples: Mapping[str, str] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)
    lines: Sequence[str] = ()


def _add_openapi_proposal(made: _ProjectContent, openapi: Path, lists: Collection[str]) -> None:
    from crossdock.cli.new import openapi_project

    proposal = openapi_project.propose_project(openapi, with_target="target" in made.features, chosen=lists)
    made.features |= {"support", *proposal.template_features}
    made.values |= openapi_project.template_values(proposal, made.values["package"])
    made.values["before"] = _SET_UP_PROPOSED.format(**made.values)
    made.examples = openapi_project.example_files(proposal)
    made.report = {"proposal": openapi_project.report(proposal)}
    made.lines = list(openapi_project.report_lines(proposal))


def _add_example_target(made: _ProjectContent) -> None:
    from crossdock.cli.new import target_code

    is_graphql = "graphql" in made.features
    example = target_code.GRAPHQL_EXAMPLE if is_graphql else target_code.EXAMPLE
    made.features |= example.template_features
    made.features |= {"graphql_target", "support"} if is_graphql else set()  # support: modules beside the tests
    made.values |= target_code.template_values(example, made.values["package"])


def _refuse_conflicting_options(kind: str, features: Collection[str], lists: Collection[str]) -> None:
    if features and kind != "http":
        hint = _IN_CONFIG if kind == "declarative" else "leave it out, or write a connector with --kind http"
        raise ConfigError(
            f"--{min(features)} is for connectors of --kind http, not {kind}", hint=hint, code="options_conflict"
        )
    for other, (reason, hint) in _NOT_OF_DOCUMENTS.items():
        if {"openapi", other} <= {*features}:
            raise ConfigError(
                f"--{other} cannot be combined with --openapi: {reason}", hint=hint, code="options_conflict"
            )
    if lists and "openapi" not in features:
        raise ConfigError(
            "--list names a list of an OpenAPI document",
            hint="name the document with --openapi",
            code="options_conflict",
        )


def _write_folder(name: str, contents: Mapping[str, str]) -> None:
    folder = Path(name)
    try:
        folder.mkdir()
        for path, content in contents.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, encoding="utf-8")
    except FileExistsError:
        raise ConfigError(
            "exists already", where=name, hint="give another name, or remove it", code="file_exists"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", where=name, code="file_unwritable") from error


def _raise_if_name_unusable(name: str, package: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > _LONGEST or iskeyword(package):
        hint = f"use at most {_LONGEST} lower case ASCII letters, digits and single - or _, a letter first"
        raise ConfigError(f"{name!r} cannot be the name of a package", hint=hint, code="option_value_invalid")
    if find_spec(package) is not None:
        raise ConfigError(
            f"a package {package!r} is installed already", hint="choose another name", code="option_value_invalid"
        )
