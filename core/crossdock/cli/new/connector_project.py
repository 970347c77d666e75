"""``crossdock new``: a folder with a connector that works, to change."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import Any

import click
from msgspec import Struct, field

from crossdock.cli.new.templates import PROJECT_FILES, fill_template, template_and_purpose_by_path
from crossdock.cli.sentence_printing import say
from crossdock.cli.shared_options import as_json, check_each_value_is_utf8, check_value_is_utf8, help_example
from crossdock.cli.terminal_output import print_json
from crossdock.errors import ConfigError
from crossdock.values.texts_of_numbers_and_times import count_with_noun

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
@click.argument("name", callback=check_value_is_utf8)
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
    _check_name(name, package)
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
        say(*made.lines, written, f"next: cd {name}; README.md says what to do")


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


def _check_name(name: str, package: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > _LONGEST or iskeyword(package):
        hint = f"use at most {_LONGEST} lower case ASCII letters, digits and single - or _, a letter first"
        raise ConfigError(f"{name!r} cannot be the name of a package", hint=hint, code="option_value_invalid")
    if find_spec(package) is not None:
        raise ConfigError(
            f"a package {package!r} is installed already", hint="choose another name", code="option_value_invalid"
        )
